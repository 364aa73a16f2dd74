//! The base of a workspace: the name of a branch, tag or commit, and the commit that it named at the start.
//!
//! Not a merge base. This module only resolves names, and suggests similar ones for a name that does not
//! exist.

use crate::error::CreateCause;
use crate::repository::Repository;
use crate::tool::{ToolError, text};

/// More than three would be a list of branches, not a suggestion.
const MOST_SUGGESTIONS: usize = 3;

/// The base of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// The name that the caller gave, or the current branch of the main checkout, or its commit where `HEAD`
    /// is detached.
    pub name: String,
    /// The commit that the name stood for.
    pub commit: String,
}

impl Base {
    pub(crate) fn find(repository: &Repository, wanted: Option<&str>) -> Result<Base, CreateCause> {
        match explicit_base(wanted) {
            None => Self::current(repository),
            Some(name) => Self::named(repository, name),
        }
    }

    fn current(repository: &Repository) -> Result<Base, CreateCause> {
        let Some(branch) = current_branch(repository)? else {
            let commit = repository.git().read_line(&["rev-parse", "--verify", "HEAD"]).map(text)?;
            return Ok(Base { name: commit.clone(), commit });
        };
        match repository.branch_tip(&branch)? {
            Some(commit) => Ok(Base { name: branch, commit }),
            None => Err(missing_current(repository, branch)?),
        }
    }

    fn named(repository: &Repository, name: &str) -> Result<Base, CreateCause> {
        match find_commit(repository, name)? {
            Some(commit) => Ok(Base { name: name.to_owned(), commit }),
            None if all_names(repository)?.is_empty() => Err(CreateCause::NoCommit),
            None => Err(missing_base(repository, name)?),
        }
    }
}

/// Returns the name of a base, or None for `HEAD`, which stands for the current branch of the main checkout.
pub(crate) fn explicit_base(base: Option<&str>) -> Option<&str> {
    base.filter(|base| *base != "HEAD")
}

/// Returns the given base, or the current branch of the main checkout.
pub(crate) fn base_or_current(
    repository: &Repository,
    base: Option<&str>,
) -> Result<Option<String>, ToolError> {
    match explicit_base(base) {
        Some(base) => Ok(Some(base.to_owned())),
        None => current_branch(repository),
    }
}

/// Returns the branch that `HEAD` of the main checkout is on, also before its first commit.
pub(crate) fn current_branch(repository: &Repository) -> Result<Option<String>, ToolError> {
    let head = repository.git().read_optional(&["symbolic-ref", "--quiet", "HEAD"])?.map(text);
    Ok(head.map(|head| head.strip_prefix("refs/heads/").map(str::to_owned).unwrap_or(head)))
}

/// Finds the commit of a name. A branch wins over a tag of the same name.
pub(crate) fn find_commit(repository: &Repository, name: &str) -> Result<Option<String>, ToolError> {
    // This is an option, not a name: no branch may begin with a dash.
    if name.starts_with('-') {
        return Ok(None);
    }
    match repository.commit(&format!("refs/heads/{name}"))? {
        Some(commit) => Ok(Some(commit)),
        None => repository.commit(name),
    }
}

fn missing_current(repository: &Repository, branch: String) -> Result<CreateCause, ToolError> {
    if all_names(repository)?.is_empty() {
        Ok(CreateCause::NoCommit)
    } else {
        missing_base(repository, &branch)
    }
}

fn missing_base(repository: &Repository, name: &str) -> Result<CreateCause, ToolError> {
    let near = nearest_names(name, all_names(repository)?);
    Ok(CreateCause::BaseMissing { base: name.to_owned(), near })
}

fn all_names(repository: &Repository) -> Result<Vec<String>, ToolError> {
    let kinds = ["refs/heads", "refs/remotes", "refs/tags"];
    let out = repository.git().read(&[&["for-each-ref", "--format=%(refname)"], &kinds[..]].concat())?;
    let out = String::from_utf8_lossy(&out).into_owned();
    let short = |name: &str| {
        kinds.iter().find_map(|kind| name.strip_prefix(kind)?.strip_prefix('/').map(str::to_owned))
    };
    Ok(out.lines().filter_map(short).filter(|name| !name.ends_with("/HEAD")).collect())
}

pub(crate) fn nearest_names(name: &str, names: Vec<String>) -> Vec<String> {
    let most = name.chars().count().div_ceil(3).max(1);
    let mut scored: Vec<_> = names.into_iter().map(|near| (distance_to_any_end(name, &near), near)).collect();
    scored.retain(|(distance, _)| *distance <= most);
    scored.sort();
    scored.dedup();
    scored.into_iter().take(MOST_SUGGESTIONS).map(|(_, near)| near).collect()
}

/// Finds the distance to a name or to its end after any slash: `login` is near to `origin/login` and to
/// `feature/login`.
fn distance_to_any_end(name: &str, whole: &str) -> usize {
    let ends = whole.match_indices('/').map(|(at, _)| 1 + distance(name, &whole[at + 1..]));
    ends.chain([distance(name, whole)]).min().unwrap_or(usize::MAX)
}

/// Counts the letters to insert, delete or replace, ignoring case.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.to_lowercase().chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], above + 1);
        for (column, same) in other.iter().map(|o| *o == letter).enumerate() {
            let replaced = diagonal + usize::from(!same);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_come_nearest_first_and_far_ones_not_at_all() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let known = names(&["main", "maintenance", "origin/mian", "feature/login", "release"]);
        assert_eq!(nearest_names("mian", known.clone()), ["origin/mian", "main"]);
        assert_eq!(nearest_names("login", known.clone()), ["feature/login"]);
        assert_eq!(nearest_names("MAIN", known.clone()), ["main"]);
        assert_eq!(nearest_names("something-else", known), [""; 0]);
    }
}

//! The refs that a commit of a workspace must be reachable from to count as merged.
//!
//! Only counts commits; merging is not done here.

use crate::base::{base_or_current, find_commit};
use crate::hidden_ref::merged_mark_ref;
use crate::name::WorkspaceName;
use crate::repository::Repository;
use crate::tool::{ToolError, text};

#[derive(Debug)]
pub(crate) struct MergedRefs {
    refs: Vec<String>,
    /// For messages: `not in main`.
    pub(crate) description: String,
}

impl MergedRefs {
    pub(crate) fn of(
        repository: &Repository,
        name: &WorkspaceName,
        base: Option<&str>,
    ) -> Result<Self, ToolError> {
        let base = base_or_current(repository, base)?;
        let moving = base.as_deref().map(|base| branch_ref(repository, base)).transpose()?.flatten();
        match (base, moving) {
            (Some(base), Some(moving)) => {
                let refs = [moving.clone()].into_iter().chain(upstream_of(repository, &moving)?);
                let merged = existing_mark(repository, name)?;
                Ok(Self { refs: refs.chain(merged).collect(), description: format!("not in {base}") })
            }
            _ => {
                let elsewhere = Self::any_other_branch(name);
                let refs = elsewhere.refs.into_iter().chain(existing_mark(repository, name)?).collect();
                Ok(Self { refs, ..elsewhere })
            }
        }
    }

    /// Any other branch, for a workspace whose base is deleted or was a commit from the start.
    pub(crate) fn any_other_branch(name: &WorkspaceName) -> Self {
        let own = format!("--exclude={}", name.branch());
        let refs = [&own, "--branches", "--remotes", "--tags"].map(str::to_owned);
        Self { refs: refs.to_vec(), description: "in no other branch".into() }
    }

    /// Exactly this revision.
    pub(crate) fn only(revision: &str, description: &str) -> Self {
        Self { refs: vec![revision.to_owned()], description: description.to_owned() }
    }

    pub(crate) fn count_missing(&self, repository: &Repository, tips: &[&str]) -> Result<u64, ToolError> {
        if tips.is_empty() {
            return Ok(0);
        }
        let refs = self.refs.iter().map(String::as_str);
        let args: Vec<&str> =
            ["rev-list", "--count"].into_iter().chain(tips.iter().copied()).chain(["--not"]).collect();
        let count = repository.git().read_line(&args.into_iter().chain(refs).collect::<Vec<_>>())?;
        // Git prints a number. If it ever does not, count everything as missing, to be careful.
        Ok(text(count).trim().parse().unwrap_or(u64::MAX))
    }
}

fn existing_mark(repository: &Repository, name: &WorkspaceName) -> Result<Option<String>, ToolError> {
    let mark = merged_mark_ref(name);
    Ok(repository.commit(&mark)?.map(|_| mark))
}

/// Returns the commits of a base, the one of its server included. Empty if there is no such base.
pub(crate) fn base_tips(repository: &Repository, base: Option<&str>) -> Result<Vec<String>, ToolError> {
    let base = base_or_current(repository, base)?.unwrap_or_else(|| "HEAD".into());
    let Some(moving) = branch_ref(repository, &base)? else {
        return Ok(find_commit(repository, &base)?.into_iter().collect());
    };
    let refs = [Some(moving.clone()), upstream_of(repository, &moving)?];
    refs.into_iter().flatten().filter_map(|name| repository.commit(&name).transpose()).collect()
}

/// Returns the full name of a local or remote branch.
fn branch_ref(repository: &Repository, base: &str) -> Result<Option<String>, ToolError> {
    for full in [format!("refs/heads/{base}"), format!("refs/remotes/{base}")] {
        if repository.commit(&full)?.is_some() {
            return Ok(Some(full));
        }
    }
    Ok(None)
}

/// Returns the upstream of a branch. Commits that are merged on the server and fetched count as merged, even
/// while the local branch is behind.
fn upstream_of(repository: &Repository, branch: &str) -> Result<Option<String>, ToolError> {
    let upstream = repository.git().read_line(&["for-each-ref", "--format=%(upstream)", branch]).map(text)?;
    let exists = !upstream.is_empty() && repository.commit(&upstream)?.is_some();
    Ok(exists.then_some(upstream))
}

//! Where the commits of a workspace have to be to count as merged.
//!
//! Only counts; merging is not done here.

use crate::base::{base_or_current, find_commit};
use crate::name::WorkspaceName;
use crate::repository::{Repository, text};
use crate::tool::ToolError;

#[derive(Debug)]
pub(crate) struct MergedRefs {
    refs: Vec<String>,
    /// `not in main`
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

    /// Without a branch to land on (deleted, or a commit from the start), any other one will do.
    pub(crate) fn any_other_branch(name: &WorkspaceName) -> Self {
        let own = format!("--exclude={}", name.branch());
        let refs = [&own, "--branches", "--remotes", "--tags"].map(str::to_owned);
        Self { refs: refs.to_vec(), description: "in no other branch".into() }
    }

    /// Exactly there: what came since that commit, or is not on that branch.
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
        // Git prints a number; should it ever not, there is something to be careful about.
        Ok(text(count).trim().parse().unwrap_or(u64::MAX))
    }
}

/// What of a workspace was merged as other commits (squashed, rebased) is in its base all the same.
pub(crate) fn merged_mark_ref(name: &WorkspaceName) -> String {
    format!("refs/agency/merged/{name}")
}

fn existing_mark(repository: &Repository, name: &WorkspaceName) -> Result<Option<String>, ToolError> {
    let mark = merged_mark_ref(name);
    Ok(repository.commit(&mark)?.map(|_| mark))
}

/// The commits a base stands for, its server's included; none if there is no such base.
pub(crate) fn base_tips(repository: &Repository, base: Option<&str>) -> Result<Vec<String>, ToolError> {
    let base = base_or_current(repository, base)?.unwrap_or_else(|| "HEAD".into());
    let Some(moving) = branch_ref(repository, &base)? else {
        return Ok(find_commit(repository, &base)?.into_iter().collect());
    };
    let refs = [Some(moving.clone()), upstream_of(repository, &moving)?];
    refs.into_iter().flatten().filter_map(|name| repository.commit(&name).transpose()).collect()
}

/// The full name of a branch or remote branch, which commits are merged into.
fn branch_ref(repository: &Repository, base: &str) -> Result<Option<String>, ToolError> {
    for full in [format!("refs/heads/{base}"), format!("refs/remotes/{base}")] {
        if repository.commit(&full)?.is_some() {
            return Ok(Some(full));
        }
    }
    Ok(None)
}

/// Merged on the server and fetched is merged, also while the local branch lags.
fn upstream_of(repository: &Repository, branch: &str) -> Result<Option<String>, ToolError> {
    let upstream = repository.git().read_line(&["for-each-ref", "--format=%(upstream)", branch]).map(text)?;
    let exists = !upstream.is_empty() && repository.commit(&upstream)?.is_some();
    Ok(exists.then_some(upstream))
}

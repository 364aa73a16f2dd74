//! The refs that a commit of a workspace must be reachable from to count as merged.
//!
//! Only counts commits; merging is not done here.

use std::collections::HashSet;

use crate::base::{base_or_current, find_commit};
use crate::name::{BRANCHES, WorkspaceName};
use crate::repository::Repository;
use crate::tool::{ToolError, text};

#[derive(Debug)]
pub(crate) struct MergedRefs {
    refs: Vec<String>,
    /// For messages: `not in main`.
    pub(crate) description: String,
}

impl MergedRefs {
    /// All of these refs.
    pub(crate) fn listed(refs: Vec<String>) -> Self {
        Self::described(refs, String::new())
    }

    pub(crate) fn described(refs: Vec<String>, description: String) -> Self {
        Self { refs, description }
    }

    /// Adds a commit, if there is one.
    pub(crate) fn and(mut self, commit: Option<String>) -> Self {
        self.refs.extend(commit);
        self
    }

    /// Any other branch, for a workspace whose base is deleted or was a commit from the start.
    pub(crate) fn any_other_branch(name: &WorkspaceName) -> Self {
        let own = format!("--exclude={}", name.branch());
        let refs = [&own, "--branches", "--remotes", "--tags"].map(str::to_owned);
        Self { refs: refs.to_vec(), description: "in no other branch".into() }
    }

    /// All branches and tags but those of tasks, which come and go.
    pub(crate) fn branches_of_user() -> Self {
        let tasks = format!("--exclude={BRANCHES}*");
        Self::listed([&tasks, "--branches", "--remotes", "--tags"].map(str::to_owned).to_vec())
    }

    /// Returns those of the commits that none of the refs contains.
    pub(crate) fn list_missing(
        &self,
        repository: &Repository,
        commits: &[&str],
    ) -> Result<HashSet<String>, ToolError> {
        let refs = self.refs.iter().map(String::as_str);
        let args = ["rev-list"].into_iter().chain(commits.iter().copied()).chain(["--not"]).chain(refs);
        let listed = repository.git().read(&args.collect::<Vec<_>>())?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        Ok(listed.lines().filter(|line| commits.contains(line)).map(str::to_owned).collect())
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
pub(crate) fn branch_ref(repository: &Repository, base: &str) -> Result<Option<String>, ToolError> {
    for full in [format!("refs/heads/{base}"), format!("refs/remotes/{base}")] {
        if repository.commit(&full)?.is_some() {
            return Ok(Some(full));
        }
    }
    Ok(None)
}

/// Returns the upstream of a branch. Commits that are merged on the server and fetched count as merged, even
/// while the local branch is behind.
pub(crate) fn upstream_of(repository: &Repository, branch: &str) -> Result<Option<String>, ToolError> {
    let upstream = repository.git().read_line(&["for-each-ref", "--format=%(upstream)", branch]).map(text)?;
    let exists = !upstream.is_empty() && repository.commit(&upstream)?.is_some();
    Ok(exists.then_some(upstream))
}

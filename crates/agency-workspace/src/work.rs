//! Work that would be lost with a workspace, in the words a user reads.
//!
//! Not the list of files: see `state`.

use std::fmt;

use crate::merged_refs::MergedRefs;
use crate::name::WorkspaceName;
use crate::repository::{Repository, WORKTREES};
use crate::state::GitWorkspace;
use crate::tool::ToolError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkAtRisk {
    uncommitted_files: usize,
    unmerged_commits: u64,
    workspace: WorkspaceName,
    description: String,
}

impl WorkAtRisk {
    /// None if there is nothing to lose.
    pub(crate) fn at_risk(
        repository: &Repository,
        name: &WorkspaceName,
        found: &GitWorkspace,
        merged_refs: &MergedRefs,
    ) -> Result<Option<Self>, ToolError> {
        let uncommitted_files = found.uncommitted(repository)?.len();
        let unmerged_commits = found.count_unmerged(repository, merged_refs)?;
        Ok(Self::of(name, uncommitted_files, unmerged_commits, merged_refs.description.clone()))
    }

    /// None if there is none.
    pub(crate) fn of(
        name: &WorkspaceName,
        uncommitted_files: usize,
        unmerged_commits: u64,
        description: String,
    ) -> Option<Self> {
        let work = Self { uncommitted_files, unmerged_commits, workspace: name.clone(), description };
        (uncommitted_files > 0 || unmerged_commits > 0).then_some(work)
    }

    /// Only what no commit holds.
    pub(crate) fn uncommitted_in(
        repository: &Repository,
        name: &WorkspaceName,
        found: &GitWorkspace,
    ) -> Result<Option<Self>, ToolError> {
        Ok(Self::of(name, found.uncommitted(repository)?.len(), 0, String::new()))
    }

    pub(crate) fn hint(&self) -> String {
        match (self.uncommitted_files, self.unmerged_commits) {
            (0, _) => "merge them, or pass --discard".into(),
            (_, 0) => "commit them, or pass --discard".into(),
            _ => "commit and merge them, or pass --discard".into(),
        }
    }
}

impl fmt::Display for WorkAtRisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.workspace;
        match self.uncommitted_files {
            0 => {}
            1 => write!(f, "1 file in {WORKTREES}/{name} is not committed")?,
            files => write!(f, "{files} files in {WORKTREES}/{name} are not committed")?,
        }
        if self.uncommitted_files > 0 && self.unmerged_commits > 0 {
            f.write_str(", and ")?;
        }
        match self.unmerged_commits {
            0 => Ok(()),
            1 => write!(f, "1 commit on {} is {}", name.branch(), self.description),
            commits => write!(f, "{commits} commits on {} are {}", name.branch(), self.description),
        }
    }
}

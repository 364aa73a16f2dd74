//! Work that would be lost with a workspace, in the words that a user reads.
//!
//! Not the list of files: see `state`.

use std::fmt;

use crate::name::{WORKTREES, WorkspaceName};

/// Work that would be lost with a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkAtRisk {
    uncommitted_files: usize,
    unmerged_commits: u64,
    workspace: WorkspaceName,
    description: String,
}

impl WorkAtRisk {
    /// Returns None if there is no work.
    pub(crate) fn of(
        name: &WorkspaceName,
        uncommitted_files: usize,
        unmerged_commits: u64,
        description: String,
    ) -> Option<Self> {
        let work = Self { uncommitted_files, unmerged_commits, workspace: name.clone(), description };
        (uncommitted_files > 0 || unmerged_commits > 0).then_some(work)
    }

    /// Whether files are not committed. If not, only commits are at risk.
    pub fn has_uncommitted_files(&self) -> bool {
        self.uncommitted_files > 0
    }

    /// `it` for one file or one commit, otherwise `them`.
    pub fn pronoun(&self) -> &'static str {
        if self.uncommitted_files as u64 + self.unmerged_commits == 1 { "it" } else { "them" }
    }

    pub(crate) fn hint(&self) -> String {
        let verbs = match (self.uncommitted_files, self.unmerged_commits) {
            (0, _) => "merge",
            (_, 0) => "commit",
            _ => "commit and merge",
        };
        format!("{verbs} {}, or pass --discard", self.pronoun())
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

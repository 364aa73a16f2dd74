//! A workspace, as `create` returns it.
//!
//! Not its state: see `presence`.

use std::path::PathBuf;

use crate::base::Base;
use crate::name::WorkspaceName;

/// A workspace that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// The name of the workspace.
    pub name: WorkspaceName,
    /// The agent's working directory.
    pub path: PathBuf,
    /// The branch. None for a plain directory.
    pub branch: Option<String>,
    /// The base. None for a plain directory, and when only the directory was created again.
    pub base: Option<Base>,
    /// Remarks for the user: a hook that failed, a directory without `.git`.
    pub warnings: Vec<String>,
    pub(crate) created: Created,
}

/// The parts that the creating call has made, and that [`crate::undo_create()`] may therefore remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Created {
    Nothing,
    Worktree,
    WorktreeAndBranch {
        tip: String,
    },
    /// A jj workspace with this working-copy commit.
    Jj {
        commit: String,
    },
}

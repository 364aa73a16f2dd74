//! Why a new workspace cannot be removed again.

use std::path::PathBuf;

use super::operation::OperationCause;
use crate::name::WorkspaceName;
use crate::tool::ToolError;
use crate::work::WorkAtRisk;

/// A new workspace could not be removed again.
#[derive(Debug, thiserror::Error)]
#[error("cannot remove the new workspace {workspace}")]
pub struct UndoError {
    /// The workspace.
    pub workspace: WorkspaceName,
    /// Why it failed.
    #[source]
    pub cause: UndoCause,
}

/// Why a new workspace stays.
#[derive(Debug, thiserror::Error)]
pub enum UndoCause {
    /// There is new work in it.
    #[error("{0}")]
    HasWork(WorkAtRisk),
    /// The directory is not a worktree of this repository.
    #[error("{} is not a worktree of this repository", path.display())]
    NotOurs {
        /// The path that the error is about.
        path: PathBuf,
    },
    /// The workspace could not be read.
    #[error(transparent)]
    Unreadable(Box<OperationCause>),
    /// git or jj failed.
    #[error(transparent)]
    Git(#[from] ToolError),
}

impl UndoError {
    /// Returns a way out for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        match &self.cause {
            UndoCause::HasWork(_) | UndoCause::NotOurs { .. } | UndoCause::Unreadable(_) => None,
            UndoCause::Git(err) => err.hint(),
        }
    }
}

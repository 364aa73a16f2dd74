//! Why a new workspace cannot be taken back.

use std::path::PathBuf;

use super::operation::OperationCause;
use crate::name::WorkspaceName;
use crate::tool::ToolError;
use crate::work::WorkAtRisk;

#[derive(Debug, thiserror::Error)]
#[error("workspace {workspace} stays")]
pub struct UndoError {
    pub workspace: WorkspaceName,
    #[source]
    pub cause: UndoCause,
}

#[derive(Debug, thiserror::Error)]
pub enum UndoCause {
    #[error("{0}")]
    HasWork(WorkAtRisk),
    #[error("{} is not a worktree of this repository", path.display())]
    NotOurs { path: PathBuf },
    #[error(transparent)]
    Unreadable(Box<OperationCause>),
    #[error(transparent)]
    Git(#[from] ToolError),
}

impl UndoError {
    pub fn hint(&self) -> Option<String> {
        match &self.cause {
            UndoCause::HasWork(_) | UndoCause::NotOurs { .. } | UndoCause::Unreadable(_) => None,
            UndoCause::Git(err) => err.hint(),
        }
    }
}

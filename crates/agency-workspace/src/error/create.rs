//! Why a workspace cannot be created.

use std::path::PathBuf;

use crate::name::WorkspaceName;
use crate::tool::ToolError;

#[derive(Debug, thiserror::Error)]
#[error("cannot make workspace {workspace}")]
pub struct CreateError {
    pub workspace: WorkspaceName,
    #[source]
    pub cause: CreateCause,
}

#[derive(Debug, thiserror::Error)]
pub enum CreateCause {
    #[error("the repository has no commit yet")]
    NoCommit,
    #[error("there is no branch, tag or commit `{base}`")]
    BaseMissing { base: String, near: Vec<String> },
    #[error("there is no bookmark, tag or commit `{base}`")]
    RevisionMissing { base: String, near: Vec<String> },
    #[error("the bookmark {bookmark} exists already")]
    BookmarkExists { bookmark: String },
    #[error("the bookmark {bookmark} does not exist")]
    BookmarkMissing { bookmark: String },
    #[error("the branch {branch} exists already")]
    BranchExists { branch: String },
    #[error("the branch {branch} does not exist")]
    BranchMissing { branch: String },
    #[error("the branch {branch} is checked out in {}", path.display())]
    BranchInUse { branch: String, path: PathBuf },
    #[error("git cannot have a branch {branch} beside the branch {blocking}")]
    BranchBlocked { branch: String, blocking: String },
    #[error("jj knows a workspace {name} already")]
    WorkspaceKnown { name: WorkspaceName },
    #[error("{} exists already", path.display())]
    PathTaken { path: PathBuf },
    #[error("{} is gone, but its worktree is locked: {reason}", path.display())]
    Locked { path: PathBuf, reason: String },
    #[error("{} is not a directory any more", path.display())]
    DirectoryGone { path: PathBuf },
    #[error(transparent)]
    Git(#[from] ToolError),
}

impl CreateError {
    pub fn hint(&self) -> Option<String> {
        self.cause.hint()
    }
}

impl CreateCause {
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            CreateCause::NoCommit => {
                Some("commit first, or pass --vcs none to work in the directory itself".into())
            }
            CreateCause::BaseMissing { near, .. } if near.is_empty() => {
                Some("pass an existing branch with --base-branch".into())
            }
            CreateCause::RevisionMissing { near, .. } if near.is_empty() => {
                Some("pass an existing bookmark or revision with --base-branch".into())
            }
            CreateCause::BaseMissing { near, .. } | CreateCause::RevisionMissing { near, .. } => {
                Some(format!("did you mean {}?", near.join(" or ")))
            }
            CreateCause::BranchExists { branch } => {
                Some(format!("look at it with `git log {branch}`, then rename or delete it"))
            }
            CreateCause::BookmarkExists { bookmark } => Some(format!(
                "look at it with `jj log -r {bookmark}`, then: jj bookmark rename {bookmark} another-name"
            )),
            CreateCause::BranchInUse { .. } => Some("switch to another branch there".into()),
            CreateCause::BranchBlocked { blocking, .. } => {
                Some(format!("rename it: git branch -m {blocking} another-name"))
            }
            CreateCause::WorkspaceKnown { name } => {
                Some(format!("look at it with `jj workspace list`, then: jj workspace forget {name}"))
            }
            CreateCause::PathTaken { .. } => Some("move it away; nothing in it was touched".into()),
            CreateCause::Locked { path, .. } => {
                Some(format!("bring the directory back, or run: git worktree unlock '{}'", path.display()))
            }
            CreateCause::BranchMissing { .. }
            | CreateCause::BookmarkMissing { .. }
            | CreateCause::DirectoryGone { .. } => None,
            CreateCause::Git(err) => err.hint(),
        }
    }
}

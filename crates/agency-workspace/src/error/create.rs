//! Why a workspace cannot be created.

use std::path::PathBuf;

use crate::name::WorkspaceName;
use crate::tool::ToolError;

/// A workspace could not be created.
#[derive(Debug, thiserror::Error)]
#[error("cannot create workspace {workspace}")]
pub struct CreateError {
    /// The workspace.
    pub workspace: WorkspaceName,
    /// Why it failed.
    #[source]
    pub cause: CreateCause,
}

/// Why a workspace could not be created.
#[derive(Debug, thiserror::Error)]
pub enum CreateCause {
    /// The repository is empty.
    #[error("the repository has no commit yet")]
    NoCommit,
    /// The base does not exist.
    #[error("there is no branch, tag or commit `{base}`")]
    BaseMissing {
        /// The base as the caller named it.
        base: String,
        /// Existing names that are similar.
        near: Vec<String>,
    },
    /// The base does not exist in jj.
    #[error("there is no bookmark, tag or commit `{base}`")]
    RevisionMissing {
        /// The base as the caller named it.
        base: String,
        /// Existing names that are similar.
        near: Vec<String>,
    },
    /// The bookmark of the workspace exists already.
    #[error("the bookmark {bookmark} exists already")]
    BookmarkExists {
        /// The bookmark.
        bookmark: String,
    },
    /// The bookmark of the workspace does not exist.
    #[error("the bookmark {bookmark} does not exist")]
    BookmarkMissing {
        /// The bookmark.
        bookmark: String,
    },
    /// The branch of the workspace exists already.
    #[error("the branch {branch} exists already")]
    BranchExists {
        /// The branch.
        branch: String,
    },
    /// The branch of the workspace does not exist.
    #[error("the branch {branch} does not exist")]
    BranchMissing {
        /// The branch.
        branch: String,
    },
    /// The branch is checked out elsewhere.
    #[error("the branch {branch} is checked out in {}", path.display())]
    BranchInUse {
        /// The branch.
        branch: String,
        /// The path that the error is about.
        path: PathBuf,
    },
    /// A branch has the name of the folder that our branches need.
    #[error("git cannot have both a branch {branch} and a branch {blocking}")]
    BranchBlocked {
        /// The branch.
        branch: String,
        /// The branch that blocks it.
        blocking: String,
    },
    /// jj knows a workspace of that name already.
    #[error("jj knows a workspace {name} already")]
    WorkspaceKnown {
        /// The name of the workspace.
        name: WorkspaceName,
    },
    /// Something exists at the path of the workspace.
    #[error("{} exists already", path.display())]
    PathTaken {
        /// The path that the error is about.
        path: PathBuf,
    },
    /// The user has locked the worktree.
    #[error("{} is gone, but its worktree is locked: {reason}", path.display())]
    Locked {
        /// The path that the error is about.
        path: PathBuf,
        /// The reason that the user gave.
        reason: String,
    },
    /// The plain directory does not exist any more.
    #[error("{} is not a directory any more", path.display())]
    DirectoryGone {
        /// The path that the error is about.
        path: PathBuf,
    },
    /// git or jj failed.
    #[error(transparent)]
    Git(#[from] ToolError),
}

impl CreateError {
    /// Returns a way out for the user, if there is one.
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
                Some(format!("restore the directory, or run: git worktree unlock '{}'", path.display()))
            }
            CreateCause::BranchMissing { .. }
            | CreateCause::BookmarkMissing { .. }
            | CreateCause::DirectoryGone { .. } => None,
            CreateCause::Git(err) => err.hint(),
        }
    }
}

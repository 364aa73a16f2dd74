//! Gives each task a working copy of its own, and takes it away without losing anything.
//!
//! Not the place where agents are started or tasks are known: a workspace is named, made,
//! looked at and removed here, by blocking calls that run the real `git`.
//!
//! Invariant: nothing is deleted that the same call did not make, unless the user said so; and
//! what they said is first kept under `refs/agency/trash/`.

mod base;
mod checkout;
mod create;
mod environment;
mod exclude;
mod git;
mod landing;
mod name;
mod project;
mod record;
mod remove;
mod repository;
mod state;
mod traces;
mod trash;
mod undo;
mod work;

pub use base::Base;
pub use checkout::{CheckoutError, dirty_checkout};
pub use create::{CreateCause, CreateError, Workspace, check, create, reattach};
pub use environment::Environment;
pub use exclude::{ExcludeError, exclude};
pub use git::GitError;
pub use name::{NameError, WorkspaceName};
pub use project::{OpenError, Project, Vcs, VcsError, workspace_path};
pub use remove::{RemoveCause, RemoveError, Removed, removable, remove};
pub use state::{Presence, StateError, WorkspaceState, presence, state};
pub use traces::{Traces, TracesError, erase, traces};
pub use undo::{UndoCause, UndoError, undo};
pub use work::Work;

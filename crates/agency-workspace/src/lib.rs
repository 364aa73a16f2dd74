//! Gives each task a working copy of its own, and takes it away without losing anything.
//!
//! Not the place where agents are started or tasks are known: a workspace (a git worktree, a jj workspace, or a
//! plain directory) is named, made, looked at, compared, synced, merged, removed and brought back here, by
//! blocking calls that run the real `git` and `jj`.
//!
//! Invariant: nothing is deleted that the same call did not make, unless the user said so; and what they said is
//! first kept under `refs/agency/trash/`. What is merged or synced is made aside first: it is there, or nothing
//! has changed.

mod aside;
mod base;
mod checkout;
mod collisions;
mod commit;
mod copy;
mod create;
mod diff;
mod environment;
mod exclude;
mod git;
mod glance;
mod include;
mod jj;
mod kept;
mod landing;
mod merge;
mod merging;
mod name;
mod operation;
mod pager;
mod project;
mod record;
mod remove;
mod repository;
mod restore;
mod scratch;
mod size;
mod snapshot;
mod state;
mod sync;
mod syncing;
mod tool;
mod traces;
mod trash;
mod turns;
mod undo;
mod versions;
mod work;

pub use base::Base;
pub use checkout::{CheckoutError, dirty_checkout};
pub use collisions::{Collision, CollisionsError, Radar, With};
pub use commit::commit_all;
pub use copy::{Copied, CopyError, copy_ignored};
pub use create::{CreateCause, CreateError, Workspace, check, create, reattach};
pub use diff::{Diff, FileDiff, FileStatus, diff, patch};
pub use environment::Environment;
pub use exclude::{ExcludeError, exclude};
pub use include::{INCLUDE_FILE, includes_files};
pub use jj::Unfinished;
pub use merge::{How, MergeRequest, Merged, may_merge_into, merge};
pub use merging::{Outcome, Recovered, is_merged, recover};
pub use name::{NameError, WorkspaceName};
pub use operation::{Operation, OperationCause, OperationError};
pub use pager::pager;
pub use project::{OpenError, Project, Vcs, VcsError, workspace_path};
pub use remove::{Removal, RemoveCause, RemoveError, Removed, removable, remove};
pub use restore::restore;
pub use size::trashed_bytes;
pub use snapshot::{Snapshot, diff_between, diff_since, restore_snapshot, snapshot, snapshots};
pub use state::{Presence, StateError, WorkspaceState, gone, presence, state};
pub use sync::{SyncHow, Synced, sync};
pub use syncing::settle_syncs;
pub use tool::ToolError;
pub use traces::{Traces, TracesError, erase, traces};
pub use trash::{TrashError, Trashed, Why, expire, trash};
pub use turns::{snapshot_before, snapshot_if_changed};
pub use undo::{UndoCause, UndoError, undo};
pub use work::Work;

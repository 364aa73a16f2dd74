//! Gives each task a working copy of its own, and takes it away without losing anything.
//!
//! Not the place where agents are started or tasks are known: a workspace (a git worktree, a jj workspace, or a
//! plain directory) is named, made, looked at, compared, synced, merged, removed and brought back here, by
//! blocking calls that run the real `git` and `jj`.
//!
//! Invariant: nothing is deleted that the same call did not make, unless the user said so; and what they said is
//! first kept under `refs/agency/trash/`. What is merged or synced is made aside first: it is there, or nothing
//! has changed.

mod base;
mod checkout;
mod commit;
mod conflicts;
mod copy;
mod create;
mod diff;
mod diff_pager;
mod environment;
mod exclude;
mod git;
mod include;
mod jj;
mod merge;
mod merged_refs;
mod name;
mod operation;
mod pending_merge;
mod pending_sync;
mod project;
mod remove;
mod repository;
mod restore;
mod saved_commit;
mod snapshot;
mod state;
mod sync;
mod temp_index;
mod tool;
mod traces;
mod trash;
mod trash_size;
mod trial_worktree;
mod turns;
mod undo_create;
mod versions;
mod work;
mod worktree;
mod worktree_status;

pub use base::Base;
pub use checkout::{CheckoutError, dirty_checkout};
pub use commit::commit_all;
pub use conflicts::{ConflictScanner, ConflictWith, ConflictsError, WorkspaceConflict};
pub use copy::{Copied, CopyError, copy_ignored};
pub use create::{CreateCause, CreateError, Workspace, check_create, create, reattach};
pub use diff::{Diff, FileDiff, FileStatus, diff, patch};
pub use diff_pager::diff_pager;
pub use environment::Environment;
pub use exclude::{ExcludeError, exclude_agency_dir};
pub use include::{INCLUDE_FILE, includes_files};
pub use jj::UnfinishedCommit;
pub use merge::{MergeMethod, MergeRequest, Merged, check_merge, merge};
pub use name::{NameError, WorkspaceName};
pub use operation::{Operation, OperationCause, OperationError};
pub use pending_merge::{MergeOutcome, RecoveredMerge, is_merged, recover_integrations};
pub use pending_sync::recover_syncs;
pub use project::{OpenError, Project, Vcs, VcsError, workspace_path};
pub use remove::{RemoveCause, RemoveError, RemoveOptions, Removed, check_remove, remove};
pub use restore::restore;
pub use snapshot::{Snapshot, diff_between, diff_since, restore_snapshot, snapshot, snapshots};
pub use state::{Presence, StateError, WorkspaceState, is_gone, presence, state};
pub use sync::{SyncMethod, Synced, sync};
pub use tool::ToolError;
pub use traces::{Traces, TracesError, erase_traces, find_traces};
pub use trash::{TrashEntry, TrashError, TrashReason, expire_trash, trash_entries};
pub use trash_size::trash_entry_bytes;
pub use turns::{snapshot_before_first_turn, snapshot_if_changed};
pub use undo_create::{UndoCause, UndoError, undo_create};
pub use work::WorkAtRisk;

//! Gives each task its own working copy, and removes it without losing anything.
//!
//! Knows nothing of agents and tasks. A workspace is a git worktree, a jj workspace or a plain directory.
//! This crate names, creates, inspects, compares, syncs, merges, removes and restores workspaces, by blocking
//! calls that run the real `git` and `jj`.
//!
//! Invariant: a call deletes only what the same call created, unless the user asked for more; and that is
//! first saved under `refs/agency/trash/`. A merge or a sync is prepared in a separate place first: either it
//! is complete, or nothing has changed.

#![warn(missing_docs)]

mod base;
mod branch_checkouts;
mod change_check;
mod changed_files;
mod checkout;
mod commit;
mod conflicts;
mod conversion;
mod copy;
mod create;
mod details;
mod diff;
mod diff_pager;
mod disk;
mod doomed_files;
mod environment;
mod error;
mod exclude;
mod git;
mod git_operation;
mod git_workspace;
mod hidden_ref;
mod ignored;
mod include;
mod index_entries;
mod integration;
mod integration_lock;
mod jj;
mod lost;
mod manifest;
mod merge;
mod merge_check;
mod merge_inspection;
mod merge_mark;
mod merge_target;
mod merge_tree;
mod merged_refs;
mod name;
mod operation_state;
mod pending_merge;
mod pending_restore;
mod pending_sync;
mod pending_unmerge;
mod presence;
mod project;
mod put_back;
mod recovery;
mod removal;
mod remove;
mod repair;
mod repository;
mod restore;
mod restore_details;
mod saved_commit;
mod scratch_objects;
mod snapshot;
mod stamp;
mod state;
mod sync;
mod temp_index;
mod tool;
mod traces;
mod trash;
mod trash_list;
mod trial_worktree;
mod turns;
mod uncommitted;
mod undo_create;
mod unfinished_commit;
mod unmerge;
mod user_checkout;
mod versions;
mod work;
mod workspace;
mod worktree;
mod worktree_status;

pub use base::Base;
pub use changed_files::{FileDiff, FileStatus};
pub use checkout::{CheckoutError, dirty_checkout};
pub use commit::commit_all;
pub use conflicts::{ConflictScanner, ConflictWith, ConflictsError, WorkspaceConflict};
pub use copy::{Copied, CopyError, copy_ignored};
pub use create::{check_create, create, reattach};
pub use diff::{Diff, diff, patch};
pub use diff_pager::diff_pager;
pub use environment::Environment;
pub use error::{
    CreateCause, CreateError, OpenError, Operation, OperationCause, OperationError, RemoveCause, RemoveError,
    UndoCause, UndoError,
};
pub use exclude::{ExcludeError, exclude_agency_dir, update_exclude_lines};
pub use include::{INCLUDE_FILE, includes_files};
pub use integration::{MergeInspection, MergeMethod, MergeRequest, Merged, SyncMethod, Synced, UndoneMerge};
pub use lost::Lost;
pub use merge::{check_merge, merge};
pub use merge_check::{MergeChecks, TakenBack, is_merged};
pub use merge_inspection::inspect_merge;
pub use name::{NameError, WorkspaceName};
pub use pending_merge::{MergeOutcome, RecoveredMerge};
pub use presence::{Presence, WorkspaceState};
pub use project::{Project, Vcs, VcsError, workspace_path};
pub use recovery::{recover_integrations, recover_syncs, remove_trial_worktrees};
pub use removal::{RemoveOptions, Removed};
pub use remove::{check_remove, remove};
pub use repair::repair_moved;
pub use restore::restore;
pub use snapshot::{Snapshot, diff_between, diff_since, restore_snapshot, snapshot, snapshots};
pub use state::{StateError, is_gone, presence, state};
pub use sync::sync;
pub use tool::ToolError;
pub use traces::{Traces, TracesError, erase_traces, find_traces};
pub use trash::{TrashEntry, TrashReason};
pub use trash_list::{TrashError, expire_trash, trash_entries, trash_entry_bytes};
pub use turns::{snapshot_before_first_turn, snapshot_if_changed};
pub use undo_create::undo_create;
pub use unfinished_commit::UnfinishedCommit;
pub use unmerge::{PastMerge, past_merges, undo_merge};
pub use user_checkout::base_where_user_is;
pub use work::WorkAtRisk;
pub use workspace::Workspace;

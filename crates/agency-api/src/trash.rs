//! The trash of a project, tasks that can be removed, and the snapshots of an agent's turns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::caller::TaskRef;
use crate::view;

/// The trash of a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trash {
    /// The entries, newest first.
    pub entries: Vec<TrashEntryView>,
}

/// One trash entry: removed work that `undo` can restore.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrashEntryView {
    /// The id of the entry, for `agency undo`.
    pub id: String,
    /// The id of the task.
    pub task: u64,
    /// The slug of the task.
    pub slug: String,
    /// The kind of removed work.
    pub what: TrashEntryKind,
    /// The command that removed it and why: `agency rm --discard`, `agency gc: merged into main`.
    pub why: String,
    /// When it was removed, in RFC 3339.
    pub time: String,
    /// The size of the files that `undo` would restore.
    pub bytes: u64,
    /// The hidden ref that keeps the files. Absent if there were none.
    pub reference: Option<String>,
    /// The name of the command that removed several tasks at once. `undo` restores all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
}

/// The kind of work in a trash entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrashEntryKind {
    /// A task: its file, its workspace, its branch and its runs.
    Task,
    /// A workspace without its task.
    Workspace,
    /// The files of a workspace before `undo` replaced them by earlier ones.
    Files,
    /// The commits of a workspace before they were rewritten.
    Commits,
    /// A single commit.
    Commit,
    /// A merge, which `undo` takes back as long as nothing was built on it.
    Merge,
}

impl TrashEntryKind {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            TrashEntryKind::Task => "task",
            TrashEntryKind::Workspace => "workspace",
            TrashEntryKind::Files => "files",
            TrashEntryKind::Commits => "commits",
            TrashEntryKind::Commit => "commit",
            TrashEntryKind::Merge => "merge",
        }
    }
}

/// Which trash entry to restore.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrashRestoreParams {
    /// The caller's directory. It selects the project.
    pub cwd: Bytes,
    /// The id of an entry or a unique prefix of it, or the id or slug of a removed task. Absent: the newest removal or merge.
    #[serde(default)]
    pub id: Option<String>,
}

/// A restored trash entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Restored {
    /// The entry.
    pub entry: TrashEntryView,
    /// The task of the entry, if it exists.
    pub task: Option<view::Task>,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

/// Which trash entries to delete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrashExpireParams {
    /// The caller's directory. It selects the project.
    pub cwd: Bytes,
    /// Delete entries that are older than this.
    pub older_than_seconds: u64,
    /// Only report what would be deleted.
    #[serde(default)]
    pub dry_run: bool,
}

/// The result of deleting trash entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Expired {
    /// The entries that are deleted, or would be.
    pub expired: Vec<TrashEntryView>,
    /// The entries that stay in the trash.
    pub stays: Vec<TrashEntryView>,
    /// Whether this only reports what would be deleted.
    pub dry_run: bool,
}

/// Every task of a project, and whether `agency gc` would remove it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FinishedTasks {
    /// The tasks.
    pub tasks: Vec<FinishedTask>,
}

/// Whether `agency gc` would remove a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FinishedTask {
    /// The id of the task.
    pub id: u64,
    /// The slug of the task.
    pub slug: String,
    /// Whether the task is finished and no work would be lost.
    pub goes: bool,
    /// Why `agency gc` would remove it, or why not.
    pub reason: String,
}

/// The snapshots of a workspace at the end of each turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Turns {
    /// The snapshots, oldest first.
    pub turns: Vec<Turn>,
}

/// The snapshot of one turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// The number of the snapshot, counted from 1. A turn that changed no file has no snapshot.
    pub number: u64,
    /// When the turn ended, in RFC 3339.
    pub time: Option<String>,
    /// `turn`, or for example `back to 2` if the user undid turns.
    pub label: String,
    /// The number of files that the turn changed.
    pub files: u64,
    /// The number of lines that the turn added.
    pub additions: u64,
    /// The number of lines that the turn removed.
    pub deletions: u64,
    /// The hidden ref of the snapshot, `refs/agency/turns/{task}/{number}`.
    pub reference: String,
}

/// The turn to restore.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnRestoreParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// Restore the files as they were after this turn, or before the first turn for 0. Absent: undo the last turn.
    #[serde(default)]
    pub turn: Option<u64>,
}

/// The result of restoring a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnRestored {
    /// The task.
    pub task: view::Task,
    /// The files are now as they were after this turn.
    pub turn: u64,
    /// The trash entry that has the replaced files.
    pub kept_as: String,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

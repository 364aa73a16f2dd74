//! What was removed and can be brought back, what is finished and may go, and the turns of an agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::method::TaskRef;
use crate::view;

/// What the trash of a project holds, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trash {
    pub entries: Vec<Discarded>,
}

/// One thing that can be brought back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Discarded {
    /// What it is called when it is wanted back.
    pub id: String,
    pub task: u64,
    pub slug: String,
    pub what: DiscardedKind,
    /// What was done to it: `agency rm --discard`, `agency gc: merged into main`.
    pub why: String,
    /// RFC 3339.
    pub time: String,
    /// Of the files that would come back.
    pub bytes: u64,
    /// The hidden ref that keeps them; absent where there were none.
    pub reference: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiscardedKind {
    /// A task with its file, its workspace, its branch and its runs.
    Task,
    /// A workspace whose task is not kept with it.
    Workspace,
    /// The files of a workspace, before older ones were put back over them.
    Files,
    /// The commits of a workspace, before they were written anew.
    Commits,
    /// A single commit.
    Commit,
}

impl DiscardedKind {
    pub fn as_str(self) -> &'static str {
        match self {
            DiscardedKind::Task => "task",
            DiscardedKind::Workspace => "workspace",
            DiscardedKind::Files => "files",
            DiscardedKind::Commits => "commits",
            DiscardedKind::Commit => "commit",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrashRestoreParams {
    pub cwd: Bytes,
    /// An entry's id or a unique beginning of it, or the id or slug of a removed task; absent for the newest removal.
    #[serde(default)]
    pub id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Restored {
    pub entry: Discarded,
    /// Its task, if there is one.
    pub task: Option<view::Task>,
    /// What the user should know of it.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrashExpireParams {
    pub cwd: Bytes,
    /// What is younger stays.
    pub older_than_seconds: u64,
    /// Only say what would go.
    #[serde(default)]
    pub dry_run: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Expired {
    /// What is gone for good, or would be.
    pub expired: Vec<Discarded>,
    /// What stays in the trash.
    pub stays: Vec<Discarded>,
    pub dry_run: bool,
}

/// Every task of a project: whether it is finished and may go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    pub tasks: Vec<SpentTask>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpentTask {
    pub id: u64,
    pub slug: String,
    /// It is finished, and nothing would be lost with it.
    pub goes: bool,
    /// Why it goes, or why it stays.
    pub reason: String,
}

/// Snapshots of a workspace at the ends of its agent's turns, the oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Turns {
    pub turns: Vec<Turn>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// Counts up from 1. Turns that changed nothing have none.
    pub number: u64,
    /// RFC 3339.
    pub time: Option<String>,
    /// What it was: `turn`, or `back to 2` where turns were taken back.
    pub label: String,
    /// How many files it changed.
    pub files: u64,
    pub additions: u64,
    pub deletions: u64,
    /// `refs/agency/turns/{task}/{number}`
    pub reference: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnRestoreParams {
    #[serde(flatten)]
    pub task: TaskRef,
    /// The turn after which the files are as wanted, 0 for before the first; absent: the last turn is taken back.
    #[serde(default)]
    pub turn: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnRestored {
    pub task: view::Task,
    /// The files are as they were after this turn.
    pub turn: u64,
    /// What was there, in the trash.
    pub kept_as: String,
    pub notes: Vec<String>,
}

//! What the daemon shows of its world: tasks, runs, orphans, itself.

use serde::{Deserialize, Serialize};

use crate::Bytes;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub id: u64,
    pub slug: String,
    /// The project's root directory.
    pub project: Bytes,
    pub status: TaskStatus,
    /// Of the live run, while there is one.
    pub state: Option<AgentState>,
    /// What the rail shows.
    pub workspace_status: WorkspaceStatus,
    pub agent: String,
    pub agent_name: String,
    pub driver: String,
    pub labels: Vec<String>,
    pub base_branch: Option<String>,
    pub branch: Option<String>,
    /// The workspace, once it has been made.
    pub worktree: Option<Bytes>,
    pub file: Bytes,
    /// RFC 3339.
    pub created_at: Option<String>,
    pub age_seconds: Option<u64>,
    pub last_exit: Option<String>,
    pub run: Option<String>,
    pub viewers: u64,
    /// The run lives on another host that shares this home.
    pub elsewhere: Option<String>,
    /// Why the task file cannot be used, if it cannot.
    pub broken: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    Draft,
    Running,
    Idle,
    Stopped,
    Completed,
    Failed,
    Reviewed,
    Merged,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum AgentState {
    Starting,
    Running,
    NeedsInput {
        for_seconds: u64,
    },
    Stale {
        for_seconds: u64,
    },
    /// `0`, `-15`, or `unknown`.
    Exited {
        code: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceStatus {
    Idle,
    Running,
    NeedsInput,
    Stale,
    Completed,
    Errored,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Orphan {
    pub run: String,
    pub kind: OrphanKind,
    /// The task it was started for, as far as anybody remembers.
    pub project: Option<Bytes>,
    pub task: Option<u64>,
    pub slug: Option<String>,
    pub agent: Option<String>,
    pub pid: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrphanKind {
    /// A keeper that no task owns.
    Keeper,
    /// Only the agent's process is left; its keeper is gone.
    Process,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Daemon {
    pub pid: i32,
    pub version: String,
    pub epoch: u64,
    pub uptime_seconds: u64,
    pub socket: Bytes,
    pub state_dir: Bytes,
    pub log: Bytes,
    pub projects: u64,
    pub live_runs: u64,
    pub orphans: u64,
}

/// What happened, in the one shape every subscriber sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub seq: u64,
    /// RFC 3339.
    pub time: String,
    pub project: Option<Bytes>,
    pub task: Option<u64>,
    pub agent: Option<String>,
    pub run: Option<String>,
    #[serde(rename = "type")]
    pub kind: String,
    pub data: serde_json::Value,
}

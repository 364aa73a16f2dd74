//! What the daemon shows of its world: tasks, runs, orphans, itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    pub id: u64,
    pub slug: String,
    /// The project's root directory.
    pub project: Bytes,
    pub status: TaskStatus,
    /// Of the live run, while there is one.
    pub state: Option<AgentState>,
    /// What that state rests on.
    #[serde(default)]
    pub evidence: Option<Evidence>,
    /// Somebody has looked at it since it began to wait.
    #[serde(default)]
    pub seen: bool,
    /// Texts that wait for its prompt.
    #[serde(default)]
    pub queued: u64,
    /// What the rail shows.
    pub workspace_status: WorkspaceStatus,
    pub agent: String,
    pub agent_name: String,
    pub driver: String,
    pub labels: Vec<String>,
    /// The task whose agent had it made.
    #[serde(default)]
    pub parent: Option<u64>,
    pub base_branch: Option<String>,
    pub branch: Option<String>,
    /// The workspace, once it has been made.
    pub worktree: Option<Bytes>,
    /// The first of the workspace's own ports, `$AGENCY_PORT`.
    #[serde(default)]
    pub port: Option<u16>,
    /// How many there are.
    #[serde(default)]
    pub ports: u16,
    /// How far the workspace is set up; absent where nothing is to be done.
    #[serde(default)]
    pub setup: Option<SetupState>,
    /// With what its work would collide, as far as anybody has looked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Conflict>,
    pub file: Bytes,
    /// RFC 3339.
    pub created_at: Option<String>,
    pub age_seconds: Option<u64>,
    pub last_exit: Option<String>,
    pub run: Option<String>,
    pub viewers: u64,
    /// The run lives on another host that shares this home.
    pub elsewhere: Option<String>,
    /// When its workspace's directory was found gone under its agent, until it is made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vanished: Option<String>,
    /// When a merge of its work was found to be cut off and taken back, until it is merged or started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_cut_off: Option<String>,
    /// Why the task file cannot be used, if it cannot.
    pub broken: Option<String>,
}

/// Work that git cannot merge by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    /// The base, or another task as `id-slug`.
    pub with: String,
    /// The other task; absent for the base.
    pub task: Option<u64>,
    pub files: Vec<Bytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// How far a workspace is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SetupState {
    /// The next start does it.
    Pending,
    Running,
    /// The next start does it again.
    Failed,
    Skipped,
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum AgentState {
    Starting {
        #[serde(default)]
        for_seconds: u64,
    },
    Running {
        #[serde(default)]
        for_seconds: u64,
    },
    NeedsInput {
        for_seconds: u64,
        #[serde(default)]
        why: Why,
    },
    Stale {
        for_seconds: u64,
        #[serde(default)]
        why: Why,
    },
    /// `0`, `-15`, or `unknown`.
    Exited { code: String },
}

/// What an agent that waits wants of the user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    Prompt,
    Permission,
    Question,
    Finished,
    Error,
    #[default]
    Unknown,
}

impl Why {
    pub fn as_str(self) -> &'static str {
        match self {
            Why::Prompt => "prompt",
            Why::Permission => "permission",
            Why::Question => "question",
            Why::Finished => "finished",
            Why::Error => "error",
            Why::Unknown => "unknown",
        }
    }
}

/// What a state rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Which witness: `protocol`, `status`, `hook`, `title`, `shell`, `kernel`, `screen`, `progress`, `notice`,
    /// `editor`, `animation`, `child`, `blank`, `silence`.
    pub source: String,
    pub rule: String,
    /// `certain`, `high`, `good`, `fair`, `guess`.
    pub confidence: String,
    /// What it waits for, in the agent's own words.
    pub detail: Option<String>,
}

/// One change of state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateChange {
    /// RFC 3339; in a recording, absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Seconds from the beginning of the run.
    pub t: f64,
    pub state: StateName,
    pub why: Option<Why>,
    #[serde(flatten)]
    pub evidence: Evidence,
    /// Bytes of output before it.
    pub offset: u64,
    /// The exit code, once it has exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Why an agent is said to be in its state, now or at a time in the past.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    pub task: Task,
    /// The time that was asked for, RFC 3339; absent for now.
    pub at: Option<String>,
    pub run: Option<String>,
    /// The state then, and since when.
    pub state: Option<StateChange>,
    /// All that is claimed now, most trusted first.
    pub witnesses: Vec<Witness>,
    /// What would make it another state.
    pub outlook: Vec<String>,
    /// The changes before it, oldest first.
    pub before: Vec<StateChange>,
}

/// One who says what the agent does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Witness {
    pub source: String,
    pub rule: String,
    /// The one that counts.
    pub decides: bool,
    /// For what the agent waits; absent if it is said to work.
    pub why: Option<Why>,
    pub detail: Option<String>,
    pub for_seconds: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    Starting,
    Running,
    NeedsInput,
    Stale,
    Exited,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceStatus {
    Idle,
    Running,
    NeedsInput,
    Stale,
    Completed,
    Errored,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrphanKind {
    /// A keeper that no task owns.
    Keeper,
    /// Only the agent's process is left; its keeper is gone.
    Process,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    pub name: String,
    pub display_name: String,
    /// What a task gets that names no agent.
    pub default: bool,
    /// The driver it is started with unless told otherwise.
    pub driver: String,
    pub commands: Vec<AgentCommand>,
    /// The program of its own driver was found.
    pub installed: bool,
    /// `built in`, or the file and line.
    pub origin: String,
    /// A CLI we know: asking it for its version does nothing else.
    pub well_known: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentCommand {
    pub driver: String,
    pub command: Vec<String>,
    /// Where the caller's `PATH` leads.
    pub program: Option<Bytes>,
}

/// A run of another host that shares the home.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunElsewhere {
    /// The name of that host.
    pub host: String,
    /// There for as long as the run is.
    pub pid_file: Bytes,
}

/// What Agency has made in one project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectTraces {
    pub root: Bytes,
    /// Why it cannot be looked at, if it cannot.
    pub unreachable: Option<String>,
    /// Its `.agency`, if it is there.
    pub directory: Option<Bytes>,
    pub tasks: Vec<u64>,
    pub workspaces: Vec<WorkspaceTraces>,
    /// Hidden refs that keep what was removed.
    pub kept: Vec<String>,
    /// The exclude file that has our line.
    pub exclude: Option<Bytes>,
    pub live_runs: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceTraces {
    pub name: String,
    pub directory: Option<Bytes>,
    pub branch: Option<String>,
    /// What would be lost with it.
    pub at_risk: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    #[serde(default)]
    pub open_files: Option<Figure>,
    /// All that bounds how many agents can be started, as far as it can be counted.
    #[serde(default)]
    pub room: Vec<Bounded>,
}

/// What a start takes some of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bounded {
    pub what: String,
    #[serde(flatten)]
    pub figure: Figure,
    /// A start is refused when less than this is left.
    pub needed: u64,
    /// How there could be more.
    pub hint: String,
}

/// How much of something is taken, and how much there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    pub used: u64,
    pub limit: u64,
}

impl Figure {
    /// Whether less than this is left.
    pub fn lacks(&self, needed: u64) -> bool {
        self.limit.saturating_sub(self.used) < needed
    }
}

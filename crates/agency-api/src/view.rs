//! Views: tasks, states, agents, orphans and the daemon, as callers see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// The id of the task.
    pub id: u64,
    /// The slug of the task, for example `fix-login`.
    pub slug: String,
    /// The first line of the task's text, cut after 200 characters. Absent if there is no text.
    #[serde(default)]
    pub title: Option<String>,
    /// The root directory of the project.
    pub project: Bytes,
    /// How far the task is.
    pub status: TaskStatus,
    /// The wish or the work of the task, in words for people: `asks permission`, `asks`, `done`, `at its prompt`, `waits`, `working`,
    /// `failed`, `stopped` and others.
    #[serde(default)]
    pub headline: String,
    /// How soon the task needs the user. Lists begin with the most urgent tasks.
    #[serde(default)]
    pub urgency: Urgency,
    /// The reason why the agent waits, however long it has waited. Absent if it does not wait.
    #[serde(default)]
    pub waiting_for: Option<Why>,
    /// Whether the agent waits or ended by itself, and no user has looked at it since.
    #[serde(default)]
    pub unread: bool,
    /// The state of the live agent. Absent if there is none.
    pub state: Option<AgentState>,
    /// The evidence behind the state.
    #[serde(default)]
    pub evidence: Option<Evidence>,
    /// The state of the process of a stream-json task. Absent for other drivers.
    #[serde(default)]
    pub stream_state: Option<StreamState>,
    /// Why the user should look at the mode of the live agent, for example because it may approve its own actions. Absent if
    /// there is no reason.
    #[serde(default)]
    pub mode_warning: Option<String>,
    /// Whether a user has looked at the agent since it began to wait.
    #[serde(default)]
    pub seen: bool,
    /// When a user last looked at the task, in RFC 3339 and to the minute.
    #[serde(default)]
    pub looked_at: Option<String>,
    /// Whether the user wants the task at the top of lists.
    #[serde(default)]
    pub pinned: bool,
    /// Until when the user has put the task off, in RFC 3339. Absent once that time has come, or the task needs the user for
    /// something new.
    #[serde(default)]
    pub snoozed_until: Option<String>,
    /// The number of queued messages.
    #[serde(default)]
    pub queued: u64,
    /// The status that the rail shows.
    pub workspace_status: WorkspaceStatus,
    /// The name of the agent in the configuration.
    pub agent: String,
    /// The name of the agent for people.
    pub agent_name: String,
    /// The driver: `terminal`, `stream-json` or `acp`.
    pub driver: String,
    /// The labels in the task file.
    pub labels: Vec<String>,
    /// The task whose agent created this task.
    #[serde(default)]
    pub parent: Option<u64>,
    /// The branch that the workspace started from.
    pub base_branch: Option<String>,
    /// The branch of the workspace.
    pub branch: Option<String>,
    /// The directory of the workspace. Absent until Agency has made it.
    pub worktree: Option<Bytes>,
    /// The first port that is reserved for the workspace, `$AGENCY_PORT`.
    #[serde(default)]
    pub port: Option<u16>,
    /// The number of reserved ports.
    #[serde(default)]
    pub ports: u16,
    /// How far the setup of the workspace is. Absent if the project has no setup.
    #[serde(default)]
    pub setup: Option<SetupState>,
    /// The conflicts of the task's work that the daemon has found.
    #[serde(default)]
    pub conflicts: Vec<Conflict>,
    /// The path of the task file.
    pub file: Bytes,
    /// When the task was created, in RFC 3339.
    pub created_at: Option<String>,
    /// How long ago the task was created.
    pub age_seconds: Option<u64>,
    /// The exit code of the last run.
    pub last_exit: Option<String>,
    /// Whether a user or a program asked for the end of the last run. Such an end is no error.
    #[serde(default)]
    pub asked_to_stop: bool,
    /// How long ago the last run ended.
    #[serde(default)]
    pub ended_seconds: Option<u64>,
    /// The id of the live run, or of the last one.
    pub run: Option<String>,
    /// The number of attached clients.
    pub viewers: u64,
    /// The name of the other host that the run lives on, if it shares this home directory.
    pub elsewhere: Option<String>,
    /// When the daemon found that the directory of the workspace had disappeared while the agent ran. Absent once it
    /// exists again.
    #[serde(default)]
    pub vanished: Option<String>,
    /// When the daemon undid a merge that a crash had interrupted. Absent once the task is merged or started again.
    #[serde(default)]
    pub merge_cut_off: Option<String>,
    /// Why Agency cannot read the task file. Absent if it can.
    pub broken: Option<String>,
}

/// How soon a task needs the user, the most urgent first.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    /// The task cannot go on without the user: a permission, a question, an error.
    Blocked,
    /// The agent has finished, and no user has looked at it since.
    Unread,
    /// The agent waits for a message, and no user has looked at it since.
    Waiting,
    /// The agent works.
    Working,
    /// The agent waits, and a user has looked at it.
    Read,
    /// No agent runs.
    #[default]
    Resting,
    /// The work is merged.
    Over,
}

impl Urgency {
    /// Whether a user has to look at the task.
    pub fn needs_user(self) -> bool {
        self <= Urgency::Waiting
    }
}

/// Work that git cannot merge by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    /// The base, or the name of another task (`1-fix-login`).
    pub with: String,
    /// The id of the other task. Absent for the base.
    pub task: Option<u64>,
    /// The files that both change.
    pub files: Vec<Bytes>,
}

/// How far a task is. The task file has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Written, and never started.
    Draft,
    /// The agent runs.
    Running,
    /// The agent runs and waits for the user.
    Idle,
    /// The user stopped the agent.
    Stopped,
    /// The agent ended with success, or the user marked the task as completed.
    Completed,
    /// The agent ended with an error.
    Failed,
    /// The user has reviewed the work.
    Reviewed,
    /// The work is merged.
    Merged,
}

/// The state of the process of a task that speaks stream-json.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamState {
    /// No process was started.
    Idle,
    /// The process lives.
    Running,
    /// The process crashed, and a restart is due.
    Error,
    /// The process ended: by request, by itself, or after too many crashes.
    Stopped,
}

/// How far the setup of a workspace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SetupState {
    /// The next start runs it.
    Pending,
    /// It is running.
    Running,
    /// It failed. The next start runs it again.
    Failed,
    /// The user skipped it.
    Skipped,
    /// It succeeded.
    Done,
}

/// The state of a live agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum AgentState {
    /// The agent has started and shown nothing yet.
    Starting {
        /// For how long.
        #[serde(default)]
        for_seconds: u64,
    },
    /// The agent works.
    Running {
        /// For how long.
        #[serde(default)]
        for_seconds: u64,
    },
    /// The agent waits for the user.
    NeedsInput {
        /// For how long.
        for_seconds: u64,
        /// For what.
        #[serde(default)]
        why: Why,
    },
    /// The agent has waited for the user for a long time.
    Stale {
        /// For how long.
        for_seconds: u64,
        /// For what.
        #[serde(default)]
        why: Why,
    },
    /// The agent has ended.
    Exited {
        /// The exit code: `0`, `-15` for a signal, or `unknown`.
        code: String,
    },
}

/// Why an agent needs the user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// A first message.
    Prompt,
    /// A permission.
    Permission,
    /// An answer to a question.
    Question,
    /// The next message: it has finished its turn.
    Finished,
    /// Help with an error.
    Error,
    /// Agency cannot tell.
    #[default]
    Unknown,
}

impl Why {
    /// The word in JSON.
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

/// The evidence behind a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The kind of evidence: `protocol`, `status`, `hook`, `user`, `title`, `shell`, `kernel`, `screen`, `sign`, `progress`, `notice`,
    /// `editor`, `animation`, `child`, `blank`, `silence`.
    pub source: String,
    /// The rule that derived the state.
    pub rule: String,
    /// How reliable it is: `certain`, `high`, `good`, `fair` or `guess`.
    pub confidence: String,
    /// The agent's own words about what it waits for.
    pub detail: Option<String>,
}

/// One change of state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateChange {
    /// When it changed, in RFC 3339. Absent for a recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Seconds since the beginning of the run.
    pub t: f64,
    /// The new state.
    pub state: StateName,
    /// The reason why the agent needs the user, if it waits.
    pub why: Option<Why>,
    /// The evidence behind the state.
    #[serde(flatten)]
    pub evidence: Evidence,
    /// Bytes of output before the change.
    pub offset: u64,
    /// The exit code, if the agent has exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Why Agency says that an agent is in its state, now or at a time in the past.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The task.
    pub task: Task,
    /// The time in the call, in RFC 3339. Absent for now.
    pub at: Option<String>,
    /// The id of the run.
    pub run: Option<String>,
    /// The state at that time, and since when.
    pub state: Option<StateChange>,
    /// All evidence of now, the most reliable first.
    pub witnesses: Vec<Witness>,
    /// The events that would change the state, one line each.
    pub outlook: Vec<String>,
    /// A text that an interrupted send typed into the terminal and did not enter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unentered: Option<String>,
    /// The program whose signs of work and corrections count. Absent for an agent without a terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The signs of work of that program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signs: Vec<SignOfWork>,
    /// The user's corrections for that program, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corrections: Vec<Correction>,
    /// The changes before, oldest first.
    pub before: Vec<StateChange>,
}

/// Words or a spinner that a program shows while it works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SignOfWork {
    /// The words, in lowercase, or the kind of spinner.
    pub text: String,
    /// Whether Agency knows it from an earlier run of the program.
    pub remembered: bool,
}

/// The meaning of a state or a claim, without the reason: the agent works, or it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Belief {
    /// The agent works: it is starting or running.
    Working,
    /// The agent waits for the user: it needs input or is stale.
    Waiting,
}

impl Belief {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Belief::Working => "working",
            Belief::Waiting => "waiting",
        }
    }
}

/// Evidence that does not decide in a program, because the user said that it was wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Correction {
    /// The kind of evidence, as in `Evidence`.
    pub source: String,
    /// The rule that derived it.
    pub rule: String,
    /// The wrong belief.
    pub wrong: Belief,
    /// Whether only one question of a dialog is meant, and not every claim of the rule.
    pub one_question: bool,
    /// When the user said so, in RFC 3339.
    pub time: String,
}

/// The user's corrections for one program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Corrections {
    /// The name of the program.
    pub program: String,
    /// The corrections, oldest first.
    pub corrections: Vec<Correction>,
}

/// The result of the user's word that a state is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contradiction {
    /// The program for which the corrections count.
    pub program: String,
    /// The corrections that were made. Empty if the user took an earlier word back.
    pub corrections: Vec<Correction>,
    /// The report file.
    pub report: Bytes,
}

/// One piece of evidence about what the agent does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Witness {
    /// The kind of evidence, as in `Evidence`.
    pub source: String,
    /// The rule that derived it.
    pub rule: String,
    /// Whether the state follows this evidence.
    pub decides: bool,
    /// The reason why the agent needs the user. Absent if it works.
    pub why: Option<Why>,
    /// The agent's own words about what it waits for.
    pub detail: Option<String>,
    /// How old the evidence is.
    pub for_seconds: u64,
}

/// The name of an agent's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    /// The agent has started and shown nothing yet.
    Starting,
    /// The agent works.
    Running,
    /// The agent waits for the user.
    NeedsInput,
    /// The agent has waited for the user for a long time.
    Stale,
    /// The agent has ended.
    Exited,
}

impl StateName {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            StateName::Starting => "starting",
            StateName::Running => "running",
            StateName::NeedsInput => "needs_input",
            StateName::Stale => "stale",
            StateName::Exited => "exited",
        }
    }
}

/// The status of a workspace in the rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceStatus {
    /// No agent runs.
    Idle,
    /// The agent works.
    Running,
    /// The agent waits for the user.
    NeedsInput,
    /// The agent has waited for the user for a long time.
    Stale,
    /// The last run ended with 0.
    Completed,
    /// The last run ended otherwise, without a request.
    Errored,
}

/// A live keeper, or a process, that belongs to no task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Orphan {
    /// The id of the run.
    pub run: String,
    /// Whether it is a keeper or a process.
    pub kind: OrphanKind,
    /// The root directory of the project that it was started for, if known.
    pub project: Option<Bytes>,
    /// The id of the task that it was started for, if known.
    pub task: Option<u64>,
    /// The slug of that task.
    pub slug: Option<String>,
    /// The name of the agent; absent for a terminal beside an agent.
    pub agent: Option<String>,
    /// The name of the terminal, if it is a terminal beside an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// The process id.
    pub pid: Option<i32>,
}

/// The kind of an orphan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrphanKind {
    /// A keeper that no task owns.
    Keeper,
    /// The process of an agent whose keeper is gone.
    Process,
}

/// An agent in the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    /// The name of the agent in the configuration.
    pub name: String,
    /// The name of the agent for people.
    pub display_name: String,
    /// Whether a task without an agent gets this one.
    pub default: bool,
    /// The driver that Agency uses if the task names none.
    pub driver: String,
    /// The command for each driver.
    pub commands: Vec<AgentCommand>,
    /// Whether the program for that driver was found.
    pub installed: bool,
    /// `built in`, or the file and line of its configuration.
    pub origin: String,
    /// Whether Agency knows the program, so that it can ask for its version without side effects.
    pub well_known: bool,
}

/// The command of an agent for one driver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentCommand {
    /// The driver.
    pub driver: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The path of the program on the caller's `PATH`. Absent if it was not found.
    pub program: Option<Bytes>,
}

/// A run on another host that shares this home directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunElsewhere {
    /// The name of that host.
    pub host: String,
    /// The pid file of the run. It exists as long as the run.
    pub pid_file: Bytes,
}

/// The files and refs that Agency has made in one project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectTraces {
    /// The root directory of the project.
    pub root: Bytes,
    /// Why Agency cannot read the project. Absent if it can.
    pub unreachable: Option<String>,
    /// The `.agency` directory, if it exists.
    pub directory: Option<Bytes>,
    /// The ids of the tasks.
    pub tasks: Vec<u64>,
    /// The workspaces.
    pub workspaces: Vec<WorkspaceTraces>,
    /// The hidden refs that keep removed work.
    pub kept: Vec<String>,
    /// The exclude file of git that has lines of Agency.
    pub exclude: Option<Bytes>,
    /// The user's configuration of the project, which `project.erase` leaves there.
    #[serde(default)]
    pub stays: Option<Bytes>,
    /// The number of live runs.
    pub live_runs: u64,
    /// The number of open terminals beside agents.
    #[serde(default)]
    pub open_shells: u64,
}

/// A workspace that Agency has made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceTraces {
    /// The name of the task.
    pub name: String,
    /// The directory, if it exists.
    pub directory: Option<Bytes>,
    /// The branch, if it exists.
    pub branch: Option<String>,
    /// The work that would be lost with the workspace. Absent if there is none.
    pub at_risk: Option<String>,
}

/// The daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Daemon {
    /// The process id.
    pub pid: i32,
    /// The version of the program.
    pub version: String,
    /// The epoch. Each daemon has a higher one than the daemon before.
    pub epoch: u64,
    /// How long the daemon has been running.
    pub uptime_seconds: u64,
    /// The path of the socket.
    pub socket: Bytes,
    /// The path of the state directory.
    pub state_dir: Bytes,
    /// The path of the log.
    pub log: Bytes,
    /// The number of known projects.
    pub projects: u64,
    /// The number of live runs.
    pub live_runs: u64,
    /// How many terminals beside agents are open.
    #[serde(default)]
    pub open_shells: u64,
    /// The number of orphans.
    pub orphans: u64,
    /// The open files of the daemon, and their limit.
    #[serde(default)]
    pub open_files: Option<ResourceUse>,
    /// The resources that limit how many agents can start, if Agency can count them.
    #[serde(default)]
    pub room: Vec<LimitedResource>,
    /// Files of the state directory that the daemon found spoiled, and what became of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// A resource that every start of an agent uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitedResource {
    /// The name of the resource.
    pub what: String,
    /// How much is used, and the limit.
    #[serde(flatten)]
    pub figure: ResourceUse,
    /// The daemon refuses a start if less than this is free.
    pub needed: u64,
    /// How to raise the limit.
    pub hint: String,
}

/// How much of a resource is used, and its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceUse {
    /// How much is used.
    pub used: u64,
    /// How much there is.
    pub limit: u64,
}

impl ResourceUse {
    /// Whether less than `needed` is free.
    pub fn lacks(&self, needed: u64) -> bool {
        self.limit.saturating_sub(self.used) < needed
    }
}

//! The methods of the one API: name, parameters, answer.
//!
//! Everything a person can do goes through these; the command line has no other way in.

use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::chat;
use crate::config::{self, Overrides};
use crate::connection;
use crate::keeper::{Ended, Size};
use crate::mcp;
use crate::notify;
use crate::pty::AttachMode;
use crate::search;
use crate::trash;
use crate::view;
use crate::work;

pub trait Method {
    const NAME: &'static str;
    type Params: Serialize + DeserializeOwned + JsonSchema;
    type Answer: Serialize + DeserializeOwned + JsonSchema;
}

macro_rules! methods {
    ($($(#[doc = $doc:literal])* $name:ident = $wire:literal : $params:ty => $answer:ty;)*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Debug, Clone, Copy)]
            pub struct $name;

            impl Method for $name {
                const NAME: &'static str = $wire;
                type Params = $params;
                type Answer = $answer;
            }
        )*

        /// Every method's wire name.
        pub const NAMES: &[&str] = &[$($wire),*];

        /// Every method as the reference shows it; the types go to the generator.
        pub fn described(types: &mut SchemaGenerator) -> Vec<Described> {
            vec![$(Described {
                name: $wire,
                about: concat!($($doc,)* ""),
                params: types.subschema_for::<$params>().to_value(),
                answer: types.subschema_for::<$answer>().to_value(),
            }),*]
        }
    };
}

/// A method, for readers.
#[derive(Debug, Clone, PartialEq)]
pub struct Described {
    pub name: &'static str,
    pub about: &'static str,
    /// JSON Schema, mostly a reference to a type.
    pub params: serde_json::Value,
    pub answer: serde_json::Value,
}

methods! {
    /// The daemon itself: its process, its version, where its files are.
    DaemonStatus = "daemon.status": Nothing => view::Daemon;
    /// Answers, then leaves. With `agents`, once every agent has ended.
    DaemonStop = "daemon.stop": DaemonStopParams => Nothing;
    /// Makes a task and starts its agent, unless it is a draft.
    TaskNew = "task.new": TaskNewParams => Started;
    /// Starts a task's agent, or wakes an idle one. A task never has two.
    TaskStart = "task.start": TaskStartParams => Started;
    /// Ends a task's agent, waits until it is gone, starts it again.
    TaskRestart = "task.restart": TaskStartParams => Started;
    /// Sets a task's workspace up again: copies files, runs the commands of `workspace.setup`; starts no agent.
    TaskSetup = "task.setup": TaskSetupParams => Started;
    /// Ends a task's agent and everything it started; a setup that runs too.
    TaskStop = "task.stop": TaskRef => Stopped;
    /// Sets a running task aside; its agent lives on.
    TaskIdle = "task.idle": TaskRef => view::Task;
    /// Says that a task's work is done.
    TaskComplete = "task.complete": TaskRef => view::Task;
    /// Says that a task's work has failed.
    TaskFail = "task.fail": TaskRef => view::Task;
    /// What a task's workspace changes, against its base or in one turn.
    TaskDiff = "task.diff": work::DiffParams => work::Diff;
    /// Says that a task's work has been looked at and is good.
    TaskReview = "task.review": TaskRef => view::Task;
    /// Merges the work of a completed or reviewed task, all of it or nothing; the task becomes merged.
    TaskMerge = "task.merge": work::MergeParams => work::Merged;
    /// Brings the new commits of a task's base into its workspace, all of them or nothing.
    TaskSync = "task.sync": work::SyncParams => work::Synced;
    /// Which workspaces of a project would collide with their base or with each other, looked at now.
    ConflictList = "conflict.list": ProjectRef => work::Conflicts;
    /// Removes a task and its workspace. Refuses to lose work, unless told to.
    TaskRemove = "task.remove": TaskRemoveParams => Removed;
    /// Which tasks are finished and may go without a loss, and why the others stay. Removes nothing.
    TaskSpent = "task.spent": ProjectRef => trash::Spent;
    /// What was removed or replaced in a project and can be brought back.
    TrashList = "trash.list": ProjectRef => trash::Trash;
    /// Brings back what was removed or replaced: a task with workspace, branch and runs, or earlier files.
    TrashRestore = "trash.restore": trash::TrashRestoreParams => trash::Restored;
    /// Deletes for good what has been in the trash for so long. Nothing else ever does.
    TrashExpire = "trash.expire": trash::TrashExpireParams => trash::Expired;
    /// The ends of an agent's turns at which its workspace changed.
    TurnList = "turn.list": TaskRef => trash::Turns;
    /// Puts the files back as they were after an earlier turn. Refuses while the agent works.
    TurnRestore = "turn.restore": trash::TurnRestoreParams => trash::TurnRestored;
    /// The tasks of a project, or of all.
    TaskList = "task.list": TaskListParams => TaskListing;
    /// One task.
    TaskGet = "task.get": TaskRef => view::Task;
    /// Why a task's agent is said to be in its state, now or at a time in the past.
    TaskExplain = "task.explain": TaskExplainParams => view::Explanation;
    /// Sends a text to a task's agent: typed as it can take it, entered at its prompt; or holds it until it is there.
    TaskSend = "task.send": TaskSendParams => Receipt;
    /// Texts that wait for their agents' prompts.
    QueueList = "queue.list": QueueListParams => Queue;
    /// Takes texts back before they are sent; answered with those.
    QueueDrop = "queue.drop": QueueDropParams => Queue;
    /// The conversation with an agent that is driven by a protocol: its end, a page of it, or what is new.
    ChatRead = "chat.read": chat::ReadParams => chat::Chat;
    /// Words in conversations and in the texts of tasks, the newest first.
    ChatSearch = "chat.search": search::SearchParams => search::Found;
    /// What agents may do only if somebody says so, and their questions, as far as nobody has answered.
    ApprovalList = "approval.list": chat::ApprovalListParams => chat::Approvals;
    /// Answers one of them. Of two who answer at once one is told that the other was first.
    ApprovalAnswer = "approval.answer": chat::AnswerParams => chat::OpenApproval;
    /// What was answered so far, by people and by rules, oldest first.
    ApprovalLog = "approval.log": chat::ApprovalListParams => chat::Decisions;
    /// Ends an agent's turn and keeps its session.
    TaskInterrupt = "task.interrupt": TaskRef => Nothing;
    /// Shows which model an agent uses and which it offers, or has it use another.
    TaskModel = "task.model": chat::SettingParams => chat::Setting;
    /// Shows how much an agent may do without asking, or changes it.
    TaskMode = "task.mode": chat::SettingParams => chat::Setting;
    /// Connections to agents that serve many tasks with one process.
    ConnectionList = "connection.list": Nothing => connection::Connections;
    /// Connects anew, whatever has become of the attempts before, and brings its sessions back. Answered once it is there.
    ConnectionReconnect = "connection.reconnect": connection::ConnectionRef => connection::Connection;
    /// The sessions that an agent knows, those of others included.
    ConnectionSessions = "connection.sessions": connection::ConnectionRef => connection::Sessions;
    /// What a command in the task's workspace needs; the caller runs it.
    TaskPlan = "task.plan": TaskPlanParams => Plan;
    /// A stream of a task's terminal, to look at and to type into.
    PtyAttach = "pty.attach": PtyAttachParams => Stream;
    /// The screen of a live run as it is now, and the exact state behind it.
    PtyScreen = "pty.screen": TaskRef => ScreenDump;
    /// A stream of what a task's agent printed.
    LogRead = "log.read": LogReadParams => Stream;
    /// Live agents that no task owns.
    OrphanList = "orphan.list": Nothing => Orphans;
    /// Ends an orphan and everything it started.
    OrphanKill = "orphan.kill": OrphanRef => Stopped;
    /// Takes a keeper back into its task, remade if it is gone; with only the process left, ends that.
    OrphanAdopt = "orphan.adopt": OrphanRef => OrphanAdopted;
    /// Every agent: what it runs, whether that is installed for this caller, where it was defined.
    AgentList = "agent.list": AgentListParams => AgentListing;
    /// All that Agency has made in repositories, project by project.
    ProjectTraces = "project.traces": Nothing => Traces;
    /// Takes out of a repository what Agency made there. Workspaces with work in them refuse, unless told to go.
    ProjectErase = "project.erase": ProjectEraseParams => Erased;
    /// What a project's own files would run.
    TrustShow = "trust.show": ProjectRef => Trust;
    /// Every project whose content was agreed to.
    TrustList = "trust.list": Nothing => TrustedProjects;
    /// Agrees to exactly what was shown, or takes the agreement back.
    TrustAgree = "trust.agree": TrustAgreeParams => Trust;
    /// The configuration in force where the caller stands, and where each value comes from.
    ConfigShow = "config.show": config::ShowParams => config::Shown;
    /// Sets one key of a file, or takes it out; the rest of the file stays as it is.
    ConfigSet = "config.set": config::SetParams => config::Changed;
    /// The text of a configuration file.
    ConfigRead = "config.read": config::FileParams => config::FileContent;
    /// Replaces a file, if the new content can be used.
    ConfigWrite = "config.write": config::WriteParams => config::Changed;
    /// Which tools an agent has, and whose agent it is.
    McpTerms = "mcp.terms": mcp::TermsParams => mcp::Terms;
    /// Whether an agent may use a tool on a task now; a refusal says why not.
    McpPermit = "mcp.permit": mcp::PermitParams => mcp::Terms;
    /// From now on this connection gets `event` notifications; with `since`, first those that are kept from then on.
    EventSubscribe = "event.subscribe": EventSubscribeParams => Nothing;
    /// Sends a notice of no importance by every way that is set up, and says how that went.
    NotifyTest = "notify.test": notify::TestParams => notify::Tested;
    /// The ways to reach people as they are set up, and how the last notice fared.
    NotifyWays = "notify.ways": Nothing => notify::Ways;
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Nothing {}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventSubscribeParams {
    /// RFC 3339.
    #[serde(default)]
    pub since: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskExplainParams {
    pub task: TaskRef,
    /// RFC 3339; absent for now.
    #[serde(default)]
    pub at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonStopParams {
    pub agents: bool,
    #[serde(default)]
    pub overrides: Overrides,
}

/// Where the caller stands; the project is found from there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectRef {
    pub cwd: Bytes,
}

/// A task by id, slug, `id-slug` or a unique prefix of the slug.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRef {
    pub cwd: Bytes,
    pub name: String,
}

/// What a launch takes from the terminal and process that asked for it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Caller {
    pub env: Vec<(Bytes, Bytes)>,
    pub size: Option<Size>,
    /// The caller's (soft, hard) limit of open files.
    pub open_files: Option<(u64, u64)>,
    #[serde(default)]
    pub overrides: Overrides,
    /// A word of the caller's own. Events about the setup it asked for, or waits for, carry it in `asked_by`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskNewParams {
    pub cwd: Bytes,
    pub slug: String,
    pub body: Bytes,
    #[serde(default)]
    pub agent: Option<String>,
    #[serde(default)]
    pub driver: Option<String>,
    #[serde(default)]
    pub base_branch: Option<String>,
    #[serde(default)]
    pub labels: Vec<String>,
    #[serde(default)]
    pub draft: bool,
    #[serde(default)]
    pub command: Option<Vec<Bytes>>,
    /// `git`, `jj` or `none`; found out when absent.
    #[serde(default)]
    pub vcs: Option<String>,
    /// The run of the agent that wants it: the task is shown under that agent's, and the limits of `[mcp]` hold.
    #[serde(default)]
    pub on_behalf_of: Option<String>,
    #[serde(default)]
    pub caller: Caller,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskStartParams {
    #[serde(flatten)]
    pub task: TaskRef,
    /// Another driver than so far: it goes on with the same session, or the start is refused.
    #[serde(default)]
    pub driver: Option<String>,
    /// Begin a new session.
    #[serde(default)]
    pub fresh: bool,
    /// Go on without the commands of a setup that is still to be done.
    #[serde(default)]
    pub skip_setup: bool,
    #[serde(default)]
    pub caller: Caller,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSetupParams {
    #[serde(flatten)]
    pub task: TaskRef,
    #[serde(default)]
    pub caller: Caller,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Started {
    pub task: view::Task,
    /// What the user should know of it: which agent was chosen, what was left out.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stopped {
    pub task: Option<view::Task>,
    pub code: Option<String>,
    /// Processes outside the agent's group that were ended with it.
    pub ended: Vec<Ended>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRemoveParams {
    #[serde(flatten)]
    pub task: TaskRef,
    #[serde(default)]
    pub discard: bool,
    /// Why it goes, for whoever looks into the trash, where no person said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whose environment the commands of `workspace.teardown` get.
    #[serde(default)]
    pub caller: Caller,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    pub id: u64,
    pub slug: String,
    /// The hidden ref that keeps what was discarded.
    pub kept_as: Option<String>,
    /// What it is called in the trash.
    pub trash: String,
    /// What the user should know of it: a teardown that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskListParams {
    /// The project around this directory; all projects when absent.
    pub cwd: Option<Bytes>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskListing {
    pub tasks: Vec<view::Task>,
    pub orphans: Vec<view::Orphan>,
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSendParams {
    #[serde(flatten)]
    pub task: TaskRef,
    pub text: Bytes,
    /// Press Enter after the text.
    pub enter: bool,
    /// Type it whatever is on the screen.
    #[serde(default)]
    pub anyway: bool,
    /// Hold it until the agent is at its prompt.
    #[serde(default)]
    pub queue: bool,
    /// Keys to press instead of a text: `down`, `enter`, `ctrl-c`.
    #[serde(default)]
    pub keys: Vec<String>,
}

/// What is known of a text that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptKind {
    /// There is evidence that the agent has taken it.
    Delivered,
    /// Its terminal has taken every byte; whether the agent did is not known.
    Typed,
    /// It was not sent off.
    Refused,
    /// It waits for the agent's prompt.
    Queued,
}

/// A text that waits for its agent's prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Queued {
    /// What it is called when it is taken back.
    pub id: u64,
    pub task: u64,
    pub slug: String,
    pub project: Bytes,
    pub text: Bytes,
    /// RFC 3339.
    pub time: String,
    /// It may have been typed already: neither it nor those behind it are sent until it is dropped.
    pub uncertain: bool,
    /// No agent runs that could take it: it waits for a start.
    #[serde(default)]
    pub stranded: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueListParams {
    /// Absent: of every task of every project.
    #[serde(default)]
    pub task: Option<TaskRef>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    pub queued: Vec<Queued>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueDropParams {
    pub task: TaskRef,
    /// Absent: all of them.
    #[serde(default)]
    pub id: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    pub receipt: ReceiptKind,
    pub bytes: u64,
    /// What shows it, or why not.
    #[serde(default)]
    pub why: Option<String>,
    /// What is on the screen, if that is the reason.
    #[serde(default)]
    pub screen: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskPlanParams {
    #[serde(flatten)]
    pub task: TaskRef,
    /// The agent's `run` action with this message; nothing but the place when absent.
    #[serde(default)]
    pub message: Option<Bytes>,
    #[serde(default)]
    pub overrides: Overrides,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    pub task: view::Task,
    pub cwd: Bytes,
    /// Empty unless a message was given.
    pub argv: Vec<Bytes>,
    /// To be added to the caller's own environment.
    pub env: Vec<(Bytes, Bytes)>,
    /// What `workspace.opener` is here; empty when it is not configured.
    #[serde(default)]
    pub opener: Vec<Bytes>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PtyAttachParams {
    #[serde(flatten)]
    pub task: TaskRef,
    pub size: Size,
    pub mode: AttachMode,
    /// The run the caller itself runs in, if any: attaching a run to itself is refused.
    #[serde(default)]
    pub inside_run: Option<String>,
    #[serde(default)]
    pub ssh_auth_sock: Option<Bytes>,
    /// This viewer was attached before and has the scrollback: begin with the screen alone.
    #[serde(default)]
    pub screen_only: bool,
    /// Have every picture drawn by the daemon, also where the size of the viewer's terminal fits.
    #[serde(default)]
    pub frames: bool,
    #[serde(default)]
    pub overrides: Overrides,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScreenDump {
    pub size: Size,
    /// Row and column, from 0.
    pub cursor: (u16, u16),
    pub title: String,
    /// The alternate screen is shown, as by an editor.
    pub alternate: bool,
    /// The terminal modes in force, by name.
    pub modes: serde_json::Value,
    /// Scrollback and screen, a line each.
    pub text: String,
    /// What draws it on a terminal of this size.
    pub ansi: Bytes,
    /// The journal up to but not including this record is in it.
    pub next_seq: u64,
    /// Opaque, and equal for equal journals.
    pub dump: Bytes,
}

/// A token for one WebSocket at `/stream/{token}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    pub stream: String,
    pub task: view::Task,
    /// What `detach_keys` is for this call, with its variables and options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detach_keys: Option<String>,
    /// What the viewer should know, such as a configuration that is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogReadParams {
    #[serde(flatten)]
    pub task: TaskRef,
    #[serde(default)]
    pub form: LogForm,
    #[serde(default)]
    pub follow: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogForm {
    /// What a person would read.
    #[default]
    Text,
    /// Every byte as it came.
    Raw,
    /// asciicast v2 without what was typed.
    Cast,
    CastWithInput,
    /// What the last setup of the workspace printed.
    Setup,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Orphans {
    pub orphans: Vec<view::Orphan>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrphanRef {
    pub run: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrphanAdopted {
    /// Its task, live again; without a run when only a process was left: that has been ended, and the
    /// caller starts the task again.
    pub task: Option<view::Task>,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentListParams {
    /// The project around this directory, if there is one, has a say too.
    #[serde(default)]
    pub cwd: Option<Bytes>,
    /// The caller's `PATH`.
    #[serde(default)]
    pub path: Option<Bytes>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentListing {
    pub agents: Vec<view::Agent>,
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Traces {
    pub projects: Vec<view::ProjectTraces>,
    /// Directories of runs whose task is gone.
    pub forgotten_runs: Vec<Bytes>,
    /// Runs that another host holds in the same state directory.
    #[serde(default)]
    pub elsewhere: Vec<view::RunElsewhere>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectEraseParams {
    /// The project's root directory, as `project.traces` names it.
    pub root: Bytes,
    /// Remove workspaces even with uncommitted or unmerged work.
    #[serde(default)]
    pub discard: bool,
    /// Hidden refs that stay.
    #[serde(default)]
    pub spare: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Erased {
    /// What is gone, a line each.
    pub removed: Vec<String>,
    /// What was left, and why.
    pub left: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trust {
    pub file: Bytes,
    /// The exact text to agree to, absent when the project has no such file.
    pub content: Option<Bytes>,
    pub digest: Option<String>,
    /// The commands in it and in task files, one a line.
    pub commands: Vec<String>,
    /// What else in it waits for consent, one a line.
    #[serde(default)]
    pub settings: Vec<String>,
    pub trusted: bool,
    /// Against what was last agreed to; absent when nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
}

/// Lines that came and went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    pub added: Vec<String>,
    pub removed: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrustedProjects {
    pub projects: Vec<TrustedProject>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrustedProject {
    pub root: Bytes,
    /// When the last word was given.
    pub agreed_at: Option<String>,
    /// What was last agreed to in its configuration, one a line.
    pub lines: Vec<String>,
    /// Contents and commands that were agreed to, all in all.
    pub agreements: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrustAgreeParams {
    pub cwd: Bytes,
    /// Of the content that was shown; another one is refused.
    pub digest: Option<String>,
    pub revoke: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_noun_dot_verb_and_unique() {
        let mut names = NAMES.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), NAMES.len());
        assert!(names.iter().all(|name| name.split('.').count() == 2));
    }
}

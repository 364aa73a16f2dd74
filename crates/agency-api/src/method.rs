//! The methods of the API: name, parameters, result.
//!
//! Each method is declared here once, and the daemon registers one handler for it. The command line uses only these
//! methods: everything that a user can do, a program can do, too.

use schemars::{JsonSchema, SchemaGenerator};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};

use crate::Bytes;
pub use crate::caller::{Caller, ProjectRef, TaskRef};
use crate::chat;
use crate::config::{self, Overrides};
use crate::connection;
use crate::desk;
use crate::file;
use crate::keeper::{Ended, Size};
use crate::mcp;
use crate::notify;
use crate::project;
use crate::pty::AttachMode;
pub use crate::queue::Queued;
use crate::recent;
use crate::remark;
use crate::search;
use crate::shell;
use crate::timeline;
use crate::trash;
use crate::view;
use crate::work;

/// One method of the API. The daemon registers one handler for each; the handler compiles only if it answers with
/// `Result`.
pub trait Method: Copy + Send + Sync + 'static {
    /// The name of the method in JSON.
    const NAME: &'static str;
    /// The parameters that a caller sends.
    type Params: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    /// The result that the daemon answers with, unless it answers with a [`crate::Failure`].
    type Result: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
}

macro_rules! methods {
    ($($(#[doc = $doc:literal])* $name:ident = $wire:literal : $params:ty => $result:ty;)*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Debug, Clone, Copy)]
            pub struct $name;

            impl Method for $name {
                const NAME: &'static str = $wire;
                type Params = $params;
                type Result = $result;
            }
        )*

        /// The names of all methods in JSON.
        pub const NAMES: &[&str] = &[$($wire),*];

        /// Describes every method for the reference. `types` collects the schemas of the types.
        pub fn describe_all(types: &mut SchemaGenerator) -> Vec<MethodDescription> {
            vec![$(MethodDescription {
                name: $wire,
                about: concat!($($doc,)* ""),
                params: types.subschema_for::<$params>().to_value(),
                result: types.subschema_for::<$result>().to_value(),
            }),*]
        }
    };
}

/// A method as the reference describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct MethodDescription {
    /// The name in JSON.
    pub name: &'static str,
    /// The description of the method.
    pub about: &'static str,
    /// The JSON Schema of the parameters, mostly a reference to a type.
    pub params: serde_json::Value,
    /// The JSON Schema of the result, mostly a reference to a type.
    pub result: serde_json::Value,
}

/// Parameters that name the task that the call is about.
pub trait NamesTask {
    /// The task.
    fn task(&self) -> &TaskRef;
}

/// Parameters that say in which directory the caller is, and so which project the call is about.
pub trait NamesProject {
    /// The caller's directory.
    fn cwd(&self) -> &Bytes;
}

macro_rules! names_task {
    ($($params:ty),* $(,)?) => {
        $(impl NamesTask for $params {
            fn task(&self) -> &TaskRef {
                &self.task
            }
        })*
    };
}

macro_rules! names_project {
    ($($params:ty),* $(,)?) => {
        $(impl NamesProject for $params {
            fn cwd(&self) -> &Bytes {
                &self.cwd
            }
        })*
    };
}

names_task! {
    TaskStartParams,
    TaskSetupParams,
    TaskExplainParams,
    TaskContradictParams,
    TaskPlanParams,
    TaskPinParams,
    TaskSnoozeParams,
    TaskEditParams,
    TaskRenameParams,
    TaskRemoveParams,
    TaskSendParams,
    QueueDropParams,
    PtyAttachParams,
    PtyScreenParams,
    LogReadParams,
    TaskStopParams,
    file::FileListParams,
    file::FileReadParams,
    file::FileWriteParams,
    remark::RemarkAddParams,
    remark::RemarkDropParams,
    remark::RemarkSendParams,
    shell::ShellRef,
    shell::ShellOpenParams,
    shell::ShellCloseParams,
    chat::ReadParams,
    chat::AnswerParams,
    chat::SettingParams,
    chat::OptionParams,
    timeline::TimelineParams,
    trash::TurnRestoreParams,
    work::DiffParams,
    work::MergeParams,
    work::SyncParams,
}

names_project! {
    TrustAgreeParams,
    mcp::TermsParams,
    trash::TrashExpireParams,
    trash::TrashRestoreParams,
}

impl NamesProject for mcp::PermitParams {
    fn cwd(&self) -> &Bytes {
        &self.who.cwd
    }
}

methods! {
    /// Shows the daemon's process, its version, and where its files are.
    DaemonStatus = "daemon.status": Nothing => view::Daemon;
    /// Stops the daemon. It answers first, then it exits. With `agents`, it ends every agent before it answers.
    DaemonStop = "daemon.stop": DaemonStopParams => Nothing;
    /// Makes a task, and starts its agent unless the task is a draft.
    TaskNew = "task.new": TaskNewParams => Started;
    /// Starts the agent of a task, or sets an idle task to running. A task never has two agents.
    TaskStart = "task.start": TaskStartParams => Started;
    /// Ends the agent of a task, waits until its processes are gone, and starts it again.
    TaskRestart = "task.restart": TaskStartParams => Started;
    /// Sets the workspace of a task up again: copies files and runs the commands of `workspace.setup`. It starts no
    /// agent.
    TaskSetup = "task.setup": TaskSetupParams => Started;
    /// Ends the agent of a task and every process that the agent started, and closes the task's terminals. It also ends a
    /// setup that is running. Fails if a program runs in a terminal, unless `force` is set.
    TaskStop = "task.stop": TaskStopParams => Stopped;
    /// Lists the stopped tasks of every project whose agents ended although no caller asked for it: by a reboot, by the
    /// shutdown of the daemon, or by a signal.
    TaskCutOff = "task.cut_off": Nothing => CutOffTasks;
    /// Marks a running task as idle. Its agent keeps running.
    TaskIdle = "task.idle": TaskRef => view::Task;
    /// Marks a task as completed: its work is done.
    TaskComplete = "task.complete": TaskRef => view::Task;
    /// Marks a task as failed.
    TaskFail = "task.fail": TaskRef => view::Task;
    /// Shows what the workspace of a task changes: compared with its base, or in one turn.
    TaskDiff = "task.diff": work::DiffParams => work::Diff;
    /// Marks a task as reviewed: a person has looked at its work and accepts it.
    TaskReview = "task.review": TaskRef => view::Task;
    /// Lists every obstacle to a merge with these parameters. Changes nothing.
    TaskMergePlan = "task.merge_plan": work::MergeParams => work::MergePlan;
    /// Merges the work of a task, all of it or nothing. The task becomes completed, if it was not, and then merged.
    TaskMerge = "task.merge": work::MergeParams => work::Merged;
    /// Brings the new commits of a task's base into its workspace, all of them or nothing.
    TaskSync = "task.sync": work::SyncParams => work::Synced;
    /// Shows which workspaces of a project conflict with their base or with each other, as of now.
    ConflictList = "conflict.list": ProjectRef => work::Conflicts;
    /// Removes a task and its workspace. Fails if work would be lost, unless `discard` is set.
    TaskRemove = "task.remove": TaskRemoveParams => Removed;
    /// Shows which finished tasks can be removed without losing work, and why the others stay. It removes nothing.
    TaskFinished = "task.spent": ProjectRef => trash::FinishedTasks;
    /// Lists the trash of a project: everything that was removed or replaced and can be restored.
    TrashList = "trash.list": ProjectRef => trash::Trash;
    /// Restores a trash entry: a task with its workspace, branch and runs, or earlier files of a workspace.
    TrashRestore = "trash.restore": trash::TrashRestoreParams => trash::Restored;
    /// Deletes trash entries that are older than the given age, for good. Only this method deletes from the trash.
    TrashExpire = "trash.expire": trash::TrashExpireParams => trash::Expired;
    /// Lists the turns of an agent after which the files of its workspace had changed.
    TurnList = "turn.list": TaskRef => trash::Turns;
    /// Shows what happened to the agents of a task: starts, states, messages, approvals, turns and exits on one time axis.
    TaskTimeline = "task.timeline": timeline::TimelineParams => timeline::Timeline;
    /// Restores the files of a workspace as they were after an earlier turn. Fails while the agent is working.
    TurnRestore = "turn.restore": trash::TurnRestoreParams => trash::TurnRestored;
    /// Lists the tasks of one project, or of all projects.
    TaskList = "task.list": TaskListParams => TaskListing;
    /// Shows one task.
    TaskGet = "task.get": TaskRef => view::Task;
    /// Explains which evidence decided the state of a task's agent, now or at a time in the past.
    TaskExplain = "task.explain": TaskExplainParams => view::Explanation;
    /// Says that the state of a task's agent is wrong. The daemon corrects the state, no longer believes the same evidence
    /// in that program, and writes a report file.
    TaskContradict = "task.contradict": TaskContradictParams => view::Contradiction;
    /// Forgets the user's corrections for the program of a task's agent. The result lists them.
    CorrectionForget = "correction.forget": TaskRef => view::Corrections;
    /// Sends a message to the agent of a task. In a terminal the daemon types the message at the agent's prompt. It can
    /// also queue the message until the agent is at its prompt.
    TaskSend = "task.send": TaskSendParams => Receipt;
    /// Lists the queued messages, which wait until their agents are at their prompts.
    QueueList = "queue.list": QueueListParams => Queue;
    /// Drops queued messages before they are sent. The result lists the dropped messages.
    QueueDrop = "queue.drop": QueueDropParams => Queue;
    /// Reads a conversation: its end, one page of it, or only the new entries.
    ChatRead = "chat.read": chat::ReadParams => chat::Chat;
    /// Searches conversations and task texts for words, the newest hits first.
    ChatSearch = "chat.search": search::SearchParams => search::Found;
    /// Lists open approvals: actions that agents ask for, and their questions, that have no answer yet.
    ApprovalList = "approval.list": chat::ApprovalListParams => chat::Approvals;
    /// Answers one open approval. If two callers answer at the same time, the second one gets a failure.
    ApprovalAnswer = "approval.answer": chat::AnswerParams => chat::OpenApproval;
    /// Lists the answered approvals, by people and by rules, the oldest first.
    ApprovalLog = "approval.log": chat::ApprovalListParams => chat::Decisions;
    /// Suggests rules from the log of decisions: commands that the user always allowed. Changes nothing.
    ApprovalSuggest = "approval.suggest": chat::ApprovalListParams => chat::Suggestions;
    /// Pins a task to the top of lists, or takes the pin away.
    TaskPin = "task.pin": TaskPinParams => view::Task;
    /// Puts a task off until a time, or brings it back. It comes back earlier if it needs the user for something new.
    TaskSnooze = "task.snooze": TaskSnoozeParams => view::Task;
    /// Shows the text of a task.
    TaskText = "task.text": TaskRef => TaskTextView;
    /// Replaces the text of a task: what the next fresh start of its agent sends.
    TaskEdit = "task.edit": TaskEditParams => view::Task;
    /// Changes the slug of a task that has no workspace and no run yet. Fails for any other task, and if another task that
    /// is not merged has this slug.
    TaskRename = "task.rename": TaskRenameParams => view::Task;
    /// Interrupts the turn of an agent. Its session stays.
    TaskInterrupt = "task.interrupt": TaskRef => Nothing;
    /// Shows which model an agent uses and which models it offers, or chooses another one.
    TaskModel = "task.model": chat::SettingParams => chat::Setting;
    /// Shows the mode of an agent, which says what it may do without an approval, or chooses another one.
    TaskMode = "task.mode": chat::SettingParams => chat::Setting;
    /// Shows the options of an agent's session, or changes one. Without a value it returns all of them, or the named one.
    TaskOption = "task.option": chat::OptionParams => chat::AgentOptions;
    /// Lists the connections to agents that serve many tasks with one process.
    ConnectionList = "connection.list": Nothing => connection::Connections;
    /// Connects again, even if earlier attempts failed, and resumes the sessions. The daemon answers once the
    /// connection is up.
    ConnectionReconnect = "connection.reconnect": connection::ConnectionRef => connection::Connection;
    /// Lists the sessions that the agent of a connection knows, including sessions that Agency did not start.
    ConnectionSessions = "connection.sessions": connection::ConnectionRef => connection::Sessions;
    /// Shows what the caller needs to run a command in the workspace of a task. The daemon does not run it.
    TaskPlan = "task.plan": TaskPlanParams => Plan;
    /// Lists a directory in the workspace of a task. A path that leads out of the workspace is refused, also through
    /// symbolic links.
    FileList = "file.list": file::FileListParams => file::FileListing;
    /// Reads a part of a file in the workspace of a task, with the digest of the whole file.
    FileRead = "file.read": file::FileReadParams => file::FileContent;
    /// Replaces a file in the workspace of a task if it has the expected digest, or makes it if there is none. Fails if
    /// the file has changed.
    FileWrite = "file.write": file::FileWriteParams => file::FileWritten;
    /// Adds remarks about the work of a task: about lines of its diff, files, or the whole change.
    RemarkAdd = "remark.add": remark::RemarkAddParams => remark::Remarks;
    /// Lists the remarks about the work of a task. Each has the present number of its line, or is outdated if that line is
    /// gone.
    RemarkList = "remark.list": TaskRef => remark::Remarks;
    /// Drops a remark.
    RemarkDrop = "remark.drop": remark::RemarkDropParams => remark::Remarks;
    /// Sends all open remarks to the agent as one message, or queues it until the agent is at its prompt.
    RemarkSend = "remark.send": remark::RemarkSendParams => remark::RemarksSent;
    /// Opens a terminal in the workspace of a task, beside its agent. If a terminal of that name is open already, answers
    /// with it, unless the caller wants to run a command.
    ShellOpen = "shell.open": shell::ShellOpenParams => shell::ShellOpened;
    /// Lists the open terminals beside agents.
    ShellList = "shell.list": shell::ShellListParams => shell::Shells;
    /// Closes a terminal of a task, or all of them. Fails if a program runs in one, unless `force` is set.
    ShellClose = "shell.close": shell::ShellCloseParams => shell::ShellsClosed;
    /// Shows the current screen of a terminal beside the agent.
    ShellScreen = "shell.screen": shell::ShellRef => ScreenDump;
    /// Opens a stream to the terminal of a task: the caller sees it and can type into it.
    PtyAttach = "pty.attach": PtyAttachParams => Stream;
    /// Shows the current screen of a live run, the last one of an ended run, or the screen at a time in the past; and the
    /// exact state of that terminal.
    PtyScreen = "pty.screen": PtyScreenParams => ScreenDump;
    /// Opens a stream of everything that the agent of a task printed.
    LogRead = "log.read": LogReadParams => Stream;
    /// Lists orphans: live keepers and processes that belong to no task.
    OrphanList = "orphan.list": Nothing => Orphans;
    /// Ends an orphan and every process that it started.
    OrphanKill = "orphan.kill": OrphanRef => Stopped;
    /// Gives an orphaned keeper back to its task, and makes the task again if it is gone. If only a process is left,
    /// ends that process.
    OrphanAdopt = "orphan.adopt": OrphanRef => OrphanAdopted;
    /// Lists every agent: which command it runs, whether that program is installed, and where the agent is defined.
    AgentList = "agent.list": AgentListParams => AgentListing;
    /// Lists the projects in which Agency was used.
    ProjectList = "project.list": Nothing => project::Projects;
    /// Adds a project to the list. Any use of Agency in a project does the same.
    ProjectAdd = "project.add": project::ProjectAddParams => project::ProjectView;
    /// Leaves a project and its tasks out of all lists until it is used again. Deletes nothing. Fails while an agent of
    /// the project is running.
    ProjectForget = "project.forget": project::ProjectForgetParams => project::ProjectView;
    /// Lists everything that Agency has made in repositories, by project.
    ProjectTraces = "project.traces": ProjectTracesParams => Traces;
    /// Removes everything that Agency has made in a repository. Fails if a workspace has work in it, unless `discard`
    /// is set.
    ProjectErase = "project.erase": ProjectEraseParams => Erased;
    /// Shows which commands and settings in a project's files need the user's consent.
    TrustShow = "trust.show": ProjectRef => Trust;
    /// Lists the projects whose files the user has agreed to.
    TrustList = "trust.list": Nothing => TrustedProjects;
    /// Records that the user agrees to exactly the content that was shown, or revokes the agreement.
    TrustAgree = "trust.agree": TrustAgreeParams => Trust;
    /// Shows the configuration in effect in the caller's directory, and where each value comes from.
    ConfigShow = "config.show": config::ShowParams => config::Shown;
    /// Sets or unsets one key in a configuration file. The rest of the file stays as it is.
    ConfigSet = "config.set": config::SetParams => config::Changed;
    /// Reads a configuration file.
    ConfigRead = "config.read": config::FileParams => config::FileContent;
    /// Replaces a configuration file, if the new content is valid.
    ConfigWrite = "config.write": config::WriteParams => config::Changed;
    /// Shows which MCP tools an agent may use, and to which task the agent belongs.
    McpTerms = "mcp.terms": mcp::TermsParams => mcp::Terms;
    /// Checks whether an agent may use a tool on a task now. A failure gives the reason.
    McpPermit = "mcp.permit": mcp::PermitParams => mcp::Terms;
    /// Reads everything that a surface shows, of all projects: tasks with their states and reasons, open approvals, queued
    /// messages, conflicts, costs, connections, orphans.
    DeskRead = "desk.read": Nothing => desk::Desk;
    /// Summarizes everything that happened since a time: finished, failed, waiting, merged, collisions, cost.
    DeskRecent = "desk.recent": recent::RecentParams => recent::Recent;
    /// Subscribes this connection to `desk` notifications, each of them one change of the desk. With `since`, the result has the
    /// changes after that number.
    DeskSubscribe = "desk.subscribe": desk::DeskSubscribeParams => desk::DeskStart;
    /// Subscribes this connection to `event` notifications. With `since`, the daemon first sends the stored events
    /// from that time on.
    EventSubscribe = "event.subscribe": EventSubscribeParams => Nothing;
    /// Sends a test notification through every configured channel, and shows the outcome of each.
    NotifyTest = "notify.test": notify::TestParams => notify::ChannelTest;
    /// Lists the notification channels as they are configured, and the outcome of the last notification of each.
    NotifyChannels = "notify.ways": Nothing => notify::ChannelStates;
}

/// No parameters, or a result that says nothing but that it was done. Fields that a caller sends are ignored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Nothing {}

impl<'de> Deserialize<'de> for Nothing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Nothing {})
    }
}

/// Which events the caller wants.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventSubscribeParams {
    /// Also send the stored events from this time on, in RFC 3339.
    #[serde(default)]
    pub since: Option<String>,
}

/// Which state to explain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskExplainParams {
    /// The task.
    pub task: TaskRef,
    /// A time in RFC 3339; absent for the current state.
    #[serde(default)]
    pub at: Option<String>,
}

/// Which state is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskContradictParams {
    /// The task.
    pub task: TaskRef,
    /// The belief of Agency that is wrong.
    pub wrong: view::Belief,
}

/// How to stop the daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonStopParams {
    /// End every agent, too, and close every terminal.
    pub agents: bool,
    /// Close terminals even if programs run in them.
    #[serde(default)]
    pub force: bool,
    /// Configuration for this call only.
    #[serde(default)]
    pub overrides: Overrides,
}

/// The new task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskNewParams {
    /// The caller's directory. The task belongs to the project that it is in.
    pub cwd: Bytes,
    /// The short name of the task. Absent: the daemon makes one from the text or the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    /// The text of the task, which is the agent's first message.
    pub body: Bytes,
    /// The name of the agent; the default agent when absent.
    #[serde(default)]
    pub agent: Option<String>,
    /// `terminal`, `stream-json` or `acp`; the usual driver of the agent when absent.
    #[serde(default)]
    pub driver: Option<String>,
    /// The branch or revision that the workspace starts from; the current one of the main checkout when absent.
    #[serde(default)]
    pub base_branch: Option<String>,
    /// Labels of the task.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Make only the task file: no workspace, no agent.
    #[serde(default)]
    pub draft: bool,
    /// For a draft that the caller starts next: the number of agents that the caller is about to start, this one included.
    /// Nothing is made unless the agent can be started and so many slots are free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents_to_start: Option<u32>,
    /// A command to run instead of the agent's own.
    #[serde(default)]
    pub command: Option<Vec<Bytes>>,
    /// `git`, `jj` or `none`; detected when absent.
    #[serde(default)]
    pub vcs: Option<String>,
    /// The run of the agent that makes the task. The new task is listed under that agent's task, and the limits of
    /// `[mcp]` apply.
    #[serde(default)]
    pub on_behalf_of: Option<String>,
    /// The agent's id of an earlier session that the task continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// The caller, for the launch of the agent.
    #[serde(default)]
    pub caller: Caller,
}

/// How to start the agent of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskStartParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// Switch to this driver. It resumes the session of the last one; if it cannot, the start fails.
    #[serde(default)]
    pub driver: Option<String>,
    /// Begin a new session.
    #[serde(default)]
    pub fresh: bool,
    /// Start without running the setup commands that have not run yet.
    #[serde(default)]
    pub skip_setup: bool,
    /// The caller, for the launch of the agent.
    #[serde(default)]
    pub caller: Caller,
}

/// Which workspace to set up again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSetupParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// The caller, for the setup commands.
    #[serde(default)]
    pub caller: Caller,
}

/// A task that was made, started or set up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Started {
    /// The task.
    pub task: view::Task,
    /// Notes for the user, for example which agent was chosen.
    pub notes: Vec<String>,
}

/// Which agent to stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskStopParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// Close the task's terminals even if programs run in them.
    #[serde(default)]
    pub force: bool,
}

impl From<TaskRef> for TaskStopParams {
    fn from(task: TaskRef) -> TaskStopParams {
        TaskStopParams { task, force: false }
    }
}

/// A run that was ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stopped {
    /// The task; absent for an orphan.
    pub task: Option<view::Task>,
    /// The exit status of the agent; absent when no agent was running.
    pub code: Option<String>,
    /// Processes outside the agent's process group that were ended, too.
    pub ended: Vec<Ended>,
    /// The names of the task's terminals that were closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<String>,
}

/// Which task to remove.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRemoveParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// Remove the task even if its agent is running, a program runs in one of its terminals, or its work is not merged.
    #[serde(default)]
    pub discard: bool,
    /// Close the task's terminals even if programs run in them.
    #[serde(default)]
    pub force: bool,
    /// The reason that the trash shows, when a program and not a person removes the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The name of a command that removes several tasks, which `undo` restores together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// The caller, whose environment the commands of `workspace.teardown` get.
    #[serde(default)]
    pub caller: Caller,
}

/// A task that was removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    /// The id of the task.
    pub id: u64,
    /// The slug of the task.
    pub slug: String,
    /// The hidden ref that keeps the discarded work.
    pub kept_as: Option<String>,
    /// The id of the trash entry.
    pub trash: String,
    /// Notes for the user, for example that a teardown command failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// A sentence for each kind of loss that cannot be restored: ignored files, pipes and sockets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
}

/// Which tasks to list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskListParams {
    /// List the project that this directory is in; all projects when absent.
    pub cwd: Option<Bytes>,
}

/// Tasks whose agents should be started again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CutOffTasks {
    /// The tasks, by project and id.
    pub tasks: Vec<view::Task>,
}

/// Tasks and orphans.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskListing {
    /// The tasks, by project and id.
    pub tasks: Vec<view::Task>,
    /// Live keepers and processes that belong to no task.
    pub orphans: Vec<view::Orphan>,
    /// Problems that the user should know about.
    pub warnings: Vec<String>,
    /// The user's setting `ui.marks`: `auto`, `ascii` or `emoji`.
    #[serde(default)]
    pub marks: String,
}

/// A message or keys for an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSendParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// The message.
    pub text: Bytes,
    /// Press Enter after the message.
    pub enter: bool,
    /// Type the message even if the agent is not at its prompt.
    #[serde(default)]
    pub anyway: bool,
    /// Queue the message until the agent is at its prompt.
    #[serde(default)]
    pub queue: bool,
    /// Keys to press instead of the message: `down`, `enter`, `ctrl-c`.
    #[serde(default)]
    pub keys: Vec<String>,
    /// Images for an agent with a conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<chat::Image>,
}

/// How far a message got, as far as the daemon knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptKind {
    /// There is evidence that the agent has taken the message.
    Delivered,
    /// The terminal has taken every byte. Whether the agent has read them is not known.
    Typed,
    /// The message was not sent.
    Refused,
    /// The message waits until the agent is at its prompt.
    Queued,
}

/// A pin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskPinParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// Whether the task is pinned from now on.
    pub pinned: bool,
}

/// A time until which a task can wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSnoozeParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// A time in the future, in RFC 3339. Absent: bring the task back now.
    #[serde(default)]
    pub until: Option<String>,
}

/// The text of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskTextView {
    /// The task.
    pub task: view::Task,
    /// Everything after the front matter of its file.
    pub text: Bytes,
}

/// A new text of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskEditParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// The new text. It must not be empty.
    pub text: Bytes,
    /// The text that the caller has changed: the call fails if the task has another text by now. Absent: replace any text.
    #[serde(default)]
    pub replaces: Option<Bytes>,
}

/// A new slug of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRenameParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// The new slug.
    pub slug: String,
}

/// Which queued messages to list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueListParams {
    /// The task; all tasks of all projects when absent.
    #[serde(default)]
    pub task: Option<TaskRef>,
}

/// Queued messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    /// The messages, in the order in which they are sent.
    pub queued: Vec<Queued>,
}

/// Which queued messages to drop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueDropParams {
    /// The task.
    pub task: TaskRef,
    /// The number of the message; all messages of the task when absent.
    #[serde(default)]
    pub id: Option<u64>,
}

/// The receipt of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    /// How far the message got.
    pub receipt: ReceiptKind,
    /// How many bytes of the message were sent or queued.
    pub bytes: u64,
    /// The evidence, or the reason.
    #[serde(default)]
    pub why: Option<String>,
    /// The screen, if it is the reason.
    #[serde(default)]
    pub screen: Option<String>,
}

/// Which command the caller wants to run in a workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskPlanParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// The message for the agent's `run` action; without it the result has no command.
    #[serde(default)]
    pub message: Option<Bytes>,
    /// Configuration for this call only.
    #[serde(default)]
    pub overrides: Overrides,
}

/// Everything that the caller needs to run a command in a workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The task.
    pub task: view::Task,
    /// The directory of the workspace.
    pub cwd: Bytes,
    /// The command; empty without a message.
    pub argv: Vec<Bytes>,
    /// Variables to add to the caller's own environment.
    pub env: Vec<(Bytes, Bytes)>,
    /// The command of `workspace.opener` for this workspace; empty when it is not configured.
    #[serde(default)]
    pub opener: Vec<Bytes>,
}

/// How to attach to a terminal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PtyAttachParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// The size of the viewer's terminal.
    pub size: Size,
    /// The name of a terminal beside the agent; the agent's own terminal when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// Whether the viewer types or only looks on.
    pub mode: AttachMode,
    /// The run that the caller itself runs in, if any. A run cannot be attached to itself.
    #[serde(default)]
    pub inside_run: Option<String>,
    /// The caller's `SSH_AUTH_SOCK`, which the agent uses from now on.
    #[serde(default)]
    pub ssh_auth_sock: Option<Bytes>,
    /// The viewer was attached before and has the scrollback: send only the screen first.
    #[serde(default)]
    pub screen_only: bool,
    /// A number that names the viewer's terminal among all terminals of this machine. A terminal that was attached to the
    /// run before, under the same daemon, gets the newest 200 rows of the scrollback only. Absent: send the whole
    /// scrollback.
    #[serde(default)]
    pub terminal: Option<u64>,
    /// Have the daemon draw every frame, even if the viewer's terminal has the size of the run's.
    #[serde(default)]
    pub frames: bool,
    /// The viewer acknowledges: it sends `processed` at least every 256 KiB that it has drawn. The daemon sends at most
    /// 512 KiB before it waits for that. A browser needs it, because it takes messages much faster than it draws them.
    #[serde(default)]
    pub acknowledges: bool,
    /// Configuration for this call only.
    #[serde(default)]
    pub overrides: Overrides,
}

/// Which screen to show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PtyScreenParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// Show the screen at this time, in RFC 3339. Absent: the screen now, or the last one of a run that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// The screen of a live run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScreenDump {
    /// The size of the screen.
    pub size: Size,
    /// Row and column, from 0.
    pub cursor: (u16, u16),
    /// The title of the terminal.
    pub title: String,
    /// The alternate screen is shown, as by an editor.
    pub alternate: bool,
    /// The terminal modes in effect, by name.
    pub modes: serde_json::Value,
    /// Scrollback and screen as text, line by line.
    pub text: String,
    /// Bytes that draw the screen on a terminal of this size.
    pub ansi: Bytes,
    /// The dump contains every record of the journal before this one.
    pub next_seq: u64,
    /// The exact state of the terminal. Opaque, and equal for equal journals.
    pub dump: Bytes,
    /// For a screen of the past: when it was last drawn, in RFC 3339, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
}

/// A token for one WebSocket at `/stream/{token}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    /// The token.
    pub stream: String,
    /// The task.
    pub task: view::Task,
    /// The value of `detach_keys` for this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detach_keys: Option<String>,
    /// Notes for the user, for example that a configuration file cannot be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Which output to read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogReadParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// The name of a terminal beside the agent, also of one that is closed; the agent when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// The form of the output.
    #[serde(default)]
    pub form: LogForm,
    /// Keep the stream open, and send new output as it comes.
    #[serde(default)]
    pub follow: bool,
}

/// The form of a task's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogForm {
    /// Readable text.
    #[default]
    Text,
    /// Every byte as the agent wrote it.
    Raw,
    /// asciicast v2, without input.
    Cast,
    /// asciicast v2, with input.
    CastWithInput,
    /// The output of the last setup of the workspace.
    Setup,
}

/// Live keepers and processes that belong to no task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Orphans {
    /// The orphans.
    pub orphans: Vec<view::Orphan>,
}

/// One orphan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrphanRef {
    /// The id of its run.
    pub run: String,
}

/// An orphan that was given back to its task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrphanAdopted {
    /// The task, with its live run. Without a run if only a process was left: the daemon has ended the process, and
    /// the
    /// caller starts the task again.
    pub task: Option<view::Task>,
    /// The name of the terminal, if the orphan was a terminal beside an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Whose agents to list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentListParams {
    /// Use the configuration of the project that this directory is in, too, if it is in one.
    #[serde(default)]
    pub cwd: Option<Bytes>,
    /// The caller's `PATH`.
    #[serde(default)]
    pub path: Option<Bytes>,
}

/// The agents that a caller can use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentListing {
    /// The agents.
    pub agents: Vec<view::Agent>,
    /// Problems that the user should know about.
    pub warnings: Vec<String>,
}

/// How closely to look.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectTracesParams {
    /// Leave out what is in each workspace, its branch and its unsaved work. Much quicker: git is not asked about every one.
    #[serde(default)]
    pub without_work: bool,
}

/// Everything that Agency has made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Traces {
    /// In repositories, by project.
    pub projects: Vec<view::ProjectTraces>,
    /// Directories of runs whose task is gone.
    pub forgotten_runs: Vec<Bytes>,
    /// Live runs of other hosts that share this state directory.
    #[serde(default)]
    pub elsewhere: Vec<view::RunElsewhere>,
}

/// The repository to clean up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectEraseParams {
    /// The root directory of the project, as in the result of `project.traces`.
    pub root: Bytes,
    /// Remove workspaces even if they have uncommitted or unmerged work.
    #[serde(default)]
    pub discard: bool,
    /// Hidden refs that stay.
    #[serde(default)]
    pub spare: Vec<String>,
}

/// The outcome of a cleanup.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Erased {
    /// The removed things, one line for each.
    pub removed: Vec<String>,
    /// The things that stay, each with the reason.
    pub left: Vec<String>,
}

/// The commands and settings in a project's files that need consent, and whether the user has agreed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trust {
    /// The configuration file of the project.
    pub file: Bytes,
    /// The exact text to agree to; absent when the project has no such file.
    pub content: Option<Bytes>,
    /// The digest of everything that needs consent, for `trust.agree`; absent when nothing does.
    pub digest: Option<String>,
    /// The commands in the file and in task files that need consent, one line for each.
    pub commands: Vec<String>,
    /// The other settings in the file that need consent, one line for each.
    #[serde(default)]
    pub settings: Vec<String>,
    /// The user has agreed to everything.
    pub trusted: bool,
    /// The changes since the user last agreed; absent when the user never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
}

/// Lines that were added and removed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// The added lines.
    pub added: Vec<String>,
    /// The removed lines.
    pub removed: Vec<String>,
}

/// The projects whose files the user has agreed to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrustedProjects {
    /// The projects.
    pub projects: Vec<TrustedProject>,
}

/// A project whose files the user has agreed to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrustedProject {
    /// The root directory.
    pub root: Bytes,
    /// When the user last agreed, in RFC 3339.
    pub agreed_at: Option<String>,
    /// The settings of the project that the user last agreed to, one line for each.
    pub lines: Vec<String>,
    /// How many contents and commands the user has agreed to so far.
    pub agreements: u64,
}

/// The user's agreement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrustAgreeParams {
    /// The caller's directory.
    pub cwd: Bytes,
    /// The digest of the content that the user saw. The call fails if the content is another one by now.
    pub digest: Option<String>,
    /// Revoke every agreement for this project instead.
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

//! Events, in the one shape that every subscriber and `events.jsonl` get.
//!
//! Only defines events. The daemon decides when to announce one.
//!
//! Invariant: a kind or data that this version does not know never makes reading fail. Such an event becomes
//! [`EventData::Unknown`].

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::Bytes;
use crate::chat::{Action, Usage};
use crate::connection;
use crate::method::ReceiptKind;
use crate::view::{AgentState, Evidence, TaskStatus, Why};
use crate::work::TaskConflict;

/// One thing that happened: when, to which task, agent and run, and what it was (`type` and `data`).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Event {
    /// Counts up, also across daemons. 0 for an event that is sent but not kept: `SetupOutput`, `Missed`.
    pub seq: u64,
    /// RFC 3339.
    pub time: String,
    /// The root directory of the project that it concerns.
    pub project: Option<Bytes>,
    /// The id of the task that it concerns.
    pub task: Option<u64>,
    /// The name of the agent that it concerns.
    pub agent: Option<String>,
    /// The run that it concerns.
    pub run: Option<String>,
    /// The kind of event and its data.
    #[serde(flatten)]
    pub data: EventData,
}

/// An event as it was written, before its kind is looked up.
#[derive(Deserialize)]
struct WrittenEvent {
    seq: u64,
    time: String,
    project: Option<Bytes>,
    task: Option<u64>,
    agent: Option<String>,
    run: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    data: Value,
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let WrittenEvent { seq, time, project, task, agent, run, kind, data } =
            WrittenEvent::deserialize(deserializer)?;
        Ok(Event { seq, time, project, task, agent, run, data: EventData::from_parts(kind, data) })
    }
}

macro_rules! events {
    ($($(#[doc = $doc:literal])* $name:ident = $kind:literal : $data:ident;)*) => {
        /// The kind of event (`type`) and its `data`, whose shape depends on the kind.
        ///
        /// A newer version may send kinds that are not in this list: ignore them.
        #[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
        #[serde(tag = "type", content = "data")]
        pub enum EventData {
            $(
                $(#[doc = $doc])*
                #[serde(rename = $kind)]
                $name($data),
            )*
            /// An event of a kind, or with data, that this version does not know.
            #[serde(untagged)]
            #[schemars(skip)]
            Unknown(UnknownEvent),
        }

        /// The `type` of every kind of event.
        pub const KINDS: &[&str] = &[$($kind),*];

        impl EventData {
            /// The `type` in JSON.
            pub fn kind(&self) -> &str {
                match self {
                    $(EventData::$name(_) => $kind,)*
                    EventData::Unknown(event) => &event.kind,
                }
            }

            /// The `data` in JSON.
            pub fn data(&self) -> Value {
                let data = match self {
                    $(EventData::$name(data) => serde_json::to_value(data),)*
                    EventData::Unknown(event) => Ok(event.data.clone()),
                };
                data.unwrap_or_default()
            }

            fn known(kind: &str, data: Value) -> Option<EventData> {
                match kind {
                    $($kind => serde_json::from_value(data).ok().map(EventData::$name),)*
                    _ => None,
                }
            }
        }

        $(
            impl From<$data> for EventData {
                fn from(data: $data) -> Self {
                    EventData::$name(data)
                }
            }
        )*
    };
}

events! {
    /// The agent of a task changed its state.
    StateChange = "StateChange": StateChangeEvent;
    /// The status of a task changed.
    StatusChange = "StatusChange": StatusChangeEvent;
    /// The agent wrote a text in its conversation.
    Output = "Output": OutputEvent;
    /// The agent wrote down what it thinks.
    Thinking = "Thinking": ThinkingEvent;
    /// The agent called a tool. Comes again with the same id if the agent names the command later.
    ToolUse = "ToolUse": ToolUseEvent;
    /// A tool call of the agent ended.
    ToolResult = "ToolResult": ToolResultEvent;
    /// The agent asks for an approval, or such a request was decided or withdrawn.
    Approval = "Approval": ApprovalEvent;
    /// The agent is in another mode, or begins in one that the user should know about.
    ModeChanged = "ModeChanged": ModeChangedEvent;
    /// A turn of the agent ended.
    TurnEnd = "TurnEnd": TurnEndEvent;
    /// Something went wrong: with an agent, a connection, a task or its files.
    Error = "Error": ErrorEvent;
    /// The connection to an agent changed its status.
    AgentStatus = "agent:status": AgentStatusEvent;
    /// The setup or teardown commands of a workspace begin.
    SetupStarted = "SetupStarted": SetupStartedEvent;
    /// Setup or teardown commands printed something. Sent, but not kept: the setup log has it.
    SetupOutput = "SetupOutput": SetupOutputEvent;
    /// The setup or teardown commands of a workspace ended.
    SetupEnded = "SetupEnded": SetupEndedEvent;
    /// A message was queued until its agent is at its prompt.
    Queued = "Queued": QueuedEvent;
    /// A queued message was sent to its agent, or the agent did not take it.
    Sent = "Sent": SentEvent;
    /// A queued message was dropped by the user.
    Dropped = "Dropped": DroppedEvent;
    /// The work of a task was merged.
    Merged = "Merged": MergedEvent;
    /// Agency undid an interrupted merge.
    MergeTakenBack = "MergeTakenBack": MergeTakenBackEvent;
    /// New commits of the base were brought into a workspace.
    Synced = "Synced": SyncedEvent;
    /// The conflicts between workspaces of a project changed.
    Conflicts = "Conflicts": ConflictsEvent;
    /// A terminal was opened beside an agent.
    ShellOpened = "ShellOpened": ShellOpenedEvent;
    /// A terminal beside an agent ended: its program exited, or the user closed it.
    ShellEnded = "ShellEnded": ShellEndedEvent;
    /// The files of a workspace were kept at the end of a turn.
    TurnKept = "TurnKept": TurnKeptEvent;
    /// Agency restored the files of a workspace as they were after an earlier turn.
    TurnTakenBack = "TurnTakenBack": TurnTakenBackEvent;
    /// A task is about to be removed, and something in its workspace cannot be restored.
    RemovalStarted = "RemovalStarted": RemovalStartedEvent;
    /// A task was removed.
    TaskRemoved = "TaskRemoved": TaskRemovedEvent;
    /// A removed task was restored.
    TaskRestored = "TaskRestored": TaskRestoredEvent;
    /// Earlier files of a workspace were restored from the trash.
    FilesRestored = "FilesRestored": FilesRestoredEvent;
    /// This subscriber was too slow: so many events were not sent to it. Sent, but not kept.
    Missed = "Missed": MissedEvent;
}

impl EventData {
    /// Reads `type` and `data`, also as earlier versions wrote them.
    fn from_parts(kind: String, data: Value) -> EventData {
        let (name, data) = match (kind.as_str(), data) {
            // Connections had an error event of their own.
            ("error", data) => ("Error", data),
            ("TaskRemoved", Value::Null) => ("TaskRemoved", Value::Object(serde_json::Map::new())),
            known => known,
        };
        let known = EventData::known(name, data.clone());
        known.unwrap_or(EventData::Unknown(UnknownEvent { kind, data }))
    }
}

/// The agent of a task changed its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateChangeEvent {
    /// The state before.
    pub old: AgentState,
    /// The state from now on.
    pub new: AgentState,
    /// The reason why the agent needs the user; `null` unless it waits.
    pub why: Option<Why>,
    /// The evidence behind the new state.
    pub evidence: Evidence,
    /// Bytes of output before the change.
    #[serde(default)]
    pub offset: u64,
}

/// A terminal was opened beside an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShellOpenedEvent {
    /// The name of the terminal.
    pub name: String,
    /// The command that it was opened with; `null` for the user's own shell.
    pub command: Option<Vec<Bytes>>,
}

/// A terminal beside an agent ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShellEndedEvent {
    /// The name of the terminal.
    pub name: String,
    /// The exit status of its program.
    pub code: String,
}

/// The status of a task changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusChangeEvent {
    /// The status from now on.
    pub status: TaskStatus,
}

/// The agent wrote a text in its conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutputEvent {
    /// The text; long ones are cut.
    pub text: String,
}

/// The agent wrote down what it thinks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThinkingEvent {
    /// The text; long ones are cut.
    pub text: String,
}

/// The agent called a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolUseEvent {
    /// The id of the call; its `ToolResult` has the same.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The call in one line, as the agent names it.
    #[serde(default)]
    pub title: Option<String>,
    /// The command line, if the tool runs one.
    #[serde(default)]
    pub command: Option<String>,
    /// The arguments, as the agent gave them; long texts are cut.
    pub input: Value,
}

/// A tool call of the agent ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResultEvent {
    /// The id of the call.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The output of the tool; long texts are cut.
    pub output: String,
    /// Whether the call succeeded.
    pub success: bool,
}

/// The agent asks for an approval, or such a request was decided or withdrawn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalEvent {
    /// The id of the request.
    pub id: String,
    /// The tool that the agent wants to use; only while the request is open.
    #[serde(default)]
    pub tool: Option<String>,
    /// The request in one line; only while it is open.
    #[serde(default)]
    pub title: Option<String>,
    /// The action that the agent wants to take, as far as its request says it; only while the request is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Box<Action>>,
    /// The labels of the answers that the agent offers; only while the request is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// `null` while the request is open.
    #[serde(default)]
    pub decision: Option<ApprovalDecision>,
    /// The user or the rule that decided, if known.
    #[serde(default)]
    pub by: Option<String>,
    /// Why it was decided so, if a reason was given.
    #[serde(default)]
    pub why: Option<String>,
    /// The answer to a question.
    #[serde(default)]
    pub answer: Option<String>,
}

/// The result of an approval request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// The agent may do it.
    Allowed,
    /// The agent may not do it.
    Denied,
    /// The agent withdrew the request.
    Withdrawn,
}

/// The agent is in another mode, or begins in one that the user should know about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModeChangedEvent {
    /// The mode before; `null` at the beginning of a session.
    #[serde(default)]
    pub old: Option<String>,
    /// The mode from now on; `null` if the agent has no modes.
    #[serde(default)]
    pub new: Option<String>,
    /// The author of the change.
    pub by: ModeChanger,
    /// Why the user should look, for example because the agent may approve its own actions; `null` if there is no reason.
    #[serde(default)]
    pub warning: Option<String>,
}

/// The author of a change of mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModeChanger {
    /// The agent, by itself.
    Agent,
    /// Agency, so that the agent asks before it acts.
    Agency,
    /// The user.
    User,
}

/// A turn of the agent ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnEndEvent {
    /// The result text; long ones are cut.
    pub text: Option<String>,
    /// Why the turn ended, in the agent's word.
    pub reason: Option<String>,
    /// Whether the turn failed.
    pub failed: bool,
    /// Tokens and cost so far.
    pub usage: Usage,
    /// The agent's own id of the conversation.
    #[serde(default)]
    pub session_id: Option<String>,
}

/// Something went wrong: with an agent, a connection, a task or its files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorEvent {
    /// The error, in one sentence.
    pub message: String,
    /// Why, if known.
    #[serde(default)]
    pub cause: Option<String>,
    /// The agent whose connection failed; absent for other errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

impl ErrorEvent {
    /// An error of a task or a run.
    pub fn new(message: impl Into<String>, cause: impl Into<String>) -> ErrorEvent {
        ErrorEvent { message: message.into(), cause: Some(cause.into()), agent: None }
    }
}

/// The connection to an agent changed its status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentStatusEvent {
    /// The name of the agent.
    pub agent: String,
    /// The status from now on.
    pub status: connection::Status,
}

/// Whether commands prepare a workspace or clear it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SetupPhase {
    /// `workspace.setup`, before the agent starts.
    Setup,
    /// `workspace.teardown`, before the workspace is removed.
    Teardown,
}

/// How setup or teardown commands ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SetupOutcome {
    /// All of them succeeded.
    Done,
    /// One of them failed, or they took too long.
    Failed,
    /// The user stopped them.
    Stopped,
}

/// The setup or teardown commands of a workspace begin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetupStartedEvent {
    /// Setup or teardown.
    pub phase: SetupPhase,
    /// The `watch` words of the callers that wait for it.
    #[serde(default)]
    pub asked_by: Vec<String>,
}

/// Setup or teardown commands printed something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetupOutputEvent {
    /// Whole lines.
    pub text: String,
    /// Setup or teardown.
    pub phase: SetupPhase,
    /// The `watch` words of the callers that wait for it.
    #[serde(default)]
    pub asked_by: Vec<String>,
}

/// The setup or teardown commands of a workspace ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetupEndedEvent {
    /// How they ended.
    pub outcome: SetupOutcome,
    /// Setup or teardown.
    pub phase: SetupPhase,
    /// The `watch` words of the callers that wait for it.
    #[serde(default)]
    pub asked_by: Vec<String>,
}

/// A message was queued until its agent is at its prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedEvent {
    /// The id of the queued message.
    pub id: u64,
    /// The length of the message.
    pub bytes: u64,
}

/// A queued message was sent to its agent, or the agent did not take it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SentEvent {
    /// The id of the queued message.
    pub id: u64,
    /// How far the message got.
    pub receipt: ReceiptKind,
    /// How many bytes were sent, if any were.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// The evidence for the receipt, or why the message was refused.
    #[serde(default)]
    pub why: Option<String>,
}

/// A queued message was dropped by the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DroppedEvent {
    /// The id of the queued message.
    pub id: u64,
}

/// The work of a task was merged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MergedEvent {
    /// The branch that it was merged into, if known.
    #[serde(default)]
    pub into: Option<String>,
    /// The commit of that branch before; `null` after an interrupted merge.
    #[serde(default)]
    pub before: Option<String>,
    /// The commit of that branch after; `null` after an interrupted merge.
    #[serde(default)]
    pub after: Option<String>,
    /// The daemon that merged it was killed, and the next one found the work merged.
    #[serde(default)]
    pub cut_off: bool,
}

/// Agency undid an interrupted merge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MergeTakenBackEvent {
    /// The hidden ref that keeps the files that were in the checkout, if there were any.
    #[serde(default)]
    pub kept: Option<String>,
}

/// New commits of the base were brought into a workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SyncedEvent {
    /// The base.
    pub base: String,
    /// How many commits of the base came in.
    pub commits: u64,
    /// The commit of the task's branch before.
    pub before: String,
    /// The commit of the task's branch after.
    pub after: String,
}

/// The conflicts between workspaces of a project changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConflictsEvent {
    /// All conflicts of the project from now on.
    pub conflicts: Vec<TaskConflict>,
}

/// The files of a workspace were kept at the end of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnKeptEvent {
    /// The number of the snapshot.
    pub turn: u64,
    /// The hidden ref that keeps the files.
    pub reference: String,
    /// Files that could not be kept, and why.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Agency restored the files of a workspace as they were after an earlier turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnTakenBackEvent {
    /// The number of the turn after which the files were like this.
    pub turn: u64,
    /// The hidden ref that keeps the files that were replaced.
    pub kept_as: String,
}

/// A task is about to be removed, and something in its workspace cannot be restored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemovalStartedEvent {
    /// A sentence for each kind of loss: ignored files, pipes and sockets.
    pub lost: Vec<String>,
    /// The `watch` words of the callers that wait for it.
    #[serde(default)]
    pub asked_by: Vec<String>,
}

/// A task was removed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRemovedEvent {}

/// A removed task was restored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRestoredEvent {
    /// The id of the trash entry.
    pub entry: String,
}

/// Earlier files of a workspace were restored from the trash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilesRestoredEvent {
    /// The id of the trash entry.
    pub entry: String,
}

/// This subscriber was too slow: so many events were not sent to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissedEvent {
    /// How many events were not sent.
    pub count: u64,
}

/// An event of a kind, or with data, that this version does not know.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnknownEvent {
    /// The `type` in JSON.
    #[serde(rename = "type")]
    pub kind: String,
    /// The `data` in JSON.
    pub data: Value,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(kind: &str, data: Value) -> Event {
        let written = json!({
            "seq": 7, "time": "2026-01-02T03:04:05Z", "project": null, "task": 3, "agent": null, "run": null,
            "type": kind, "data": data,
        });
        serde_json::from_value(written).unwrap()
    }

    #[test]
    fn an_event_has_its_kind_and_its_data_beside_the_other_keys() {
        let event = read("Sent", json!({ "id": 1, "receipt": "refused", "why": "no agent" }));
        let sent =
            SentEvent { id: 1, receipt: ReceiptKind::Refused, bytes: None, why: Some("no agent".to_owned()) };
        assert_eq!(event.data, EventData::Sent(sent));
        let written = serde_json::to_value(&event).unwrap();
        assert_eq!((&written["seq"], &written["type"]), (&json!(7), &json!("Sent")));
        assert_eq!(
            written["data"],
            json!({ "id": 1, "receipt": "refused", "bytes": null, "why": "no agent" })
        );
        assert_eq!(serde_json::from_value::<Event>(written).unwrap(), event);
    }

    #[test]
    fn events_of_earlier_versions_can_still_be_read() {
        let error = read("error", json!({ "agent": "codex", "message": "gone", "cause": null }));
        let expected =
            ErrorEvent { message: "gone".to_owned(), cause: None, agent: Some("codex".to_owned()) };
        assert_eq!(error.data, EventData::Error(expected));
        assert_eq!(serde_json::to_value(&error).unwrap()["type"], "Error");
        assert_eq!(read("TaskRemoved", Value::Null).data, EventData::TaskRemoved(TaskRemovedEvent {}));
    }

    #[test]
    fn unknown_kinds_and_unknown_data_are_passed_on_unchanged() {
        for (kind, data) in [("Telepathy", json!({ "to": [1] })), ("Sent", json!("how?")), ("x", Value::Null)]
        {
            let event = read(kind, data.clone());
            assert_eq!((event.data.kind(), event.data.data()), (kind, data.clone()));
            assert!(matches!(event.data, EventData::Unknown(_)), "{kind}");
            let written = serde_json::to_value(&event).unwrap();
            assert_eq!((&written["type"], &written["data"]), (&json!(kind), &data));
        }
    }

    #[test]
    fn every_kind_is_named_once() {
        let mut kinds = KINDS.to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), KINDS.len());
    }
}

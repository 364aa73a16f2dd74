//! A conversation as callers see it: its entries, its approvals, its usage, and the agent's settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Bytes;
use crate::caller::TaskRef;

/// Which part of a conversation to read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadParams {
    /// The task whose conversation it is.
    #[serde(flatten)]
    pub task: TaskRef,
    /// Read all entries that are newer than this revision.
    #[serde(default)]
    pub since: Option<u64>,
    /// Without `since`: read the entries before this number. Absent: read from the end.
    #[serde(default)]
    pub before: Option<u64>,
    /// Without `since`: read at most so many entries, the last ones. Absent: 2000.
    #[serde(default)]
    pub limit: Option<u64>,
    /// With `since`: wait until there is a newer entry, at most 20 s.
    #[serde(default)]
    pub wait: bool,
    /// With `wait`: a person is looking at the conversation, so the daemon sends no notification about it.
    #[serde(default)]
    pub looking: bool,
    /// The part of a growing text that the reader has already. The answer leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<SeenText>,
    /// Also return the status of the session.
    #[serde(default)]
    pub status: bool,
}

impl ReadParams {
    /// Reads the last entries once.
    pub fn of(task: TaskRef) -> ReadParams {
        ReadParams {
            task,
            since: None,
            before: None,
            limit: None,
            wait: false,
            looking: false,
            seen: None,
            status: false,
        }
    }
}

/// How much of the text of an entry a reader has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeenText {
    /// The number of the entry.
    pub entry: u64,
    /// The number of bytes from the beginning of its text.
    pub bytes: u64,
}

/// A part of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Chat {
    /// The entries, in the order of the conversation. Texts of more than 100 kB lack their middle.
    pub entries: Vec<Entry>,
    /// The value for `since` in the next call.
    pub revision: u64,
    /// The number of entries in the whole conversation.
    pub total: u64,
    /// Tokens and cost of the whole conversation.
    pub usage: Usage,
    /// The agent's own id of the conversation.
    pub session_id: Option<String>,
    /// Whether the agent is live.
    pub live: bool,
    /// The status of the session, if the caller asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Box<SessionStatus>>,
}

/// The status of an agent's session, as the agent reports it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionStatus {
    /// Whether a turn is in progress.
    pub working: bool,
    /// The title that the agent gave to the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How full the model's context is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextUse>,
    /// The current mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The current model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The commands that the agent accepts as `/NAME` at the beginning of a message.
    #[serde(default)]
    pub commands: Vec<SlashCommand>,
    /// Whether the agent takes images.
    #[serde(default)]
    pub images: bool,
}

/// How full the model's context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextUse {
    /// Tokens in the context.
    pub used: u64,
    /// Tokens that fit into the context.
    pub size: u64,
}

/// A command that the agent accepts at the beginning of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlashCommand {
    /// The name without the slash.
    pub name: String,
    /// The effect of the command, in the agent's words.
    pub description: String,
    /// The text that belongs after the name, in the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// One entry of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// The position of the entry, counted from 1.
    pub number: u64,
    /// When the entry was added, in RFC 3339.
    pub time: String,
    /// The revision of the conversation that added or last changed the entry.
    pub revision: u64,
    /// The byte of the whole text at which `text` begins. Absent: at its first byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_from: Option<u64>,
    /// The length of the whole text in bytes. Absent if `text` is the whole text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_bytes: Option<u64>,
    /// The content of the entry.
    #[serde(flatten)]
    pub item: Item,
}

/// The content of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Item {
    /// A message to the agent.
    User {
        /// The message.
        text: String,
    },
    /// A message of the agent.
    Assistant {
        /// The message.
        text: String,
    },
    /// The agent's thoughts, if it shows them.
    Thinking {
        /// The thoughts.
        text: String,
    },
    /// The agent uses a tool.
    ToolCall(ToolCall),
    /// The agent's plan.
    Plan {
        /// The steps of the plan.
        steps: Vec<PlanStep>,
    },
    /// The agent requests an approval.
    Approval(Approval),
    /// A remark of the agent about itself, or of Agency about the conversation.
    Notice {
        /// The remark.
        text: String,
    },
    /// Something failed.
    Error {
        /// The failure in one sentence.
        message: String,
        /// Why it failed, if known.
        cause: Option<String>,
    },
    /// The end of a turn.
    TurnEnd(TurnEnd),
}

/// One use of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The agent's id of the call.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The call in one line.
    pub title: String,
    /// The arguments of the tool.
    pub input: Value,
    /// How far the call is.
    pub status: ToolStatus,
    /// The output of the tool so far.
    pub output: Option<String>,
}

/// How far a tool call, or a step of a plan, is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// It has not begun.
    Pending,
    /// It is in progress.
    Running,
    /// It succeeded.
    Completed,
    /// It failed, or the agent ended before it.
    Failed,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanStep {
    /// The step.
    pub text: String,
    /// How far the step is.
    pub status: ToolStatus,
}

/// An action that the agent may take only if a user or a rule allows it, or a question that only a user can answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// The id of the request.
    pub id: String,
    /// The tool that the agent wants to use.
    pub tool: String,
    /// The request in one line.
    pub title: String,
    /// The arguments of the tool, or the questions.
    pub input: Value,
    /// The action that the agent wants to take, as far as its request says it.
    #[serde(default)]
    pub action: Box<Action>,
    /// The answers that the agent offers.
    pub choices: Vec<Choice>,
    /// The answer. Absent while the request is open.
    pub outcome: Option<ApprovalOutcome>,
}

/// An action that an agent wants to take. Rules match the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Action {
    /// The command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The files, as the agent names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The change of the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The address that it opens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The tool of an MCP server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpTool>,
    /// The directory in which the command runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The arguments of a tool that is none of the above, as one line of JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The agent's own words about it. They may be wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The action in one line; the title of the request if that says it.
    #[serde(default)]
    pub summary: String,
}

/// A tool of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpTool {
    /// The name of the server.
    pub server: String,
    /// The name of the tool.
    pub tool: String,
}

/// One answer that the agent offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// The agent's id of the choice.
    pub id: String,
    /// The effect of the choice.
    pub kind: ChoiceKind,
    /// The choice in words.
    pub label: String,
}

/// The effect of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceKind {
    /// Allows this action.
    AllowOnce,
    /// Allows this action and similar ones later.
    AllowAlways,
    /// Refuses this action.
    RejectOnce,
    /// Refuses this action and similar ones later.
    RejectAlways,
    /// The agent does not say what it does.
    Other,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalOutcome {
    /// Whether the agent may do it.
    pub allowed: bool,
    /// Whether the agent withdrew the request before it got an answer.
    pub cancelled: bool,
    /// The reason that was given with the answer.
    pub message: Option<String>,
    /// The user or the rule that answered, as it named itself.
    pub by: Option<String>,
    /// The answer to a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnEnd {
    /// The agent's last message, or its error.
    pub text: Option<String>,
    /// Why the turn ended, in the agent's own word.
    pub reason: Option<String>,
    /// Whether the turn failed.
    pub failed: bool,
    /// The tokens of this turn, and the cost of the whole conversation.
    pub usage: Usage,
}

/// Tokens and cost, as the agent reports them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens that the model read, without cached ones.
    pub input_tokens: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// Tokens that the model read from its cache.
    pub cached_tokens: u64,
    /// The cost of the whole conversation so far, in US dollars.
    pub cost_usd: Option<f64>,
}

/// Whose approvals to list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalListParams {
    /// The task. Absent: every task of every project.
    #[serde(default)]
    pub task: Option<TaskRef>,
}

/// Open requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approvals {
    /// The requests that wait for an answer.
    pub approvals: Vec<OpenApproval>,
}

/// An open request and its task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenApproval {
    /// The id of the task.
    pub task: u64,
    /// The slug of the task.
    pub slug: String,
    /// The root directory of the project.
    pub project: Bytes,
    /// The request.
    #[serde(flatten)]
    pub approval: Approval,
    /// In the reply to a denial: the daemon has queued its reason as the next message, because the protocol cannot carry it
    /// with the denial.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reason_queued: bool,
}

/// Answered requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decisions {
    /// The answered requests, oldest first.
    pub decisions: Vec<DecidedApproval>,
}

/// An answered request, its answer and its task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecidedApproval {
    /// When it was answered, in RFC 3339.
    pub time: String,
    /// The id of the task.
    pub task: u64,
    /// The slug of the task.
    pub slug: String,
    /// The root directory of the project.
    pub project: Bytes,
    /// The name of the agent.
    pub agent: String,
    /// The request and its answer.
    #[serde(flatten)]
    pub approval: Approval,
}

/// Rules that past decisions suggest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suggestions {
    /// The rules, the most used one first.
    pub suggestions: Vec<Suggestion>,
}

/// A rule that the user may want.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suggestion {
    /// The rule, for a configuration file.
    pub toml: String,
    /// The pattern of the rule.
    pub pattern: String,
    /// The number of requests that the user allowed and that the rule covers. It covers no request that was denied.
    pub allowed: u64,
    /// Some of the commands that the rule covers.
    pub examples: Vec<String>,
}

/// An answer to a request of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerParams {
    /// The task of the agent.
    pub task: TaskRef,
    /// The id of the request. Absent: the request that has waited longest.
    #[serde(default)]
    pub id: Option<String>,
    /// Whether the agent may do it.
    pub allow: bool,
    /// Allow it for the rest of the agent's session, if the agent can remember that.
    #[serde(default)]
    pub always: bool,
    /// The reason. The agent reads it with a denial, and the conversation keeps it.
    #[serde(default)]
    pub message: Option<String>,
    /// The id or the label of the choice to take. It counts instead of `allow` and `always`.
    #[serde(default)]
    pub option: Option<String>,
    /// The answers to questions, by the text of the question.
    #[serde(default)]
    pub answers: Option<std::collections::BTreeMap<String, String>>,
    /// The name of the user or program that answers. The conversation keeps it.
    #[serde(default)]
    pub by: Option<String>,
}

/// Shows or changes a setting of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingParams {
    /// The task of the agent.
    pub task: TaskRef,
    /// The new value, as the agent names it. Absent: only show the setting.
    #[serde(default)]
    pub name: Option<String>,
}

/// A setting of an agent that the user can change while the agent lives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// The current value. Absent if the agent has not reported it.
    pub current: Option<String>,
    /// The values that the agent is known to accept. It may accept others.
    pub offered: Vec<Offer>,
}

/// One value of a setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Offer {
    /// The agent's id of the value.
    pub id: String,
    /// The name of the value for people.
    pub name: String,
}

/// Shows the options of an agent's session, or changes one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OptionParams {
    /// The task of the agent.
    pub task: TaskRef,
    /// The id or the name of the option. Absent: show all options.
    #[serde(default)]
    pub option: Option<String>,
    /// The new value, by its id or its name. Absent: only show the option.
    #[serde(default)]
    pub value: Option<String>,
}

/// The options of an agent's session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentOptions {
    /// The options, as the agent lists them.
    pub options: Vec<AgentOption>,
}

/// An option of an agent's session, such as its mode, its model or its effort.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentOption {
    /// The agent's id of the option.
    pub id: String,
    /// The name of the option for people.
    pub name: String,
    /// The effect of the option, in the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The current value. Absent if the agent has not reported it.
    pub current: Option<String>,
    /// The values that the agent offers.
    pub offered: Vec<Offer>,
}

/// An image in a message.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Image {
    /// The media type, for example `image/png`.
    pub media_type: String,
    /// The file in Base64.
    pub data: String,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The size only: Debug output ends up in logs.
        write!(f, "<{}, {} bytes in Base64>", self.media_type, self.data.len())
    }
}

//! A conversation as callers see it: entries that are added and some that grow, approvals, what it cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Bytes;
use crate::method::TaskRef;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReadParams {
    #[serde(flatten)]
    pub task: TaskRef,
    /// Only what is newer than this revision, however much that is.
    #[serde(default)]
    pub since: Option<u64>,
    /// Without `since`: the entries before this number; from the end when absent.
    #[serde(default)]
    pub before: Option<u64>,
    /// Without `since`: at most so many, the last ones; 2000 when absent.
    #[serde(default)]
    pub limit: Option<u64>,
    /// With `since`: answer once there is something newer, at the latest after 20 s.
    #[serde(default)]
    pub wait: bool,
    /// With `wait`: a person looks at it meanwhile and needs not be told of what it waits for.
    #[serde(default)]
    pub looking: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Chat {
    /// In the order of the conversation. Texts of more than 100 kB are cut.
    pub entries: Vec<Entry>,
    /// What to ask for `since` the next time.
    pub revision: u64,
    /// Entries of the whole conversation.
    pub total: u64,
    pub usage: Usage,
    /// The agent's own name of the conversation.
    pub session_id: Option<String>,
    /// The agent lives.
    pub live: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Counts from 1.
    pub number: u64,
    /// RFC 3339.
    pub time: String,
    pub revision: u64,
    #[serde(flatten)]
    pub item: Item,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Item {
    User {
        text: String,
    },
    Assistant {
        text: String,
    },
    Thinking {
        text: String,
    },
    ToolCall(ToolCall),
    Plan {
        steps: Vec<PlanStep>,
    },
    Approval(Approval),
    /// Said by the agent about itself, or by us about the conversation.
    Notice {
        text: String,
    },
    Error {
        message: String,
        cause: Option<String>,
    },
    TurnEnd(TurnEnd),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// What it does, in a line.
    pub title: String,
    pub input: Value,
    pub status: ToolStatus,
    pub output: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    Pending,
    Running,
    Completed,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanStep {
    pub text: String,
    pub status: ToolStatus,
}

/// Something that the agent may do only if somebody says so, or a question that only a person can answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    pub id: String,
    pub tool: String,
    /// In a line, for people.
    pub title: String,
    pub input: Value,
    pub choices: Vec<Choice>,
    /// Absent while it is open.
    pub outcome: Option<Outcome>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    pub id: String,
    pub kind: ChoiceKind,
    pub label: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    pub allowed: bool,
    /// Withdrawn by the agent: nobody decided.
    pub cancelled: bool,
    pub message: Option<String>,
    /// Who decided, as they named themselves.
    pub by: Option<String>,
    /// What a question was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnEnd {
    pub text: Option<String>,
    /// Why it ended, in the agent's word.
    pub reason: Option<String>,
    pub failed: bool,
    pub usage: Usage,
}

/// As the agents report it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_tokens: u64,
    /// Of the whole conversation so far, in US dollars.
    pub cost_usd: Option<f64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalListParams {
    /// Absent: of every task of every project.
    #[serde(default)]
    pub task: Option<TaskRef>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approvals {
    pub approvals: Vec<OpenApproval>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenApproval {
    pub task: u64,
    pub slug: String,
    pub project: Bytes,
    #[serde(flatten)]
    pub approval: Approval,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decisions {
    pub decisions: Vec<DecidedApproval>,
}

/// Something that an agent asked, and what it was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecidedApproval {
    /// RFC 3339, when it was answered.
    pub time: String,
    pub task: u64,
    pub slug: String,
    pub project: Bytes,
    pub agent: String,
    #[serde(flatten)]
    pub approval: Approval,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerParams {
    pub task: TaskRef,
    /// Absent: the one that has waited longest.
    #[serde(default)]
    pub id: Option<String>,
    pub allow: bool,
    /// Allowed for the rest of the agent's session, as far as the agent knows how.
    #[serde(default)]
    pub always: bool,
    /// Told to the agent with a denial; kept as the reason.
    #[serde(default)]
    pub message: Option<String>,
    /// The answers to a question, by the question's text.
    #[serde(default)]
    pub answers: Option<std::collections::BTreeMap<String, String>>,
    /// Who answers, for those who ask later.
    #[serde(default)]
    pub by: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingParams {
    pub task: TaskRef,
    /// What it is to be set to, as the agent calls it; absent: only shown.
    #[serde(default)]
    pub name: Option<String>,
}

/// Something about an agent that can be chosen while it lives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// As far as the agent has told.
    pub current: Option<String>,
    /// What it is known to take; it may take more.
    pub offered: Vec<Offer>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Offer {
    pub id: String,
    /// For people.
    pub name: String,
}

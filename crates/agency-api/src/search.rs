//! Searching in tasks, conversations and the output of terminals.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::caller::TaskRef;

/// The words of a search, and where to search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchParams {
    /// The words. A hit has all of them, and the last one may be the beginning of a longer word. Double quotes make a
    /// phrase.
    pub words: String,
    /// Search this task only.
    #[serde(default)]
    pub task: Option<TaskRef>,
    /// Search the project of this directory only. If `task` is absent too: search all projects.
    #[serde(default)]
    pub cwd: Option<Bytes>,
    /// The largest number of hits, the newest ones. Absent: 20. At most 1000.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// The hits of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// The hits, newest first.
    pub hits: Vec<Hit>,
    /// Whether there are more hits than `limit`.
    pub more: bool,
    /// The number of tasks that the index does not have completely yet. Their hits may be missing.
    pub unread: u64,
}

/// One place where the words were found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    /// The id of the task.
    pub task: u64,
    /// The slug of the task.
    pub slug: String,
    /// The root directory of the project.
    pub project: Bytes,
    /// The number of the entry in the conversation. Absent if the task file or a terminal has the words.
    pub number: Option<u64>,
    /// The kind of text.
    pub kind: HitKind,
    /// When it was written, in RFC 3339, if known. `pty.screen` shows a terminal at that time.
    pub time: Option<String>,
    /// The words and some text around them.
    pub snippet: Vec<Piece>,
}

/// The kind of text that has the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HitKind {
    /// The name, labels and text of a task.
    Task,
    /// A message to the agent.
    User,
    /// A message of the agent.
    Assistant,
    /// The agent's thoughts.
    Thinking,
    /// A tool call.
    ToolCall,
    /// A plan.
    Plan,
    /// A request for an approval.
    Approval,
    /// A notice.
    Notice,
    /// An error.
    Error,
    /// Text that an agent printed or painted in its terminal.
    Output,
}

/// A part of a snippet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// Whether the text is one of the words.
    pub hit: bool,
}

impl HitKind {
    /// Every kind.
    pub const ALL: [HitKind; 10] = [
        HitKind::Task,
        HitKind::User,
        HitKind::Assistant,
        HitKind::Thinking,
        HitKind::ToolCall,
        HitKind::Plan,
        HitKind::Approval,
        HitKind::Notice,
        HitKind::Error,
        HitKind::Output,
    ];

    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            HitKind::Task => "task",
            HitKind::User => "user",
            HitKind::Assistant => "assistant",
            HitKind::Thinking => "thinking",
            HitKind::ToolCall => "tool_call",
            HitKind::Plan => "plan",
            HitKind::Approval => "approval",
            HitKind::Notice => "notice",
            HitKind::Error => "error",
            HitKind::Output => "output",
        }
    }
}

//! Words found in what was said to agents and by them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::method::TaskRef;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchParams {
    /// All of them have to be there, the last one may go on; between double quotes stands a phrase.
    pub words: String,
    /// Only in this task.
    #[serde(default)]
    pub task: Option<TaskRef>,
    /// Only in the project around this directory; in all projects when both are absent.
    #[serde(default)]
    pub cwd: Option<Bytes>,
    /// At most so many hits, the newest; 20 when absent, 1000 at most.
    #[serde(default)]
    pub limit: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// The newest first.
    pub hits: Vec<Hit>,
    /// There are more than were asked for.
    pub more: bool,
    /// Tasks that are still being read, so that hits of theirs may be missing.
    pub unread: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    pub task: u64,
    pub slug: String,
    pub project: Bytes,
    /// The number of the entry in the conversation; absent where the task's own text has it.
    pub number: Option<u64>,
    pub kind: HitKind,
    /// RFC 3339, where it is known.
    pub time: Option<String>,
    /// The words with some of what stands around them.
    pub snippet: Vec<Piece>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HitKind {
    /// The task's name, labels and text.
    Task,
    User,
    Assistant,
    Thinking,
    ToolCall,
    Plan,
    Approval,
    Notice,
    Error,
}

/// A part of a snippet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Piece {
    pub text: String,
    /// It is one of the words that were asked for.
    pub hit: bool,
}

impl HitKind {
    pub const ALL: [HitKind; 9] = [
        HitKind::Task,
        HitKind::User,
        HitKind::Assistant,
        HitKind::Thinking,
        HitKind::ToolCall,
        HitKind::Plan,
        HitKind::Approval,
        HitKind::Notice,
        HitKind::Error,
    ];

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
        }
    }
}

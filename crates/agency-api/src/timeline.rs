//! The timeline of a task: what happened to its agents, on one time axis.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::caller::TaskRef;
use crate::chat::Usage;
use crate::view::{StateName, Why};

/// Which part of a timeline to show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// Only entries from this time on, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The largest number of entries, the newest ones. Absent: 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The history of a task's agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// Oldest first.
    pub entries: Vec<TimelineEntry>,
    /// Whether there are earlier entries than `limit` lets through.
    pub more: bool,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineEntry {
    /// When, in RFC 3339. `pty.screen` and `task.explain` show a terminal and its state at that time.
    pub time: String,
    /// The run, if the source of the entry names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The kind of entry, and its details.
    #[serde(flatten)]
    pub moment: Moment,
}

/// The kind of a timeline's entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Moment {
    /// A run started.
    Started {
        /// The name of the agent.
        agent: String,
        /// How Agency talks to it: `terminal`, `stream-json` or `acp`.
        driver: String,
    },
    /// The agent changed its state.
    State {
        /// The new state.
        state: StateName,
        /// The reason why the agent needs the user, if it waits.
        why: Option<Why>,
        /// A text of the evidence behind it, for example a question.
        detail: Option<String>,
    },
    /// A user or a program sent a message. Keys that a viewer typed are not here.
    Sent {
        /// The message; a long one is cut.
        text: String,
    },
    /// The agent asked for an approval.
    Asked {
        /// The request in one line.
        title: String,
    },
    /// An approval was answered.
    Decided {
        /// The request in one line.
        title: String,
        /// Whether the agent may do it.
        allowed: bool,
        /// Whether the agent withdrew the request before it got an answer.
        cancelled: bool,
        /// The user or the rule that answered, if known.
        by: Option<String>,
    },
    /// A turn of a conversation ended.
    TurnEnd {
        /// Whether the turn failed.
        failed: bool,
        /// The tokens of this turn, and the cost of the whole conversation.
        usage: Usage,
    },
    /// The agent ended.
    Exited {
        /// The exit code or the signal, if known.
        code: Option<String>,
    },
}

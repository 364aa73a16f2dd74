//! What people are told about agents that need them, as their own programs and addresses get it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::config::Overrides;

/// As that of `--json`.
pub const SCHEMA_VERSION: u32 = 1;

/// Given to `notify.command` on standard input and posted to `notify.webhook`: one JSON document.
///
/// What speaks of one task is empty in a summary, which has several in `tasks`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    #[schemars(skip)]
    pub schema_version: u32,
    #[serde(rename = "type")]
    pub kind: NoticeKind,
    /// RFC 3339.
    pub time: String,
    /// One line for people, without control characters.
    pub text: String,
    #[serde(flatten)]
    pub about: NoticeTask,
    /// Every task that this is about, the longest wait first; none in a test.
    pub tasks: Vec<NoticeTask>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// An agent waits for its user.
    NeedsInput,
    /// An agent ended, and nobody had asked for that.
    Exited,
    /// Several agents at once.
    Summary,
    /// `agency notify test`.
    Test,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeTask {
    /// The project's root directory.
    pub project: Option<Bytes>,
    pub task: Option<u64>,
    pub slug: Option<String>,
    /// The agent's name as people see it.
    pub agent: Option<String>,
    pub run: Option<String>,
    /// `needs_input` or `exited`.
    pub state: Option<String>,
    /// `prompt`, `permission`, `question`, `finished`, `error`, `unknown` or `exited`.
    pub why: Option<String>,
    /// A line that says more, where something is known: the question, the exit code.
    pub detail: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestParams {
    /// What the call itself says of `[notify]` is tried instead of what is written down.
    #[serde(default)]
    pub overrides: Overrides,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tested {
    pub ways: Vec<Way>,
    /// `notify.terminal`; trying it is for whoever has the terminal.
    pub terminal: String,
    pub warnings: Vec<String>,
}

/// The ways to reach people as they are set up, and how the last notice fared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ways {
    pub ways: Vec<Way>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Way {
    /// `desktop`, `command`, `webhook` or `terminal`.
    pub way: String,
    pub outcome: WayOutcome,
    /// Through what, or why not.
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WayOutcome {
    /// Handed over without complaint.
    Sent,
    Failed,
    /// Not wanted, or not there.
    Off,
    /// Set up, and nothing was sent yet.
    Unused,
}

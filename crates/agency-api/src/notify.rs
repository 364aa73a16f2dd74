//! Notifications: the JSON document for commands and webhooks, and the state of each channel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::config::Overrides;

/// The version of the document, the same as that of `--json`.
pub const SCHEMA_VERSION: u32 = 1;

/// A notification: the JSON document that `notify.command` reads on standard input and that Agency posts to
/// `notify.webhook`.
///
/// In a summary, which is about several tasks, the keys of a single task are null and `tasks` has all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// The version of the document.
    #[schemars(skip)]
    pub schema_version: u32,
    /// Why Agency sends it.
    #[serde(rename = "type")]
    pub kind: NoticeKind,
    /// When Agency sent it, in RFC 3339.
    pub time: String,
    /// One line for people, without control characters.
    pub text: String,
    /// The task, if there is only one.
    #[serde(flatten)]
    pub about: NoticeTask,
    /// Every task that the notification is about, the longest wait first. Empty in a test.
    pub tasks: Vec<NoticeTask>,
}

/// Why Agency sends a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// An agent waits for the user.
    NeedsInput,
    /// An agent ended, and the user had not stopped it.
    Exited,
    /// Several agents need the user at the same time.
    Summary,
    /// The user ran `agency notify test`.
    Test,
}

/// A task in a notification.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeTask {
    /// The root directory of the project.
    pub project: Option<Bytes>,
    /// The id of the task.
    pub task: Option<u64>,
    /// The slug of the task.
    pub slug: Option<String>,
    /// The name of the agent for people.
    pub agent: Option<String>,
    /// The id of the run.
    pub run: Option<String>,
    /// The state of the agent: `needs_input` or `exited`.
    pub state: Option<String>,
    /// Why the agent needs the user: `prompt`, `permission`, `question`, `finished`, `error`, `unknown` or `exited`.
    pub why: Option<String>,
    /// One line with more, for example the question or the exit code.
    pub detail: Option<String>,
}

/// A test of the channels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestParams {
    /// Configuration of this call. Its `[notify]` keys override those in the files.
    #[serde(default)]
    pub overrides: Overrides,
}

/// The result of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelTest {
    /// The channels that the daemon tried.
    pub ways: Vec<ChannelState>,
    /// The value of `notify.terminal`. The caller has the terminal, so the caller tries it.
    pub terminal: String,
    /// Problems in the configuration.
    pub warnings: Vec<String>,
}

/// The channels as they are configured, and the result of the last notification on each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelStates {
    /// The channels.
    pub ways: Vec<ChannelState>,
}

/// One channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelState {
    /// The name of the channel: `desktop`, `command`, `webhook` or `terminal`.
    pub way: String,
    /// The result of the last notification.
    pub outcome: ChannelOutcome,
    /// The program or address that took it, or the reason for the result.
    pub detail: String,
}

/// The result of a notification on one channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChannelOutcome {
    /// The channel took the notification.
    Sent,
    /// The channel did not take it.
    Failed,
    /// The channel is not configured, or not available here.
    Off,
    /// The channel is configured, and no notification has been sent on it yet.
    Unused,
}

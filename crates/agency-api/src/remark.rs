//! Remarks of the user about a task's work, as callers make and see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::caller::TaskRef;

/// Remarks to add: all of them, or none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemarkAddParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// The remarks.
    pub remarks: Vec<NewRemark>,
}

/// A remark to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewRemark {
    /// The file that it is about, relative to the workspace. Absent: the whole change.
    #[serde(default)]
    pub file: Option<String>,
    /// The line that it is about, from 1. Absent: the whole file.
    #[serde(default)]
    pub line: Option<u64>,
    /// The side of the diff on which the line is.
    #[serde(default)]
    pub side: DiffSide,
    /// The text of the line, as the user saw it: the line may have moved since. Absent: the line that is there now.
    #[serde(default)]
    pub quote: Option<String>,
    /// The user's words.
    pub text: String,
}

/// The side of a diff.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffSide {
    /// A line of the present file.
    #[default]
    New,
    /// A line that the work removed.
    Old,
}

/// Which remark to drop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemarkDropParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// The number of the remark.
    pub id: u64,
}

/// Which remarks to send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemarkSendParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// The numbers of remarks that are sent even if they are outdated. All open remarks are sent in any case.
    #[serde(default)]
    pub outdated: Vec<u64>,
}

/// The remarks about the work of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Remarks {
    /// The remarks, oldest first.
    pub remarks: Vec<Remark>,
}

/// A remark about the work of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Remark {
    /// The number of the remark among those of its task.
    pub id: u64,
    /// Whether the remark was sent, and whether its line is still there.
    pub state: RemarkState,
    /// The file that it is about, relative to the workspace. Absent: the whole change.
    pub file: Option<String>,
    /// The present number of its line, or the last known one. Absent: the whole file.
    pub line: Option<u64>,
    /// The side of the diff on which the line is.
    pub side: DiffSide,
    /// The beginning of the line.
    pub quote: Option<String>,
    /// The user's words.
    pub text: String,
    /// When the user made it, in RFC 3339.
    pub time: String,
    /// When it was queued or delivered, in RFC 3339.
    pub sent_at: Option<String>,
}

/// The state of a remark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RemarkState {
    /// It was not sent.
    Open,
    /// It was not sent, and its line is gone.
    Outdated,
    /// The agent has it, or it waits in the queue of messages.
    Sent,
}

/// Remarks that were sent as one message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemarksSent {
    /// The remarks.
    pub remarks: Vec<Remark>,
    /// The number of the message in the queue, and what it waits for.
    pub why: Option<String>,
}

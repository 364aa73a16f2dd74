//! A queued message, as callers see it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;

/// A message that waits until its agent is at its prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Queued {
    /// The number of the message, for `queue.drop`.
    pub id: u64,
    /// The id of the task.
    pub task: u64,
    /// The slug of the task.
    pub slug: String,
    /// The root directory of the project.
    pub project: Bytes,
    /// The message.
    pub text: Bytes,
    /// When the message was queued, in RFC 3339.
    pub time: String,
    /// The daemon may have typed the message already. It sends neither this message nor later ones until this one is
    /// dropped.
    pub uncertain: bool,
    /// The task has no live agent: the message waits until one is started.
    #[serde(default)]
    pub stranded: bool,
}

//! The summary of everything that happened since a time: finished, failed, waiting, merged, collisions, cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::chat::Usage;
use crate::desk::ProjectConflict;
use crate::view::Task;

/// The time from which on the caller wants to know.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecentParams {
    /// A time in RFC 3339. Absent: when a user last looked at a task, or a day ago if no user ever did.
    #[serde(default)]
    pub since: Option<String>,
}

/// Everything that matters since a time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recent {
    /// The time, in RFC 3339.
    pub since: String,
    /// Agents that finished, the last time each.
    pub finished: Vec<TaskMoment>,
    /// Agents that failed, the last time each.
    pub failed: Vec<TaskMoment>,
    /// Tasks that were merged.
    pub merged: Vec<TaskMoment>,
    /// The agents that wait for the user now.
    pub waiting: Vec<Task>,
    /// The conflicts that were found since then and that still exist.
    pub collisions: Vec<ProjectConflict>,
    /// Tokens and cost since then, of agents that report them.
    pub usage: Usage,
}

/// Something that happened to a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskMoment {
    /// The root directory of the project.
    pub project: Bytes,
    /// The id of the task.
    pub task: u64,
    /// The slug of the task. Absent if the task is gone.
    pub slug: Option<String>,
    /// When it happened, in RFC 3339.
    pub time: String,
    /// More about it: how it ended, or the branch.
    pub detail: Option<String>,
}

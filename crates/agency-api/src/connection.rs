//! Connections: the shared processes of ACP agents, as callers see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// The connections.
    pub connections: Vec<Connection>,
}

/// One connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connection {
    /// The name that `connection.reconnect` takes: the agent, and the task if the connection serves only that task.
    pub name: String,
    /// The name of the agent in the configuration.
    pub agent: String,
    /// The name of the agent for people.
    pub display_name: String,
    /// The status of the connection.
    pub status: Status,
    /// The number of tasks that have a session on the connection.
    pub sessions: u64,
    /// The name and version that the agent reported.
    pub version: Option<String>,
    /// The last error, until the connection works again.
    pub error: Option<String>,
    /// The time until the next attempt, while `status` is `reconnecting`.
    pub retry_in_ms: Option<u64>,
    /// The number of the next attempt, counted from 1.
    pub attempt: Option<u32>,
}

/// The status of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// No process, because no task needs one.
    Idle,
    /// The process is starting.
    Starting,
    /// The agent has introduced itself.
    Connected,
    /// The process ended, and the daemon does not start it again by itself.
    Disconnected,
    /// The process ended, and the daemon will start it again.
    Reconnecting,
}

impl Status {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Idle => "idle",
            Status::Starting => "starting",
            Status::Connected => "connected",
            Status::Disconnected => "disconnected",
            Status::Reconnecting => "reconnecting",
        }
    }
}

/// One connection, by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionRef {
    /// The name of the connection.
    pub name: String,
}

/// The sessions that an agent knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sessions {
    /// The sessions, as the agent lists them.
    pub sessions: Vec<Value>,
}

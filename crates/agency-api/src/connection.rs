//! Connections to agents that serve many sessions with one process, as callers see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    pub connections: Vec<Connection>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connection {
    /// What `connection.reconnect` takes: the agent's name, and the task's where it has one of its own.
    pub name: String,
    pub agent: String,
    pub display_name: String,
    pub status: Status,
    /// Tasks that have a session there.
    pub sessions: u64,
    /// What the agent calls itself, once it has answered.
    pub version: Option<String>,
    /// What went wrong last, until it is connected again.
    pub error: Option<String>,
    /// When the next attempt is made, while it is reconnecting.
    pub retry_in_ms: Option<u64>,
    /// The next attempt, counted from 1.
    pub attempt: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Idle,
    Starting,
    Connected,
    Disconnected,
    Reconnecting,
}

impl Status {
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionRef {
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sessions {
    /// As the agent lists them.
    pub sessions: Vec<Value>,
}

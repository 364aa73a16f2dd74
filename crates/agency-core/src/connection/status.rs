//! The status of a connection and its errors, in the words that people read.

use serde::{Deserialize, Serialize};

/// The status of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// No task has needed it, or it was shut down.
    Idle,
    /// The process starts, or has not answered the greeting yet.
    Starting,
    /// The agent has answered the greeting.
    Connected,
    /// There is no process, and no retry is planned.
    Disconnected,
    /// It was lost, and is being restarted.
    Reconnecting,
}

impl Status {
    /// The word in events and lists.
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

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConnectError {
    /// A sentence that says what failed.
    pub message: String,
    /// Why, if it is known.
    pub cause: Option<String>,
}

impl ConnectError {
    fn new(message: String, cause: Option<String>) -> ConnectError {
        ConnectError { message, cause: cause.filter(|cause| !cause.is_empty()) }
    }

    /// The program of the agent does not exist.
    pub fn not_installed(agent: &str) -> ConnectError {
        ConnectError::new(format!("Could not start {agent}. Check that it's installed."), None)
    }

    pub(super) fn not_started(agent: &str, not_found: bool, cause: String) -> ConnectError {
        let message = match not_found {
            true => ConnectError::not_installed(agent).message,
            false => format!("Could not start {agent}"),
        };
        ConnectError::new(message, Some(cause))
    }

    pub(super) fn not_connected(agent: &str, cause: String) -> ConnectError {
        ConnectError::new(format!("Could not connect to {agent}"), Some(cause))
    }

    pub(super) fn lost(agent: &str, cause: String) -> ConnectError {
        ConnectError::new(format!("Lost the connection to {agent}"), Some(cause))
    }

    pub(super) fn looping(agent: &str) -> ConnectError {
        let cause = "it was restarted too often within a few minutes";
        ConnectError::new(format!("Gave up on {agent}"), Some(cause.to_owned()))
    }

    pub(super) fn shut_down(agent: &str) -> ConnectError {
        ConnectError::new(format!("The connection to {agent} is being shut down"), None)
    }
}

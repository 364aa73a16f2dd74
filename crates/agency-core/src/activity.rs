//! Whether an agent works or waits, and why it waits.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why an agent waits for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// It is at its own prompt and wants the next task.
    Prompt,
    /// It asks for permission to act.
    Permission,
    /// A choice, an answer, a login, a password.
    Question,
    /// A turn that ended.
    Finished,
    /// It reports an error.
    Error,
    /// The reason is not known.
    Unknown,
}

impl Why {
    /// The word that people see.
    pub fn as_str(self) -> &'static str {
        match self {
            Why::Prompt => "prompt",
            Why::Permission => "permission",
            Why::Question => "question",
            Why::Finished => "finished",
            Why::Error => "error",
            Why::Unknown => "unknown",
        }
    }

    /// Whether a dialog is open, so that typed text would answer the dialog.
    pub fn is_dialog(self) -> bool {
        matches!(self, Why::Permission | Why::Question)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Whether an agent works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// It works.
    Working,
    /// It waits for the user.
    Waiting(Why),
}

impl Activity {
    /// Whether it waits.
    pub fn is_waiting(self) -> bool {
        matches!(self, Activity::Waiting(_))
    }
}

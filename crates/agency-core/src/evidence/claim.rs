//! What one witness says: it works, or it waits, and for what.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Time;

/// What an agent that waits wants of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The next task, at its own prompt.
    Prompt,
    Permission,
    /// A choice, an answer, a login, a password.
    Question,
    /// A turn that ended.
    Finished,
    Error,
    /// It waits, and nobody knows for what.
    Unknown,
}

impl Why {
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

    /// Something other than its prompt is open: what is typed would answer that.
    pub fn is_dialog(self) -> bool {
        matches!(self, Why::Permission | Why::Question)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    Working,
    Waiting(Why),
}

impl Activity {
    pub fn is_waiting(self) -> bool {
        matches!(self, Activity::Waiting(_))
    }
}

/// Who says it, most trusted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// What a protocol without a terminal says.
    Protocol,
    /// OSC 7501, the program status protocol.
    Status,
    /// A hook that says that the agent waits.
    Hook,
    Title,
    /// OSC 133: a shell at its prompt.
    Shell,
    /// What the kernel knows of line programs.
    Kernel,
    /// A rule about the rendered screen.
    Screen,
    /// A hook that says that it works, or OSC 9;4: neither tells of every end.
    Progress,
    /// OSC 9, 99, 777 and BEL.
    Notice,
    /// A line editor that comes and goes with its prompt.
    Editor,
    /// How many different screens were drawn lately.
    Animation,
    /// A process that the agent started and that still runs.
    Child,
    /// A full-screen program that has drawn nothing so far.
    Blank,
    /// Output came, or did not.
    Silence,
}

impl Rung {
    /// The word people see.
    pub fn as_str(self) -> &'static str {
        match self {
            Rung::Protocol => "protocol",
            Rung::Status => "status",
            Rung::Hook => "hook",
            Rung::Title => "title",
            Rung::Shell => "shell",
            Rung::Kernel => "kernel",
            Rung::Screen => "screen",
            Rung::Progress => "progress",
            Rung::Notice => "notice",
            Rung::Editor => "editor",
            Rung::Animation => "animation",
            Rung::Child => "child",
            Rung::Blank => "blank",
            Rung::Silence => "silence",
        }
    }

    pub fn confidence(self) -> Confidence {
        match self {
            Rung::Protocol | Rung::Status => Confidence::Certain,
            Rung::Hook | Rung::Kernel | Rung::Shell => Confidence::High,
            Rung::Title | Rung::Screen | Rung::Editor => Confidence::Good,
            Rung::Progress | Rung::Notice | Rung::Animation | Rung::Child | Rung::Blank => Confidence::Fair,
            Rung::Silence => Confidence::Guess,
        }
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    Guess,
    Fair,
    Good,
    High,
    Certain,
}

impl Confidence {
    pub fn as_str(self) -> &'static str {
        match self {
            Confidence::Guess => "guess",
            Confidence::Fair => "fair",
            Confidence::Good => "good",
            Confidence::High => "high",
            Confidence::Certain => "certain",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    pub activity: Activity,
    /// Which rule says so: `blocked`, `claude-trust`, `reads the terminal`.
    pub rule: String,
    /// What it waits for, in the agent's own words.
    pub detail: Option<String>,
    /// When it was first said.
    pub at: Time,
    /// Bytes of output before it.
    pub offset: u64,
}

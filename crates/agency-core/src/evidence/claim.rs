//! The claim of one witness: the agent works, or it waits, and for what.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Time;
use crate::activity::Activity;

/// The source of a claim, most trusted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceSource {
    /// A protocol without a terminal.
    Protocol,
    /// OSC 7501, the program status protocol.
    Status,
    /// A hook that reports that the agent waits.
    Hook,
    /// The user, who contradicted Agency.
    User,
    /// The window title.
    Title,
    /// OSC 133: a shell at its prompt.
    Shell,
    /// The kernel's view of programs that read lines.
    Kernel,
    /// A rule about the rendered screen.
    Screen,
    /// The program's own sign of work, learned from its earlier turns.
    Sign,
    /// A hook that reports work, or OSC 9;4. Neither reports every end of the work.
    Progress,
    /// OSC 9, 99, 777 and BEL.
    Notice,
    /// A line editor that comes and goes with its prompt.
    Editor,
    /// The number of different screens that were drawn lately.
    Animation,
    /// A process that the agent started and that still runs.
    Child,
    /// A full-screen program that has drawn nothing so far.
    Blank,
    /// Only output and its absence.
    Silence,
}

impl EvidenceSource {
    /// The word that people see.
    pub fn as_str(self) -> &'static str {
        match self {
            EvidenceSource::Protocol => "protocol",
            EvidenceSource::Status => "status",
            EvidenceSource::Hook => "hook",
            EvidenceSource::User => "user",
            EvidenceSource::Title => "title",
            EvidenceSource::Shell => "shell",
            EvidenceSource::Kernel => "kernel",
            EvidenceSource::Screen => "screen",
            EvidenceSource::Sign => "sign",
            EvidenceSource::Progress => "progress",
            EvidenceSource::Notice => "notice",
            EvidenceSource::Editor => "editor",
            EvidenceSource::Animation => "animation",
            EvidenceSource::Child => "child",
            EvidenceSource::Blank => "blank",
            EvidenceSource::Silence => "silence",
        }
    }

    /// How far a claim of this source can be trusted.
    pub fn confidence(self) -> Confidence {
        match self {
            EvidenceSource::Protocol | EvidenceSource::Status => Confidence::Certain,
            EvidenceSource::Hook | EvidenceSource::User | EvidenceSource::Kernel | EvidenceSource::Shell => {
                Confidence::High
            }
            EvidenceSource::Title | EvidenceSource::Screen | EvidenceSource::Editor => Confidence::Good,
            EvidenceSource::Sign
            | EvidenceSource::Progress
            | EvidenceSource::Notice
            | EvidenceSource::Animation
            | EvidenceSource::Child
            | EvidenceSource::Blank => Confidence::Fair,
            EvidenceSource::Silence => Confidence::Guess,
        }
    }
}

impl fmt::Display for EvidenceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How far a claim can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// It may well be wrong.
    Guess,
    /// It is right more often than not.
    Fair,
    /// It is usually right.
    Good,
    /// It is wrong only in rare cases.
    High,
    /// The program itself reports it.
    Certain,
}

impl Confidence {
    /// The word that people see.
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

/// The present claim of a witness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Whether the agent works or waits.
    pub activity: Activity,
    /// The rule that decided: `blocked`, `claude-trust`, `reads the terminal`.
    pub rule: String,
    /// The reason for waiting, in the agent's own words.
    pub detail: Option<String>,
    /// When the witness first made this claim.
    pub at: Time,
    /// Bytes of output before that moment.
    pub offset: u64,
}

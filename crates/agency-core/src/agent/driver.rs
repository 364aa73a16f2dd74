//! The three ways to talk to an agent, by name.
//!
//! Only the names. The crate `agency-driver` holds the drivers themselves.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How Agency talks to an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    /// A PTY: Agency reads the screen and types keys.
    #[default]
    Terminal,
    /// Lines of JSON on standard input and output.
    StreamJson,
    /// The Agent Client Protocol, over a process that tasks share.
    Acp,
}

impl Driver {
    /// Every driver.
    pub const ALL: [Driver; 3] = [Driver::Terminal, Driver::StreamJson, Driver::Acp];

    /// The word in the configuration and in task files.
    pub fn as_str(self) -> &'static str {
        match self {
            Driver::Terminal => "terminal",
            Driver::StreamJson => "stream-json",
            Driver::Acp => "acp",
        }
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Driver {
    type Err = UnknownDriver;
    fn from_str(text: &str) -> Result<Driver, UnknownDriver> {
        let found = Driver::ALL.into_iter().find(|driver| driver.as_str() == text);
        found.ok_or_else(|| UnknownDriver(text.to_owned()))
    }
}

/// The text is not the name of a driver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no driver is called `{}`", .0.escape_debug())]
pub struct UnknownDriver(pub String);

impl UnknownDriver {
    /// A hint for the user.
    pub fn hint(&self) -> String {
        "drivers are terminal, stream-json and acp".to_owned()
    }
}

//! The two halves of the programs that Agency has no rules for.

use clap::ValueEnum;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Half {
    /// To work with
    Unseen,
    /// Run only at the end
    HeldOut,
}

impl Half {
    /// The directory of its recordings, and its name in a table.
    pub fn name(self) -> &'static str {
        match self {
            Half::Unseen => "unseen",
            Half::HeldOut => "held-out",
        }
    }
}

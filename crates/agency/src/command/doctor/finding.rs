//! The result of one check, and the fix.

use serde::Serialize;

use crate::output::Colour;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Finding {
    pub(super) about: About,
    pub(super) level: Level,
    pub(super) what: String,
    pub(super) fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    Fine,
    /// Worth knowing; needs no fix.
    Note,
    /// Works now, but may fail.
    Warning,
    /// Agency cannot run agents like this.
    Broken,
}

impl Level {
    /// A sign that also works without colour.
    pub(super) fn mark(self) -> (&'static str, Colour) {
        match self {
            Level::Fine => ("ok  ", Colour::Green),
            Level::Note => ("note", Colour::Faint),
            Level::Warning => ("warn", Colour::Yellow),
            Level::Broken => ("FAIL", Colour::Red),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum About {
    Programs,
    Agents,
    Daemon,
    Notifications,
    Files,
    Limits,
    Machine,
}

impl About {
    pub(super) fn heading(self) -> &'static str {
        match self {
            About::Programs => "Programs",
            About::Agents => "Agents",
            About::Daemon => "Daemon",
            About::Notifications => "Notifications",
            About::Files => "Files",
            About::Limits => "Limits",
            About::Machine => "Machine",
        }
    }
}

impl About {
    pub(super) fn fine(self, what: impl Into<String>) -> Finding {
        Finding { about: self, level: Level::Fine, what: what.into(), fix: None }
    }

    pub(super) fn note(self, what: impl Into<String>) -> Finding {
        Finding { about: self, level: Level::Note, what: what.into(), fix: None }
    }

    pub(super) fn warning(self, what: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { about: self, level: Level::Warning, what: what.into(), fix: Some(fix.into()) }
    }

    pub(super) fn broken(self, what: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { about: self, level: Level::Broken, what: what.into(), fix: Some(fix.into()) }
    }
}

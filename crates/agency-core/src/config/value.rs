//! Values of keys, and the kinds of value that keys take.
//!
//! `value_text` reads and writes them.

use std::time::Duration;

use super::clipboard::Clipboard;
use super::notify::TerminalNotice;
use super::ui::MarkStyle;
use crate::agent::{Driver, Restart};
use crate::approval::Rule;

/// A value that has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Any text, an address, or a decision.
    Text(String),
    /// true or false
    Truth(bool),
    /// A whole number.
    Count(u32),
    /// A span of time.
    Time(Duration),
    /// A command or a list of words.
    Words(Vec<String>),
    /// Several commands.
    Commands(Vec<Vec<String>>),
    /// The name of a driver.
    Driver(Driver),
    /// A restart rule.
    Restart(Restart),
    /// The setting `clipboard`.
    Clipboard(Clipboard),
    /// The setting `notify.terminal`.
    TerminalNotice(TerminalNotice),
    /// The setting `ui.marks`.
    MarkStyle(MarkStyle),
    /// One table of `[[approve]]`.
    Rule(Box<Rule>),
}

impl Value {
    pub(super) fn text(self) -> Option<String> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    pub(super) fn rule(self) -> Option<Rule> {
        if let Value::Rule(rule) = self { Some(*rule) } else { None }
    }
}

/// The kind of value that a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Any text.
    Text,
    /// An `http` or `https` address.
    Address,
    /// true or false
    Truth,
    /// A whole number, 0 or more.
    Count,
    /// A number and a unit: `5s`.
    Time,
    /// A program and its arguments.
    Command,
    /// One command, or several.
    Commands,
    /// A list of strings.
    Words,
    /// Words of [`OCCASIONS`](super::OCCASIONS).
    Occasions,
    /// Words of [`TOOLS`](super::TOOLS).
    Tools,
    /// The name of a driver.
    Driver,
    /// `never` or `on-crash`
    Restart,
    /// `deny` or `allow`
    Clipboard,
    /// A way to notify through a terminal.
    TerminalNotice,
    /// The signs in lists.
    MarkStyle,
    /// A table of variables.
    Env,
    /// The answer of a rule.
    Decision,
    /// A table of `[[approve]]`.
    Rule,
}

impl ValueKind {
    pub(super) fn is_list(self) -> bool {
        matches!(
            self,
            ValueKind::Command
                | ValueKind::Commands
                | ValueKind::Words
                | ValueKind::Occasions
                | ValueKind::Tools
        )
    }

    /// For messages: `stale_timeout must be …`.
    pub fn expected(self) -> &'static str {
        match self {
            ValueKind::Text => "a string",
            ValueKind::Address => "an address that begins with http:// or https://",
            ValueKind::Truth => "true or false",
            ValueKind::Count => "a whole number, 0 or more",
            ValueKind::Time => "a time such as \"500ms\", \"5s\", \"2m\" or \"1h\"",
            ValueKind::Command => "an array of strings, the program first",
            ValueKind::Commands => "an array of strings, the program first, or an array of such arrays",
            ValueKind::Words => "an array of strings",
            ValueKind::Occasions => {
                "an array of \"prompt\", \"permission\", \"question\", \"finished\", \"error\", \"unknown\" and \"exited\""
            }
            ValueKind::Tools => "an array of names of tools (docs/configuration.md lists them)",
            ValueKind::Driver => "\"terminal\", \"stream-json\" or \"acp\"",
            ValueKind::Restart => "\"never\" or \"on-crash\"",
            ValueKind::Clipboard => "\"deny\" or \"allow\"",
            ValueKind::MarkStyle => "\"auto\", \"ascii\" or \"emoji\"",
            ValueKind::TerminalNotice => "\"auto\", \"osc9\", \"osc777\", \"bell\" or \"none\"",
            ValueKind::Env => "a table of strings",
            ValueKind::Decision => "\"allow\", \"deny\" or \"ask\"",
            ValueKind::Rule => "tables, as in [[approve]]",
        }
    }
}

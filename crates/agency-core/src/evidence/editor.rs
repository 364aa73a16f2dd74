//! A line editor that opens with the prompt and closes with Enter, recognized by its bracketed paste mode.
//!
//! Shells, REPLs and prompt libraries switch that mode on and off. Full-screen agents switch it on once, which means nothing.

use serde::{Deserialize, Serialize};

use crate::Time;
use crate::activity::{Activity, Why};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Editor {
    open: bool,
    /// It was open and closed again, so its mode means something.
    comes_and_goes: bool,
    /// When it last opened.
    #[serde(default)]
    opened_at: Time,
}

impl Editor {
    pub(super) fn on_screen(&mut self, open: bool, at: Time) {
        self.comes_and_goes |= self.open && !open;
        if open && !self.open {
            self.opened_at = at;
        }
        self.open = open;
    }

    /// Another program has the terminal now.
    pub(super) fn forget(&mut self) {
        *self = Editor::default();
    }

    /// When it opened, if it is open and its mode means something.
    pub(super) fn open_since(self) -> Option<Time> {
        (self.open && self.comes_and_goes).then_some(self.opened_at)
    }

    pub(super) fn claim(self) -> Option<(Activity, &'static str)> {
        match (self.comes_and_goes, self.open) {
            (false, _) => None,
            (true, true) => Some((Activity::Waiting(Why::Prompt), "a line editor is open")),
            (true, false) => Some((Activity::Working, "the line editor is closed")),
        }
    }
}

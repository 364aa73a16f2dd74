//! What a program says to its terminal besides what it draws.
//!
//! Not what that means: whether a title or a bell says "waiting" is decided elsewhere.

/// What came of feeding bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fed {
    /// Answers to the program's queries, in the order of the queries. They belong on its input.
    pub replies: Vec<u8>,
    pub events: Vec<ScreenEvent>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScreenEvent {
    /// The window title changed (OSC 0, OSC 2).
    Title(String),
    Bell,
    /// OSC 9, OSC 99 and OSC 777.
    Notification {
        title: String,
        body: String,
    },
    /// OSC 9;4.
    Progress(Progress),
    /// OSC 133, from shells that mark their prompts.
    Prompt(Prompt),
    /// OSC 7501, the program status protocol, as it was said: all that follows `7501;`.
    Status(String),
    /// OSC 7: the working directory, as the URL that was said.
    Directory(String),
    /// OSC 52: the program wants this on the clipboard, or on another selection: letters, as it said them.
    /// The data is Base64; nothing was stored.
    Clipboard {
        selection: String,
        data: String,
    },
    /// The emulator failed on these bytes. They were skipped, and the screen was rebuilt.
    Panicked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    Removed,
    Running { percent: Option<u8> },
    Failed { percent: Option<u8> },
    Indeterminate,
    Paused { percent: Option<u8> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// The prompt begins (A, P).
    Started,
    /// The prompt ends, the user types (B, I).
    Input,
    /// The command runs (C).
    Output,
    /// The command ended (D).
    Ended { exit: Option<i32> },
}

impl Fed {
    /// Programs ring in bursts; one bell says as much as a thousand.
    pub(crate) fn bell(&mut self) {
        if self.events.last() != Some(&ScreenEvent::Bell) {
            self.events.push(ScreenEvent::Bell);
        }
    }
}

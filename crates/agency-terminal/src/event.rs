//! Messages of a program to its terminal that are not drawing.
//!
//! Does not interpret it: whether a title or a bell means "waiting" is decided elsewhere.

/// The result of feeding bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fed {
    /// Answers to the program's queries, in the order of the queries. They must go to its input.
    pub replies: Vec<u8>,
    /// The messages of the program to its terminal, in order.
    pub events: Vec<ScreenEvent>,
}

/// Something that a program told its terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScreenEvent {
    /// The window title changed (OSC 0, OSC 2).
    Title(String),
    /// One or more bells in a row.
    Bell,
    /// OSC 9, OSC 99 and OSC 777.
    Notification {
        /// Empty if the program gave none.
        title: String,
        /// The text.
        body: String,
    },
    /// OSC 9;4.
    Progress(Progress),
    /// OSC 133, from shells that mark their prompts.
    Prompt(Prompt),
    /// OSC 7501, the program status protocol: everything after `7501;`, unchanged.
    Status(String),
    /// OSC 7: the working directory as a URL, unchanged.
    Directory(String),
    /// OSC 52: the program wants to set the clipboard, or the selections named by `selection`.
    /// The data is Base64; nothing was stored.
    Clipboard {
        /// The letters of the selections; empty means the clipboard.
        selection: String,
        /// The contents in Base64.
        data: String,
    },
    /// The emulator panicked on these bytes. They were skipped, and the screen was rebuilt.
    Panicked,
}

/// The state of a progress bar (OSC 9;4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The bar is removed.
    Removed,
    /// Normal progress.
    Running {
        /// From 0 to 100, if known.
        percent: Option<u8>,
    },
    /// The task failed.
    Failed {
        /// From 0 to 100, if known.
        percent: Option<u8>,
    },
    /// Busy, without a percentage.
    Indeterminate,
    /// The task is paused, or has a warning.
    Paused {
        /// From 0 to 100, if known.
        percent: Option<u8>,
    },
}

/// A mark of a shell around its prompt (OSC 133).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// The prompt starts (A, P).
    Started,
    /// The prompt ends and the user types (B, I).
    Input,
    /// The command runs (C).
    Output,
    /// The command ended (D).
    Ended {
        /// The exit code, if the shell reports it.
        exit: Option<i32>,
    },
}

impl Fed {
    /// Programs ring in bursts, so several bells become one.
    pub(crate) fn bell(&mut self) {
        if self.events.last() != Some(&ScreenEvent::Bell) {
            self.events.push(ScreenEvent::Bell);
        }
    }
}

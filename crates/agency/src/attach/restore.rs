//! Restores the user's terminal, whatever ran in it and however the client ends.
//!
//! Invariant: the terminal is restored once: at the end of the attachment, on an error, or on a panic, whichever
//! comes first.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use rustix::termios::{OptionalActions, QueueSelector, Termios, tcflush, tcsetattr};

/// Makes the terminal save its title and the modes whose default differs between terminals: blinking cursor, wheel as
/// arrow keys, grapheme clusters. Written before anything else.
pub(super) const ENTER: &str = "\x1b[22;0t\x1b[?12;1007;2027s";

/// Resets every mode that a program can leave set. Each step is harmless if it was not needed.
pub(crate) const LEAVE: &str = concat!(
    // Ends an incomplete sequence and a synchronized update.
    "\x1b\\\x1b[?2026l",
    // Keyboard protocols: kitty's stack of this screen, modifyOtherKeys.
    "\x1b[<99u\x1b[>4m",
    // The main screen has its own stack.
    "\x1b[?1049l\x1b[<99u\x1b[=0u",
    // All mouse protocols.
    "\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l",
    // Reports of focus, paste, theme and size.
    "\x1b[?1004l\x1b[?2004l\x1b[?2031l\x1b[?2048l",
    // Cursor keys, keypad, insert and newline mode.
    "\x1b[?1l\x1b>\x1b[4l\x1b[20l",
    // Restores the saved modes. Before the margins, because a terminal may mistake this sequence for margins.
    "\x1b[?12;1007;2027r",
    // Tab stops, margins, origin, reverse video; turns wrapping on.
    "\x1b[?5W\x1b[?69l\x1b[r\x1b[?6l\x1b[?5l\x1b[?7h",
    // Character sets, text attributes, hyperlink.
    "\x0f\x1b(B\x1b)B\x1b*B\x1b+B\x1b[0m\x1b]8;;\x1b\\",
    // A visible cursor of the default shape.
    "\x1b[?25h\x1b[0 q",
    // Palette, foreground, background and cursor colour.
    "\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\",
    // The saved title, and a new line below everything.
    "\x1b[23;0t",
    "\x1b[999;1H\r\n",
);

const BELOW_EVERYTHING: &str = "\x1b[999;1H\r\n";

/// [`LEAVE`], but with the new line below this row of the screen (from 1), if it is known.
pub(super) fn leave_below(row: Option<u16>) -> String {
    match (row, LEAVE.strip_suffix(BELOW_EVERYTHING)) {
        (Some(row), Some(modes)) => format!("{modes}\x1b[{row};1H\r\n"),
        _ => LEAVE.to_owned(),
    }
}

/// The settings to restore, while we use the terminal.
static SAVED_SETTINGS: Mutex<Option<Termios>> = Mutex::new(None);

fn saved_settings() -> MutexGuard<'static, Option<Termios>> {
    SAVED_SETTINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Saves the settings. From now on, a panic restores the terminal before it prints its message.
pub(crate) fn arm(before: Termios) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore_all();
            default(panic);
        }));
    });
    *saved_settings() = Some(before);
}

/// Restores screen and settings, unless that was done before.
pub(super) fn restore_all() {
    if saved_settings().is_some() {
        let mut stdout = std::io::stdout().lock();
        // A terminal that has hung up needs nothing more.
        stdout.write_all(LEAVE.as_bytes()).and_then(|()| stdout.flush()).ok();
    }
    restore_settings();
}

/// Restores the settings only: [`LEAVE`] was written already, or nothing can be written any more.
pub(crate) fn restore_settings() {
    let Some(before) = saved_settings().take() else { return };
    let stdin = rustix::stdio::stdin();
    // Does not wait for pending output, because the terminal may hang. Flushes the input: the shell would read late
    // mouse and key reports as input. A terminal that has hung up refuses both calls and needs neither.
    tcflush(stdin, QueueSelector::IFlush).ok();
    tcsetattr(stdin, OptionalActions::Now, &before).ok();
}

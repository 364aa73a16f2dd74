//! Giving the user's terminal back as it was, whatever ran in it and however we end.
//!
//! Invariant: a terminal that was taken is given back once, by whoever notices first: the end of
//! the attachment, an error on the way, or a panic.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use rustix::termios::{OptionalActions, QueueSelector, Termios, tcflush, tcsetattr};

/// Before anything is drawn, has the terminal remember its title and the modes whose usual value is its own:
/// blinking cursor, wheel as arrow keys, grapheme clusters.
pub(super) const ENTER: &str = "\x1b[22;0t\x1b[?12;1007;2027s";

/// Undoes every mode that a program can leave behind. Each step is harmless where it was not needed.
pub(crate) const LEAVE: &str = concat!(
    // A sequence that was cut ends here, and so does a synchronized update.
    "\x1b\\\x1b[?2026l",
    // Keyboard protocols: kitty's stack of this screen, modifyOtherKeys.
    "\x1b[<99u\x1b[>4m",
    // The main screen has a stack of its own.
    "\x1b[?1049l\x1b[<99u\x1b[=0u",
    // The mouse in all its dialects.
    "\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l",
    // Reports of focus, paste, theme and size.
    "\x1b[?1004l\x1b[?2004l\x1b[?2031l\x1b[?2048l",
    // Cursor keys, keypad, insert and newline mode.
    "\x1b[?1l\x1b>\x1b[4l\x1b[20l",
    // What was remembered. Before the margins: who does not know it may take it for those.
    "\x1b[?12;1007;2027r",
    // Tab stops, margins, origin, reverse video; wrapping is on.
    "\x1b[?5W\x1b[?69l\x1b[r\x1b[?6l\x1b[?5l\x1b[?7h",
    // Character sets, pen, hyperlink.
    "\x0f\x1b(B\x1b)B\x1b*B\x1b+B\x1b[0m\x1b]8;;\x1b\\",
    // A visible cursor of the usual shape.
    "\x1b[?25h\x1b[0 q",
    // Palette, foreground, background and cursor colour.
    "\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\",
    // The title as it was, and a fresh line below everything.
    "\x1b[23;0t\x1b[999;1H\r\n",
);

/// The settings to go back to, while the terminal is ours.
static TAKEN: Mutex<Option<Termios>> = Mutex::new(None);

fn taken() -> MutexGuard<'static, Option<Termios>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on a panic gives the terminal back before it says a word.
pub(crate) fn arm(before: Termios) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            default(panic);
        }));
    });
    *taken() = Some(before);
}

/// Screen and settings, unless they were given back before.
pub(super) fn give_back() {
    if taken().is_some() {
        let mut stdout = std::io::stdout().lock();
        // A terminal that has hung up needs nothing more.
        stdout.write_all(LEAVE.as_bytes()).and_then(|()| stdout.flush()).ok();
    }
    give_back_settings();
}

/// The settings alone: where [`LEAVE`] was written already, or where nothing can be written any more.
pub(crate) fn give_back_settings() {
    let Some(before) = taken().take() else { return };
    let stdin = rustix::stdio::stdin();
    // At once and without waiting for output to drain: a terminal that hangs must not hold us.
    // Reports of mouse and keys that are still underway would be typed into the shell. A terminal
    // that has hung up refuses both, and needs neither.
    tcflush(stdin, QueueSelector::IFlush).ok();
    tcsetattr(stdin, OptionalActions::Now, &before).ok();
}

//! The modes and the size of the terminal on standard input. On a pipe these functions do nothing.

use rustix::stdio::stdin;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetwinsize, tcsetattr,
};

/// Changes the modes and returns the previous ones, or `None` if standard input is not a terminal.
pub(crate) fn change(modes: impl FnOnce(&mut Termios)) -> Option<Termios> {
    let before = tcgetattr(stdin()).ok()?;
    let mut after = before.clone();
    modes(&mut after);
    set(&after);
    Some(before)
}

pub(crate) fn set(modes: &Termios) {
    if let Err(err) = tcsetattr(stdin(), OptionalActions::Now, modes) {
        eprintln!("fake-agent: cannot change the terminal: {err}");
    }
}

pub(crate) fn echo_off(modes: &mut Termios) {
    modes.local_modes.remove(LocalModes::ECHO);
}

/// Discards what was typed and not read.
pub(crate) fn flush() {
    if let Err(err) = tcflush(stdin(), QueueSelector::IFlush) {
        eprintln!("fake-agent: cannot discard its input: {err}");
    }
}

/// `ROWS COLS`
pub(crate) fn size() -> String {
    match tcgetwinsize(stdin()) {
        Ok(size) => format!("{} {}", size.ws_row, size.ws_col),
        Err(_) => "no terminal".to_string(),
    }
}

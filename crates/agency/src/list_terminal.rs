//! The terminal of `agency ls --watch`: a screen of its own that is redrawn in place.
//!
//! Draws a frame only if it differs from the one before, and in one write, so that nothing flickers.

use std::io::{self, Write};

use rustix::stdio::stdin;
use rustix::termios::tcgetattr;
use tokio::sync::mpsc;

use crate::attach::restore;
use crate::chat_terminal::{ChatTerminal, enter_key_mode, read_keyboard};

/// The alternate screen without a cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

pub(crate) struct ListTerminal {
    keyboard: mpsc::Receiver<Vec<u8>>,
    /// The frame on the screen.
    shown: String,
    _guard: RestoreOnDrop,
}

/// Restores the terminal on every way out.
struct RestoreOnDrop;

impl Drop for RestoreOnDrop {
    fn drop(&mut self) {
        // A terminal that has hung up needs nothing more.
        write_out(LEAVE).ok();
        restore::restore_settings();
    }
}

impl ListTerminal {
    pub(crate) fn take() -> io::Result<ListTerminal> {
        restore::arm(tcgetattr(stdin())?);
        let guard = RestoreOnDrop;
        enter_key_mode()?;
        write_out(ENTER)?;
        Ok(ListTerminal { keyboard: read_keyboard(), shown: String::new(), _guard: guard })
    }

    /// Call it after SIGCONT: the shell has restored its own settings meanwhile.
    pub(crate) fn retake(&mut self) -> io::Result<()> {
        self.shown.clear();
        enter_key_mode()?;
        write_out(ENTER)
    }

    /// The next bytes from the keyboard; `None` when the terminal has gone. Cancel safe.
    pub(crate) async fn next_keys(&mut self) -> Option<Vec<u8>> {
        self.keyboard.recv().await
    }

    /// Columns and rows.
    pub(crate) fn size() -> (usize, usize) {
        ChatTerminal::size()
    }

    /// Shows these lines from the top of the screen. No line may be wider than the terminal.
    pub(crate) fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let body: Vec<String> = lines.iter().map(|line| format!("{line}\x1b[K")).collect();
        let frame = body.join("\r\n");
        if frame == self.shown {
            return Ok(());
        }
        // Terminals that know mode 2026 show the frame only when it is whole.
        write_out(&format!("\x1b[?2026h\x1b[H{frame}\x1b[J\x1b[?2026l"))?;
        self.shown = frame;
        Ok(())
    }

    /// After a resize the terminal may have moved what it shows.
    pub(crate) fn forget_frame(&mut self) {
        self.shown.clear();
    }
}

fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

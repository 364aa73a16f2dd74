//! The terminal of `agency chat`: prints new entries above the line that the user is typing.

use std::io::{self, Read, Write};

use rustix::stdio::{stdin, stdout};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use crate::attach::restore;
use crate::line_editor::{LineEditor, LineEvent};

/// With bracketed paste, the terminal marks pasted text.
const BRACKETED_PASTE_ON: &str = "\x1b[?2004h";
const BRACKETED_PASTE_OFF: &str = "\x1b[?2004l";

/// Used if the terminal does not report its width.
const DEFAULT_COLUMNS: usize = 80;

pub(crate) struct ChatTerminal {
    line: LineEditor,
    /// Text without a line end that arrived while the user types. It is printed later.
    held: String,
    /// The printed text ended with a line end.
    at_start: bool,
    keyboard: mpsc::Receiver<Vec<u8>>,
    _guard: RestoreOnDrop,
}

/// Restores the terminal on every way out.
struct RestoreOnDrop;

impl Drop for RestoreOnDrop {
    fn drop(&mut self) {
        // A terminal that has hung up needs nothing more.
        write_out(BRACKETED_PASTE_OFF).ok();
        restore::restore_settings();
    }
}

impl ChatTerminal {
    pub(crate) fn take() -> io::Result<ChatTerminal> {
        restore::arm(tcgetattr(stdin())?);
        let guard = RestoreOnDrop;
        enter_key_mode()?;
        write_out(BRACKETED_PASTE_ON)?;
        Ok(ChatTerminal {
            line: LineEditor::default(),
            held: String::new(),
            at_start: true,
            keyboard: read_keyboard(),
            _guard: guard,
        })
    }

    /// Call it after SIGCONT: the shell has restored its own settings meanwhile.
    pub(crate) fn retake(&mut self) -> io::Result<()> {
        enter_key_mode()?;
        write_out(BRACKETED_PASTE_ON)?;
        self.draw_line()
    }

    /// The next bytes from the keyboard; `None` when the terminal has gone. Cancel safe.
    pub(crate) async fn next_keys(&mut self) -> Option<Vec<u8>> {
        self.keyboard.recv().await
    }

    /// Whether the user has typed nothing into the current line.
    pub(crate) fn is_line_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// Applies the keys and returns what the user did with them.
    pub(crate) fn press(&mut self, keys: &[u8]) -> io::Result<Vec<LineEvent>> {
        let was_empty = self.line.is_empty();
        let events = self.line.feed(keys);
        for event in &events {
            if let LineEvent::Entered(text) = event
                && !text.is_empty()
            {
                let mut whole = LineEditor::default();
                whole.feed(format!("\x1b[200~{text}\x1b[201~").as_bytes());
                self.begin_row(was_empty)?;
                write_out(&format!("{}\n", whole.render(usize::MAX)))?;
                self.at_start = true;
            }
        }
        match self.line.is_empty() {
            true if !was_empty && events.is_empty() => write_out("\r\x1b[K").and_then(|()| self.print_held()),
            true => self.print_held(),
            false => self.begin_row(was_empty && events.is_empty()).and_then(|()| self.draw_line()),
        }?;
        Ok(events)
    }

    /// The typed line starts in a new row.
    fn begin_row(&mut self, is_first: bool) -> io::Result<()> {
        if is_first && !self.at_start {
            write_out("\n")?;
            self.at_start = true;
        }
        Ok(())
    }

    /// The typed line is empty again, so print the text that was held back.
    fn print_held(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.print(&held)
    }

    pub(crate) fn print(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if self.line.is_empty() {
            self.at_start = text.ends_with('\n');
            return write_out(text);
        }
        self.held.push_str(text);
        let Some(end) = self.held.rfind('\n') else { return Ok(()) };
        let rest = self.held.split_off(end + 1);
        let rows = std::mem::replace(&mut self.held, rest);
        write_out(&format!("\r\x1b[K{rows}"))?;
        self.draw_line()
    }

    fn draw_line(&self) -> io::Result<()> {
        if self.line.is_empty() {
            return Ok(());
        }
        let columns = tcgetwinsize(stdout()).map_or(0, |size| usize::from(size.ws_col));
        write_out(&self.line.render(if columns > 0 { columns } else { DEFAULT_COLUMNS }))
    }
}

fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The terminal passes on each key at once and does not echo it. Ctrl-c and ctrl-z still send signals.
fn enter_key_mode() -> io::Result<()> {
    let mut settings = tcgetattr(stdin())?;
    settings.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    Ok(tcsetattr(stdin(), OptionalActions::Now, &settings)?)
}

fn read_keyboard() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        loop {
            match io::stdin().lock().read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(len) if sender.blocking_send(buffer[..len].to_vec()).is_err() => return,
                Ok(_) => {}
            }
        }
    });
    receiver
}

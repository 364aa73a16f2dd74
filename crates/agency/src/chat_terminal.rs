//! The terminal of `agency chat`: prints new entries above rows that it draws again and again: what is in progress, the
//! message that the user types, and the status line.

use std::io::{self, Read, Write};

use rustix::stdio::{stdin, stdout};
use rustix::termios::{InputModes, LocalModes, OptionalActions, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use crate::attach::restore;
use crate::chat_screen::fitting;
use crate::line_editor::{InputRows, LineEditor, LineEvent};
use crate::output::{Colour, Paint};

/// With bracketed paste, the terminal marks pasted text.
const BRACKETED_PASTE_ON: &str = "\x1b[?2004h";
const BRACKETED_PASTE_OFF: &str = "\x1b[?2004l";

/// Used if the terminal does not report its size.
const DEFAULT_SIZE: (usize, usize) = (80, 24);

pub(crate) struct ChatTerminal {
    line: LineEditor,
    /// Rows about what is in progress.
    progress: Vec<String>,
    /// The names that fit what the user types.
    offered: Vec<String>,
    status: String,
    /// The row of the cursor in the rows that are drawn. `None` if none are drawn.
    drawn: Option<usize>,
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
            progress: Vec::new(),
            offered: Vec::new(),
            status: String::new(),
            drawn: None,
            keyboard: read_keyboard(),
            _guard: guard,
        })
    }

    /// Call it after SIGCONT: the shell has restored its own settings meanwhile.
    pub(crate) fn retake(&mut self) -> io::Result<()> {
        enter_key_mode()?;
        self.drawn = None;
        write_out(BRACKETED_PASTE_ON)?;
        self.redraw()
    }

    /// The next bytes from the keyboard; `None` when the terminal has gone. Cancel safe.
    pub(crate) async fn next_keys(&mut self) -> Option<Vec<u8>> {
        self.keyboard.recv().await
    }

    pub(crate) fn line(&mut self) -> &mut LineEditor {
        &mut self.line
    }

    /// Columns and rows.
    pub(crate) fn size() -> (usize, usize) {
        let size = tcgetwinsize(stdout()).map_or((0, 0), |size| (size.ws_col.into(), size.ws_row.into()));
        if size.0 > 0 && size.1 > 0 { size } else { DEFAULT_SIZE }
    }

    /// Applies the keys and returns what the user did with them.
    pub(crate) fn press(&mut self, keys: &[u8]) -> io::Result<Vec<LineEvent>> {
        self.offered.clear();
        let events = self.line.feed(keys);
        self.redraw()?;
        Ok(events)
    }

    /// Shows the names that fit what the user types, until the next key.
    pub(crate) fn offer(&mut self, names: Vec<String>) -> io::Result<()> {
        self.offered = names;
        self.redraw()
    }

    pub(crate) fn set_status(&mut self, status: String) -> io::Result<()> {
        if self.status == status {
            return Ok(());
        }
        self.status = status;
        self.redraw()
    }

    /// Prints whole lines above the rows, which show `progress` from now on.
    pub(crate) fn print(&mut self, text: &str, progress: Vec<String>) -> io::Result<()> {
        if text.is_empty() && self.progress == progress {
            return Ok(());
        }
        self.progress = progress;
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let erased = self.erased();
        write_out(&format!("{erased}{text}{end}{}", self.drawing()))
    }

    /// Prints the last lines and draws no rows any more.
    pub(crate) fn finish(&mut self, text: &str) -> io::Result<()> {
        let erased = self.erased();
        write_out(&format!("{erased}{text}"))
    }

    pub(crate) fn redraw(&mut self) -> io::Result<()> {
        let erased = self.erased();
        write_out(&format!("{erased}{}", self.drawing()))
    }

    /// Erases the rows, and leaves the cursor where the first one was.
    fn erased(&mut self) -> String {
        match self.drawn.take() {
            None => String::new(),
            Some(0) => "\r\x1b[K\x1b[J".to_owned(),
            Some(above) => format!("\r\x1b[{above}A\x1b[K\x1b[J"),
        }
    }

    /// Draws the rows. No row is as wide as the terminal, so none of them breaks.
    fn drawing(&mut self) -> String {
        let (columns, screen_rows) = ChatTerminal::size();
        let InputRows { rows: input, row, column } = self.line.render(columns);
        let status =
            Paint::for_stdout().paint(Colour::Faint, &fitting(&self.status, columns.saturating_sub(1)));
        let room = screen_rows.saturating_sub(input.len() + self.offered.len() + 3);
        let progress = self.progress.iter().skip(self.progress.len().saturating_sub(room));
        let mut rows: Vec<&str> = progress.map(String::as_str).collect();
        let above = rows.len() + row;
        rows.extend(input.iter().map(String::as_str));
        rows.extend(self.offered.iter().map(String::as_str));
        rows.push(&status);
        let up = rows.len() - 1 - above;
        let up = if up > 0 { format!("\x1b[{up}A") } else { String::new() };
        let drawing = format!("{}{up}\r\x1b[{column}C", rows.join("\n"));
        self.drawn = Some(above);
        drawing
    }
}

fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The terminal passes on each key at once and does not echo it. Ctrl-c and ctrl-z still send signals.
pub(crate) fn enter_key_mode() -> io::Result<()> {
    let mut settings = tcgetattr(stdin())?;
    settings.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    // The terminal would keep ctrl-q to itself.
    settings.input_modes.remove(InputModes::IXON);
    Ok(tcsetattr(stdin(), OptionalActions::Now, &settings)?)
}

pub(crate) fn read_keyboard() -> mpsc::Receiver<Vec<u8>> {
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

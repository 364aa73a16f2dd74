//! The terminal of somebody who reads and types at once: what comes is printed above the line that is being typed.

use std::io::{self, Read, Write};

use rustix::stdio::{stdin, stdout};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use crate::attach::restore;
use crate::line::{Done, Line};

/// Text that is pasted comes marked as such.
const MARK_PASTES: &str = "\x1b[?2004h";
const MARK_NO_PASTES: &str = "\x1b[?2004l";

/// Where no terminal says how wide it is.
const USUAL_COLUMNS: usize = 80;

pub(crate) struct Desk {
    line: Line,
    /// What was printed and has no line end yet, while somebody types.
    held: String,
    /// The cursor stands at the beginning of a row, but for the line.
    at_start: bool,
    keyboard: mpsc::Receiver<Vec<u8>>,
    _guard: Guard,
}

/// Gives the terminal back, however we leave.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        // Who has gone needs no terminal.
        put(MARK_NO_PASTES).ok();
        restore::give_back_settings();
    }
}

impl Desk {
    pub(crate) fn take() -> io::Result<Desk> {
        restore::arm(tcgetattr(stdin())?);
        let guard = Guard;
        take_keys()?;
        put(MARK_PASTES)?;
        Ok(Desk {
            line: Line::default(),
            held: String::new(),
            at_start: true,
            keyboard: keys(),
            _guard: guard,
        })
    }

    /// After a stop and a continue the shell's settings are in force.
    pub(crate) fn retake(&mut self) -> io::Result<()> {
        take_keys()?;
        put(MARK_PASTES)?;
        self.draw_line()
    }

    /// What is typed next. Nothing when the terminal has gone. Safe to drop half-way.
    pub(crate) async fn typed(&mut self) -> Option<Vec<u8>> {
        self.keyboard.recv().await
    }

    /// What somebody has done with these keys.
    pub(crate) fn press(&mut self, keys: &[u8]) -> io::Result<Vec<Done>> {
        let was_empty = self.line.is_empty();
        let done = self.line.typed(keys);
        for done in &done {
            if let Done::Entered(text) = done
                && !text.is_empty()
            {
                let mut whole = Line::default();
                whole.typed(format!("\x1b[200~{text}\x1b[201~").as_bytes());
                self.begin_row(was_empty)?;
                put(&format!("{}\n", whole.drawn(usize::MAX)))?;
                self.at_start = true;
            }
        }
        match self.line.is_empty() {
            true if !was_empty && done.is_empty() => put("\r\x1b[K").and_then(|()| self.go_on()),
            true => self.go_on(),
            false => self.begin_row(was_empty && done.is_empty()).and_then(|()| self.draw_line()),
        }?;
        Ok(done)
    }

    /// Who begins to type does so in a row of their own.
    fn begin_row(&mut self, is_first: bool) -> io::Result<()> {
        if is_first && !self.at_start {
            put("\n")?;
            self.at_start = true;
        }
        Ok(())
    }

    /// Nobody types any more: what was held back is shown.
    fn go_on(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.print(&held)
    }

    pub(crate) fn print(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if self.line.is_empty() {
            self.at_start = text.ends_with('\n');
            return put(text);
        }
        self.held.push_str(text);
        let Some(end) = self.held.rfind('\n') else { return Ok(()) };
        let rest = self.held.split_off(end + 1);
        let rows = std::mem::replace(&mut self.held, rest);
        put(&format!("\r\x1b[K{rows}"))?;
        self.draw_line()
    }

    fn draw_line(&self) -> io::Result<()> {
        if self.line.is_empty() {
            return Ok(());
        }
        let columns = tcgetwinsize(stdout()).map_or(0, |size| usize::from(size.ws_col));
        put(&self.line.drawn(if columns > 0 { columns } else { USUAL_COLUMNS }))
    }
}

fn put(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Keys come one by one and are not shown by the terminal; ctrl-c and ctrl-z are signals as ever.
fn take_keys() -> io::Result<()> {
    let mut settings = tcgetattr(stdin())?;
    settings.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    Ok(tcsetattr(stdin(), OptionalActions::Now, &settings)?)
}

fn keys() -> mpsc::Receiver<Vec<u8>> {
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

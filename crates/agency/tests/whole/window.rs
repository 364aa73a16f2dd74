//! A terminal window of a test with a program in it.
//!
//! A bare window answers the program's queries, as any terminal does.

use std::process::Command;

use agency_terminal::{Screen, Size};
use agency_testkit::{Process, Pty};

use crate::picture::Picture;
use crate::second_opinion::SecondOpinion;

/// The number of lines that an agent's terminal keeps.
pub const SCROLLBACK: usize = 10_000;

pub struct Window {
    pty: Pty,
    pub screen: Screen,
    second: SecondOpinion,
    fed: usize,
    resized_at: usize,
    answers: bool,
}

impl Window {
    /// A window that answers the program's queries.
    pub fn bare(command: Command, cols: u16, rows: u16) -> Window {
        Window::around(command, cols, rows, true)
    }

    /// A window for `agency attach`; the daemon answers the agent's queries.
    pub fn attached(command: Command, cols: u16, rows: u16) -> Window {
        Window::around(command, cols, rows, false)
    }

    fn around(command: Command, cols: u16, rows: u16, answers: bool) -> Window {
        Window {
            pty: Pty::spawn(command, cols, rows),
            screen: Screen::new(Size::cells(cols, rows), SCROLLBACK),
            second: SecondOpinion::new(cols, rows),
            fed: 0,
            resized_at: 0,
            answers,
        }
    }

    /// Reads new output and returns the current picture.
    pub fn look(&mut self) -> Picture {
        self.pty.look();
        let new = &self.pty.output()[self.fed..];
        self.fed += new.len();
        self.second.feed(new);
        let replies = self.screen.feed(new).replies;
        if self.answers && !replies.is_empty() {
            self.pty.send(replies);
        }
        Picture::of(&mut self.screen)
    }

    /// The picture of the other emulator from the same bytes.
    pub fn second_opinion(&self) -> Picture {
        self.second.picture()
    }

    pub fn types(&mut self, keys: &str) {
        self.pty.send(keys);
    }

    pub fn resize(&mut self, cols: u16, rows: u16) {
        self.look();
        self.resized_at = self.fed;
        self.screen.resize(Size::cells(cols, rows));
        self.second.resize(cols, rows);
        self.pty.resize(cols, rows);
    }

    /// Whether the program has written anything since the last resize.
    pub fn has_redrawn(&self) -> bool {
        self.fed > self.resized_at
    }

    pub fn size(&self) -> (u16, u16) {
        let Size { cols, rows, .. } = self.screen.size();
        (cols, rows)
    }

    pub fn closes(&mut self) {
        self.pty.wait_exit();
        self.look();
    }

    /// Sends SIGKILL to the program.
    pub fn kill(mut self) {
        Process::find(self.pty.pid()).expect("it runs").signal(agency_testkit::Signal::KILL);
        self.pty.wait_exit();
    }
}

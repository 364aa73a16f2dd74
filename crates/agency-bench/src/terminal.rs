//! A client on a terminal of ours: keys in, bytes out, with the time of each.
//!
//! Answers what clients ask of every terminal; one that waits for an answer would be slow here and nowhere else.

use std::process::Command;
use std::time::{Duration, Instant};

use agency_testkit::Pty;

pub const COLS: u16 = 132;
pub const ROWS: u16 = 50;

/// Far more than anything needs, so that only a hang reaches it.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Clients ask when they come; a flood is not searched for questions.
const ASKS_WITHIN: u64 = 1 << 20;

const LOOK_EVERY: Duration = Duration::from_millis(2);

pub struct Terminal {
    pty: Pty,
    /// A client that drew for so long nothing has drawn all.
    quiet: Duration,
    /// What the client wrote so far.
    pub bytes: u64,
}

impl Terminal {
    pub fn spawn(command: Command, quiet: Duration) -> Terminal {
        Terminal { pty: Pty::spawn(command, COLS, ROWS), quiet, bytes: 0 }
    }

    pub fn press(&mut self, keys: &[u8]) {
        self.pty.send(keys);
    }

    /// Waits until the client has taken the terminal over: before that the kernel would echo in its place.
    pub fn wait_taken(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while self.pty.echoes() {
            assert!(Instant::now() < deadline, "the client never took the terminal over");
            // It may draw first.
            self.read(Instant::now() + LOOK_EVERY);
        }
    }

    pub fn is_taken(&self) -> bool {
        !self.pty.echoes()
    }

    /// The next output. `None`: none came, or the client ended.
    pub fn read(&mut self, deadline: Instant) -> Option<Vec<u8>> {
        let output = self.pty.take(deadline)?;
        self.bytes += output.len() as u64;
        if self.bytes < ASKS_WITHIN {
            self.pty.send(answers(&output));
        }
        Some(output)
    }

    /// When the mark was there. It must begin with a sign that is rare, and may come in pieces.
    pub fn wait_for(&mut self, mark: &str) -> Instant {
        let deadline = Instant::now() + PATIENCE;
        let mut tail = Vec::new();
        while let Some(output) = self.read(deadline) {
            let now = Instant::now();
            tail.extend_from_slice(&output);
            if holds(&tail, mark.as_bytes()) {
                return now;
            }
            tail.drain(..tail.len().saturating_sub(mark.len()));
        }
        panic!("{mark} was never drawn");
    }

    /// Reads until nothing has come for a while.
    pub fn settle(&mut self) {
        while self.read(Instant::now() + self.quiet).is_some() {}
    }

    /// Takes the terminal away and waits until the client is gone.
    pub fn leave(self) {
        self.pty.hang_up();
    }
}

/// To what asks a terminal for its colours, where the cursor stands, and who it is, which is asked last.
fn answers(output: &[u8]) -> Vec<u8> {
    if !output.contains(&0x1b) {
        return Vec::new();
    }
    let answers: [(&[u8], &[u8]); 6] = [
        (b"\x1b]10;?", b"\x1b]10;rgb:d0d0/d0d0/d0d0\x1b\\"),
        (b"\x1b]11;?", b"\x1b]11;rgb:1010/1010/1010\x1b\\"),
        (b"\x1b[6n", b"\x1b[1;1R"),
        (b"\x1b[>c", b"\x1b[>41;380;0c"),
        (b"\x1b[0c", b"\x1b[?62;22c"),
        (b"\x1b[c", b"\x1b[?62;22c"),
    ];
    let asked = answers.iter().filter(|(question, _)| holds(output, question));
    asked.flat_map(|(_, answer)| answer.iter().copied()).collect()
}

/// Whether the text is in there; quick where its first byte is rare.
pub fn holds(bytes: &[u8], text: &[u8]) -> bool {
    let Some((first, _)) = text.split_first() else { return true };
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        if rest[at..].starts_with(text) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_behind_its_own_beginning() {
        assert!(holds(b"xx@@END@", b"@END@"));
        assert!(!holds(b"xx@EN@END", b"@END@"));
        assert!(holds(b"", b""));
    }

    #[test]
    fn a_mark_that_comes_in_pieces_is_seen() {
        let mut command = Command::new("sh");
        command.args(["-c", "printf '@E'; printf 'ND@'; cat"]);
        let mut terminal = Terminal::spawn(command, Duration::from_millis(50));
        terminal.wait_for("@END@");
        terminal.leave();
    }

    #[test]
    fn every_question_is_answered_and_who_it_is_comes_last() {
        let asked = answers(b"\x1b[?1049h\x1b]11;?\x07\x1b[c");
        assert_eq!(asked, b"\x1b]11;rgb:1010/1010/1010\x1b\\\x1b[?62;22c");
        assert!(answers(b"plain").is_empty());
    }
}

//! A client on a terminal of this program: keys in, bytes out, with the time of each.
//!
//! Answers the queries that clients send to every terminal; otherwise a client would wait for answers only here.

use std::process::Command;
use std::time::{Duration, Instant};

use agency_testkit::Pty;

pub const COLS: u16 = 132;
pub const ROWS: u16 = 50;

/// Far more than any client needs, so that only one that hangs reaches it.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Clients send queries when they start; do not search a flood for them.
const QUERIES_WITHIN: u64 = 1 << 20;

const CHECK_EVERY: Duration = Duration::from_millis(2);

pub struct Terminal {
    pty: Pty,
    /// A client that drew nothing for this long has drawn everything.
    quiet: Duration,
    /// Bytes that the client wrote so far.
    pub bytes: u64,
}

impl Terminal {
    pub fn spawn(command: Command, quiet: Duration) -> Terminal {
        Terminal { pty: Pty::spawn(command, COLS, ROWS), quiet, bytes: 0 }
    }

    pub fn press(&mut self, keys: &[u8]) {
        self.pty.send(keys);
    }

    /// Waits until the client has taken over the terminal: before that, the kernel itself echoes keys.
    pub fn wait_taken(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while self.pty.echoes() {
            assert!(Instant::now() < deadline, "the client never took over the terminal");
            // The client may draw first.
            self.read(Instant::now() + CHECK_EVERY);
        }
    }

    pub fn is_taken(&self) -> bool {
        !self.pty.echoes()
    }

    /// The next output, or `None` if none came in time or the client ended.
    pub fn read(&mut self, deadline: Instant) -> Option<Vec<u8>> {
        let output = self.pty.take(deadline)?;
        self.bytes += output.len() as u64;
        if self.bytes < QUERIES_WITHIN {
            self.pty.send(answers(&output));
        }
        Some(output)
    }

    /// Waits for the mark and returns the time. The mark must begin with a rare sign, and may come in pieces.
    pub fn wait_for(&mut self, mark: &str) -> Instant {
        let deadline = Instant::now() + PATIENCE;
        let mut tail = Vec::new();
        while let Some(output) = self.read(deadline) {
            let now = Instant::now();
            tail.extend_from_slice(&output);
            if contains(&tail, mark.as_bytes()) {
                return now;
            }
            tail.drain(..tail.len().saturating_sub(mark.len()));
        }
        panic!("{mark} was never drawn");
    }

    /// Reads until no output has come for a while.
    pub fn settle(&mut self) {
        while self.read(Instant::now() + self.quiet).is_some() {}
    }

    /// Closes the terminal and waits until the client has ended.
    pub fn leave(self) {
        self.pty.hang_up();
    }
}

/// Answers to queries for colours, the position of the cursor, and the terminal's identity, which clients ask for last.
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
    let found = answers.iter().filter(|(query, _)| contains(output, query));
    found.flat_map(|(_, answer)| answer.iter().copied()).collect()
}

/// Whether the bytes contain the text; fast if its first byte is rare.
pub fn contains(bytes: &[u8], text: &[u8]) -> bool {
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
        assert!(contains(b"xx@@END@", b"@END@"));
        assert!(!contains(b"xx@EN@END", b"@END@"));
        assert!(contains(b"", b""));
    }

    #[test]
    fn a_mark_that_comes_in_pieces_is_found() {
        let mut command = Command::new("sh");
        command.args(["-c", "printf '@E'; printf 'ND@'; cat"]);
        let mut terminal = Terminal::spawn(command, Duration::from_millis(50));
        terminal.wait_for("@END@");
        terminal.leave();
    }

    #[test]
    fn every_query_is_answered_and_the_identity_comes_last() {
        let answered = answers(b"\x1b[?1049h\x1b]11;?\x07\x1b[c");
        assert_eq!(answered, b"\x1b]11;rgb:1010/1010/1010\x1b\\\x1b[?62;22c");
        assert!(answers(b"plain").is_empty());
    }
}

//! The output of a terminal as lines of text with their times: what `logs` prints and the index of `search` holds.
//!
//! A line of a program that prints is written once it has scrolled off the screen, or at the end. Programs that paint the
//! alternate screen become text through the driver's [`FullScreenText`].

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use agency_driver::full_screen::{FullScreenText, ReadLine};
use agency_journal::{Body, GapCause, Reader, Record};
use agency_store::clock;
use agency_terminal::{Screen, Size};

use crate::fold::unseal;
use crate::wall_clock::WallClock;

/// Lines leave the scrollback as soon as they arrive there. This is more than one record can scroll off the screen.
const SCROLLBACK: usize = 100_000;

/// Programs write a frame in one go. After this silence a picture is complete.
const FRAME_GAP: Duration = Duration::from_millis(15);

/// A program that never pauses is looked at this often, in the middle of whatever it paints.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The beginnings of sequences that enter and leave the alternate screen.
const SWITCHES: [&[u8]; 3] = [b"\x1b[?1049", b"\x1b[?1047", b"\x1b[?47"];

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Milliseconds since 1970, if the journal knows.
    pub at_ms: Option<i64>,
    /// The text, without colours.
    pub text: String,
}

/// One run's output, as far as its records were read.
pub struct TextLog {
    screen: Screen,
    /// So many lines at the top of the primary screen are written already.
    written: usize,
    full_screen: FullScreenText,
    /// The alternate screen has changed since the last look.
    has_new_picture: bool,
    last_output: Duration,
    looked_at: Duration,
    clock: WallClock,
    ready: Vec<LogLine>,
}

impl Default for TextLog {
    fn default() -> TextLog {
        TextLog {
            screen: Screen::new(Size::cells(80, 24), SCROLLBACK),
            written: 0,
            full_screen: FullScreenText::default(),
            has_new_picture: false,
            last_output: Duration::ZERO,
            looked_at: Duration::ZERO,
            clock: WallClock::default(),
            ready: Vec::new(),
        }
    }
}

impl TextLog {
    /// Reads the next record of the run.
    pub fn record(&mut self, record: &Record) {
        let at = Duration::from_nanos(record.at_ns);
        match &record.body {
            Body::Output { bytes, .. } => self.output(bytes, at),
            Body::Gap { output_bytes, cause } if is_loss(*cause, *output_bytes) => {
                let text =
                    format!("\r\n─── {output_bytes} bytes are missing here: {} ───\r\n", reason(*cause));
                self.output(text.as_bytes(), at);
            }
            Body::Resize { cols, rows, .. } => {
                self.look_if_complete(at);
                self.screen.resize(Size::cells(*cols, *rows));
            }
            Body::Anchor { .. } => self.clock.record(record),
            _ => {}
        }
    }

    fn output(&mut self, bytes: &[u8], at: Duration) {
        self.look_if_complete(at);
        self.last_output = at;
        for piece in split_at_switches(bytes) {
            let (is_switch, was_alternate) = (is_switch(piece), self.screen.is_alternate());
            match (is_switch, was_alternate) {
                (true, true) => self.look(),
                // A program may leave the alternate screen to be sure, and draw over the primary one.
                (true, false) if enters(piece) => self.write_complete_lines(),
                (true, false) | (false, _) => {}
            }
            self.screen.feed(piece);
            if was_alternate && !self.screen.is_alternate() {
                self.finish_pictures();
            }
        }
        self.write_history();
        self.has_new_picture = self.screen.is_alternate();
        if at.saturating_sub(self.looked_at) >= LOOK_EVERY && !self.screen.is_half_drawn() {
            self.look();
        }
    }

    /// Writes the lines that will not change any more, for a reader that follows: those that the cursor has left, and those
    /// that stood on the alternate screen for a while.
    pub fn settle(&mut self, now: Duration) {
        self.look_if_complete(now);
        if self.screen.is_alternate() {
            self.full_screen.write_settled(now);
            self.take_pictures();
        } else {
            self.write_complete_lines();
        }
    }

    /// When [`Self::settle`] next has something to write, if no record comes.
    pub fn settles_at(&self) -> Option<Duration> {
        let look = self.has_new_picture.then(|| self.last_output + FRAME_GAP);
        [look, self.full_screen.settles_at()].into_iter().flatten().min()
    }

    /// The run is over: writes the rest of the screen.
    pub fn finish(&mut self) {
        if self.screen.is_alternate() {
            self.look();
            self.finish_pictures();
            self.screen.feed(b"\x1b[?1049l");
        }
        let text = self.screen.text();
        let rest: Vec<String> = text.trim_end().lines().skip(self.written).map(str::to_owned).collect();
        self.write(rest);
        self.written = 0;
        self.screen = Screen::new(Size::cells(80, 24), SCROLLBACK);
    }

    /// The lines that were written since the last call.
    pub fn take(&mut self) -> Vec<LogLine> {
        std::mem::take(&mut self.ready)
    }

    fn look_if_complete(&mut self, at: Duration) {
        if self.has_new_picture && at.saturating_sub(self.last_output) >= FRAME_GAP {
            self.look();
        }
    }

    fn look(&mut self) {
        self.looked_at = self.last_output;
        if !std::mem::take(&mut self.has_new_picture) || !self.screen.is_alternate() {
            return;
        }
        if self.screen.take_visible_change() {
            self.full_screen.look(self.screen.rows(), self.last_output);
            self.take_pictures();
        }
    }

    fn finish_pictures(&mut self) {
        self.full_screen.finish();
        self.take_pictures();
    }

    fn take_pictures(&mut self) {
        for ReadLine { at, text } in self.full_screen.take() {
            self.ready.push(LogLine { at_ms: self.wall_ms(at), text });
        }
    }

    fn write_history(&mut self) {
        let lines = self.screen.drain_history();
        let already = self.written.min(lines.len());
        self.written -= already;
        self.write(lines.into_iter().skip(already).collect());
    }

    fn write_complete_lines(&mut self) {
        // Lines may have left the screen since the last record, and they come first.
        self.write_history();
        let complete = self.screen.lines_above_cursor();
        let count = complete.len();
        self.write(complete.into_iter().skip(self.written).collect());
        self.written = count.max(self.written);
    }

    fn write(&mut self, lines: Vec<String>) {
        let at_ms = self.wall_ms(self.last_output);
        self.ready.extend(lines.into_iter().map(|text| LogLine { at_ms, text }));
    }

    fn wall_ms(&self, at: Duration) -> Option<i64> {
        self.clock.time_of(at.as_nanos() as u64).map(|time| time.as_millisecond())
    }
}

/// The text of one journal, read on as the journal grows.
pub struct TextReader {
    journal: PathBuf,
    next_seq: u64,
    log: TextLog,
}

impl TextReader {
    /// Reads nothing yet.
    pub fn open(journal: PathBuf) -> TextReader {
        TextReader { journal, next_seq: 0, log: TextLog::default() }
    }

    /// Blocking. Gives `take` every line that the journal holds now and that was not given before, in pieces.
    pub fn read(&mut self, mut take: impl FnMut(Vec<LogLine>)) -> io::Result<()> {
        let mut reader = Reader::open(&self.journal, unseal)?;
        reader.seek(self.next_seq)?;
        while let Some(record) = reader.next()? {
            self.next_seq = record.seq + 1;
            self.log.record(&record);
            take(self.log.take());
        }
        self.log.settle(clock::now());
        take(self.log.take());
        Ok(())
    }

    /// The run is over: returns the rest of its screen.
    pub fn finish(mut self) -> Vec<LogLine> {
        self.log.finish();
        self.log.take()
    }
}

/// Whether the piece, which begins with a switch, shows the alternate screen.
fn enters(piece: &[u8]) -> bool {
    SWITCHES.iter().any(|switch| piece.strip_prefix(*switch).is_some_and(|rest| rest.starts_with(b"h")))
}

fn is_switch(piece: &[u8]) -> bool {
    SWITCHES.iter().any(|switch| piece.starts_with(switch))
}

/// Pieces that begin with a switch, so that each screen is read before the other one is shown.
fn split_at_switches(bytes: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let mut begin = 0;
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == 0x1b) {
        if at > begin && is_switch(&bytes[at..]) {
            pieces.push(&bytes[begin..at]);
            begin = at;
        }
    }
    pieces.push(&bytes[begin..]);
    pieces
}

/// A killed keeper may have lost output without knowing how much. All other causes know the amount.
fn is_loss(cause: GapCause, output_bytes: u64) -> bool {
    output_bytes > 0 || cause == GapCause::KeeperLost
}

fn reason(cause: GapCause) -> &'static str {
    match cause {
        GapCause::DiskFull => "the disk was full",
        GapCause::KeeperLost => "the keeper was killed",
        GapCause::Retention => "the journal was too long",
        GapCause::Corrupt => "the journal is damaged",
    }
}

#[cfg(test)]
mod tests {
    use agency_journal::Stream;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn lines(records: &[(u64, &str)]) -> Vec<LogLine> {
        let mut log = TextLog::default();
        let anchor = Body::Anchor { wall_unix_ns: 1_000 * SECOND as i64, boottime_ns: 0, boot_id: [0; 16] };
        log.record(&Record { seq: 1, output_offset: 0, at_ns: 0, body: anchor });
        for (seconds, text) in records {
            let body = Body::Output { stream: Stream::Terminal, bytes: text.as_bytes().to_vec() };
            log.record(&Record { seq: 2, output_offset: 0, at_ns: seconds * SECOND, body });
        }
        log.finish();
        log.take()
    }

    fn texts(records: &[(u64, &str)]) -> Vec<String> {
        lines(records).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn an_editor_is_read_between_the_lines_of_the_shell_that_started_it() {
        let read = texts(&[
            (1, "$ edit\r\n\x1b[?1049h\x1b[2J\x1b[Hfirst page"),
            (9, "\x1b[2J\x1b[Hsecond page"),
            (19, "\x1b[?1049l$ ls\r\nfile\r\n"),
        ]);
        assert_eq!(read, ["$ edit", "first page", "second page", "$ ls", "file"]);
    }

    #[test]
    fn lines_that_scroll_away_right_before_a_switch_are_not_lost() {
        let scrolled = format!("first\r\nsecond\r\n{}\x1b[?1049l\x1b[H\x1b[Jthird", "\r\n".repeat(30));
        let read = texts(&[(1, &scrolled)]);
        assert_eq!(read[..2], ["first", "second"], "{read:?}");
        assert_eq!(read.last().map(String::as_str), Some("third"));
    }

    #[test]
    fn a_program_that_was_killed_on_the_alternate_screen_leaves_its_last_picture() {
        let read = texts(&[(1, "$ agent\r\n\x1b[?1049h\x1b[Hworking"), (2, "\r\nmore")]);
        assert_eq!(read, ["$ agent", "working", "more"]);
    }

    #[test]
    fn a_line_has_the_time_at_which_it_appeared() {
        let read = lines(&[(5, "\x1b[?1049h\x1b[Hone"), (8, "\r\ntwo"), (60, "\x1b[?1049l")]);
        let times: Vec<_> = read.iter().map(|line| (line.text.as_str(), line.at_ms)).collect();
        assert_eq!(times, [("one", Some(1_005_000)), ("two", Some(1_008_000))]);
    }
}

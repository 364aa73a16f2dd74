//! A screen as callers see it: of a live terminal, at the end of a run, or at a time in its past.

use std::io;
use std::path::Path;

use agency_api::Bytes;
use agency_api::method::ScreenDump;
use agency_driver::terminal::Settings;
use agency_journal::{Body, Reader, Record, Source};
use jiff::Timestamp;

use crate::fold::{Fold, unseal};
use crate::view::api_size;
use crate::wall_clock::WallClock;

/// The sequences that leave the alternate screen.
const LEAVES: [&[u8]; 3] = [b"\x1b[?1049l", b"\x1b[?1047l", b"\x1b[?47l"];

/// The screen of a fold.
pub(crate) fn dump(fold: &mut Fold) -> ScreenDump {
    let next_seq = fold.next_seq;
    let screen = fold.run.screen();
    ScreenDump {
        size: api_size(screen.size()),
        cursor: screen.cursor(),
        title: screen.title().to_string(),
        alternate: screen.is_alternate(),
        modes: serde_json::to_value(screen.modes()).unwrap_or_default(),
        text: screen.text(),
        ansi: Bytes(screen.redraw(true)),
        next_seq,
        dump: Bytes(screen.dump()),
        time: None,
    }
}

/// Blocking. The last picture of an ended run. A full-screen program leaves the alternate screen when it ends, and what is
/// then on the screen is older than the program. So this is the picture before that, unless a user or a message typed something after it.
pub fn last_picture(journal: &Path, settings: Settings) -> io::Result<ScreenDump> {
    let mut ending = Ending::default();
    each_record(journal, |record, time| {
        ending.record(&record, time);
        true
    })?;
    if let Some(left) = ending.left {
        let mut fold = Fold::rebuild_before(journal, settings.clone(), left.record.seq)?;
        fold.record(&left.record);
        let rows = fold.run.screen().rows();
        if fold.run.screen().is_alternate() && rows.iter().any(|row| !row.is_empty()) {
            return Ok(ScreenDump { time: left.time, ..dump(&mut fold) });
        }
    }
    let mut fold = Fold::rebuild(journal, settings)?;
    Ok(ScreenDump { time: ending.last_output, ..dump(&mut fold) })
}

/// Blocking. The screen at a time; none if the journal begins later.
pub fn picture_at(journal: &Path, settings: Settings, at: Timestamp) -> io::Result<Option<ScreenDump>> {
    let (mut end, mut last_output) = (None, None);
    each_record(journal, |record, time| {
        let is_after = time.is_some_and(|time| time > at);
        if !is_after {
            end = Some(record.seq + 1);
            if matches!(record.body, Body::Output { .. }) {
                last_output = time;
            }
        }
        !is_after
    })?;
    let Some(end) = end else { return Ok(None) };
    let mut fold = Fold::rebuild_before(journal, settings, end)?;
    Ok(Some(ScreenDump { time: last_output.map(|time| time.to_string()), ..dump(&mut fold) }))
}

/// Reads a journal until `read` returns `false`. Does not draw, so that even a long journal takes moments.
fn each_record(journal: &Path, mut read: impl FnMut(Record, Option<Timestamp>) -> bool) -> io::Result<()> {
    let (mut reader, mut clock) = (Reader::open(journal, unseal)?, WallClock::default());
    while let Some(record) = reader.next()? {
        clock.record(&record);
        let time = clock.time_of(record.at_ns);
        if !read(record, time) {
            break;
        }
    }
    Ok(())
}

/// The end of a run, as far as its records say.
#[derive(Default)]
struct Ending {
    left: Option<Left>,
    last_output: Option<String>,
}

/// A record up to the place where the program leaves the alternate screen.
struct Left {
    record: Record,
    time: Option<String>,
}

impl Ending {
    fn record(&mut self, record: &Record, time: Option<Timestamp>) {
        match &record.body {
            Body::Output { bytes, stream } => {
                let time = time.map(|time| time.to_string());
                if let Some(at) = last_leave(bytes) {
                    let body = Body::Output { stream: *stream, bytes: bytes[..at].to_vec() };
                    self.left = Some(Left { record: Record { body, ..*record }, time: time.clone() });
                }
                self.last_output = time;
            }
            Body::Input { source: Source::User | Source::Send, .. }
            | Body::HiddenInput { source: Source::User | Source::Send, .. } => self.left = None,
            _ => {}
        }
    }
}

fn last_leave(bytes: &[u8]) -> Option<usize> {
    let escapes = bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == 0x1b);
    let mut places = escapes.map(|(at, _)| at);
    places.find(|at| LEAVES.iter().any(|leave| bytes[*at..].starts_with(leave)))
}

#[cfg(test)]
mod tests {
    use agency_journal::Stream;

    use super::*;

    fn ending(records: &[(&str, bool)]) -> Option<String> {
        let mut ending = Ending::default();
        for (text, is_output) in records {
            let bytes = text.as_bytes().to_vec();
            let body = match is_output {
                true => Body::Output { stream: Stream::Terminal, bytes },
                false => Body::Input { source: Source::User, bytes },
            };
            ending.record(&Record { seq: 1, output_offset: 0, at_ns: 0, body }, None);
        }
        let body = ending.left?.record.body;
        let Body::Output { bytes, .. } = body else { return None };
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    #[test]
    fn the_picture_ends_where_the_program_left_the_alternate_screen() {
        let left = ("bye\x1b[?1049lresume with", true);
        assert_eq!(ending(&[("\x1b[?1049hhello", true), left]).as_deref(), Some("bye"));
        assert_eq!(ending(&[left, ("$ ", true), ("ls\r", false)]), None, "a shell went on");
        assert_eq!(ending(&[("hello\r\n", true)]), None);
    }
}

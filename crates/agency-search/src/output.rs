//! The output of terminals, as passages of some lines. Input is never read, so a password that no program printed is not here.
//!
//! An ended run is read once. A live run is read on from where the last search stopped.

use std::collections::VecDeque;
use std::path::PathBuf;

use agency_api::search::HitKind;
use agency_core::ids::{RunId, TaskKey};
use agency_core::secrets;
use agency_run::text_log::{LogLine, TextReader};

use crate::index_file::{IndexError, IndexFile, Replaces};
use crate::passage::{FIRST_OUTPUT, MOST_OUTPUT, Passage};

/// A hit shows one passage, so it is about as long as a screen.
const LINES_PER_PASSAGE: usize = 20;

/// A line may be as long as a program likes.
const MOST_BYTES_PER_PASSAGE: usize = 8 << 10;

/// Where the output of a task is.
#[derive(Debug, Clone)]
pub enum TaskOutput {
    /// The index keeps what it has. Only a search reads a live terminal.
    Unchanged,
    /// The journals of its terminals, oldest first.
    Journals { journals: Vec<TerminalJournal>, is_live: bool },
}

/// The journal of one run in a terminal.
#[derive(Debug, Clone)]
pub struct TerminalJournal {
    pub run: RunId,
    pub path: PathBuf,
}

/// How far a live terminal was read.
pub struct LiveOutput {
    run: RunId,
    reader: TextReader,
    next_number: u64,
}

/// Brings the output of a task into the index. `live` is where the last search stopped. Blocks.
pub fn write_output(
    file: &mut IndexFile,
    key: &TaskKey,
    output: &TaskOutput,
    live: Option<LiveOutput>,
) -> Result<Option<LiveOutput>, IndexError> {
    let TaskOutput::Journals { journals, is_live } = output else { return Ok(live) };
    if *is_live {
        return write_live(file, key, journals, live);
    }
    let stamp = journals.iter().map(|journal| journal.run.0.as_str()).collect::<Vec<_>>().join(" ");
    if file.stamps(key).output != stamp {
        let mut passages = Passages::new(FIRST_OUTPUT);
        journals.iter().for_each(|journal| read_ended(key, journal, &mut passages));
        file.write_output(key, &passages.finish().0, Replaces::Everything, &stamp)?;
    }
    Ok(None)
}

fn write_live(
    file: &mut IndexFile,
    key: &TaskKey,
    journals: &[TerminalJournal],
    live: Option<LiveOutput>,
) -> Result<Option<LiveOutput>, IndexError> {
    let Some((newest, before)) = journals.split_last() else { return Ok(None) };
    let known = live.filter(|live| live.run == newest.run);
    let replaces = if known.is_some() { Replaces::Nothing } else { Replaces::Everything };
    let (mut reader, mut passages) = match known {
        Some(live) => (live.reader, Passages::new(live.next_number)),
        None => {
            let mut passages = Passages::new(FIRST_OUTPUT);
            before.iter().for_each(|journal| read_ended(key, journal, &mut passages));
            (TextReader::open(newest.path.clone()), passages)
        }
    };
    read_more(key, &mut reader, &mut passages);
    let (passages, next_number) = passages.finish();
    if !passages.is_empty() || replaces == Replaces::Everything {
        file.write_output(key, &passages, replaces, "")?;
    }
    Ok(Some(LiveOutput { run: newest.run.clone(), reader, next_number }))
}

fn read_ended(key: &TaskKey, journal: &TerminalJournal, passages: &mut Passages) {
    let mut reader = TextReader::open(journal.path.clone());
    read_more(key, &mut reader, passages);
    passages.add(reader.finish());
    passages.close();
}

fn read_more(key: &TaskKey, reader: &mut TextReader, passages: &mut Passages) {
    let outcome = reader.read(|lines| passages.add(lines));
    if let Err(cause) = outcome {
        tracing::warn!(task = %key, %cause, "cannot read the output of a terminal for the index");
    }
}

/// The newest passages, as lines come in.
struct Passages {
    lines: Vec<LogLine>,
    whole: VecDeque<Passage>,
    next_number: u64,
}

impl Passages {
    fn new(next_number: u64) -> Passages {
        Passages { lines: Vec::new(), whole: VecDeque::new(), next_number }
    }

    fn add(&mut self, lines: Vec<LogLine>) {
        for line in lines {
            self.lines.push(line);
            if self.lines.len() == LINES_PER_PASSAGE {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        let text = lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n");
        if text.trim().is_empty() {
            return;
        }
        // The screen of that moment shows the lines before it, too.
        let at_ms = lines.iter().filter_map(|line| line.at_ms).max();
        let text = secrets::mask(cut(&text));
        self.whole.push_back(Passage { number: self.next_number, kind: HitKind::Output, at_ms, text });
        self.next_number += 1;
        if self.whole.len() as u64 > MOST_OUTPUT {
            self.whole.pop_front();
        }
    }

    fn finish(mut self) -> (Vec<Passage>, u64) {
        self.close();
        (self.whole.into(), self.next_number)
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST_BYTES_PER_PASSAGE)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(n: u64) -> LogLine {
        LogLine { at_ms: Some(n as i64), text: format!("line {n}") }
    }

    #[test]
    fn passages_are_bounded_and_the_newest_ones_stay() {
        let mut passages = Passages::new(FIRST_OUTPUT);
        let lines = (MOST_OUTPUT + 5) * LINES_PER_PASSAGE as u64;
        passages.add((0..lines).map(line).collect());
        let (kept, next_number) = passages.finish();
        assert_eq!((kept.len() as u64, next_number), (MOST_OUTPUT, FIRST_OUTPUT + MOST_OUTPUT + 5));
        assert!(kept[0].text.starts_with("line 100\nline 101\n"));
        assert_eq!(kept[0].at_ms, Some(119));
    }

    #[test]
    fn a_long_line_is_cut_and_a_printed_token_is_masked() {
        let mut passages = Passages::new(FIRST_OUTPUT);
        let text = format!("API_KEY=hunter2secret {}", "é".repeat(10_000));
        passages.add(vec![LogLine { at_ms: None, text }]);
        let (kept, _) = passages.finish();
        assert!(
            kept[0].text.len() <= MOST_BYTES_PER_PASSAGE && !kept[0].text.contains("hunter2"),
            "{}",
            kept[0].text
        );
        assert!(Passages::new(1).finish().0.is_empty());
    }
}

//! Checks the journals of counting agents: every line once and in order, and none missing without a gap that says so.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use agency_journal::{Body, Reader, Stream};

use crate::agent::{count_file, numbered_line};

#[derive(Default)]
pub struct LineChecks {
    runs: BTreeMap<String, LineCheck>,
}

/// The progress of reading one journal.
#[derive(Debug)]
pub struct LineCheck {
    /// The next record.
    seq: u64,
    /// The number of the next line.
    next: u64,
    partial: Vec<u8>,
    /// A gap lies inside the current line.
    is_in_gap: bool,
    /// Lines that are missing where a gap says so.
    lost: u64,
}

/// The result of one look at all journals.
#[derive(Debug, Default)]
pub struct LineReport {
    pub checked: u64,
    pub lost: u64,
    pub problems: Vec<String>,
    /// Runs whose agent has printed lines that are not in the journal yet.
    pub behind: Vec<String>,
}

impl LineChecks {
    /// Reads what came since the last look. `truth` holds one file for each run that counts.
    pub fn read(&mut self, state: &Path, truth: &Path) -> LineReport {
        let mut report = LineReport::default();
        for run in counting_runs(truth) {
            let check = self.runs.entry(run.clone()).or_default();
            let (before, lost) = (check.next, check.lost);
            if let Err(problem) = check.read(&state.join("r").join(&run).join("j")) {
                report.problems.push(format!("run {run}: {problem}"));
            }
            report.checked += check.next - before;
            report.lost += check.lost - lost;
            let printed = printed_lines(truth, &run);
            if check.next <= printed && !check.is_in_gap {
                report
                    .behind
                    .push(format!("run {run}: {printed} lines were printed, {} arrived", check.next - 1));
            }
        }
        report
    }
}

impl Default for LineCheck {
    fn default() -> LineCheck {
        LineCheck { seq: 1, next: 1, partial: Vec::new(), is_in_gap: false, lost: 0 }
    }
}

impl LineCheck {
    fn read(&mut self, journal: &Path) -> Result<(), String> {
        let unreadable = |err: std::io::Error| format!("the journal cannot be read: {err}");
        let mut reader = Reader::open(journal, unseal).map_err(unreadable)?;
        reader.seek(self.seq).map_err(unreadable)?;
        while let Some(record) = reader.next().map_err(unreadable)? {
            match record.body {
                Body::Output { stream: Stream::Terminal, bytes } => self.take(&bytes)?,
                Body::Gap { .. } => self.is_in_gap = true,
                _ => {}
            }
            self.seq = reader.next_seq();
        }
        Ok(())
    }

    pub fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.partial.extend_from_slice(bytes);
        while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.partial.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            self.take_line(&line)?;
        }
        Ok(())
    }

    fn take_line(&mut self, line: &str) -> Result<(), String> {
        let number = number_of(line);
        if number == Some(self.next) {
            self.next += 1;
            self.is_in_gap = false;
            return Ok(());
        }
        match number {
            // The first whole line behind a gap.
            Some(number) if self.is_in_gap && number > self.next => {
                self.lost += number - self.next;
                self.next = number + 1;
                self.is_in_gap = false;
                Ok(())
            }
            // The rest of a line that began in a gap.
            None if self.is_in_gap => Ok(()),
            _ => {
                let expected = numbered_line(self.next);
                // Continue behind it, so that one fault is reported once.
                self.next = number.map_or(self.next, |number| number + 1);
                Err(format!("expected {expected:?}, found {line:?}"))
            }
        }
    }
}

fn number_of(line: &str) -> Option<u64> {
    let number = line.strip_prefix("line ")?.split(' ').next()?.parse().ok()?;
    (line == numbered_line(number)).then_some(number)
}

fn counting_runs(truth: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(truth) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.strip_prefix("count-").map(str::to_owned)).collect()
}

/// The agent writes the number after it has printed the line.
fn printed_lines(truth: &Path, run: &str) -> u64 {
    let text = fs::read_to_string(count_file(truth, run)).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

fn unseal(path: &Path) -> std::io::Result<Vec<u8>> {
    zstd::decode_all(fs::File::open(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(numbers: &[u64]) -> Vec<u8> {
        numbers.iter().flat_map(|number| (numbered_line(*number) + "\r\n").into_bytes()).collect()
    }

    #[test]
    fn a_missing_a_doubled_and_a_joined_line_are_found() {
        let mut check = LineCheck::default();
        assert_eq!(check.take(&text(&[1, 2, 3])), Ok(()));
        assert!(check.take(&text(&[5])).is_err(), "4 is missing");
        assert!(check.take(&text(&[5])).is_err(), "5 is doubled");
        assert_eq!(check.take(&text(&[6])), Ok(()));
        assert!(check.take(&[&text(&[7])[..20], &text(&[8])].concat()).is_err());
    }

    #[test]
    fn a_gap_excuses_lost_lines_and_never_doubled_ones() {
        let mut check = LineCheck::default();
        assert_eq!(check.take(&[text(&[1]), text(&[2])[..9].to_vec()].concat()), Ok(()));
        check.is_in_gap = true;
        assert_eq!(check.take(&[text(&[4])[30..].to_vec(), text(&[5])].concat()), Ok(()));
        assert_eq!((check.next, check.lost), (6, 3));
        check.is_in_gap = true;
        assert!(check.take(&text(&[5])).is_err());
    }
}

//! Prints the journal of a run as lines of JSON: `[seconds, kind, data]`, on the monotonic clock.
//!
//! For `scripts/record-agent`: a recording holds what the journal holds, so it holds every probe that the detector saw.
//! The kinds are `o` (output), `i` (input; empty if it was a secret), `r` (a new size) and `p` (a probe).

use std::io;
use std::path::Path;
use std::process::ExitCode;

use agency_bench::program;
use agency_journal::{Body, Reader, Record, Source};
use serde_json::{Value, json};

/// The tag of a note that holds a probe.
const PROBE_TAG: &str = "probe";

fn main() -> ExitCode {
    program::exit_code(run())
}

fn run() -> Result<ExitCode, String> {
    let Some(journal) = std::env::args_os().nth(1) else {
        return Err("usage: journal_lines JOURNAL".to_owned());
    };
    let journal = Path::new(&journal);
    let unreadable = |err| format!("{}: {err}", journal.display());
    let mut reader = Reader::open(journal, refuse_sealed).map_err(unreadable)?;
    while let Some(record) = reader.next().map_err(unreadable)? {
        if let Some(line) = line(&record) {
            println!("{line}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The daemon seals only segments that are much longer than a recording.
fn refuse_sealed(_: &Path) -> io::Result<Vec<u8>> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Bytes are Latin-1 characters, so that a character in two records stays readable.
fn line(record: &Record) -> Option<Value> {
    let latin = |bytes: &[u8]| Value::from(bytes.iter().map(|byte| char::from(*byte)).collect::<String>());
    let (kind, data) = match &record.body {
        Body::Output { bytes, .. } => ("o", latin(bytes)),
        // The answer to a query of the program is no key.
        Body::Input { source: Source::Answer { .. }, .. } => return None,
        Body::Input { bytes, .. } => ("i", latin(bytes)),
        Body::HiddenInput { .. } => ("i", Value::from("")),
        Body::Resize { cols, rows, .. } => ("r", Value::from(format!("{cols}x{rows}"))),
        Body::Note { tag, bytes } if tag == PROBE_TAG => ("p", serde_json::from_slice(bytes).ok()?),
        _ => return None,
    };
    Some(json!([record.at_ns as f64 / 1e9, kind, data]))
}

#[cfg(test)]
mod tests {
    use agency_journal::Stream;

    use super::*;

    #[test]
    fn output_and_probes_become_lines_and_other_notes_do_not() {
        let record = |body| Record { seq: 1, output_offset: 0, at_ns: 2_500_000_000, body };
        let note = |tag: &str| Body::Note { tag: tag.to_owned(), bytes: b"{\"processes\":[]}".to_vec() };
        let output = Body::Output { stream: Stream::Terminal, bytes: vec![b'a', 0xc3] };
        assert_eq!(line(&record(output)).map(|line| line.to_string()).as_deref(), Some("[2.5,\"o\",\"aÃ\"]"));
        assert_eq!(line(&record(note("probe"))), Some(json!([2.5, "p", {"processes": []}])));
        assert_eq!(line(&record(note("hook"))), None);
    }
}

//! The report of a user about a wrong state: a text file with everything that the state followed from.
//!
//! Without secrets: no environment, nothing that was typed, and whatever looks like a secret is masked. The screen and the
//! output may still show private words, so Agency sends the file nowhere.

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use agency_api::paths::{StateDir, create_private};
use agency_api::view::{self, StateChange, Witness};
use agency_api::{Failure, FailureCode};
use agency_core::secrets;
use agency_journal::Body;
use agency_store::{atomic, clock};

use crate::command::Contradicted;
use crate::{fold, view as to_view};

/// The end of the output that goes into a report.
const OUTPUT_BYTES: usize = 8 << 10;
/// These many records hold that much output of any program that draws.
const RECORDS: u64 = 400;

/// A state that a user contradicted, and where it comes from.
#[derive(Debug)]
pub struct WrongStateReport {
    /// The name of the task.
    pub task: String,
    /// The name of the agent.
    pub agent: String,
    /// The belief that is wrong.
    pub wrong: view::Belief,
    /// The state and its evidence.
    pub contradicted: Contradicted,
    /// The journal of the run.
    pub journal: PathBuf,
    /// The last changes of state, oldest first.
    pub changes: Vec<StateChange>,
}

impl WrongStateReport {
    /// Blocking. Writes the file and returns its path.
    pub fn write(&self, state: &StateDir) -> Result<PathBuf, Failure> {
        let time = clock::timestamp_of(clock::now());
        let stamp: String = time.chars().filter(char::is_ascii_alphanumeric).collect();
        let path = state.reports().join(format!("{stamp}-{}-{}.txt", self.task, self.wrong.as_str()));
        let written = create_private(&state.reports())
            .and_then(|()| atomic::write_with_mode(&path, self.text(&time).as_bytes(), 0o600));
        written.map_err(|err| {
            Failure::new(format!("the state is corrected, but cannot write {}", path.display()))
                .code(FailureCode::IoError)
                .caused_by(&err)
        })?;
        Ok(path)
    }

    fn text(&self, time: &str) -> String {
        let Contradicted { program, explanation, screen, corrections } = &self.contradicted;
        let now = to_view::change(&explanation.standing, std::time::Duration::ZERO, None);
        let signs: Vec<&str> = explanation.signs.iter().map(|sign| sign.text.as_str()).collect();
        let head = [
            format!(
                "Agency {} said that an agent is {}, and that was wrong.",
                env!("CARGO_PKG_VERSION"),
                self.wrong.as_str()
            ),
            "Nothing was sent. Read this file before you share it: the screen and the output may be private."
                .to_owned(),
            String::new(),
            format!("time:      {time}"),
            format!("agent:     {}", self.agent),
            format!("program:   {program}"),
            format!("size:      {} columns, {} rows", screen.size.cols, screen.size.rows),
            format!("state:     {}", state_line(&now)),
            format!("signs:     {}", signs.join(", ")),
        ];
        let mut sections = vec![head.join("\n")];
        let mut section = |title: &str, lines: Vec<String>| {
            sections.push(format!("== {title} ==\n{}", lines.join("\n")));
        };
        section("evidence, most trusted first", explanation.witnesses.iter().map(witness_line).collect());
        section("what would change the state", explanation.outlook.clone());
        let line = |correction| {
            let view::Correction { source, rule, wrong, .. } = to_view::correction(correction);
            format!("{source}, {rule}: no longer {}", wrong.as_str())
        };
        section("corrections", corrections.iter().map(line).collect());
        section("last changes of state", self.changes.iter().map(state_line).collect());
        let text = secrets::mask(&sections.join("\n\n"));
        let rows: Vec<&str> = screen.text.lines().collect();
        let rows = secrets::mask_rows(&rows, usize::from(screen.size.cols));
        let output = match output_before(&self.journal, screen.next_seq) {
            Ok(output) => escaped(&secrets::mask_output(&String::from_utf8_lossy(&output))),
            Err(cause) => format!("it cannot be read: {cause}"),
        };
        format!("{text}\n\n== screen ==\n{rows}\n== end of the output ==\n{output}\n")
    }
}

fn state_line(change: &StateChange) -> String {
    let why = change.why.map(|why| format!(" ({})", why.as_str())).unwrap_or_default();
    let time = change.time.as_ref().map(|time| format!("{time} ")).unwrap_or_default();
    format!("{time}{}{why}: {}, {}", change.state.as_str(), change.evidence.source, change.evidence.rule)
}

fn witness_line(witness: &Witness) -> String {
    let says = witness.why.map_or("works".to_owned(), |why| format!("waits ({})", why.as_str()));
    let mark = if witness.decides { "→" } else { " " };
    let detail = witness.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("{mark} {} {says}, {} s: {}{detail}", witness.source, witness.for_seconds, witness.rule)
}

/// The end of the output before a record. Input is left out.
fn output_before(journal: &Path, next_seq: u64) -> io::Result<Vec<u8>> {
    let mut output = Vec::new();
    for record in fold::records(journal, next_seq.saturating_sub(RECORDS), next_seq)? {
        if let Body::Output { bytes, .. } = record.body {
            output.extend_from_slice(&bytes);
        }
    }
    Ok(output.split_off(output.len().saturating_sub(OUTPUT_BYTES)))
}

/// Makes control characters readable.
fn escaped(output: &str) -> String {
    let mut text = String::with_capacity(output.len());
    for c in output.chars() {
        match c {
            '\n' => text.push_str("\\n\n"),
            '\u{1b}' => text.push_str("\\e"),
            c if c.is_control() => drop(write!(text, "\\x{:02x}", u32::from(c))),
            c => text.push(c),
        }
    }
    text
}

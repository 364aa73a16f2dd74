//! `decisions.jsonl` of a run: the answers to dialogs on its terminal, which the agent itself does not report.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agency_api::chat;
use agency_store::json_lines::JsonLines;
use serde::{Deserialize, Serialize};

use crate::conversation::PastDecision;

/// Thousands of decisions.
const ROTATED_AT_BYTES: u64 = 4 << 20;

#[derive(Serialize, Deserialize)]
struct Line {
    /// Milliseconds since 1970.
    at_ms: u64,
    approval: chat::Approval,
}

/// Adds an approval with its answer. The screen that showed the dialog is left out.
pub(crate) fn append(path: PathBuf, approval: &chat::Approval) -> io::Result<()> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let approval = chat::Approval { input: serde_json::json!({}), ..approval.clone() };
    let line = Line { at_ms: since_1970.as_millis() as u64, approval };
    JsonLines::at(path, ROTATED_AT_BYTES).append(&line)
}

/// Blocking. The decisions in the file, oldest first.
pub fn read(path: PathBuf) -> io::Result<Vec<PastDecision>> {
    let lines = JsonLines::at(path, ROTATED_AT_BYTES).read::<Line>()?.into_iter();
    let decision =
        |line: Line| PastDecision { at: Duration::from_millis(line.at_ms), approval: line.approval };
    Ok(lines.map(decision).collect())
}

//! `states.jsonl`: every change of a run's state with its evidence, as it was reported.
//!
//! The journal says what happened; this file says what the rules of that time concluded.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use agency_api::paths::RunDir;
use agency_api::view::StateChange;
use agency_core::agent_state::Timing;
use agency_core::evidence::{Change, DetectedState, Detector};
use agency_store::clock;
use agency_store::json_lines::JsonLines;
use serde::{Deserialize, Serialize};

use crate::view;

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoggedChange {
    /// On the journal's clock.
    pub at_ns: u64,
    #[serde(flatten)]
    pub change: StateChange,
    /// The state as the detector has it, for the next daemon. Earlier versions did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detected: Option<DetectedState>,
}

/// Thousands of changes: an agent that never rests for a week.
const ROTATED_AT_BYTES: u64 = 4 << 20;

#[derive(Debug)]
pub struct StateLog {
    lines: JsonLines,
    /// The file holds the changes up to here. A fold that begins finds them in the journal again.
    logged_to: Option<Duration>,
}

impl StateLog {
    pub fn open(path: PathBuf) -> StateLog {
        let lines = JsonLines::at(path, ROTATED_AT_BYTES);
        // If the file cannot be read, the first append reports it.
        let last = lines.last::<LoggedChange>().ok().flatten();
        StateLog { lines, logged_to: last.map(|line| Duration::from_nanos(line.at_ns)) }
    }

    /// `false` if the file holds the change already.
    fn append(&self, new: &DetectedState, began: Duration) -> io::Result<bool> {
        if self.logged_to.is_some_and(|logged_to| new.since.at <= logged_to) {
            return Ok(false);
        }
        let change = view::change(new, began, Some(clock::timestamp_of(new.since.at)));
        let detected = Some(new.clone());
        self.lines.append(&LoggedChange { at_ns: new.since.at.as_nanos() as u64, change, detected })?;
        Ok(true)
    }

    /// Logs the changes and returns those that the file did not hold.
    pub fn keep_new(&mut self, mut changes: Vec<Change>, began: Duration) -> Vec<Change> {
        changes.retain(|change| match self.append(&change.new, began) {
            Ok(is_new) => is_new,
            Err(cause) => {
                tracing::warn!(%cause, "cannot log a change of state");
                true
            }
        });
        changes
    }

    /// From now on every change is new.
    pub fn mark_caught_up(&mut self) {
        self.logged_to = None;
    }
}

/// The state that a daemon logged last for the run in `dir`. A run without a log counts as starting.
pub fn last_known_state(dir: &RunDir) -> DetectedState {
    let last = JsonLines::at(dir.states(), ROTATED_AT_BYTES).last::<LoggedChange>();
    let logged = last.ok().flatten().and_then(|line| line.detected);
    logged.unwrap_or_else(|| Detector::new(Timing::default(), clock::now()).standing())
}

/// Oldest first.
pub fn read(path: PathBuf) -> io::Result<Vec<LoggedChange>> {
    JsonLines::at(path, ROTATED_AT_BYTES).read()
}

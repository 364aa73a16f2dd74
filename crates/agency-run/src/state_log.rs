//! `states.jsonl`: every change of a run's state with its evidence, as it was reported.
//!
//! The journal says what happened; this says what was made of it then, by the rules of then.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use agency_api::view::StateChange;
use agency_core::evidence::{Change, Standing};
use agency_store::clock;
use agency_store::json_lines::JsonLines;
use serde::{Deserialize, Serialize};

use crate::view;

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Logged {
    /// On the journal's clock.
    pub at_ns: u64,
    #[serde(flatten)]
    pub change: StateChange,
}

/// Thousands of changes: an agent that never rests for a week.
const TURNED_AT_BYTES: u64 = 4 << 20;

#[derive(Debug)]
pub struct StateLog {
    lines: JsonLines,
    /// Changes up to here are in the file: the fold that begins finds them again.
    found_to: Option<Duration>,
}

impl StateLog {
    pub fn open(path: PathBuf) -> StateLog {
        let lines = JsonLines::at(path, TURNED_AT_BYTES);
        // One that cannot be read is told of when it is written to.
        let last = lines.last::<Logged>().ok().flatten();
        StateLog { lines, found_to: last.map(|line| Duration::from_nanos(line.at_ns)) }
    }

    /// `false` for a change that is in the file already.
    pub fn append(&self, new: &Standing, began: Duration) -> io::Result<bool> {
        if self.found_to.is_some_and(|found_to| new.since.at <= found_to) {
            return Ok(false);
        }
        let change = view::change(new, began, Some(clock::timestamp_of(new.since.at)));
        self.lines.append(&Logged { at_ns: new.since.at.as_nanos() as u64, change })?;
        Ok(true)
    }

    /// Those that nobody was told of, kept from now on.
    pub fn new_among(&mut self, mut changes: Vec<Change>, began: Duration) -> Vec<Change> {
        changes.retain(|change| match self.append(&change.new, began) {
            Ok(is_new) => is_new,
            Err(cause) => {
                tracing::warn!(%cause, "a change of state is not kept");
                true
            }
        });
        changes
    }

    /// From now on every change is new.
    pub fn caught_up(&mut self) {
        self.found_to = None;
    }
}

/// Oldest first.
pub fn read(path: PathBuf) -> io::Result<Vec<Logged>> {
    JsonLines::at(path, TURNED_AT_BYTES).read()
}

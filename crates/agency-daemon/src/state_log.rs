//! `states.jsonl`: every change of a run's state with its evidence, as it was reported.
//!
//! The journal says what happened; this says what was made of it then, by the rules of then.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agency_api::view::StateChange;
use agency_core::evidence::Standing;
use serde::{Deserialize, Serialize};

use crate::{clock, view};

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Logged {
    /// On the journal's clock.
    pub at_ns: u64,
    #[serde(flatten)]
    pub change: StateChange,
}

#[derive(Debug)]
pub struct StateLog {
    path: PathBuf,
    /// Changes up to here are in the file: the fold that begins finds them again.
    found_to: Option<Duration>,
}

impl StateLog {
    pub fn open(path: PathBuf) -> StateLog {
        let last = read(&path).ok().and_then(|lines| lines.last().map(|line| line.at_ns));
        StateLog { path, found_to: last.map(Duration::from_nanos) }
    }

    /// `false` for a change that is in the file already.
    pub fn append(&mut self, new: &Standing, began: Duration) -> io::Result<bool> {
        if self.found_to.is_some_and(|found_to| new.since.at <= found_to) {
            return Ok(false);
        }
        let change = view::change(new, began, Some(clock::timestamp_of(new.since.at)));
        let mut line = serde_json::to_vec(&Logged { at_ns: new.since.at.as_nanos() as u64, change })?;
        line.push(b'\n');
        // Not held open: changes are rare, and descriptors are what hundreds of runs lack first.
        OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?.write_all(&line)?;
        Ok(true)
    }

    /// From now on every change is new.
    pub fn caught_up(&mut self) {
        self.found_to = None;
    }
}

/// Oldest first. A line that was torn is left out.
pub fn read(path: &Path) -> io::Result<Vec<Logged>> {
    let text = match std::fs::read(path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    Ok(text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

//! `events.jsonl`: what happened, so that who comes later can ask for it; numbers go on over daemons.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use agency_api::paths::StateDir;
use agency_api::view::Event;

/// Months of a busy week's events; one older file is kept.
const ROTATE_AT_BYTES: u64 = 8 << 20;

#[derive(Debug)]
pub struct EventLog {
    path: PathBuf,
    file: Option<File>,
    bytes: u64,
}

impl EventLog {
    /// The log, and the number of the last event in it.
    pub fn open(state: &StateDir) -> (EventLog, u64) {
        let path = state.event_log();
        let last = read(&path).into_iter().chain(read(&older(&path))).map(|event| event.seq).max();
        let bytes = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        // Now, so that who counts the open files later counts this one.
        let file = append_to(&path).ok();
        (EventLog { path, file, bytes }, last.unwrap_or(0))
    }

    pub fn append(&mut self, event: &Event) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        if self.bytes > ROTATE_AT_BYTES {
            std::fs::rename(&self.path, older(&self.path))?;
            (self.file, self.bytes) = (None, 0);
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(append_to(&self.path)?),
        };
        file.write_all(&line)?;
        self.bytes += line.len() as u64;
        Ok(())
    }
}

/// Oldest first: what is kept of the events since then.
pub fn since(state: &StateDir, time: jiff::Timestamp) -> Vec<Event> {
    let path = state.event_log();
    let is_since = |event: &Event| event.time.parse::<jiff::Timestamp>().is_ok_and(|at| at >= time);
    let mut events = read(&older(&path));
    events.extend(read(&path));
    events.retain(is_since);
    events
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

fn older(path: &Path) -> PathBuf {
    path.with_extension("jsonl.1")
}

/// A line that was torn is left out.
fn read(path: &Path) -> Vec<Event> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
    lines.filter_map(|line| serde_json::from_slice(&line).ok()).collect()
}

//! `events.jsonl`: the daemon's events, for clients that ask for them later.
//!
//! The next daemon continues their numbers.

use std::io;

use agency_api::event::Event;
use agency_api::paths::StateDir;

use crate::json_lines::JsonLines;

/// Enough for weeks of many busy agents.
const ROTATE_AT_BYTES: u64 = 8 << 20;

#[derive(Debug)]
pub struct EventLog {
    lines: JsonLines,
}

impl EventLog {
    pub fn of(state: &StateDir) -> EventLog {
        EventLog { lines: JsonLines::at(state.event_log(), ROTATE_AT_BYTES) }
    }

    pub fn append(&self, event: &Event) -> io::Result<()> {
        self.lines.append(event)
    }

    pub fn last_seq(&self) -> io::Result<u64> {
        Ok(self.lines.last::<Event>()?.map_or(0, |event| event.seq))
    }

    /// Returns all stored events, oldest first.
    pub fn all(&self) -> io::Result<Vec<Event>> {
        self.lines.read()
    }

    /// Returns the stored events since `time`, oldest first.
    pub fn since(&self, time: jiff::Timestamp) -> io::Result<Vec<Event>> {
        let is_since = |event: &Event| event.time.parse::<jiff::Timestamp>().is_ok_and(|at| at >= time);
        let mut events = self.lines.read()?;
        events.retain(is_since);
        Ok(events)
    }
}

//! The wall clock of a journal: its anchors tell which time of day a record's monotonic time is.

use agency_journal::{Body, Record};
use jiff::Timestamp;

/// The difference between both clocks at the last anchor.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WallClock {
    to_wall_ns: Option<i64>,
}

impl WallClock {
    pub(crate) fn record(&mut self, record: &Record) {
        if let Body::Anchor { wall_unix_ns, .. } = record.body {
            self.to_wall_ns = wall_unix_ns.checked_sub_unsigned(record.at_ns);
        }
    }

    /// To the millisecond. None before the first anchor.
    pub(crate) fn time_of(&self, at_ns: u64) -> Option<Timestamp> {
        let wall_ns = self.to_wall_ns?.checked_add_unsigned(at_ns)?;
        Timestamp::from_millisecond(wall_ns / 1_000_000).ok()
    }
}

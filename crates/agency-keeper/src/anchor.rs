//! Anchors: records that tie the journal's monotonic time to the wall clock, and when a new one is needed.
//!
//! Monotonic time does not advance during a suspend and ignores clock changes, so neither creates false
//! state changes. The keeper writes an anchor after each jump, so that a reader can still compute wall time.

use agency_journal::BodyRef;
use rustix::time::{ClockId, clock_gettime};

use crate::platform;

/// Differences below this come from clock synchronisation and need no new anchor.
const DRIFT_NS: i128 = 1_000_000_000;

/// The three clocks, read at the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// Time since boot without suspends: the time of journal records.
    pub monotonic_ns: u64,
    /// Wall-clock time since 1970.
    pub wall_unix_ns: i64,
    /// Time since boot including suspends.
    pub boottime_ns: u64,
}

impl Clocks {
    /// Reads all three clocks.
    pub fn now() -> Clocks {
        Clocks {
            monotonic_ns: nanoseconds(ClockId::Monotonic) as u64,
            wall_unix_ns: nanoseconds(ClockId::Realtime) as i64,
            boottime_ns: nanoseconds(BOOTTIME) as u64,
        }
    }

    /// The journal record that ties monotonic time to the wall clock at this moment.
    pub fn anchor(&self) -> BodyRef<'static> {
        let boot_id = parse_boot_id(&platform::boot_id());
        BodyRef::Anchor { wall_unix_ns: self.wall_unix_ns, boottime_ns: self.boottime_ns, boot_id }
    }

    /// Whether a reader that only knows `anchor` would compute a wrong wall time for `self`.
    pub(crate) fn drifted_from(&self, anchor: &Clocks) -> bool {
        let apart = |here: i128, there: i128| (here - there).abs() > DRIFT_NS;
        apart(self.wall_lead(), anchor.wall_lead()) || apart(self.suspended(), anchor.suspended())
    }

    fn wall_lead(&self) -> i128 {
        i128::from(self.wall_unix_ns) - i128::from(self.monotonic_ns)
    }

    fn suspended(&self) -> i128 {
        i128::from(self.boottime_ns) - i128::from(self.monotonic_ns)
    }
}

#[cfg(target_os = "linux")]
const BOOTTIME: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const BOOTTIME: ClockId = ClockId::Monotonic;

/// The 16 bytes of a boot id in its usual text form; zeros if the kernel does not report one.
fn parse_boot_id(text: &str) -> [u8; 16] {
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).unwrap_or(0).to_be_bytes()
}

fn nanoseconds(clock: ClockId) -> i128 {
    let time = clock_gettime(clock);
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(monotonic_s: u64, wall_s: i64, boottime_s: u64) -> Clocks {
        Clocks {
            monotonic_ns: monotonic_s * SECOND,
            wall_unix_ns: wall_s * SECOND as i64,
            boottime_ns: boottime_s * SECOND,
        }
    }

    #[test]
    fn only_a_jump_or_a_suspend_needs_a_new_anchor() {
        let anchor = at(100, 5000, 100);
        assert!(!at(9100, 14000, 9100).drifted_from(&anchor), "time just passed");
        assert!(at(101, 5301, 401).drifted_from(&anchor), "five minutes of sleep");
        assert!(at(101, 1000, 101).drifted_from(&anchor), "the clock was set back");
    }
}

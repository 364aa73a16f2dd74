//! What ties the journal's monotonic time to the wall clock, and when that must be said again.
//!
//! Monotonic time stands still during a suspend and ignores clock changes, so a jump makes no states;
//! an anchor after each one lets a reader tell the hour all the same.

use agency_journal::BodyRef;
use rustix::time::{ClockId, clock_gettime};

use crate::platform;

/// Below this, clocks are merely being disciplined.
const DRIFT_NS: i128 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    pub monotonic_ns: u64,
    pub wall_unix_ns: i64,
    pub boottime_ns: u64,
}

impl Clocks {
    pub fn now() -> Clocks {
        Clocks {
            monotonic_ns: nanoseconds(ClockId::Monotonic) as u64,
            wall_unix_ns: nanoseconds(ClockId::Realtime) as i64,
            boottime_ns: nanoseconds(BOOTTIME) as u64,
        }
    }

    /// What ties a journal to the wall clock here.
    pub fn anchor(&self) -> BodyRef<'static> {
        let boot_id = parse_boot_id(&platform::boot_id());
        BodyRef::Anchor { wall_unix_ns: self.wall_unix_ns, boottime_ns: self.boottime_ns, boot_id }
    }

    /// Whether a reader who knows `anchor` would tell a wrong time for `self`.
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

/// 16 bytes of the usual text form; zeros where the kernel says nothing.
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

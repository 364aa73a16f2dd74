//! The clocks the daemon reads: the journal's monotonic one, and the wall's for people.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The same clock that journals are written with; it stands still in suspend.
pub fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// RFC 3339, to the second, in UTC.
pub fn timestamp() -> String {
    let now = jiff::Timestamp::now();
    // Cut, not rounded: nothing is made in the future.
    jiff::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// RFC 3339, to the millisecond, of a moment on the journal's clock; right as long as nobody slept in between.
pub fn timestamp_of(at: Duration) -> String {
    let ago = now().saturating_sub(at);
    let wall = jiff::Timestamp::now();
    let then = wall.checked_sub(jiff::SignedDuration::try_from(ago).unwrap_or_default()).unwrap_or(wall);
    jiff::Timestamp::from_millisecond(then.as_millisecond()).unwrap_or(then).to_string()
}

/// How long ago `timestamp` was, if it is one and not in the future.
pub fn age(timestamp: &str) -> Option<Duration> {
    let then: jiff::Timestamp = timestamp.parse().ok()?;
    jiff::Timestamp::now().duration_since(then).try_into().ok()
}

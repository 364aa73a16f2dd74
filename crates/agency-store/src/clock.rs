//! The daemon's clocks: the monotonic clock of the journals, and the wall clock for people.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Reads the clock that journals use. It stops while the machine is suspended.
pub fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns the current time in RFC 3339, to the second, in UTC.
pub fn timestamp() -> String {
    let now = jiff::Timestamp::now();
    // Cut off, not rounded: a rounded time may be in the future.
    jiff::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// The time that was so long ago, in RFC 3339. It may be before the machine started.
pub fn timestamp_before(ago: Duration) -> String {
    let now = jiff::Timestamp::now();
    let then = now.checked_sub(jiff::SignedDuration::try_from(ago).unwrap_or_default()).unwrap_or(now);
    jiff::Timestamp::from_millisecond(then.as_millisecond()).unwrap_or(then).to_string()
}

/// Converts a time of the journals' clock to RFC 3339, to the millisecond. The result is wrong if the machine was
/// suspended since then.
pub fn timestamp_of(at: Duration) -> String {
    timestamp_before(now().saturating_sub(at))
}

/// Converts a time in RFC 3339 to the journals' clock. A time before that clock began becomes its beginning; none if the
/// text is no time.
pub fn at(timestamp: &str) -> Option<Duration> {
    let then: jiff::Timestamp = timestamp.parse().ok()?;
    let ahead = then.duration_since(jiff::Timestamp::now());
    Some(match Duration::try_from(ahead) {
        Ok(ahead) => now() + ahead,
        Err(_) => now().saturating_sub(ahead.unsigned_abs()),
    })
}

/// Whether one time in RFC 3339 is before another. Invalid times are before nothing.
pub fn is_before(one: &str, other: &str) -> bool {
    let parse = |time: &str| time.parse::<jiff::Timestamp>().ok();
    parse(one).zip(parse(other)).is_some_and(|(one, other)| one < other)
}

/// Returns how long ago `timestamp` was; none if it is invalid or in the future.
pub fn age(timestamp: &str) -> Option<Duration> {
    let then: jiff::Timestamp = timestamp.parse().ok()?;
    jiff::Timestamp::now().duration_since(then).try_into().ok()
}

//! Waiting for a condition that no event announces to a test.
//!
//! The only place in all tests that sleeps.

use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Checks the condition repeatedly until it returns a value; panics with `what` after `within`.
pub fn eventually<T>(what: &str, within: Duration, condition: impl FnMut() -> Option<T>) -> T {
    until(within, condition).unwrap_or_else(|| panic!("not within {within:?}: {what}"))
}

pub(crate) fn until<T>(within: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + within;
    let mut pause = FIRST_PAUSE;
    loop {
        // The last check comes after the deadline, even if the machine is slow.
        let is_last = Instant::now() >= deadline;
        if let Some(found) = condition() {
            return Some(found);
        }
        if is_last {
            return None;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_value_is_returned() {
        let mut checks = 0;
        let seen = eventually("the third check", Duration::from_secs(10), || {
            checks += 1;
            (checks == 3).then_some("seen")
        });
        assert_eq!(seen, "seen");
    }

    #[test]
    #[should_panic(expected = "not within 5ms: a miracle")]
    fn a_condition_that_never_holds_is_named() {
        eventually("a miracle", Duration::from_millis(5), || None::<()>);
    }
}

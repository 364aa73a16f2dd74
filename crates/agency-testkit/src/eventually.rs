//! Waiting for a condition that no event announces to a test.
//!
//! The one place in all tests that sleeps between two looks.

use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Looks again and again until the condition gives something; panics with `what` after `within`.
pub fn eventually<T>(what: &str, within: Duration, condition: impl FnMut() -> Option<T>) -> T {
    until(within, condition).unwrap_or_else(|| panic!("not within {within:?}: {what}"))
}

pub(crate) fn until<T>(within: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + within;
    let mut pause = FIRST_PAUSE;
    loop {
        // The last look comes after the deadline, however long the pause before it was.
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
    fn what_comes_late_is_still_seen() {
        let mut looks = 0;
        let seen = eventually("the third look", Duration::from_secs(10), || {
            looks += 1;
            (looks == 3).then_some("seen")
        });
        assert_eq!(seen, "seen");
    }

    #[test]
    #[should_panic(expected = "not within 5ms: a miracle")]
    fn what_never_comes_is_named() {
        eventually("a miracle", Duration::from_millis(5), || None::<()>);
    }
}

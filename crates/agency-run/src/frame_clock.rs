//! When viewers with frames get the next frame.
//!
//! Reads no clock: callers pass the time. Nothing is due while nothing changes.

use std::time::Duration;

/// Thirty frames a second look like motion; more would be wasted.
const BETWEEN_FRAMES: Duration = Duration::from_millis(33);

/// A program prints in one go, but its output arrives in pieces. Wait for the rest.
const GATHERING: Duration = Duration::from_millis(4);

/// A program may draw one picture (synchronized output) for this long before viewers see the unfinished picture.
const UNFINISHED_MAX: Duration = Duration::from_millis(150);

#[derive(Debug, Default)]
pub struct FrameClock {
    last: Duration,
    due: Option<Due>,
}

#[derive(Debug, Clone, Copy)]
struct Due {
    at: Duration,
    /// The time has come, but the picture is not finished.
    is_waiting: bool,
}

impl FrameClock {
    /// The screen has changed.
    pub fn on_change(&mut self, now: Duration) {
        if self.due.is_none() {
            let at = (self.last + BETWEEN_FRAMES).max(now + GATHERING);
            self.due = Some(Due { at, is_waiting: false });
        }
    }

    /// When to call `take_due` again if nothing happens until then.
    pub fn deadline(&self) -> Option<Duration> {
        self.due.map(|due| if due.is_waiting { due.at + UNFINISHED_MAX } else { due.at })
    }

    /// Whether a frame is due now. If so, the next change schedules the next frame.
    pub fn take_due(&mut self, now: Duration, unfinished: bool) -> bool {
        let Some(due) = self.due.as_mut().filter(|due| due.at <= now) else { return false };
        due.is_waiting = unfinished && now < due.at + UNFINISHED_MAX;
        if due.is_waiting {
            return false;
        }
        self.due = None;
        self.last = now;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_flood_is_shown_thirty_times_a_second_and_silence_never() {
        let mut clock = FrameClock::default();
        assert_eq!(clock.deadline(), None);
        let mut frames = 0;
        for now in 1000..2000 {
            clock.on_change(ms(now));
            frames += u32::from(clock.take_due(ms(now), false));
        }
        assert!((29..=31).contains(&frames), "{frames}");
        clock.take_due(ms(2100), false);
        assert_eq!(clock.deadline(), None);
        assert!(!clock.take_due(ms(9000), false));
    }

    #[test]
    fn a_single_change_is_shown_soon() {
        let mut clock = FrameClock::default();
        clock.on_change(ms(1000));
        assert_eq!(clock.deadline(), Some(ms(1004)));
        assert!(!clock.take_due(ms(1003), false));
        assert!(clock.take_due(ms(1004), false));
    }

    #[test]
    fn an_unfinished_picture_is_waited_for_but_not_for_ever() {
        let mut clock = FrameClock::default();
        clock.on_change(ms(1000));
        assert!(!clock.take_due(ms(1004), true));
        assert_eq!(clock.deadline(), Some(ms(1154)));
        assert!(clock.take_due(ms(1010), false), "finished");
        clock.on_change(ms(2000));
        assert!(!clock.take_due(ms(2100), true));
        assert!(clock.take_due(ms(2154), true), "forgotten");
    }
}

//! When viewers that are shown frames get the next one.
//!
//! Reads no clock: it is told the time. Nothing is due when nothing changed.

use std::time::Duration;

/// Thirty a second look like motion; more would only be sent.
const BETWEEN_FRAMES: Duration = Duration::from_millis(33);

/// What a program prints at once arrives in pieces, and half of it is no picture.
const GATHERING: Duration = Duration::from_millis(4);

/// So long a program may draw at one picture (synchronized output) before the half of it is shown.
const UNFINISHED_MAX: Duration = Duration::from_millis(150);

#[derive(Debug, Default)]
pub struct FrameClock {
    last: Duration,
    due: Option<Due>,
}

#[derive(Debug, Clone, Copy)]
struct Due {
    at: Duration,
    /// It was time, but the picture was not finished.
    waits: bool,
}

impl FrameClock {
    pub fn changed(&mut self, now: Duration) {
        if self.due.is_none() {
            let at = (self.last + BETWEEN_FRAMES).max(now + GATHERING);
            self.due = Some(Due { at, waits: false });
        }
    }

    /// When to ask again if nothing happens until then.
    pub fn deadline(&self) -> Option<Duration> {
        self.due.map(|due| if due.waits { due.at + UNFINISHED_MAX } else { due.at })
    }

    /// Whether it is time for a frame; then the next one has its own time.
    pub fn strikes(&mut self, now: Duration, unfinished: bool) -> bool {
        let Some(due) = self.due.as_mut().filter(|due| due.at <= now) else { return false };
        due.waits = unfinished && now < due.at + UNFINISHED_MAX;
        if due.waits {
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
            clock.changed(ms(now));
            frames += u32::from(clock.strikes(ms(now), false));
        }
        assert!((29..=31).contains(&frames), "{frames}");
        clock.strikes(ms(2100), false);
        assert_eq!(clock.deadline(), None);
        assert!(!clock.strikes(ms(9000), false));
    }

    #[test]
    fn a_single_change_is_shown_soon() {
        let mut clock = FrameClock::default();
        clock.changed(ms(1000));
        assert_eq!(clock.deadline(), Some(ms(1004)));
        assert!(!clock.strikes(ms(1003), false));
        assert!(clock.strikes(ms(1004), false));
    }

    #[test]
    fn an_unfinished_picture_is_waited_for_but_not_for_ever() {
        let mut clock = FrameClock::default();
        clock.changed(ms(1000));
        assert!(!clock.strikes(ms(1004), true));
        assert_eq!(clock.deadline(), Some(ms(1154)));
        assert!(clock.strikes(ms(1010), false), "finished");
        clock.changed(ms(2000));
        assert!(!clock.strikes(ms(2100), true));
        assert!(clock.strikes(ms(2154), true), "forgotten");
    }
}

//! Whether a task that the user has put off is still put off.
//!
//! Not here: the clock, and where the user's wish is stored.

use crate::Time;

/// The user's wish not to see a task among those that need the user. All times are times of the same clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snooze {
    /// When the user asked for it.
    pub asked_at: Time,
    /// Until when.
    pub until: Time,
}

impl Snooze {
    /// Whether the task is put off now. `needed_since` is when the task began to need the user, if it does: a need that is newer
    /// than the wish brings the task back.
    pub fn holds(self, now: Time, needed_since: Option<Time>) -> bool {
        now < self.until && needed_since.is_none_or(|since| since <= self.asked_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNOOZE: Snooze = Snooze { asked_at: Time::from_secs(100), until: Time::from_secs(200) };

    fn holds(now: u64, needed_since: Option<u64>) -> bool {
        SNOOZE.holds(Time::from_secs(now), needed_since.map(Time::from_secs))
    }

    #[test]
    fn a_task_comes_back_in_time() {
        assert!(holds(100, Some(50)) && holds(199, Some(100)) && holds(150, None));
        assert!(!holds(200, Some(50)) && !holds(300, None));
    }

    #[test]
    fn a_new_need_brings_a_task_back_at_once() {
        assert!(!holds(150, Some(120)));
    }
}

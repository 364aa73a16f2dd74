//! Whether a run that crashed gets a successor.
//!
//! Not here: what a crash is (see `exit`), and how a successor is made (see `supervisor`).

use std::collections::VecDeque;
use std::time::Duration;

use crate::Time;

/// A run that lived this long has worked: what was wrong before it is forgotten.
pub const PROVEN_AFTER: Duration = Duration::from_secs(10);

/// Agents that live just long enough to be proven would loop for ever, so restarts are also counted by the clock.
pub const LOOP_WINDOW: Duration = Duration::from_secs(5 * 60);
pub const MAX_RESTARTS_IN_WINDOW: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartPolicy {
    Never,
    OnCrash { max_restarts: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCrash {
    /// The policy never restarts.
    StayDown,
    /// `attempt` counts from 1.
    Restart {
        attempt: u32,
    },
    GiveUp(GiveUp),
}

/// Why there is no further attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GiveUp {
    #[error("crashed again after {max_restarts} restarts")]
    Attempts { max_restarts: u32 },
    #[error("more than {MAX_RESTARTS_IN_WINDOW} restarts in {} minutes", LOOP_WINDOW.as_secs() / 60)]
    Loop,
}

/// What the crashes since somebody last asked for a start have cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestartHistory {
    attempts: u32,
    /// When restarts were made, oldest first, none older than the window.
    recent: VecDeque<Time>,
}

impl RestartHistory {
    /// Decides after a crash of a run that had lived for `lived`, and remembers the decision.
    pub fn after_crash(&mut self, policy: RestartPolicy, lived: Duration, now: Time) -> AfterCrash {
        let RestartPolicy::OnCrash { max_restarts } = policy else {
            return AfterCrash::StayDown;
        };
        if lived >= PROVEN_AFTER {
            self.attempts = 0;
        }
        self.forget_before(now.saturating_sub(LOOP_WINDOW));
        if self.attempts >= max_restarts {
            return AfterCrash::GiveUp(GiveUp::Attempts { max_restarts });
        }
        if self.recent.len() >= MAX_RESTARTS_IN_WINDOW {
            return AfterCrash::GiveUp(GiveUp::Loop);
        }
        self.attempts += 1;
        self.recent.push_back(now);
        AfterCrash::Restart { attempt: self.attempts }
    }

    fn forget_before(&mut self, start: Time) {
        while self.recent.front().is_some_and(|restart| *restart < start) {
            self.recent.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: RestartPolicy = RestartPolicy::OnCrash { max_restarts: 3 };

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn never_means_never() {
        let mut history = RestartHistory::default();
        assert_eq!(history.after_crash(RestartPolicy::Never, seconds(99), seconds(99)), AfterCrash::StayDown);
    }

    #[test]
    fn quick_crashes_use_up_the_attempts() {
        let mut history = RestartHistory::default();
        for attempt in 1..=3 {
            assert_eq!(history.after_crash(THREE, seconds(9), seconds(9)), AfterCrash::Restart { attempt });
        }
        let given_up = AfterCrash::GiveUp(GiveUp::Attempts { max_restarts: 3 });
        assert_eq!(history.after_crash(THREE, seconds(9), seconds(9)), given_up);
        assert_eq!(history.after_crash(THREE, seconds(9), seconds(9)), given_up);
    }

    #[test]
    fn ten_seconds_of_life_give_all_attempts_back() {
        let mut history = RestartHistory::default();
        history.after_crash(THREE, seconds(1), seconds(1));
        history.after_crash(THREE, seconds(1), seconds(2));
        assert_eq!(history.after_crash(THREE, seconds(10), seconds(12)), AfterCrash::Restart { attempt: 1 });
    }

    #[test]
    fn an_agent_that_lives_just_long_enough_is_given_up_at_the_eleventh_restart_within_five_minutes() {
        let mut history = RestartHistory::default();
        for crash in 1..=10 {
            let decided = history.after_crash(THREE, seconds(12), seconds(12 * crash));
            assert_eq!(decided, AfterCrash::Restart { attempt: 1 });
        }
        assert_eq!(history.after_crash(THREE, seconds(12), seconds(132)), AfterCrash::GiveUp(GiveUp::Loop));
    }

    #[test]
    fn an_agent_that_crashes_now_and_then_is_restarted_for_ever() {
        let mut history = RestartHistory::default();
        for crash in 1..=1000 {
            let decided = history.after_crash(THREE, seconds(31), seconds(31 * crash));
            assert_eq!(decided, AfterCrash::Restart { attempt: 1 }, "crash {crash}");
        }
    }

    #[test]
    fn the_reasons_read_well() {
        assert_eq!(GiveUp::Attempts { max_restarts: 3 }.to_string(), "crashed again after 3 restarts");
        assert_eq!(GiveUp::Loop.to_string(), "more than 10 restarts in 5 minutes");
    }
}

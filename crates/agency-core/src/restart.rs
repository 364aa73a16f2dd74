//! Decides whether a crashed run is restarted.
//!
//! Not here: what a crash is (see `exit`), and how a run is started (see `supervisor`).

use std::collections::VecDeque;
use std::time::Duration;

use crate::Time;

/// A run that lived this long has worked, so earlier crashes no longer count.
pub const PROVEN_AFTER: Duration = Duration::from_secs(10);

/// An agent that always lives just longer than `PROVEN_AFTER` would loop for ever, so restarts within this time are counted
/// too.
pub const LOOP_WINDOW: Duration = Duration::from_secs(5 * 60);
/// Restarts within `LOOP_WINDOW` before giving up.
pub const MAX_RESTARTS_IN_WINDOW: usize = 10;

/// Whether crashes are followed by restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartPolicy {
    /// A crash stays a crash.
    Never,
    /// A crash is followed by a restart, up to a limit.
    OnCrash {
        /// Restarts in a row before giving up.
        max_restarts: u32,
    },
}

/// The decision after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCrash {
    /// The policy never restarts.
    StayDown,
    /// Restart it.
    Restart {
        /// The number of the restart, counted from 1.
        attempt: u32,
    },
    /// There were too many restarts.
    GiveUp(GiveUp),
}

/// Why there is no further attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GiveUp {
    /// Too many restarts in a row.
    #[error("crashed again after {max_restarts} restarts")]
    Attempts {
        /// The limit.
        max_restarts: u32,
    },
    /// Too many restarts within `LOOP_WINDOW`.
    #[error("more than {MAX_RESTARTS_IN_WINDOW} restarts in {} minutes", LOOP_WINDOW.as_secs() / 60)]
    Loop,
}

/// The restarts since a caller last requested a start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestartHistory {
    attempts: u32,
    /// The times of restarts, oldest first, none older than the window.
    recent: VecDeque<Time>,
}

impl RestartHistory {
    /// Decides after the crash of a run that lived for `lived`, and records the decision.
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

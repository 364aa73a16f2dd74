//! How far the run has come: alive, draining, ending, gone.
//!
//! Touches nothing: it is told what happened and when, and says what is due.
//!
//! Invariant: the exit is recorded after the last output that could be read, and the run is gone only
//! after its exit was recorded and nothing of its tree is left.

use std::time::{Duration, Instant};

use agency_journal::{Asked, ExitStatus};

/// A background process may hold the terminal for ever: after this long without output we go on.
const QUIET_BEFORE_EXIT: Duration = Duration::from_millis(200);
/// And one that prints without end does not hold up the exit either.
const DRAIN_AT_MOST: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Alive,
    Draining {
        exit: Exit,
        quiet_at: Instant,
        until: Instant,
    },
    /// The exit is recorded; what the agent left behind is being ended.
    Ending,
    Gone {
        leave_at: Instant,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) status: ExitStatus,
    pub(crate) asked: Option<Asked>,
}

impl Life {
    pub(crate) fn exited(&mut self, exit: Exit, now: Instant) {
        if *self == Life::Alive {
            *self = Life::Draining { exit, quiet_at: now + QUIET_BEFORE_EXIT, until: now + DRAIN_AT_MOST };
        }
    }

    pub(crate) fn saw_output(&mut self, now: Instant) {
        if let Life::Draining { quiet_at, until, .. } = self {
            *quiet_at = (now + QUIET_BEFORE_EXIT).min(*until);
        }
    }

    /// The exit that is to be recorded now. Moves on to `Ending`.
    pub(crate) fn due_exit(&mut self, port_is_drained: bool, now: Instant) -> Option<Exit> {
        match *self {
            Life::Draining { exit, quiet_at, until } if port_is_drained || now >= quiet_at.min(until) => {
                *self = Life::Ending;
                Some(exit)
            }
            Life::Alive | Life::Draining { .. } | Life::Ending | Life::Gone { .. } => None,
        }
    }

    pub(crate) fn tree_ended(&mut self, leave_at: Instant) {
        if *self == Life::Ending {
            *self = Life::Gone { leave_at };
        }
    }

    pub(crate) fn is_alive(&self) -> bool {
        *self == Life::Alive
    }

    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Life::Gone { .. })
    }

    pub(crate) fn is_over(&self, now: Instant) -> bool {
        matches!(self, Life::Gone { leave_at } if *leave_at <= now)
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        match *self {
            Life::Alive | Life::Ending => None,
            Life::Draining { quiet_at, until, .. } => Some(quiet_at.min(until)),
            Life::Gone { leave_at } => Some(leave_at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXIT: Exit = Exit { status: ExitStatus::Code(3), asked: None };

    #[test]
    fn the_exit_waits_for_the_last_output_and_no_longer() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut life = Life::Alive;
        life.exited(EXIT, at(0));
        assert_eq!(life.due_exit(false, at(100)), None);
        life.saw_output(at(150));
        assert_eq!(life.due_exit(false, at(250)), None, "it spoke 100 ms ago");
        assert_eq!(life.due_exit(true, at(250)), Some(EXIT), "nobody holds the terminal any more");
        assert_eq!(life.due_exit(true, at(251)), None, "recorded once");
    }

    #[test]
    fn a_background_process_that_never_stops_printing_does_not_hold_up_the_exit() {
        let start = Instant::now();
        let mut life = Life::Alive;
        life.exited(EXIT, start);
        let mut at = start;
        while life.due_exit(false, at).is_none() {
            at += Duration::from_millis(50);
            life.saw_output(at);
            assert!(at < start + Duration::from_secs(2));
        }
        life.tree_ended(at);
        assert!(life.is_gone() && life.is_over(at));
    }
}

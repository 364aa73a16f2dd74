//! The phases of a run: alive, draining, ending, gone.
//!
//! Has no side effects: the loop reports events and the time, and asks which deadline is next.
//!
//! Invariant: the exit is recorded after the last output that could be read. The run is gone only after its
//! exit was recorded and its process tree is empty.

use std::time::{Duration, Instant};

use agency_journal::{ExitStatus, StopSignal};

/// A background process may hold the terminal for ever, so the drain ends after this long without output.
const QUIET_BEFORE_EXIT: Duration = Duration::from_millis(200);
/// A process that prints without end may not delay the exit for longer than this.
const DRAIN_AT_MOST: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Alive,
    Draining {
        exit: Exit,
        quiet_at: Instant,
        until: Instant,
    },
    /// The exit is recorded; the keeper ends the agent's remaining processes.
    Ending,
    Gone {
        leave_at: Instant,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) status: ExitStatus,
    pub(crate) asked: Option<StopSignal>,
}

impl Life {
    pub(crate) fn on_exit(&mut self, exit: Exit, now: Instant) {
        if *self == Life::Alive {
            *self = Life::Draining { exit, quiet_at: now + QUIET_BEFORE_EXIT, until: now + DRAIN_AT_MOST };
        }
    }

    pub(crate) fn on_output(&mut self, now: Instant) {
        if let Life::Draining { quiet_at, until, .. } = self {
            *quiet_at = (now + QUIET_BEFORE_EXIT).min(*until);
        }
    }

    /// The exit, if it must be recorded now. Moves on to `Ending`.
    pub(crate) fn take_due_exit(&mut self, port_is_drained: bool, now: Instant) -> Option<Exit> {
        match *self {
            Life::Draining { exit, quiet_at, until } if port_is_drained || now >= quiet_at.min(until) => {
                *self = Life::Ending;
                Some(exit)
            }
            Life::Alive | Life::Draining { .. } | Life::Ending | Life::Gone { .. } => None,
        }
    }

    pub(crate) fn on_tree_ended(&mut self, leave_at: Instant) {
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
        life.on_exit(EXIT, at(0));
        assert_eq!(life.take_due_exit(false, at(100)), None);
        life.on_output(at(150));
        assert_eq!(life.take_due_exit(false, at(250)), None, "the last output is 100 ms old");
        assert_eq!(life.take_due_exit(true, at(250)), Some(EXIT), "no process holds the terminal");
        assert_eq!(life.take_due_exit(true, at(251)), None, "recorded once");
    }

    #[test]
    fn a_background_process_that_never_stops_printing_does_not_hold_up_the_exit() {
        let start = Instant::now();
        let mut life = Life::Alive;
        life.on_exit(EXIT, start);
        let mut at = start;
        while life.take_due_exit(false, at).is_none() {
            at += Duration::from_millis(50);
            life.on_output(at);
            assert!(at < start + Duration::from_secs(2));
        }
        life.on_tree_ended(at);
        assert!(life.is_gone() && life.is_over(at));
    }
}

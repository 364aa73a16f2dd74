//! What one run's agent is doing, told from when it last showed something.
//!
//! Not here: what counts as output (only visible change does), and any evidence better than silence.
//!
//! Invariant: `Exited` is final. A restart is a new run and makes a new machine.

use std::time::Duration;

use crate::Time;
use crate::exit::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentState {
    /// Alive, nothing shown yet.
    Starting,
    Running,
    NeedsInput {
        since: Time,
    },
    /// Has waited for so long that somebody may have forgotten it; `since` is when the waiting began.
    Stale {
        since: Time,
    },
    Exited {
        code: ExitCode,
    },
}

/// How long silence may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    pub needs_input_after: Duration,
    pub stale_after: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Timing { needs_input_after: Duration::from_secs(5), stale_after: Duration::from_secs(60) }
    }
}

#[derive(Clone, Debug)]
pub struct AgentMachine {
    timing: Timing,
    state: AgentState,
    /// When the present silence began: the spawn, or the last output.
    quiet_since: Time,
}

impl AgentMachine {
    pub fn new(timing: Timing, now: Time) -> Self {
        AgentMachine { timing, state: AgentState::Starting, quiet_since: now }
    }

    pub fn state(&self) -> AgentState {
        self.state
    }

    pub fn on_output(&mut self, now: Time) {
        match self.state {
            AgentState::Starting
            | AgentState::Running
            | AgentState::NeedsInput { .. }
            | AgentState::Stale { .. } => {
                self.quiet_since = now;
                self.state = AgentState::Running;
            }
            // The last words are drained before the exit is told; what comes later is an echo.
            AgentState::Exited { .. } => {}
        }
    }

    /// May come late: states are dated by when they were due, not by when somebody looked.
    pub fn tick(&mut self, now: Time) {
        while let Some((due, next)) = self.next_by_silence() {
            if now < due {
                break;
            }
            self.state = next;
        }
    }

    pub fn on_exit(&mut self, code: ExitCode, now: Time) {
        match self.state {
            AgentState::Starting
            | AgentState::Running
            | AgentState::NeedsInput { .. }
            | AgentState::Stale { .. } => {
                self.quiet_since = now;
                self.state = AgentState::Exited { code };
            }
            AgentState::Exited { .. } => {}
        }
    }

    /// When `tick` is needed next, unless there is output before.
    pub fn deadline(&self) -> Option<Time> {
        self.next_by_silence().map(|(due, _)| due)
    }

    fn next_by_silence(&self) -> Option<(Time, AgentState)> {
        match self.state {
            AgentState::Starting | AgentState::Running => {
                let since = self.quiet_since.saturating_add(self.timing.needs_input_after);
                Some((since, AgentState::NeedsInput { since }))
            }
            AgentState::NeedsInput { since } => {
                Some((since.saturating_add(self.timing.stale_after), AgentState::Stale { since }))
            }
            AgentState::Stale { .. } | AgentState::Exited { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of `seconds event -> state, next deadline`.
    fn check(script: &str) {
        let mut machine = AgentMachine::new(Timing::default(), Time::ZERO);
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (event, expected) = line.split_once(" -> ").expect("an arrow");
            let (seconds, event) = event.split_once(' ').expect("a time and an event");
            let now = Duration::from_secs(seconds.parse().expect("seconds"));
            match event.split_once(' ').unwrap_or((event, "")) {
                ("look", _) => {}
                ("output", _) => machine.on_output(now),
                ("tick", _) => machine.tick(now),
                ("exit", code) => machine.on_exit(code.parse().expect("a code"), now),
                other => panic!("unknown event {other:?}"),
            }
            assert_eq!(told(&machine), expected, "after `{line}`");
        }
    }

    fn told(machine: &AgentMachine) -> String {
        let state = match machine.state() {
            AgentState::Starting => "starting".to_owned(),
            AgentState::Running => "running".to_owned(),
            AgentState::NeedsInput { since } => format!("needs-input since {}", since.as_secs()),
            AgentState::Stale { since } => format!("stale since {}", since.as_secs()),
            AgentState::Exited { code } => format!("exited {code}"),
        };
        match machine.deadline() {
            Some(due) => format!("{state}, {}", due.as_secs()),
            None => state,
        }
    }

    #[test]
    fn an_agent_works_waits_and_is_forgotten_until_it_speaks_again() {
        check(
            "
            0 look -> starting, 5
            1 output -> running, 6
            4 output -> running, 9
            8 tick -> running, 9
            9 tick -> needs-input since 9, 69
            68 tick -> needs-input since 9, 69
            69 tick -> stale since 9
            500 tick -> stale since 9
            501 output -> running, 506
            506 tick -> needs-input since 506, 566
            507 output -> running, 512
        ",
        );
    }

    #[test]
    fn an_agent_that_never_says_a_word_waits_for_input() {
        check(
            "
            4 tick -> starting, 5
            5 tick -> needs-input since 5, 65
        ",
        );
    }

    #[test]
    fn a_late_tick_dates_the_state_by_when_it_was_due() {
        check(
            "
            1 output -> running, 6
            40 tick -> needs-input since 6, 66
            900 tick -> stale since 6
        ",
        );
        check("100 tick -> stale since 5");
    }

    #[test]
    fn exited_is_final_from_every_state() {
        check("0 exit 0 -> exited 0");
        check(
            "
            1 output -> running, 6
            2 exit -15 -> exited -15
            3 output -> exited -15
            90 tick -> exited -15
            91 exit 0 -> exited -15
        ",
        );
        check(
            "
            5 tick -> needs-input since 5, 65
            6 exit unknown -> exited unknown
        ",
        );
        check(
            "
            70 tick -> stale since 5
            71 exit 3 -> exited 3
        ",
        );
    }
}

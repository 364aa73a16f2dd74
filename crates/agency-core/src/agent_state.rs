//! What one run's agent is doing: told by the best evidence there is, and where there is none, by silence.
//!
//! Not here: what counts as output (only visible change does), and what counts as evidence.
//!
//! Invariant: `Exited` is final. A restart is a new run and makes a new machine.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Time;
use crate::evidence::{Activity, Why};
use crate::exit::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgentState {
    /// Alive, nothing shown yet.
    Starting,
    Running,
    NeedsInput {
        since: Time,
        why: Why,
    },
    /// Has waited for so long that somebody may have forgotten it; `since` is when the waiting began.
    Stale {
        since: Time,
        why: Why,
    },
    Exited {
        code: ExitCode,
    },
}

impl AgentState {
    /// Since when it waits, and for what.
    pub fn waiting(self) -> Option<(Time, Why)> {
        match self {
            AgentState::NeedsInput { since, why } | AgentState::Stale { since, why } => Some((since, why)),
            AgentState::Starting | AgentState::Running | AgentState::Exited { .. } => None,
        }
    }
}

/// How long silence may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    pub needs_input_after: Duration,
    pub stale_after: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Timing { needs_input_after: Duration::from_secs(5), stale_after: Duration::from_secs(60) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMachine {
    timing: Timing,
    state: AgentState,
    /// When the present silence began: the spawn, the last output, or the last word of better evidence.
    quiet_since: Time,
    evidence: Option<Activity>,
    #[serde(default)]
    takes_keys: bool,
}

impl AgentMachine {
    pub fn new(timing: Timing, now: Time) -> Self {
        AgentMachine {
            timing,
            state: AgentState::Starting,
            quiet_since: now,
            evidence: None,
            takes_keys: false,
        }
    }

    pub fn timing(&self) -> Timing {
        self.timing
    }

    pub fn set_timing(&mut self, timing: Timing) {
        self.timing = timing;
    }

    pub fn state(&self) -> AgentState {
        self.state
    }

    /// How long silence must last before it is taken for waiting. Who takes every key for itself shows what it does,
    /// and is given a little less.
    pub fn silence(&self) -> Duration {
        let whole = self.timing.needs_input_after;
        if self.takes_keys { whole.mul_f32(0.9) } else { whole }
    }

    /// Whether the program takes keys one by one; that it changes its mind is a sign of life.
    pub fn on_takes_keys(&mut self, takes_keys: bool, now: Time) {
        if takes_keys != self.takes_keys {
            (self.takes_keys, self.quiet_since) = (takes_keys, now);
        }
    }

    pub fn on_output(&mut self, now: Time) {
        match self.state {
            AgentState::Starting
            | AgentState::Running
            | AgentState::NeedsInput { .. }
            | AgentState::Stale { .. } => {
                self.quiet_since = now;
                // A question may blink: what is known to wait is not at work because it draws.
                if !self.evidence.is_some_and(Activity::is_waiting) {
                    self.state = AgentState::Running;
                }
            }
            // The last words are drained before the exit is told; what comes later is an echo.
            AgentState::Exited { .. } => {}
        }
    }

    /// What the best evidence says from now on; with none of it, silence decides again.
    pub fn on_evidence(&mut self, evidence: Option<Activity>, now: Time) {
        if evidence == self.evidence || matches!(self.state, AgentState::Exited { .. }) {
            return;
        }
        self.evidence = evidence;
        match (evidence, self.state) {
            (Some(Activity::Waiting(why)), AgentState::NeedsInput { since, .. }) => {
                self.state = AgentState::NeedsInput { since, why };
            }
            (Some(Activity::Waiting(why)), AgentState::Stale { since, .. }) => {
                self.state = AgentState::Stale { since, why };
            }
            (Some(Activity::Waiting(why)), _) => self.state = AgentState::NeedsInput { since: now, why },
            (Some(Activity::Working), _) => self.state = AgentState::Running,
            (None, _) => self.quiet_since = now,
        }
    }

    /// May come late: states are dated by when they were due, not by when somebody looked.
    pub fn tick(&mut self, now: Time) {
        while let Some((due, next)) = self.next_by_time() {
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
        self.next_by_time().map(|(due, _)| due)
    }

    fn next_by_time(&self) -> Option<(Time, AgentState)> {
        match self.state {
            AgentState::Starting | AgentState::Running if self.evidence == Some(Activity::Working) => None,
            AgentState::Starting | AgentState::Running => {
                let since = self.quiet_since.saturating_add(self.silence());
                Some((since, AgentState::NeedsInput { since, why: Why::Unknown }))
            }
            AgentState::NeedsInput { since, why } => {
                Some((since.saturating_add(self.timing.stale_after), AgentState::Stale { since, why }))
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
                ("works", _) => machine.on_evidence(Some(Activity::Working), now),
                ("waits", why) => {
                    let why = serde_json::from_value(why.into()).expect("a reason to wait");
                    machine.on_evidence(Some(Activity::Waiting(why)), now)
                }
                ("nobody-knows", _) => machine.on_evidence(None, now),
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
            AgentState::NeedsInput { since, why: Why::Unknown } => {
                format!("needs-input since {}", since.as_secs())
            }
            AgentState::NeedsInput { since, why } => {
                format!("needs-input for {why} since {}", since.as_secs())
            }
            AgentState::Stale { since, .. } => format!("stale since {}", since.as_secs()),
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

    #[test]
    fn evidence_decides_before_silence_does() {
        check(
            "
            1 output -> running, 6
            2 works -> running
            900 tick -> running
            901 waits permission -> needs-input for permission since 901, 961
            902 output -> needs-input for permission since 901, 961
            903 waits question -> needs-input for question since 901, 961
            970 tick -> stale since 901
            971 output -> stale since 901
            972 works -> running
            973 nobody-knows -> running, 978
            978 tick -> needs-input since 978, 1038
            979 output -> running, 984
        ",
        );
        check(
            "
            1 waits question -> needs-input for question since 1, 61
            2 nobody-knows -> needs-input for question since 1, 61
            3 output -> running, 8
            4 exit 0 -> exited 0
            5 works -> exited 0
        ",
        );
    }
}

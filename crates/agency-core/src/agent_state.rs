//! The state of one run's agent. The best evidence decides; without evidence, silence does.
//!
//! Not here: what counts as output (only visible change does), and what counts as evidence.
//!
//! Invariant: `Exited` is final. A restart is a new run and makes a new machine.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Time;
use crate::activity::{Activity, Why};
use crate::exit::ExitCode;

/// The state of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgentState {
    /// The process lives and has shown nothing yet.
    Starting,
    /// The agent works.
    Running,
    /// The agent waits for the user.
    NeedsInput {
        /// When the waiting began.
        since: Time,
        /// The reason to wait.
        why: Why,
    },
    /// The agent has waited so long that the user may have forgotten it.
    Stale {
        /// When the waiting began.
        since: Time,
        /// The reason to wait.
        why: Why,
    },
    /// The process ended.
    Exited {
        /// How it ended.
        code: ExitCode,
    },
}

impl AgentState {
    /// When the agent began to wait, and for what, if it waits.
    pub fn waiting(self) -> Option<(Time, Why)> {
        match self {
            AgentState::NeedsInput { since, why } | AgentState::Stale { since, why } => Some((since, why)),
            AgentState::Starting | AgentState::Running | AgentState::Exited { .. } => None,
        }
    }
}

/// How long silence may last before it means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Silence after which the agent counts as waiting.
    pub needs_input_after: Duration,
    /// Waiting after which the agent counts as stale.
    pub stale_after: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Timing { needs_input_after: Duration::from_secs(5), stale_after: Duration::from_secs(60) }
    }
}

/// Turns output, evidence and time into a state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMachine {
    timing: Timing,
    state: AgentState,
    /// When the present silence began: at the spawn, at the last output, or when better evidence was withdrawn.
    quiet_since: Time,
    evidence: Option<Activity>,
    #[serde(default)]
    takes_keys: bool,
    /// The program drew something, or the user pressed Enter, since the present wait began.
    #[serde(default)]
    moved: bool,
}

impl AgentMachine {
    /// The machine of a run that starts now.
    pub fn new(timing: Timing, now: Time) -> Self {
        AgentMachine {
            timing,
            state: AgentState::Starting,
            quiet_since: now,
            evidence: None,
            takes_keys: false,
            moved: false,
        }
    }

    /// The limits in force.
    pub fn timing(&self) -> Timing {
        self.timing
    }

    /// Replaces the limits; the state follows with the next event.
    pub fn set_timing(&mut self, timing: Timing) {
        self.timing = timing;
    }

    /// The state now.
    pub fn state(&self) -> AgentState {
        self.state
    }

    /// How long silence must last before it counts as waiting. A program that reads every key itself also shows what it
    /// does, so it gets a little less time.
    pub fn silence(&self) -> Duration {
        let whole = self.timing.needs_input_after;
        if self.takes_keys { whole.mul_f32(0.9) } else { whole }
    }

    /// Records whether the program reads keys one by one. A change of this mode is a sign of life.
    pub fn on_takes_keys(&mut self, takes_keys: bool, now: Time) {
        if takes_keys != self.takes_keys {
            (self.takes_keys, self.quiet_since) = (takes_keys, now);
        }
    }

    /// Visible output arrived.
    pub fn on_output(&mut self, now: Time) {
        match self.state {
            AgentState::Starting
            | AgentState::Running
            | AgentState::NeedsInput { .. }
            | AgentState::Stale { .. } => {
                (self.quiet_since, self.moved) = (now, true);
                // A question may blink, so drawing does not mean work while evidence says that the agent waits.
                if !self.evidence.is_some_and(Activity::is_waiting) {
                    self.state = AgentState::Running;
                }
            }
            // The keeper drains all output before it reports the exit, so this output is only a late echo.
            AgentState::Exited { .. } => {}
        }
    }

    /// The user pressed Enter. If the reason to wait goes away now, it was answered.
    pub fn on_enter(&mut self) {
        self.moved = true;
    }

    /// Sets what the best evidence says from now on. With `None`, silence decides again.
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
            (Some(Activity::Waiting(why)), _) => self.begin_wait(why, now),
            (Some(Activity::Working), _) => self.state = AgentState::Running,
            (None, state) => {
                self.quiet_since = now;
                self.state = self.without_evidence(state);
            }
        }
    }

    /// The agent asks something else than before: this wait begins now.
    pub fn on_new_question(&mut self, why: Why, now: Time) {
        if !matches!(self.state, AgentState::Exited { .. }) {
            self.evidence = Some(Activity::Waiting(why));
            self.begin_wait(why, now);
        }
    }

    /// Something gives the reason of a wait that only silence found.
    pub fn on_reason(&mut self, why: Why) {
        let state = Some(self.state).filter(|_| self.evidence.is_none());
        if let Some(AgentState::NeedsInput { since, why: Why::Unknown }) = state {
            self.state = AgentState::NeedsInput { since, why };
        }
    }

    fn begin_wait(&mut self, why: Why, now: Time) {
        self.moved = false;
        self.state = AgentState::NeedsInput { since: now, why };
    }

    /// The state after the evidence was withdrawn. A wait never keeps a reason that nothing supports.
    fn without_evidence(&self, state: AgentState) -> AgentState {
        match state {
            AgentState::NeedsInput { .. } | AgentState::Stale { .. } if self.moved => AgentState::Running,
            AgentState::NeedsInput { since, .. } => AgentState::NeedsInput { since, why: Why::Unknown },
            AgentState::Stale { since, .. } => AgentState::Stale { since, why: Why::Unknown },
            AgentState::Starting | AgentState::Running | AgentState::Exited { .. } => state,
        }
    }

    /// May be called late: a state begins when it was due, not when `tick` ran.
    pub fn tick(&mut self, now: Time) {
        while let Some((due, next)) = self.next_by_time() {
            if now < due {
                break;
            }
            self.moved &= self.state.waiting().is_some();
            self.state = next;
        }
    }

    /// The process ended. No later event changes the state.
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

    /// When `tick` is needed next, if nothing else happens before.
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
                ("unknown", _) => machine.on_evidence(None, now),
                ("asks", why) => {
                    let why = serde_json::from_value(why.into()).expect("a reason to wait");
                    machine.on_new_question(why, now)
                }
                ("enter", _) => machine.on_enter(),
                ("exit", code) => machine.on_exit(code.parse().expect("a code"), now),
                other => panic!("unknown event {other:?}"),
            }
            assert_eq!(describe(&machine), expected, "after `{line}`");
        }
    }

    fn describe(machine: &AgentMachine) -> String {
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
    fn an_agent_works_waits_and_becomes_stale_until_it_prints_again() {
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
    fn an_agent_without_any_output_waits_for_input() {
        check(
            "
            4 tick -> starting, 5
            5 tick -> needs-input since 5, 65
        ",
        );
    }

    #[test]
    fn a_late_tick_begins_the_state_when_it_was_due() {
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
            973 unknown -> running, 978
            978 tick -> needs-input since 978, 1038
            979 output -> running, 984
        ",
        );
        check(
            "
            1 waits question -> needs-input for question since 1, 61
            2 unknown -> needs-input since 1, 61
            3 output -> running, 8
            4 exit 0 -> exited 0
            5 works -> exited 0
        ",
        );
    }

    #[test]
    fn a_wait_never_keeps_a_reason_that_nothing_supports() {
        check(
            "
            1 waits question -> needs-input for question since 1, 61
            2 output -> needs-input for question since 1, 61
            3 unknown -> running, 8
        ",
        );
        check(
            "
            1 waits permission -> needs-input for permission since 1, 61
            2 enter -> needs-input for permission since 1, 61
            3 unknown -> running, 8
            4 waits permission -> needs-input for permission since 4, 64
            5 unknown -> needs-input since 4, 64
            70 tick -> stale since 4
        ",
        );
        check(
            "
            1 waits prompt -> needs-input for prompt since 1, 61
            65 tick -> stale since 1
            66 unknown -> stale since 1
            67 waits prompt -> stale since 1
            68 output -> stale since 1
            69 unknown -> running, 74
        ",
        );
    }

    #[test]
    fn a_new_question_is_a_new_wait() {
        check(
            "
            1 waits question -> needs-input for question since 1, 61
            62 tick -> stale since 1
            70 asks question -> needs-input for question since 70, 130
            71 asks permission -> needs-input for permission since 71, 131
            72 exit 0 -> exited 0
            73 asks question -> exited 0
        ",
        );
    }
}

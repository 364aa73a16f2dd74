//! What a run tells of its agent: each change of state once, what the state rests on when that changes, and which
//! conversation it is in.

use std::path::PathBuf;

use agency_core::agent_state::AgentState;
use agency_core::evidence::{Change, Detector, Evidence};

use crate::report::{RunReport, RunReporter};
use crate::state_log::StateLog;

pub struct StateReporter {
    states: StateLog,
    told_evidence: Evidence,
    told_session: Option<String>,
}

impl StateReporter {
    pub fn open(states: PathBuf, detector: &Detector) -> StateReporter {
        let told_evidence = detector.standing().evidence;
        StateReporter { states: StateLog::open(states), told_evidence, told_session: None }
    }

    /// What changed while no daemon looked; from now on every change is new.
    pub fn missed(&mut self, changes: Vec<Change>, detector: &Detector) -> Vec<Change> {
        let missed = self.states.new_among(changes, detector.began());
        self.caught_up();
        missed
    }

    /// What the fold found again has been told.
    pub fn caught_up(&mut self) {
        self.states.caught_up();
    }

    /// `true` if the agent has come to rest.
    pub async fn report(
        &mut self,
        changes: Vec<Change>,
        detector: &Detector,
        session: Option<&str>,
        reporter: &RunReporter,
    ) -> bool {
        let mut rests = false;
        for change in self.states.new_among(changes, detector.began()) {
            rests |= !matches!(change.new.state, AgentState::Starting | AgentState::Running);
            self.told_evidence.clone_from(&change.new.evidence);
            reporter.report(RunReport::State(Box::new(change))).await;
        }
        let evidence = detector.standing().evidence;
        if self.told_evidence != evidence {
            self.told_evidence.clone_from(&evidence);
            reporter.report(RunReport::Evidence(Box::new(evidence))).await;
        }
        if self.told_session.as_deref() != session {
            self.told_session = session.map(str::to_owned);
            if let Some(id) = self.told_session.clone() {
                reporter.report(RunReport::Session(id)).await;
            }
        }
        rests
    }
}

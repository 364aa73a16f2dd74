//! Reports the state of one agent: each change once, new evidence for the same state, and the session that it is in.

use std::path::PathBuf;
use std::time::Duration;

use agency_core::agent_state::AgentState;
use agency_core::evidence::{Change, DetectedState, Detector, Evidence};

use crate::report::{RunReport, RunReporter};
use crate::state_log::StateLog;

pub struct StateReporter {
    log: StateLog,
    reported_evidence: Evidence,
    reported_session: Option<String>,
}

/// The state of an agent as its fold knows it.
pub struct StateUpdate {
    /// Since the last update, oldest first.
    pub changes: Vec<Change>,
    pub standing: DetectedState,
    /// When the run began.
    pub began: Duration,
    pub session: Option<String>,
}

impl StateUpdate {
    pub fn new(changes: Vec<Change>, detector: &Detector, session: Option<&str>) -> StateUpdate {
        StateUpdate {
            changes,
            standing: detector.standing(),
            began: detector.began(),
            session: session.map(str::to_owned),
        }
    }
}

impl StateReporter {
    pub fn open(log: PathBuf, detector: &Detector) -> StateReporter {
        let reported_evidence = detector.standing().evidence;
        StateReporter { log: StateLog::open(log), reported_evidence, reported_session: None }
    }

    /// Logs and returns the changes that no daemon has seen. From now on every change is new.
    pub fn take_missed(&mut self, changes: Vec<Change>, began: Duration) -> Vec<Change> {
        let missed = self.log.keep_new(changes, began);
        self.mark_caught_up();
        missed
    }

    /// The changes that the fold found in the journal have been reported.
    pub fn mark_caught_up(&mut self) {
        self.log.mark_caught_up();
    }

    /// Returns `true` if the agent has stopped working.
    pub async fn report(&mut self, update: StateUpdate, reporter: &RunReporter) -> bool {
        let mut rests = false;
        for change in self.log.keep_new(update.changes, update.began) {
            rests |= !matches!(change.new.state, AgentState::Starting | AgentState::Running);
            self.reported_evidence.clone_from(&change.new.evidence);
            reporter.report(RunReport::State(Box::new(change))).await;
        }
        let evidence = update.standing.evidence;
        if self.reported_evidence != evidence {
            self.reported_evidence.clone_from(&evidence);
            reporter.report(RunReport::Evidence(Box::new(evidence))).await;
        }
        if self.reported_session != update.session {
            self.reported_session = update.session;
            if let Some(id) = self.reported_session.clone() {
                reporter.report(RunReport::Session(id)).await;
            }
        }
        rests
    }
}

//! Describes in words what would change the state.

use super::claim::EvidenceSource;
use super::detector::Detector;
use crate::Time;
use crate::agent_state::AgentState;

impl Detector {
    /// Lists what would change the state, the most likely first.
    pub fn outlook(&self, now: Time) -> Vec<String> {
        if let AgentState::Exited { .. } = self.state() {
            return vec!["nothing: it has exited; a restart is a new run".to_owned()];
        }
        let standing = self.standing();
        let waits = standing.state.waiting().is_some();
        let mut words = vec![authority(standing.evidence.source, waits).to_owned()];
        let seconds = |due: Time| due.saturating_sub(now).as_secs_f32().ceil();
        match standing.state {
            AgentState::NeedsInput { since, .. } => {
                let due = since.saturating_add(self.timing().stale_after);
                words.push(format!("after {} s more of this it is stale", seconds(due)));
            }
            AgentState::Starting | AgentState::Running
                if standing.evidence.source == EvidenceSource::Silence =>
            {
                if let Some(due) = self.deadline() {
                    words
                        .push(format!("after {} s more without visible output it needs input", seconds(due)));
                }
            }
            _ => {}
        }
        if standing.evidence.source > EvidenceSource::Status {
            words.push("a claim of a more trusted witness".to_owned());
        }
        words
    }
}

fn authority(source: EvidenceSource, waits: bool) -> &'static str {
    match (source, waits) {
        (EvidenceSource::Protocol, true) => "an answer, a message, or its end",
        (EvidenceSource::Protocol, false) => "the next message of the agent, or its end",
        (EvidenceSource::Status, _) => "the program's next report (OSC 7501), or its end",
        (EvidenceSource::Hook, _) => "the agent's next hook, or a key that answers it",
        (EvidenceSource::User, _) => "evidence that was not there when you contradicted",
        (EvidenceSource::Title, _) => "another window title",
        (EvidenceSource::Shell, _) => "a command that the user enters",
        (EvidenceSource::Kernel, true) => "a line, or a key, typed into its terminal",
        (EvidenceSource::Kernel, false) => "a foreground process that reads the terminal",
        (EvidenceSource::Screen, _) => "a screen that the rule does not match",
        (EvidenceSource::Sign, true) => "its sign of work comes back",
        (EvidenceSource::Sign, false) => "its sign of work disappears",
        (EvidenceSource::Progress, _) => "an end that it reports, or a screen that stops changing",
        (EvidenceSource::Notice, _) => "a key, or a screen that keeps changing",
        (EvidenceSource::Editor, true) => "a line that the user enters",
        (EvidenceSource::Editor, false) => "the line editor opens again",
        (EvidenceSource::Animation, true) => "a screen that keeps changing",
        (EvidenceSource::Animation, false) => "a screen that stops changing",
        (EvidenceSource::Child, _) => "the end of that process",
        (EvidenceSource::Blank, _) => "the first thing it draws",
        (EvidenceSource::Silence, true) => "visible output",
        (EvidenceSource::Silence, false) => "silence",
    }
}

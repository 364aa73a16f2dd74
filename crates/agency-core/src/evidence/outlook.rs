//! Describes in words what would change the state.

use super::claim::Rung;
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
            AgentState::Starting | AgentState::Running if standing.evidence.source == Rung::Silence => {
                if let Some(due) = self.deadline() {
                    words
                        .push(format!("after {} s more without visible output it needs input", seconds(due)));
                }
            }
            _ => {}
        }
        if standing.evidence.source > Rung::Status {
            words.push("a claim of a more trusted witness".to_owned());
        }
        words
    }
}

fn authority(source: Rung, waits: bool) -> &'static str {
    match (source, waits) {
        (Rung::Protocol, true) => "an answer, a message, or its end",
        (Rung::Protocol, false) => "the next message of the agent, or its end",
        (Rung::Status, _) => "the program's next report (OSC 7501), or its end",
        (Rung::Hook, _) => "the agent's next hook, or a key that answers it",
        (Rung::Title, _) => "another window title",
        (Rung::Shell, _) => "a command that the user enters",
        (Rung::Kernel, true) => "a line, or a key, typed into its terminal",
        (Rung::Kernel, false) => "a foreground process that reads the terminal",
        (Rung::Screen, _) => "a screen that the rule does not match",
        (Rung::Progress, _) => "an end that it reports, or a screen that stops changing",
        (Rung::Notice, _) => "a key, or a screen that keeps changing",
        (Rung::Editor, true) => "a line that the user enters",
        (Rung::Editor, false) => "the line editor opens again",
        (Rung::Animation, true) => "a screen that keeps changing",
        (Rung::Animation, false) => "a screen that stops changing",
        (Rung::Child, _) => "the end of that process",
        (Rung::Blank, _) => "the first thing it draws",
        (Rung::Silence, true) => "visible output",
        (Rung::Silence, false) => "silence",
    }
}

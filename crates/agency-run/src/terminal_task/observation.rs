//! Observations of the agent that the send machine needs before it types or presses Enter.

use std::time::Duration;

use agency_core::agent_state::AgentState;
use agency_core::evidence::{Activity, DetectedState, Detector, EvidenceSource};
use agency_driver::sending::Observation;
use agency_store::clock;

use super::TerminalTask;

impl TerminalTask {
    pub(super) fn observe(&mut self) -> Observation {
        let now = clock::now();
        self.reload_rules();
        self.fold.run.look_now(now);
        let standing = self.fold.run.detector().standing();
        let full_screen = self.fold.run.detector().is_full_screen();
        let dialog_shown = shows_dialog(self.fold.run.detector());
        let (probed_at, terminal) = match self.probed.clone() {
            Some((at, terminal)) => (Some(at), Some(terminal)),
            None => (None, self.fold.terminal.clone()),
        };
        let canonical = terminal.as_ref().is_some_and(|terminal| terminal.canonical);
        let all_read = terminal.as_ref().is_some_and(|terminal| terminal.input_waiting == Some(0));
        let screen = self.fold.run.screen();
        let modes = screen.modes();
        Observation {
            now,
            dialog: open_dialog(&standing),
            state_since: standing.since.at,
            dialog_shown,
            reads_lines: canonical,
            hides_input: terminal.is_some_and(|terminal| terminal.canonical && !terminal.echo),
            full_screen,
            bracketed_paste: modes.bracketed_paste,
            app_cursor: modes.app_cursor,
            kitty_flags: screen.keyboard_flags(),
            drawn_at: self.drawn_at,
            works: works_since(&standing),
            all_read_at: probed_at.filter(|_| all_read),
            unentered: self.fold.unentered.typed(),
            rows: screen.rows(),
            cursor: screen.cursor(),
        }
    }
}

/// The dialog that is open instead of the prompt. A line program has none: typed text answers its question.
fn open_dialog(standing: &DetectedState) -> Option<String> {
    let (_, why) = standing.state.waiting().filter(|(_, why)| why.is_dialog())?;
    let detail = standing.evidence.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
    let is_dialog = standing.evidence.source != EvidenceSource::Kernel;
    is_dialog.then(|| format!("it waits for a {why}, not for a prompt{detail}"))
}

/// Whether the dialog is on the screen. Hooks report a dialog before the agent draws it; screen rules see only what is drawn.
fn shows_dialog(detector: &Detector) -> bool {
    let is_dialog = |activity| matches!(activity, Activity::Waiting(why) if why.is_dialog());
    detector.claims().any(|(source, claim)| source == EvidenceSource::Screen && is_dialog(claim.activity))
}

/// Since when the agent works, and what shows it. Output alone does not: it may be the echo of the message.
fn works_since(standing: &DetectedState) -> Option<(Duration, String)> {
    let evidence = &standing.evidence;
    let is_seen = standing.state == AgentState::Running && evidence.source != EvidenceSource::Silence;
    is_seen.then(|| (standing.since.at, format!("{}: {}", evidence.source, evidence.rule)))
}

//! What can be seen of an agent by who wants to send it something.

use std::time::Duration;

use agency_core::agent_state::AgentState;
use agency_core::evidence::{Activity, Detector, Rung, Standing};
use agency_driver::sending::Observation;
use agency_store::clock;

use super::TerminalTask;

impl TerminalTask {
    /// What can be seen of the agent by who wants to send it something.
    pub(super) fn observe(&mut self) -> Observation {
        let now = clock::now();
        self.heed_rules();
        self.fold.run.look_now(now);
        let standing = self.fold.run.detector().standing();
        let full_screen = self.fold.run.detector().is_full_screen();
        let dialog_shown = shows_dialog(self.fold.run.detector());
        let noted = self.fold.terminal.clone();
        let (asked_at, terminal) = match self.asked.clone() {
            Some((at, terminal)) => (Some(at), Some(terminal)),
            None => (None, noted),
        };
        let canonical = terminal.as_ref().is_some_and(|terminal| terminal.canonical);
        let all_read = terminal.as_ref().is_some_and(|terminal| terminal.input_waiting == Some(0));
        let screen = self.fold.run.screen();
        let modes = screen.modes();
        Observation {
            now,
            dialog: dialog(&standing),
            state_since: standing.since.at,
            dialog_shown,
            reads_lines: canonical,
            hides_input: terminal.is_some_and(|terminal| terminal.canonical && !terminal.echo),
            full_screen,
            bracketed_paste: modes.bracketed_paste,
            app_cursor: modes.app_cursor,
            kitty_flags: screen.keyboard_flags(),
            drawn_at: self.drawn_at,
            works: works(&standing),
            all_read_at: asked_at.filter(|_| all_read),
            rows: screen.rows(),
            cursor: screen.cursor(),
        }
    }
}

/// What is open instead of the prompt. A line program that asks is answered by what is typed.
fn dialog(standing: &Standing) -> Option<String> {
    let (_, why) = standing.state.waiting().filter(|(_, why)| why.is_dialog())?;
    let detail = standing.evidence.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
    let is_dialog = standing.evidence.source != Rung::Kernel;
    is_dialog.then(|| format!("it waits for a {why}, not for a prompt{detail}"))
}

/// Agents report what they have not drawn yet; rules about screens only know what they see.
fn shows_dialog(detector: &Detector) -> bool {
    let is_dialog = |activity| matches!(activity, Activity::Waiting(why) if why.is_dialog());
    detector.claims().any(|(rung, claim)| rung == Rung::Screen && is_dialog(claim.activity))
}

/// Only what was seen to work: output alone may be the echo.
fn works(standing: &Standing) -> Option<(Duration, String)> {
    let evidence = &standing.evidence;
    let is_seen = standing.state == AgentState::Running && evidence.source != Rung::Silence;
    is_seen.then(|| (standing.since.at, format!("{}: {}", evidence.source, evidence.rule)))
}

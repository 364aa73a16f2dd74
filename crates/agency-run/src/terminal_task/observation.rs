//! Observations of the agent that the send machine needs before it types or presses Enter.

use std::time::Duration;

use agency_api::keeper::TerminalProbe;
use agency_core::agent_state::AgentState;
use agency_core::evidence::{Activity, DetectedState, Detector, EvidenceSource, Why};
use agency_driver::sending::{Observation, SeenWork, TerminalModes};
use agency_driver::terminal::TerminalRun;
use agency_store::clock;

use super::TerminalTask;

impl TerminalTask {
    pub(super) fn observe(&mut self) -> Observation {
        let now = clock::now();
        self.reload_rules();
        let (probed_at, terminal) = match self.probed.clone() {
            Some((at, terminal)) => (Some(at), Some(terminal)),
            None => (None, self.fold.terminal.clone()),
        };
        let all_read = terminal.as_ref().is_some_and(|terminal| terminal.input_waiting == Some(0));
        Observation {
            drawn_at: self.drawn_at,
            all_read_at: probed_at.filter(|_| all_read),
            unentered: self.fold.unentered.typed(),
            ..observe_run(&mut self.fold.run, &terminal.unwrap_or_default(), now)
        }
    }
}

/// Observes the screen and the detector of a run. The task knows more: its own probes and the text that it typed.
pub(crate) fn observe_run(run: &mut TerminalRun, terminal: &TerminalProbe, now: Duration) -> Observation {
    run.look_now(now);
    let detector = run.detector();
    let (standing, dialog_shown) = (detector.standing(), shows_dialog(detector));
    let seen = Observation {
        now,
        dialog: open_dialog(&standing, detector, terminal.canonical),
        question: standing.evidence.detail.clone(),
        why: standing.state.waiting().map(|(_, why)| why),
        began: detector.began(),
        state_since: standing.since.at,
        dialog_shown,
        reads_lines: terminal.canonical,
        is_busy: is_busy(detector),
        works: seen_work(&standing),
        ..Observation::default()
    };
    let full_screen = detector.is_full_screen();
    let screen = run.screen();
    let modes = TerminalModes {
        hides_input: terminal.canonical && !terminal.echo,
        full_screen,
        alternate: screen.is_alternate(),
        cursor_visible: screen.modes().cursor_visible,
        bracketed_paste: screen.modes().bracketed_paste,
        app_cursor: screen.modes().app_cursor,
        kitty_flags: screen.keyboard_flags(),
    };
    Observation { modes, rows: screen.rows(), cursor: screen.cursor(), ..seen }
}

/// The dialog that is open instead of the prompt. Text answers the question of a program that reads lines, so there the shape
/// of the question decides.
fn open_dialog(standing: &DetectedState, detector: &Detector, reads_lines: bool) -> Option<String> {
    let (_, why) = standing.state.waiting().filter(|(_, why)| why.is_dialog())?;
    let detail = standing.evidence.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
    let is_reported = match standing.evidence.source {
        EvidenceSource::Protocol
        | EvidenceSource::Status
        | EvidenceSource::Hook
        | EvidenceSource::Title
        | EvidenceSource::Screen
        | EvidenceSource::Notice => true,
        // A shell that reads single keys after a question, or a rule that knows what the kernel does not.
        EvidenceSource::Kernel => !reads_lines || shows_permission(detector),
        _ => !reads_lines && shows_dialog(detector),
    };
    is_reported.then(|| format!("it waits for a {why}, not for a prompt{detail}"))
}

/// Whether the dialog is on the screen. Hooks report a dialog before the agent draws it; screen rules see only what is drawn.
fn shows_dialog(detector: &Detector) -> bool {
    let is_dialog = |activity| matches!(activity, Activity::Waiting(why) if why.is_dialog());
    detector.claims().any(|(source, claim)| source == EvidenceSource::Screen && is_dialog(claim.activity))
}

/// Whether a screen rule recognises a permission prompt.
fn shows_permission(detector: &Detector) -> bool {
    let permission = Activity::Waiting(Why::Permission);
    let mut claims = detector.claims();
    claims.any(|(source, claim)| source == EvidenceSource::Screen && claim.activity == permission)
}

/// The work of the agent, and what shows it. Output alone does not: it may be the echo of the message.
fn seen_work(standing: &DetectedState) -> Option<SeenWork> {
    let evidence = &standing.evidence;
    let is_seen = standing.state == AgentState::Running && evidence.source != EvidenceSource::Silence;
    is_seen.then(|| SeenWork {
        since: standing.since.at,
        evidence: format!("{}: {}", evidence.source, evidence.rule),
        is_reported: !matches!(
            evidence.source,
            EvidenceSource::User | EvidenceSource::Screen | EvidenceSource::Animation | EvidenceSource::Blank
        ),
    })
}

/// The kernel saw that no program in the foreground reads the terminal.
fn is_busy(detector: &Detector) -> bool {
    let mut claims = detector.claims();
    claims.any(|(source, claim)| source == EvidenceSource::Kernel && claim.activity == Activity::Working)
}

//! The detector: every witness reports to it, the best claim decides, and every change of state has its evidence.
//!
//! Invariant: one authority at a time. A lower source may only add what the authority does not know: why the agent waits.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::animation::Animation;
use super::claim::{Claim, Confidence, EvidenceSource};
use super::editor::Editor;
use super::hook::{Hook, HookMeaning};
use super::kernel::{ForegroundChange, KernelWatch, Probe};
use super::rules::Matched;
use super::settling::Settling;
use super::status;
use super::title::TitleWatch;
use crate::Time;
use crate::activity::{Activity, Why};
use crate::agent_state::{AgentMachine, AgentState, Timing};
use crate::exit::ExitCode;

/// A program may draw a screen in pieces, so the match of a rule must stay this long.
const SCREEN_SETTLES: Duration = Duration::from_millis(150);
/// The keeper probes a foreground program within this time of its first output.
const SEEN_WITHIN: Duration = Duration::from_secs(1);
/// Output this soon after a key is the echo of the key.
const ECHO_WITHIN: Duration = Duration::from_millis(400);

/// A moment, and its offset in the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// When.
    pub at: Time,
    /// Bytes of output before it.
    pub offset: u64,
}

/// The screen at a moment when no drawing is half done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScreenSample {
    /// A hash of the visible text.
    pub digest: u64,
    /// Text or colours changed since the last call.
    pub changed: bool,
    /// The result of the screen rules.
    pub rules: RulesResult,
    /// The program controls the whole terminal: the alternate screen, or keys and pastes in its own mode.
    pub full_screen: bool,
    /// Bracketed paste is on, on the primary screen.
    pub editor_open: bool,
    /// The text before the cursor, on its row.
    pub at_cursor: String,
    /// The screen is empty.
    pub blank: bool,
}

/// The result of the screen rules. They cost more than everything else together, so the caller runs them only when
/// `needs_rules` says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RulesResult {
    /// The rules did not run.
    #[default]
    NotRun,
    /// The match, if any rule matched.
    Ran(Option<Matched>),
}

/// The evidence for the present state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The source of the authority.
    pub source: EvidenceSource,
    /// The rule that decided.
    pub rule: String,
    /// How far it can be trusted.
    pub confidence: Confidence,
    /// The agent's own words, if there are any.
    pub detail: Option<String>,
}

/// A state with its evidence and its beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetectedState {
    /// The state.
    pub state: AgentState,
    /// When it began.
    pub since: Moment,
    /// Why.
    pub evidence: Evidence,
}

/// One change of state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The state before.
    pub old: AgentState,
    /// The state after.
    pub new: DetectedState,
}

/// All evidence about one run, and the state that follows from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detector {
    machine: AgentMachine,
    claims: BTreeMap<EvidenceSource, Claim>,
    title: TitleWatch,
    screen: Settling<Matched>,
    animation: Animation,
    editor: Editor,
    kernel: KernelWatch,
    full_screen: bool,
    blank: bool,
    at_cursor: String,
    typed_at: Option<Time>,
    /// When a program reported its status although the kernel saw a shell that waits.
    #[serde(default)]
    unseen_since: Option<Time>,
    /// Since when the text before the cursor may mean another reason to wait.
    #[serde(default)]
    asked_anew_at: Option<Time>,
    began: Time,
    since: Moment,
    evidence: Evidence,
    #[serde(skip)]
    changes: Vec<Change>,
    offset: u64,
}

impl Detector {
    /// The detector of a run that starts now.
    pub fn new(timing: Timing, now: Time) -> Detector {
        let machine = AgentMachine::new(timing, now);
        Detector {
            machine,
            claims: BTreeMap::new(),
            title: TitleWatch::default(),
            screen: Settling::default(),
            animation: Animation::default(),
            editor: Editor::default(),
            kernel: KernelWatch::default(),
            full_screen: false,
            blank: true,
            at_cursor: String::new(),
            typed_at: None,
            unseen_since: None,
            asked_anew_at: None,
            began: now,
            since: Moment { at: now, offset: 0 },
            evidence: Evidence::of(EvidenceSource::Silence, "started".to_owned(), None),
            changes: Vec::new(),
            offset: 0,
        }
    }

    /// The state now.
    pub fn state(&self) -> AgentState {
        self.machine.state()
    }

    /// The state now, with its evidence and its beginning.
    pub fn standing(&self) -> DetectedState {
        DetectedState { state: self.state(), since: self.since, evidence: self.evidence.clone() }
    }

    /// Whether screen rules could change the state. They cannot while a more trusted witness claims that the agent works.
    pub fn needs_rules(&self) -> bool {
        let authority = self.claims.first_key_value();
        !authority.is_some_and(|(source, claim)| {
            *source < EvidenceSource::Screen && claim.activity == Activity::Working
        })
    }

    /// Whether the program controls the whole terminal.
    pub fn is_full_screen(&self) -> bool {
        self.full_screen
    }

    /// When the run began.
    pub fn began(&self) -> Time {
        self.began
    }

    /// All present claims, the authority first.
    pub fn claims(&self) -> impl Iterator<Item = (EvidenceSource, &Claim)> {
        self.claims.iter().map(|(source, claim)| (*source, claim))
    }

    /// The changes since the last call.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Replaces the limits of silence.
    pub fn set_timing(&mut self, timing: Timing) {
        self.machine.set_timing(timing);
    }

    /// The limits of silence.
    pub fn timing(&self) -> Timing {
        self.machine.timing()
    }

    /// A protocol without a terminal reported the activity.
    pub fn on_protocol(&mut self, activity: Activity, rule: &str, detail: Option<String>, moment: Moment) {
        self.tick(moment.at);
        self.claim(EvidenceSource::Protocol, activity, rule.to_owned(), detail, moment);
        self.settle(moment);
    }

    /// OSC 7501; `text` is everything after the number.
    pub fn on_status(&mut self, text: &str, moment: Moment) {
        self.tick(moment.at);
        let Some(report) = status::parse(text) else { return };
        match report.activity {
            Some(activity) => {
                self.claim(EvidenceSource::Status, activity, report.rule, report.detail, moment)
            }
            None => self.withdraw(&[EvidenceSource::Status]),
        }
        self.unseen_since = self.kernel.shell_waits().then_some(moment.at);
        self.settle(moment);
    }

    /// The agent called a hook.
    pub fn on_hook(&mut self, hook: &Hook, moment: Moment) {
        self.tick(moment.at);
        match (hook.meaning(), hook.activity()) {
            (HookMeaning::Waits(_), Some(activity)) => {
                self.withdraw(&[EvidenceSource::Progress]);
                self.claim(EvidenceSource::Hook, activity, hook.rule(), hook.detail(), moment);
            }
            (HookMeaning::Works, Some(activity)) => {
                self.withdraw(&[EvidenceSource::Hook]);
                self.claim(EvidenceSource::Progress, activity, hook.rule(), None, moment);
            }
            (HookMeaning::Nothing, _) => self.withdraw(&[EvidenceSource::Hook, EvidenceSource::Progress]),
            _ => {}
        }
        self.settle(moment);
    }

    /// The program set its title; `matched` is the result of the title rules.
    pub fn on_title(&mut self, matched: Option<Matched>, moment: Moment) {
        self.tick(moment.at);
        self.title.on_title(matched, moment.at);
        self.settle(moment);
    }

    /// OSC 133: a shell shows its prompt, or has started a command.
    pub fn on_shell_prompt(&mut self, shown: bool, moment: Moment) {
        self.tick(moment.at);
        match shown {
            true => {
                let prompt = Activity::Waiting(Why::Prompt);
                self.claim(
                    EvidenceSource::Shell,
                    prompt,
                    "the shell shows its prompt".to_owned(),
                    None,
                    moment,
                );
            }
            false => self.withdraw(&[EvidenceSource::Shell]),
        }
        self.settle(moment);
    }

    /// OSC 9;4: the program reports progress, or its end.
    pub fn on_progress(&mut self, running: bool, moment: Moment) {
        self.tick(moment.at);
        match running {
            true => self.claim(
                EvidenceSource::Progress,
                Activity::Working,
                "a progress is shown".to_owned(),
                None,
                moment,
            ),
            false => self.withdraw(&[EvidenceSource::Progress]),
        }
        self.settle(moment);
    }

    /// The program asked its terminal to notify the user: with a bell, or with these words.
    pub fn on_notice(&mut self, words: Option<&str>, moment: Moment) {
        self.tick(moment.at);
        let rule = if words.is_some() { "a notification" } else { "a bell" };
        let detail = words.map(status::one_line).filter(|words| !words.is_empty());
        self.claim(EvidenceSource::Notice, Activity::Waiting(Why::Unknown), rule.to_owned(), detail, moment);
        self.settle(moment);
    }

    /// The user typed; `enter` if this sent a line or a choice.
    pub fn on_input(&mut self, enter: bool, moment: Moment) {
        self.tick(moment.at);
        self.typed_at = (!enter).then_some(moment.at);
        self.kernel.on_input(enter);
        self.asked_anew_at = None;
        if enter {
            self.withdraw(&[EvidenceSource::Hook, EvidenceSource::Shell, EvidenceSource::Notice]);
        } else {
            // One key answers a dialog, but a prompt still waits while the user types.
            let answered =
                |claim: &Claim| matches!(claim.activity, Activity::Waiting(why) if why.is_dialog());
            if self.claims.get(&EvidenceSource::Hook).is_some_and(answered) {
                self.withdraw(&[EvidenceSource::Hook]);
            }
        }
        self.settle(moment);
    }

    /// The keeper looked at the processes and the terminal.
    pub fn on_probe(&mut self, probe: &Probe, moment: Moment) {
        self.tick(moment.at);
        let view = self.kernel.read_probe(probe, &self.at_cursor);
        self.asked_anew_at = None;
        self.unseen_since = None;
        self.machine.on_takes_keys(!probe.canonical, moment.at);
        match view.foreground {
            ForegroundChange::Same => {}
            ForegroundChange::Started => self.forget_program(&[EvidenceSource::Shell]),
            ForegroundChange::Ended => {
                self.title.forget();
                self.screen.forget();
                self.forget_program(&[
                    EvidenceSource::Status,
                    EvidenceSource::Hook,
                    EvidenceSource::Progress,
                    EvidenceSource::Notice,
                    EvidenceSource::Shell,
                ]);
            }
        }
        for (source, claim) in [(EvidenceSource::Kernel, view.line), (EvidenceSource::Child, view.child)] {
            match claim {
                Some(claim) => self.claim(source, claim.activity, claim.rule, None, moment),
                None => self.withdraw(&[source]),
            }
        }
        self.settle(moment);
    }

    fn forget_program(&mut self, gone: &[EvidenceSource]) {
        self.animation.forget();
        self.editor.forget();
        self.withdraw(gone);
    }

    /// The screen was looked at after output.
    pub fn on_screen(&mut self, sample: ScreenSample, moment: Moment) {
        self.tick(moment.at);
        self.full_screen = sample.full_screen;
        self.blank = sample.blank;
        self.at_cursor = sample.at_cursor;
        self.check_question(moment.at);
        match sample.full_screen {
            // A full-screen program uses bracketed paste in its own way.
            true => self.editor.forget(),
            false => self.editor.on_screen(sample.editor_open),
        }
        let is_echo = self.typed_at.is_some_and(|typed| moment.at.saturating_sub(typed) <= ECHO_WITHIN);
        match is_echo {
            true => self.animation.start_over(moment.at, sample.digest, self.animates()),
            false => self.animation.on_frame(moment.at, sample.digest),
        }
        match (self.screen.believed(), sample.rules) {
            (_, RulesResult::NotRun) => self.screen.forget(),
            (Some(believed), RulesResult::Ran(Some(seen)))
                if (&believed.rule, believed.activity) == (&seen.rule, seen.activity) =>
            {
                self.screen.confirm(seen);
            }
            (_, RulesResult::Ran(seen)) => self.screen.observe(seen, moment.at),
        }
        let is_first = self.state() == AgentState::Starting;
        self.settle(moment);
        if sample.changed && (!is_echo || is_first) {
            self.change(moment, Some("output"), |machine| machine.on_output(moment.at));
        }
    }

    /// The user entered a line, and no probe saw the program work. The text that it writes now gives the new reason to wait, once
    /// that text stays.
    fn check_question(&mut self, now: Time) {
        let claimed = self.claims.get(&EvidenceSource::Kernel).map(|claim| claim.activity);
        let asked = self.kernel.new_reason(&self.at_cursor).map(Activity::Waiting);
        let differs = asked.is_some() && claimed.is_some_and(Activity::is_waiting) && asked != claimed;
        self.asked_anew_at = differs.then(|| self.asked_anew_at.unwrap_or(now));
    }

    fn read_kernel(&mut self, now: Time) {
        if self.question_due_at().is_some_and(|due| due <= now) {
            self.asked_anew_at = None;
            let why = self.kernel.new_reason(&self.at_cursor);
            if let (Some(claim), Some(why)) = (self.claims.get_mut(&EvidenceSource::Kernel), why) {
                claim.activity = Activity::Waiting(why);
            }
        }
    }

    fn question_due_at(&self) -> Option<Time> {
        self.asked_anew_at.map(|at| at.saturating_add(SCREEN_SETTLES))
    }

    /// The size changed. The program draws everything again, which is not work.
    pub fn on_resize(&mut self, digest: u64, moment: Moment) {
        self.tick(moment.at);
        self.animation.start_over(moment.at, digest, self.animates());
    }

    /// The process ended.
    pub fn on_exit(&mut self, code: ExitCode, moment: Moment) {
        self.tick(moment.at);
        let old = self.state();
        self.machine.on_exit(code, moment.at);
        self.record(old, moment, Evidence::of(EvidenceSource::Kernel, "exited".to_owned(), None));
    }

    /// Handles everything that is due by `now`, each at its own time.
    pub fn tick(&mut self, now: Time) {
        while let Some(due) = self.deadline().filter(|due| *due <= now) {
            let moment = Moment { at: due, offset: self.offset };
            self.title.tick(due);
            self.screen.tick(due, |_| SCREEN_SETTLES);
            self.read_kernel(due);
            if self.unseen_until().is_some_and(|until| until <= due) {
                // The program came and went between two probes, and the shell has waited all the time.
                self.unseen_since = None;
                self.title.forget();
                self.forget_program(&[
                    EvidenceSource::Status,
                    EvidenceSource::Hook,
                    EvidenceSource::Progress,
                    EvidenceSource::Notice,
                ]);
            }
            self.settle(moment);
            self.change(moment, None, |machine| machine.tick(due));
            if self.deadline() == Some(due) {
                // Nothing changed, so the same deadline would repeat for ever.
                break;
            }
        }
    }

    /// When `tick` is needed next.
    pub fn deadline(&self) -> Option<Time> {
        if matches!(self.state(), AgentState::Exited { .. }) {
            return None;
        }
        let times = [
            self.title.deadline(),
            self.screen.believe_at(|_| SCREEN_SETTLES),
            self.question_due_at(),
            self.unseen_until(),
            self.animation_ends_at(),
            self.machine.deadline(),
        ];
        times.into_iter().flatten().min()
    }

    fn unseen_until(&self) -> Option<Time> {
        self.unseen_since.map(|since| since.saturating_add(SEEN_WITHIN))
    }

    /// Only while the animation claims work: otherwise its end was noticed already.
    fn animation_ends_at(&self) -> Option<Time> {
        let after = self.timing().needs_input_after;
        self.animation.ends_at(after, self.full_screen).filter(|_| self.animates())
    }

    fn animates(&self) -> bool {
        self.claims.get(&EvidenceSource::Animation).is_some_and(|claim| claim.activity == Activity::Working)
    }

    fn claim(
        &mut self,
        source: EvidenceSource,
        activity: Activity,
        rule: String,
        detail: Option<String>,
        moment: Moment,
    ) {
        match self.claims.get_mut(&source) {
            Some(claim) if claim.activity == activity && claim.rule == rule => claim.detail = detail,
            _ => {
                let claim = Claim { activity, rule, detail, at: moment.at, offset: moment.offset };
                self.claims.insert(source, claim);
            }
        }
    }

    fn withdraw(&mut self, rungs: &[EvidenceSource]) {
        rungs.iter().for_each(|source| drop(self.claims.remove(source)));
    }

    /// Collects the claims of all watchers, and lets the best claim decide.
    fn settle(&mut self, moment: Moment) {
        self.offset = moment.offset;
        self.read_title(moment);
        self.read_screen(moment);
        self.read_editor(moment);
        self.read_animation(moment);
        self.read_blank(moment);
        let decision = self.decision();
        if decision
            .as_ref()
            .is_some_and(|(source, claim)| *source <= EvidenceSource::Screen && claim.activity.is_waiting())
        {
            self.kernel.record_residents();
        }
        let activity = decision.as_ref().map(|(_, claim)| claim.activity);
        let old = self.state();
        self.machine.on_evidence(activity, moment.at);
        match decision {
            Some((source, claim)) => {
                self.record(old, moment, Evidence::of(source, claim.rule, claim.detail));
            }
            None if self.evidence.source != EvidenceSource::Silence => {
                self.evidence =
                    Evidence::of(EvidenceSource::Silence, "nothing else is known".to_owned(), None);
            }
            None => {}
        }
    }

    fn read_title(&mut self, moment: Moment) {
        let claim = self.title.claim();
        let claim =
            claim.map(|(activity, rule, detail)| (activity, rule.to_owned(), detail.map(str::to_owned)));
        match claim {
            Some((activity, rule, detail)) => {
                self.claim(EvidenceSource::Title, activity, rule, detail, moment)
            }
            None => self.withdraw(&[EvidenceSource::Title]),
        }
    }

    fn read_screen(&mut self, moment: Moment) {
        match self.screen.believed().cloned() {
            Some(Matched { rule, activity, detail }) => {
                self.claim(EvidenceSource::Screen, activity, rule, detail, moment)
            }
            None => self.withdraw(&[EvidenceSource::Screen]),
        }
    }

    fn read_editor(&mut self, moment: Moment) {
        match self.editor.claim() {
            Some((activity, rule)) => {
                self.claim(EvidenceSource::Editor, activity, rule.to_owned(), None, moment)
            }
            None => self.withdraw(&[EvidenceSource::Editor]),
        }
    }

    fn read_animation(&mut self, moment: Moment) {
        let after = self.timing().needs_input_after;
        let Some(activity) = self.animation.claim(moment.at, after, self.full_screen) else {
            return self.withdraw(&[EvidenceSource::Animation]);
        };
        let rule = match activity {
            Activity::Working => "the screen keeps changing",
            Activity::Waiting(_) => "the screen has come to rest",
        };
        self.claim(EvidenceSource::Animation, activity, rule.to_owned(), None, moment);
        let since = self.claims.get(&EvidenceSource::Animation).map_or(moment.at, |claim| claim.at);
        match activity {
            // The program continued after its bell, so the user has answered.
            Activity::Working if self.is_older(EvidenceSource::Notice, since) => {
                self.withdraw(&[EvidenceSource::Notice])
            }
            // The witness that reported progress has missed the end.
            Activity::Waiting(_) if self.is_older(EvidenceSource::Progress, since) => {
                self.withdraw(&[EvidenceSource::Progress])
            }
            _ => {}
        }
    }

    /// A full-screen program that has drawn nothing yet is not ready for input.
    fn read_blank(&mut self, moment: Moment) {
        match self.blank && self.full_screen {
            true => self.claim(
                EvidenceSource::Blank,
                Activity::Working,
                "nothing is drawn yet".to_owned(),
                None,
                moment,
            ),
            false => self.withdraw(&[EvidenceSource::Blank]),
        }
    }

    fn is_older(&self, source: EvidenceSource, than: Time) -> bool {
        self.claims.get(&source).is_some_and(|claim| claim.at < than)
    }

    /// The authority's claim, completed with what lower rungs know better.
    fn decision(&self) -> Option<(EvidenceSource, Claim)> {
        let (source, claim) = self.claims.iter().next()?;
        let mut claim = claim.clone();
        let Activity::Waiting(why) = claim.activity else { return Some((*source, claim)) };
        let waiting =
            |claim: &&Claim| matches!(claim.activity, Activity::Waiting(why) if why != Why::Unknown);
        let below = self.claims.iter().filter(|(below, _)| *below > source).map(|(_, claim)| claim);
        // Agents report their turns, but not every menu that is open at the same time.
        let is_dialog = |claim: &&Claim| matches!(claim.activity, Activity::Waiting(why) if why.is_dialog());
        let dialog = self.claims.get(&EvidenceSource::Screen).filter(is_dialog);
        let dialog = dialog.filter(|_| *source <= EvidenceSource::Title && !why.is_dialog());
        let known = below.clone().find(waiting).filter(|_| why == Why::Unknown);
        if let Some(other) = dialog.or(known) {
            claim.activity = other.activity;
            claim.rule = format!("{}, {}", claim.rule, other.rule);
        }
        let same = |other: &&Claim| other.activity == claim.activity && other.detail.is_some();
        if claim.detail.is_none() {
            claim.detail = below.clone().find(same).and_then(|other| other.detail.clone());
        }
        // A line program writes its question right before it reads.
        if claim.detail.is_none()
            && *source == EvidenceSource::Kernel
            && claim.activity != Activity::Waiting(Why::Prompt)
        {
            claim.detail = Some(status::one_line(&self.at_cursor)).filter(|words| !words.is_empty());
        }
        Some((*source, claim))
    }

    /// Lets the state machine act, and records the change.
    fn change(&mut self, moment: Moment, output: Option<&str>, act: impl FnOnce(&mut AgentMachine)) {
        let old = self.state();
        act(&mut self.machine);
        if self.state() == old {
            return;
        }
        let evidence = match (output, self.state()) {
            (Some(rule), _) => Evidence::of(EvidenceSource::Silence, rule.to_owned(), None),
            // The reason to wait is the same as before.
            (None, AgentState::Stale { .. }) => self.evidence.clone(),
            (None, _) => Evidence::of(EvidenceSource::Silence, self.silence_rule(), None),
        };
        self.record(old, moment, evidence);
    }

    fn silence_rule(&self) -> String {
        format!("no visible output for {} s", self.machine.silence().as_secs_f32())
    }

    fn record(&mut self, old: AgentState, moment: Moment, evidence: Evidence) {
        self.evidence = evidence;
        if old != self.state() {
            // Shorter limits may make a change due in the past. Keep the changes in order.
            self.since = Moment { at: moment.at.max(self.since.at), ..moment };
            self.changes.push(Change { old, new: self.standing() });
        }
    }
}

impl Evidence {
    fn of(source: EvidenceSource, rule: String, detail: Option<String>) -> Evidence {
        Evidence { source, rule, confidence: source.confidence(), detail }
    }
}

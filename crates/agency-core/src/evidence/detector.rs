//! The detector: every witness reports to it, the best claim decides, and every change of state has its evidence.
//!
//! Invariant: one authority at a time. A lower rung may only add what the authority does not know: why the agent waits.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::animation::Animation;
use super::claim::{Claim, Confidence, Rung};
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
pub struct Mark {
    /// When.
    pub at: Time,
    /// Bytes of output before it.
    pub offset: u64,
}

/// The screen at a moment when no drawing is half done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// A hash of the visible text.
    pub digest: u64,
    /// Text or colours changed since the last call.
    pub changed: bool,
    /// The result of the screen rules.
    pub rules: Consulted,
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
pub enum Consulted {
    /// The rules did not run.
    #[default]
    No,
    /// The match, if any rule matched.
    Yes(Option<Matched>),
}

/// The evidence for the present state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The rung of the authority.
    pub source: Rung,
    /// The rule that decided.
    pub rule: String,
    /// How far it can be trusted.
    pub confidence: Confidence,
    /// The agent's own words, if there are any.
    pub detail: Option<String>,
}

/// A state with its evidence and its beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The state.
    pub state: AgentState,
    /// When it began.
    pub since: Mark,
    /// Why.
    pub evidence: Evidence,
}

/// One change of state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The state before.
    pub old: AgentState,
    /// The state after.
    pub new: Standing,
}

/// All evidence about one run, and the state that follows from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detector {
    machine: AgentMachine,
    claims: BTreeMap<Rung, Claim>,
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
    since: Mark,
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
            since: Mark { at: now, offset: 0 },
            evidence: Evidence::of(Rung::Silence, "started".to_owned(), None),
            changes: Vec::new(),
            offset: 0,
        }
    }

    /// The state now.
    pub fn state(&self) -> AgentState {
        self.machine.state()
    }

    /// The state now, with its evidence and its beginning.
    pub fn standing(&self) -> Standing {
        Standing { state: self.state(), since: self.since, evidence: self.evidence.clone() }
    }

    /// Whether screen rules could change the state. They cannot while a more trusted witness claims that the agent works.
    pub fn needs_rules(&self) -> bool {
        let authority = self.claims.first_key_value();
        !authority.is_some_and(|(rung, claim)| *rung < Rung::Screen && claim.activity == Activity::Working)
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
    pub fn claims(&self) -> impl Iterator<Item = (Rung, &Claim)> {
        self.claims.iter().map(|(rung, claim)| (*rung, claim))
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
    pub fn on_protocol(&mut self, activity: Activity, rule: &str, detail: Option<String>, mark: Mark) {
        self.tick(mark.at);
        self.claim(Rung::Protocol, activity, rule.to_owned(), detail, mark);
        self.settle(mark);
    }

    /// OSC 7501; `text` is everything after the number.
    pub fn on_status(&mut self, text: &str, mark: Mark) {
        self.tick(mark.at);
        let Some(report) = status::parse(text) else { return };
        match report.activity {
            Some(activity) => self.claim(Rung::Status, activity, report.rule, report.detail, mark),
            None => self.withdraw(&[Rung::Status]),
        }
        self.unseen_since = self.kernel.shell_waits().then_some(mark.at);
        self.settle(mark);
    }

    /// The agent called a hook.
    pub fn on_hook(&mut self, hook: &Hook, mark: Mark) {
        self.tick(mark.at);
        match (hook.meaning(), hook.activity()) {
            (HookMeaning::Waits(_), Some(activity)) => {
                self.withdraw(&[Rung::Progress]);
                self.claim(Rung::Hook, activity, hook.rule(), hook.detail(), mark);
            }
            (HookMeaning::Works, Some(activity)) => {
                self.withdraw(&[Rung::Hook]);
                self.claim(Rung::Progress, activity, hook.rule(), None, mark);
            }
            (HookMeaning::Nothing, _) => self.withdraw(&[Rung::Hook, Rung::Progress]),
            _ => {}
        }
        self.settle(mark);
    }

    /// The program set its title; `matched` is the result of the title rules.
    pub fn on_title(&mut self, matched: Option<Matched>, mark: Mark) {
        self.tick(mark.at);
        self.title.on_title(matched, mark.at);
        self.settle(mark);
    }

    /// OSC 133: a shell shows its prompt, or has started a command.
    pub fn on_shell_prompt(&mut self, shown: bool, mark: Mark) {
        self.tick(mark.at);
        match shown {
            true => {
                let prompt = Activity::Waiting(Why::Prompt);
                self.claim(Rung::Shell, prompt, "the shell shows its prompt".to_owned(), None, mark);
            }
            false => self.withdraw(&[Rung::Shell]),
        }
        self.settle(mark);
    }

    /// OSC 9;4: the program reports progress, or its end.
    pub fn on_progress(&mut self, running: bool, mark: Mark) {
        self.tick(mark.at);
        match running {
            true => {
                self.claim(Rung::Progress, Activity::Working, "a progress is shown".to_owned(), None, mark)
            }
            false => self.withdraw(&[Rung::Progress]),
        }
        self.settle(mark);
    }

    /// The program asked its terminal to notify the user: with a bell, or with these words.
    pub fn on_notice(&mut self, words: Option<&str>, mark: Mark) {
        self.tick(mark.at);
        let rule = if words.is_some() { "a notification" } else { "a bell" };
        let detail = words.map(status::one_line).filter(|words| !words.is_empty());
        self.claim(Rung::Notice, Activity::Waiting(Why::Unknown), rule.to_owned(), detail, mark);
        self.settle(mark);
    }

    /// The user typed; `enter` if this sent a line or a choice.
    pub fn on_input(&mut self, enter: bool, mark: Mark) {
        self.tick(mark.at);
        self.typed_at = (!enter).then_some(mark.at);
        self.kernel.on_input(enter);
        self.asked_anew_at = None;
        if enter {
            self.withdraw(&[Rung::Hook, Rung::Shell, Rung::Notice]);
        } else {
            // One key answers a dialog, but a prompt still waits while the user types.
            let answered =
                |claim: &Claim| matches!(claim.activity, Activity::Waiting(why) if why.is_dialog());
            if self.claims.get(&Rung::Hook).is_some_and(answered) {
                self.withdraw(&[Rung::Hook]);
            }
        }
        self.settle(mark);
    }

    /// The keeper looked at the processes and the terminal.
    pub fn on_probe(&mut self, probe: &Probe, mark: Mark) {
        self.tick(mark.at);
        let view = self.kernel.read_probe(probe, &self.at_cursor);
        self.asked_anew_at = None;
        self.unseen_since = None;
        self.machine.on_takes_keys(!probe.canonical, mark.at);
        match view.foreground {
            ForegroundChange::Same => {}
            ForegroundChange::Started => self.forget_program(&[Rung::Shell]),
            ForegroundChange::Ended => {
                self.title.forget();
                self.screen.forget();
                self.forget_program(&[Rung::Status, Rung::Hook, Rung::Progress, Rung::Notice, Rung::Shell]);
            }
        }
        for (rung, claim) in [(Rung::Kernel, view.line), (Rung::Child, view.child)] {
            match claim {
                Some(claim) => self.claim(rung, claim.activity, claim.rule, None, mark),
                None => self.withdraw(&[rung]),
            }
        }
        self.settle(mark);
    }

    fn forget_program(&mut self, gone: &[Rung]) {
        self.animation.forget();
        self.editor.forget();
        self.withdraw(gone);
    }

    /// The screen was looked at after output.
    pub fn on_look(&mut self, look: Look, mark: Mark) {
        self.tick(mark.at);
        self.full_screen = look.full_screen;
        self.blank = look.blank;
        self.at_cursor = look.at_cursor;
        self.check_question(mark.at);
        match look.full_screen {
            // A full-screen program uses bracketed paste in its own way.
            true => self.editor.forget(),
            false => self.editor.on_look(look.editor_open),
        }
        let is_echo = self.typed_at.is_some_and(|typed| mark.at.saturating_sub(typed) <= ECHO_WITHIN);
        match is_echo {
            true => self.animation.start_over(mark.at, look.digest, self.animates()),
            false => self.animation.on_frame(mark.at, look.digest),
        }
        match (self.screen.believed(), look.rules) {
            (_, Consulted::No) => self.screen.forget(),
            (Some(believed), Consulted::Yes(Some(seen)))
                if (&believed.rule, believed.activity) == (&seen.rule, seen.activity) =>
            {
                self.screen.confirm(seen);
            }
            (_, Consulted::Yes(seen)) => self.screen.observe(seen, mark.at),
        }
        let is_first = self.state() == AgentState::Starting;
        self.settle(mark);
        if look.changed && (!is_echo || is_first) {
            self.change(mark, Some("output"), |machine| machine.on_output(mark.at));
        }
    }

    /// The user entered a line, and no probe saw the program work. The text that it writes now gives the new reason to wait, once
    /// that text stays.
    fn check_question(&mut self, now: Time) {
        let claimed = self.claims.get(&Rung::Kernel).map(|claim| claim.activity);
        let asked = self.kernel.new_reason(&self.at_cursor).map(Activity::Waiting);
        let differs = asked.is_some() && claimed.is_some_and(Activity::is_waiting) && asked != claimed;
        self.asked_anew_at = differs.then(|| self.asked_anew_at.unwrap_or(now));
    }

    fn read_kernel(&mut self, now: Time) {
        if self.question_due_at().is_some_and(|due| due <= now) {
            self.asked_anew_at = None;
            let why = self.kernel.new_reason(&self.at_cursor);
            if let (Some(claim), Some(why)) = (self.claims.get_mut(&Rung::Kernel), why) {
                claim.activity = Activity::Waiting(why);
            }
        }
    }

    fn question_due_at(&self) -> Option<Time> {
        self.asked_anew_at.map(|at| at.saturating_add(SCREEN_SETTLES))
    }

    /// The size changed. The program draws everything again, which is not work.
    pub fn on_resize(&mut self, digest: u64, mark: Mark) {
        self.tick(mark.at);
        self.animation.start_over(mark.at, digest, self.animates());
    }

    /// The process ended.
    pub fn on_exit(&mut self, code: ExitCode, mark: Mark) {
        self.tick(mark.at);
        let old = self.state();
        self.machine.on_exit(code, mark.at);
        self.record(old, mark, Evidence::of(Rung::Kernel, "exited".to_owned(), None));
    }

    /// Handles everything that is due by `now`, each at its own time.
    pub fn tick(&mut self, now: Time) {
        while let Some(due) = self.deadline().filter(|due| *due <= now) {
            let mark = Mark { at: due, offset: self.offset };
            self.title.tick(due);
            self.screen.tick(due, |_| SCREEN_SETTLES);
            self.read_kernel(due);
            if self.unseen_until().is_some_and(|until| until <= due) {
                // The program came and went between two probes, and the shell has waited all the time.
                self.unseen_since = None;
                self.title.forget();
                self.forget_program(&[Rung::Status, Rung::Hook, Rung::Progress, Rung::Notice]);
            }
            self.settle(mark);
            self.change(mark, None, |machine| machine.tick(due));
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
        self.claims.get(&Rung::Animation).is_some_and(|claim| claim.activity == Activity::Working)
    }

    fn claim(&mut self, rung: Rung, activity: Activity, rule: String, detail: Option<String>, mark: Mark) {
        match self.claims.get_mut(&rung) {
            Some(claim) if claim.activity == activity && claim.rule == rule => claim.detail = detail,
            _ => {
                let claim = Claim { activity, rule, detail, at: mark.at, offset: mark.offset };
                self.claims.insert(rung, claim);
            }
        }
    }

    fn withdraw(&mut self, rungs: &[Rung]) {
        rungs.iter().for_each(|rung| drop(self.claims.remove(rung)));
    }

    /// Collects the claims of all watchers, and lets the best claim decide.
    fn settle(&mut self, mark: Mark) {
        self.offset = mark.offset;
        self.read_title(mark);
        self.read_screen(mark);
        self.read_editor(mark);
        self.read_animation(mark);
        self.read_blank(mark);
        let decision = self.decision();
        if decision.as_ref().is_some_and(|(rung, claim)| *rung <= Rung::Screen && claim.activity.is_waiting())
        {
            self.kernel.record_residents();
        }
        let activity = decision.as_ref().map(|(_, claim)| claim.activity);
        let old = self.state();
        self.machine.on_evidence(activity, mark.at);
        match decision {
            Some((rung, claim)) => {
                self.record(old, mark, Evidence::of(rung, claim.rule, claim.detail));
            }
            None if self.evidence.source != Rung::Silence => {
                self.evidence = Evidence::of(Rung::Silence, "nothing else is known".to_owned(), None);
            }
            None => {}
        }
    }

    fn read_title(&mut self, mark: Mark) {
        let claim = self.title.claim();
        let claim =
            claim.map(|(activity, rule, detail)| (activity, rule.to_owned(), detail.map(str::to_owned)));
        match claim {
            Some((activity, rule, detail)) => self.claim(Rung::Title, activity, rule, detail, mark),
            None => self.withdraw(&[Rung::Title]),
        }
    }

    fn read_screen(&mut self, mark: Mark) {
        match self.screen.believed().cloned() {
            Some(Matched { rule, activity, detail }) => {
                self.claim(Rung::Screen, activity, rule, detail, mark)
            }
            None => self.withdraw(&[Rung::Screen]),
        }
    }

    fn read_editor(&mut self, mark: Mark) {
        match self.editor.claim() {
            Some((activity, rule)) => self.claim(Rung::Editor, activity, rule.to_owned(), None, mark),
            None => self.withdraw(&[Rung::Editor]),
        }
    }

    fn read_animation(&mut self, mark: Mark) {
        let after = self.timing().needs_input_after;
        let Some(activity) = self.animation.claim(mark.at, after, self.full_screen) else {
            return self.withdraw(&[Rung::Animation]);
        };
        let rule = match activity {
            Activity::Working => "the screen keeps changing",
            Activity::Waiting(_) => "the screen has come to rest",
        };
        self.claim(Rung::Animation, activity, rule.to_owned(), None, mark);
        let since = self.claims.get(&Rung::Animation).map_or(mark.at, |claim| claim.at);
        match activity {
            // The program continued after its bell, so the user has answered.
            Activity::Working if self.is_older(Rung::Notice, since) => self.withdraw(&[Rung::Notice]),
            // The witness that reported progress has missed the end.
            Activity::Waiting(_) if self.is_older(Rung::Progress, since) => self.withdraw(&[Rung::Progress]),
            _ => {}
        }
    }

    /// A full-screen program that has drawn nothing yet is not ready for input.
    fn read_blank(&mut self, mark: Mark) {
        match self.blank && self.full_screen {
            true => self.claim(Rung::Blank, Activity::Working, "nothing is drawn yet".to_owned(), None, mark),
            false => self.withdraw(&[Rung::Blank]),
        }
    }

    fn is_older(&self, rung: Rung, than: Time) -> bool {
        self.claims.get(&rung).is_some_and(|claim| claim.at < than)
    }

    /// The authority's claim, completed with what lower rungs know better.
    fn decision(&self) -> Option<(Rung, Claim)> {
        let (rung, claim) = self.claims.iter().next()?;
        let mut claim = claim.clone();
        let Activity::Waiting(why) = claim.activity else { return Some((*rung, claim)) };
        let waiting =
            |claim: &&Claim| matches!(claim.activity, Activity::Waiting(why) if why != Why::Unknown);
        let below = self.claims.iter().filter(|(below, _)| *below > rung).map(|(_, claim)| claim);
        // Agents report their turns, but not every menu that is open at the same time.
        let is_dialog = |claim: &&Claim| matches!(claim.activity, Activity::Waiting(why) if why.is_dialog());
        let dialog = self.claims.get(&Rung::Screen).filter(is_dialog);
        let dialog = dialog.filter(|_| *rung <= Rung::Title && !why.is_dialog());
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
        if claim.detail.is_none() && *rung == Rung::Kernel && claim.activity != Activity::Waiting(Why::Prompt)
        {
            claim.detail = Some(status::one_line(&self.at_cursor)).filter(|words| !words.is_empty());
        }
        Some((*rung, claim))
    }

    /// Lets the state machine act, and records the change.
    fn change(&mut self, mark: Mark, output: Option<&str>, act: impl FnOnce(&mut AgentMachine)) {
        let old = self.state();
        act(&mut self.machine);
        if self.state() == old {
            return;
        }
        let evidence = match (output, self.state()) {
            (Some(rule), _) => Evidence::of(Rung::Silence, rule.to_owned(), None),
            // The reason to wait is the same as before.
            (None, AgentState::Stale { .. }) => self.evidence.clone(),
            (None, _) => Evidence::of(Rung::Silence, self.silence_rule(), None),
        };
        self.record(old, mark, evidence);
    }

    fn silence_rule(&self) -> String {
        format!("no visible output for {} s", self.machine.silence().as_secs_f32())
    }

    fn record(&mut self, old: AgentState, mark: Mark, evidence: Evidence) {
        self.evidence = evidence;
        if old != self.state() {
            // Shorter limits may make a change due in the past. Keep the changes in order.
            self.since = Mark { at: mark.at.max(self.since.at), ..mark };
            self.changes.push(Change { old, new: self.standing() });
        }
    }
}

impl Evidence {
    fn of(source: Rung, rule: String, detail: Option<String>) -> Evidence {
        Evidence { source, rule, confidence: source.confidence(), detail }
    }
}

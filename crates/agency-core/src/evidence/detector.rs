//! The detector: every witness reports to it, the best claim decides, and every change of state has its evidence.
//!
//! Invariant: one authority at a time. A lower source may only add what the authority does not know: why the agent waits.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::animation::{Animation, Shows};
use super::claim::{Claim, Confidence, EvidenceSource};
use super::editor::Editor;
use super::field::Field;
use super::hook::{Hook, HookMeaning};
use super::kernel::{CursorView, ForegroundChange, KernelWatch, ModeClaim, Probe};
use super::memory::{ProgramMemory, UserWord};
use super::menu_watch::{MenuSample, MenuWatch};
use super::question::{Answered, Question};
use super::rules::Matched;
use super::settling::Settling;
use super::sign::{SignClaim, SignWatch};
use super::status;
use super::ticker::{Ticker, TickerWatch};
use super::title::TitleWatch;
use super::user_words::UserWords;
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
/// Cursors blink about once a second, and animations of colours are faster than this.
const BLINKS_AFTER: Duration = Duration::from_millis(350);
/// A program may write its text in pieces, so text that looks like a prompt must stay this long.
const TEXT_SETTLES: Duration = Duration::from_millis(300);
/// A program may show its input box while it still starts.
const FIELD_SETTLES: Duration = Duration::from_millis(800);
/// A program that can only be woken by a key or a timer has this long to draw more.
const REST_SETTLES: Duration = Duration::from_secs(1);
/// Some agents wrap each message in the marks of a shell's prompt. Where no shell is in front, the prompt must stay this long.
const PROMPT_SETTLES: Duration = Duration::from_millis(250);
/// A child that lives while the screen stands still before the first Enter was started together with the agent.
const SETTLED_AFTER: Duration = Duration::from_secs(1);
/// A program that left its prompt may be silent this many times longer than an unknown program.
const SILENCES_OF_A_GUESS: u32 = 12;
/// A full-screen program shows that it works. A child that lives this long without any change on the screen does not work for
/// the user.
const LAPSES_AFTER: Duration = Duration::from_secs(60);

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
    /// The row of the cursor.
    pub cursor_row: u16,
    /// The cursor is visible.
    pub cursor_visible: bool,
    /// The nearest row with text above the cursor.
    pub above_cursor: String,
    /// A menu that the screen shows.
    pub menu: Option<MenuSample>,
    /// Where the screen takes text.
    pub field: Option<Field>,
    /// Texts near the end of the screen that may be a sign of work.
    pub sign_texts: BTreeSet<String>,
    /// The rows near the end of the screen that may tick.
    pub tickers: Vec<Ticker>,
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

impl Change {
    /// Whether an agent that waited asks something new.
    pub fn is_new_wait(&self) -> bool {
        let since = |state: AgentState| state.waiting().map(|(since, _)| since);
        since(self.old).is_some_and(|before| since(self.new.state).is_some_and(|now| now != before))
    }
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
    /// The cursor's row and its text when the user pressed Enter. `None` once the program took the line.
    #[serde(default)]
    entered: Option<(u16, String)>,
    /// The text before the cursor when the user pressed Enter last.
    #[serde(default)]
    entered_text: String,
    /// The question before the cursor, without an answer that the user types.
    #[serde(default)]
    asked_text: String,
    /// The user pressed Enter in this run.
    #[serde(default)]
    was_used: bool,
    /// The program took the last line, and what it asks next is a new question.
    #[serde(default)]
    took_line: bool,
    #[serde(default)]
    last_digest: u64,
    /// When only the colours of the screen changed last.
    #[serde(default)]
    coloured_at: Time,
    #[serde(default)]
    cursor_row: u16,
    #[serde(default)]
    cursor_visible: bool,
    #[serde(default)]
    above_cursor: String,
    /// When the program last drew something that was not an echo.
    #[serde(default)]
    drawn_at: Time,
    #[serde(default)]
    menu: MenuWatch,
    #[serde(default)]
    field: Option<Field>,
    #[serde(default)]
    mode: Settling<ModeClaim>,
    /// When a shell's prompt counts.
    #[serde(default)]
    prompt_due: Option<Time>,
    /// A hint how to stop that was on the screen before there was any work.
    #[serde(default)]
    standing_hint: Option<String>,
    /// The general rule for a question that the user answered, and its words. A line program leaves it on the screen.
    #[serde(default)]
    answered_rule: Option<(String, Option<String>)>,
    /// The program drew although it waits for keys alone, so its rest means nothing until the next key.
    #[serde(default)]
    is_restless: bool,
    #[serde(default)]
    ticker: TickerWatch,
    #[serde(default)]
    question: Question,
    #[serde(default)]
    pub(super) sign: SignWatch,
    #[serde(default)]
    pub(super) memory: ProgramMemory,
    /// The user contradicted, and nothing new is known since.
    #[serde(default)]
    pub(super) word: Option<UserWord>,
    #[serde(default)]
    pub(super) user_words: UserWords,
    /// The text before the cursor at the program's prompt, up to the mark of the prompt.
    #[serde(default)]
    prompt_mark: Option<String>,
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
            entered: None,
            entered_text: String::new(),
            asked_text: String::new(),
            was_used: false,
            took_line: false,
            last_digest: 0,
            coloured_at: Time::ZERO,
            cursor_row: 0,
            cursor_visible: false,
            above_cursor: String::new(),
            drawn_at: now,
            menu: MenuWatch::default(),
            field: None,
            mode: Settling::default(),
            prompt_due: None,
            standing_hint: None,
            answered_rule: None,
            is_restless: false,
            ticker: TickerWatch::default(),
            question: Question::default(),
            sign: SignWatch::default(),
            memory: ProgramMemory::default(),
            word: None,
            user_words: UserWords::default(),
            prompt_mark: None,
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
        !self.counted().next().is_some_and(|(source, claim)| {
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

    /// The names of the programs in the foreground of the terminal.
    pub fn foreground_programs(&self) -> &[String] {
        self.kernel.front()
    }

    /// All present claims, the authority first.
    pub fn claims(&self) -> impl Iterator<Item = (EvidenceSource, &Claim)> {
        self.claims.iter().map(|(source, claim)| (*source, claim))
    }

    /// The claims that may decide: those that the user did not correct.
    pub(super) fn counted(&self) -> impl Iterator<Item = (&EvidenceSource, &Claim)> {
        self.claims.iter().filter(|(source, claim)| !self.memory.rejects(**source, claim))
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
            true if self.kernel.is_shell_in_front() => self.claim_shell_prompt(moment),
            true if self.claims.contains_key(&EvidenceSource::Shell) => {}
            true => {
                self.prompt_due.get_or_insert(moment.at.saturating_add(PROMPT_SETTLES));
            }
            false => {
                self.prompt_due = None;
                self.withdraw(&[EvidenceSource::Shell]);
            }
        }
        self.settle(moment);
    }

    fn claim_shell_prompt(&mut self, moment: Moment) {
        self.prompt_due = None;
        let rule = "the shell shows its prompt".to_owned();
        self.claim(EvidenceSource::Shell, Activity::Waiting(Why::Prompt), rule, None, moment);
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
        self.question.on_input(if enter { Answered::Enter } else { Answered::Key });
        self.is_restless = false;
        self.sign.on_input();
        if enter {
            self.on_enter();
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

    fn on_enter(&mut self) {
        if !std::mem::replace(&mut self.was_used, true) {
            // There was no work yet, so a hint how to stop work is a part of the picture.
            self.standing_hint = self.hint().map(|hint| hint.rule.clone());
        }
        // Escape and ctrl-c count as Enter too. They end the work whose row still ticks.
        if self.state().waiting().is_some() {
            self.kernel.record_residents();
            self.ticker.on_answer();
        }
        self.machine.on_enter();
        if self.mode.believed().is_some_and(|mode| mode.is_rest) {
            self.mode.forget();
        }
        self.word = None;
        // A line that the user edited or took from a history is on the screen, and not in what was typed.
        self.user_words.add(&self.at_cursor);
        self.prompt_mark = prompt_mark(&self.at_cursor).map(str::to_owned);
        self.entered = Some((self.cursor_row, self.at_cursor.clone()));
        self.entered_text = self.at_cursor.trim().to_owned();
        self.prompt_due = None;
        self.withdraw(&[EvidenceSource::Hook, EvidenceSource::Shell, EvidenceSource::Notice]);
    }

    /// The keeper looked at the processes and the terminal.
    pub fn on_probe(&mut self, probe: &Probe, moment: Moment) {
        self.tick(moment.at);
        let view = self.kernel.read_probe(probe, &self.at_cursor);
        self.asked_anew_at = None;
        self.unseen_since = None;
        self.machine.on_takes_keys(!probe.canonical, moment.at);
        if view.left_keys && self.typed_at.is_some() && !self.full_screen {
            self.answer_rule();
        }
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
        self.observe_mode(moment.at);
        self.settle(moment);
    }

    /// Reads the terminal's mode and the text at the cursor again.
    fn observe_mode(&mut self, at: Time) {
        // The line that the user entered is no question.
        let is_users = !self.entered_text.is_empty() && self.above_cursor.starts_with(&self.entered_text);
        let above = if is_users { "" } else { self.above_cursor.as_str() };
        // While the user types an answer, the question is the text before it.
        let is_typing = self.kernel.is_typing() && self.at_cursor.starts_with(&self.asked_text);
        let before = match is_typing && !self.asked_text.is_empty() {
            true => self.asked_text.as_str(),
            false => self.at_cursor.as_str(),
        };
        // An input box stays open while many programs work, so it means something only before the first Enter.
        let field = self.field.filter(|field| *field == Field::Question || !self.was_used);
        let view =
            CursorView { before, above, full_screen: self.full_screen, field, is_restless: self.is_restless };
        let claim = self.kernel.mode_claim(view);
        if !self.kernel.is_typing() {
            let asks = claim.as_ref().is_some_and(|claim| claim.activity.is_waiting());
            self.asked_text = if asks { self.at_cursor.trim_end().to_owned() } else { String::new() };
        }
        self.mode.observe(claim, at);
        self.mode.tick(at, mode_settles);
    }

    /// The user has answered the question of a general rule. It does not count again before the screen changes its words.
    fn answer_rule(&mut self) {
        let general = self.screen.believed().filter(|rule| rule.is_general && rule.activity.is_waiting());
        if let Some(Matched { rule, detail, .. }) = general {
            self.answered_rule = Some((rule.clone(), detail.clone()));
            self.screen.forget();
        }
    }

    /// The result of the rules without a question that the user has answered.
    fn without_answered(&mut self, rules: RulesResult) -> RulesResult {
        let RulesResult::Ran(matched) = rules else { return rules };
        let is_answered = |matched: &Matched| {
            let (rule, detail) = (&matched.rule, &matched.detail);
            self.answered_rule.as_ref().is_some_and(|answered| (&answered.0, &answered.1) == (rule, detail))
        };
        // The question is before the cursor again, so the program asks again.
        let before = self.at_cursor.trim();
        let asks_again = !before.is_empty() && self.entered_text.starts_with(before);
        if matched.as_ref().is_some_and(is_answered) && !asks_again {
            return RulesResult::Ran(None);
        }
        self.answered_rule = None;
        RulesResult::Ran(matched)
    }

    /// The program drew something. If it waits for keys alone, it has to rest again.
    fn disturb_rest(&mut self, at: Time) {
        if self.full_screen && self.kernel.waits_alone() {
            self.is_restless |= self.mode.believed().is_some_and(|mode| mode.is_rest);
            self.mode.forget();
            self.observe_mode(at);
        }
    }

    fn forget_program(&mut self, gone: &[EvidenceSource]) {
        self.animation.forget();
        self.editor.forget();
        self.mode.forget();
        self.ticker = TickerWatch::default();
        self.sign = SignWatch::default();
        self.sign.know(&self.memory.signs);
        self.word = None;
        self.prompt_due = None;
        self.withdraw(gone);
    }

    /// The screen was looked at after output.
    pub fn on_screen(&mut self, mut sample: ScreenSample, moment: Moment) {
        self.tick(moment.at);
        sample.changed &= !self.detect_blink(&sample, moment.at);
        self.full_screen = sample.full_screen;
        self.blank = sample.blank;
        let took_line = self.takes_line(&sample);
        self.at_cursor = sample.at_cursor;
        self.above_cursor = sample.above_cursor;
        (self.cursor_row, self.cursor_visible) = (sample.cursor_row, sample.cursor_visible);
        self.took_line |= took_line;
        self.field = sample.field;
        self.check_question(moment.at);
        self.observe_mode(moment.at);
        match sample.full_screen {
            // A full-screen program uses bracketed paste in its own way.
            true => self.editor.forget(),
            false => self.editor.on_screen(sample.editor_open, moment.at),
        }
        let is_echo = self.typed_at.is_some_and(|typed| moment.at.saturating_sub(typed) <= ECHO_WITHIN);
        if sample.changed && !is_echo {
            self.drawn_at = moment.at;
            self.word.take_if(|word| word.says_work());
            self.disturb_rest(moment.at);
        }
        match is_echo {
            // The program took a line, so it works until its screen rests again.
            _ if took_line => self.animation.start_over(moment.at, sample.digest, true),
            true => self.animation.start_over(moment.at, sample.digest, self.animates()),
            false => self.animation.on_frame(moment.at, sample.digest),
        }
        if took_line {
            self.sign.on_turn(moment.at);
            self.menu.on_answer();
            if !sample.full_screen {
                self.answer_rule();
            }
        }
        self.sign.on_screen(sample.sign_texts, moment.at);
        self.ticker.on_screen(&sample.tickers, moment.at);
        let menu = self.menu.on_screen(sample.menu, is_echo);
        let rules = self.without_answered(complete(sample.rules, menu));
        match (self.screen.believed(), rules) {
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

    /// Whether only colours changed, as slowly as a cursor blinks that the program draws itself. Faster changes are an animation.
    fn detect_blink(&mut self, sample: &ScreenSample, at: Time) -> bool {
        let has_same_text = std::mem::replace(&mut self.last_digest, sample.digest) == sample.digest;
        if !(sample.changed && has_same_text) {
            return false;
        }
        let before = std::mem::replace(&mut self.coloured_at, at);
        at.saturating_sub(before) >= BLINKS_AFTER
    }

    /// Whether the screen shows that the program took the line that the user entered: the cursor left the row, or the row has
    /// another text. Programs that draw their own cursor leave the real one anywhere.
    fn takes_line(&mut self, sample: &ScreenSample) -> bool {
        let has_left = |(row, text): &(u16, String)| {
            (*row, text.as_str()) != (sample.cursor_row, sample.at_cursor.as_str())
                || !sample.cursor_visible && sample.changed
        };
        self.entered.take_if(|entered| has_left(entered)).is_some()
    }

    /// The user entered a line, and no probe saw the program work; or the program's first question came later than the probe
    /// that saw it read. The text that it writes now gives the new reason to wait, once that text stays.
    fn check_question(&mut self, now: Time) {
        let claimed = self.claims.get(&EvidenceSource::Kernel).map(|claim| claim.activity);
        let claimed = claimed.filter(|activity| activity.is_waiting());
        let asked = claimed.and_then(|claimed| self.kernel.new_reason(&self.at_cursor, claimed));
        let differs = asked.is_some() && (asked.map(Activity::Waiting) != claimed || self.took_line);
        self.asked_anew_at = differs.then(|| self.asked_anew_at.unwrap_or(now));
    }

    fn read_kernel(&mut self, now: Time) {
        if self.question_due_at().is_some_and(|due| due <= now) {
            self.asked_anew_at = None;
            let Some(claim) = self.claims.get_mut(&EvidenceSource::Kernel) else { return };
            if let Some(why) = self.kernel.new_reason(&self.at_cursor, claim.activity) {
                claim.activity = Activity::Waiting(why);
                // The program has read the line and reads again.
                if std::mem::take(&mut self.took_line) {
                    self.question.on_next_line();
                }
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
            self.mode.tick(due, mode_settles);
            if self.prompt_due.is_some_and(|prompt_due| prompt_due <= due) {
                self.claim_shell_prompt(moment);
            }
            if self.lapses_at().is_some_and(|lapses_at| lapses_at <= due) {
                self.kernel.record_residents();
                self.withdraw(&[EvidenceSource::Child]);
            }
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
            let why = self.reason_of_rest();
            self.change(moment, None, |machine| {
                machine.tick(due);
                machine.on_reason(why);
            });
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
            self.mode.believe_at(mode_settles),
            self.mode_deadline(),
            self.prompt_due,
            self.sign.deadline(self.animation.busy_since()),
            Some(self.sign_lapses_at())
                .filter(|_| self.sign.is_shown() && self.claims.contains_key(&EvidenceSource::Sign)),
            self.lapses_at(),
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
        self.animation.ends_at(after, self.shows()).filter(|_| self.animates())
    }

    /// Signs of work on the screen. A program draws while it works if it controls the whole terminal or keeps a line editor open.
    fn shows(&self) -> Shows {
        let draws = self.full_screen || self.editor.open_since().is_some();
        let gone_at = self.animation.worked_until().and_then(|until| self.ticker.gone_at(until));
        match gone_at.filter(|_| !self.kernel.takes_lines()) {
            _ if !draws => Shows::Nothing,
            Some(gone_at) => Shows::EndOfWork(gone_at),
            None => Shows::Work,
        }
    }

    /// When a child stops to be a sign of work, if the claim rests on the child alone.
    fn lapses_at(&self) -> Option<Time> {
        let is_alone = self.counted().next().is_some_and(|(source, _)| *source == EvidenceSource::Child);
        let after = match self.was_used {
            false => SETTLED_AFTER,
            true if self.full_screen => LAPSES_AFTER,
            true => return None,
        };
        is_alone.then(|| self.drawn_at.saturating_add(after))
    }

    fn sign_lapses_at(&self) -> Time {
        self.drawn_at.saturating_add(self.timing().needs_input_after * 2)
    }

    /// When a program that has asked nothing and draws nothing may wait anyway.
    fn mode_lapses_at(&self) -> Option<Time> {
        let mode = self.mode.believed()?;
        let is_guess = mode.is_guess && mode.activity == Activity::Working;
        is_guess.then(|| self.drawn_at.saturating_add(self.timing().needs_input_after * SILENCES_OF_A_GUESS))
    }

    /// When the guess that a program works will lapse. Nothing lapses if the claim rests on a line editor, or is withdrawn.
    fn mode_deadline(&self) -> Option<Time> {
        let rule = self.mode.believed().map(|mode| &mode.rule);
        let claimed = self.claims.get(&EvidenceSource::Editor).map(|claim| &claim.rule);
        self.mode_lapses_at().filter(|_| claimed == rule)
    }

    /// A rule for all programs that takes a text on the screen for a hint how to stop the work.
    fn hint(&self) -> Option<&Matched> {
        self.screen.believed().filter(|matched| matched.is_general && matched.activity == Activity::Working)
    }

    fn animates(&self) -> bool {
        let is_work = |(source, claim): (&EvidenceSource, &Claim)| {
            *source == EvidenceSource::Animation && claim.activity == Activity::Working
        };
        self.counted().any(is_work)
    }

    pub(super) fn claim(
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

    pub(super) fn withdraw(&mut self, rungs: &[EvidenceSource]) {
        rungs.iter().for_each(|source| drop(self.claims.remove(source)));
    }

    /// Collects the claims of all watchers, and lets the best claim decide.
    pub(super) fn settle(&mut self, moment: Moment) {
        self.offset = moment.offset;
        self.read_title(moment);
        self.read_animation(moment);
        self.read_screen(moment);
        self.read_sign(moment);
        self.read_editor(moment);
        self.read_blank(moment);
        self.read_user(moment);
        let decision = self.decision();
        if decision
            .as_ref()
            .is_some_and(|(source, claim)| *source <= EvidenceSource::Screen && claim.activity.is_waiting())
        {
            self.kernel.record_residents();
        }
        let activity = decision.as_ref().map(|(_, claim)| claim.activity);
        let old = self.state();
        let is_new = self.question.on_claim(decision.as_ref().map(|(_, claim)| claim), old, moment.at);
        match activity {
            Some(Activity::Waiting(why)) if is_new => self.machine.on_new_question(why, moment.at),
            _ => self.machine.on_evidence(activity, moment.at),
        }
        match decision {
            Some((source, claim)) => {
                self.record(old, moment, Evidence::of(source, claim.rule, claim.detail));
            }
            None if self.evidence.source != EvidenceSource::Silence => {
                let evidence =
                    Evidence::of(EvidenceSource::Silence, "nothing else is known".to_owned(), None);
                self.record(old, moment, evidence);
            }
            None => {}
        }
        self.teach_sign(moment.at);
    }

    /// The end of a turn teaches which texts were there only during the work.
    fn teach_sign(&mut self, now: Time) {
        match self.state().waiting() {
            Some((_, why)) if why.is_dialog() => self.sign.on_dialog(),
            Some(_) => self.sign.on_rest(self.drawn_at, now),
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
        if self.standing_hint.is_some() && self.standing_hint.as_ref() != self.hint().map(|hint| &hint.rule) {
            self.standing_hint = None;
        }
        // Before the first Enter, and as long as it stays after that, a hint how to stop work is only a help text. It counts if
        // the program also draws like one that works.
        let is_help =
            self.hint().is_some() && (!self.was_used || self.standing_hint.is_some()) && !self.animates();
        match self.screen.believed().filter(|_| !is_help).cloned() {
            Some(Matched { rule, activity, detail, .. }) => {
                self.claim(EvidenceSource::Screen, activity, rule, detail, moment)
            }
            None => self.withdraw(&[EvidenceSource::Screen]),
        }
    }

    fn read_sign(&mut self, moment: Moment) {
        let (activity, rule) =
            match self.sign.claim(moment.at, self.animation.busy_since(), self.sign_lapses_at()) {
                Some(SignClaim::Shown(sign)) => {
                    (Activity::Working, format!("it shows \"{sign}\", as at work before"))
                }
                // An agent with an animation may show a word of work only until it writes its answer.
                Some(SignClaim::Gone(sign))
                    if !self.sign.is_learned(&sign)
                        && self.claims.contains_key(&EvidenceSource::Animation) =>
                {
                    return self.withdraw(&[EvidenceSource::Sign]);
                }
                Some(SignClaim::Gone(sign)) => {
                    let has_prompt = self.cursor_visible
                        && self.prompt_mark.as_deref().is_some_and(|mark| mark == self.at_cursor.trim_end());
                    let why = if has_prompt { Why::Finished } else { Why::Unknown };
                    (Activity::Waiting(why), format!("\"{sign}\" is gone, which it shows at work"))
                }
                None => return self.withdraw(&[EvidenceSource::Sign]),
            };
        self.claim(EvidenceSource::Sign, activity, rule, None, moment);
    }

    fn read_editor(&mut self, moment: Moment) {
        if self.mode.believed().is_some_and(|mode| mode.activity.is_waiting() && !mode.is_rest) {
            self.kernel.on_prompt();
        }
        let lapsed = self.mode_lapses_at().is_some_and(|due| due <= moment.at);
        let mode = self.mode.believed().filter(|_| !lapsed).map(|mode| (mode.activity, mode.rule.clone()));
        let asks = self.field == Some(Field::Question) && self.at_cursor.trim_start().starts_with("? ");
        let editor = self.editor.claim().map(|(activity, rule)| match activity {
            Activity::Waiting(_) if asks => (Activity::Waiting(Why::Question), rule.to_owned()),
            _ => (activity, rule.to_owned()),
        });
        // Some agents keep their prompt open while they work.
        let opened =
            self.editor.open_since().or(self.claims.get(&EvidenceSource::Editor).map(|claim| claim.at));
        let is_busy = self.animates() && opened.is_some_and(|opened| self.animation.began_after(opened));
        // An editor that hides what is typed does not take pastes, so it looks closed.
        let is_asking = mode.as_ref().is_some_and(|(activity, _)| activity.is_waiting());
        let editor = editor.filter(|(activity, _)| activity.is_waiting() || !is_asking);
        match editor.or(mode).filter(|(activity, _)| !(activity.is_waiting() && is_busy)) {
            Some((activity, rule)) => self.claim(EvidenceSource::Editor, activity, rule, None, moment),
            None => self.withdraw(&[EvidenceSource::Editor]),
        }
    }

    fn read_animation(&mut self, moment: Moment) {
        let after = self.timing().needs_input_after;
        let Some(activity) = self.animation.claim(moment.at, after, self.shows()) else {
            return self.withdraw(&[EvidenceSource::Animation]);
        };
        let rule = match activity {
            Activity::Working => "the screen keeps changing",
            Activity::Waiting(_) => "the screen has come to rest",
        };
        self.claim(EvidenceSource::Animation, activity, rule.to_owned(), None, moment);
        let Some(claim) = self.claims.get(&EvidenceSource::Animation) else { return };
        if self.memory.rejects(EvidenceSource::Animation, claim) {
            return;
        }
        let since = claim.at;
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

    /// The reason to wait if the screen rests: a program with an input box has finished what the user entered.
    fn reason_of_rest(&self) -> Why {
        match self.field {
            Some(Field::InputBox) if self.was_used => Why::Finished,
            Some(Field::InputBox) => Why::Prompt,
            Some(Field::Question) => Why::Question,
            None => Why::Unknown,
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
        let (source, claim) = self.counted().next()?;
        let mut claim = claim.clone();
        let Activity::Waiting(why) = claim.activity else { return Some((*source, claim)) };
        let waiting =
            |claim: &&Claim| matches!(claim.activity, Activity::Waiting(why) if why != Why::Unknown);
        let below = || self.counted().filter(|(below, _)| *below > source).map(|(_, claim)| claim);
        // Agents report their turns, but not every menu that is open at the same time.
        let is_dialog = |claim: &&Claim| matches!(claim.activity, Activity::Waiting(why) if why.is_dialog());
        let mut screen = self.counted().filter(|(source, _)| **source == EvidenceSource::Screen);
        let dialog = screen.next().map(|(_, claim)| claim).filter(is_dialog);
        // The kernel sees that a line program asks. The words on the screen show that it asks for a permission.
        let is_permission = |claim: &&Claim| claim.activity == Activity::Waiting(Why::Permission);
        let dialog = dialog.filter(|dialog| match *source {
            EvidenceSource::Kernel => why == Why::Question && is_permission(dialog),
            _ => *source <= EvidenceSource::Title && !why.is_dialog(),
        });
        let known = below().find(waiting).filter(|_| why == Why::Unknown);
        if let Some(other) = dialog.or(known) {
            claim.activity = other.activity;
            claim.rule = format!("{}, {}", claim.rule, other.rule);
        }
        // A line program may write its question in a row of its own.
        let asks_above = self.at_cursor.trim().is_empty() && self.above_cursor.ends_with(['?', ':']);
        if claim.activity == Activity::Waiting(Why::Unknown)
            && *source == EvidenceSource::Kernel
            && asks_above
            && !self.full_screen
        {
            claim.activity = Activity::Waiting(Why::Question);
        }
        if claim.activity == Activity::Waiting(Why::Unknown) {
            claim.activity = Activity::Waiting(self.reason_of_rest());
        }
        let same = |other: &&Claim| other.activity == claim.activity && other.detail.is_some();
        if claim.detail.is_none() {
            claim.detail = below().find(same).and_then(|other| other.detail.clone());
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

/// The text before the cursor up to the mark of a prompt.
fn prompt_mark(at_cursor: &str) -> Option<&str> {
    let (at, mark) = at_cursor.char_indices().find(|(_, c)| "❯›>➤λ$%#»".contains(*c))?;
    Some(&at_cursor[..at + mark.len_utf8()])
}

/// The rules' result, completed by a menu that no rule knows. A question of the program is more than a hint how to stop the work,
/// which many dialogs leave on the screen.
fn complete(rules: RulesResult, menu: Option<Matched>) -> RulesResult {
    match (rules, menu) {
        (RulesResult::Ran(None), Some(menu)) => RulesResult::Ran(Some(menu)),
        (RulesResult::Ran(Some(rule)), Some(menu))
            if rule.is_general
                && (rule.activity == Activity::Working
                    || rule.activity == Activity::Waiting(Why::Question))
                && menu.activity == Activity::Waiting(Why::Permission) =>
        {
            RulesResult::Ran(Some(menu))
        }
        (rules, _) => rules,
    }
}

fn mode_settles(claim: Option<&ModeClaim>) -> Duration {
    match claim {
        Some(claim) if claim.is_rest => REST_SETTLES,
        Some(claim) if claim.is_field => FIELD_SETTLES,
        Some(claim) if claim.is_guess && claim.activity.is_waiting() => TEXT_SETTLES,
        _ => Duration::ZERO,
    }
}

impl Evidence {
    fn of(source: EvidenceSource, rule: String, detail: Option<String>) -> Evidence {
        Evidence { source, rule, confidence: source.confidence(), detail }
    }
}

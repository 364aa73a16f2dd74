//! The terminal driver: folds one run's journal into a screen, owed answers and a state.
//!
//! Reads journal records only, so live, adopted and replayed runs use the same code.
//!
//! Invariant: no query of the agent is answered twice. Each answer names the output offset of the record with the query.
//! The journal keeps it, and a replay drops answers at or before it.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use agency_core::agent_state::{AgentState, Timing};
use agency_core::evidence::{
    self, Belief, Change, Detector, Hook, Matched, MenuSample, Moment, Probe, ProgramMemory, Rules,
    RulesResult, ScreenSample,
};
use agency_core::exit::ExitCode;
use agency_terminal::{Mouse, Progress, Prompt, Screen, ScreenEvent, Size};

use crate::typed::submits;

/// The line that a new run of a task writes below the screens of the runs before it.
pub const SEPARATOR: &str = "─── Session restarted ───";

/// Everything that a fold of a terminal run needs in addition to the records.
#[derive(Debug, Clone)]
pub struct Settings {
    /// When a quiet agent counts as waiting.
    pub timing: Timing,
    /// Rows of scrollback to keep.
    pub scrollback: usize,
    /// The screen rules.
    pub rules: Arc<Rules>,
    /// The name of the program, for rules that apply to one program only.
    pub program: String,
}

/// A run of an agent on a terminal.
pub struct TerminalRun {
    screen: Screen,
    /// Answers that the agent must get, oldest first.
    owed: VecDeque<Answer>,
    answered_to: u64,
    detector: Detector,
    rules: Arc<Rules>,
    program: String,
    /// Bytes of output so far.
    offset: u64,
    /// When to look at the screen next. `None` if the agent has drawn nothing since the last look.
    look_due: Option<Duration>,
    looked_at: Duration,
    /// The latest known moment. Records arrive later than their time, and time does not go back.
    latest: Duration,
    /// The screen changed before a checkpoint, and no look has seen that yet.
    unlooked_change: bool,
    /// The last result of the screen rules, with the digest of its screen.
    rule_result: Option<(u64, Option<Matched>)>,
    /// The last look did not use the rules.
    skipped_rules: bool,
    /// How often the rules ran since the last checkpoint. A fold from there must run them again.
    consultations: u32,
}

/// The reply to every query that one record of output completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The end of that record in the output.
    pub output_offset: u64,
    /// The bytes to write to the agent.
    pub bytes: Vec<u8>,
}

/// Why a checkpoint cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// A part is missing.
    #[error("the checkpoint ends too soon")]
    Short,
    /// This build does not know the version.
    #[error("the checkpoint has the unknown version {0}")]
    Version(u8),
    /// The screen is damaged.
    #[error("the screen in the checkpoint cannot be read")]
    Screen(#[source] agency_terminal::DumpError),
    /// The evidence is damaged.
    #[error("the evidence in the checkpoint cannot be read")]
    Evidence(#[source] serde_json::Error),
}

const CHECKPOINT_VERSION: u8 = 2;
/// The version without evidence. Journals keep such checkpoints as long as their tasks exist, and may have lost the
/// records before them.
const SCREEN_AND_TIMES: u8 = 1;

/// Programs draw in bursts. Look at the screen after a burst, not for every byte of it.
const LOOK_AFTER: Duration = Duration::from_millis(40);
/// Look at most this often, even if the agent draws all the time.
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl TerminalRun {
    /// A run with an empty screen.
    pub fn began(size: Size, settings: &Settings, now: Duration) -> TerminalRun {
        TerminalRun::on_screen(Screen::new(size, settings.scrollback), settings, now)
    }

    /// A run that draws below the screen and the scrollback of the run before it.
    pub fn continued(mut before: TerminalRun, size: Size, settings: &Settings, now: Duration) -> TerminalRun {
        before.screen.resize(size);
        before.screen.session_separator(SEPARATOR);
        TerminalRun::on_screen(before.screen, settings, now)
    }

    fn on_screen(screen: Screen, settings: &Settings, now: Duration) -> TerminalRun {
        TerminalRun {
            screen,
            owed: VecDeque::new(),
            answered_to: 0,
            detector: Detector::new(settings.timing, now),
            rules: settings.rules.clone(),
            program: settings.program.clone(),
            offset: 0,
            look_due: None,
            looked_at: Duration::ZERO,
            latest: now,
            unlooked_change: false,
            rule_result: None,
            skipped_rules: false,
            consultations: 0,
        }
    }

    /// Folds one record of output that ends at `end_offset`.
    pub fn on_output(&mut self, bytes: &[u8], end_offset: u64, at: Duration) -> Vec<ScreenEvent> {
        let at = self.advance(at);
        let fed = self.screen.feed(bytes);
        self.offset = end_offset;
        if !fed.replies.is_empty() && end_offset > self.answered_to {
            self.owed.push_back(Answer { output_offset: end_offset, bytes: fed.replies });
        }
        fed.events.iter().for_each(|event| self.on_event(event, at));
        self.catch_up(at);
        let due = (at + LOOK_AFTER).max(self.looked_at + LOOK_EVERY);
        self.look_due.get_or_insert(due);
        fed.events
    }

    fn on_event(&mut self, event: &ScreenEvent, at: Duration) {
        let moment = Moment { at, offset: self.offset };
        match event {
            ScreenEvent::Status(text) => self.detector.on_status(text, moment),
            ScreenEvent::Title(title) => {
                self.detector.on_title(self.rules.on_title(title, self.ruled_program()), moment);
            }
            ScreenEvent::Bell => self.detector.on_notice(None, moment),
            ScreenEvent::Notification { title, body } => {
                let words = if body.is_empty() { title } else { body };
                self.detector.on_notice(Some(words), moment);
            }
            ScreenEvent::Progress(progress) => match progress {
                Progress::Running { .. } | Progress::Indeterminate => self.detector.on_progress(true, moment),
                Progress::Removed | Progress::Failed { .. } | Progress::Paused { .. } => {
                    self.detector.on_progress(false, moment);
                }
            },
            ScreenEvent::Prompt(prompt) => match prompt {
                Prompt::Started | Prompt::Input => self.detector.on_shell_prompt(true, moment),
                Prompt::Output | Prompt::Ended { .. } => {
                    self.detector.on_shell_prompt(false, moment);
                }
            },
            ScreenEvent::Directory(_) | ScreenEvent::Clipboard { .. } | ScreenEvent::Panicked => {}
        }
    }

    /// A person or `agency send` typed this. Answers to the program's own queries do not belong here.
    pub fn on_input(&mut self, bytes: &[u8], at: Duration) {
        let at = self.advance(at);
        self.detector.on_typed(bytes);
        if let Some(enter) = submits(bytes) {
            self.detector.on_input(enter, Moment { at, offset: self.offset });
        }
    }

    /// A person typed something that the journal does not keep, such as a password.
    pub fn on_hidden_input(&mut self, at: Duration) {
        let at = self.advance(at);
        self.detector.on_input(true, Moment { at, offset: self.offset });
    }

    /// The keeper sent a probe.
    pub fn on_probe(&mut self, probe: &Probe, at: Duration) {
        let at = self.advance(at);
        // The detector reads the question from the screen, so look at the screen first.
        if self.look_due.is_some() {
            self.sample(at);
        }
        let before = self.ruled_program().to_owned();
        self.detector.on_probe(probe, Moment { at, offset: self.offset });
        if self.ruled_program() != before {
            self.rule_result = None;
        }
        let program = self.remembered_program().to_owned();
        self.detector.on_program(&program, Moment { at, offset: self.offset });
        self.catch_up(at);
    }

    /// The daemon noted what it remembers about the program. With `wrong`, the user contradicted the state.
    pub fn on_memory(&mut self, memory: ProgramMemory, wrong: Option<Belief>, at: Duration) {
        let at = self.advance(at);
        // The program may have changed while the note was on its way.
        if memory.program == self.remembered_program() {
            self.detector.on_memory(memory, wrong, Moment { at, offset: self.offset });
        }
        self.catch_up(at);
    }

    /// The program whose signs and corrections count: the one that was started, or the one that a shell has started.
    pub fn remembered_program(&self) -> &str {
        let mut front = self.detector.foreground_programs().iter().map(String::as_str);
        match evidence::is_shell_name(&self.program) {
            true => front.find(|name| !evidence::is_shell_name(name)).unwrap_or(&self.program),
            false => &self.program,
        }
    }

    /// A hook of the agent reported something.
    pub fn on_hook(&mut self, hook: &Hook, at: Duration) {
        let at = self.advance(at);
        self.detector.on_hook(hook, Moment { at, offset: self.offset });
        self.catch_up(at);
    }

    /// Looks at the screen without waiting for the end of a burst.
    pub fn look_now(&mut self, now: Duration) {
        self.tick(now);
        if self.look_due.is_some() {
            self.sample(now);
        }
    }

    fn sample(&mut self, at: Duration) {
        self.look_due = None;
        if self.screen.is_half_drawn() {
            // The output that completes the screen makes the next look due.
            return;
        }
        self.looked_at = at;
        let rows = self.screen.rows();
        let modes = self.screen.modes();
        let alternate = self.screen.is_alternate();
        let digest = digest(&rows);
        let cursor_row = modes.cursor_visible.then(|| usize::from(self.screen.cursor().0));
        let menu = evidence::menu(&rows, cursor_row).map(MenuSample::from);
        let sample = ScreenSample {
            digest,
            changed: self.screen.take_visible_change() | std::mem::take(&mut self.unlooked_change),
            rules: self.consult(digest, &rows),
            full_screen: alternate
                || !modes.cursor_visible
                || modes.focus_events
                || modes.mouse != Mouse::Off
                || self.screen.keyboard_flags() != 0,
            editor_open: modes.bracketed_paste && !alternate,
            at_cursor: before_cursor(&rows, self.screen.cursor()),
            blank: rows.iter().all(|row| row.is_empty()),
            cursor_row: self.screen.cursor().0,
            cursor_visible: modes.cursor_visible,
            above_cursor: above_cursor(&rows, self.screen.cursor().0),
            menu,
            field: evidence::field(&rows),
            sign_texts: evidence::sign_texts(&rows),
            tickers: evidence::tickers(&rows),
        };
        self.detector.on_screen(sample, Moment { at, offset: self.offset });
    }

    /// The program whose rules apply: the one that was started, or one in the foreground that has rules. A user may start an
    /// agent from a shell or through another program.
    fn ruled_program(&self) -> &str {
        let has_rules = |name: &&str| self.rules.programs().any(|known| known == *name);
        let mut front = self.detector.foreground_programs().iter().map(String::as_str);
        match has_rules(&self.program.as_str()) {
            true => &self.program,
            false => front.find(has_rules).unwrap_or(&self.program),
        }
    }

    fn consult(&mut self, digest: u64, rows: &[String]) -> RulesResult {
        self.skipped_rules = !self.detector.needs_rules();
        if self.skipped_rules {
            return RulesResult::NotRun;
        }
        if let Some((_, matched)) = self.rule_result.as_ref().filter(|(of, _)| *of == digest) {
            return RulesResult::Ran(matched.clone());
        }
        self.consultations += 1;
        let matched = self.rules.on_screen(rows, self.ruled_program());
        self.rule_result = Some((digest, matched.clone()));
        RulesResult::Ran(matched)
    }

    /// Looks again if the last look skipped the rules and the detector needs them now.
    fn catch_up(&mut self, at: Duration) {
        if self.skipped_rules && self.detector.needs_rules() {
            self.sample(at);
        }
    }

    /// How often the screen rules ran since the last checkpoint.
    pub fn consultations(&self) -> u32 {
        self.consultations
    }

    /// The keeper has written an answer to the agent, so this one and those before it are no longer owed.
    pub fn on_answered(&mut self, output_offset: u64) {
        self.answered_to = self.answered_to.max(output_offset);
        while self.owed.front().is_some_and(|answer| answer.output_offset <= self.answered_to) {
            self.owed.pop_front();
        }
    }

    /// The terminal has another size.
    pub fn on_resize(&mut self, size: Size, at: Duration) {
        let at = self.advance(at);
        self.screen.resize(size);
        // The resize caused this change, not the agent.
        self.screen.take_visible_change();
        let digest = digest(&self.screen.rows());
        self.detector.on_resize(digest, Moment { at, offset: self.offset });
    }

    /// The agent ended.
    pub fn on_exit(&mut self, code: ExitCode, at: Duration) {
        let at = self.advance(at);
        if self.look_due.is_some() {
            self.sample(at);
        }
        self.detector.on_exit(code, Moment { at, offset: self.offset });
    }

    /// Does what is due until then; returns the time of the record.
    fn advance(&mut self, at: Duration) -> Duration {
        self.tick(at);
        self.latest
    }

    /// Does what is due until now, each thing at its own time.
    pub fn tick(&mut self, now: Duration) {
        self.latest = self.latest.max(now);
        while let Some(due) = self.deadline().filter(|due| *due <= now) {
            match self.look_due {
                Some(look_due) if look_due <= due => self.sample(look_due),
                _ => self.detector.tick(due),
            }
            if self.deadline() == Some(due) {
                break;
            }
        }
        self.detector.tick(now);
        self.catch_up(now);
    }

    /// When the state can next change without a new record.
    pub fn deadline(&self) -> Option<Duration> {
        [self.look_due, self.detector.deadline()].into_iter().flatten().min()
    }

    /// The state of the agent now.
    pub fn state(&self) -> AgentState {
        self.detector.state()
    }

    /// The evidence behind the state.
    pub fn detector(&self) -> &Detector {
        &self.detector
    }

    /// The changes of state since the last call.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.detector.take_changes()
    }

    /// Uses these screen rules from now on.
    pub fn set_rules(&mut self, rules: Arc<Rules>, now: Duration) {
        if Arc::ptr_eq(&rules, &self.rules) {
            return;
        }
        self.rules = rules;
        self.rule_result = None;
        self.look_due.get_or_insert(now);
    }

    /// Answers that must be written to the agent, oldest first. They stay owed until [`Self::on_answered`].
    pub fn owed_answers(&self) -> impl Iterator<Item = &Answer> {
        self.owed.iter()
    }

    /// The screen.
    pub fn screen(&mut self) -> &mut Screen {
        &mut self.screen
    }

    /// Everything that a fold needs to continue from here.
    pub fn checkpoint(&mut self) -> Vec<u8> {
        self.consultations = 0;
        self.unlooked_change |= self.screen.take_visible_change();
        let mut out = vec![CHECKPOINT_VERSION, self.unlooked_change.into()];
        put(&mut out, self.answered_to);
        put(&mut out, self.offset);
        put(&mut out, self.look_due.map_or(0, nanos));
        put(&mut out, nanos(self.looked_at));
        put(&mut out, self.owed.len() as u64);
        for answer in &self.owed {
            put(&mut out, answer.output_offset);
            put_bytes(&mut out, &answer.bytes);
        }
        // The detector holds numbers and texts only, so this cannot fail.
        put_bytes(&mut out, &serde_json::to_vec(&self.detector).unwrap_or_default());
        out.extend_from_slice(&self.screen.dump());
        out
    }

    /// Continues from a checkpoint.
    pub fn restored(checkpoint: &[u8], settings: &Settings) -> Result<TerminalRun, RestoreError> {
        match checkpoint.split_first().ok_or(RestoreError::Short)? {
            (&CHECKPOINT_VERSION, rest) => TerminalRun::restored_whole(rest, settings),
            (&SCREEN_AND_TIMES, rest) => TerminalRun::restored_without_evidence(rest, settings),
            (version, _) => Err(RestoreError::Version(*version)),
        }
    }

    fn restored_whole(rest: &[u8], settings: &Settings) -> Result<TerminalRun, RestoreError> {
        let (unlooked_change, mut rest) = rest.split_first().ok_or(RestoreError::Short)?;
        let answered_to = take(&mut rest)?;
        let offset = take(&mut rest)?;
        let look_due = Some(take(&mut rest)?).filter(|at| *at > 0).map(Duration::from_nanos);
        let looked_at = Duration::from_nanos(take(&mut rest)?);
        let owed = take_owed(&mut rest)?;
        let detector = serde_json::from_slice(take_bytes(&mut rest)?);
        let mut detector: Detector = detector.map_err(RestoreError::Evidence)?;
        detector.set_timing(settings.timing);
        let screen = Screen::restore(rest).map_err(RestoreError::Screen)?;
        Ok(TerminalRun {
            screen,
            owed,
            answered_to,
            detector,
            rules: settings.rules.clone(),
            program: settings.program.clone(),
            offset,
            look_due,
            looked_at,
            latest: looked_at,
            unlooked_change: *unlooked_change != 0,
            rule_result: None,
            // The checkpoint may be from a moment between a look and its rules.
            skipped_rules: true,
            consultations: 0,
        })
    }

    /// Continues from a checkpoint that has a screen but no evidence. The next tick looks at the screen.
    fn restored_without_evidence(mut rest: &[u8], settings: &Settings) -> Result<TerminalRun, RestoreError> {
        let answered_to = take(&mut rest)?;
        let started = Duration::from_nanos(take(&mut rest)?);
        let last_visible = Duration::from_nanos(take(&mut rest)?).max(started);
        let owed = take_owed(&mut rest)?;
        let screen = Screen::restore(rest).map_err(RestoreError::Screen)?;
        let mut run = TerminalRun::on_screen(screen, settings, started);
        (run.owed, run.answered_to, run.look_due, run.unlooked_change) =
            (owed, answered_to, Some(last_visible), last_visible > started);
        Ok(run)
    }
}

/// The text of the cursor's row before the cursor. A wide character takes two columns and counts as one, so the text may
/// reach a little further than the cursor.
fn before_cursor(rows: &[String], (row, column): (u16, u16)) -> String {
    let row = rows.get(usize::from(row)).map(String::as_str).unwrap_or_default();
    row.chars().take(usize::from(column)).collect()
}

/// The nearest row with text above the cursor.
fn above_cursor(rows: &[String], row: u16) -> String {
    let above = rows.iter().take(usize::from(row)).rev();
    above.map(|row| row.trim()).find(|row| !row.is_empty()).unwrap_or_default().to_owned()
}

fn digest(rows: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    rows.hash(&mut hasher);
    hasher.finish()
}

fn nanos(at: Duration) -> u64 {
    at.as_nanos() as u64
}

fn put(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn take(rest: &mut &[u8]) -> Result<u64, RestoreError> {
    let (head, tail) = rest.split_first_chunk::<8>().ok_or(RestoreError::Short)?;
    *rest = tail;
    Ok(u64::from_le_bytes(*head))
}

fn take_owed(rest: &mut &[u8]) -> Result<VecDeque<Answer>, RestoreError> {
    let mut owed = VecDeque::new();
    for _ in 0..take(rest)? {
        let output_offset = take(rest)?;
        owed.push_back(Answer { output_offset, bytes: take_bytes(rest)?.to_vec() });
    }
    Ok(owed)
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], RestoreError> {
    let len = take(rest)? as usize;
    let (bytes, tail) = rest.split_at_checked(len).ok_or(RestoreError::Short)?;
    *rest = tail;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    fn settings() -> Settings {
        Settings {
            timing: Timing::default(),
            scrollback: 100,
            rules: Arc::new(Rules::shipped()),
            program: "x".to_owned(),
        }
    }

    fn run() -> TerminalRun {
        TerminalRun::began(Size { cols: 40, rows: 5, x_pixels: 0, y_pixels: 0 }, &settings(), seconds(1))
    }

    fn owed(run: &TerminalRun) -> Vec<u64> {
        run.owed_answers().map(|answer| answer.output_offset).collect()
    }

    #[test]
    fn a_query_is_owed_until_the_journal_says_that_it_was_answered() {
        let mut run = run();
        run.on_output(b"\x1b[5n", 4, seconds(2));
        assert_eq!(run.owed_answers().next().unwrap().bytes, b"\x1b[0n");
        run.on_output(b"\x1b[6n", 8, seconds(2));
        assert_eq!(owed(&run), [4, 8]);
        run.on_answered(4);
        assert_eq!(owed(&run), [8]);
        run.on_answered(8);
        assert!(owed(&run).is_empty());
    }

    #[test]
    fn a_checkpoint_keeps_owed_answers_and_answers_no_query_twice() {
        let mut run = run();
        run.on_output(b"\x1b[5n", 4, seconds(2));
        run.on_answered(4);
        run.on_output(b"hello \x1b[5n", 14, seconds(3));
        let mut again = TerminalRun::restored(&run.checkpoint(), &settings()).unwrap();
        assert_eq!(owed(&again), [14]);
        assert_eq!(again.screen().text().trim_end(), "hello");
        again.on_output(b"\x1b[5n", 4, seconds(4));
        assert_eq!(owed(&again), [14], "a replayed record owes no answer");
    }

    #[test]
    fn a_checkpoint_restores_the_state_and_its_beginning() {
        let mut run = run();
        run.on_output(b"hello", 5, seconds(10));
        let mut again = TerminalRun::restored(&run.checkpoint(), &settings()).unwrap();
        again.tick(seconds(16));
        run.tick(seconds(16));
        assert_eq!(again.state(), run.state());
        assert!(matches!(again.state(), AgentState::NeedsInput { .. }), "{:?}", again.state());
    }

    /// A checkpoint as the version without evidence wrote it.
    fn without_evidence(run: &mut TerminalRun, started: Duration, last_visible: Duration) -> Vec<u8> {
        let mut out = vec![SCREEN_AND_TIMES];
        put(&mut out, run.answered_to);
        put(&mut out, nanos(started));
        put(&mut out, nanos(last_visible));
        put(&mut out, run.owed.len() as u64);
        for answer in &run.owed {
            put(&mut out, answer.output_offset);
            put_bytes(&mut out, &answer.bytes);
        }
        out.extend_from_slice(&run.screen.dump());
        out
    }

    #[test]
    fn a_checkpoint_of_the_version_without_evidence_restores_its_screen() {
        let (mut run, settings) = (run(), settings());
        run.on_output(b"hello \x1b[5n", 10, seconds(3));
        let old = without_evidence(&mut run, seconds(1), seconds(3));
        let mut again = TerminalRun::restored(&old, &settings).unwrap();
        assert_eq!(again.screen().text().trim_end(), "hello");
        assert_eq!(owed(&again), [10]);
        again.tick(seconds(4));
        assert_eq!(again.state(), AgentState::Running);
        again.tick(seconds(9));
        assert!(matches!(again.state(), AgentState::NeedsInput { .. }), "{:?}", again.state());
        for cut in 0..old.len().min(60) {
            assert!(TerminalRun::restored(&old[..cut], &settings).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_damaged_checkpoint_is_an_error() {
        let (whole, settings) = (run().checkpoint(), settings());
        for cut in 0..whole.len().min(60) {
            assert!(TerminalRun::restored(&whole[..cut], &settings).is_err(), "cut at {cut}");
        }
        assert!(TerminalRun::restored(&[9, 0, 0], &settings).is_err());
    }

    #[test]
    fn a_new_run_draws_below_the_previous_one() {
        let mut first = run();
        first.on_output(b"one\r\ntwo", 8, seconds(2));
        let size = Size { cols: 40, rows: 5, x_pixels: 0, y_pixels: 0 };
        let mut second = TerminalRun::continued(first, size, &settings(), seconds(9));
        second.on_output(b"three", 5, seconds(10));
        let text = second.screen().text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        assert_eq!(lines, ["one", "two", SEPARATOR, "three"]);
    }
}

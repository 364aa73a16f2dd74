//! The terminal driver: one run's journal folded into a screen, the answers it owes, and its state.
//!
//! Fed by journal records alone, so live, adopted and replayed runs are the same code.
//!
//! Invariant: what was answered is never answered again. Each answer names the output offset of
//! the record that asked; the journal keeps it, and a replay drops what lies at or before it.

use std::collections::VecDeque;
use std::time::Duration;

use agency_core::agent_state::{AgentMachine, AgentState, Timing};
use agency_core::exit::ExitCode;
use agency_terminal::{Screen, ScreenEvent, Size};

/// What a new run of a task writes below the screens of the runs before it.
pub const SEPARATOR: &str = "─── Session restarted ───";

pub struct TerminalRun {
    screen: Screen,
    /// Owed to the agent, oldest first.
    owed: VecDeque<Answer>,
    answered_to: u64,
    machine: AgentMachine,
    started: Duration,
    last_visible: Option<Duration>,
}

/// The reply to every query that one record of output completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Where that record ends in the output.
    pub output_offset: u64,
    pub bytes: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("the checkpoint ends too soon")]
    Short,
    #[error("the checkpoint is of version {0}")]
    Version(u8),
    #[error("the screen in the checkpoint cannot be read")]
    Screen(#[source] agency_terminal::DumpError),
}

const CHECKPOINT_VERSION: u8 = 1;

/// While an agent is seen to run, its screen is looked at this often.
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl TerminalRun {
    pub fn began(size: Size, scrollback: usize, timing: Timing, now: Duration) -> TerminalRun {
        TerminalRun::on_screen(Screen::new(size, scrollback), timing, now)
    }

    /// A new run below what the run before it left on its screen and in its scrollback.
    pub fn continued(mut before: TerminalRun, size: Size, timing: Timing, now: Duration) -> TerminalRun {
        before.screen.resize(size);
        before.screen.session_separator(SEPARATOR);
        TerminalRun::on_screen(before.screen, timing, now)
    }

    fn on_screen(screen: Screen, timing: Timing, now: Duration) -> TerminalRun {
        TerminalRun {
            screen,
            owed: VecDeque::new(),
            answered_to: 0,
            machine: AgentMachine::new(timing, now),
            started: now,
            last_visible: None,
        }
    }

    /// Folds one record of output that ends at `end_offset`.
    pub fn on_output(&mut self, bytes: &[u8], end_offset: u64, at: Duration) -> Vec<ScreenEvent> {
        let fed = self.screen.feed(bytes);
        if !fed.replies.is_empty() && end_offset > self.answered_to {
            self.owed.push_back(Answer { output_offset: end_offset, bytes: fed.replies });
        }
        self.machine.tick(at);
        if self.must_look(at) && self.screen.take_visible_change() {
            self.last_visible = Some(at);
            self.machine.on_output(at);
        }
        fed.events
    }

    /// A flood would pay for a look at every record, and learn nothing new from it.
    fn must_look(&self, at: Duration) -> bool {
        let known = matches!(self.machine.state(), AgentState::Running);
        !known || self.last_visible.is_none_or(|seen| at.saturating_sub(seen) >= LOOK_EVERY)
    }

    /// An answer has gone to the agent: it and those before it are paid.
    pub fn on_answered(&mut self, output_offset: u64) {
        self.answered_to = self.answered_to.max(output_offset);
        while self.owed.front().is_some_and(|answer| answer.output_offset <= self.answered_to) {
            self.owed.pop_front();
        }
    }

    pub fn on_resize(&mut self, size: Size) {
        self.screen.resize(size);
        // Reflow is our doing, not the agent's.
        self.screen.take_visible_change();
    }

    pub fn on_exit(&mut self, code: ExitCode, at: Duration) {
        self.machine.on_exit(code, at);
    }

    pub fn tick(&mut self, now: Duration) {
        self.machine.tick(now);
    }

    /// When the state changes next if nothing happens until then.
    pub fn deadline(&self) -> Option<Duration> {
        self.machine.deadline()
    }

    pub fn state(&self) -> AgentState {
        self.machine.state()
    }

    /// What must still be written to the agent, oldest first. Stays owed until [`Self::on_answered`].
    pub fn owed(&self) -> impl Iterator<Item = &Answer> {
        self.owed.iter()
    }

    pub fn screen(&mut self) -> &mut Screen {
        &mut self.screen
    }

    /// Everything that folding from here on needs.
    pub fn checkpoint(&mut self) -> Vec<u8> {
        let mut out = vec![CHECKPOINT_VERSION];
        put(&mut out, self.answered_to);
        put(&mut out, nanos(self.started));
        put(&mut out, self.last_visible.map_or(0, nanos));
        put(&mut out, self.owed.len() as u64);
        for answer in &self.owed {
            put(&mut out, answer.output_offset);
            put(&mut out, answer.bytes.len() as u64);
            out.extend_from_slice(&answer.bytes);
        }
        out.extend_from_slice(&self.screen.dump());
        out
    }

    pub fn restored(checkpoint: &[u8], timing: Timing) -> Result<TerminalRun, RestoreError> {
        let (version, mut rest) = checkpoint.split_first().ok_or(RestoreError::Short)?;
        if *version != CHECKPOINT_VERSION {
            return Err(RestoreError::Version(*version));
        }
        let answered_to = take(&mut rest)?;
        let started = Duration::from_nanos(take(&mut rest)?);
        let last_visible = Some(take(&mut rest)?).filter(|at| *at > 0).map(Duration::from_nanos);
        let mut owed = VecDeque::new();
        for _ in 0..take(&mut rest)? {
            let output_offset = take(&mut rest)?;
            let len = take(&mut rest)? as usize;
            let (bytes, tail) = rest.split_at_checked(len).ok_or(RestoreError::Short)?;
            owed.push_back(Answer { output_offset, bytes: bytes.to_vec() });
            rest = tail;
        }
        let screen = Screen::restore(rest).map_err(RestoreError::Screen)?;
        let mut machine = AgentMachine::new(timing, started);
        if let Some(at) = last_visible {
            machine.on_output(at);
        }
        Ok(TerminalRun { screen, owed, answered_to, machine, started, last_visible })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    fn run() -> TerminalRun {
        TerminalRun::began(
            Size { cols: 40, rows: 5, x_pixels: 0, y_pixels: 0 },
            100,
            Timing::default(),
            seconds(1),
        )
    }

    fn owed(run: &TerminalRun) -> Vec<u64> {
        run.owed().map(|answer| answer.output_offset).collect()
    }

    #[test]
    fn a_query_is_owed_until_the_journal_says_that_it_was_answered() {
        let mut run = run();
        run.on_output(b"\x1b[5n", 4, seconds(2));
        assert_eq!(run.owed().next().unwrap().bytes, b"\x1b[0n");
        run.on_output(b"\x1b[6n", 8, seconds(2));
        assert_eq!(owed(&run), [4, 8]);
        run.on_answered(4);
        assert_eq!(owed(&run), [8]);
        run.on_answered(8);
        assert!(owed(&run).is_empty());
    }

    #[test]
    fn a_checkpoint_keeps_what_is_owed_and_answers_nothing_twice() {
        let mut run = run();
        run.on_output(b"\x1b[5n", 4, seconds(2));
        run.on_answered(4);
        run.on_output(b"hello \x1b[5n", 14, seconds(3));
        let mut again = TerminalRun::restored(&run.checkpoint(), Timing::default()).unwrap();
        assert_eq!(owed(&again), [14]);
        assert_eq!(again.screen().text().trim_end(), "hello");
        again.on_output(b"\x1b[5n", 4, seconds(4));
        assert_eq!(owed(&again), [14], "an old record replayed owes nothing");
    }

    #[test]
    fn the_state_comes_back_with_the_time_it_began() {
        let mut run = run();
        run.on_output(b"working", 7, seconds(10));
        let mut again = TerminalRun::restored(&run.checkpoint(), Timing::default()).unwrap();
        again.tick(seconds(16));
        run.tick(seconds(16));
        assert_eq!(again.state(), run.state());
        assert!(matches!(again.state(), AgentState::NeedsInput { .. }), "{:?}", again.state());
    }

    #[test]
    fn a_damaged_checkpoint_is_an_error() {
        let whole = run().checkpoint();
        for cut in 0..whole.len().min(60) {
            assert!(TerminalRun::restored(&whole[..cut], Timing::default()).is_err(), "cut at {cut}");
        }
        assert!(TerminalRun::restored(&[9, 0, 0], Timing::default()).is_err());
    }

    #[test]
    fn a_new_run_stands_below_the_one_before_it() {
        let mut first = run();
        first.on_output(b"one\r\ntwo", 8, seconds(2));
        let size = Size { cols: 40, rows: 5, x_pixels: 0, y_pixels: 0 };
        let mut second = TerminalRun::continued(first, size, Timing::default(), seconds(9));
        second.on_output(b"three", 5, seconds(10));
        let text = second.screen().text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        assert_eq!(lines, ["one", "two", SEPARATOR, "three"]);
    }
}

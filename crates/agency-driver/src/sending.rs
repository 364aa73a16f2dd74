//! Texts and keys on their way into an agent's terminal: what to write next, and what came of it.
//!
//! Writes nothing and reads no clock: the caller passes in what it observes on the screen and what the keeper has
//! written, and gets bytes to write and receipts back.
//!
//! Invariants: the machine types a text only where a prompt takes text. It presses Enter only on a prompt that shows the
//! text, and never on a dialog. It never adds a text to one that an earlier send typed and did not enter, unless the caller asks for that.

mod active;
mod dialog;
mod observation;
mod paste;
mod place;
#[cfg(test)]
mod tests;
mod unentered;
mod whereabouts;

use std::collections::VecDeque;
use std::time::Duration;

use agency_terminal::keys::Keystroke;

use active::{Active, Progress};
pub use dialog::{Dialog, DialogAnswer, choice_kind};
pub use observation::{Observation, SeenWork, TerminalModes};
use place::Place;
pub use unentered::{SendNote, TypedText, UnenteredText};

/// A program is quiet when it has drawn nothing for this long. Programs take text and Enter that arrive together for a
/// paste, and the Enter for a line of it, so Enter waits until the screen is quiet.
const QUIET_FOR: Duration = Duration::from_millis(60);
/// A program draws a prompt in pieces, and Agency needs a moment to recognise it. A text waits this long for a prompt.
const PROMPT_WITHIN: Duration = Duration::from_millis(1500);
/// A program that starts shows its prompt within this time, unless many programs start at once.
const STARTED_WITHIN: Duration = Duration::from_secs(4);
/// The shape of a menu may be that of a half-drawn screen for a moment.
const SHAPE_SETTLES: Duration = Duration::from_millis(300);

/// An order to send a text or keys.
#[derive(Clone, Debug)]
pub enum SendOrder {
    /// A text for the agent's prompt.
    Text {
        /// The bytes as the caller gave them.
        text: Vec<u8>,
        /// Press Enter after the text.
        enter: bool,
        /// Send it regardless of what the screen shows.
        anyway: bool,
    },
    /// Keys, one after the other; each waits until the program has reacted to the one before.
    Keys(VecDeque<Keystroke>),
    /// An answer to a dialog.
    Answer(DialogAnswer),
}

impl SendOrder {
    /// The caller asks for it, whatever the screen shows.
    fn is_unconditional(&self) -> bool {
        !matches!(self, SendOrder::Text { anyway: false, .. })
    }
}

/// How far a text got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// There is evidence that the agent took it.
    Delivered,
    /// The keeper wrote it; nothing shows whether the agent took it.
    Typed,
    /// It was not sent, or Enter was not pressed.
    Refused,
}

/// Bytes to write to the agent's terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendWrite {
    /// A note for the journal, to be written before the bytes: they are a text, and its Enter belongs to it.
    pub note: Option<SendNote>,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The result of one order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendReceipt {
    /// How far it got.
    pub outcome: SendOutcome,
    /// Bytes that were written to the terminal.
    pub bytes: u64,
    /// The evidence for the outcome, or the reason for a refusal.
    pub why: Option<String>,
    /// The last rows of the screen, if they are the reason.
    pub screen: Option<String>,
}

/// Sends orders one after the other. `T` identifies the caller that waits for the receipt.
#[derive(Debug)]
pub struct SendMachine<T> {
    waiting: VecDeque<(SendOrder, T)>,
    active: Option<(Active, T)>,
    receipts: Vec<(T, SendReceipt)>,
    /// Since when the first order waits for the screen.
    waits_since: Option<Duration>,
    /// When the keeper last wrote the Enter of a text. The record of it may arrive later.
    entered_at: Option<Duration>,
}

impl<T> Default for SendMachine<T> {
    fn default() -> SendMachine<T> {
        let (waiting, receipts) = (VecDeque::new(), Vec::new());
        SendMachine { waiting, active: None, receipts, waits_since: None, entered_at: None }
    }
}

impl<T> SendMachine<T> {
    /// Adds an order behind those that are waiting.
    pub fn push(&mut self, order: SendOrder, caller: T) {
        self.waiting.push_back((order, caller));
    }

    /// The bytes to write to the agent now, if any. Ask again after every event; receipts may be ready afterwards.
    pub fn next_write(&mut self, observe: &mut dyn FnMut() -> Observation) -> Option<SendWrite> {
        loop {
            let is_begun = self.active.is_some();
            let (progress, caller) = match self.active.take() {
                Some((active, caller)) => (active.advance(observe), caller),
                None => self.begin_next(observe)?,
            };
            match progress {
                Progress::Goes { active, write } => {
                    self.active = Some((*active, caller));
                    if is_begun || write.is_some() {
                        return write;
                    }
                }
                Progress::Ended(receipt) => self.receipts.push((caller, receipt)),
            }
        }
    }

    /// Begins the next order, unless the screen must settle first.
    fn begin_next(&mut self, observe: &mut dyn FnMut() -> Observation) -> Option<(Progress, T)> {
        let (order, _) = self.waiting.front()?;
        let mut seen = observe();
        let entered_at = self.entered_at;
        seen.unentered.take_if(|typed| entered_at.is_some_and(|at| typed.at <= at));
        let waited = seen.now.saturating_sub(*self.waits_since.get_or_insert(seen.now));
        let is_conditional = !order.is_unconditional();
        if seen.is_dialog_new() || is_conditional && (seen.is_draft_new() || may_become_prompt(&seen, waited))
        {
            return None;
        }
        self.waits_since = None;
        let (order, caller) = self.waiting.pop_front()?;
        Some((Active::begin(order, &seen), caller))
    }

    /// The receipts since the last call, each with its caller.
    pub fn take_receipts(&mut self) -> Vec<(T, SendReceipt)> {
        std::mem::take(&mut self.receipts)
    }

    /// Whether no order is waiting or in progress.
    pub fn is_idle(&self) -> bool {
        self.active.is_none() && self.waiting.is_empty()
    }

    /// The keeper has written the last bytes to the agent's terminal.
    pub fn on_written(&mut self, now: Duration) {
        if let Some((active, _)) = &mut self.active {
            active.on_written(now);
            if active.is_entered() {
                self.entered_at = Some(now);
            }
        }
    }

    /// The agent has exited. An agent that exits after Enter has taken the text, if it was at its prompt: many texts tell it
    /// to exit. Call [`SendMachine::cancel_all`] next for the orders that it can no longer take.
    pub fn on_exit(&mut self) {
        if let Some((active, caller)) = self.active.take_if(|(active, _)| active.is_all_written()) {
            let (outcome, why) = match active.was_at_prompt() {
                true => (SendOutcome::Delivered, "the agent has exited"),
                false => {
                    (SendOutcome::Typed, "the agent exited; it is not known whether it read the message")
                }
            };
            self.receipts.push((caller, active.into_receipt(outcome, Some(why.to_owned()), None)));
        }
    }

    /// Gives up the order in progress; its caller gets no receipt from here.
    pub fn cancel_active(&mut self) -> Option<T> {
        self.active.take().map(|(_, caller)| caller)
    }

    /// Gives up all orders; their callers get no receipts from here.
    pub fn cancel_all(&mut self) -> Vec<T> {
        let waiting = self.waiting.drain(..).map(|(_, caller)| caller);
        self.active.take().map(|(_, caller)| caller).into_iter().chain(waiting).collect()
    }

    /// Whether the machine needs to know if the program has read its input.
    pub fn needs_read_probe(&self) -> bool {
        self.active.as_ref().is_some_and(|(active, _)| active.needs_read_probe())
    }

    /// When to ask for the next write if nothing happens until then.
    pub fn deadline(&self, now: Duration) -> Option<Duration> {
        match &self.active {
            Some((active, _)) => active.deadline(now),
            None => (!self.waiting.is_empty()).then_some(now + QUIET_FOR / 3),
        }
    }
}

/// The program starts or draws, so the next look may find a prompt, or a program that reads.
fn may_become_prompt(seen: &Observation, waited: Duration) -> bool {
    let patience = if seen.is_young() { STARTED_WITHIN } else { PROMPT_WITHIN };
    match seen.place() {
        _ if seen.is_dialog_by_shape() => waited < SHAPE_SETTLES,
        Place::Line => seen.is_busy && seen.is_young() && waited < patience,
        Place::Unknown => seen.dialog.is_none() && waited < patience,
        Place::Prompt => false,
    }
}

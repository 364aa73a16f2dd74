//! One order in progress: text, then Enter once the screen shows the text, then evidence that the agent took it.
//!
//! Knows nothing of other orders or of callers.

use std::time::Duration;

use super::dialog::AnswerStep;
use super::observation::Observation;
use super::paste::encode_text;
use super::place::trim_frame;
use super::unentered::SendNote;
use super::whereabouts::{TextAtPrompt, Whereabouts};
use super::{QUIET_FOR, SendOrder, SendOutcome, SendReceipt, SendWrite};

/// A program that draws all the time is never quiet; Enter does not wait longer than this for it.
const SETTLED_WITHIN: Duration = Duration::from_secs(1);
/// Programs may take keys that arrive together for one key, above all an Escape and a letter. A key waits at most this
/// long for a reaction to the one before.
const KEY_WITHIN: Duration = Duration::from_millis(300);
/// A text that does not show by then is not at a prompt. An agent that has just shown its prompt may be busy with its
/// start for some seconds more if many agents start at once.
const SHOWN_WITHIN: Duration = Duration::from_secs(6);
/// Agents report or draw within a second. An agent that has shown nothing by then may still take the text.
const PROVEN_WITHIN: Duration = Duration::from_secs(2);
const LOOK_FOR_PROOF_EVERY: Duration = Duration::from_millis(50);
/// The program took an Enter that came too early for a line of the text, if the text is still there after this time.
const PRESS_AGAIN_AFTER: Duration = Duration::from_millis(900);
/// Fewer letters than this may appear on any screen by chance.
const SHORTEST_TAIL: usize = 4;
const LONGEST_TAIL: usize = 12;
/// Enough of a text to recognise it.
const LONGEST_QUOTE: usize = 60;
/// The kernel keeps no longer line for a program that reads lines.
const LONGEST_LINE: usize = 4095;

#[derive(Debug)]
pub(super) struct Active {
    order: SendOrder,
    /// Bytes written so far.
    bytes: u64,
    /// The agent worked already at the beginning, so its working proves nothing.
    worked_before: bool,
    /// The program did not read its terminal at the beginning, so it may lose what was typed before it reads.
    was_busy: bool,
    /// The dialog that was open at the beginning.
    dialog_before: Option<String>,
    /// The prompt before the text was typed, without the edges of its box.
    prompt: String,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// The keeper has the text or a key.
    Typing,
    /// The keeper has written it; the next key or Enter waits for the screen.
    Settling { since: Duration },
    /// The keeper has Enter.
    Entering(EnterPress),
    /// The keeper has written Enter; the machine looks for evidence that the agent took the text.
    Proving { press: EnterPress, written_at: Duration },
    /// All keys are pressed; the machine watches for a reaction.
    Watching { since: Duration },
}

#[derive(Clone, Debug)]
struct EnterPress {
    /// Everything after this moment may be a reaction to the press, however late the keeper reports it.
    at: Duration,
    number: u8,
    /// The cursor's row before the press.
    row: String,
    /// The text at its prompt before the press.
    text: TextAtPrompt,
}

/// The result of one step of an order.
#[derive(Debug)]
pub(super) enum Progress {
    Goes { active: Box<Active>, write: Option<SendWrite> },
    Ended(SendReceipt),
}

impl Active {
    pub(super) fn begin(order: SendOrder, seen: &Observation) -> Progress {
        if let Some(refusal) = refuse(&order, seen) {
            return Progress::Ended(refusal);
        }
        let mut active = Active {
            order,
            bytes: 0,
            worked_before: seen.works.is_some(),
            was_busy: seen.is_busy,
            dialog_before: seen.open_dialog(),
            prompt: trim_frame(&seen.before_cursor()).to_owned(),
            stage: Stage::Settling { since: seen.now },
        };
        let first = match &mut active.order {
            SendOrder::Text { text, enter: true, .. } if seen.takes_whole_lines() => {
                let line = [encode_text(text, false), seen.encode_enter()].concat();
                let note = SendNote { bytes: line.len() as u64, enters: true, ..SendNote::default() };
                let text = TextAtPrompt::new(active.prompt.clone(), None, seen);
                let press = EnterPress { at: seen.now, number: 1, row: seen.row_at_cursor(), text };
                return active.announce(note, line, Stage::Entering(press));
            }
            SendOrder::Text { text, enter, .. } => {
                let paste = seen.modes.bracketed_paste;
                let bytes = encode_text(text, paste);
                if *enter && !bytes.is_empty() {
                    let note = SendNote { bytes: bytes.len() as u64, paste, ..SendNote::default() };
                    return active.announce(note, bytes, Stage::Typing);
                }
                bytes
            }
            SendOrder::Keys(keys) => keys.pop_front().map(|key| seen.encode_key(key)).unwrap_or_default(),
            SendOrder::Answer(_) => Vec::new(),
        };
        match first.is_empty() {
            true => active.wait(),
            false => active.write(first, Stage::Typing),
        }
    }

    /// Goes on as far as the screen allows. Observes the screen only if that matters now.
    pub(super) fn advance(self, observe: &mut dyn FnMut() -> Observation) -> Progress {
        match self.stage {
            Stage::Typing | Stage::Entering(_) => self.wait(),
            Stage::Settling { since } => self.settle(since, &observe()),
            Stage::Proving { .. } => self.prove(&observe()),
            Stage::Watching { since } => self.watch(since, &observe()),
        }
    }

    pub(super) fn on_written(&mut self, now: Duration) {
        self.stage = match std::mem::replace(&mut self.stage, Stage::Typing) {
            Stage::Typing => Stage::Settling { since: now },
            Stage::Entering(press) => Stage::Proving { press, written_at: now },
            other => other,
        };
    }

    /// The keeper has written an Enter after the text.
    pub(super) fn is_entered(&self) -> bool {
        matches!(self.stage, Stage::Proving { .. })
    }

    /// The keeper has written the last of it.
    pub(super) fn is_all_written(&self) -> bool {
        match (&self.stage, &self.order) {
            (Stage::Proving { .. } | Stage::Watching { .. }, _) => true,
            (Stage::Settling { .. }, SendOrder::Keys(keys)) => keys.is_empty(),
            (Stage::Settling { .. }, SendOrder::Text { enter, .. }) => !enter,
            (Stage::Settling { .. }, SendOrder::Answer(answer)) => answer.is_pressed(),
            (Stage::Typing | Stage::Entering(_), _) => false,
        }
    }

    /// The agent did nothing else when the order began.
    pub(super) fn was_at_prompt(&self) -> bool {
        !matches!(self.order, SendOrder::Text { .. }) || !self.was_busy && !self.worked_before
    }

    pub(super) fn needs_read_probe(&self) -> bool {
        matches!(self.stage, Stage::Proving { .. })
    }

    pub(super) fn deadline(&self, now: Duration) -> Option<Duration> {
        match self.stage {
            Stage::Typing | Stage::Entering(_) => None,
            Stage::Settling { .. } => Some(now + QUIET_FOR / 3),
            Stage::Proving { .. } | Stage::Watching { .. } => Some(now + LOOK_FOR_PROOF_EVERY),
        }
    }

    pub(super) fn into_receipt(
        self,
        outcome: SendOutcome,
        why: Option<String>,
        screen: Option<String>,
    ) -> SendReceipt {
        SendReceipt { outcome, bytes: self.bytes, why, screen }
    }

    fn wait(self) -> Progress {
        Progress::Goes { active: Box::new(self), write: None }
    }

    fn write(mut self, bytes: Vec<u8>, stage: Stage) -> Progress {
        self.bytes += bytes.len() as u64;
        self.stage = stage;
        Progress::Goes { active: Box::new(self), write: Some(SendWrite { note: None, bytes }) }
    }

    /// Writes a text that Enter ends, with a note about it.
    fn announce(mut self, note: SendNote, bytes: Vec<u8>, stage: Stage) -> Progress {
        self.bytes += bytes.len() as u64;
        self.stage = stage;
        Progress::Goes { active: Box::new(self), write: Some(SendWrite { note: Some(note), bytes }) }
    }

    fn end(self, outcome: SendOutcome, why: Option<String>) -> Progress {
        Progress::Ended(self.into_receipt(outcome, why, None))
    }

    fn refuse_enter(self, why: String, seen: &Observation) -> Progress {
        Progress::Ended(self.into_receipt(SendOutcome::Refused, Some(why), Some(seen.last_rows())))
    }

    fn settle(mut self, since: Duration, seen: &Observation) -> Progress {
        let waited = seen.now.saturating_sub(since);
        let quiet = seen.now.saturating_sub(seen.drawn_at.max(since)) >= QUIET_FOR;
        let anyway = match &mut self.order {
            SendOrder::Text { enter: false, .. } => return self.end(SendOutcome::Typed, None),
            SendOrder::Keys(keys) if keys.is_empty() => return self.watch(since, seen),
            SendOrder::Keys(_) if !quiet && waited < KEY_WITHIN => return self.wait(),
            SendOrder::Keys(keys) => {
                let next = keys.pop_front().map(|key| seen.encode_key(key)).unwrap_or_default();
                return self.write(next, Stage::Typing);
            }
            SendOrder::Answer(_) => return self.answer(since, seen),
            SendOrder::Text { anyway, .. } => *anyway,
        };
        if !anyway && let Some(dialog) = seen.open_dialog() {
            return self
                .refuse_enter(format!("{dialog}; the message was typed, Enter was not pressed"), seen);
        }
        if !quiet && waited < SETTLED_WITHIN {
            return self.wait();
        }
        if !self.is_shown(seen) {
            if waited < SHOWN_WITHIN {
                return self.wait();
            }
            let why =
                "the message does not show on the screen, so this is not a prompt; Enter was not pressed";
            return self.refuse_enter(why.to_owned(), seen);
        }
        let text = TextAtPrompt::new(self.prompt.clone(), self.letters(), seen);
        let press = EnterPress { at: seen.now, number: 1, row: seen.row_at_cursor(), text };
        self.write(seen.encode_enter(), Stage::Entering(press))
    }

    fn answer(mut self, since: Duration, seen: &Observation) -> Progress {
        let SendOrder::Answer(answer) = &mut self.order else { return self.wait() };
        match answer.advance(since, seen) {
            AnswerStep::Wait => self.wait(),
            AnswerStep::Press(bytes) => self.write(bytes, Stage::Typing),
            AnswerStep::Taken => self.end(SendOutcome::Delivered, Some("the dialog is gone".to_owned())),
            AnswerStep::Untaken(why) => self.end(SendOutcome::Typed, Some(why.to_owned())),
            AnswerStep::Refuse(why) => self.refuse_enter(why.to_owned(), seen),
        }
    }

    /// A caller that waits for what follows must not see the dialog that was just answered.
    fn watch(mut self, since: Duration, seen: &Observation) -> Progress {
        self.stage = Stage::Watching { since };
        if self.dialog_before.is_some() && self.dialog_before != seen.open_dialog() {
            return self.end(SendOutcome::Delivered, Some("the dialog is gone".to_owned()));
        }
        if let Some(work) = seen.works.as_ref().filter(|work| work.since >= since) {
            return self.end(SendOutcome::Delivered, Some(work.evidence.clone()));
        }
        let patience = if self.dialog_before.is_some() { PRESS_AGAIN_AFTER } else { KEY_WITHIN };
        match seen.now.saturating_sub(since) >= patience {
            true => self.end(SendOutcome::Typed, None),
            false => self.wait(),
        }
    }

    /// A program that reads keys shows the text at its prompt, or says that something was pasted. A program that draws in
    /// lines and asks for pastes may hide them.
    fn is_shown(&self, seen: &Observation) -> bool {
        let SendOrder::Text { anyway, .. } = &self.order else { return true };
        let may_hide = !seen.modes.full_screen && (seen.modes.bracketed_paste || seen.reads_lines);
        match self.letters() {
            Some(letters) if !anyway && !may_hide && !seen.modes.hides_input => seen.shows(&letters),
            _ => true,
        }
    }

    /// The letters that identify the text on the screen. `None` if there are too few of them.
    fn letters(&self) -> Option<String> {
        let SendOrder::Text { text, .. } = &self.order else { return None };
        Some(tail(text)).filter(|tail| tail.chars().count() >= SHORTEST_TAIL)
    }

    fn prove(self, seen: &Observation) -> Progress {
        let Stage::Proving { press, written_at } = &self.stage else { return self.wait() };
        let (press, written_at) = (press.clone(), *written_at);
        if let Some(proof) = self.find_proof(&press, written_at, seen) {
            return self.end(SendOutcome::Delivered, Some(proof));
        }
        let waited = seen.now.saturating_sub(written_at);
        if waited >= PROVEN_WITHIN {
            let why = self.what_is_known(&press, seen).to_owned();
            return self.end(SendOutcome::Typed, Some(why));
        }
        match waited >= PRESS_AGAIN_AFTER && self.was_enter_ignored(&press, seen) {
            true => self.press_again(&press, seen),
            false => self.wait(),
        }
    }

    /// The reason for `typed`: the facts about a text without proof.
    fn what_is_known(&self, press: &EnterPress, seen: &Observation) -> &'static str {
        match press.text.whereabouts(seen) {
            _ if self.was_busy => {
                "the program did not read its terminal when the message was typed: it works, or it is still starting \
                 and may have lost the message; check with agency attach"
            }
            _ if self.worked_before => {
                "the agent was already working; whether it took the message will show when it is done"
            }
            _ if seen.reads_lines => "the program has not read it yet",
            Whereabouts::AboveNewLine => {
                "nothing shows yet that the agent took the message: Enter began a new line below it, and no work \
                 began; in such a program another key sends it, often --keys alt-enter or --keys ctrl-d"
            }
            Whereabouts::AtPrompt => {
                "nothing shows yet that the agent took the message: it is still at the prompt after Enter"
            }
            Whereabouts::Gone => {
                "nothing shows yet that the agent took the message: it left the prompt, but no work began"
            }
        }
    }

    /// The text is still at the prompt after the first Enter, and the agent does nothing else.
    fn was_enter_ignored(&self, press: &EnterPress, seen: &Observation) -> bool {
        let is_row_the_same = !press.row.is_empty() && seen.row_at_cursor() == press.row;
        press.number == 1
            && seen.modes.full_screen
            && is_row_the_same
            && self.is_shown(seen)
            && press.text.whereabouts(seen) != Whereabouts::AboveNewLine
            && seen.open_dialog().is_none()
            && !self.worked_before
    }

    /// The receipt does not count the second Enter.
    fn press_again(mut self, press: &EnterPress, seen: &Observation) -> Progress {
        self.stage = Stage::Entering(EnterPress { at: seen.now, number: 2, ..press.clone() });
        Progress::Goes {
            active: Box::new(self),
            write: Some(SendWrite { note: None, bytes: seen.encode_enter() }),
        }
    }

    /// Proof that the agent took this text: it reports so or works on it, or the text left the prompt and work began.
    fn find_proof(&self, press: &EnterPress, written_at: Duration, seen: &Observation) -> Option<String> {
        let is_gone = press.text.whereabouts(seen) == Whereabouts::Gone;
        if let Some(work) = seen.works.as_ref().filter(|work| !self.worked_before && work.since >= press.at)
            && (work.is_reported || is_gone)
        {
            return Some(work.evidence.clone());
        }
        if seen.reads_lines {
            // The kernel echoes the end of the line itself, so a moved cursor proves nothing here. A program that did not
            // read yet may discard what it finds when it begins.
            let is_read = !self.was_busy && seen.all_read_at.is_some_and(|at| at >= written_at);
            return is_read.then(|| "the program has read it".to_owned());
        }
        let is_redrawn = seen.row_at_cursor() != press.row && seen.drawn_at >= press.at;
        let is_entered = !seen.modes.full_screen && !self.was_busy && is_gone && is_redrawn;
        is_entered.then(|| "the line was entered".to_owned())
    }
}

/// The last letters of the text. Boxes and wrapping put other characters between them.
fn tail(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let letters: Vec<char> = text.chars().filter(|c| c.is_alphanumeric()).collect();
    letters[letters.len().saturating_sub(LONGEST_TAIL)..].iter().collect()
}

/// The text of an earlier send that still waits for its Enter, in words. A full-screen program that does not show it any
/// more has dropped or taken it; elsewhere, the screen does not show everything that was typed.
fn still_unentered(seen: &Observation) -> Option<String> {
    let text = &seen.unentered.as_ref()?.text;
    let tail = tail(text.as_bytes());
    if seen.modes.full_screen && tail.chars().count() >= SHORTEST_TAIL && !seen.shows(&tail) {
        return None;
    }
    let is_long = text.chars().count() > LONGEST_QUOTE;
    let quote: String = text.chars().take(LONGEST_QUOTE).collect();
    Some(match text.is_empty() {
        true => "a text that the terminal does not show".to_owned(),
        false => format!("{quote:?}{}", if is_long { " and more" } else { "" }),
    })
}

/// Why nothing of the order is written, if so.
fn refuse(order: &SendOrder, seen: &Observation) -> Option<SendReceipt> {
    let SendOrder::Text { text, anyway, .. } = order else { return None };
    let refused = |why: String, screen| {
        Some(SendReceipt { outcome: SendOutcome::Refused, bytes: 0, why: Some(why), screen })
    };
    if let Some(why) = seen.why_no_text().filter(|_| !anyway && !seen.is_offered_answer(text)) {
        return refused(format!("{why}; nothing was typed"), Some(seen.last_rows()));
    }
    if let Some(draft) = seen.draft().filter(|_| !anyway) {
        let why =
            format!("the prompt already holds a draft, and this message would be appended to it: {draft}");
        return refused(why, Some(seen.last_rows()));
    }
    if let Some(unentered) = still_unentered(seen).filter(|_| !anyway) {
        let why = format!(
            "an earlier send was interrupted: it typed {unentered} and did not press Enter, and this text would be \
             appended to it; enter it with --keys enter, remove it with --keys ctrl-u, or append to it with --anyway"
        );
        return refused(why, Some(seen.last_rows()));
    }
    let longest = text.split(|byte| *byte == b'\n').map(<[u8]>::len).max().unwrap_or(0);
    if seen.reads_lines && longest > LONGEST_LINE {
        let why = format!(
            "the program reads whole lines, and a terminal passes on at most {LONGEST_LINE} bytes of a line ({longest})"
        );
        return refused(why, None);
    }
    None
}

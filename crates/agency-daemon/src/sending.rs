//! A text on its way to the agent: typed as it can take it, Enter apart, and evidence that it was taken.
//!
//! Touches nothing: it is told what the keeper took and what the screen shows, and says what to write next.
//!
//! Invariant: Enter is pressed on a prompt that shows the text, and never on a dialog.

use std::collections::VecDeque;
use std::time::Duration;

use agency_api::Failure;
use agency_api::method::{Receipt, ReceiptKind};
use agency_terminal::keys::Keystroke;
use tokio::sync::oneshot;

/// Programs take text and Enter that come together for a paste, and the Enter for a line of it.
const QUIET_FOR: Duration = Duration::from_millis(60);
/// One that draws all the time is never quiet.
const SETTLED_WITHIN: Duration = Duration::from_secs(1);
/// Keys that come together may be taken for one, an Escape and a letter above all.
const KEY_WITHIN: Duration = Duration::from_millis(300);
/// Agents let keys pass that come right after a dialog has opened: they may have been meant for something else.
/// Claude Code's listens after 0.3 to 0.5 s.
const DIALOG_LISTENS_AFTER: Duration = Duration::from_millis(700);
/// Agents report a dialog before they draw it: Codex a second before, if something was typed just then. One that no rule
/// knows by its looks is there by now.
const DIALOG_SHOWN_WITHIN: Duration = Duration::from_secs(2);
/// Agents report that they work before they clear their prompt.
const DRAFT_IS_GONE_WITHIN: Duration = Duration::from_millis(1500);
/// A text that is not to be seen by then is not at a prompt. An agent that has just shown its prompt may still be
/// busy with its start for some seconds, where many start at once.
const SHOWN_WITHIN: Duration = Duration::from_secs(6);
/// Agents report or draw within a second; whoever has shown nothing by then may still take it.
const PROVEN_WITHIN: Duration = Duration::from_secs(2);
const LOOK_FOR_PROOF_EVERY: Duration = Duration::from_millis(50);
/// An Enter that came too early was taken for a line: the text still stands there.
const PRESS_AGAIN_AFTER: Duration = Duration::from_millis(900);

/// What is to be sent, and who wants to know what became of it.
#[derive(Debug)]
pub struct Order {
    pub what: What,
    pub receipt: oneshot::Sender<Result<Receipt, Failure>>,
}

impl Order {
    fn minds_drafts(&self) -> bool {
        matches!(self.what, What::Text { anyway: false, .. })
    }
}

#[derive(Debug)]
pub enum What {
    Text {
        text: Vec<u8>,
        enter: bool,
        /// Whatever is on the screen.
        anyway: bool,
    },
    /// One after the other, each when the one before has been seen to.
    Keys(VecDeque<Keystroke>),
}

/// What can be seen of the agent now.
#[derive(Debug, Clone, Default)]
pub struct Sight {
    pub now: Duration,
    /// A dialog that is not the prompt, in words.
    pub dialog: Option<String>,
    /// Since when it waits or works.
    pub state_since: Duration,
    /// A rule about screens sees the dialog.
    pub dialog_shown: bool,
    /// Lines are read whole by a program that waits for one.
    pub reads_lines: bool,
    /// What is typed is not shown.
    pub hides_input: bool,
    pub full_screen: bool,
    pub bracketed_paste: bool,
    pub app_cursor: bool,
    pub kitty_flags: u8,
    /// When something was last drawn.
    pub drawn_at: Duration,
    /// What says that it works, and since when.
    pub works: Option<(Duration, String)>,
    /// Nothing that was typed waits to be read.
    pub all_read_at: Option<Duration>,
    pub rows: Vec<String>,
    pub cursor: (u16, u16),
}

impl Sight {
    /// It is not drawn yet, perhaps, or does not listen.
    fn is_dialog_new(&self) -> bool {
        let age = self.now.saturating_sub(self.state_since);
        let old = if self.dialog_shown { DIALOG_LISTENS_AFTER } else { DIALOG_SHOWN_WITHIN };
        self.dialog.is_some() && age < old
    }

    /// What was entered a moment ago may still be drawn at the prompt.
    fn is_draft_new(&self) -> bool {
        self.now.saturating_sub(self.state_since) < DRAFT_IS_GONE_WITHIN && draft(self).is_some()
    }

    fn press(&self, key: Keystroke) -> Vec<u8> {
        key.bytes(self.app_cursor, self.kitty_flags)
    }

    fn enter(&self) -> Vec<u8> {
        self.press(Keystroke::ENTER)
    }
}

#[derive(Debug, Default)]
pub struct Sending {
    waiting: VecDeque<Order>,
    active: Option<Active>,
}

#[derive(Debug)]
struct Active {
    order: Order,
    typed: u64,
    /// The agent worked already when this began, so that it works proves nothing.
    worked_before: bool,
    /// The dialog that was open when this began.
    dialog_before: Option<String>,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// Bytes are with the keeper.
    Typing,
    /// They are in; Enter waits for the screen.
    Settling {
        since: Duration,
    },
    /// Enter is with the keeper.
    Entering(Press),
    Proving {
        press: Press,
        taken_at: Duration,
    },
    /// All keys are pressed: what comes of it?
    Watching {
        since: Duration,
    },
}

#[derive(Debug, Clone)]
struct Press {
    /// Whatever came after this may be an answer to it, however late we hear that it was taken.
    at: Duration,
    number: u8,
    /// The cursor's row before it.
    row: String,
}

impl Sending {
    pub fn push(&mut self, order: Order) {
        self.waiting.push_back(order);
    }

    /// What to write to the agent now, if anything. To be asked again after everything that happens.
    pub fn next(&mut self, look: &mut dyn FnMut() -> Sight) -> Option<Vec<u8>> {
        loop {
            match self.active.take() {
                Some(active) => {
                    let (active, write) = active.go_on(look);
                    self.active = active;
                    if write.is_some() || self.active.is_some() {
                        return write;
                    }
                }
                None => {
                    let order = self.waiting.pop_front()?;
                    let sight = look();
                    if sight.is_dialog_new() || order.minds_drafts() && sight.is_draft_new() {
                        self.waiting.push_front(order);
                        return None;
                    }
                    let (active, write) = Active::begun(order, &sight);
                    self.active = active;
                    if write.is_some() {
                        return write;
                    }
                }
            }
        }
    }

    pub fn is_idle(&self) -> bool {
        self.active.is_none() && self.waiting.is_empty()
    }

    /// The keeper has handed everything to the agent.
    pub fn taken(&mut self, now: Duration) {
        let Some(active) = &mut self.active else { return };
        active.step = match std::mem::replace(&mut active.step, Step::Typing) {
            Step::Typing => Step::Settling { since: now },
            Step::Entering(press) => Step::Proving { press, taken_at: now },
            other => other,
        };
    }

    pub fn refused(&mut self, failure: Failure) {
        if let Some(active) = self.active.take() {
            tell(active.order.receipt, Err(failure));
        }
    }

    /// The agent has exited. One that did so after Enter has taken the text: many are sent to end it.
    pub fn over(&mut self) {
        if let Some(active) = self.active.take_if(|active| active.is_all_in()) {
            drop(active.done(ReceiptKind::Delivered, Some("the agent has exited".to_owned()), None));
        }
        self.refuse_all("the agent exited before it took the text");
    }

    pub fn refuse_all(&mut self, why: &str) {
        self.refused(Failure::new(why));
        for order in self.waiting.drain(..) {
            tell(order.receipt, Err(Failure::new(why)));
        }
    }

    /// Whether the program has read it would help now.
    pub fn wants_proof(&self) -> bool {
        self.active.as_ref().is_some_and(|active| matches!(active.step, Step::Proving { .. }))
    }

    /// When to ask again if nothing happens.
    pub fn deadline(&self, now: Duration) -> Option<Duration> {
        let Some(active) = &self.active else {
            return (!self.waiting.is_empty()).then_some(now + QUIET_FOR / 3);
        };
        match &active.step {
            Step::Typing | Step::Entering(_) => None,
            Step::Settling { .. } => Some(now + QUIET_FOR / 3),
            Step::Proving { .. } | Step::Watching { .. } => Some(now + LOOK_FOR_PROOF_EVERY),
        }
    }
}

impl Active {
    /// The keeper has handed over the last of it.
    fn is_all_in(&self) -> bool {
        match (&self.step, &self.order.what) {
            (Step::Proving { .. } | Step::Watching { .. }, _) => true,
            (Step::Settling { .. }, What::Keys(keys)) => keys.is_empty(),
            (Step::Settling { .. }, What::Text { enter, .. }) => !enter,
            (Step::Typing | Step::Entering(_), _) => false,
        }
    }

    fn begun(order: Order, sight: &Sight) -> (Option<Active>, Option<Vec<u8>>) {
        if let Some(refusal) = refusal(&order, sight) {
            tell(order.receipt, Ok(refusal));
            return (None, None);
        }
        let worked_before = sight.works.is_some();
        let dialog_before = sight.dialog.clone();
        let step = Step::Settling { since: sight.now };
        let mut active = Active { typed: 0, order, worked_before, dialog_before, step };
        let first = match &mut active.order.what {
            What::Text { text, .. } => as_typed(text, sight.bracketed_paste),
            What::Keys(keys) => keys.pop_front().map(|key| sight.press(key)).unwrap_or_default(),
        };
        match first.is_empty() {
            true => (Some(active), None),
            false => active.write(first, Step::Typing),
        }
    }

    fn write(mut self, bytes: Vec<u8>, step: Step) -> (Option<Active>, Option<Vec<u8>>) {
        self.typed += bytes.len() as u64;
        self.step = step;
        (Some(self), Some(bytes))
    }

    fn go_on(self, look: &mut dyn FnMut() -> Sight) -> (Option<Active>, Option<Vec<u8>>) {
        match self.step {
            Step::Typing | Step::Entering(_) => (Some(self), None),
            Step::Settling { since } => self.settle(since, &look()),
            Step::Proving { .. } => self.prove(&look()),
            Step::Watching { since } => self.watch(since, &look()),
        }
    }

    fn settle(mut self, since: Duration, sight: &Sight) -> (Option<Active>, Option<Vec<u8>>) {
        let waited = sight.now.saturating_sub(since);
        let quiet = sight.now.saturating_sub(sight.drawn_at.max(since)) >= QUIET_FOR;
        let anyway = match &mut self.order.what {
            What::Text { enter: false, .. } => return self.done(ReceiptKind::Typed, None, None),
            What::Keys(keys) if keys.is_empty() => return self.watch(since, sight),
            What::Keys(_) if !quiet && waited < KEY_WITHIN => return (Some(self), None),
            What::Keys(keys) => {
                let next = keys.pop_front().map(|key| sight.press(key)).unwrap_or_default();
                return self.write(next, Step::Typing);
            }
            What::Text { anyway, .. } => *anyway,
        };
        if !anyway && let Some(dialog) = &sight.dialog {
            let why = format!("{dialog}; the text was typed, Enter was not pressed");
            return self.done(ReceiptKind::Refused, Some(why), Some(sight.rows.clone()));
        }
        if !quiet && waited < SETTLED_WITHIN {
            return (Some(self), None);
        }
        if !self.is_shown(sight) {
            if waited < SHOWN_WITHIN {
                return (Some(self), None);
            }
            let why = "the text does not show, so this is not its prompt; Enter was not pressed".to_owned();
            return self.done(ReceiptKind::Refused, Some(why), Some(sight.rows.clone()));
        }
        let press = Press { at: sight.now, number: 1, row: row_at_cursor(sight) };
        self.write(sight.enter(), Step::Entering(press))
    }

    /// Whoever waits for what follows must not be told of the dialog that was just answered.
    fn watch(mut self, since: Duration, sight: &Sight) -> (Option<Active>, Option<Vec<u8>>) {
        self.step = Step::Watching { since };
        if self.dialog_before.is_some() && self.dialog_before != sight.dialog {
            return self.done(ReceiptKind::Delivered, Some("the dialog is gone".to_owned()), None);
        }
        match &sight.works {
            Some((worked_since, rule)) if *worked_since >= since => {
                let rule = rule.clone();
                return self.done(ReceiptKind::Delivered, Some(rule), None);
            }
            _ => {}
        }
        let patience = if self.dialog_before.is_some() { PRESS_AGAIN_AFTER } else { KEY_WITHIN };
        match sight.now.saturating_sub(since) >= patience {
            true => self.done(ReceiptKind::Typed, None, None),
            false => (Some(self), None),
        }
    }

    /// A full-screen program that has the text at its prompt shows it, or says that something was pasted.
    fn is_shown(&self, sight: &Sight) -> bool {
        let What::Text { text, anyway, .. } = &self.order.what else { return true };
        let tail = tail(text);
        if *anyway || !sight.full_screen || sight.hides_input || tail.chars().count() < SHORTEST_TAIL {
            return true;
        }
        let shown: String = sight.rows.concat().chars().filter(|c| c.is_alphanumeric()).collect();
        shown.contains(&tail) || shown.to_lowercase().contains("pasted")
    }

    fn prove(mut self, sight: &Sight) -> (Option<Active>, Option<Vec<u8>>) {
        let Step::Proving { press, taken_at } = &self.step else { return (Some(self), None) };
        let (press, taken_at) = (press.clone(), *taken_at);
        if let Some(proof) = self.proof(&press, taken_at, sight) {
            return self.done(ReceiptKind::Delivered, Some(proof), None);
        }
        let waited = sight.now.saturating_sub(taken_at);
        if waited >= PROVEN_WITHIN {
            let why = match self.worked_before {
                true => "it was at work; whether it has taken the text will show when it is done",
                false => "nothing has shown yet that it was taken",
            };
            return self.done(ReceiptKind::Typed, Some(why.to_owned()), None);
        }
        let stands = sight.full_screen && !press.row.is_empty() && row_at_cursor(sight) == press.row;
        if waited >= PRESS_AGAIN_AFTER
            && press.number == 1
            && stands
            && self.is_shown(sight)
            && sight.dialog.is_none()
            && !self.worked_before
        {
            self.step = Step::Entering(Press { at: sight.now, number: 2, row: press.row });
            return (Some(self), Some(sight.enter()));
        }
        (Some(self), None)
    }

    fn proof(&self, press: &Press, taken_at: Duration, sight: &Sight) -> Option<String> {
        match &sight.works {
            Some((since, rule)) if !self.worked_before && *since >= press.at => return Some(rule.clone()),
            _ => {}
        }
        if sight.reads_lines {
            // The kernel itself shows the end of the line, so that the cursor moves says nothing here.
            let is_read = sight.all_read_at.is_some_and(|at| at >= taken_at);
            return is_read.then(|| "the program has read it".to_owned());
        }
        let moved = !sight.full_screen && row_at_cursor(sight) != press.row && sight.drawn_at >= press.at;
        moved.then(|| "the line was entered".to_owned())
    }

    fn done(
        self,
        kind: ReceiptKind,
        why: Option<String>,
        screen: Option<Vec<String>>,
    ) -> (Option<Active>, Option<Vec<u8>>) {
        let receipt =
            Receipt { receipt: kind, bytes: self.typed, why, screen: screen.map(|rows| shown(&rows)) };
        tell(self.order.receipt, Ok(receipt));
        (None, None)
    }
}

/// Fewer letters than this stand on any screen.
const SHORTEST_TAIL: usize = 4;
const TAIL: usize = 12;

/// The last letters of the text: boxes and wrapping put other signs between them.
fn tail(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let letters: Vec<char> = text.chars().filter(|c| c.is_alphanumeric()).collect();
    letters[letters.len().saturating_sub(TAIL)..].iter().collect()
}

fn row_at_cursor(sight: &Sight) -> String {
    sight.rows.get(usize::from(sight.cursor.0)).cloned().unwrap_or_default()
}

/// The last rows that are not blank: what a person would look at.
fn shown(rows: &[String]) -> String {
    const ROWS: usize = 14;
    let rows: Vec<&str> = rows.iter().map(String::as_str).filter(|row| !row.trim().is_empty()).collect();
    rows[rows.len().saturating_sub(ROWS)..].join("\n")
}

/// What was typed at an agent's prompt and not entered: somebody is writing, or it gave back what was interrupted.
/// Only where a prompt's mark is to be seen; what stands behind the cursor is the agent's own suggestion.
fn draft(sight: &Sight) -> Option<String> {
    let row: String = row_at_cursor(sight).chars().take(usize::from(sight.cursor.1)).collect();
    let row = row.trim_start_matches(|c: char| c.is_whitespace() || "│┃▌".contains(c));
    let typed = row.strip_prefix(['❯', '›', '>'])?.trim();
    let is_some = sight.full_screen && typed.chars().any(char::is_alphanumeric);
    is_some.then(|| typed.to_owned())
}

/// The kernel keeps no longer line for a program that reads lines.
const LONGEST_LINE: usize = 4095;

fn refusal(order: &Order, sight: &Sight) -> Option<Receipt> {
    let What::Text { text, anyway, .. } = &order.what else { return None };
    let refused = |why: String, screen| {
        Some(Receipt { receipt: ReceiptKind::Refused, bytes: 0, why: Some(why), screen })
    };
    if let Some(dialog) = sight.dialog.as_ref().filter(|_| !anyway) {
        return refused(dialog.clone(), Some(shown(&sight.rows)));
    }
    if let Some(draft) = draft(sight).filter(|_| !anyway) {
        let why = format!("something stands at its prompt already, and would become one with this: {draft}");
        return refused(why, Some(shown(&sight.rows)));
    }
    let longest = text.split(|byte| *byte == b'\n').map(<[u8]>::len).max().unwrap_or(0);
    if sight.reads_lines && longest > LONGEST_LINE {
        let why = format!(
            "it reads lines, and a terminal hands over at most {LONGEST_LINE} bytes of one ({longest})"
        );
        return refused(why, None);
    }
    None
}

/// As one paste where the agent understands pastes, else as keys.
fn as_typed(text: &[u8], bracketed_paste: bool) -> Vec<u8> {
    if bracketed_paste && !text.is_empty() {
        let text = without(text, b"\x1b[201~");
        return [b"\x1b[200~".as_slice(), &text, b"\x1b[201~"].concat();
    }
    text.iter().map(|byte| if *byte == b'\n' { b'\r' } else { *byte }).collect()
}

/// What would end the paste early, and make keys of the rest.
fn without(text: &[u8], mark: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        match rest.strip_prefix(mark) {
            // What stands around it must not make another.
            Some(after) => rest = after,
            None => {
                kept.push(*first);
                rest = tail;
            }
        }
    }
    if kept.len() == text.len() { kept } else { without(&kept, mark) }
}

/// Whoever asked may have left by now, which is no trouble of ours.
fn tell<T>(whom: oneshot::Sender<T>, what: T) {
    drop(whom.send(what));
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Play {
        sending: Sending,
        sight: Sight,
        receipt: oneshot::Receiver<Result<Receipt, Failure>>,
    }

    fn play(text: &str, sight: Sight) -> Play {
        let (sender, receipt) = oneshot::channel();
        let what = What::Text { text: text.as_bytes().to_vec(), enter: true, anyway: false };
        let order = Order { what, receipt: sender };
        let mut sending = Sending::default();
        sending.push(order);
        Play { sending, sight, receipt }
    }

    fn play_keys(names: &[&str], sight: Sight) -> Play {
        let keys = names.iter().map(|name| Keystroke::parse(name).expect("a key")).collect();
        let (sender, receipt) = oneshot::channel();
        let mut sending = Sending::default();
        sending.push(Order { what: What::Keys(keys), receipt: sender });
        Play { sending, sight, receipt }
    }

    impl Play {
        /// What is written after so many milliseconds.
        fn at(&mut self, ms: u64) -> String {
            self.sight.now = Duration::from_millis(ms);
            let sight = self.sight.clone();
            let written = self.sending.next(&mut || sight.clone()).unwrap_or_default();
            String::from_utf8(written).expect("text")
        }

        fn taken(&mut self, ms: u64) {
            self.sending.taken(Duration::from_millis(ms));
        }

        fn draw(&mut self, ms: u64, rows: &[&str]) {
            self.sight.drawn_at = Duration::from_millis(ms);
            self.sight.rows = rows.iter().map(|row| (*row).to_owned()).collect();
        }

        fn receipt(&mut self) -> (ReceiptKind, String) {
            let receipt = self.receipt.try_recv().expect("a receipt").expect("no failure");
            (receipt.receipt, receipt.why.unwrap_or_default())
        }
    }

    fn agent() -> Sight {
        Sight { full_screen: true, bracketed_paste: true, rows: vec!["> ".into()], ..Sight::default() }
    }

    #[test]
    fn a_text_is_pasted_entered_and_proven() {
        let mut play = play("fix the login", agent());
        assert_eq!(play.at(0), "\x1b[200~fix the login\x1b[201~");
        play.taken(5);
        play.draw(20, &["│ > fix the lo │", "│ gin │"]);
        assert_eq!(play.at(40), "", "not quiet yet");
        assert_eq!(play.at(90), "\r");
        play.taken(91);
        assert_eq!(play.at(100), "");
        play.sight.works = Some((Duration::from_millis(150), "status: working".into()));
        assert_eq!(play.at(160), "");
        assert_eq!(play.receipt(), (ReceiptKind::Delivered, "status: working".into()));
    }

    #[test]
    fn a_dialog_is_never_answered_by_a_prompt() {
        let mut sight = agent();
        sight.dialog = Some("it asks for a permission".into());
        let mut refused = play("fix it", sight);
        assert_eq!(refused.at(2_000), "");
        assert_eq!(refused.receipt(), (ReceiptKind::Refused, "it asks for a permission".into()));

        let mut late = play("fix the login", agent());
        late.at(0);
        late.taken(5);
        late.draw(20, &["> fix the login"]);
        late.sight.dialog = Some("it asks for a permission".into());
        assert_eq!(late.at(90), "", "it came up in between");
        assert_eq!(late.receipt().0, ReceiptKind::Refused);

        let mut unknown = play("fix the login", agent());
        unknown.at(0);
        unknown.taken(5);
        unknown.draw(20, &["Update now?", "1. Yes"]);
        assert_eq!(unknown.at(1_000), "");
        assert_eq!(unknown.at(6_100), "", "a text that does not show is at no prompt");
        assert_eq!(unknown.receipt().0, ReceiptKind::Refused);
    }

    #[test]
    fn an_enter_that_was_swallowed_is_pressed_once_more() {
        let mut play = play("fix the login", agent());
        play.at(0);
        play.taken(5);
        play.draw(20, &["> fix the login"]);
        assert_eq!(play.at(100), "\r");
        play.taken(101);
        assert_eq!(play.at(500), "");
        assert_eq!(play.at(1_002), "\r");
        play.taken(1_003);
        assert_eq!(play.at(2_000), "");
        assert_eq!(play.at(3_010), "");
        assert_eq!(play.receipt().0, ReceiptKind::Typed, "and then it is said that nothing showed");
    }

    #[test]
    fn no_second_enter_answers_what_came_in_the_texts_place() {
        let mut play = play("fix the login", agent());
        play.at(0);
        play.taken(5);
        play.draw(20, &["> ", "fix the login"]);
        assert_eq!(play.at(100), "\r");
        play.taken(101);
        play.draw(200, &["> ", "Update now? 1. Yes"]);
        assert_eq!(play.at(1_002), "", "the cursor's row is the same, and the text is gone");
    }

    #[test]
    fn a_line_program_has_taken_what_it_has_read() {
        let mut play = play("y", Sight { reads_lines: true, ..Sight::default() });
        assert_eq!(play.at(0), "y");
        play.taken(1);
        assert_eq!(play.at(70), "\r");
        play.taken(71);
        play.sight.all_read_at = Some(Duration::from_millis(95));
        play.at(96);
        assert_eq!(play.receipt(), (ReceiptKind::Delivered, "the program has read it".into()));
        let mut long =
            super::tests::play(&"x".repeat(5_000), Sight { reads_lines: true, ..Sight::default() });
        assert_eq!(long.at(0), "");
        assert_eq!(long.receipt().0, ReceiptKind::Refused);
    }

    #[test]
    fn keys_are_pressed_one_by_one_also_on_a_dialog() {
        let mut sight = agent();
        sight.dialog = Some("it asks for a permission".into());
        let mut play = play_keys(&["down", "enter"], sight);
        assert_eq!(play.at(2_000), "\x1b[B");
        play.taken(2_001);
        assert_eq!(play.at(2_020), "");
        assert_eq!(play.at(2_070), "\r");
        play.taken(2_071);
        assert_eq!(play.at(2_072), "", "the dialog is still there");
        play.sight.dialog = None;
        play.at(2_140);
        assert_eq!(play.receipt(), (ReceiptKind::Delivered, "the dialog is gone".into()));
    }

    #[test]
    fn a_new_dialog_is_given_time_to_show_and_to_listen() {
        let mut sight = agent();
        sight.dialog = Some("it asks for a permission".into());
        sight.state_since = Duration::from_millis(5_000);
        let mut undrawn = play_keys(&["1"], sight.clone());
        assert_eq!(undrawn.at(6_990), "");
        assert_eq!(undrawn.at(7_000), "1");
        sight.dialog_shown = true;
        let mut keys = play_keys(&["1"], sight.clone());
        assert_eq!(keys.at(5_010), "");
        assert_eq!(keys.at(5_690), "");
        assert_eq!(keys.at(5_700), "1");
        keys.taken(5_701);
        // The next question comes at once, and this one was answered all the same.
        keys.sight.dialog = Some("it asks for another permission".into());
        keys.at(5_800);
        assert_eq!(keys.receipt(), (ReceiptKind::Delivered, "the dialog is gone".into()));

        let mut text = play("fix it", sight);
        text.at(5_010);
        assert!(text.sending.deadline(Duration::from_millis(5_010)).is_some());
        text.draw(5_100, &["May I?"]);
        text.at(5_700);
        let receipt = text.receipt.try_recv().expect("a receipt").expect("no failure");
        assert_eq!(receipt.screen.as_deref(), Some("May I?"));
    }

    #[test]
    fn what_stands_at_the_prompt_is_not_added_to() {
        let drawn = |row: &str, column: u16| Sight { rows: vec![row.into()], cursor: (0, column), ..agent() };
        for (row, column, kind) in [
            ("❯\u{a0}half a thought", 16, Some("half a thought")),
            ("│ > half                │", 8, Some("half")),
            ("› Ask Codex to do anything", 2, None),
            ("❯\u{a0}", 2, None),
            ("~/project  main", 15, None),
        ] {
            assert_eq!(draft(&drawn(row, column)).as_deref(), kind, "{row}");
        }
        let mut refused = play("fix it", drawn("❯ half a thought", 16));
        assert_eq!(refused.at(0), "");
        assert_eq!(refused.at(1_500), "");
        assert_eq!(refused.receipt().0, ReceiptKind::Refused);
        let mut entered = play("fix it", drawn("❯ what was entered just now", 27));
        assert_eq!(entered.at(0), "");
        entered.sight = drawn("❯ ", 2);
        assert_eq!(entered.at(100), "\x1b[200~fix it\x1b[201~");
    }

    #[test]
    fn nothing_in_a_text_ends_its_paste() {
        let hostile = b"a\x1b[20\x1b[201~1~b";
        assert_eq!(as_typed(hostile, true), b"\x1b[200~ab\x1b[201~");
        assert_eq!(as_typed("é\n漢".as_bytes(), true), "\x1b[200~é\n漢\x1b[201~".as_bytes());
        assert_eq!(as_typed(b"one\ntwo", false), b"one\rtwo");
    }

    /// A small generator of its own: the same numbers each time.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % limit
        }

        fn sight(&mut self, now: u64, text: &str) -> Sight {
            let past = |back: u64| Duration::from_millis(now.saturating_sub(back));
            let rows: [&[&str]; 3] = [&["> "], &["> ", text], &["1. Yes", "2. No"]];
            let works = (self.below(4) == 0).then(|| (past(self.below(500)), "status: working".to_owned()));
            Sight {
                now: Duration::from_millis(now),
                state_since: past(self.below(2_000)),
                dialog: (self.below(3) == 0).then(|| "it waits for a permission".to_owned()),
                dialog_shown: self.below(2) == 0,
                reads_lines: self.below(3) == 0,
                hides_input: self.below(6) == 0,
                full_screen: self.below(3) != 0,
                bracketed_paste: self.below(2) == 0,
                app_cursor: self.below(2) == 0,
                kitty_flags: [0, 1, 8][self.below(3) as usize],
                drawn_at: past(self.below(200)),
                works,
                all_read_at: (self.below(3) == 0).then(|| past(self.below(100))),
                rows: rows[self.below(3) as usize].iter().map(|row| (*row).to_owned()).collect(),
                cursor: (self.below(2) as u16, 0),
            }
        }
    }

    #[test]
    fn whatever_is_seen_no_dialog_gets_an_enter_and_no_text_more_than_two() {
        let text = "fix the login";
        for seed in 0..3_000 {
            let mut dice = Dice(seed);
            let mut play = play(text, Sight::default());
            let (mut now, mut texts, mut enters) = (0, 0, 0);
            while play.receipt.try_recv().is_err() {
                now += dice.below(120);
                assert!(now < 20_000, "seed {seed}: it never ends");
                let sight = dice.sight(now, text);
                let written = play.sending.next(&mut || sight.clone());
                let is_enter = |bytes: &[u8]| bytes == b"\r" || bytes == b"\x1b[13u";
                match written.as_deref() {
                    Some(bytes) if is_enter(bytes) => {
                        assert!(sight.dialog.is_none(), "seed {seed}: Enter on a dialog");
                        assert_eq!(texts, 1, "seed {seed}: Enter before the text");
                        enters += 1;
                    }
                    Some(bytes) => {
                        assert!(sight.dialog.is_none(), "seed {seed}: typed into a dialog");
                        assert!(String::from_utf8_lossy(bytes).contains(text));
                        texts += 1;
                    }
                    None => {}
                }
                if written.is_some() {
                    play.sending.taken(Duration::from_millis(now));
                }
            }
            assert!(texts <= 1 && enters <= 2, "seed {seed}: {texts} texts, {enters} times Enter");
            assert!(play.sending.is_idle());
        }
    }
}

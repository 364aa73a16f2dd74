//! A dialog on the screen as a question with choices, and the keys that take one of them.
//!
//! Presses arrow keys one by one and checks the mark after each, so that Enter takes the choice that was asked for. Writes
//! nothing itself: [`Active`](super::active::Active) does.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use agency_core::conversation::ChoiceKind;
use agency_core::evidence::{Choice, Menu, MenuForm, Why, is_furniture};
use agency_terminal::keys::Keystroke;

use super::QUIET_FOR;
use super::observation::Observation;

/// This many rows above the choices tell one question from another: the command, the file, the question.
const ROWS_OF_QUESTION: usize = 10;
/// A menu moves its mark within this time.
const MOVES_WITHIN: Duration = Duration::from_secs(1);
/// Programs that read a key and Enter show the key first.
const ENTER_AFTER: Duration = Duration::from_millis(900);
/// A dialog that is still there after this time has not taken the answer.
const GONE_WITHIN: Duration = Duration::from_secs(2);

/// A question that the screen shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialog {
    /// Identifies the question: its words and choices, and the rows above them.
    pub id: String,
    /// Whether it asks for a permission or something else.
    pub why: Why,
    /// The question in one line.
    pub question: String,
    /// The choices. `None` if the screen does not show how they are chosen.
    pub menu: Option<Menu>,
    /// The last rows of the screen.
    pub screen: String,
}

impl Dialog {
    /// The dialog that is open now.
    pub fn on_screen(seen: &Observation) -> Option<Dialog> {
        let menu = seen.menu();
        let by_shape = menu.as_ref().map(Menu::why);
        let why = match seen.why {
            Some(Why::Permission) => Why::Permission,
            // A question without choices takes a text.
            _ => by_shape?,
        };
        let asked = menu.as_ref().map(Menu::summary);
        let question = seen.question.clone().or(asked).or_else(|| seen.dialog.clone()).unwrap_or_default();
        let screen = seen.last_rows();
        Some(Dialog { id: id(&question, menu.as_ref(), seen), why, question, menu, screen })
    }

    /// The choices, or none.
    pub fn choices(&self) -> &[Choice] {
        self.menu.as_ref().map(|menu| menu.choices.as_slice()).unwrap_or_default()
    }
}

/// The effect of a choice, from its words.
pub fn choice_kind(choice: &Choice) -> ChoiceKind {
    let label = choice.label.to_lowercase();
    let is_letter = |c: char| c.is_alphanumeric() || c == '\'';
    let mut words = label.split(|c| !is_letter(c)).filter(|word| !word.is_empty());
    let Some(first) = words.next() else { return ChoiceKind::Other };
    let is_lasting = ["always", "don't ask", "dont ask", "for this session", "every time", "all "]
        .iter()
        .any(|part| label.contains(part));
    match first {
        "y" | "yes" | "allow" | "approve" | "accept" | "proceed" | "run" | "execute" | "grant" | "apply"
        | "confirm" | "ok" | "continue" | "always" => match is_lasting {
            true => ChoiceKind::AllowAlways,
            false => ChoiceKind::AllowOnce,
        },
        "never" => ChoiceKind::RejectAlways,
        "n" | "no" | "deny" | "reject" | "cancel" | "decline" | "abort" | "disallow" | "block" => {
            match is_lasting && !label.contains("don't ask") {
                true => ChoiceKind::RejectAlways,
                false => ChoiceKind::RejectOnce,
            }
        }
        _ => ChoiceKind::Other,
    }
}

/// Letters only: clocks and spinners beside a question do not make it another one.
fn id(question: &str, menu: Option<&Menu>, seen: &Observation) -> String {
    let (first, last) = match menu {
        Some(menu) => (menu.first_row, menu.last_row),
        None => (seen.rows.len(), seen.rows.len()),
    };
    let rows = seen.rows.get(..first.min(seen.rows.len())).unwrap_or_default().iter().rev();
    let above = rows.filter(|row| !is_furniture(row)).take(ROWS_OF_QUESTION);
    let letters = |row: &String| row.chars().filter(|c| c.is_alphabetic()).collect::<String>();
    let mut hasher = DefaultHasher::new();
    question.hash(&mut hasher);
    (last - first).hash(&mut hasher);
    above.map(letters).for_each(|row| row.hash(&mut hasher));
    for choice in menu.map(|menu| menu.choices.as_slice()).unwrap_or_default() {
        choice.label.hash(&mut hasher);
    }
    format!("t-{:08x}", hasher.finish() as u32)
}

/// An answer to a dialog: the choice to take, and how far that is.
#[derive(Clone, Debug)]
pub struct DialogAnswer {
    /// The id of the dialog that the caller was shown.
    pub dialog: String,
    /// The choice, as an index.
    pub choice: usize,
    pressed: Option<Pressed>,
    /// The row with the keys in brackets, when a key was pressed.
    asked_row: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pressed {
    /// An arrow key, when the mark was at this choice.
    Arrow {
        from: usize,
    },
    /// The key of the choice.
    Key,
    Enter,
}

/// The next step of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AnswerStep {
    Wait,
    Press(Vec<u8>),
    /// The dialog is gone.
    Taken,
    /// All keys were pressed, and the dialog is still there.
    Untaken(&'static str),
    /// Nothing is pressed any more.
    Refuse(&'static str),
}

impl DialogAnswer {
    /// An answer before its first key.
    pub fn new(dialog: String, choice: usize) -> DialogAnswer {
        DialogAnswer { dialog, choice, pressed: None, asked_row: None }
    }

    /// Whether the key that answers has been pressed.
    pub(super) fn is_pressed(&self) -> bool {
        matches!(self.pressed, Some(Pressed::Key | Pressed::Enter))
    }

    /// Goes on. `since` is when the last key was written.
    pub(super) fn advance(&mut self, since: Duration, seen: &Observation) -> AnswerStep {
        let waited = seen.now.saturating_sub(since);
        let is_quiet = seen.now.saturating_sub(seen.drawn_at.max(since)) >= QUIET_FOR;
        let open = Dialog::on_screen(seen).filter(|open| open.id == self.dialog).and_then(|open| open.menu);
        let is_entered = self.pressed == Some(Pressed::Enter);
        // The program shows the key behind its question and waits for Enter.
        let is_echoed = self.asked_row.as_ref().is_some_and(|row| seen.row_at_cursor().starts_with(row));
        match (self.pressed, open) {
            (None, None) => AnswerStep::Refuse("the dialog has changed or is gone; no key was pressed"),
            (None, Some(menu)) => self.choose(&menu, seen),
            (Some(_), _) if !is_quiet && waited < MOVES_WITHIN => AnswerStep::Wait,
            (Some(Pressed::Arrow { .. }), None) => {
                AnswerStep::Refuse("the dialog changed while its mark was moved; Enter was not pressed")
            }
            (Some(Pressed::Arrow { from }), Some(menu)) if menu.marked == Some(from) => {
                match (waited >= MOVES_WITHIN, menu.choices.get(self.choice).and_then(|choice| choice.key)) {
                    (false, _) => AnswerStep::Wait,
                    (true, Some(key)) => self.press_key(key, &menu, seen),
                    (true, None) => {
                        AnswerStep::Refuse("the arrow keys do not move its mark; Enter was not pressed")
                    }
                }
            }
            (Some(Pressed::Arrow { .. }), Some(menu)) => self.choose(&menu, seen),
            (Some(Pressed::Key | Pressed::Enter), None) if !is_echoed => AnswerStep::Taken,
            (Some(Pressed::Key), _) if is_echoed && waited >= ENTER_AFTER => self.press_enter(seen),
            (Some(Pressed::Key | Pressed::Enter), _) if waited < GONE_WITHIN => AnswerStep::Wait,
            (Some(Pressed::Key | Pressed::Enter), _) => AnswerStep::Untaken(match is_entered {
                true => "Enter was pressed on the choice, and the dialog is still on the screen",
                false => "the key of the choice was pressed, and the dialog is still on the screen",
            }),
        }
    }

    fn choose(&mut self, menu: &Menu, seen: &Observation) -> AnswerStep {
        let Some(choice) = menu.choices.get(self.choice) else {
            return AnswerStep::Refuse("the dialog does not offer this choice; no key was pressed");
        };
        match (menu.form, menu.marked, choice.key) {
            (MenuForm::Keys, _, Some(key)) => self.press_key(key, menu, seen),
            (MenuForm::Keys, _, None) => self.type_word(&choice.label, menu, seen),
            (MenuForm::List | MenuForm::Buttons, Some(marked), _) if marked == self.choice => {
                self.press_enter(seen)
            }
            (MenuForm::List | MenuForm::Buttons, Some(marked), _) => {
                self.pressed = Some(Pressed::Arrow { from: marked });
                let arrow = match (menu.form == MenuForm::List, marked < self.choice) {
                    (true, true) => "down",
                    (true, false) => "up",
                    (false, true) => "right",
                    (false, false) => "left",
                };
                press(arrow, seen)
            }
            (MenuForm::List | MenuForm::Buttons, None, Some(key)) => self.press_key(key, menu, seen),
            (MenuForm::List | MenuForm::Buttons, None, None) => {
                AnswerStep::Refuse("the screen does not show which choice is marked; no key was pressed")
            }
        }
    }

    fn press_key(&mut self, key: char, menu: &Menu, seen: &Observation) -> AnswerStep {
        self.pressed = Some(Pressed::Key);
        let row = seen.rows.get(menu.first_row).filter(|_| menu.form == MenuForm::Keys);
        self.asked_row = row.map(|row| row.trim_end().to_owned());
        match (press(&key.to_string(), seen), seen.reads_lines && menu.form == MenuForm::Keys) {
            (AnswerStep::Press(bytes), true) => {
                self.pressed = Some(Pressed::Enter);
                AnswerStep::Press([bytes, seen.encode_enter()].concat())
            }
            (step, _) => step,
        }
    }

    /// A program that reads lines gets the whole word: it may take `y` for something else. One that reads keys gets its first
    /// letter.
    fn type_word(&mut self, word: &str, menu: &Menu, seen: &Observation) -> AnswerStep {
        if seen.reads_lines {
            self.pressed = Some(Pressed::Enter);
            self.asked_row = seen.rows.get(menu.first_row).map(|row| row.trim_end().to_owned());
            let word = word.trim_matches(['[', ']']).to_lowercase().into_bytes();
            return AnswerStep::Press([word, seen.encode_enter()].concat());
        }
        match word.chars().next() {
            Some(key) => self.press_key(key.to_ascii_lowercase(), menu, seen),
            None => AnswerStep::Refuse("the screen does not show the key of this choice; no key was pressed"),
        }
    }

    fn press_enter(&mut self, seen: &Observation) -> AnswerStep {
        self.pressed = Some(Pressed::Enter);
        AnswerStep::Press(seen.encode_enter())
    }
}

fn press(key: &str, seen: &Observation) -> AnswerStep {
    match Keystroke::parse(key) {
        Ok(key) => AnswerStep::Press(seen.encode_key(key)),
        Err(_) => AnswerStep::Refuse("Agency cannot type the key of this choice; no key was pressed"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SendMachine, SendOrder, SendOutcome};
    use super::*;
    use crate::sending::TerminalModes;

    fn screen(rows: &[&str]) -> Observation {
        let rows = rows.iter().map(|row| (*row).to_owned()).collect();
        let modes = TerminalModes { full_screen: true, ..TerminalModes::default() };
        Observation { rows, why: Some(Why::Permission), modes, ..Observation::default() }
    }

    const FIRST: &[&str] =
        &["$ rm -rf build", "Run this command?", "❯ 1. Yes", "  2. Yes, and don't ask again", "  3. No"];
    const THIRD: &[&str] =
        &["$ rm -rf build", "Run this command?", "  1. Yes", "  2. Yes, and don't ask again", "❯ 3. No"];

    #[test]
    fn a_dialog_is_the_same_wherever_its_mark_is_and_another_for_another_command() {
        let id = |rows: &[&str]| Dialog::on_screen(&screen(rows)).expect("a dialog").id;
        assert_eq!(id(FIRST), id(THIRD));
        let other =
            ["$ rm -rf target", "Run this command?", "❯ 1. Yes", "  2. Yes, and don't ask again", "  3. No"];
        assert_ne!(id(FIRST), id(&other));
        assert!(Dialog::on_screen(&Observation { why: Some(Why::Prompt), ..screen(FIRST) }).is_none());
        assert!(Dialog::on_screen(&Observation { why: Some(Why::Question), ..screen(&["Name?"]) }).is_none());
    }

    #[test]
    fn words_say_what_a_choice_does() {
        use ChoiceKind::*;
        for (label, kind) in [
            ("Yes", AllowOnce),
            ("Yes, and don't ask again for rm", AllowAlways),
            ("Allow once", AllowOnce),
            ("Allow always", AllowAlways),
            ("Always", AllowAlways),
            ("No, and tell Claude what to do differently", RejectOnce),
            ("Reject", RejectOnce),
            ("Never", RejectAlways),
            ("y", AllowOnce),
            ("N", RejectOnce),
            ("e", Other),
            ("?", Other),
            ("production", Other),
        ] {
            assert_eq!(choice_kind(&Choice { label: label.to_owned(), key: None }), kind, "{label}");
        }
    }

    struct Story {
        machine: SendMachine<()>,
        seen: Observation,
    }

    fn answer(rows: &[&str], choice: usize) -> Story {
        let seen = screen(rows);
        let dialog = Dialog::on_screen(&seen).expect("a dialog").id;
        let mut machine = SendMachine::default();
        machine.push(SendOrder::Answer(DialogAnswer::new(dialog, choice)), ());
        Story { machine, seen }
    }

    impl Story {
        fn at(&mut self, ms: u64, rows: &[&str]) -> String {
            self.seen.now = Duration::from_millis(ms);
            self.seen.rows = rows.iter().map(|row| (*row).to_owned()).collect();
            let seen = self.seen.clone();
            let write = self.machine.next_write(&mut || seen.clone()).unwrap_or_default();
            if !write.bytes.is_empty() {
                self.machine.on_written(self.seen.now);
            }
            String::from_utf8(write.bytes).expect("text")
        }

        fn receipt(&mut self) -> (SendOutcome, String) {
            let ((), receipt) = self.machine.take_receipts().pop().expect("a receipt");
            (receipt.outcome, receipt.why.unwrap_or_default())
        }
    }

    #[test]
    fn arrows_move_the_mark_and_enter_comes_only_on_the_choice() {
        let second =
            ["$ rm -rf build", "Run this command?", "  1. Yes", "❯ 2. Yes, and don't ask again", "  3. No"];
        let mut story = answer(FIRST, 2);
        assert_eq!(story.at(5_000, FIRST), "\x1b[B");
        assert_eq!(story.at(5_100, FIRST), "", "the mark has not moved yet");
        assert_eq!(story.at(5_200, &second), "\x1b[B");
        assert_eq!(story.at(5_300, THIRD), "\r");
        assert_eq!(story.at(5_400, THIRD), "");
        assert_eq!(story.at(5_500, &["ok", "> "]), "");
        assert_eq!(story.receipt(), (SendOutcome::Delivered, "the dialog is gone".into()));
    }

    #[test]
    fn a_dialog_that_changed_gets_no_key() {
        let mut gone = answer(FIRST, 0);
        assert_eq!(gone.at(5_000, &["> "]), "");
        assert_eq!(gone.receipt().0, SendOutcome::Refused);
        let other = ["$ rm -rf target", "Run this command?", "  1. Yes", "❯ 2. No"];
        let mut moved = answer(FIRST, 2);
        assert_eq!(moved.at(5_000, FIRST), "\x1b[B");
        assert_eq!(moved.at(5_200, &other), "");
        let (outcome, why) = moved.receipt();
        assert_eq!(outcome, SendOutcome::Refused);
        assert!(why.contains("Enter was not pressed"), "{why}");
    }

    #[test]
    fn a_key_answers_keys_in_brackets_and_a_menu_without_arrows() {
        let asked = ["Execute shell? [Y/n/c/e/a/?]"];
        let mut key = answer(&asked, 1);
        assert_eq!(key.at(5_000, &asked), "n");
        assert_eq!(key.at(5_100, &["Execute shell? [Y/n/c/e/a/?] n"]), "");
        assert_eq!(key.at(5_950, &["Execute shell? [Y/n/c/e/a/?] n"]), "\r", "it waits for Enter");
        assert_eq!(key.at(6_100, &["skipped", "> "]), "");
        assert_eq!(key.receipt().0, SendOutcome::Delivered);

        let mut line = answer(&asked, 1);
        (line.seen.reads_lines, line.seen.modes.cursor_visible) = (true, true);
        assert_eq!(line.at(5_000, &asked), "n\r");

        let mut still = answer(FIRST, 2);
        assert_eq!(still.at(5_000, FIRST), "\x1b[B");
        assert_eq!(still.at(6_100, FIRST), "3", "the mark does not move");
        assert_eq!(still.at(8_200, FIRST), "");
        let (outcome, why) = still.receipt();
        assert_eq!(outcome, SendOutcome::Typed);
        assert!(why.contains("still on the screen"), "{why}");
    }
}

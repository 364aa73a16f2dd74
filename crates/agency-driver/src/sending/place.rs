//! The place that a text would go to: a prompt, a program that reads lines, a dialog, or a screen that Agency does not know.
//!
//! Reads one observation. Knows nothing of orders.

use agency_core::evidence::{Menu, MenuForm, Why, menu};

use super::observation::Observation;

/// The place that a text would be typed into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The terminal passes on whole lines, and the program reads them.
    Line,
    /// A prompt of a program that reads keys.
    Prompt,
    /// Nothing shows that typed text goes to a prompt.
    Unknown,
}

/// Signs before the text of a prompt.
const MARKS: &[char] = &['❯', '›', '>', '»', '▸', '▶', '➜', '→', 'λ', '!'];
/// Signs at the end of a prompt such as `>>>`, `$` or `mysql>`.
const PROMPT_ENDS: &[char] = &['$', '#', '%', '>', '❯', '›', '»', '➜', 'λ'];
/// Edges of input boxes.
const FRAMES: &[char] = &['│', '┃', '║', '|', '▏', '▕', '┆', '┊', '█', '▌', '▐', '╎'];
/// The input box is this near to the end of the screen.
const ROWS_OF_INPUT: usize = 12;
/// The first words of suggestions in an empty input box.
const SUGGESTS: &[&str] =
    &["type", "ask", "message", "plan", "send", "enter", "write", "describe", "tell", "add", "try"];
/// A question has more letters than the sign of a pager.
const LETTERS_OF_QUESTION: usize = 3;

impl Observation {
    /// The dialog that takes the place of a prompt, in words: one that was reported, or a menu by its shape.
    pub(super) fn open_dialog(&self) -> Option<String> {
        let by_shape =
            || self.menu().map(|menu| format!("it shows a menu, not a prompt: {}", describe(&menu)));
        self.dialog.clone().or_else(by_shape)
    }

    /// The dialog is known only by its shape, so the screen may still be half drawn.
    pub(super) fn is_dialog_by_shape(&self) -> bool {
        self.dialog.is_none() && self.menu().is_some()
    }

    /// Why no text may be typed now: a dialog is open, or nothing shows a prompt. `None` where a prompt takes text.
    pub fn why_no_text(&self) -> Option<String> {
        let is_starting = self.is_young() && self.why.is_none();
        let no_prompt = || match (self.works.is_some(), is_starting) {
            (_, true) => "the agent is still starting and shows no prompt yet; --queue holds the message",
            (true, false) => {
                "the agent works and shows no prompt; --queue holds the message until it is at its prompt"
            }
            (false, false) => "nothing shows that this is a prompt that takes text",
        };
        self.open_dialog().or_else(|| (self.place() == Place::Unknown).then(|| no_prompt().to_owned()))
    }

    /// The menu that the screen shows in place of a prompt.
    pub fn menu(&self) -> Option<Menu> {
        if self.is_known_prompt() {
            return None;
        }
        let row = usize::from(self.cursor.0);
        let found = menu(&self.rows, self.modes.cursor_visible.then_some(row))?;
        let is_asked_here = found.first_row == row;
        match (self.reads_lines, found.form) {
            // Arrow keys choose nothing where a program reads lines, so only keys in brackets before the cursor ask.
            (true, MenuForm::Keys) => is_asked_here.then_some(found),
            (true, MenuForm::List | MenuForm::Buttons) => None,
            (false, _) => (!self.is_prompt_below(&found)).then_some(found),
        }
    }

    /// Whether this text is one of the answers that a program that reads lines offers: `y` for `[y/n]`.
    pub(super) fn is_offered_answer(&self, text: &[u8]) -> bool {
        if !self.reads_lines || !self.dialog_is_question_of_line() {
            return false;
        }
        let text = String::from_utf8_lossy(text).trim().to_lowercase();
        let is_label = |label: &str| {
            text == label || matches!((text.as_str(), label), ("yes", "y") | ("no", "n") | ("", _))
        };
        match self.menu() {
            Some(menu) => menu.choices.iter().any(|choice| is_label(&choice.label.to_lowercase())),
            // A rule knows the question, and its choices have another form: `(Y)es/(N)o [Yes]:`.
            None => ["", "y", "yes", "n", "no"].contains(&text.as_str()),
        }
    }

    /// Nothing but the shape of the row, or a rule that sees the same row, calls this a dialog.
    fn dialog_is_question_of_line(&self) -> bool {
        self.dialog.is_none() || self.dialog_shown
    }

    /// Where a text would go if no dialog is open.
    pub(super) fn place(&self) -> Place {
        match () {
            () if self.reads_lines => Place::Line,
            () if self.is_known_prompt() || self.shows_input() => Place::Prompt,
            () => Place::Unknown,
        }
    }

    /// The state says that the agent waits for a message.
    fn is_known_prompt(&self) -> bool {
        matches!(self.why, Some(Why::Prompt | Why::Finished | Why::Error))
    }

    /// The cursor is at a prompt below these choices, so they are a part of the program's output. Finders such as `fzf` show
    /// the number of their choices above such a prompt.
    fn is_prompt_below(&self, menu: &Menu) -> bool {
        let row = usize::from(self.cursor.0);
        let is_count = |text: &String| {
            let word = text.split_whitespace().next().and_then(|word| word.split_once('/'));
            let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            word.is_some_and(|(shown, all)| is_number(shown) && is_number(all))
        };
        let is_finder = row.checked_sub(1).and_then(|above| self.rows.get(above)).is_some_and(is_count);
        self.modes.cursor_visible
            && !self.modes.alternate
            && row > menu.last_row
            && is_prompt(&self.before_cursor())
            && !is_finder
    }

    /// Whether the screen shows a place that takes text.
    fn shows_input(&self) -> bool {
        if !self.modes.cursor_visible {
            let rows = self.rows.iter().rev().filter(|row| !row.trim().is_empty()).take(ROWS_OF_INPUT);
            return rows.into_iter().any(|row| self.is_input_row(row));
        }
        let before = self.before_cursor();
        let is_marked = after_mark(&before).is_some();
        match self.modes.alternate {
            // An editor or a pager has its cursor in a text.
            true => is_marked || self.modes.bracketed_paste && before.trim_start().starts_with(FRAMES),
            false => is_marked || self.modes.bracketed_paste || is_prompt(&before) || asks(&before),
        }
    }

    /// A program that hides the cursor draws its own in this row, after a mark.
    fn is_input_row(&self, row: &str) -> bool {
        // A box that shows only the program's own cursor.
        let is_cursor_alone = row.trim_start().starts_with(FRAMES) && trim_frame(row) == "_";
        let Some(rest) = after_mark(row) else { return is_cursor_alone };
        let first = rest.split_whitespace().next().unwrap_or_default().to_lowercase();
        rest.is_empty() || self.modes.bracketed_paste || SUGGESTS.contains(&first.as_str())
    }
}

fn describe(menu: &Menu) -> String {
    let labels: Vec<&str> = menu.choices.iter().map(|choice| choice.label.as_str()).collect();
    match &menu.question {
        Some(question) => format!("{question} ({})", labels.join(", ")),
        None => labels.join(", "),
    }
}

/// The row without the edges of a box.
pub(super) fn trim_frame(row: &str) -> &str {
    row.trim_matches(|c: char| c.is_whitespace() || FRAMES.contains(&c))
}

/// The text after the mark of a prompt. `None` if the row has no mark.
pub(super) fn after_mark(row: &str) -> Option<&str> {
    let rest = trim_frame(row).strip_prefix(MARKS)?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| trim_frame(rest))
}

/// Whether the text before the cursor is a prompt such as `>>> `: one word with a prompt's sign at its end.
fn is_prompt(before: &str) -> bool {
    let text = before.trim();
    text.ends_with(PROMPT_ENDS) && !text.contains(char::is_whitespace)
}

/// Whether the text before the cursor asks for a text: `Name: `, `package name: (app) `.
fn asks(before: &str) -> bool {
    let text = before.trim_end();
    let letters = text.chars().filter(|c| c.is_alphanumeric()).count();
    let ends = text.ends_with(['?', ':', '>', '›', '»', '❯', '$', '#'])
        || text.ends_with([')', ']']) && text.contains(['?', ':']);
    letters >= LETTERS_OF_QUESTION && ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sending::TerminalModes;

    /// A screen of a program that reads keys, with its cursor at the end of the last row.
    fn keys(screen: &str) -> Observation {
        let rows: Vec<String> = screen.lines().map(str::to_owned).collect();
        let last = rows.len().saturating_sub(1);
        let column = rows.last().map_or(0, |row| row.chars().count());
        Observation {
            rows,
            cursor: (last as u16, column as u16),
            modes: TerminalModes { cursor_visible: true, ..TerminalModes::default() },
            ..Observation::default()
        }
    }

    fn hidden(screen: &str) -> Observation {
        let modes = TerminalModes { full_screen: true, ..TerminalModes::default() };
        Observation { modes, ..keys(screen) }
    }

    #[test]
    fn prompts_and_questions_take_text() {
        for screen in [
            ">>> ",
            "> ",
            "sqlite> ",
            "Welcome\n  root@host:~# ",
            "package name: (app) ",
            "? Project name: ",
            "What is your name? ",
            "> one\n  two\nmysql> ",
        ] {
            assert_eq!(keys(screen).open_dialog(), None, "{screen}");
            assert_eq!(keys(screen).place(), Place::Prompt, "{screen}");
        }
        for screen in [
            "╭────╮\n│ >  │\n╰────╯",
            "❯ Type your message",
            "› Ask anything\n\n  gpt · ~/x",
            "◆  Your name?\n│  _\n└",
        ] {
            assert_eq!(hidden(screen).place(), Place::Prompt, "{screen}");
        }
        let mut paste = keys("In [1]: ");
        paste.modes.bracketed_paste = true;
        assert_eq!(paste.place(), Place::Prompt);
    }

    #[test]
    fn pagers_editors_and_unknown_screens_take_no_text() {
        for screen in ["one\ntwo\n:", "one\n(END)", "one\n--More--(12%)", "reading the files", ""] {
            assert_eq!(keys(screen).place(), Place::Unknown, "{screen}");
        }
        let mut editor = keys("fn main() {");
        (editor.modes.alternate, editor.modes.bracketed_paste) = (true, true);
        assert_eq!(editor.place(), Place::Unknown);
        let mut start = hidden("Press any key to begin");
        (start.modes.alternate, start.modes.bracketed_paste) = (true, true);
        assert_eq!(start.place(), Place::Unknown);
    }

    #[test]
    fn a_menu_is_a_dialog_by_its_shape_unless_the_state_is_a_prompt() {
        for screen in [
            "? Delete which database? (Use arrow keys)\n » production\n   staging\n   test",
            "◆  Drop the table?\n│  ○ Yes / ● No\n└",
            "Execute shell? [Y/n/c/e/a/?]: ",
            "Choose:\n> alpha\n  beta\n  gamma",
        ] {
            let seen = hidden(screen);
            assert!(seen.open_dialog().is_some_and(|words| words.starts_with("it shows a menu")), "{screen}");
            assert_eq!(Observation { why: Some(Why::Prompt), ..seen }.open_dialog(), None, "{screen}");
        }
        let finder = keys("  beta\n▌ alpha\n  2/2\n> al");
        assert!(finder.open_dialog().is_some());
    }

    #[test]
    fn a_line_with_keys_in_brackets_takes_only_these_answers() {
        let lines = |screen| Observation { reads_lines: true, ..keys(screen) };
        let asked = lines("rm -rf build\nExecute shell? [Y/n/c/e/a/?]: ");
        assert!(asked.open_dialog().is_some());
        for (text, is_offered) in
            [("y", true), ("Y", true), ("no", true), ("?", true), ("fix the tests", false)]
        {
            assert_eq!(asked.is_offered_answer(text.as_bytes()), is_offered, "{text}");
        }
        for screen in [
            "Run it? [Y]es / [N]o / [A]lways: ",
            "Apply edit? (Y)es/(N)o/(D)on't ask again [Yes]: ",
            "Execute this? 1) yes 2) no 3) always: ",
            "Continue? Type yes or no: ",
            "Continue connecting (yes/no/[fingerprint])? ",
        ] {
            assert!(lines(screen).open_dialog().is_some(), "{screen}");
            assert!(!lines(screen).is_offered_answer(b"fix the login"), "{screen}");
        }
        let free = lines("1) one\n2) two\nDelete what? ");
        assert_eq!((free.open_dialog(), free.place()), (None, Place::Line));
    }
}

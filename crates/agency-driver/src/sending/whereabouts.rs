//! Where a text is after Enter: still at the prompt, above a new line of the prompt, or gone from it.
//!
//! Compares the screen with the one before Enter. A text that is gone from the prompt may be in the program's transcript.

use agency_core::evidence::is_furniture;

use super::observation::Observation;
use super::place::{after_mark, trim_frame};

/// Where the text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whereabouts {
    /// Where it was before Enter.
    AtPrompt,
    /// In the row above the cursor, and the cursor's row has no text: the program may take Enter for a line end.
    AboveNewLine,
    /// Nowhere at the prompt.
    Gone,
}

/// The prompt with the text in it, right before Enter.
#[derive(Clone, Debug)]
pub(super) struct TextAtPrompt {
    /// The prompt before the text was typed.
    prompt: String,
    /// The cursor's row before the cursor, without the edges of a box.
    row: String,
    /// Letters that identify the text on a screen without a cursor. `None` if there are too few of them.
    letters: Option<String>,
    /// The rows that begin and follow these letters.
    shown: Option<(String, String)>,
}

impl TextAtPrompt {
    pub(super) fn new(prompt: String, letters: Option<String>, seen: &Observation) -> TextAtPrompt {
        let shown = letters.as_ref().and_then(|letters| find(letters, seen)).map(|(_, rows)| rows);
        // Agents show a long paste as `[Pasted text]`.
        let pasted = || Some("pasted".to_owned()).filter(|letters| find(letters, seen).is_some());
        let letters = if shown.is_some() { letters } else { letters.and_then(|_| pasted()) };
        let shown = letters.as_ref().and_then(|letters| find(letters, seen)).map(|(_, rows)| rows);
        TextAtPrompt { prompt, row: trim_frame(&seen.before_cursor()).to_owned(), letters, shown }
    }

    pub(super) fn whereabouts(&self, seen: &Observation) -> Whereabouts {
        match seen.modes.cursor_visible {
            true => self.at_cursor(seen),
            false => self.on_screen(seen),
        }
    }

    fn at_cursor(&self, seen: &Observation) -> Whereabouts {
        let before = seen.before_cursor();
        let now = trim_frame(&before);
        if self.row.is_empty() {
            return Whereabouts::Gone;
        }
        if now == self.row {
            return if self.row == self.prompt { Whereabouts::Gone } else { Whereabouts::AtPrompt };
        }
        let rows = &seen.rows[..usize::from(seen.cursor.0).min(seen.rows.len())];
        let above = rows.iter().rev().find(|row| !is_furniture(row)).map(|row| trim_frame(row));
        let is_new_prompt = !self.prompt.is_empty() && now == self.prompt;
        let has_text = now.contains(char::is_alphanumeric);
        match above.is_some_and(|above| above == self.row) && !is_new_prompt && !has_text {
            true => Whereabouts::AboveNewLine,
            false => Whereabouts::Gone,
        }
    }

    /// Without a cursor: the lowest place with these letters, if no prompt is below it.
    fn on_screen(&self, seen: &Observation) -> Whereabouts {
        let Some((at, shown)) = self.letters.as_ref().and_then(|letters| find(letters, seen)) else {
            return Whereabouts::Gone;
        };
        let is_other_prompt = |row: &String| after_mark(row).is_some();
        match () {
            () if seen.rows[at + 1..].iter().any(is_other_prompt) => Whereabouts::Gone,
            () if self.shown.as_ref() == Some(&shown) => Whereabouts::AtPrompt,
            () => Whereabouts::AboveNewLine,
        }
    }
}

/// The lowest row in which these letters begin, its text, and the text of the row below it.
fn find(letters: &str, seen: &Observation) -> Option<(usize, (String, String))> {
    let letters_of = |rows: &[String]| -> String {
        rows.concat().chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let letters = letters.to_lowercase();
    let at = (0..seen.rows.len()).rev().find(|at| letters_of(&seen.rows[*at..]).contains(&letters))?;
    let row = |at: usize| seen.rows.get(at).cloned().unwrap_or_default();
    Some((at, (row(at), row(at + 1))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sending::TerminalModes;

    /// A screen whose cursor is at the sign `_`.
    fn at_cursor(screen: &str) -> Observation {
        let rows: Vec<String> = screen.lines().map(str::to_owned).collect();
        let row = rows.iter().position(|row| row.contains('_')).expect("a cursor");
        let column = rows[row].chars().position(|c| c == '_').expect("a cursor");
        let rows = rows.iter().map(|row| row.replace('_', "")).collect();
        Observation {
            rows,
            cursor: (row as u16, column as u16),
            modes: TerminalModes { cursor_visible: true, ..TerminalModes::default() },
            ..Observation::default()
        }
    }

    fn hidden(screen: &str) -> Observation {
        Observation { rows: screen.lines().map(str::to_owned).collect(), ..Observation::default() }
    }

    #[test]
    fn the_cursor_shows_where_the_text_is() {
        use Whereabouts::*;
        for (prompt, typed, now, expected) in [
            ("$", "$ make_", "$ make_", AtPrompt),
            ("$", "$ make_", "$ make\nok\n$ _", Gone),
            ("$", "$ make_", "$ make\n$ _", Gone),
            ("$", "$ make_", "$ make\n_", AboveNewLine),
            ("$", "$ make_", "$ make\n> _", AboveNewLine),
            ("$", "$ make_", "$ make\nok_", Gone),
            ("$", "$ clear_", "$ _", Gone),
            (">", "│ > fix it_  │\n╰──╯", "│ > fix it   │\n│   _ │\n╰──╯", AboveNewLine),
            (">", "│ > fix it_  │\n╰──╯", "> fix it\n\n╭──╮\n│ > _ │\n╰──╯", Gone),
            (">", "> fix it_", "> fix it\n> _", Gone),
            (">>>", ">>> if x:_", ">>> if x:\n... _", AboveNewLine),
        ] {
            let text = TextAtPrompt::new(prompt.to_owned(), None, &at_cursor(typed));
            assert_eq!(text.whereabouts(&at_cursor(now)), expected, "{now}");
        }
    }

    #[test]
    fn without_a_cursor_the_letters_and_the_prompt_below_them_show_it() {
        use Whereabouts::*;
        for (typed, now, expected) in [
            ("│ > fix the login │", "│ > fix the login │", AtPrompt),
            ("│ > fix the login │", "> fix the login\n\n* Working\n│ >  │", Gone),
            ("│ > fix the login │\n╰──╯", "│ > fix the login │\n│         │\n╰──╯", AboveNewLine),
            ("│ > fix the login │", "│ done │", Gone),
            ("│ > [Pasted text +9 lines] │", "│ > [Pasted text +9 lines] │", AtPrompt),
        ] {
            let text = TextAtPrompt::new(String::new(), Some("fixthelogin".to_owned()), &hidden(typed));
            assert_eq!(text.whereabouts(&hidden(now)), expected, "{now}");
        }
    }
}

//! Finds where the screen takes text: an input box, or the open question of a prompt library.
//!
//! Knows no program. Many agents keep their input box open while they work, so a field alone is no sign of waiting.

use serde::{Deserialize, Serialize};

use super::menu::is_furniture;

/// A place on the screen that takes text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// A row or a few rows between two rulers, or a prompt's mark in a frame.
    InputBox,
    /// A row that begins with the sign of an open question: `? Your name:`, `◆  Which parts?`.
    Question,
}

/// Below an input box there may be this many rows with text: a status line, hints about keys.
const ROWS_BELOW: usize = 6;
/// A draft may have this many rows.
const ROWS_INSIDE: usize = 3;
/// A shorter line is a part of a picture or of a table.
const SHORTEST_RULER: usize = 20;
/// An open question and its choices have at most this many rows with text.
const ROWS_OF_QUESTION: usize = 8;

const MARKS: &[char] = &['❯', '›', '>', '➤', 'λ', '»'];
/// Prompt libraries replace these signs when the question is answered.
const OPEN: &[&str] = &["? ", "◆ "];

/// The field at the end of the screen. `rows` go from top to bottom.
pub fn field<R: AsRef<str>>(rows: &[R]) -> Option<Field> {
    let rows: Vec<&str> = rows.iter().map(AsRef::as_ref).collect();
    if has_input_box(&rows) {
        return Some(Field::InputBox);
    }
    let with_text = rows.iter().rev().filter(|row| !is_furniture(row)).take(ROWS_OF_QUESTION);
    with_text.copied().any(is_open_question).then_some(Field::Question)
}

/// Whether the row begins with the sign of an open question. Some agents begin a hint with the same sign: `? for shortcuts`.
fn is_open_question(row: &str) -> bool {
    let Some(text) = OPEN.iter().find_map(|sign| row.trim_start().strip_prefix(sign)) else { return false };
    let is_hint = text.starts_with("for ") || !text.contains(['?', ':', '›', '»', '(', '>']);
    !(is_hint && row.trim_start().starts_with('?'))
}

fn has_input_box(rows: &[&str]) -> bool {
    let mut below = 0;
    for at in (0..rows.len()).rev() {
        if is_bottom(rows, at) {
            return true;
        }
        below += usize::from(!is_furniture(rows[at]));
        if below > ROWS_BELOW {
            return false;
        }
    }
    false
}

/// Whether this row is the lower edge of an input box.
fn is_bottom(rows: &[&str], at: usize) -> bool {
    let first = at.saturating_sub(ROWS_INSIDE + 1);
    if is_ruler(rows[at]) {
        let top = (first..at.saturating_sub(1)).rev().find(|row| is_ruler(rows[*row]));
        return top.is_some_and(|top| takes_text(&rows[top + 1..at]));
    }
    at >= 2
        && is_edge(rows[at])
        && is_edge(rows[at - 2])
        && inside(rows[at - 1]).starts_with(MARKS)
        && !asks(inside(rows[at - 1]))
}

fn takes_text(rows: &[&str]) -> bool {
    rows.iter().all(|row| !is_ruler(row) && !asks(inside(row)))
}

/// Whether the text is a question: a dialog in a frame.
fn asks(text: &str) -> bool {
    text.ends_with([':', ']', ')']) || text.ends_with('?') && !text.starts_with(MARKS)
}

/// The text of a row without the edges of its frame.
fn inside(row: &str) -> &str {
    row.trim_matches(|c: char| c.is_whitespace() || ('\u{2500}'..='\u{259f}').contains(&c) || c == '|')
}

fn is_ruler(row: &str) -> bool {
    let is_flat = |c: &char| "─━═╌┄▔▁▀▄╭╮╰╯┌┐└┘".contains(*c);
    is_furniture(row) && row.chars().filter(is_flat).count() >= SHORTEST_RULER
}

/// A row of a frame without text in it.
fn is_edge(row: &str) -> bool {
    is_furniture(row) && row.contains(['│', '┃', '║', '▌', '▐'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(screen: &str) -> Option<Field> {
        field(&screen.lines().collect::<Vec<_>>())
    }

    const RULER: &str = "────────────────────────────────";

    #[test]
    fn a_row_between_rulers_or_a_mark_in_a_frame_is_an_input_box() {
        for screen in [
            format!("an answer\n{RULER}\n❯ Ask anything...\n{RULER}\n model  100"),
            format!("an answer\n{RULER}\n\n{RULER}\n~/project"),
            format!("╭{RULER}╮\n│ ● Ask anything, @ for context   │\n╰{RULER}╯\n  ~/project"),
            format!("Nothing yet\n▊▔{}▎\n▊  a command     ▎\n▊▁{}▎", "▔".repeat(30), "▁".repeat(30)),
            "What next?\n┃\n┃ > / commands, ! bash\n┃\n\n▶ normal mode".to_owned(),
            format!("{RULER}\n❯ What can I do for you?\n{RULER}"),
        ] {
            assert_eq!(found(&screen), Some(Field::InputBox), "{screen}");
        }
    }

    #[test]
    fn an_open_question_has_its_sign_and_an_answered_one_another() {
        for screen in ["? Which port? › 8080", "◇  Name?\n│  shop\n│\n◆  Which parts?\n│  ◻ tests\n└"]
        {
            assert_eq!(found(screen), Some(Field::Question), "{screen}");
        }
        for screen in ["? for shortcuts", "? help", "✔ Which port? … 8080", "◇  Name?\n│  shop\n│", ""]
        {
            assert_eq!(found(screen), None, "{screen}");
        }
    }

    #[test]
    fn dialogs_and_tables_are_no_input_boxes() {
        for screen in [
            format!("{RULER}\n Overwrite the file? [y/N]\n{RULER}"),
            format!("╭{RULER}╮\n│ Remove 3 files?      │\n╰{RULER}╯"),
            format!("{RULER}\n name  size\n{RULER}\n a 1\n b 2\n c 3\n d 4\n e 5\n f 6\n g 7"),
            "> a quotation\n\nan answer".to_owned(),
        ] {
            assert_eq!(found(&screen), None, "{screen}");
        }
    }
}

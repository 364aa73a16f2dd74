//! Finds an open menu by its shape: choices below each other or side by side, or keys in brackets after a question.
//!
//! Knows no program and no state. A menu on the screen may still be a list that opened because the user typed, so the caller
//! decides what it means.

use super::choice::{Choice, Line, NO, YES, begins_with, first_word, words};
use super::key_words::{key_words, letter_words, numbered_words};
use crate::activity::Why;

/// A menu that a key or Enter answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Menu {
    /// The form of the menu.
    pub form: MenuForm,
    /// The text above or before the choices.
    pub question: Option<String>,
    /// The choices in their order.
    pub choices: Vec<Choice>,
    /// The choice that Enter takes, as an index into `choices`. `None` if only a colour shows it, or if Enter takes none.
    pub marked: Option<usize>,
    /// The row of the first choice.
    pub first_row: usize,
    /// The row of the last choice.
    pub last_row: usize,
    /// The rows above the choices, the nearest first.
    pub above: Vec<String>,
}

/// The form of a menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MenuForm {
    /// Choices below each other. One has a mark, which arrow keys move.
    List,
    /// Choices side by side: `● Yes / ○ No`, `Allow  Reject`, `<Yes> <No>`.
    Buttons,
    /// Keys in brackets: `Execute? [Y/n/c/e/a/?]`. A key answers, or a key and Enter.
    Keys,
}

/// Marks that only a chosen row has.
const MARKS: &[char] = &['❯', '›', '▶', '▸', '►', '➤', '→', '»', '>', '▌'];
/// A chosen radio button. Agents also use it as a bullet, so the other choices must have the empty one or a number.
const CHOSEN: &[char] = &['●', '◉', '◆'];
const EMPTY: &[char] = &['○', '◯', '◌', '◇'];
/// Frames at the left and right edge of a dialog.
const FRAMES: &[char] = &['│', '┃', '║', '|', '▏', '▕', '┆', '┊', '█', '▐'];

/// Below the choices there may be this many rows with text: hints about keys, a status line.
const ROWS_BELOW: usize = 6;
/// A choice may have a description of this many rows.
const ROWS_OF_CHOICE: usize = 4;
/// The question is at most this many rows with text above the first choice.
const ROWS_TO_QUESTION: usize = 8;
/// Longer lists are answers or files, not menus.
const MOST_CHOICES: usize = 30;
/// Text that fills its row may continue in the next row. That is a paragraph, not a choice.
const WIDE: usize = 60;

/// Choices that begin with these words ask for a permission, whatever the question is.
const GRANTS: &[&str] = &["allow", "approve", "execute", "run", "grant", "always", "permit"];
/// The opposite of `GRANTS`: `No` and `Cancel` may answer anything.
const DENIES: &[&str] = &["deny", "reject", "decline", "disallow", "refuse", "block"];
/// Words of a question about an action of the program.
const ACTS: &[&str] = &[
    "allow",
    "approve",
    "approval",
    "permission",
    "permit",
    "execute",
    "run",
    "apply",
    "create",
    "write",
    "edit",
    "edits",
    "delete",
    "remove",
    "overwrite",
    "modify",
    "proceed",
    "command",
    "tool",
    "fetch",
    "access",
    "install",
    "make",
    "change",
    "changes",
    "patch",
    "commit",
    "push",
    "drop",
];
/// Words of a question that asks for a permission, and of the title above it.
const PERMITS: &[&str] = &[
    "allow",
    "approve",
    "approval",
    "permission",
    "permissions",
    "permit",
    "execute",
    "run",
    "command",
    "tool",
];
/// These words ask about something else, even where the choices are yes and no.
const NOT_ACTS: &[&str] = &["login", "theme", "upgrade", "telemetry", "feedback"];
/// These words do so too, unless the question asks for a permission: `Run git log?`, `Allow the update of a.txt?`.
const SELDOM_ACTS: &[&str] = &["trust", "log", "sign", "rate", "update"];

impl Menu {
    /// The reason to wait that the words of the menu give: a permission if it asks about an action and offers a yes and a no.
    pub fn why(&self) -> Why {
        let has = |list: &[&str]| self.choices.iter().any(|choice| begins_with(&choice.label, list));
        let asks = |list: &[&str]| {
            self.question.as_deref().is_some_and(|text| words(text).any(|word| list.contains(&word.as_str())))
        };
        let is_yes_or_no = match self.form {
            MenuForm::Keys => true,
            MenuForm::List | MenuForm::Buttons => has(YES) && has(NO),
        };
        let speaks_of_act = self
            .choices
            .iter()
            .any(|choice| words(&choice.label).any(|word| word == "ask" || word == "allow"));
        let is_under_title = self.above.iter().any(|row| is_title_of_permission(row));
        let is_act = asks(PERMITS)
            || !asks(SELDOM_ACTS) && (has(GRANTS) || speaks_of_act || asks(ACTS) || is_under_title);
        match is_yes_or_no && is_act && !asks(NOT_ACTS) {
            true => Why::Permission,
            false => Why::Question,
        }
    }

    /// Whether its choices can only be those of a permission.
    fn grants_and_denies(&self) -> bool {
        let has = |list: &[&str]| self.choices.iter().any(|choice| begins_with(&choice.label, list));
        has(GRANTS) && has(DENIES)
    }

    /// The question and the choices in one line.
    pub fn summary(&self) -> String {
        let labels: Vec<&str> = self.choices.iter().map(|choice| choice.label.as_str()).collect();
        match &self.question {
            Some(question) => question.clone(),
            None => labels.join(" / "),
        }
    }
}

/// Finds the menu at the end of the screen. `rows` go from top to bottom. `cursor_row` is the row of the cursor if the cursor is
/// visible: text between a mark and a visible cursor may be a draft.
pub fn menu<R: AsRef<str>>(rows: &[R], cursor_row: Option<usize>) -> Option<Menu> {
    let rows: Vec<Row> = rows.iter().map(|row| Row::of(row.as_ref())).collect();
    list(&rows, cursor_row).or_else(|| buttons(&rows)).or_else(|| keys(&rows, cursor_row))
}

/// Whether a row has no text: it is blank, a ruler, or the edge of a frame.
pub fn is_furniture(row: &str) -> bool {
    row.chars().all(|c| c.is_whitespace() || is_line(c))
}

/// Whether this character only draws lines. A single dash or bar may be text, so the ASCII ones count only in rulers.
fn is_line(c: char) -> bool {
    matches!(c, '\u{2500}'..='\u{259f}' | '-' | '=' | '_' | '|' | '+' | '*' | '~')
}

/// One row without its frame.
struct Row {
    /// The column of the first character of `text`.
    column: usize,
    text: String,
}

impl Row {
    fn of(row: &str) -> Row {
        if is_furniture(row) {
            return Row { column: 0, text: String::new() };
        }
        let is_edge = |c: char| c.is_whitespace() || FRAMES.contains(&c);
        let kept = row.trim_end_matches(is_edge);
        // ▌ is a mark in some menus and an edge in others; as the first character before text it is a mark.
        let text = kept.trim_start_matches(is_edge);
        Row { column: kept.chars().count() - text.chars().count(), text: text.to_owned() }
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The mark, and the column and the text after it.
    fn marked(&self, marks: &[char]) -> Option<(char, usize, &str)> {
        let mark = self.text.chars().next().filter(|c| marks.contains(c))?;
        let after = &self.text[mark.len_utf8()..];
        let text = after.trim_start();
        let gap = after.chars().count() - text.chars().count();
        (gap > 0 || text.is_empty()).then_some((mark, self.column + 1 + gap, text))
    }
}

/// The lowest marked row that has choices aligned with it.
fn list(rows: &[Row], cursor_row: Option<usize>) -> Option<Menu> {
    let last = rows.iter().rposition(|row| !row.is_empty())?;
    let mut below = 0;
    let mut is_over_prompt = false;
    for at in (0..=last).rev() {
        // With a prompt below them, choices are a part of the transcript. Some agents keep their input box open below a
        // permission.
        let counts = |menu: &Menu| !is_over_prompt || menu.grants_and_denies();
        if let Some(menu) = list_at(rows, at, cursor_row).filter(counts) {
            return Some(menu);
        }
        is_over_prompt |= rows[at].marked(MARKS).is_some() && !is_filter(rows, at);
        below += usize::from(!rows[at].is_empty());
        if below > ROWS_BELOW + MOST_CHOICES || is_over_prompt && below > ROWS_BELOW {
            return None;
        }
    }
    None
}

/// Whether this row is where a finder such as `fzf` takes letters: below its choices, next to their number.
fn is_filter(rows: &[Row], at: usize) -> bool {
    at > 0 && is_count(&rows[at - 1])
}

/// Whether the row is the number of choices that a finder shows: `2/10`.
fn is_count(row: &Row) -> bool {
    let count = row.text.split_whitespace().next().and_then(|word| word.split_once('/'));
    count.is_some_and(|(shown, all)| is_number(shown) && is_number(all))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}

fn list_at(rows: &[Row], at: usize, cursor_row: Option<usize>) -> Option<Menu> {
    let (mark, column, text) = rows[at].marked(MARKS).or_else(|| rows[at].marked(CHOSEN))?;
    if text.is_empty() || text.starts_with(['/', '@']) {
        return None;
    }
    let is_radio = CHOSEN.contains(&mark);
    let mark_column = rows[at].column;
    let is_choice = |row: &Row| match is_radio {
        true => {
            row.column == mark_column && row.marked(EMPTY).is_some_and(|(_, begins, _)| begins == column)
                || row.column == column && number(&row.text).is_some()
        }
        false => row.column == column && !row.is_empty() && row.marked(MARKS).is_none() && !is_count(row),
    };
    let is_numbered = number(text).is_some();
    let counts = |row: &Row| is_choice(row) && (!is_numbered || number(&row.text).is_some());
    let above = neighbours(rows, (0..at).rev(), column, is_numbered, &counts);
    let under = neighbours(rows, at + 1..rows.len(), column, is_numbered, &counts);
    let mut found: Vec<usize> = above.into_iter().rev().chain([at]).chain(under).collect();
    found.dedup();
    let (first_row, last_row) = (*found.first()?, *found.last()?);
    if !is_menu(rows, at, &found, is_numbered, cursor_row) {
        return None;
    }
    let choices: Vec<Choice> = found.iter().map(|row| choice(&rows[*row])).collect();
    let is_completion = choices.iter().all(|choice| choice.label.starts_with(['/', '@']));
    let marked = found.iter().position(|row| *row == at);
    let question = question_above(rows, first_row);
    let above = rows_above(rows, first_row);
    let menu = Menu { form: MenuForm::List, question, choices, marked, first_row, last_row, above };
    let has_prompt_below = (last_row + 1..rows.len()).any(|row| {
        rows[row].marked(MARKS).is_some_and(|(.., text)| number(text).is_none()) && !is_filter(rows, row)
    });
    (!is_completion && (!has_prompt_below || menu.grants_and_denies())).then_some(menu)
}

/// The rows of choices that follow each other, with blank rows and descriptions between them.
fn neighbours(
    rows: &[Row],
    order: impl Iterator<Item = usize>,
    column: usize,
    is_numbered: bool,
    counts: &impl Fn(&Row) -> bool,
) -> Vec<usize> {
    let (mut found, mut between) = (Vec::new(), 0);
    for at in order {
        let row = &rows[at];
        let continues = row.is_empty() || row.column > column || is_numbered && row.column >= column;
        match counts(row) {
            true => {
                found.push(at);
                between = 0;
            }
            // Choices without numbers are recognized by their place alone, so a blank row ends them.
            false if continues && between < ROWS_OF_CHOICE && (is_numbered || !row.is_empty()) => {
                between += 1
            }
            false => break,
        }
    }
    found
}

fn is_menu(rows: &[Row], at: usize, found: &[usize], is_numbered: bool, cursor_row: Option<usize>) -> bool {
    let (first, last) = (found[0], found[found.len() - 1]);
    let is_count_right = (2..=MOST_CHOICES).contains(&found.len());
    let below = rows[last + 1..].iter().filter(|row| !row.is_empty());
    // A draft of several rows has the cursor in it, at its end.
    let is_draft = cursor_row.is_some_and(|row| row != at && (first..=last).contains(&row));
    let width = rows.iter().map(|row| row.column + row.text.chars().count()).max().unwrap_or(0).max(WIDE);
    let is_paragraph = !is_numbered
        && rows[at].marked(MARKS).is_some()
        && rows[at].column + rows[at].text.chars().count() > width * 7 / 10
        && first == at;
    is_count_right && below.count() <= ROWS_BELOW && !is_draft && !is_paragraph
}

/// The number at the beginning of a choice, and the text after it: `1. Yes`, `2) No`, `[3] Never`, `y) Yes`.
fn number(text: &str) -> Option<(char, &str)> {
    let text = text.trim_start_matches(['[', '(']);
    let mut chars = text.chars();
    let key = chars.next().filter(char::is_ascii_alphanumeric)?;
    let mut rest = chars.as_str();
    if key.is_ascii_digit() {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    let label = rest.strip_prefix(['.', ')', ']', ':'])?;
    label.starts_with(char::is_whitespace).then(|| (key, label.trim()))
}

/// The text of a choice without its mark, its button and its number.
fn choice(row: &Row) -> Choice {
    let unmarked = row.marked(MARKS).map_or(row.text.as_str(), |(.., text)| text);
    let text =
        unmarked.strip_prefix(CHOSEN).or_else(|| unmarked.strip_prefix(EMPTY)).unwrap_or(unmarked).trim();
    match number(text) {
        Some((key, label)) => Choice { label: label.to_owned(), key: Some(key) },
        None => Choice { label: text.to_owned(), key: None },
    }
}

/// The text above the first choice: the nearest row that ends like a question, otherwise the nearest row.
fn question_above(rows: &[Row], first: usize) -> Option<String> {
    let above: Vec<&Row> =
        rows[..first].iter().rev().filter(|row| !row.is_empty()).take(ROWS_TO_QUESTION).collect();
    let asks = |row: &&&Row| row.text.trim_end().ends_with(['?', ':', '？']);
    let row = above.iter().find(asks).or(above.first())?;
    Some(clean(&row.text)).filter(|text| !text.is_empty())
}

fn rows_above(rows: &[Row], first: usize) -> Vec<String> {
    let above = rows[..first].iter().rev().filter(|row| !row.is_empty()).take(ROWS_TO_QUESTION);
    above.map(|row| row.text.clone()).collect()
}

/// Whether a short row is a title such as `Permission required`, `Tool approval`, `bash requests approval`.
fn is_title_of_permission(row: &str) -> bool {
    let words: Vec<String> = words(row).collect();
    let is_act = |word: &String| ["permission", "approval", "confirmation"].contains(&word.as_str());
    words.len() <= 8 && words.iter().any(is_act)
}

/// The text without signs before its first word.
fn clean(text: &str) -> String {
    let is_sign = |c: char| !c.is_alphanumeric() && !"\"'`$/~.([<".contains(c);
    super::status::one_line(text.trim_start_matches(is_sign))
}

/// Choices side by side, in one of the last rows.
fn buttons(rows: &[Row]) -> Option<Menu> {
    let mut last = rows.iter().enumerate().rev().filter(|(_, row)| !row.is_empty()).take(ROWS_BELOW);
    last.find_map(|(at, row)| {
        let found = radio_buttons(&row.text)
            .or_else(|| key_buttons(&row.text))
            .or_else(|| key_words(&row.text))
            .or_else(|| plain_buttons(&row.text));
        let (choices, marked, before) = found?;
        let question = before.map(|text| clean(&text)).filter(|text| !text.is_empty());
        let question = question.or_else(|| question_above(rows, at));
        let above = rows_above(rows, at);
        Some(Menu { form: MenuForm::Buttons, question, choices, marked, first_row: at, last_row: at, above })
    })
}

/// `Drop the table? ● Yes / ○ No`
fn radio_buttons(text: &str) -> Option<Line> {
    let is_sign = |c: char| CHOSEN.contains(&c) || EMPTY.contains(&c);
    let begins = text.find(is_sign)?;
    let (before, mut rest) = text.split_at(begins);
    let (mut choices, mut marked) = (Vec::new(), None);
    while let Some(sign) = rest.chars().next().filter(|c| is_sign(*c)) {
        let after = &rest[sign.len_utf8()..];
        let end = after.find(is_sign).unwrap_or(after.len());
        if CHOSEN.contains(&sign) {
            marked = marked.or(Some(choices.len()));
        }
        let label = after[..end].trim().trim_end_matches(['/', '|', '·', ',']).trim();
        choices.push(Choice { label: label.to_owned(), key: None });
        rest = &after[end..];
    }
    let is_short = |choice: &Choice| !choice.label.is_empty() && choice.label.chars().count() <= 40;
    // Status bars show their modes in the same way, behind other words.
    let before_asks = before.trim().is_empty() || before.trim_end().ends_with(['?', ':', '？']);
    let is_menu = choices.len() >= 2 && marked.is_some() && choices.iter().all(is_short) && before_asks;
    is_menu.then(|| (choices, marked, Some(before.to_owned())))
}

/// `[y] Approve   [n] Deny`: each choice has its key before it, and there is a yes and a no.
fn key_buttons(text: &str) -> Option<Line> {
    let mut choices = Vec::new();
    for part in text.split(['[', '(']).skip(1) {
        let (key, label) = part.split_once([']', ')'])?;
        let (mut keys, label) = (key.chars(), label.trim());
        let key = keys.next().filter(|_| keys.next().is_none() && !label.is_empty())?;
        choices.push(Choice { label: label.to_owned(), key: Some(key) });
    }
    let is_menu = text.starts_with(['[', '('])
        && choices.len() >= 2
        && choices.iter().any(|choice| begins_with(&choice.label, YES))
        && choices.iter().any(|choice| begins_with(&choice.label, NO));
    is_menu.then_some((choices, None, None))
}

/// `Allow once   Allow always   Reject`, `[ Yes ] [ No ]`, `<Yes>  <No>`: a yes and a no, each a few words long.
fn plain_buttons(text: &str) -> Option<Line> {
    let is_edge = |c: char| "[]<>()│┃|".contains(c);
    let spaced: String = text.chars().map(|c| if is_edge(c) { '\u{1}' } else { c }).collect();
    let parts = spaced.split('\u{1}').flat_map(|part| part.split("  ")).map(str::trim);
    let labels: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    let begins = |label: &&&str, list: &[&str]| {
        label.chars().next().is_some_and(char::is_uppercase)
            && first_word(label).is_some_and(|word| list.contains(&word.as_str()))
            && label.split_whitespace().count() <= 4
    };
    // Labels before the first yes are not buttons; keys and other hints may follow the last button.
    let first = labels.iter().position(|label| begins(&label, YES) || begins(&label, NO))?;
    let last = labels.iter().rposition(|label| begins(&label, YES) || begins(&label, NO))?;
    let buttons = &labels[first..=last];
    let is_menu = first == 0
        && (2..=5).contains(&buttons.len())
        && buttons.iter().any(|label| begins(&label, YES))
        && buttons.iter().any(|label| begins(&label, NO));
    let choice = |label: &&str| Choice { label: (*label).to_owned(), key: None };
    is_menu.then(|| (buttons.iter().map(choice).collect(), None, None))
}

/// Keys in brackets at the end of the last row, or of the row of the cursor: `[Y/n/c/e/a/?]`, `(y/N)`, `[y,n,q,a,d,e,?]?`.
fn keys(rows: &[Row], cursor_row: Option<usize>) -> Option<Menu> {
    let last = rows.iter().rposition(|row| !row.is_empty())?;
    let at =
        cursor_row.filter(|row| *row < rows.len() && !rows[*row].is_empty() && last - *row.min(&last) <= 2);
    // The answer may be typed behind a mark below the question.
    let is_mark = |row: &Row| row.marked(MARKS).is_some_and(|(.., text)| text.is_empty());
    let over_mark = rows[..last].iter().rposition(|row| !row.is_empty()).filter(|_| is_mark(&rows[last]));
    [at, Some(last), over_mark].into_iter().flatten().find_map(|at| keys_at(rows, at))
}

fn keys_at(rows: &[Row], at: usize) -> Option<Menu> {
    let text = &rows[at].text;
    let (choices, marked, before) =
        keys_in_brackets(text).or_else(|| letter_words(text)).or_else(|| numbered_words(text))?;
    let before = before.map(|text| clean(text.trim())).filter(|text| !text.is_empty());
    let question = before.or_else(|| question_above(rows, at));
    let above = rows_above(rows, at);
    Some(Menu { form: MenuForm::Keys, question, choices, marked, first_row: at, last_row: at, above })
}

fn keys_in_brackets(text: &str) -> Option<Line> {
    let (before, parts) = bracketed_keys(text)?;
    let is_default = |part: &&str| part.chars().next().is_some_and(char::is_uppercase);
    let marked = parts
        .iter()
        .position(&is_default)
        .filter(|_| parts.iter().filter(|part| is_default(part)).count() == 1);
    let choice = |part: &&str| {
        let mut chars = part.chars();
        let key = chars.next().filter(|_| chars.next().is_none());
        Choice { label: (*part).to_owned(), key: key.map(|c| c.to_ascii_lowercase()) }
    };
    Some((parts.iter().map(choice).collect(), marked, Some(before.to_owned())))
}

/// The text before the keys, and the keys. A default may follow them: `[y/n] (y):`, `(y/n) › yes`.
fn bracketed_keys(text: &str) -> Option<(&str, Vec<&str>)> {
    let is_end = |c: char| ":?>›".contains(c) || c.is_whitespace();
    let text = text.trim_end_matches(is_end);
    let without_word = text.rsplit_once([' ']).map(|(before, _)| before.trim_end_matches(is_end));
    let without_sign = without_word.filter(|before| text[before.len()..].contains(['›', '·', '(', '[']));
    let is_bare = |text: &str| text.rsplit_once(' ').is_some_and(|(before, _)| before.ends_with(['?', ':']));
    let bare = text.rsplit_once(' ').filter(|_| is_bare(text)).and_then(|(before, keys)| {
        let parts = split_keys(keys)?;
        let says_no = parts.iter().any(|part| is_one_of(part, &["n", "no"]));
        says_no.then_some((before, parts))
    });
    [Some(text), without_sign].into_iter().flatten().find_map(in_brackets).or(bare).or_else(|| in_words(text))
}

/// `Type yes or no`, `Answer 'y' or 'n'`.
fn in_words(text: &str) -> Option<(&str, Vec<&str>)> {
    let mut words = text.rsplitn(4, ' ');
    let (no, or, yes) = (words.next()?, words.next()?, words.next()?);
    let [yes, no] = [yes, no].map(|word| word.trim_matches(['\'', '"', '`']));
    let is_asked = or == "or" && is_one_of(yes, &["y", "yes"]) && is_one_of(no, &["n", "no"]);
    is_asked.then(|| (words.next().unwrap_or_default(), vec![yes, no]))
}

fn in_brackets(text: &str) -> Option<(&str, Vec<&str>)> {
    let close = text.chars().last().filter(|c| ")]".contains(*c))?;
    let begins = text.rfind(if close == ')' { '(' } else { '[' })?;
    Some((&text[..begins], split_keys(&text[begins + 1..text.len() - 1])?))
}

/// `Y/n/a`, `y,n,q`, `yes|no|always`, `yes/no/[fingerprint]`: keys with a yes among them.
fn split_keys(text: &str) -> Option<Vec<&str>> {
    let parts: Vec<&str> = text.split(['/', ',', '|']).map(str::trim).collect();
    let is_key = |part: &&str| {
        is_one_of(part, &["yes", "no", "all", "always", "never", "quit", "skip", "edit"])
            || part.starts_with('[') && part.ends_with(']')
            || part.chars().count() == 1 && !part.chars().all(|c| c.is_ascii_digit())
    };
    let says_yes = parts.iter().any(|part| is_one_of(part, &["y", "yes"]));
    (parts.len() >= 2 && parts.iter().all(is_key) && says_yes).then_some(parts)
}

fn is_one_of(word: &str, list: &[&str]) -> bool {
    list.contains(&word.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(screen: &str) -> Option<Menu> {
        found_at(screen, None)
    }

    fn found_at(screen: &str, cursor_row: Option<usize>) -> Option<Menu> {
        menu(&screen.lines().collect::<Vec<_>>(), cursor_row)
    }

    /// The question, the labels with a star at the marked one, and the reason to wait.
    fn describe(screen: &str) -> String {
        let Some(menu) = found(screen) else { return "none".to_owned() };
        let label = |(at, choice): (usize, &Choice)| {
            let star = if menu.marked == Some(at) { "*" } else { "" };
            let key = choice.key.map(|key| format!("{key}=")).unwrap_or_default();
            format!("{star}{key}{}", choice.label)
        };
        let labels: Vec<String> = menu.choices.iter().enumerate().map(label).collect();
        format!("{} | {} | {}", menu.question.clone().unwrap_or_default(), labels.join(", "), menu.why())
    }

    #[test]
    fn a_marked_row_with_aligned_rows_is_a_menu() {
        for (screen, expected) in [
            (
                "? Delete which database? (Use arrow keys)\n » production\n   staging\n   test",
                "Delete which database? (Use arrow keys) | *production, staging, test | question",
            ),
            (
                "Do you want to create a.txt?\n❯ 1. Yes\n  2. Yes, and don't ask again\n  3. No\n\nEsc to cancel",
                "Do you want to create a.txt? | *1=Yes, 2=Yes, and don't ask again, 3=No | permission",
            ),
            (
                "╭──────────────╮\n│ Allow this?  │\n│              │\n│   Allow once │\n│ › Always     │\n│   Reject     │\n╰──────────────╯\n  esc cancel",
                "Allow this? | Allow once, *Always, Reject | permission",
            ),
            (
                "◆  Pick a type\n│  ● TypeScript\n│  ○ JavaScript\n└",
                "Pick a type | *TypeScript, JavaScript | question",
            ),
            (
                "│ Apply this change?                 │\n│ ● 1. Yes, allow once               │\n│   2. No, suggest changes (esc)     │",
                "Apply this change? | *1=Yes, allow once, 2=No, suggest changes (esc) | permission",
            ),
            (
                "Choose:\n> alpha\n  beta\n  gamma\n\n↑/↓ move, enter select",
                "Choose: | *alpha, beta, gamma | question",
            ),
            ("Which?\n❯ ◉ one\n  ◯ two", "Which? | *one, two | question"),
            (
                "Run the command?\n→ 1) Run it\n     with the default shell\n  2) Cancel",
                "Run the command? | *1=Run it, 2=Cancel | permission",
            ),
        ] {
            assert_eq!(describe(screen), expected, "{screen}");
        }
    }

    #[test]
    fn choices_side_by_side_and_keys_in_brackets_are_menus() {
        for (screen, expected) in [
            ("Drop the table? ● Yes / ○ No", "Drop the table? | *Yes, No | permission"),
            (
                "Approve tool call?\nrun_commands\n  $ sleep 6\n [y] Approve   [n] Deny\nmodel (100)   ○ Plan ● Act (Tab)",
                "Approve tool call? | y=Approve, n=Deny | permission",
            ),
            ("◆  Drop the table?\n│  ○ Yes / ● No\n└", "Drop the table? | Yes, *No | permission"),
            ("Execute shell? [Y/n/c/e/a/?]", "Execute shell? | *y=Y, n=n, c=c, e=e, a=a, ?=? | permission"),
            ("Execute shell? [Y/n/c/e/a/?]: ", "Execute shell? | *y=Y, n=n, c=c, e=e, a=a, ?=? | permission"),
            (
                "(1/2) Stage this hunk [y,n,q,a,d,e,?]? ",
                "(1/2) Stage this hunk | y=y, n=n, q=q, a=a, d=d, e=e, ?=? | question",
            ),
            ("Do you like it? (y/N)", "Do you like it? | y=y, *n=N | question"),
            (
                "┃ Permission required\n┃   $ rm a\n┃  Allow once   Allow always   Reject      ctrl+f fullscreen",
                "$ rm a | Allow once, Allow always, Reject | permission",
            ),
            ("Overwrite the file?\n   <Yes>        <No>   ", "Overwrite the file? | Yes, No | permission"),
        ] {
            assert_eq!(describe(screen), expected, "{screen}");
        }
    }

    #[test]
    fn a_permission_is_recognized_in_any_dress() {
        for screen in [
            "bash requests approval\n  rm -r build\n→ [1] Approve once\n  [2] Approve for this session\n  [3] Reject",
            "◆  May the agent call this tool?\n│  ● Allow (only once)\n│  ○ Always\n│  ○ Deny\n└",
            "Run this command?\n  rm -r build\n → Run once (y)\n   Run everything (shift+tab)\n   Skip (esc or n)",
            "  Tool approval\n  rm -r build\n  Continue?\n  ❯ Yes\n    No",
            " > Yes, proceed\n   No\n   Always (don't ask again)",
            "Execute this command? [y/n/c] (y): ",
            "Run git log? [y/n] (n): ",
            "? Run the command? (y/n) › yes",
            "? Allow the update of a.txt? › (Y/n)",
            "Allow this action? Press t to trust the tool. [y/n/t]:\n\n> ",
            "Delete build/? y/n: ",
            "rm -r build\n[E]xecute, [M]odify, [D]escribe, [A]bort: ",
            "Apply the patch? (Y)es/(N)o/(A)lways [Yes]: ",
            "The agent wants to write a.txt\n  y approve · n reject · a always",
            "Permission required\n  rm -r build\n  (y) accept   (n) decline   (esc) cancel",
            "Edit a.txt?\nPress Enter to accept or Esc to reject",
            "┌ Write file ──────┐\n│ Write a.txt?     │\n│ [ Accept ] [ Reject ] │\n└──────────────────┘",
            "Agent wants to run rm\n ▸ Allow\n   Deny\n╭────────────╮\n│ > message  │\n╰────────────╯\n  model · 3%",
        ] {
            assert_eq!(found(screen).map(|menu| menu.why()), Some(Why::Permission), "{screen}");
        }
    }

    #[test]
    fn a_choice_about_something_else_is_a_question() {
        for screen in [
            "Pick a theme\n❯ Dark\n  Light",
            "Do you trust the files in this folder?\n❯ 1. Yes, proceed\n  2. No, exit",
            "Send usage statistics?\n❯ Yes\n  No",
            "A new version is there. Update now?\n❯ Yes\n  No",
            "Are you a robot? [y/n] (n): ",
        ] {
            assert_eq!(found(screen).map(|menu| menu.why()), Some(Why::Question), "{screen}");
        }
    }

    #[test]
    fn a_finder_that_filters_its_choices_is_a_menu() {
        assert_eq!(
            describe("  beta\n> alpha\n  2/2 ────\n> "),
            "none | beta, *alpha | question".replace("none", "")
        );
        assert_eq!(describe("  beta\n▌ alpha\n  2/2\n> al"), " | beta, *alpha | question");
    }

    #[test]
    fn prompts_drafts_transcripts_and_completions_are_no_menus() {
        for screen in [
            "› Explain this codebase\n\n  gpt-5 default · ~/work",
            "────────────\n❯ \n────────────\n  ? for shortcuts",
            "> /mo\n  /model   choose a model\n  /mode    choose a mode",
            "────────\n> /mo\n────────\n❯ /model   choose\n  /mode    choose",
            "❯ fix the bug\n  in the parser\n\n⏺ I will look at it.\n────────────\n❯ \n────────────",
            "> a quotation that is long and that fills the whole row of its terminal, so it goes\n  on here",
            "● I have written the file and run the tests, all\n  of them pass.",
            "⏺ Compiling [1/3]\n",
            "step (3/5)",
            "model (100) $0.00            ○ Plan ● Act (Tab)",
            "either (I/O)",
            "enter to send · esc to interrupt · ctrl+r run",
            "I asked: Approve?\n❯ Yes\n  No\n────────────\n❯ \n────────────",
            "The flag (y/n) of the tool\nis documented.",
            "> ",
            "",
        ] {
            assert_eq!(describe(screen), "none", "{screen}");
        }
        let draft = "› one\n  two\n  three";
        assert_eq!(found_at(draft, Some(2)), None, "the cursor is at the end of a draft");
    }

    #[test]
    fn rows_of_lines_and_blanks_are_furniture() {
        for row in ["", "   ", "────────", "╭──────╮", "│      │", "-----", "=== ==="]
        {
            assert!(is_furniture(row), "{row}");
        }
        for row in ["─ Worked for 3s ─", "│ text │", "> ", "❯", "1"] {
            assert!(!is_furniture(row), "{row}");
        }
    }
}

//! Finds an open menu by its shape: choices below each other or side by side, or keys in brackets after a question.
//!
//! Knows no program and no state. A menu on the screen may still be a list that opened because the user typed, so the caller
//! decides what it means.

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

/// One choice of a menu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The text of the choice, without its mark and number.
    pub label: String,
    /// The key that the screen names for this choice: `2` in `2. No`, `n` in `[y/n]`.
    pub key: Option<char>,
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

const YES: &[&str] = &[
    "yes", "allow", "always", "approve", "accept", "proceed", "run", "execute", "grant", "apply", "confirm",
    "ok", "continue",
];
const NO: &[&str] = &[
    "no", "deny", "reject", "cancel", "skip", "decline", "abort", "never", "don't", "dont", "disallow",
    "block", "stop", "exit", "quit",
];
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
/// These words ask about something else, even where the choices are yes and no.
const NOT_ACTS: &[&str] =
    &["trust", "login", "log", "sign", "theme", "update", "upgrade", "telemetry", "feedback", "rate"];

impl Menu {
    /// The reason to wait that the words of the menu give: a permission if it asks about an action and offers a yes and a no.
    pub fn why(&self) -> Why {
        let begins = |choice: &Choice, list: &[&str]| {
            first_word(&choice.label).is_some_and(|word| list.contains(&word.as_str()))
        };
        let has = |list: &[&str]| self.choices.iter().any(|choice| begins(choice, list));
        let asks = |list: &[&str]| {
            self.question.as_deref().is_some_and(|text| words(text).any(|word| list.contains(&word.as_str())))
        };
        let is_yes_or_no = match self.form {
            MenuForm::Keys => true,
            MenuForm::List | MenuForm::Buttons => has(YES) && has(NO),
        };
        // "Allow once" and "Reject" ask for a permission, whatever the question is. "Yes" and "No" may ask anything.
        let names_act = self
            .choices
            .iter()
            .any(|choice| begins(choice, &["allow", "approve", "execute", "run", "grant", "always"]));
        let speaks_of_act = self
            .choices
            .iter()
            .any(|choice| words(&choice.label).any(|word| word == "ask" || word == "allow"));
        match is_yes_or_no && !asks(NOT_ACTS) && (names_act || speaks_of_act || asks(ACTS)) {
            true => Why::Permission,
            false => Why::Question,
        }
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
    for at in (0..=last).rev() {
        if let Some(menu) = list_at(rows, at, cursor_row) {
            return Some(menu);
        }
        // A prompt below the choices: the choices are a part of the transcript.
        let is_prompt = rows[at].marked(MARKS).is_some() && !is_filter(rows, at);
        below += usize::from(!rows[at].is_empty());
        if is_prompt || below > ROWS_BELOW + MOST_CHOICES {
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
    (!is_completion).then_some(Menu { form: MenuForm::List, question, choices, marked, first_row, last_row })
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
    let has_prompt_below = (last + 1..rows.len()).any(|row| {
        rows[row].marked(MARKS).is_some_and(|(.., text)| number(text).is_none()) && !is_filter(rows, row)
    });
    is_count_right && below.count() <= ROWS_BELOW && !is_draft && !is_paragraph && !has_prompt_below
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

/// The text without signs before its first word.
fn clean(text: &str) -> String {
    let is_sign = |c: char| !c.is_alphanumeric() && !"\"'`$/~.([<".contains(c);
    super::status::one_line(text.trim_start_matches(is_sign))
}

/// Choices side by side, in one of the last rows.
fn buttons(rows: &[Row]) -> Option<Menu> {
    let mut last = rows.iter().enumerate().rev().filter(|(_, row)| !row.is_empty()).take(ROWS_BELOW);
    last.find_map(|(at, row)| {
        let found =
            radio_buttons(&row.text).or_else(|| key_buttons(&row.text)).or_else(|| plain_buttons(&row.text));
        let (choices, marked, before) = found?;
        let question = before.or_else(|| question_above(rows, at));
        Some(Menu { form: MenuForm::Buttons, question, choices, marked, first_row: at, last_row: at })
    })
}

type Line = (Vec<Choice>, Option<usize>, Option<String>);

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
    is_menu.then(|| (choices, marked, Some(clean(before)).filter(|text| !text.is_empty())))
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
    let begins = |choice: &Choice, list: &[&str]| {
        first_word(&choice.label).is_some_and(|word| list.contains(&word.as_str()))
    };
    let is_menu = text.starts_with(['[', '('])
        && choices.len() >= 2
        && choices.iter().any(|choice| begins(choice, YES))
        && choices.iter().any(|choice| begins(choice, NO));
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
    [at, Some(last)].into_iter().flatten().find_map(|at| keys_at(rows, at))
}

fn keys_at(rows: &[Row], at: usize) -> Option<Menu> {
    let text = rows[at].text.trim_end().trim_end_matches([':', '?', '>']).trim_end();
    let close = text.chars().last().filter(|c| ")]".contains(*c))?;
    let open = if close == ')' { '(' } else { '[' };
    let begins = text.rfind(open)?;
    let inside = &text[begins + 1..text.len() - 1];
    let parts: Vec<&str> = inside.split(['/', ',', '|']).map(str::trim).collect();
    let is_key = |part: &&str| {
        let is_word = ["yes", "no", "all", "always", "never", "quit", "skip", "edit"]
            .contains(&part.to_lowercase().as_str());
        is_word || part.chars().count() == 1 && !part.chars().all(|c| c.is_ascii_digit())
    };
    let says_yes = parts.iter().any(|part| ["y", "yes"].contains(&part.to_lowercase().as_str()));
    if parts.len() < 2 || !parts.iter().all(is_key) || !says_yes {
        return None;
    }
    let is_default = |part: &&str| part.chars().next().is_some_and(char::is_uppercase);
    let marked = parts
        .iter()
        .position(&is_default)
        .filter(|_| parts.iter().filter(|part| is_default(part)).count() == 1);
    let choice = |part: &&str| Choice {
        label: (*part).to_owned(),
        key: part.chars().next().map(|c| c.to_ascii_lowercase()),
    };
    let before = clean(text[..begins].trim());
    let question = Some(before).filter(|text| !text.is_empty()).or_else(|| question_above(rows, at));
    let choices = parts.iter().map(choice).collect();
    Some(Menu { form: MenuForm::Keys, question, choices, marked, first_row: at, last_row: at })
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let is_letter = |c: char| c.is_alphanumeric() || c == '\'';
    text.split(move |c: char| !is_letter(c)).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

fn first_word(text: &str) -> Option<String> {
    words(text).next()
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

//! Finds choices in one row that name their keys: `[E]xecute, [A]bort`, `y approve · n reject`, `Enter to allow, Esc to deny`.
//!
//! A row counts only with a yes and a no. Footers name keys too, so the no must refuse something: `cancel` and `stop` may be hints.

use super::choice::{Choice, Line, NO, YES, begins_with};

/// A yes that a footer does not name.
const AGREES: &[&str] = &[
    "yes", "allow", "approve", "accept", "execute", "always", "grant", "permit", "confirm", "proceed", "run",
];
/// A no that a footer does not name.
const REFUSES: &[&str] = &["no", "deny", "reject", "decline", "refuse", "disallow", "abort", "skip", "never"];
/// Keys with a name.
const KEYS: &[&str] = &[
    "enter",
    "return",
    "esc",
    "escape",
    "tab",
    "space",
    "shift+tab",
    "↵",
    "⏎",
    "⇥",
    "del",
    "delete",
    "backspace",
];

/// `[E]xecute, [D]escribe, [A]bort:`, `(Y)es/(N)o/(A)lways`: the key is the letter of the word that is in brackets.
pub(super) fn letter_words(text: &str) -> Option<Line> {
    let begins = find_letter(text)?;
    let (before, mut rest) = text.split_at(begins);
    let mut choices = Vec::new();
    while let Some((key, after)) = letter(rest) {
        let end = find_letter(after).unwrap_or(after.len());
        let is_separator = |c: char| c.is_whitespace() || ",/|·•:;?>".contains(c);
        let label = format!("{key}{}", after[..end].split("  ").next().unwrap_or_default());
        let label = label.trim_end_matches(is_separator).to_owned();
        choices.push(Choice { label, key: Some(key.to_ascii_lowercase()) });
        rest = &after[end..];
    }
    let has = |list: &[&str]| choices.iter().any(|choice| begins_with(&choice.label, list));
    let is_answered = choices.iter().any(|choice| choice.label.contains(':'));
    (choices.len() >= 2 && has(YES) && has(NO) && !is_answered)
        .then(|| (choices, None, Some(before.to_owned())))
}

/// `Run it? 1) yes 2) no 3) always`: the key is the number before its words.
pub(super) fn numbered_words(text: &str) -> Option<Line> {
    let (before, mut rest) = text.split_at(find_number(text, 1)?);
    let mut choices = Vec::new();
    while let Some(after) = number(rest, choices.len() as u32 + 1) {
        let end = find_number(after, choices.len() as u32 + 2).unwrap_or(after.len());
        let label = after[..end].trim().trim_end_matches([',', '/', '|', ':', '?']).trim().to_owned();
        choices.push(Choice { label, key: char::from_digit(choices.len() as u32 + 1, 10) });
        rest = &after[end..];
    }
    let has = |list: &[&str]| choices.iter().any(|choice| begins_with(&choice.label, list));
    (choices.len() >= 2 && has(YES) && has(NO)).then(|| (choices, None, Some(before.to_owned())))
}

fn find_number(text: &str, wanted: u32) -> Option<usize> {
    let begins = |at: usize| at == 0 || text[..at].ends_with(|c: char| c.is_whitespace() || c == '(');
    text.char_indices().map(|(at, _)| at).find(|at| begins(*at) && number(&text[*at..], wanted).is_some())
}

/// The text behind `2)`, `2.`, `2:` or `[2]` at the beginning.
fn number(text: &str, wanted: u32) -> Option<&str> {
    let text = text.strip_prefix('[').unwrap_or(text);
    let digit = char::from_digit(wanted, 10)?;
    text.strip_prefix(digit)?.strip_prefix([')', '.', ':', ']']).filter(|rest| rest.starts_with(' '))
}

fn find_letter(text: &str) -> Option<usize> {
    text.char_indices().find(|(at, c)| "[(".contains(*c) && letter(&text[*at..]).is_some()).map(|(at, _)| at)
}

/// The letter in brackets at the beginning of the text, and the rest of its word.
fn letter(text: &str) -> Option<(char, &str)> {
    let mut chars = text.chars();
    chars.next().filter(|c| "[(".contains(*c))?;
    let key = chars.next().filter(char::is_ascii_alphabetic)?;
    chars.next().filter(|c| ")]".contains(*c))?;
    let rest = chars.as_str();
    rest.starts_with(|c: char| c.is_ascii_lowercase()).then_some((key, rest))
}

/// `y approve · n reject`, `y: yes, n: no`, `Press Enter to allow or Esc to deny`: each key is before its word.
pub(super) fn key_words(text: &str) -> Option<Line> {
    let text = text.replace(" or ", "  ");
    let parts =
        text.split(['•', '·', '|', '│', ',', ';', '∙']).flat_map(|part| part.split("  ")).map(str::trim);
    let choices: Vec<Choice> = parts.filter(|part| !part.is_empty()).filter_map(key_and_word).collect();
    let has = |list: &[&str]| choices.iter().any(|choice| begins_with(&choice.label, list));
    (choices.len() >= 2 && has(AGREES) && has(REFUSES)).then_some((choices, None, None))
}

fn key_and_word(part: &str) -> Option<Choice> {
    let (first, rest) = part.split_once(|c: char| c.is_whitespace() || "=:".contains(c))?;
    if ["press", "hit", "type", "use"].contains(&first.to_lowercase().as_str()) {
        return key_and_word(rest.trim_start());
    }
    let name = first.trim_matches(|c: char| "[]()<>'\"`".contains(c)).to_lowercase();
    let mut chars = name.chars();
    let key = chars.next().filter(|c| chars.next().is_none() && c.is_ascii_alphanumeric());
    let is_chord = ["ctrl+", "ctrl-", "alt+", "shift+", "⌃"].iter().any(|chord| name.starts_with(chord));
    if key.is_none() && !is_chord && !KEYS.contains(&name.as_str()) {
        return None;
    }
    let label = rest.trim_start_matches(|c: char| c.is_whitespace() || "=:-–→".contains(c));
    let label = label.strip_prefix("to ").unwrap_or(label).trim();
    (!label.is_empty()).then(|| Choice { label: label.to_owned(), key })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(line: Option<Line>) -> String {
        let Some((choices, ..)) = line else { return "none".to_owned() };
        let label = |choice: &Choice| match choice.key {
            Some(key) => format!("{key}={}", choice.label),
            None => choice.label.clone(),
        };
        choices.iter().map(label).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_letter_in_brackets_is_the_key_of_its_word() {
        for (row, expected) in [
            ("[E]xecute, [M]odify, [A]bort: ", "e=Execute, m=Modify, a=Abort"),
            ("Apply the patch? (Y)es/(N)o/(A)lways [Yes]:", "y=Yes, n=No, a=Always [Yes]"),
            ("[A]pprove once   [S]ession   [D]eny", "a=Approve once, s=Session, d=Deny"),
            ("Apply the patch? (Y)es/(N)o [Yes]: y", "none"),
            ("function(s) and class(es)", "none"),
            ("[E]dit, [S]ave", "none"),
        ] {
            assert_eq!(describe(letter_words(row)), expected, "{row}");
        }
    }

    #[test]
    fn a_number_is_before_its_words() {
        for (row, expected) in [
            ("Execute this? 1) yes 2) no 3) always", "1=yes, 2=no, 3=always"),
            ("[1] Yes, once  [2] No, stop:", "1=Yes, once, 2=No, stop"),
            ("1) alpha 2) beta", "none"),
            ("2) no 3) yes", "none"),
        ] {
            assert_eq!(describe(numbered_words(row)), expected, "{row}");
        }
    }

    #[test]
    fn a_key_is_before_its_word() {
        for (row, expected) in [
            ("y approve · n reject · a always", "y=approve, n=reject, a=always"),
            ("(y) accept   (n) decline   (esc) cancel", "y=accept, n=decline, cancel"),
            ("Press Enter to allow or Esc to deny", "allow, deny"),
            ("y: yes, n: no", "y=yes, n=no"),
            ("ctrl+y approve  ctrl+n reject", "approve, reject"),
            ("enter to send · esc to cancel", "none"),
            ("ctrl+r run  esc to stop", "none"),
            ("I run it, no problem", "none"),
        ] {
            assert_eq!(describe(key_words(row)), expected, "{row}");
        }
    }
}

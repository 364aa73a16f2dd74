//! Writes values as YAML that every reader reads back as the same text.
//!
//! A value is plain if no reader can misread it, otherwise in double quotes with escapes.

use std::fmt::Write;

pub(super) fn scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quote(text) }
}

/// A list in the form of JSON, which is YAML too.
pub(super) fn list(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| quote(item)).collect();
    format!("[{}]", items.join(", "))
}

fn is_plain(text: &str) -> bool {
    // Numbers, times and symbols never begin with a letter. These words do, and old readers read them as booleans.
    const TAKEN: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '@' | '+'))
        && !TAKEN.iter().any(|word| word.eq_ignore_ascii_case(text))
}

fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    text.chars().for_each(|c| push_escaped(&mut out, c));
    out.push('"');
    out
}

fn push_escaped(out: &mut String, c: char) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if is_unsafe(c) => {
            // Writing to a String cannot fail.
            write!(out, "\\u{:04x}", u32::from(c)).unwrap_or_default();
        }
        c => out.push(c),
    }
}

/// Whether YAML cannot print the character, or some readers take it for a line end.
fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

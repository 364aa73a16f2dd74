//! Finds what looks like a secret in a text, and masks it: tokens with known beginnings, values of names such as
//! `API_KEY`, passwords in addresses, private keys, and long random words.
//!
//! A secret that looks like an ordinary word cannot be found.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// Stands for the end of a row that goes on in the next one, so that a token on two rows is found.
const WRAPPED: char = '\u{e000}';
/// Every masked character becomes this one, so that a screen keeps its shape.
const MASK: char = '*';

/// In each pattern the last group that matched is the secret; without a group, it is the whole match.
const PATTERNS: [&str; 8] = [
    r"\b(?:sk|pk|rk|glpat|gsk|xox[a-z]|npm|hf|dop_v1|shpat)[-_][A-Za-z0-9_~-]{8,}",
    r"\b(?:gh[a-z]_|github_pat_|AKIA|ASIA|AIza)[A-Za-z0-9_~-]{8,}",
    r"\beyJ[A-Za-z0-9_~-]{8,}(?:\.[A-Za-z0-9_~-]+)*",
    r"(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{8,})",
    r#"(?i)(?:key|token|secret|passw(?:or)?d|passphrase|passcode|credential)[A-Z0-9_.-]*["']?\s*[=:]\s*("[^"\n]*"|'[^'\n]*'|\S+)"#,
    r"://[^/\s:@]*:([^@\s/]+)@",
    r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----(.*?)(?:-----END|\z)",
    r"[A-Za-z0-9+_~-]{32,}={0,2}",
];

static SECRETS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = PATTERNS.iter().map(|pattern| pattern.replace('~', &WRAPPED.to_string()));
    patterns.filter_map(|pattern| Regex::new(&pattern).ok()).collect()
});

/// The text with its secrets masked.
pub fn mask(text: &str) -> String {
    mask_ranges(text, &secrets_in(text))
}

/// The rows of a screen with their secrets masked. A row that fills the width goes on in the next one.
pub fn mask_rows(rows: &[&str], columns: usize) -> String {
    let mut text = String::new();
    for row in rows {
        text.push_str(row);
        text.push(if row.chars().count() >= columns { WRAPPED } else { '\n' });
    }
    let masked = mask_ranges(&text, &secrets_in(&text));
    // A mask must not hide where a row ends.
    let ends = text.chars().zip(masked.chars());
    ends.map(|(c, masked)| if c == WRAPPED { '\n' } else { masked }).collect()
}

/// Output of a program with its secrets masked, also where escape sequences are in the middle of a secret.
pub fn mask_output(output: &str) -> String {
    let (mut plain, mut places) = (String::new(), Vec::new());
    for (at, c) in visible(output) {
        places.extend(std::iter::repeat_n(at, c.len_utf8()));
        plain.push(c);
    }
    let place = |range: Range<usize>| places[range].iter().map(|at| *at..at + 1).collect::<Vec<_>>();
    let mut ranges: Vec<Range<usize>> = secrets_in(&plain).into_iter().flat_map(place).collect();
    ranges.extend(secrets_in(output));
    mask_ranges(output, &ranges)
}

fn secrets_in(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (pattern, expression) in PATTERNS.iter().zip(SECRETS.iter()) {
        for captures in expression.captures_iter(text) {
            let Some(secret) = captures.iter().flatten().last() else { continue };
            let has = |is: fn(&char) -> bool| secret.as_str().chars().any(|c| is(&c));
            // Long words without a digit are names and lines of dashes.
            let is_random = has(char::is_ascii_digit) && has(char::is_ascii_alphabetic);
            if !pattern.starts_with("[A-Za-z0-9+_~-]{32") || is_random {
                found.push(secret.range());
            }
        }
    }
    found
}

/// Masks every character that begins in one of the ranges.
fn mask_ranges(text: &str, ranges: &[Range<usize>]) -> String {
    let mut is_secret = vec![false; text.len()];
    for range in ranges {
        is_secret[range.clone()].fill(true);
    }
    let masked = |(at, c): (usize, char)| if is_secret[at] && !c.is_control() { MASK } else { c };
    text.char_indices().map(masked).collect()
}

/// The characters that a terminal shows, with their places: without escape sequences.
fn visible(output: &str) -> Vec<(usize, char)> {
    let mut shown = Vec::new();
    let mut chars = output.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match (c, chars.peek().map(|(_, next)| *next)) {
            ('\u{1b}', Some('[')) => {
                chars.next();
                while chars.next().is_some_and(|(_, c)| !('@'..='~').contains(&c)) {}
            }
            ('\u{1b}', Some(']' | 'P' | '_' | '^' | 'X')) => {
                while chars.next_if(|(_, c)| !matches!(c, '\u{7}' | '\u{1b}')).is_some() {}
            }
            ('\u{1b}', _) => drop(chars.next()),
            (c, _) if c.is_control() && c != '\n' => {}
            _ => shown.push((at, c)),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_valid() {
        assert_eq!(SECRETS.len(), PATTERNS.len());
    }

    #[test]
    fn secrets_are_masked_and_the_rest_stays() {
        for (text, secret) in [
            ("use sk-ant-api03-abcDEF123 now", "sk-ant-api03-abcDEF123"),
            ("ghp_0123456789abcdefABCDEF", "ghp_0123456789abcdefABCDEF"),
            ("id AKIAIOSFODNN7EXAMPLE.", "AKIAIOSFODNN7EXAMPLE"),
            ("Authorization: Bearer abc.def-123=", "abc.def-123="),
            ("export OPENAI_API_KEY=hunter2", "hunter2"),
            ("{\"password\": \"open sesame\"}", "\"open sesame\""),
            ("DB_PASSWORD: x y", "x"),
            ("https://me:pa55@example.com/", "pa55"),
            ("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"),
        ] {
            let expected = text.replacen(secret, &"*".repeat(secret.len()), 1);
            assert_eq!(mask(text), expected);
        }
        for plain in [
            "fix the login",
            "press any key to continue",
            "a-very-long-name-of-a-branch-for-a-task",
            "──────────────",
        ] {
            assert_eq!(mask(plain), plain);
        }
    }

    #[test]
    fn a_token_on_two_rows_or_between_escape_sequences_is_masked() {
        assert_eq!(
            mask_rows(&["key sk-abcdefgh", "ijklm done", "end"], 15),
            "key ***********\n***** done\nend\n"
        );
        let output = "\u{1b}[1msk-\u{1b}[0mabcd\u{1b}[3Cefgh\u{1b}[K done\u{1b}]0;title\u{7}\r\n";
        let masked = "\u{1b}[1m***\u{1b}[0m****\u{1b}[3C****\u{1b}[K done\u{1b}]0;title\u{7}\r\n";
        assert_eq!(mask_output(output), masked);
        let key = "-----BEGIN PRIVATE KEY-----\nabc\ndef\n-----END PRIVATE KEY-----";
        assert!(!mask(key).contains("abc") && !mask(key).contains("def"));
    }
}

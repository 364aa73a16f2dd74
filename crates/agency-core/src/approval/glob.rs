//! Patterns: `*` matches any text, `?` matches one character, `\` quotes the next character.

/// Whether the pattern fits the whole text. Wildcards match only characters that are `free`.
pub(super) fn fits(pattern: &str, text: &str, free: impl Fn(char) -> bool) -> bool {
    let text: Vec<char> = text.chars().collect();
    // At index i: whether the pattern so far can match the first i characters.
    let mut ends = vec![false; text.len() + 1];
    ends[0] = true;
    let mut pattern = pattern.chars();
    while let Some(c) = pattern.next() {
        ends = match c {
            '*' => match_any(&ends, &text, &free),
            '?' => match_one(&ends, &text, &free),
            '\\' => {
                let literal = pattern.next().unwrap_or('\\');
                match_one(&ends, &text, |c| c == literal)
            }
            literal => match_one(&ends, &text, |c| c == literal),
        };
    }
    ends[text.len()]
}

fn match_one(ends: &[bool], text: &[char], takes: impl Fn(char) -> bool) -> Vec<bool> {
    let mut next = vec![false; ends.len()];
    for (at, c) in text.iter().enumerate() {
        next[at + 1] = ends[at] && takes(*c);
    }
    next
}

fn match_any(ends: &[bool], text: &[char], takes: impl Fn(char) -> bool) -> Vec<bool> {
    let mut next = ends.to_vec();
    for (at, c) in text.iter().enumerate() {
        next[at + 1] |= next[at] && takes(*c);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_fit_whole_texts() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "x", false),
            ("*", "", true),
            ("*", "anything; at all", true),
            ("a*c", "abc", true),
            ("a*c", "abcd", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*b*b*", "abcb", true),
            ("*b*b*", "abc", false),
            ("ä*ü", "ä ö ü", true),
            (r"\*", "*", true),
            (r"\*", "x", false),
            (r"a\", r"a\", true),
            ("[a]", "[a]", true),
            ("[a]", "a", false),
        ] {
            assert_eq!(fits(pattern, text, |_| true), expected, "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn a_character_that_is_not_free_must_be_spelled_out() {
        let free = |c: char| c != ';';
        assert!(fits("a*", "a b", free));
        assert!(!fits("a*", "a; b", free));
        assert!(fits("a*;*", "a; b", free));
        assert!(!fits("a*;*", "a; b; c", free));
        assert!(!fits("a?b", "a;b", free));
        assert!(fits("*;a*", "x;a", free));
    }
}

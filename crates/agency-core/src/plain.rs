//! Turns text from agents into one line that is safe to show on a terminal or a desktop.

/// Removes control characters and characters that change the writing direction, joins the lines, and keeps at most `longest`
/// characters.
pub fn one_line(text: &str, longest: usize) -> String {
    let turns =
        |c: &char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let plain: String =
        text.chars().filter(|c| !turns(c)).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_printable_text_of_an_agent_reaches_a_terminal() {
        let evil = "a\x1b]0;x\x07\u{9b}31m\u{202e}b\r\nc\u{85}d\u{2028}e\0";
        assert_eq!(one_line(evil, 100), "a ]0;x 31mb c d e");
        assert_eq!(one_line("a\n\u{1b}[31m b\u{7}", 100), "a [31m b");
        assert_eq!(one_line(&"é".repeat(1000), 10).chars().count(), 11);
    }
}

//! Shows the line of an error, with a mark under the position.

use std::ops::Range;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::problem::Position;

/// Columns of a line that are shown. A longer line is cut on both sides of the position.
const WIDEST: usize = 100;

/// Columns that stay visible left of the position in a cut line.
const BEFORE: usize = 40;

/// Two lines, without a line end:
/// ```text
///   3 | max_agents = "ten"
///     |              ^^^^^
/// ```
pub(super) fn excerpt(text: &str, position: &Position, span: Range<usize>) -> String {
    let line = text.split('\n').nth(position.line - 1).unwrap_or("").trim_end_matches('\r');
    let line = line.replace('\t', " ");
    let before: String = line.chars().take(position.column - 1).collect();
    let marked = text.get(span).map_or(0, |marked| marked.lines().next().unwrap_or("").width());
    let skipped = before.width().saturating_sub(BEFORE).min(line.width().saturating_sub(WIDEST));
    let (shown, cut) = window(&line, skipped);
    let shift = before.width().saturating_sub(skipped) + if skipped > 0 { 1 } else { 0 };
    let mark = "^".repeat(marked.clamp(1, WIDEST.saturating_sub(shift).max(1)));
    let number = position.line.to_string();
    let margin = " ".repeat(number.len());
    let tail = if cut { "…" } else { "" };
    format!("  {number} | {shown}{tail}\n  {margin} | {}{mark}", " ".repeat(shift))
}

/// The part of a line after the first `skipped` columns, and whether the line goes on after that.
fn window(line: &str, skipped: usize) -> (String, bool) {
    let mut column = 0;
    let mut shown = if skipped > 0 { "…".to_owned() } else { String::new() };
    for c in line.chars() {
        if column >= skipped + WIDEST {
            return (shown, true);
        }
        if column >= skipped {
            shown.push(c);
        }
        column += c.width().unwrap_or(0);
    }
    (shown, false)
}

#[cfg(test)]
mod tests {
    use crate::config::parse;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(parse(text, "c.toml").expect_err(text).excerpt.as_ref(), expected);
    }

    #[test]
    fn the_mark_is_under_the_position() {
        check("a = 1\nmax_agents = \"ten\"\n", "  2 | max_agents = \"ten\"\n    |              ^^^^^");
        check("\tscrollback\t= true # ü\r\n", "  1 |  scrollback = true # ü\n    |               ^^^^");
        check("[agents.x]\nstart = [\"漢字\", 5]", "  2 | start = [\"漢字\", 5]\n    |                  ^");
        check("max_agents =", "  1 | max_agents =\n    |             ^");
    }

    #[test]
    fn a_long_line_is_cut_around_the_position() {
        let filler = "x".repeat(200);
        let text = format!("default_agent = \"{filler}\\q{filler}\"");
        let shown = parse(&text, "c.toml").expect_err("no such escape").excerpt;
        let (line, mark) = shown.split_once('\n').expect("two lines");
        let at = mark.chars().position(|c| c == '^').expect("a mark");
        assert!(line.chars().count() <= 110 && line.ends_with("x…"), "{shown}");
        assert!(matches!(line.chars().nth(at), Some('\\' | 'q')), "{shown}");
    }
}

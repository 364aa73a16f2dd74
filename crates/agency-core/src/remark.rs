//! Remarks of the user about a task's work, and how a remark follows its line while the agent edits the file.
//!
//! Not here: files and patches. The caller passes the lines, each with its number.

use serde::{Deserialize, Serialize};

/// This many lines before and after the line are its context.
const CONTEXT: usize = 3;

/// A line of the context counts if it is at most this many lines away: the agent may have inserted others.
const NEARBY: usize = 6;

/// Minified files have lines of many megabytes.
const LONGEST_TEXT: usize = 400;

/// A remark of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// Its number among the remarks of the task.
    pub id: u64,
    /// The file that it is about, relative to the workspace. `None`: the whole change.
    pub file: Option<String>,
    /// The line that it is about. `None`: the whole file.
    pub anchor: Option<Anchor>,
    /// The user's words.
    pub text: String,
    /// When the user made it, in RFC 3339.
    pub time: String,
    /// Whether the agent has it.
    pub delivery: Delivery,
}

/// Whether a remark is on its way to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// It was not sent.
    Open,
    /// The daemon was about to queue it in the message with this number.
    Leaving(u64),
    /// It was queued or delivered at this time, in RFC 3339.
    Sent(String),
}

/// The side of a diff on which a line is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// A line of the present file.
    #[default]
    New,
    /// A line that the work removed.
    Old,
}

/// A line of a file, with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedLine {
    /// The number, from 1.
    pub number: u64,
    /// The text, without the end of the line.
    pub text: String,
}

/// A line of a diff, with enough of its surroundings to find it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// The side of the diff.
    pub side: Side,
    /// The number that the line had.
    pub line: u64,
    /// The beginning of the line.
    pub text: String,
    before: Vec<String>,
    after: Vec<String>,
    /// No other line of the file had this text.
    is_only: bool,
}

/// Where a remark is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedRemark {
    /// The remark.
    pub remark: Remark,
    /// The present number of its line, or the last known one.
    pub line: Option<u64>,
    /// Its line is gone.
    pub is_outdated: bool,
}

/// All lines of a text, from number 1.
pub fn number_lines(text: &str) -> Vec<NumberedLine> {
    let line = |(number, text): (u64, &str)| NumberedLine { number, text: text.to_owned() };
    (1..).zip(text.lines()).map(line).collect()
}

impl Anchor {
    /// The line with this number. `None`: there is no such line.
    pub fn at(side: Side, lines: &[NumberedLine], number: u64) -> Option<Anchor> {
        let at = lines.iter().position(|line| line.number == number)?;
        let copy = |lines: &[NumberedLine]| lines.iter().map(|line| shorten(&line.text).to_owned()).collect();
        let text = &lines[at].text;
        Some(Anchor {
            side,
            line: number,
            text: shorten(text).to_owned(),
            before: copy(&lines[at.saturating_sub(CONTEXT)..at]),
            after: copy(&lines[at + 1..lines.len().min(at + 1 + CONTEXT)]),
            is_only: lines.iter().filter(|line| is_same(&line.text, text)).count() == 1,
        })
    }

    /// The line that the user saw as `text` with this number, also if it has moved or disappeared since.
    pub fn from_seen_line(side: Side, lines: &[NumberedLine], number: u64, text: &str) -> Anchor {
        let shortened = shorten(text).to_owned();
        let (before, after) = (Vec::new(), Vec::new());
        let seen = Anchor { side, line: number, text: shortened, before, after, is_only: true };
        seen.find(lines).and_then(|found| Anchor::at(side, lines, found)).unwrap_or(seen)
    }

    /// The present number of the line. `None`: the line is gone.
    ///
    /// Of several lines with the same text, the one with the most context in common is meant, then the nearest. If the
    /// text alone does not tell the line, half of its context must still be around it.
    pub fn find(&self, lines: &[NumberedLine]) -> Option<u64> {
        let candidates = (0..lines.len()).filter(|at| is_same(&lines[*at].text, &self.text));
        let rank = |at: usize| {
            (self.common_context(lines, at), std::cmp::Reverse(lines[at].number.abs_diff(self.line)))
        };
        let best = candidates.max_by_key(|at| rank(*at))?;
        let is_telling = self.is_only && has_word(&self.text);
        let known = self.before.iter().chain(&self.after).filter(|line| has_word(line)).count();
        (is_telling || 2 * self.common_context(lines, best) >= known).then(|| lines[best].number)
    }

    fn common_context(&self, lines: &[NumberedLine], at: usize) -> usize {
        let before = &lines[at.saturating_sub(NEARBY)..at];
        let after = &lines[at + 1..lines.len().min(at + 1 + NEARBY)];
        count_common(&self.before, before) + count_common(&self.after, after)
    }
}

fn count_common(known: &[String], lines: &[NumberedLine]) -> usize {
    let is_there = |text: &&String| has_word(text) && lines.iter().any(|line| is_same(&line.text, text));
    known.iter().filter(is_there).count()
}

/// Whether two lines are the same apart from their indentation, which changes when the agent wraps a block.
fn is_same(one: &str, other: &str) -> bool {
    shorten(one).trim() == shorten(other).trim()
}

fn has_word(line: &str) -> bool {
    line.contains(char::is_alphanumeric)
}

fn shorten(line: &str) -> &str {
    &line[..line.floor_char_boundary(LONGEST_TEXT)]
}

impl Remark {
    /// Where the remark is now. `lines` are those of its file and side; `None` if they are not known now.
    pub fn place(self, lines: Option<&[NumberedLine]>) -> PlacedRemark {
        let last = self.anchor.as_ref().map(|anchor| anchor.line);
        let found = match (&self.anchor, &self.delivery, lines) {
            (Some(anchor), Delivery::Open, Some(lines)) => anchor.find(lines),
            _ => last,
        };
        PlacedRemark { line: found.or(last), is_outdated: found.is_none() && last.is_some(), remark: self }
    }
}

/// One message to the agent with all remarks.
pub fn format_message(remarks: &[PlacedRemark]) -> String {
    let mut out = String::from("I have reviewed your work. Please address these remarks:\n");
    for placed in remarks {
        out.push('\n');
        out.push_str(&format_place(placed));
        out.push_str(&placed.remark.text);
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}

fn format_place(placed: &PlacedRemark) -> String {
    let Some(file) = &placed.remark.file else { return "About the whole change:\n".to_owned() };
    let (Some(anchor), Some(line)) = (&placed.remark.anchor, placed.line) else { return format!("{file}\n") };
    let note = match (placed.is_outdated, anchor.side) {
        (true, _) => " (the line has changed since)",
        (false, Side::Old) => " (a removed line)",
        (false, Side::New) => "",
    };
    format!("{file}:{line}{note}\n> {}\n", anchor.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "fn one() {\n    open();\n    close();\n}\n\nfn two() {\n    open();\n    write();\n}\n";

    fn anchor(text: &str, line: u64) -> Anchor {
        Anchor::at(Side::New, &number_lines(text), line).unwrap()
    }

    #[track_caller]
    fn check(line: u64, after: &str, found: Option<u64>) {
        assert_eq!(anchor(FILE, line).find(&number_lines(after)), found, "{after}");
    }

    #[test]
    fn a_line_that_moved_is_found() {
        check(3, FILE, Some(3));
        check(3, &format!("use std::fs;\n\n{FILE}"), Some(5));
        check(8, "    write();\nfn other() {}\n", Some(1));
        check(3, &FILE.replace("    close();", "    if done {\n        close();\n    }"), Some(4));
    }

    #[test]
    fn a_line_that_changed_or_is_deleted_is_gone() {
        check(3, &FILE.replace("close()", "finish()"), None);
        check(3, &FILE.replace("    close();\n", ""), None);
        check(3, "", None);
        assert_eq!(Anchor::at(Side::New, &number_lines(FILE), 10), None);
    }

    #[test]
    fn of_duplicate_lines_the_one_with_its_context_is_found() {
        check(2, FILE, Some(2));
        check(7, FILE, Some(7));
        check(7, &format!("fn zero() {{\n    open();\n}}\n\n{FILE}"), Some(11));
        let without_second = FILE.replace("fn two() {\n    open();\n    write();\n}\n", "");
        check(7, &without_second, None);
        let without_first = "fn two() {\n    open();\n    write();\n}\n";
        check(2, without_first, None);
        check(9, "}\n}\n", None);
    }

    #[test]
    fn of_equal_candidates_the_nearest_is_found() {
        let lines = number_lines("x\na\nx\na\nx\na\nx\na\nx\n");
        let anchor = Anchor::at(Side::New, &lines, 6).unwrap();
        assert_eq!(anchor.find(&lines), Some(6));
    }

    #[test]
    fn a_line_that_the_user_saw_is_found_where_it_is_now() {
        let moved = number_lines(&format!("// new\n{FILE}"));
        assert_eq!(Anchor::from_seen_line(Side::New, &moved, 8, "    write();").line, 9);
        let gone = Anchor::from_seen_line(Side::New, &moved, 8, "    erase();");
        assert_eq!((gone.line, gone.find(&moved)), (8, None));
    }

    #[test]
    fn very_long_lines_are_compared_by_their_beginning() {
        let long = "ä".repeat(LONGEST_TEXT);
        let anchor = anchor(&long, 1);
        assert!(anchor.text.len() <= LONGEST_TEXT);
        assert_eq!(anchor.find(&number_lines(&format!("a\n{long}"))), Some(2));
    }

    fn remark(file: Option<&str>, anchor: Option<Anchor>, text: &str) -> Remark {
        let (file, text) = (file.map(str::to_owned), text.to_owned());
        Remark { id: 1, file, anchor, text, time: "t".to_owned(), delivery: Delivery::Open }
    }

    #[test]
    fn only_open_remarks_on_lines_can_be_outdated() {
        let on_line = remark(Some("a.rs"), Some(anchor(FILE, 3)), "why?");
        let place = |remark: &Remark, lines: Option<&[NumberedLine]>| {
            let placed = remark.clone().place(lines);
            (placed.line, placed.is_outdated)
        };
        assert_eq!(place(&on_line, Some(&[])), (Some(3), true), "the file was deleted");
        assert_eq!(place(&on_line, None), (Some(3), false), "the workspace is not there");
        let sent = Remark { delivery: Delivery::Sent("t".to_owned()), ..on_line };
        assert_eq!(place(&sent, Some(&[])), (Some(3), false));
        assert_eq!(place(&remark(Some("a.rs"), None, "hm"), Some(&[])), (None, false));
    }

    #[test]
    fn one_message_has_all_remarks() {
        let old = Anchor { side: Side::Old, ..anchor(FILE, 2) };
        let lines = number_lines(FILE);
        let remarks = [
            remark(None, None, "Well done.").place(None),
            remark(Some("logo.png"), None, "too large").place(Some(&[])),
            remark(Some("a.rs"), Some(anchor(FILE, 3)), "why?\nreally").place(Some(&lines)),
            remark(Some("a.rs"), Some(old), "keep it").place(None),
            remark(Some("b.rs"), Some(anchor(FILE, 3)), "no").place(Some(&[])),
        ];
        assert_eq!(
            format_message(&remarks),
            "\
I have reviewed your work. Please address these remarks:

About the whole change:
Well done.

logo.png
too large

a.rs:3
>     close();
why?
really

a.rs:2 (a removed line)
>     open();
keep it

b.rs:3 (the line has changed since)
>     close();
no"
        );
    }
}

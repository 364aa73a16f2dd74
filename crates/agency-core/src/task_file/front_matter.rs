//! Finds the lines between the two `---`, and replaces those of one key.
//!
//! Knows nothing of what the keys mean.

use super::entry::{self, Entry, byte_of, without_line_end};
use super::{TaskFileError, TaskFileProblem};

const BOM: &str = "\u{feff}";

/// The head (front matter and its `---` lines) and the body.
pub(super) fn split(bytes: &[u8]) -> Result<(&str, &[u8]), TaskFileError> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    if !is_fence(first.strip_prefix(BOM.as_bytes()).unwrap_or(first)) {
        return Err(TaskFileProblem::NoFrontMatter.at(1));
    }
    let mut end = first.len();
    for (number, line) in lines.enumerate() {
        let text = std::str::from_utf8(line).map_err(|_| TaskFileProblem::NotUtf8.at(number + 2))?;
        if without_line_end(text).contains('\r') {
            return Err(TaskFileProblem::LoneCarriageReturn.at(number + 2));
        }
        end += line.len();
        if is_fence(line) {
            let head = std::str::from_utf8(&bytes[..end]).map_err(|_| TaskFileProblem::NotUtf8.at(1))?;
            return Ok((head, &bytes[end..]));
        }
    }
    Err(TaskFileProblem::Unclosed.at(1))
}

fn is_fence(line: &[u8]) -> bool {
    line.strip_prefix(b"---").is_some_and(|rest| rest.iter().all(u8::is_ascii_whitespace))
}

/// Opening fence, lines in between, closing fence.
fn parts(head: &str) -> (&str, Vec<&str>, &str) {
    let mut lines: Vec<&str> = head.split_inclusive('\n').collect();
    let close = lines.pop().unwrap_or_default();
    if lines.is_empty() {
        return (close, lines, "");
    }
    let open = lines.remove(0);
    (open, lines, close)
}

pub(super) fn entries(head: &str) -> Result<Vec<Entry>, TaskFileError> {
    let (_, lines, _) = parts(head);
    entry::read(&lines.concat(), &lines)
}

/// The line of this key in the file, or the line of the closing fence.
pub(super) fn line_of(head: &str, key: &str) -> usize {
    let found = entries(head).ok().and_then(|entries| entries.into_iter().find(|entry| entry.key == key));
    found.map_or(head.split_inclusive('\n').count(), |entry| entry.line)
}

/// Returns the head with one key's value replaced, added or (`None`) removed.
pub(super) fn with_value(head: &str, key: &str, value: Option<&str>) -> Result<String, TaskFileError> {
    let (open, mut lines, close) = parts(head);
    let entries = entries(head)?;
    let entry = entries.iter().find(|entry| entry.key == key);
    let new = match (entry, value) {
        (Some(entry), Some(value)) => Some(replace_value(entry, &lines, value)),
        (None, Some(value)) => {
            let indent = entries.first().map_or("", |entry| indent(lines[entry.lines.start]));
            Some(format!("{indent}{key}: {value}{}", line_end(open)))
        }
        (_, None) => None,
    };
    let range = entry.map_or(lines.len()..lines.len(), |entry| entry.lines.clone());
    lines.splice(range, new.as_deref());
    Ok([open, &lines.concat(), close].concat())
}

/// Replaces a value on one line within that line, so that a comment after it stays.
fn replace_value(entry: &Entry, lines: &[&str], value: &str) -> String {
    let first = lines[entry.lines.start];
    let before = &first[..byte_of(first, entry.after_colon)];
    let last = lines[entry.lines.end - 1];
    let behind = match entry.value_end {
        _ if entry.lines.len() > 1 => line_end(last),
        Some((_, column)) => &last[byte_of(last, column)..],
        None => &first[before.len()..],
    };
    format!("{before} {value}{behind}")
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

fn line_end(line: &str) -> &str {
    &line[without_line_end(line).len()..]
}

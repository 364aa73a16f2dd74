//! The keys of the front matter: the value and the lines of each one.
//!
//! Reads YAML with saphyr-parser, whose events have positions, so that an edit can leave all other lines alone. Changes
//! nothing itself.

use std::collections::HashSet;
use std::ops::Range;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::{TaskFileError, TaskFileProblem};

/// One `key: value`.
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: Node,
    /// The line of the file, counted from 1.
    pub(super) line: usize,
    /// The lines of the front matter that belong to it, counted from 0.
    pub(super) lines: Range<usize>,
    /// The column after the colon, in characters. An edit keeps the line up to here.
    pub(super) after_colon: usize,
    /// The end of the value: line counted from 0, column in characters.
    pub(super) value_end: Option<(usize, usize)>,
}

/// A value, as far as our keys need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Null,
    Text(String),
    List(Vec<String>),
    Map(Vec<(String, String)>),
    Other,
}

impl Node {
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Node::Text(text) => Some(text.clone()),
            Node::Null | Node::List(_) | Node::Map(_) | Node::Other => None,
        }
    }

    pub(super) fn parsed<T: std::str::FromStr>(&self) -> Option<T> {
        self.text()?.parse().ok()
    }

    pub(super) fn list(&self) -> Option<Vec<String>> {
        match self {
            Node::List(items) => Some(items.clone()),
            Node::Null | Node::Text(_) | Node::Map(_) | Node::Other => None,
        }
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Node::Null => "nothing".to_owned(),
            Node::Text(text) => format!("`{}`", text.escape_debug()),
            Node::List(_) => "a list".to_owned(),
            Node::Map(_) => "a mapping".to_owned(),
            Node::Other => "something nested".to_owned(),
        }
    }
}

type Placed<'e> = (Event<'e>, Span);

pub(super) fn read(yaml: &str, lines: &[&str]) -> Result<Vec<Entry>, TaskFileError> {
    let content = content(yaml, lines)?;
    let pairs = match content.split_first() {
        None => return Ok(Vec::new()),
        Some(((Event::MappingStart(..), span), rest)) if is_block(span) => rest,
        Some(((_, span), _)) => return Err(TaskFileProblem::NotKeyed.at(file_line(span))),
    };
    // The last event ends the mapping.
    let mut pairs = &pairs[..pairs.len().saturating_sub(1)];
    let mut entries = Vec::new();
    while let Some((key, rest)) = pairs.split_first() {
        let (value, others) = rest.split_at(node_len(rest));
        entries.push(entry(key, value, lines)?);
        pairs = others;
    }
    assign_lines(&mut entries, lines);
    refuse_duplicates(&entries)?;
    Ok(entries)
}

/// The events of the one document, without its frame.
fn content<'e>(yaml: &'e str, lines: &[&str]) -> Result<Vec<Placed<'e>>, TaskFileError> {
    let mut content = Vec::new();
    let mut documents = 0;
    for event in Parser::new_from_str(yaml) {
        let (event, span) = event.map_err(|trouble| {
            let line = trouble.marker().line().min(lines.len()).max(1) + 1;
            TaskFileProblem::Yaml(trouble.info().to_owned()).at(line)
        })?;
        match event {
            Event::DocumentStart(_) if documents > 0 => {
                return Err(TaskFileProblem::NotKeyed.at(file_line(&span)));
            }
            Event::DocumentStart(_) => documents += 1,
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd | Event::Nothing => {}
            event => content.push((event, span)),
        }
    }
    // Some versions of the parser report text with only comments as one empty scalar.
    if let [(Event::Scalar(text, ScalarStyle::Plain, ..), _)] = content.as_slice()
        && text.is_empty()
    {
        content.clear();
    }
    Ok(content)
}

/// Whether a collection is written as a block: its start has no width, while `{` and `[` have one.
fn is_block(span: &Span) -> bool {
    span.is_empty()
}

/// The front matter begins on the file's second line.
fn file_line(span: &Span) -> usize {
    span.start.line() + 1
}

fn node_len(events: &[Placed<'_>]) -> usize {
    let mut depth = 0usize;
    for (at, (event, _)) in events.iter().enumerate() {
        match event {
            Event::SequenceStart(..) | Event::MappingStart(..) => depth += 1,
            Event::SequenceEnd | Event::MappingEnd => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    events.len()
}

fn entry(key: &Placed<'_>, value: &[Placed<'_>], lines: &[&str]) -> Result<Entry, TaskFileError> {
    let (event, span) = key;
    let not_keyed = || TaskFileProblem::NotKeyed.at(file_line(span));
    let Event::Scalar(name, ..) = event else { return Err(not_keyed()) };
    let first = span.start.line() - 1;
    let line = lines.get(first).filter(|_| span.end.line() == span.start.line()).ok_or_else(not_keyed)?;
    let (before, behind) = (&line[..byte_of(line, span.start.col())], &line[byte_of(line, span.end.col())..]);
    let colon = behind.find(|c: char| !c.is_whitespace()).filter(|at| behind[*at..].starts_with(':'));
    let colon = colon.filter(|_| before.trim().is_empty()).ok_or_else(not_keyed)?;
    Ok(Entry {
        key: name.clone().into_owned(),
        value: node(value),
        line: first + 2,
        lines: first..first + 1,
        after_colon: span.end.col() + behind[..colon].chars().count() + 1,
        value_end: value.iter().filter_map(|event| end_of(event, lines)).max(),
    })
}

/// The end of the characters of this event: line counted from 0, and column.
///
/// The parser's own end of a quote or a bracket includes the blanks and the comment after it.
fn end_of((event, span): &Placed<'_>, lines: &[&str]) -> Option<(usize, usize)> {
    let (line, column) = (span.end.line() - 1, span.end.col());
    let start = span.start;
    let quote_end = |quote| match lines.get(line).filter(|_| start.line() - 1 == line) {
        Some(text) => (line, column_behind_quote(text, start.col(), quote)),
        None => (line, column),
    };
    match event {
        _ if span.is_empty() => None,
        Event::Scalar(_, ScalarStyle::SingleQuoted, ..) => Some(quote_end('\'')),
        Event::Scalar(_, ScalarStyle::DoubleQuoted, ..) => Some(quote_end('"')),
        // A block scalar ends at the beginning of the next line.
        Event::Scalar(_, ScalarStyle::Literal | ScalarStyle::Folded, ..) if column == 0 => {
            Some((line.saturating_sub(1), usize::MAX))
        }
        Event::SequenceEnd | Event::MappingEnd => Some((start.line() - 1, start.col() + 1)),
        _ => Some((line, column)),
    }
}

/// The column after the closing quote of the first quoted text at or after a column.
fn column_behind_quote(line: &str, from: usize, quote: char) -> usize {
    let text = line.chars().enumerate().skip(from).skip_while(|(_, c)| *c != quote).skip(1);
    let mut text = text.peekable();
    while let Some((at, c)) = text.next() {
        let doubled = quote == '\'' && text.peek().is_some_and(|(_, next)| *next == quote);
        match c {
            '\\' if quote == '"' => drop(text.next()),
            c if c == quote && doubled => drop(text.next()),
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    usize::MAX
}

fn node(events: &[Placed<'_>]) -> Node {
    match events {
        [(Event::Scalar(text, ScalarStyle::Plain, _, None), _)] if is_null(text) => Node::Null,
        [(Event::Scalar(text, ..), _)] => Node::Text(text.clone().into_owned()),
        [(Event::SequenceStart(..), _), items @ .., _] => texts(items).map_or(Node::Other, Node::List),
        [(Event::MappingStart(..), _), items @ .., _] => {
            let pairs = |texts: Vec<String>| {
                texts.chunks(2).map(|pair| (pair[0].clone(), pair[1..].concat())).collect()
            };
            texts(items).map_or(Node::Other, |texts| Node::Map(pairs(texts)))
        }
        _ => Node::Other,
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn texts(events: &[Placed<'_>]) -> Option<Vec<String>> {
    let text = |(event, _): &Placed<'_>| match event {
        Event::Scalar(text, ..) => Some(text.clone().into_owned()),
        _ => None,
    };
    events.iter().map(text).collect()
}

/// Gives each entry all its lines: up to the next key, without the blank lines and comments before that.
fn assign_lines(entries: &mut [Entry], lines: &[&str]) {
    let mut limit = lines.len();
    for entry in entries.iter_mut().rev() {
        let start = entry.lines.start;
        let filled = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        let last_filled = lines[start..limit].iter().rposition(filled).map_or(start, |at| start + at);
        // A line of a text may look like a comment, so the parser's end of the value counts too.
        let last_read = entry.value_end.map_or(start, |(line, _)| line);
        let last_read = (start..=last_read.min(limit - 1)).rev().find(|at| !lines[*at].trim().is_empty());
        entry.lines = start..last_filled.max(last_read.unwrap_or(start)) + 1;
        limit = start;
    }
}

fn refuse_duplicates(entries: &[Entry]) -> Result<(), TaskFileError> {
    let mut seen = HashSet::new();
    match entries.iter().find(|entry| !seen.insert(entry.key.as_str())) {
        Some(double) => Err(TaskFileProblem::Twice(double.key.clone()).at(double.line)),
        None => Ok(()),
    }
}

/// The byte of a column, at most the end of the line.
pub(super) fn byte_of(line: &str, column: usize) -> usize {
    let line = without_line_end(line);
    line.char_indices().nth(column).map_or(line.len(), |(at, _)| at)
}

pub(super) fn without_line_end(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

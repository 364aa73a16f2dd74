//! The output of commands: lines, JSON documents, failures, tables, and the words for states and times.
//!
//! Colours appear only on a terminal and without NO_COLOR, and are never the only sign.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use agency_api::Failure;
use agency_api::view::{AgentState, Evidence, StateChange, StateName, Task, TaskStatus, Why};
use agency_core::activity;
use agency_core::headline::Headline;
use serde::Serialize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::caller;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Coloured,
    Plain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Red,
    Green,
    Yellow,
    Orange,
    Cyan,
    Faint,
}

/// How strongly a text is drawn, beside its colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Weight {
    Bold,
    #[default]
    Normal,
    Dim,
}

impl Paint {
    pub(crate) fn for_stdout() -> Paint {
        Paint::on(io::stdout().is_terminal())
    }

    pub(crate) fn for_stderr() -> Paint {
        Paint::on(io::stderr().is_terminal())
    }

    fn on(terminal: bool) -> Paint {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if terminal && !unwanted { Paint::Coloured } else { Paint::Plain }
    }

    pub(crate) fn paint(self, colour: Colour, text: &str) -> String {
        self.paint_weighted(Some(colour), Weight::Normal, text)
    }

    fn paint_weighted(self, colour: Option<Colour>, weight: Weight, text: &str) -> String {
        let weight = match weight {
            Weight::Bold => Some("1"),
            Weight::Normal => None,
            Weight::Dim => Some("2"),
        };
        let colour = colour.map(|colour| match colour {
            Colour::Red => "1;31",
            Colour::Green => "32",
            Colour::Yellow => "33",
            // The nearest of the 256 colours; the 16 of every terminal have none.
            Colour::Orange => "38;5;208",
            Colour::Cyan => "36",
            Colour::Faint => "2",
        });
        let codes: Vec<&str> = weight.into_iter().chain(colour).collect();
        match self {
            Paint::Coloured if !codes.is_empty() && !text.is_empty() => {
                format!("\x1b[{}m{text}\x1b[0m", codes.join(";"))
            }
            Paint::Coloured | Paint::Plain => text.to_owned(),
        }
    }
}

/// Prints one line on standard output. Flushes it, so that a closed pipe fails here.
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()
}

static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on, notes and warnings are not printed.
pub(crate) fn be_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints one line on standard error, unless `--quiet` was given.
pub(crate) fn note(text: &str) {
    if !is_quiet() {
        print_error_line(text);
    }
}

pub(crate) fn warning(text: &str) {
    note(&format!("{} {}", Paint::for_stderr().paint(Colour::Yellow, "Warning:"), printable(text)));
}

/// The form of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Json,
}

/// Prints the failure that ends a command: as text on standard error, and with `--json` also as a document on
/// standard output, where its caller reads.
pub(crate) fn report_failure(failure: &Failure, form: Form) {
    if form == Form::Json {
        // A caller that has closed the pipe reads nothing; the exit code still says that the command failed.
        json_line(&FailureDocument { error: failure.clone() }).ok();
    }
    print_failure(failure);
}

/// The document that a command with `--json` prints when it fails.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FailureDocument {
    error: Failure,
}

pub(crate) fn print_failure(failure: &Failure) {
    print_error_line(&failure_text(failure, Paint::for_stderr()));
}

/// Ignores errors: there is no place to report that standard error does not work.
fn print_error_line(text: &str) {
    writeln!(io::stderr().lock(), "{text}").ok();
}

fn failure_text(failure: &Failure, paint: Paint) -> String {
    let mut lines = vec![format!("{} {}", paint.paint(Colour::Red, "Error:"), printable(&failure.message))];
    for cause in &failure.causes {
        lines.push(format!("{} {}", paint.paint(Colour::Yellow, "Caused by:"), printable(cause)));
    }
    if let Some(hint) = &failure.hint {
        lines.push(format!("{} {}", paint.paint(Colour::Cyan, "Hint:"), printable(hint)));
    }
    lines.join("\n")
}

/// The version of every document that `--json` prints. New keys do not change it. With another number, readers have
/// to be changed.
pub(crate) const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Versioned<'a, T> {
    schema_version: u32,
    #[serde(flatten)]
    body: &'a T,
}

/// Prints one JSON document: indented on a terminal, otherwise on one line.
pub(crate) fn json<T: Serialize>(body: &T) -> io::Result<()> {
    let document = Versioned { schema_version: SCHEMA_VERSION, body };
    let text = match io::stdout().is_terminal() {
        true => serde_json::to_string_pretty(&document)?,
        false => serde_json::to_string(&document)?,
    };
    line(&text)
}

/// Prints one of many JSON documents, always on one line.
pub(crate) fn json_line<T: Serialize>(body: &T) -> io::Result<()> {
    line(&serde_json::to_string(&Versioned { schema_version: SCHEMA_VERSION, body })?)
}

/// `{id} {slug} {status}`. Scripts parse it.
pub(crate) fn task_line(task: &Task) -> String {
    format!("{} {} {}", task.id, task.slug, status_name(task.status))
}

/// Escapes characters that could move the cursor or reverse the text, for text from other sources.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let reverses =
            matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match c {
            '\n' | '\t' => out.push(c),
            c if c.is_control() || reverses => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

pub(crate) fn status_name(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Draft => "draft",
        TaskStatus::Running => "running",
        TaskStatus::Idle => "idle",
        TaskStatus::Stopped => "stopped",
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Reviewed => "reviewed",
        TaskStatus::Merged => "merged",
    }
}

/// `asks permission 12s: Allow Bash?`; `detail` is the agent's own text about what it waits for.
pub(crate) fn state_text(state: &AgentState, detail: Option<&str>) -> String {
    let age = |for_seconds: u64| format!(" {}", duration(for_seconds));
    match state {
        AgentState::Starting { .. } => Headline::Starting.words().to_owned(),
        AgentState::Running { for_seconds } => format!("{}{}", Headline::Working, age(*for_seconds)),
        AgentState::NeedsInput { for_seconds, why } | AgentState::Stale { for_seconds, why } => {
            format!("{}{}{}", wait_headline(*why), age(*for_seconds), after_colon(detail))
        }
        AgentState::Exited { code } => format!("exited {code}"),
    }
}

/// The same without the time, for lists of changes: becoming stale is a change, too.
pub(crate) fn state_name(state: &AgentState, detail: Option<&str>) -> String {
    match state {
        AgentState::Starting { .. } => Headline::Starting.words().to_owned(),
        AgentState::Running { .. } => Headline::Working.words().to_owned(),
        AgentState::NeedsInput { why, .. } => format!("{}{}", wait_headline(*why), after_colon(detail)),
        AgentState::Stale { why, .. } => {
            format!("{}, stale{}", wait_headline(*why), after_colon(detail))
        }
        AgentState::Exited { code } => format!("exited {code}"),
    }
}

fn after_colon(detail: Option<&str>) -> String {
    detail.map(|detail| format!(": {detail}")).unwrap_or_default()
}

fn wait_headline(why: Why) -> Headline {
    Headline::of_wait(match why {
        Why::Prompt => activity::Why::Prompt,
        Why::Permission => activity::Why::Permission,
        Why::Question => activity::Why::Question,
        Why::Finished => activity::Why::Finished,
        Why::Error => activity::Why::Error,
        Why::Unknown => activity::Why::Unknown,
    })
}

/// A change of state with its time and evidence, on one line.
pub(crate) fn state_change(time: &str, change: &StateChange) -> String {
    let Evidence { source, rule, confidence, .. } = &change.evidence;
    printable(&format!("{time}  {:<40}  {source}: {rule} ({confidence})", state_words(change)))
}

/// Only the state: `asks permission: Allow Bash?`.
pub(crate) fn state_words(change: &StateChange) -> String {
    let (for_seconds, why) = (0, change.why.unwrap_or_default());
    let state = match change.state {
        StateName::Starting => AgentState::Starting { for_seconds },
        StateName::Running => AgentState::Running { for_seconds },
        StateName::NeedsInput => AgentState::NeedsInput { for_seconds, why },
        StateName::Stale => AgentState::Stale { for_seconds, why },
        StateName::Exited => AgentState::Exited { code: change.code.clone().unwrap_or("unknown".to_owned()) },
    };
    state_name(&state, change.evidence.detail.as_deref())
}

/// Only the largest unit: `12s`, `3m`, `2h`, `5d`.
pub(crate) fn duration(seconds: u64) -> String {
    match seconds {
        0..=59 => format!("{seconds}s"),
        60..=3_599 => format!("{}m", seconds / 60),
        3_600..=86_399 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// `512 B`, `1.5 MiB`, `12 GiB`.
pub(crate) fn bytes(number: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = (0..units.len()).rev().find(|power| number >> (10 * power) > 0).unwrap_or(0);
    let (whole, tenths) =
        (number >> (10 * power), (number >> (10 * power.saturating_sub(1))) % 1024 * 10 / 1024);
    match power > 0 && whole < 10 {
        true => format!("{whole}.{tenths} {}", units[power]),
        false => format!("{whole} {}", units[power]),
    }
}

/// `1 task`, `2 tasks`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

pub(crate) struct Column {
    title: &'static str,
    /// Cells are cut to no less than this width; `None`: they are never cut.
    least: Option<usize>,
}

pub(crate) fn column(title: &'static str) -> Column {
    Column { title, least: None }
}

/// A column whose cells are cut if the terminal is narrow.
pub(crate) fn flexible(title: &'static str, least: usize) -> Column {
    Column { title, least: Some(least) }
}

pub(crate) struct Cell {
    pub(crate) text: String,
    colour: Option<Colour>,
    weight: Weight,
}

pub(crate) fn cell(text: impl Into<String>) -> Cell {
    let text = printable(&text.into()).replace(['\n', '\t'], " ");
    Cell { text, colour: None, weight: Weight::Normal }
}

impl Cell {
    pub(crate) fn weighted(mut self, weight: Weight) -> Cell {
        self.weight = weight;
        self
    }

    /// The same look with another text.
    pub(crate) fn paint(&self, paint: Paint, text: &str) -> String {
        paint.paint_weighted(self.colour, self.weight, text)
    }

    pub(crate) fn coloured(mut self, colour: Option<Colour>) -> Cell {
        self.colour = colour;
        self
    }
}

/// Wraps the text to the width of the terminal and indents all lines but the first. Without a terminal it stays one line.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    match stdout_width() {
        Some(width) => wrap(text, indent, width),
        None => text.to_owned(),
    }
}

fn wrap(text: &str, indent: usize, width: usize) -> String {
    let (mut out, mut used) = (String::new(), indent);
    for word in text.split(' ') {
        if used > indent && used + 1 + word.width() > width {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            used = indent;
        } else if used > indent {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += word.width();
    }
    out
}

pub(crate) fn stdout_width() -> Option<usize> {
    io::stdout().is_terminal().then(caller::terminal_size).flatten().map(|size| size.cols as usize)
}

/// Aligned lines with headings. They fit the width of the terminal on standard output.
pub(crate) fn table(columns: &[Column], rows: &[Vec<Cell>]) -> String {
    lay_out(columns, rows, stdout_width(), Paint::for_stdout())
}

const GAP: usize = 2;

fn lay_out(columns: &[Column], rows: &[Vec<Cell>], width: Option<usize>, paint: Paint) -> String {
    let widths = fit_widths(columns, natural_widths(columns, rows), width);
    let head = columns.iter().map(|column| cell(column.title).coloured(Some(Colour::Faint))).collect();
    let lines = std::iter::once(&head).chain(rows).map(|row| lay_out_row(row, &widths, paint));
    lines.collect::<Vec<_>>().join("\n")
}

fn natural_widths(columns: &[Column], rows: &[Vec<Cell>]) -> Vec<usize> {
    let cells = |at: usize| rows.iter().filter_map(move |row| row.get(at)).map(|cell| cell.text.width());
    columns.iter().enumerate().map(|(at, column)| cells(at).fold(column.title.width(), usize::max)).collect()
}

/// Shrinks the widest flexible column until all columns fit or none can shrink.
fn fit_widths(columns: &[Column], mut widths: Vec<usize>, width: Option<usize>) -> Vec<usize> {
    let Some(width) = width else { return widths };
    let gaps = GAP * columns.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > width {
        let can_shrink = |at: &usize| columns[*at].least.is_some_and(|least| widths[*at] > least);
        match (0..columns.len()).filter(can_shrink).max_by_key(|at| widths[*at]) {
            Some(at) => widths[at] -= 1,
            None => break,
        }
    }
    widths
}

fn lay_out_row(row: &[Cell], widths: &[usize], paint: Paint) -> String {
    let mut out = String::new();
    for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
        let text = cut(&cell.text, *width);
        let padding = if at + 1 == row.len() { 0 } else { width - text.width() + GAP };
        out.push_str(&cell.paint(paint, &text));
        out.extend(std::iter::repeat_n(' ', padding));
    }
    out
}

fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (mut out, mut used) = (String::new(), 1);
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_printed_in_their_largest_unit() {
        let printed = [0, 59, 60, 3_599, 3_600, 86_399, 86_400].map(duration);
        assert_eq!(printed, ["0s", "59s", "1m", "59m", "1h", "23h", "1d"]);
    }

    fn sample(width: Option<usize>) -> String {
        let columns = [column("ID"), flexible("SLUG", 6), column("STATE"), flexible("AGENT", 4)];
        let rows = [
            vec![cell("1"), cell("fix-login-for-good"), cell("🟡 at its prompt"), cell("Shell")],
            vec![cell("12"), cell("x"), cell("🟢 working"), cell("Claude Code")],
        ];
        lay_out(&columns, &rows, width, Paint::Plain)
    }

    #[test]
    fn columns_are_aligned_by_their_width_on_a_terminal() {
        assert_eq!(
            sample(None),
            "\
ID  SLUG                STATE             AGENT
1   fix-login-for-good  🟡 at its prompt  Shell
12  x                   🟢 working        Claude Code"
        );
    }

    #[test]
    fn a_narrow_terminal_cuts_the_flexible_columns() {
        assert_eq!(
            sample(Some(40)),
            "\
ID  SLUG      STATE             AGENT
1   fix-log…  🟡 at its prompt  Shell
12  x         🟢 working        Claude …"
        );
        assert!(sample(Some(5)).contains("fix-l…"), "and no column gets smaller than its least width");
    }

    #[test]
    fn text_from_other_sources_cannot_move_the_cursor() {
        assert_eq!(printable("a\x1b[2Jb\r\u{202e}c\nd ä"), "a\\u{1b}[2Jb\\r\\u{202e}c\nd ä");
    }

    #[test]
    fn a_failure_is_plain_where_colours_are_not_wanted() {
        let failure = Failure::new("no task fix").because("none begins so").hint("agency ls");
        assert_eq!(failure_text(&failure, Paint::Plain), failure.to_string());
        assert!(failure_text(&failure, Paint::Coloured).starts_with("\x1b[1;31mError:\x1b[0m no task fix\n"));
    }

    #[test]
    fn long_lines_are_wrapped_between_words() {
        assert_eq!(wrap("one two three four", 2, 12), "one two\n  three four");
        assert_eq!(wrap("unbreakable", 2, 5), "unbreakable");
    }

    #[test]
    fn sizes_are_printed_in_their_largest_unit() {
        let printed = [0, 1023, 1024, 1536, 12 << 20, 5 << 40].map(bytes);
        assert_eq!(printed, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "12 MiB", "5.0 TiB"]);
    }

    #[test]
    fn one_is_singular() {
        assert_eq!((count(1, "orphan"), count(2, "orphan")), ("1 orphan".into(), "2 orphans".into()));
    }
}

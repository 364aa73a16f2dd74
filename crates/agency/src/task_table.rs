//! The table of tasks, which fits every width: the agents' own texts are cut first, slugs in the middle, projects from the left,
//! and columns that still do not fit are left out.

use agency_api::view::{Task, Urgency, WorkspaceStatus};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::marks::Marks;
use crate::output::{Cell, Colour, Paint, Weight, cell, count};
use crate::task_tree;
use crate::task_words::{Ages, task_words};

const GAP: usize = 2;

/// How a table looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) paint: Paint,
    pub(crate) marks: Marks,
    /// The width of the terminal; `None`: nothing is cut.
    pub(crate) width: Option<usize>,
    /// Whether the tasks of several projects are shown.
    pub(crate) all_projects: bool,
    pub(crate) ages: Ages,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Id,
    Slug,
    State,
    Agent,
    Age,
    Conflicts,
    Project,
}

/// One way to make a table narrower.
enum Squeeze {
    /// Cut the cells of a column, down to this width.
    To(Column, usize),
    Drop(Column),
}

/// The lines of the table, headings first. `tasks` are in order, each with its depth below its parent.
pub(crate) fn lines(tasks: &[(&Task, usize)], look: Look) -> Vec<String> {
    let has_conflicts = tasks.iter().any(|(task, _)| !task.conflicts.is_empty());
    let mut columns = vec![Column::Id, Column::Slug, Column::State, Column::Agent, Column::Age];
    columns.extend(has_conflicts.then_some(Column::Conflicts));
    columns.extend(look.all_projects.then_some(Column::Project));
    let mut rows = vec![columns.iter().map(|column| heading(*column)).collect::<Vec<Cell>>()];
    rows.extend(
        tasks.iter().map(|(task, depth)| columns.iter().map(|c| content(*c, task, *depth, look)).collect()),
    );
    let lead = tasks.iter().map(|(task, _)| lead_width(task, look)).max().unwrap_or_default();
    let widths = fit(&columns, natural_widths(&columns, &rows), lead, look.width);
    rows.iter().map(|row| line(&columns, row, &widths, look)).collect()
}

fn heading(column: Column) -> Cell {
    let title = match column {
        Column::Id => "ID",
        Column::Slug => "SLUG",
        Column::State => "STATE",
        Column::Agent => "AGENT",
        Column::Age => "AGE",
        Column::Conflicts => "CONFLICTS",
        Column::Project => "PROJECT",
    };
    cell(title).coloured(Some(Colour::Faint))
}

fn content(column: Column, task: &Task, depth: usize, look: Look) -> Cell {
    match column {
        Column::Id => cell(task.id.to_string()).weighted(weight(task)),
        Column::Slug => {
            cell(format!("{}{}", task_tree::indent(depth, look.marks), task.slug)).weighted(weight(task))
        }
        Column::State => {
            let words = task_words(task, look.paint, look.ages);
            let mark = look.marks.of_workspace(task.workspace_status);
            cell(format!("{mark} {}{}", words.lead, words.rest))
                .coloured(colour(task.workspace_status))
                .weighted(weight(task))
        }
        Column::Agent => {
            let agent = if task.agent_name.is_empty() { "-" } else { &task.agent_name };
            cell(agent).weighted(weight(task))
        }
        Column::Age => cell(task.age_seconds.map_or_else(|| "-".to_owned(), |age| look.ages.format(age)))
            .weighted(weight(task)),
        Column::Conflicts => cell(conflicts(task, look.marks)).coloured(Some(Colour::Yellow)),
        Column::Project => cell(task.project.as_path().display().to_string()).weighted(weight(task)),
    }
}

/// Unread work is bold. Work that the user knows, or that is over, is dim.
fn weight(task: &Task) -> Weight {
    match task.urgency {
        _ if task.unread => Weight::Bold,
        Urgency::Read | Urgency::Over => Weight::Dim,
        Urgency::Resting if task.asked_to_stop => Weight::Dim,
        Urgency::Blocked | Urgency::Unread | Urgency::Waiting | Urgency::Working | Urgency::Resting => {
            Weight::Normal
        }
    }
}

fn colour(status: WorkspaceStatus) -> Option<Colour> {
    match status {
        WorkspaceStatus::Idle => None,
        WorkspaceStatus::Running | WorkspaceStatus::Completed => Some(Colour::Green),
        WorkspaceStatus::NeedsInput => Some(Colour::Yellow),
        WorkspaceStatus::Stale => Some(Colour::Orange),
        WorkspaceStatus::Errored => Some(Colour::Red),
    }
}

/// The workspaces that this one conflicts with, each with its file or the number of files.
fn conflicts(task: &Task, marks: Marks) -> String {
    let mark = marks.conflict();
    let words = task.conflicts.iter().map(|conflict| match conflict.files.as_slice() {
        [file] => format!("{mark} {}: {}", conflict.with, file.as_path().display()),
        files => format!("{mark} {}: {}", conflict.with, count(files.len(), "file")),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The width of the mark, the headline and its age, and of the sign that something follows.
fn lead_width(task: &Task, look: Look) -> usize {
    let mark = look.marks.of_workspace(task.workspace_status);
    let words = task_words(task, look.paint, look.ages);
    let rest = if words.rest.is_empty() { 0 } else { look.marks.ellipsis().width() };
    mark.width() + 1 + words.lead.width() + rest
}

fn natural_widths(columns: &[Column], rows: &[Vec<Cell>]) -> Vec<Option<usize>> {
    let widest = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.text.width()).max();
    (0..columns.len()).map(widest).collect()
}

/// The width of each column; `None` for a column that is left out. `lead` is the part of the states that is cut last.
fn fit(
    columns: &[Column],
    mut widths: Vec<Option<usize>>,
    lead: usize,
    width: Option<usize>,
) -> Vec<Option<usize>> {
    let Some(width) = width else { return widths };
    let natural = widths.clone();
    let place = |wanted: Column| columns.iter().position(|column| *column == wanted);
    for squeeze in squeezes(lead) {
        let excess = total(&widths).saturating_sub(width);
        match squeeze {
            _ if excess == 0 => break,
            Squeeze::To(column, least) => {
                if let Some(now) = place(column).and_then(|at| widths[at].as_mut()) {
                    *now = (*now).min(now.saturating_sub(excess).max(least));
                }
            }
            Squeeze::Drop(column) => {
                place(column).into_iter().for_each(|at| widths[at] = None);
            }
        }
    }
    // A column that was left out may have freed more than was needed.
    for at in [Column::State, Column::Slug, Column::Project].into_iter().filter_map(place) {
        let room = width.saturating_sub(total(&widths));
        if let Some((now, whole)) = widths[at].as_mut().zip(natural[at]) {
            *now = whole.min(*now + room);
        }
    }
    widths
}

/// The steps that make a table narrower, those that a reader misses least first.
fn squeezes(lead: usize) -> [Squeeze; 17] {
    [
        Squeeze::To(Column::State, lead.max(20)),
        Squeeze::To(Column::Conflicts, 12),
        Squeeze::To(Column::Agent, 6),
        Squeeze::To(Column::Project, 16),
        Squeeze::To(Column::State, lead),
        Squeeze::To(Column::Slug, 20),
        Squeeze::Drop(Column::Age),
        Squeeze::Drop(Column::Agent),
        Squeeze::To(Column::Project, 8),
        Squeeze::To(Column::Slug, 12),
        Squeeze::Drop(Column::Conflicts),
        Squeeze::To(Column::Slug, 8),
        Squeeze::Drop(Column::Project),
        Squeeze::To(Column::State, 8),
        Squeeze::To(Column::Slug, 6),
        Squeeze::Drop(Column::Id),
        Squeeze::To(Column::State, 2),
    ]
}

fn total(widths: &[Option<usize>]) -> usize {
    let shown: Vec<usize> = widths.iter().flatten().copied().collect();
    shown.iter().sum::<usize>() + GAP * shown.len().saturating_sub(1)
}

fn line(columns: &[Column], row: &[Cell], widths: &[Option<usize>], look: Look) -> String {
    let cells = columns.iter().zip(row).zip(widths);
    let shown: Vec<_> = cells.filter_map(|((column, cell), width)| Some((column, cell, (*width)?))).collect();
    let texts = shown.iter().map(|(column, cell, width)| cut(&cell.text, *width, column, look.marks));
    let mut texts: Vec<String> = texts.collect();
    // A terminal may be narrower than everything that has to be shown.
    let mut left = look.width.unwrap_or(usize::MAX);
    for (text, (_, _, width)) in texts.iter_mut().zip(&shown) {
        *text = keep_start(text, left, "");
        left = left.saturating_sub(width + GAP);
    }
    let last = texts.iter().rposition(|text| !text.is_empty()).unwrap_or_default();
    let mut out = String::new();
    for (at, ((_, cell, width), text)) in shown.iter().zip(&texts).enumerate().take(last + 1) {
        out.push_str(&cell.paint(look.paint, text));
        let padding = if at == last { 0 } else { width.saturating_sub(text.width()) + GAP };
        out.extend(std::iter::repeat_n(' ', padding));
    }
    out
}

/// Cuts a text where a reader misses it least: slugs differ at both ends, paths at their end.
fn cut(text: &str, width: usize, column: &Column, marks: Marks) -> String {
    match column {
        _ if text.width() <= width => text.to_owned(),
        Column::Slug => keep_both_ends(text, width, marks.ellipsis()),
        Column::Project => keep_end(text, width, marks.ellipsis()),
        _ => keep_start(text, width, marks.ellipsis()),
    }
}

/// A line of this width at most, for text outside the table.
pub(crate) fn cut_line(text: &str, look: Look) -> String {
    look.width.map_or_else(|| text.to_owned(), |width| keep_start(text, width, look.marks.ellipsis()))
}

fn keep_start(text: &str, width: usize, ellipsis: &str) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(ellipsis.width());
    let start: String = fitting(text.chars(), room);
    keep_room(format!("{start}{ellipsis}"), width)
}

fn keep_end(text: &str, width: usize, ellipsis: &str) -> String {
    let room = width.saturating_sub(ellipsis.width());
    let end: String = fitting(text.chars().rev(), room).chars().rev().collect();
    keep_room(format!("{ellipsis}{end}"), width)
}

fn keep_both_ends(text: &str, width: usize, ellipsis: &str) -> String {
    let room = width.saturating_sub(ellipsis.width());
    let start = fitting(text.chars(), room.div_ceil(2));
    let end: String = fitting(text.chars().rev(), room / 2).chars().rev().collect();
    keep_room(format!("{start}{ellipsis}{end}"), width)
}

/// The first characters that fit.
fn fitting(chars: impl Iterator<Item = char>, room: usize) -> String {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= room
        })
        .collect()
}

/// Even the ellipsis may be too wide.
fn keep_room(text: String, width: usize) -> String {
    if text.width() <= width { text } else { fitting(text.chars(), width) }
}

#[cfg(test)]
mod tests;

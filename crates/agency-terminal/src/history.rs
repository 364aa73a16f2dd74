//! Rows as text: the screen and its history for people and pipes.
//!
//! Not how they look; a row that goes on in the next one is one line here.

use rio_vt::crosswords::grid::Dimensions;
use rio_vt::crosswords::pos::Line;

use crate::cells::{Cells, is_wrapped, text_of};
use crate::terminal::Terminal;

/// Lines that grow row by row.
#[derive(Default)]
struct Lines {
    whole: Vec<String>,
    open: String,
}

impl Lines {
    fn push(&mut self, cells: &Cells, line: i32) {
        let row = &cells[Line(line)];
        for cell in row.inner.iter().filter(|cell| !(cell.is_spacer() || cell.is_leading_spacer())) {
            let (c, marks) = text_of(cells, *cell);
            self.open.push(c);
            self.open.extend(marks);
        }
        if !is_wrapped(row) {
            self.close();
        }
    }

    fn close(&mut self) {
        let line = std::mem::take(&mut self.open);
        self.whole.push(line.trim_end_matches(' ').to_owned());
    }

    /// Every line, without the blank ones at the end.
    fn finish(mut self) -> Vec<String> {
        if !self.open.is_empty() {
            self.close();
        }
        let used = self.whole.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        self.whole.truncate(used);
        self.whole
    }
}

/// History, primary screen, and the alternate one if it is shown, each line ended.
pub(crate) fn text(terminal: &Terminal) -> String {
    let canvas = &terminal.canvas;
    let mut lines = lines_of(canvas.primary());
    if canvas.is_alternate() {
        lines.extend(lines_of(canvas.shown()));
    }
    lines.into_iter().flat_map(|line| [line, "\n".to_owned()]).collect()
}

/// Whole lines of the primary screen, history excepted, that end above the cursor's row.
pub(crate) fn lines_above_cursor(terminal: &Terminal) -> Vec<String> {
    let canvas = &terminal.canvas;
    if canvas.is_alternate() {
        return Vec::new();
    }
    let mut lines = Lines::default();
    for line in 0..i32::from(canvas.cursor().0) {
        lines.push(canvas.primary(), line);
    }
    lines.whole
}

fn lines_of(cells: &Cells) -> Vec<String> {
    let mut lines = Lines::default();
    for line in cells.topmost_line().0..cells.screen_lines() as i32 {
        lines.push(cells, line);
    }
    lines.finish()
}

/// Takes the whole lines out of the history. One that goes on on the screen stays, unless it is so long
/// that the history could lose its beginning: then it is broken.
pub(crate) fn drain(terminal: &mut Terminal) -> Vec<String> {
    let most = terminal.canvas.scrollback_lines() / 2;
    let cells = terminal.canvas.primary_mut();
    let mut lines = Lines::default();
    let mut kept = 0;
    for line in cells.topmost_line().0..0 {
        lines.push(cells, line);
        kept = if lines.open.is_empty() { 0 } else { kept + 1 };
    }
    if kept > most {
        lines.close();
        kept = 0;
    }
    // From the bottom: the screen, then the rows that stay.
    let staying = cells.screen_lines() + kept;
    let mut rows = cells.raw.take_all();
    rows.truncate(staying);
    cells.raw.replace_inner(rows);
    lines.whole
}

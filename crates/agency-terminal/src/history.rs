//! The screen and its history as plain text.
//!
//! Without colours; a row that continues in the next one becomes one line.

use rio_vt::crosswords::grid::Dimensions;
use rio_vt::crosswords::pos::Line;
use rio_vt::crosswords::square::Wide;

use crate::cells::{Cells, is_wrapped, text_of};
use crate::scrollback::{Piece, Scrollback};
use crate::terminal::Terminal;

/// Lines, collected row by row.
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

    fn push_piece(&mut self, piece: &Piece<'_>) {
        for run in piece.runs() {
            let look = &piece.looks[run.look];
            if matches!(look.wide(), Wide::Spacer | Wide::LeadingSpacer) {
                continue;
            }
            match look.marks() {
                "" if !run.text.contains('\0') => self.open.push_str(run.text),
                marks => run.text.chars().for_each(|c| {
                    self.open.push(if c == '\0' { ' ' } else { c });
                    self.open.push_str(marks);
                }),
            }
        }
        if !piece.head.wrapped {
            self.close();
        }
    }

    fn push_scrollback(&mut self, scrollback: &Scrollback) {
        scrollback.pieces().for_each(|piece| self.push_piece(&piece));
    }

    fn push_screen(&mut self, cells: &Cells) {
        (0..cells.screen_lines() as i32).for_each(|line| self.push(cells, line));
    }

    fn close(&mut self) {
        let line = std::mem::take(&mut self.open);
        self.whole.push(line.trim_end_matches(' ').to_owned());
    }

    /// All lines, without blank ones at the end.
    fn finish(mut self) -> Vec<String> {
        if !self.open.is_empty() {
            self.close();
        }
        let used = self.whole.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        self.whole.truncate(used);
        self.whole
    }
}

/// Every row of the screen that is shown.
pub(crate) fn rows(terminal: &Terminal) -> Vec<String> {
    let cells = terminal.canvas.shown();
    let row = |line| {
        let mut one = Lines::default();
        one.push(cells, line);
        one.close();
        one.whole.swap_remove(0)
    };
    (0..cells.screen_lines() as i32).map(row).collect()
}

/// History, primary screen, and the alternate screen if it is shown; every line ends with a line feed.
pub(crate) fn text(terminal: &Terminal) -> String {
    let canvas = &terminal.canvas;
    let mut primary = Lines::default();
    primary.push_scrollback(canvas.scrollback());
    primary.push_screen(canvas.primary());
    let mut lines = primary.finish();
    if canvas.is_alternate() {
        let mut alternate = Lines::default();
        alternate.push_screen(canvas.shown());
        lines.extend(alternate.finish());
    }
    lines.into_iter().flat_map(|line| [line, "\n".to_owned()]).collect()
}

/// Complete lines of the primary screen, without the history, that end above the cursor's row.
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

/// Removes the complete lines from the history. A line that continues on the screen stays, unless it is so long
/// that the history could lose its beginning: then it is split.
pub(crate) fn drain(terminal: &mut Terminal) -> Vec<String> {
    terminal.canvas.settle();
    let scrollback = terminal.canvas.scrollback_mut();
    let mut lines = Lines::default();
    let mut kept = 0;
    for piece in scrollback.pieces() {
        lines.push_piece(&piece);
        kept = if piece.head.wrapped { kept + 1 } else { 0 };
    }
    if kept > scrollback.limit() / 2 {
        lines.close();
        kept = 0;
    }
    scrollback.drop_first(scrollback.len() - kept);
    lines.whole
}

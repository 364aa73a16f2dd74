//! Drawing on a canvas: print, scroll, insert, delete, erase.
//!
//! The engine does most of it. This file does, or corrects, what the engine does differently from other terminals.

use rio_vt::ansi::mode::NamedPrivateMode;
use rio_vt::ansi::{ClearMode, LineClearMode};
use rio_vt::codepoint_width::codepoint_width;
use rio_vt::crosswords::grid::Dimensions;
use rio_vt::crosswords::grid::row::SemanticPrompt;
use rio_vt::crosswords::pos::{Column, Line};
use rio_vt::crosswords::square::{Square, Wide};
use rio_vt::performer::handler::Handler;

use super::{Canvas, only_background};
use crate::cells::is_wrapped;

/// The maximum number of marks on one character. Unicode's stream-safe format allows 30; without a limit, a
/// stream of marks on one cell would cost quadratic time and memory.
const MARKS_MAX: usize = 30;

/// Which part of the screen or line to erase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Erase {
    ToEnd,
    ToStart,
    All,
}

impl Canvas {
    /// Prints text that consists of printable ASCII only.
    pub(crate) fn print_ascii(&mut self, mut text: &str) {
        if self.insert || self.is_narrowed() {
            return text.chars().for_each(|c| self.print(c));
        }
        // Wrap here and not in the engine, because a wrap may scroll, and scrolling blanks a row.
        while self.autowrap && !text.is_empty() {
            if self.wrap_pending() {
                self.erasing(1, |engine| engine.wrapline());
            }
            let room = usize::from(self.cols() - self.cursor().1);
            let (now, later) = text.split_at(room.min(text.len()));
            self.shield();
            self.engine.input_ascii_str(now);
            text = later;
        }
        if !text.is_empty() {
            self.shield();
            self.engine.input_ascii_str(text);
        }
    }

    pub(crate) fn print(&mut self, c: char) {
        let Some(width) = codepoint_width(c as u32) else { return };
        let full = self.marks_before_cursor() >= MARKS_MAX;
        if full && width == 0 {
            return;
        }
        if self.is_narrowed() {
            return self.print_narrowed(c);
        }
        let (row, _) = self.cursor();
        if row == self.margins.1 {
            self.make_room(1);
        }
        if full {
            self.set_engine_mode(NamedPrivateMode::GraphemeCluster, false);
        }
        self.shield();
        self.engine.input(c);
        if full {
            self.set_engine_mode(NamedPrivateMode::GraphemeCluster, self.clusters);
        }
        if self.insert {
            self.repair_row(self.shown().cursor.pos.row);
        }
        // A wrap at the last row scrolled, and the engine blanked the new row with the complete pen.
        if row == self.margins.1 && self.cursor().1 <= 2 {
            self.blank_rest_of_fresh_row();
        }
    }

    /// Protects rows that have left the screen. When the engine splits a wide character at the top, it would
    /// change the row above.
    fn shield(&mut self) {
        if self.engine.grid.cursor.pos.row == 0 {
            self.settle();
        }
    }

    /// Removes single halves of wide characters, which inserting pushes apart or over the edge.
    pub(super) fn repair_row(&mut self, row: Line) {
        let row = &mut self.engine.grid[row].inner;
        for at in 0..row.len() {
            let followed = row.get(at + 1).is_some_and(|next| next.is_spacer());
            let preceded = at > 0 && row[at - 1].is_wide();
            let displaced = row[at].is_leading_spacer() && at + 1 < row.len();
            if row[at].is_wide() && !followed
                || row[at].is_spacer() && !preceded
                || displaced
                || is_cramped(row[at])
            {
                row[at].clear();
            }
        }
    }

    /// The number of marks on the character before the cursor.
    fn marks_before_cursor(&self) -> usize {
        let cells = self.shown();
        let pos = cells.cursor.pos;
        let row = &cells[pos.row].inner;
        let mut col = if cells.cursor.should_wrap { pos.col.0 } else { pos.col.0.saturating_sub(1) };
        if row[col].is_spacer() {
            col = col.saturating_sub(1);
        }
        let extras = row[col].extras_id_checked().and_then(|id| cells.extras_table.get(id));
        extras.map_or(0, |extras| extras.zerowidth.len())
    }

    /// Reduces untouched cells of the cursor's row that carry the pen to its background.
    fn blank_rest_of_fresh_row(&mut self) {
        let pen = self.style();
        if only_background(&pen) {
            return;
        }
        let erasing = self.erasing_style();
        let cells = &mut self.engine.grid;
        let mut blank_in = |style| {
            cells.set_template_style(style);
            cells.sync_template_style();
            Square::default().with_style_id(cells.template_style_id())
        };
        let (blank, untouched) = (blank_in(erasing), blank_in(pen));
        let row = cells.cursor.pos.row;
        for cell in cells[row].inner.iter_mut().filter(|cell| **cell == untouched) {
            *cell = blank;
        }
    }

    pub(crate) fn linefeed(&mut self) {
        if self.is_narrowed() {
            return self.linefeed_narrowed();
        }
        self.erasing(1, |engine| engine.linefeed());
    }

    pub(crate) fn reverse_linefeed(&mut self) {
        if self.is_narrowed() {
            return self.reverse_linefeed_narrowed();
        }
        self.erasing(0, |engine| engine.reverse_index());
    }

    pub(crate) fn scroll_up(&mut self, rows: u16) {
        if self.is_narrowed() {
            return self.shift_area(self.scrolling_area(), -i32::from(rows), 0);
        }
        let all = self.rows().into();
        self.erasing(all, |engine| engine.scroll_up(rows.into()));
    }

    pub(crate) fn scroll_down(&mut self, rows: u16) {
        if self.is_narrowed() {
            return self.shift_area(self.scrolling_area(), rows.into(), 0);
        }
        self.erasing(0, |engine| engine.scroll_down(rows.into()));
    }

    pub(crate) fn insert_lines(&mut self, lines: u16) {
        if self.is_narrowed() {
            return self.shift_rows_below(lines.into());
        }
        self.erasing(0, |engine| engine.insert_blank_lines(lines.into()));
    }

    /// Not done by the engine: at the first row it would move the deleted lines into the history.
    pub(crate) fn delete_lines(&mut self, lines: u16) {
        if self.is_narrowed() {
            return self.shift_rows_below(-i32::from(lines));
        }
        let (row, _) = self.cursor();
        let (first, last) = self.margins;
        if !(first..=last).contains(&row) {
            return;
        }
        let lines = lines.min(last + 1 - row);
        self.erasing(0, |engine| {
            let cells = &mut engine.grid;
            cells.sync_template_style();
            for to in row..last + 1 - lines {
                cells.raw.swap(Line(to.into()), Line((to + lines).into()));
            }
            cells.reset_region(Line((last + 1 - lines).into())..=Line(last.into()));
        });
    }

    pub(crate) fn insert_chars(&mut self, chars: u16) {
        if self.is_narrowed() {
            return self.shift_rest_of_row(chars.into());
        }
        self.shield();
        self.engine.insert_blank(chars.into());
    }

    pub(crate) fn delete_chars(&mut self, chars: u16) {
        if self.is_narrowed() {
            return self.shift_rest_of_row(-i32::from(chars));
        }
        let room = self.cols() - self.cursor().1;
        self.shield();
        self.engine.delete_chars(chars.min(room).into());
    }

    pub(crate) fn erase_chars(&mut self, chars: u16) {
        self.shield();
        self.engine.erase_chars(Column(chars.into()));
    }

    pub(crate) fn erase_line(&mut self, part: Erase) {
        let mode = match part {
            Erase::ToEnd => LineClearMode::Right,
            Erase::ToStart => LineClearMode::Left,
            Erase::All => LineClearMode::All,
        };
        self.shield();
        self.engine.clear_line(mode);
    }

    pub(crate) fn erase_screen(&mut self, part: Erase) {
        let (row, _) = self.cursor();
        self.shield();
        let keep = if self.is_alternate() { 0 } else { self.rows_with_text() };
        self.erasing(keep, |engine| {
            engine.grid.sync_template_style();
            match part {
                Erase::ToEnd => engine.clear_screen(ClearMode::Below),
                Erase::ToStart if row > 0 => engine.grid.reset_region(..Line(row.into())),
                Erase::ToStart => {}
                Erase::All => {
                    // On the primary screen the old contents go to the history, as in tmux.
                    let all = Line(0)..Line(engine.grid.screen_lines() as i32);
                    engine.grid.scroll_up(&all, keep);
                    engine.grid.reset_region(..);
                }
            }
        });
        if part == Erase::ToStart {
            self.erase_line(Erase::ToStart);
        }
    }

    /// The number of rows from the top to the last one with text.
    fn rows_with_text(&self) -> usize {
        let written = |row: &i32| {
            let cells = &self.shown()[Line(*row)].inner;
            cells.iter().any(|cell| !matches!(cell.c(), '\0' | ' '))
        };
        (0..i32::from(self.rows())).rev().find(written).map_or(0, |last| last as usize + 1)
    }

    pub(crate) fn erase_history(&mut self) {
        if !self.is_alternate() {
            self.shown_mut().clear_history();
            self.scrollback.clear();
        }
    }

    /// Fills the screen with `E` (DECALN).
    pub(crate) fn fill_for_alignment(&mut self) {
        self.engine.decaln();
    }

    /// Whether a row continues in the next one.
    pub(crate) fn goes_on(&self, row: u16) -> bool {
        is_wrapped(&self.shown()[Line(row.into())])
    }

    pub(crate) fn mark_prompt(&mut self, mark: SemanticPrompt) {
        let cells = self.shown_mut();
        let row = cells.cursor.pos.row;
        cells[row].semantic_prompt = mark;
    }
}

/// A wide character in a single cell that no mark made narrow.
fn is_cramped(cell: Square) -> bool {
    let plain = !cell.is_bg_only() && !cell.has_extras() && cell.wide() == Wide::Narrow;
    plain && codepoint_width(cell.c() as u32) == Some(2)
}

//! Left and right margins: printing and scrolling between them (DECLRMM, DECSLRM).
//!
//! The engine does not support them. When the margins are at the edges, the engine does all of this.

use rio_vt::codepoint_width::codepoint_width;
use rio_vt::performer::handler::Handler;

use super::Canvas;
use super::area::Area;

impl Canvas {
    /// The first and last column between the margins.
    pub(crate) fn columns(&self) -> (u16, u16) {
        self.columns.unwrap_or((0, self.cols() - 1))
    }

    /// Leaves the cursor where it is. `false`, without any change, for fewer than two columns.
    pub(crate) fn set_columns(&mut self, first: u16, last: u16) -> bool {
        let last = last.min(self.cols() - 1);
        if first >= last {
            return false;
        }
        self.columns = Some((first, last)).filter(|columns| *columns != (0, self.cols() - 1));
        true
    }

    pub(crate) fn release_columns(&mut self) {
        self.columns = None;
    }

    /// Whether there are side margins, so that the engine cannot scroll.
    pub(super) fn is_narrowed(&self) -> bool {
        self.columns.is_some()
    }

    /// The whole scrolling area.
    pub(crate) fn scrolling_area(&self) -> Area {
        let ((top, bottom), (left, right)) = (self.margins(), self.columns());
        Area { top, left, bottom, right }
    }

    /// Moves the rows of the scrolling area from the cursor's row on; nothing if the cursor is outside.
    pub(super) fn shift_rows_below(&mut self, down: i32) {
        if self.cursor_is_inside() {
            self.shift_area(Area { top: self.cursor().0, ..self.scrolling_area() }, down, 0);
        }
    }

    /// DECIC and DECDC: moves the columns of the scrolling area from the cursor's on; nothing if it is outside.
    pub(crate) fn shift_columns_behind(&mut self, right: i32) {
        if self.cursor_is_inside() {
            self.shift_area(Area { left: self.cursor().1, ..self.scrolling_area() }, 0, right);
        }
    }

    pub(crate) fn cursor_is_inside(&self) -> bool {
        let (row, col) = self.cursor();
        let area = self.scrolling_area();
        (area.top..=area.bottom).contains(&row) && (area.left..=area.right).contains(&col)
    }

    fn cursor_is_between_columns(&self) -> bool {
        let (first, last) = self.columns();
        (first..=last).contains(&self.cursor().1)
    }

    /// The cursor's row from the cursor to the right margin; `None` if the cursor is outside.
    fn rest_of_row(&self) -> Option<Area> {
        let (row, col) = self.cursor();
        let (_, right) = self.columns();
        self.cursor_is_between_columns().then_some(Area { top: row, left: col, bottom: row, right })
    }

    pub(super) fn shift_rest_of_row(&mut self, right: i32) {
        if let Some(rest) = self.rest_of_row() {
            self.shift_area(rest, 0, right);
        }
    }

    /// Scrolls the area at its last row if the cursor is in it; beside the area the cursor stays.
    pub(super) fn linefeed_narrowed(&mut self) {
        let (row, col) = self.cursor();
        if row == self.margins.1 {
            if self.cursor_is_between_columns() {
                self.shift_area(self.scrolling_area(), -1, 0);
            }
        } else if row + 1 < self.rows() {
            self.move_to_keeping_wrap(row + 1, col);
        }
    }

    pub(super) fn reverse_linefeed_narrowed(&mut self) {
        let (row, col) = self.cursor();
        if row == self.margins.0 {
            if self.cursor_is_between_columns() {
                self.shift_area(self.scrolling_area(), 1, 0);
            }
        } else if row > 0 {
            self.move_to_keeping_wrap(row - 1, col);
        }
    }

    fn move_to_keeping_wrap(&mut self, row: u16, col: u16) {
        let pending = self.wrap_pending();
        self.move_to(row, col);
        self.set_wrap_pending(pending);
    }

    pub(super) fn print_narrowed(&mut self, c: char) {
        let width = codepoint_width(c as u32).unwrap_or(0) as u16;
        if width > 0 {
            self.wrap_narrowed(width);
        }
        let (row, col) = self.cursor();
        let (_, right) = self.columns();
        if self.insert
            && width > 0
            && let Some(rest) = self.rest_of_row()
        {
            self.shift_area(rest, 0, width.into());
        }
        self.without_insert(|engine| engine.input(c));
        if col <= right && (self.cursor().1 > right || self.cursor().0 != row) {
            self.move_to(row, right);
            self.set_wrap_pending(true);
        }
    }

    /// Goes to the next row if the last character filled this one, or if a wide character does not fit.
    fn wrap_narrowed(&mut self, width: u16) {
        let (_, right) = self.columns();
        let full = self.wrap_pending() || width == 2 && self.cursor().1 == right;
        if !full {
            return;
        }
        if self.autowrap {
            self.linefeed_narrowed();
            self.move_to(self.cursor().0, self.columns().0);
        } else if width == 2 {
            self.move_to(self.cursor().0, right.saturating_sub(1));
        } else {
            self.set_wrap_pending(false);
        }
    }
}

//! Rectangles of cells: fill, erase, copy, shift, restyle and checksum; and cells that are protected from erasing.
//!
//! Does not check a program's coordinates: the corners here are on the screen and in order.

use rio_vt::crosswords::pos::{Column, Line};
use rio_vt::crosswords::square::{Square, Wide};
use rio_vt::crosswords::style::{Style, StyleFlags};

use super::Canvas;
use crate::cells::{PROTECTED, is_protected, text_of};

/// A rectangle; its last row and column are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) top: u16,
    pub(crate) left: u16,
    pub(crate) bottom: u16,
    pub(crate) right: u16,
}

impl Area {
    fn rows(self) -> std::ops::RangeInclusive<u16> {
        self.top..=self.bottom
    }

    fn cols(self) -> std::ops::RangeInclusive<u16> {
        self.left..=self.right
    }

    fn places(self) -> impl Iterator<Item = (u16, u16)> {
        self.rows().flat_map(move |row| self.cols().map(move |col| (row, col)))
    }
}

impl Canvas {
    /// Whether newly written cells are protected.
    pub(crate) fn protecting(&self) -> bool {
        is_protected(self.shown().cursor.template)
    }

    pub(crate) fn set_protecting(&mut self, on: bool) {
        let template = &mut self.shown_mut().cursor.template;
        match on {
            true => template.insert_cell_flag(PROTECTED),
            false => template.remove_cell_flag(PROTECTED),
        }
    }

    /// The whole screen.
    pub(crate) fn everything(&self) -> Area {
        Area { top: 0, left: 0, bottom: self.rows() - 1, right: self.cols() - 1 }
    }

    fn cell(&self, row: u16, col: u16) -> Square {
        self.shown()[Line(row.into())][Column(col.into())]
    }

    /// Writes a cell, but keeps the mark for a wrapped row.
    fn set_cell(&mut self, row: u16, col: u16, mut cell: Square) {
        let row = &mut self.shown_mut()[Line(row.into())];
        row.has_styles = true;
        row.has_extras |= cell.has_extras();
        let old = &mut row[Column(col.into())];
        cell.set_wrapline(old.wrapline());
        *old = cell;
    }

    /// The cell that erasing leaves behind.
    fn blank(&mut self) -> Square {
        let background = self.style().bg;
        self.shown_mut().blank_with_bg(background)
    }

    /// With `selective`, protected cells stay.
    pub(crate) fn erase_area(&mut self, area: Area, selective: bool) {
        let blank = self.blank();
        for (row, col) in area.places() {
            if !(selective && is_protected(self.cell(row, col))) {
                self.set_cell(row, col, blank);
            }
        }
        self.repair_rows(area.rows());
    }

    /// Fills with a character one column wide, drawn with the pen.
    pub(crate) fn fill_area(&mut self, area: Area, c: char) {
        let cells = self.shown_mut();
        cells.sync_template_style();
        let mut filler = Square::default().with_style_id(cells.template_style_id());
        filler.set_c(c);
        filler.set_cell_flags(cells.cursor.template.cell_flags() & PROTECTED);
        for (row, col) in area.places() {
            self.set_cell(row, col, filler);
        }
        self.repair_rows(area.rows());
    }

    /// Copies to the place with this upper left corner; what does not fit is cut.
    pub(crate) fn copy_area(&mut self, from: Area, row: u16, col: u16) {
        let copied: Vec<_> = from.places().map(|(row, col)| (row, col, self.cell(row, col))).collect();
        let (rows, cols) = (self.rows(), self.cols());
        for (from_row, from_col, cell) in copied {
            let to = (row.saturating_add(from_row - from.top), col.saturating_add(from_col - from.left));
            if to.0 < rows && to.1 < cols {
                self.set_cell(to.0, to.1, cell);
            }
        }
        let last = row.saturating_add(from.bottom - from.top).min(rows - 1);
        self.repair_rows(row.min(rows - 1)..=last);
    }

    /// Moves the contents of an area within it, and blanks the cells that become free.
    pub(crate) fn shift_area(&mut self, area: Area, down: i32, right: i32) {
        let blank = self.blank();
        let old: Vec<_> = area.places().map(|(row, col)| (row, col, self.cell(row, col))).collect();
        area.places().for_each(|(row, col)| self.set_cell(row, col, blank));
        for (row, col, cell) in old {
            let (row, col) = (i32::from(row) + down, i32::from(col) + right);
            let (Ok(row), Ok(col)) = (u16::try_from(row), u16::try_from(col)) else { continue };
            if area.rows().contains(&row) && area.cols().contains(&col) {
                self.set_cell(row, col, cell);
            }
        }
        self.repair_rows(area.rows());
    }

    /// Changes the style of cells; both halves of a wide character alike.
    pub(crate) fn restyle(&mut self, places: &[Area], change: impl Fn(&mut Style)) {
        let pen = self.style();
        for (row, col) in places.iter().flat_map(|area| area.places()) {
            let cell = self.cell(row, col);
            if cell.is_spacer() {
                continue;
            }
            let mut style = self.shown().style_of(&cell);
            change(&mut style);
            self.restyle_cell(row, col, style);
            if cell.is_wide() {
                self.restyle_cell(row, col + 1, style);
            }
        }
        self.set_style(pen);
    }

    fn restyle_cell(&mut self, row: u16, col: u16, style: Style) {
        let mut cell = self.cell(row, col);
        let cells = self.shown_mut();
        cells.set_template_style(style);
        cells.sync_template_style();
        if cell.is_bg_only() {
            cell = Square::default();
        }
        cell.set_style_id(cells.template_style_id());
        self.set_cell(row, col, cell);
    }

    /// DECRQCRA as DEC's terminals computed it: the sum of characters and attributes, negated.
    pub(crate) fn checksum(&self, area: Area) -> u16 {
        let sum = area.places().fold(0u16, |sum, (row, col)| sum.wrapping_add(self.weight(row, col)));
        sum.wrapping_neg()
    }

    fn weight(&self, row: u16, col: u16) -> u16 {
        let cell = self.cell(row, col);
        if cell.wide() == Wide::Spacer {
            return 0;
        }
        let (c, marks) = text_of(self.shown(), cell);
        let text = [c].iter().chain(marks).fold(0u16, |sum, c| sum.wrapping_add(u32::from(*c) as u16));
        let flags = self.shown().style_of(&cell).flags;
        let attributes = [
            (StyleFlags::HIDDEN, 0x08),
            (StyleFlags::ALL_UNDERLINES, 0x10),
            (StyleFlags::INVERSE, 0x20),
            (StyleFlags::ALL_BLINK, 0x40),
            (StyleFlags::BOLD, 0x80),
        ];
        attributes
            .iter()
            .filter(|(flag, _)| flags.intersects(*flag))
            .fold(text, |sum, (_, weight)| sum.wrapping_add(*weight))
    }

    /// Blanks wide characters that were cut in half.
    fn repair_rows(&mut self, rows: std::ops::RangeInclusive<u16>) {
        rows.for_each(|row| self.repair_row(Line(row.into())));
    }
}

//! Resizes a primary screen: its lines reflow together with those in the scrollback.
//!
//! The engine changes the height. The width is changed here, because the engine loses blanks, moves the cursor by
//! a cell, and would need all rows that ever left the screen.

use rio_vt::crosswords::grid::Dimensions;
use rio_vt::crosswords::grid::row::Row;
use rio_vt::crosswords::pos::{Column, Line};
use rio_vt::crosswords::square::Square;

use super::Scrollback;
use super::flow::{Landing, Place, Strip, flow, flow_strips, strips_of};
use crate::cells::{Cells, change_height, cut_to};
use crate::size::Size;

/// Rows that do not fit on the screen go to the scrollback; if there is space, rows come back from it.
pub(crate) fn resize(cells: &mut Cells, scrollback: &mut Scrollback, size: Size) {
    scrollback.take_from(cells);
    take_back(cells, scrollback, usize::from(size.rows).saturating_sub(cells.screen_lines()));
    change_height(cells, size.rows);
    scrollback.take_from(cells);
    if cells.columns() != usize::from(size.cols) {
        change_width(cells, scrollback, size);
        scrollback.take_from(cells);
    }
}

/// Moves at least `rows` rows, if there are that many, from the scrollback to above the screen.
fn take_back(cells: &mut Cells, scrollback: &mut Scrollback, rows: usize) {
    if rows == 0 {
        return;
    }
    let width = cells.columns();
    let pieces = scrollback.last_lines(rows, width);
    let above = flow(&pieces, cells, width);
    let count = pieces.len();
    scrollback.drop_last(count);
    // The engine counts rows from the bottom.
    let mut all = cells.raw.take_all();
    all.extend(above.into_iter().rev());
    cells.raw.replace_inner(all);
}

fn change_width(cells: &mut Cells, scrollback: &mut Scrollback, size: Size) {
    let width = usize::from(size.cols);
    // However short the screen's own lines become, this many rows fill it.
    let pieces = scrollback.last_lines(size.rows.into(), width);
    let mut strips = strips_of(&pieces, cells);
    let count = pieces.len();
    scrollback.drop_last(count);
    let cursor = Place {
        strip: strips.len() + cells.cursor.pos.row.0 as usize,
        cell: cells.cursor.pos.col.0 + usize::from(cells.cursor.should_wrap),
    };
    let blank = (0..cells.screen_lines()).map(|_| Row::new(cells.columns())).collect();
    let screen = cells.raw.take_all();
    strips.extend(screen.into_iter().rev().map(Strip::of));
    cells.raw.replace_inner(blank);
    cut_to(cells, size);
    let (rows, landing) = flow_strips(&strips, width, Some(cursor));
    put(cells, rows, landing);
}

/// Puts the last rows on the screen; the cursor's row is always among them.
fn put(cells: &mut Cells, mut rows: Vec<Row<Square>>, landing: Option<Landing>) {
    let (lines, width) = (cells.screen_lines(), cells.columns());
    let landing = landing.unwrap_or(Landing { row: rows.len().saturating_sub(1), col: 0, behind: false });
    let top = rows.len().saturating_sub(lines).min(landing.row);
    rows.truncate(top + lines);
    rows.resize_with(top + lines, || Row::new(width));
    rows.reverse();
    cells.raw.replace_inner(rows);
    let cursor = &mut cells.cursor;
    cursor.pos.row = Line((landing.row - top) as i32);
    cursor.pos.col = Column(landing.col);
    cursor.should_wrap = landing.behind;
}

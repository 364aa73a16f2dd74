//! The cells of one screen: reads and resizes them.
//!
//! Does not write to them; the canvas draws.

use rio_vt::crosswords::grid::row::Row;
use rio_vt::crosswords::grid::{Dimensions, Grid};
use rio_vt::crosswords::pos::{Column, Line};
use rio_vt::crosswords::square::{CellFlags, Square};

use crate::size::Size;

/// A screen and the history above it, in the engine's representation.
pub(crate) type Cells = Grid<Square>;

/// A cell flag that the engine stores but does not use: selective erasing skips the cell.
pub(crate) const PROTECTED: CellFlags = CellFlags::RESERVED_GRAPHICS;

/// The bit of a cell that says that its line continues in the next row.
pub(crate) const WRAP: u64 = 1 << 23;

/// A link that cells can carry (OSC 8).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Link {
    /// The program's name for the link, or empty. Cells with the same name are highlighted together.
    pub(crate) id: String,
    pub(crate) uri: String,
}

/// Cuts rows, or fills them up with blank cells.
pub(crate) fn cut_to(cells: &mut Cells, size: Size) {
    forget_the_past(cells);
    cells.resize(false, size.rows.into(), size.cols.into());
    cut_wide_characters(cells);
    keep_cursor_inside(cells, size);
}

/// Changes the height: rows come from above the screen, or go there.
pub(crate) fn change_height(cells: &mut Cells, rows: u16) {
    forget_the_past(cells);
    let cols = cells.columns();
    cells.resize(true, rows.into(), cols);
    keep_cursor_inside(cells, Size::cells(cols as u16, rows));
}

fn keep_cursor_inside(cells: &mut Cells, size: Size) {
    let (last_row, last_col) = (i32::from(size.rows) - 1, usize::from(size.cols) - 1);
    let cursor = &mut cells.cursor;
    cursor.pos.row = Line(cursor.pos.row.0.clamp(0, last_row));
    cursor.pos.col = Column(cursor.pos.col.0.min(last_col));
    cursor.should_wrap &= cursor.pos.col.0 == last_col;
}

/// Blanks wide characters that were cut at the edge.
fn cut_wide_characters(cells: &mut Cells) {
    for line in 0..cells.screen_lines() as i32 {
        if let Some(last) = cells[Line(line)].last_mut().filter(|cell| cell.is_wide()) {
            last.clear();
        }
    }
}

/// Erases the history of rows (which were touched, which are kept as spares). The engine's resize depends on
/// it, so without this a canvas built from a dump would reflow differently.
fn forget_the_past(cells: &mut Cells) {
    let rows = cells.raw.take_all().into_iter().map(as_new).collect();
    cells.raw.replace_inner(rows);
}

fn as_new(row: Row<Square>) -> Row<Square> {
    let mark = row.semantic_prompt;
    let occupied = occupied(&row.inner);
    let mut new = Row::from_vec(row.inner, occupied);
    new.semantic_prompt = mark;
    new
}

/// The number of cells up to the last one that is not an untouched blank.
pub(crate) fn occupied(cells: &[Square]) -> usize {
    // Eight at a time, which the processor compares at once.
    let blank = |cells: &[Square]| cells.iter().fold(0, |all, cell| all | cell.raw()) == 0;
    let eights = cells.rchunks_exact(8).take_while(|eight| blank(eight)).count();
    let rest = &cells[..cells.len() - 8 * eights];
    rest.iter().rposition(|cell| !cell.is_default()).map_or(0, |last| last + 1)
}

/// Whether the row continues in the next one.
pub(crate) fn is_wrapped(row: &Row<Square>) -> bool {
    row.inner.last().is_some_and(|cell| cell.wrapline())
}

pub(crate) fn is_protected(cell: Square) -> bool {
    cell.contains_cell_flag(PROTECTED)
}

/// The link of a cell, or of the pen.
pub(crate) fn link_of(cells: &Cells, cell: Square) -> Option<Link> {
    let extras = cells.extras_table.get(cell.extras_id_checked()?)?;
    let link = extras.hyperlink.as_ref()?;
    Some(Link { id: link.id().to_owned(), uri: link.uri().to_owned() })
}

/// The character of a cell (a space for a blank one) and the marks on it.
pub(crate) fn text_of(cells: &Cells, cell: Square) -> (char, &[char]) {
    let blank = cell.c() == '\0' || cell.is_bg_only();
    let extras = cell.extras_id_checked().and_then(|id| cells.extras_table.get(id));
    (if blank { ' ' } else { cell.c() }, extras.map_or(&[], |extras| &extras.zerowidth))
}

/// A cell without its character.
pub(crate) fn look_of(cell: Square) -> Square {
    let mut look = cell;
    look.set_c('\0');
    look
}

//! The rows that a line of the scrollback makes at a width, as cells of some screen.
//!
//! The same that the engine makes when it resizes a screen.

use rio_vt::crosswords::grid::GridSquare;
use rio_vt::crosswords::grid::row::{Row, SemanticPrompt};
use rio_vt::crosswords::square::{Square, Wide};

use super::{Piece, taken_by};
use crate::cells::Cells;
use crate::look::cells_of;

/// Whether the pieces of a line are the rows that it makes at a width.
pub(crate) fn flows_as_it_is(line: &[Piece<'_>], width: usize) -> bool {
    line.iter().all(|piece| match piece.head.wrapped {
        true => piece.head.len == width,
        false => piece.head.len <= width,
    })
}

/// The rows that whole lines make at a width, as cells of a screen.
pub(crate) fn flow(pieces: &[Piece<'_>], cells: &mut Cells, width: usize) -> Vec<Row<Square>> {
    let pieces = drawn(pieces, cells);
    let mut rows = Vec::new();
    for line in pieces.chunk_by(|(piece, _), _| piece.head.wrapped) {
        let as_it_is = line.iter().all(|(piece, _)| flows_as_it_is(&[*piece], width));
        match as_it_is {
            true => rows.extend(line.iter().map(|(piece, inner)| as_row(piece, inner.clone(), width))),
            false => wrap(line, width, &mut rows),
        }
    }
    rows
}

/// Each piece with its cells.
fn drawn<'a>(pieces: &[Piece<'a>], cells: &mut Cells) -> Vec<(Piece<'a>, Vec<Square>)> {
    // Pieces of one block have their looks in common.
    let blocks = || pieces.chunk_by(|one, other| std::ptr::eq(one.looks, other.looks));
    let looks = cells_of(cells, blocks().flat_map(|block| block[0].looks));
    let mut all = &looks[..];
    let mut drawn = Vec::with_capacity(pieces.len());
    for block in blocks() {
        let (looks, rest) = all.split_at(block[0].looks.len());
        all = rest;
        drawn.extend(block.iter().map(|piece| (*piece, cells_in(piece, looks))));
    }
    drawn
}

fn cells_in(piece: &Piece<'_>, looks: &[Square]) -> Vec<Square> {
    let mut inner = Vec::with_capacity(piece.head.len);
    for run in piece.runs() {
        let look = looks[run.look];
        let taken = run.pairs.then(|| taken_by(look));
        inner.extend(run.text.chars().flat_map(|c| [Some(with_char(look, c)), taken]).flatten());
    }
    inner
}

fn with_char(look: Square, c: char) -> Square {
    let mut cell = look;
    cell.set_c(c);
    cell
}

fn as_row(piece: &Piece<'_>, inner: Vec<Square>, width: usize) -> Row<Square> {
    row_of(inner, width, piece.head.wrapped, piece.head.mark)
}

fn row_of(mut inner: Vec<Square>, width: usize, wrapped: bool, mark: SemanticPrompt) -> Row<Square> {
    let used = inner.len();
    inner.resize(width, Square::default());
    if let Some(last) = inner.last_mut().filter(|_| wrapped) {
        last.set_wrapline(true);
    }
    let mut row = Row::from_vec(inner, used);
    row.semantic_prompt = mark;
    row
}

/// Joins a line and cuts it anew. A mark goes to the row in which its piece begins.
fn wrap(line: &[(Piece<'_>, Vec<Square>)], width: usize, rows: &mut Vec<Row<Square>>) {
    let mut joined = Vec::new();
    let mut marks = Vec::new();
    for (piece, inner) in line {
        marks.push((joined.len(), piece.head.mark));
        joined.extend(inner);
        // It stood in for a wide character that had no room.
        if piece.head.wrapped && inner.last().is_some_and(|cell| cell.is_leading_spacer()) {
            joined.pop();
        }
    }
    let goes_on = line.last().is_some_and(|(piece, _)| piece.head.wrapped);
    let used = used(&joined);
    let mut from = 0;
    loop {
        let (to, spacer) = end_of_row(&joined[..used], from, width);
        let ends = to == used;
        // Blanks at the end are not worth a row, but stay where there is room.
        let mut row = joined[from..if ends { joined.len().min(from + width) } else { to }].to_vec();
        row.extend(spacer);
        let here = marks.iter().filter(|(at, _)| *at >= from && (*at < to || ends));
        let mark = here.map(|(_, mark)| *mark).find(|mark| *mark != SemanticPrompt::None);
        rows.push(row_of(row, width, !ends || goes_on, mark.unwrap_or_default()));
        if ends {
            return;
        }
        from = to;
    }
}

/// How many cells from the left would be given a row of their own.
fn used(cells: &[Square]) -> usize {
    cells.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1)
}

/// Where the row that begins at `from` ends, and what stands in for a wide character without room.
fn end_of_row(cells: &[Square], from: usize, width: usize) -> (usize, Option<Square>) {
    let to = from + width;
    if to >= cells.len() {
        return (cells.len(), None);
    }
    if cells[to - 1].wide() != Wide::Wide {
        return (to, None);
    }
    let mut spacer = Square::default();
    spacer.set_wide(Wide::LeadingSpacer);
    (to - 1, Some(spacer))
}

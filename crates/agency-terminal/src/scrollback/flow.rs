//! Reflows lines to a width, as cells of some screen.

use rio_vt::crosswords::grid::GridSquare;
use rio_vt::crosswords::grid::row::{Row, SemanticPrompt};
use rio_vt::crosswords::square::{Square, Wide};

use super::{Piece, taken_by};
use crate::cells::{Cells, is_wrapped, occupied};
use crate::look::{Look, cells_of};

/// Whether the pieces of a line already are the rows that it makes at this width.
pub(crate) fn flows_as_it_is(line: &[Piece<'_>], width: usize) -> bool {
    line.iter().all(|piece| match piece.head.wrapped {
        true => piece.head.len == width,
        false => piece.head.len <= width,
    })
}

/// The rows that complete lines make at a width, as cells of a screen.
pub(super) fn flow(pieces: &[Piece<'_>], cells: &mut Cells, width: usize) -> Vec<Row<Square>> {
    flow_strips(&strips_of(pieces, cells), width, None).0
}

/// Temporary cells for reflowed lines. Lines of one block share their looks, so each look is made once.
pub(crate) struct Scratch<'a> {
    width: usize,
    pub(crate) cells: Cells,
    known: &'a [Look],
    looks: Vec<Square>,
}

impl<'a> Scratch<'a> {
    pub(crate) fn new(width: usize) -> Scratch<'a> {
        Scratch { width, cells: Cells::new(1, width, 0), known: &[], looks: Vec::new() }
    }

    /// The rows of a line. They refer to [`Scratch::cells`] and are valid until the next line.
    pub(crate) fn flow(&mut self, line: &[Piece<'a>]) -> Vec<Row<Square>> {
        let looks = line.first().map_or(&[][..], |piece| piece.looks);
        if line.iter().any(|piece| !std::ptr::eq(piece.looks, looks)) {
            *self = Scratch::new(self.width);
            return flow(line, &mut self.cells, self.width);
        }
        if !std::ptr::eq(self.known, looks) {
            *self = Scratch::new(self.width);
            self.looks = cells_of(&mut self.cells, looks.iter());
            self.known = looks;
        }
        let strips: Vec<_> = line.iter().map(|piece| strip_of(piece, &self.looks)).collect();
        flow_strips(&strips, self.width, None).0
    }
}

/// The cells of a row of any width.
pub(crate) struct Strip {
    cells: Vec<Square>,
    /// The line continues in the next strip.
    wrapped: bool,
    mark: SemanticPrompt,
}

/// A place in a strip; may be after its last cell.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) strip: usize,
    pub(crate) cell: usize,
}

/// Where a place is after the reflow. `behind`: after this cell, where there is no space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Landing {
    pub(crate) row: usize,
    pub(crate) col: usize,
    pub(crate) behind: bool,
}

impl Strip {
    /// The strip of a screen row.
    pub(crate) fn of(row: Row<Square>) -> Strip {
        let (wrapped, mark) = (is_wrapped(&row), row.semantic_prompt);
        let mut cells = row.inner;
        if !wrapped {
            cells.truncate(occupied(&cells));
        }
        cells.iter_mut().for_each(|cell| cell.set_wrapline(false));
        Strip { cells, wrapped, mark }
    }

    fn fits(&self, width: usize) -> bool {
        if self.wrapped { self.cells.len() == width } else { self.cells.len() <= width }
    }
}

/// The pieces as cells of a screen.
pub(crate) fn strips_of(pieces: &[Piece<'_>], cells: &mut Cells) -> Vec<Strip> {
    // Pieces of one block share their looks.
    let blocks = || pieces.chunk_by(|one, other| std::ptr::eq(one.looks, other.looks));
    let looks = cells_of(cells, blocks().flat_map(|block| block[0].looks));
    let mut all = &looks[..];
    let mut strips = Vec::with_capacity(pieces.len());
    for block in blocks() {
        let (looks, rest) = all.split_at(block[0].looks.len());
        all = rest;
        strips.extend(block.iter().map(|piece| strip_of(piece, looks)));
    }
    strips
}

fn strip_of(piece: &Piece<'_>, looks: &[Square]) -> Strip {
    let mut cells = Vec::with_capacity(piece.head.len);
    for run in piece.runs() {
        let look = looks[run.look];
        let taken = run.pairs.then(|| taken_by(look));
        cells.extend(run.text.chars().flat_map(|c| [Some(with_char(look, c)), taken]).flatten());
    }
    Strip { cells, wrapped: piece.head.wrapped, mark: piece.head.mark }
}

fn with_char(look: Square, c: char) -> Square {
    let mut cell = look;
    cell.set_c(c);
    cell
}

/// The rows that lines make at a width, and where the cursor is afterwards.
pub(crate) fn flow_strips(
    strips: &[Strip],
    width: usize,
    cursor: Option<Place>,
) -> (Vec<Row<Square>>, Option<Landing>) {
    let mut rows = Vec::new();
    let mut landing = None;
    let mut first = 0;
    for line in strips.chunk_by(|strip, _| strip.wrapped) {
        let here = cursor.filter(|place| (first..first + line.len()).contains(&place.strip));
        let here = here.map(|place| Place { strip: place.strip - first, ..place });
        if here.is_none() && line.iter().all(|strip| strip.fits(width)) {
            rows.extend(
                line.iter().map(|strip| row_of(strip.cells.clone(), width, strip.wrapped, strip.mark)),
            );
        } else {
            landing = wrap(&Joined::of(line, here), width, &mut rows).or(landing);
        }
        first += line.len();
    }
    (rows, landing)
}

/// A line joined from its strips.
#[derive(Default)]
struct Joined {
    cells: Vec<Square>,
    /// How many of the cells need a row.
    used: usize,
    /// Prompt marks, each with the index of the first cell of its strip.
    marks: Vec<(usize, SemanticPrompt)>,
    cursor: Option<usize>,
    goes_on: bool,
}

impl Joined {
    fn of(line: &[Strip], cursor: Option<Place>) -> Joined {
        let mut joined = Joined::default();
        for (at, strip) in line.iter().enumerate() {
            let begin = joined.cells.len();
            joined.marks.push((begin, strip.mark));
            joined.cells.extend(&strip.cells);
            // This cell was a placeholder for a wide character that did not fit.
            let stand_in = strip.cells.last().is_some_and(|cell| cell.is_leading_spacer());
            if stand_in && strip.wrapped {
                joined.cells.pop();
            }
            if let Some(place) = cursor.filter(|place| place.strip == at) {
                let most = if strip.wrapped { joined.cells.len() } else { usize::MAX };
                joined.cursor = Some((begin + place.cell).min(most));
            }
            joined.goes_on = strip.wrapped;
        }
        // Blanks at the end do not need a row, unless the cursor is after them.
        let used = joined.cells.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1);
        joined.used = used.max(joined.cursor.unwrap_or(0));
        joined.cells.resize(joined.cells.len().max(joined.used), Square::default());
        joined
    }

    /// Where the row that starts at `from` ends, and the placeholder for a wide character that does not fit.
    fn end_of_row(&self, from: usize, width: usize) -> (usize, Option<Square>) {
        let to = from + width;
        if to >= self.used {
            return (self.used, None);
        }
        match self.cells[to - 1].wide() {
            Wide::Wide => (to - 1, Some(stand_in_for(self.cells[to - 1]))),
            _ => (to, None),
        }
    }

    /// The mark of the row: a mark goes to the row in which its strip starts.
    fn mark(&self, from: usize, to: usize) -> SemanticPrompt {
        let here = self.marks.iter().filter(|(at, _)| *at >= from && (*at < to || to == self.used));
        here.map(|(_, mark)| *mark).find(|mark| *mark != SemanticPrompt::None).unwrap_or_default()
    }
}

/// The placeholder that the engine uses where a wide character does not fit.
fn stand_in_for(wide: Square) -> Square {
    let mut cell = match wide.has_grapheme() {
        // Combining marks stay with the character.
        true => Square::default().with_style_id(wide.style_id()),
        false => wide,
    };
    cell.set_c(' ');
    cell.set_wide(Wide::LeadingSpacer);
    cell
}

/// Cuts a line into rows. Returns the place of the cursor if it is in this line.
fn wrap(line: &Joined, width: usize, rows: &mut Vec<Row<Square>>) -> Option<Landing> {
    let mut landing = None;
    let mut from = 0;
    loop {
        let (to, spacer) = line.end_of_row(from, width);
        let ends = to == line.used;
        if let Some(cursor) = line.cursor.filter(|cursor| *cursor >= from && (*cursor < to || ends)) {
            let col = cursor - from;
            landing = Some(Landing { row: rows.len(), col: col.min(width - 1), behind: col >= width });
        }
        // Keep blanks at the end as far as they fit.
        let last = if ends { line.cells.len().min(from + width) } else { to };
        let mut row = line.cells[from..last].to_vec();
        row.extend(spacer);
        rows.push(row_of(row, width, !ends || line.goes_on, line.mark(from, to)));
        if ends {
            return landing;
        }
        from = to;
    }
}

fn row_of(mut cells: Vec<Square>, width: usize, wrapped: bool, mark: SemanticPrompt) -> Row<Square> {
    let used = cells.len();
    cells.resize(width, Square::default());
    if let Some(last) = cells.last_mut().filter(|_| wrapped) {
        last.set_wrapline(true);
    }
    let mut row = Row::from_vec(cells, used);
    row.semantic_prompt = mark;
    row
}

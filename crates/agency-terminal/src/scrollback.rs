//! The rows that have left the primary screen, stored as text and runs of cells with the same look.
//!
//! Needs a tenth of the memory of the engine's cells. A row keeps the width that it had when it left; reflowing to
//! another width happens on demand ([`Scratch`]). A row is never here and on the screen at the same time: a resize
//! that needs rows back removes them from here.

use std::collections::VecDeque;

use rio_vt::crosswords::grid::Dimensions;
use rio_vt::crosswords::grid::row::Row;
use rio_vt::crosswords::pos::Line;
use rio_vt::crosswords::square::{Square, Wide};

use crate::cells::{Cells, WRAP, is_wrapped, look_of, occupied};
use crate::look::Look;

mod block;
mod flow;
mod resize;

use block::Block;
pub(crate) use block::{Head, Piece};
pub(crate) use flow::{Scratch, flows_as_it_is};
pub(crate) use resize::resize;

/// The memory budget per row, in bytes. Only pictures drawn with characters need more; then fewer rows are kept,
/// so that no program fills the memory.
const COST_PER_ROW: usize = 2048;

/// The bits of a cell that hold its character.
const CHARACTER: u64 = 0x1f_ffff;

/// The minimum memory budget.
const COST_LEAST: usize = 256 * 1024;

pub(crate) struct Scrollback {
    blocks: VecDeque<Block>,
    rows: usize,
    cost: usize,
    limit: usize,
}

impl Scrollback {
    /// A scrollback of at most `limit` rows.
    pub(crate) fn of(limit: usize) -> Scrollback {
        Scrollback { blocks: VecDeque::new(), rows: 0, cost: 0, limit }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    pub(crate) fn clear(&mut self) {
        *self = Scrollback::of(self.limit);
    }

    /// Oldest first.
    pub(crate) fn pieces(&self) -> impl DoubleEndedIterator<Item = Piece<'_>> {
        self.blocks.iter().flat_map(Block::pieces)
    }

    /// Complete lines, oldest first; the last one may continue on the screen.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Vec<Piece<'_>>> {
        self.newest_lines(usize::MAX)
    }

    /// The newest complete lines that have at least this many rows, oldest first, or all if there are fewer.
    pub(crate) fn newest_lines(&self, rows: usize) -> impl Iterator<Item = Vec<Piece<'_>>> {
        let start = self.rows - self.count_newest(rows);
        let mut pieces = self.pieces().skip(start);
        std::iter::from_fn(move || {
            let mut line = vec![pieces.next()?];
            while line.last().is_some_and(|piece| piece.head.wrapped) {
                match pieces.next() {
                    Some(piece) => line.push(piece),
                    None => break,
                }
            }
            Some(line)
        })
    }

    /// The number of rows in the newest lines that have at least this many rows.
    fn count_newest(&self, rows: usize) -> usize {
        if rows >= self.rows {
            return self.rows;
        }
        let mut counted = 0;
        for piece in self.pieces().rev() {
            // This row ends a line, so the rows after it begin one.
            if counted >= rows && !piece.head.wrapped {
                break;
            }
            counted += 1;
        }
        counted
    }

    /// The last lines that make at least `rows` rows at a width, or all if there are fewer. Always includes the whole
    /// line that continues on the screen.
    fn last_lines(&self, rows: usize, width: usize) -> Vec<Piece<'_>> {
        let mut taken = Vec::new();
        // These count the pieces of the current line. Each may end in a placeholder that a joined line does not have.
        let (mut have, mut pieces, mut cells) = (0, 0, 0);
        for piece in self.pieces().rev() {
            if !piece.head.wrapped {
                have += if pieces > 0 { usize::div_ceil(cells, width).max(1) } else { 0 };
                (pieces, cells) = (0, 0);
                if have >= rows {
                    break;
                }
            }
            pieces += 1;
            cells += piece.head.len.saturating_sub(1);
            taken.push(piece);
        }
        taken.reverse();
        taken
    }

    /// Moves here the rows that are above a screen.
    pub(crate) fn take_from(&mut self, cells: &mut Cells) {
        let count = cells.history_size();
        if count == 0 {
            return;
        }
        let mut adding = self.adding();
        for line in -(count as i32)..0 {
            adding.row(cells, &cells.raw[Line(line)]);
        }
        cells.clear_history();
    }

    /// Drops the newest rows.
    fn drop_last(&mut self, rows: usize) {
        for _ in 0..rows {
            let Some(block) = self.blocks.back_mut() else { return };
            self.cost -= block.pop_back();
            self.rows -= 1;
            if block.len() == 0 {
                self.blocks.pop_back();
            }
        }
    }

    /// Drops the oldest rows.
    pub(crate) fn drop_first(&mut self, rows: usize) {
        for _ in 0..rows {
            let Some(block) = self.blocks.front_mut() else { return };
            self.cost -= block.pop_front();
            self.rows -= 1;
            if block.len() == 0 {
                self.blocks.pop_front();
            }
        }
    }

    /// Starts adding rows that share looks.
    pub(crate) fn adding(&mut self) -> Adding<'_> {
        Adding { to: self, known: [NOTHING; KNOWN] }
    }

    fn next_block(&mut self) {
        if let Some(full) = self.blocks.back_mut() {
            full.close();
        }
        self.blocks.push_back(Block::default());
    }

    #[inline]
    fn bound(&mut self) {
        let most = COST_LEAST.max(self.limit.saturating_mul(COST_PER_ROW));
        while self.rows > self.limit || self.cost > most {
            self.drop_first(1);
        }
    }
}

/// The number of cached look numbers. A power of two.
const KNOWN: usize = 64;

/// An empty cache entry; no look has this name.
const NOTHING: (u64, u32) = (u64::MAX, 0);

/// Adds rows to a scrollback. Caches the numbers of looks under the caller's names.
pub(crate) struct Adding<'a> {
    to: &'a mut Scrollback,
    known: [(u64, u32); KNOWN],
}

impl Adding<'_> {
    /// Adds a row of a screen.
    pub(crate) fn row(&mut self, cells: &Cells, row: &Row<Square>) {
        let wrapped = is_wrapped(row);
        let len = if wrapped { row.inner.len() } else { occupied(&row.inner) };
        self.begin(Head { len, wrapped, mark: row.semantic_prompt });
        let mut rest = &row.inner[..len];
        while let Some(first) = rest.first() {
            let look = lasting_look_of(*first);
            let number = self.number(look.raw(), || Look::of(cells, look));
            rest = self.run_of_cells(number, look, rest);
        }
        self.end();
    }

    /// Adds the cells at the front that look the same, and returns the others.
    fn run_of_cells<'c>(&mut self, number: u32, look: Square, cells: &'c [Square]) -> &'c [Square] {
        let pairs = if look.is_wide() { count_pairs(look, cells) } else { 0 };
        if pairs > 0 {
            let (run, rest) = cells.split_at(2 * pairs);
            let text: String = run.iter().step_by(2).map(|cell| cell.c()).collect();
            self.run(number, &text, run.len(), true);
            return rest;
        }
        let (len, characters) = if look.is_wide() { (1, u64::MAX) } else { count_alike(look, cells) };
        let (run, rest) = cells.split_at(len);
        if characters < 0x80 {
            self.block().ascii_run(number, run);
        } else {
            let text: String = run.iter().map(|cell| cell.c()).collect();
            self.run(number, &text, run.len(), false);
        }
        rest
    }

    fn block(&mut self) -> &mut Block {
        self.to.blocks.back_mut().expect("a row has begun in it")
    }

    pub(crate) fn begin(&mut self, head: Head) {
        if self.to.blocks.back().is_none_or(Block::is_full) {
            self.to.next_block();
            self.known = [NOTHING; KNOWN];
        }
        self.block().begin(head);
    }

    /// The number of the look that the caller calls `name`.
    pub(crate) fn number(&mut self, name: u64, look: impl FnOnce() -> Look) -> u32 {
        let place = (name.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % KNOWN;
        if self.known[place].0 != name {
            self.known[place] = (name, self.block().number(look()));
        }
        self.known[place].1
    }

    pub(crate) fn run(&mut self, look: u32, text: &str, cells: usize, pairs: bool) {
        self.block().run(look, text, cells, pairs);
    }

    pub(crate) fn end(&mut self) {
        let cost = self.block().end();
        self.to.cost += cost;
        self.to.rows += 1;
        self.to.bound();
    }
}

/// The look without the wrap mark: the mark belongs to the row, and the engine may leave it in the middle of a
/// row.
fn lasting_look_of(cell: Square) -> Square {
    let mut look = look_of(cell);
    look.set_wrapline(false);
    look
}

/// The number of cells at the front with this look, and the union of their character bits. Eight at a time, which
/// the processor compares at once: every row of a flood passes here.
fn count_alike(look: Square, cells: &[Square]) -> (usize, u64) {
    let (eights, _) = cells.as_chunks::<8>();
    let differ = |all: u64, cell: &Square| all | ((cell.raw() ^ look.raw()) & !WRAP);
    let mut characters = 0;
    let mut len = 0;
    for eight in eights {
        let all = eight.iter().fold(0, differ);
        if all > CHARACTER {
            break;
        }
        characters |= all;
        len += 8;
    }
    for cell in cells[len..].iter() {
        let all = differ(0, cell);
        if all > CHARACTER {
            break;
        }
        characters |= all;
        len += 1;
    }
    (len, characters)
}

/// The number of wide characters with this look at the front, each with its second cell.
fn count_pairs(look: Square, cells: &[Square]) -> usize {
    let taken = taken_by(look);
    let (pairs, _) = cells.as_chunks::<2>();
    let is_pair = |[wide, other]: &&[Square; 2]| {
        lasting_look_of(*wide) == look && (other.raw() ^ taken.raw()) & !WRAP == 0
    };
    pairs.iter().take_while(is_pair).count()
}

/// The second cell of a wide character with this look.
fn taken_by(look: Square) -> Square {
    let mut taken = look;
    taken.set_c(' ');
    taken.set_wide(Wide::Spacer);
    taken
}

#[cfg(test)]
mod tests {
    use crate::{Screen, Size};

    /// Rows in which every cell has different colours.
    fn picture(rows: usize) -> String {
        let cell = |at: usize| format!("\x1b[38;2;{};{};{}m▀", at % 251, at % 241, at % 239);
        (0..rows).map(|row| (0..99).map(|col| cell(row * 99 + col)).collect::<String>() + "\r\n").collect()
    }

    #[test]
    fn over_budget_the_oldest_rows_are_dropped() {
        let mut screen = Screen::new(Size::cells(99, 5), 1000);
        screen.feed(picture(1000).as_bytes());
        let rows = screen.snapshot().scrollback;
        assert!((300..700).contains(&rows.len()), "{} rows", rows.len());
        assert!(rows.iter().all(|row| row.cells.len() == 99));
    }

    #[test]
    fn rows_are_dropped_one_by_one() {
        let mut screen = Screen::new(Size::cells(20, 2), 100);
        for line in 0..5000 {
            screen.feed(format!("\x1b[{}mline {line}\r\n", 30 + line % 8).as_bytes());
        }
        let text = screen.text();
        assert_eq!(text.lines().count(), 101);
        assert_eq!(text.lines().next(), Some("line 4899"));
    }

    #[test]
    fn an_endless_line_keeps_its_end() {
        let mut screen = Screen::new(Size::cells(10, 2), 50);
        screen.feed("0123456789".repeat(5000).as_bytes());
        screen.resize(Size::cells(7, 3));
        assert!(screen.text().len() >= 350);
        screen.resize(Size::cells(200, 3));
        assert!(screen.text().ends_with("0123456789\n"));
    }
}

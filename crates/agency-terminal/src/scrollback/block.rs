//! A block of scrollback rows: their characters, and runs of cells with the same look.
//!
//! A row is a head followed by runs. Numbers are encoded as in dumps. Looks are numbered per block, so that they
//! are freed together with it.

use std::collections::HashMap;

use rio_vt::crosswords::grid::row::SemanticPrompt;
use rio_vt::crosswords::square::Square;

use crate::encoding::{Reader, Writer};
use crate::look::Look;

/// Large enough to share looks, small enough to be dropped one block at a time.
const FULL: usize = 32 * 1024;

/// The memory cost of a run apart from its text: its look, if no other run has it, and its numbers.
const RUN_COST: usize = 32;

#[derive(Default)]
pub(crate) struct Block {
    bytes: Writer,
    rows: Vec<Entry>,
    looks: Vec<Look>,
    /// The number of dropped rows at the front.
    gone: usize,
    /// The cost of the current row so far.
    cost: u32,
    /// The numbers of looks, while rows are added.
    numbers: HashMap<Look, u32>,
}

/// Where a row ends, and its cost: counted for this row alone, even if it shares looks.
struct Entry {
    end: u32,
    cost: u32,
}

/// Properties of a row as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) len: usize,
    /// The line continues in the next row.
    pub(crate) wrapped: bool,
    pub(crate) mark: SemanticPrompt,
}

/// A row of a scrollback, as wide as the screen was when the row left it.
#[derive(Clone, Copy)]
pub(crate) struct Piece<'a> {
    pub(crate) head: Head,
    /// The looks of its runs, by number.
    pub(crate) looks: &'a [Look],
    runs: &'a [u8],
}

/// Neighbouring cells with the same look.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) look: usize,
    pub(crate) cells: usize,
    /// One character per cell, or per two cells; a blank cell's is zero.
    pub(crate) text: &'a str,
    /// The run consists of wide characters, each with its second cell.
    pub(crate) pairs: bool,
}

impl Block {
    pub(super) fn is_full(&self) -> bool {
        self.bytes.0.len() + self.looks.len() * size_of::<Look>() >= FULL
    }

    /// Frees what is only needed while rows are added.
    pub(super) fn close(&mut self) {
        self.numbers = HashMap::new();
        self.bytes.0.shrink_to_fit();
        self.rows.shrink_to_fit();
        self.looks.shrink_to_fit();
    }

    /// The number of rows that are left.
    pub(super) fn len(&self) -> usize {
        self.rows.len() - self.gone
    }

    /// The number of a look within this block.
    pub(super) fn number(&mut self, look: Look) -> u32 {
        if self.numbers.is_empty() && !self.looks.is_empty() {
            self.numbers = self.looks.iter().cloned().zip(0..).collect();
        }
        let next = self.looks.len() as u32;
        *self.numbers.entry(look).or_insert_with_key(|look| {
            self.looks.push(look.clone());
            next
        })
    }

    /// Starts a row; [`Block::end`] ends it.
    pub(super) fn begin(&mut self, head: Head) {
        let mark = match head.mark {
            SemanticPrompt::None => 0,
            SemanticPrompt::Prompt => 1,
            SemanticPrompt::PromptContinuation => 2,
        };
        self.bytes.len(head.len << 3 | mark << 1 | usize::from(head.wrapped));
    }

    pub(super) fn run(&mut self, look: u32, text: &str, cells: usize, pairs: bool) {
        self.run_head(look, cells, text.len(), pairs);
        self.bytes.0.extend_from_slice(text.as_bytes());
    }

    /// A run of characters of one byte each, or blanks.
    pub(super) fn ascii_run(&mut self, look: u32, cells: &[Square]) {
        self.run_head(look, cells.len(), cells.len(), false);
        let (eights, rest) = cells.as_chunks::<8>();
        for eight in eights {
            self.bytes.0.extend_from_slice(&eight.map(|cell| cell.raw() as u8));
        }
        self.bytes.0.extend(rest.iter().map(|cell| cell.raw() as u8));
    }

    #[inline]
    fn run_head(&mut self, look: u32, cells: usize, bytes: usize, pairs: bool) {
        let extra = self.looks[look as usize].extra().map_or(0, |extra| extra.size());
        self.cost += (bytes + RUN_COST + extra) as u32;
        let ascii = cells == bytes;
        self.bytes.len(cells << 2 | usize::from(pairs) << 1 | usize::from(!ascii));
        if !ascii {
            self.bytes.len(bytes);
        }
        self.bytes.number(look);
    }

    /// Ends the row and returns its cost.
    pub(super) fn end(&mut self) -> usize {
        let cost = std::mem::take(&mut self.cost);
        self.rows.push(Entry { end: self.bytes.0.len() as u32, cost });
        cost as usize
    }

    /// The remaining rows, oldest first.
    pub(super) fn pieces(&self) -> impl DoubleEndedIterator<Item = Piece<'_>> {
        (self.gone..self.rows.len()).map(|at| self.piece(at))
    }

    fn piece(&self, at: usize) -> Piece<'_> {
        let from = if at == 0 { 0 } else { self.rows[at - 1].end };
        let mut bytes = Reader(&self.bytes.0[from as usize..self.rows[at].end as usize]);
        let number: usize = bytes.number().unwrap_or(0);
        let mark = match number >> 1 & 3 {
            1 => SemanticPrompt::Prompt,
            2 => SemanticPrompt::PromptContinuation,
            _ => SemanticPrompt::None,
        };
        let head = Head { len: number >> 3, wrapped: number & 1 != 0, mark };
        Piece { head, looks: &self.looks, runs: bytes.0 }
    }

    /// Drops the oldest row and returns its cost.
    pub(super) fn pop_front(&mut self) -> usize {
        self.gone += 1;
        self.rows[self.gone - 1].cost as usize
    }

    /// Drops the newest row and returns its cost.
    pub(super) fn pop_back(&mut self) -> usize {
        let cost = self.rows.pop().map_or(0, |row| row.cost as usize);
        self.bytes.0.truncate(self.rows.last().map_or(0, |row| row.end as usize));
        cost
    }
}

impl<'a> Piece<'a> {
    pub(crate) fn runs(&self) -> Runs<'a> {
        Runs(Reader(self.runs))
    }
}

pub(crate) struct Runs<'a>(Reader<'a>);

impl<'a> Iterator for Runs<'a> {
    type Item = Run<'a>;

    fn next(&mut self) -> Option<Run<'a>> {
        let from = &mut self.0;
        let number: usize = from.number().ok()?;
        let (cells, pairs) = (number >> 2, number & 2 != 0);
        let bytes = if number & 1 == 0 { cells } else { from.number().ok()? };
        let look = from.number().ok()?;
        let text = std::str::from_utf8(from.take(bytes).ok()?).ok()?;
        Some(Run { look, cells, text, pairs })
    }
}

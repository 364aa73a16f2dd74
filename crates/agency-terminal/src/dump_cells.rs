//! The cells of one screen as bytes: characters, and runs of cells with the same look.
//!
//! The engine keeps looks in tables whose order depends on the past; a dump numbers them by first use.

use std::collections::HashMap;

use rio_vt::crosswords::grid::Dimensions;
use rio_vt::crosswords::grid::row::{Row, SemanticPrompt};
use rio_vt::crosswords::pos::{Column, Line};
use rio_vt::crosswords::square::{CellFlags, Square};

use crate::cells::{Cells, link_of, look_of, occupied};
use crate::dump_style::{read_link, read_style, write_link, write_style};
use crate::encoding::{DumpError, Reader, Writer, read_place};
use crate::look::{Extra, Look, cells_of, extras_id};
use crate::size::Size;

/// A larger number of cells means that the dump is damaged.
const CELLS_MAX: usize = 1 << 27;

pub(crate) fn write_cells(out: &mut Writer, cells: &Cells) {
    let mut rows = Writer::default();
    let mut looks = Looks::default();
    for line in 0..cells.screen_lines() as i32 {
        write_row(&mut rows, &cells[Line(line)], &mut looks);
    }
    out.len(looks.order.len());
    looks.order.iter().for_each(|look| Look::of(cells, *look).write(out));
    out.len(cells.screen_lines());
    out.0.append(&mut rows.0);
    write_cursor(out, cells);
}

/// `cells` must be blank; up to `above` rows of an older dump go above the screen.
pub(crate) fn read_cells(
    from: &mut Reader<'_>,
    size: Size,
    above: usize,
    cells: &mut Cells,
) -> Result<(), DumpError> {
    let looks = (0..from.len()?).map(|_| Look::read(from)).collect::<Result<Vec<_>, _>>()?;
    let looks = cells_of(cells, looks.iter());
    let total = from.len()?;
    let most = above.saturating_add(size.rows.into());
    if total < usize::from(size.rows) || total > most || total * usize::from(size.cols) > CELLS_MAX {
        return Err(DumpError::Damaged);
    }
    let mut rows = (0..total).map(|_| read_row(from, size.cols, &looks)).collect::<Result<Vec<_>, _>>()?;
    // The engine counts rows from the bottom.
    rows.reverse();
    cells.raw.replace_inner(rows);
    read_cursor(from, size, cells)
}

/// Looks, numbered by first use.
#[derive(Default)]
struct Looks {
    places: HashMap<u64, usize>,
    order: Vec<Square>,
    /// The last result: neighbouring cells mostly look the same.
    last: Option<(u64, usize)>,
}

impl Looks {
    fn place(&mut self, look: Square) -> usize {
        if let Some((_, place)) = self.last.filter(|(raw, _)| *raw == look.raw()) {
            return place;
        }
        let place = *self.places.entry(look.raw()).or_insert_with(|| {
            self.order.push(look);
            self.order.len() - 1
        });
        self.last = Some((look.raw(), place));
        place
    }
}

fn write_row(out: &mut Writer, row: &Row<Square>, looks: &mut Looks) {
    out.byte(match row.semantic_prompt {
        SemanticPrompt::None => 0,
        SemanticPrompt::Prompt => 1,
        SemanticPrompt::PromptContinuation => 2,
    });
    let cells = &row.inner[..occupied(&row.inner)];
    out.len(cells.len());
    for run in cells.chunk_by(|one, other| look_of(*one) == look_of(*other)) {
        out.len(run.len());
        out.len(looks.place(look_of(run[0])));
        for cell in run {
            write_char(out, cell.c());
        }
    }
}

fn write_char(out: &mut Writer, c: char) {
    match c {
        '\0'..='\x7f' => out.byte(c as u8),
        _ => out.0.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

fn read_row(from: &mut Reader<'_>, cols: u16, looks: &[Square]) -> Result<Row<Square>, DumpError> {
    let mark = match from.byte()? {
        0 => SemanticPrompt::None,
        1 => SemanticPrompt::Prompt,
        2 => SemanticPrompt::PromptContinuation,
        _ => return Err(DumpError::Damaged),
    };
    let occupied: usize = from.number()?;
    if occupied > usize::from(cols) {
        return Err(DumpError::Damaged);
    }
    let mut cells = Vec::with_capacity(cols.into());
    while cells.len() < occupied {
        let run: usize = from.number()?;
        if run == 0 || run > occupied - cells.len() {
            return Err(DumpError::Damaged);
        }
        let look = *looks.get(from.number::<usize>()?).ok_or(DumpError::Damaged)?;
        for _ in 0..run {
            let mut cell = look;
            cell.set_c(read_char(from)?);
            cells.push(cell);
        }
    }
    cells.resize(cols.into(), Square::default());
    let mut row = Row::from_vec(cells, occupied);
    row.semantic_prompt = mark;
    Ok(row)
}

fn read_char(from: &mut Reader<'_>) -> Result<char, DumpError> {
    let first = *from.0.first().ok_or(DumpError::Damaged)?;
    let len = match first {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    };
    let text = std::str::from_utf8(from.take(len)?).map_err(|_| DumpError::Damaged)?;
    text.chars().next().ok_or(DumpError::Damaged)
}

fn write_cursor(out: &mut Writer, cells: &Cells) {
    let cursor = &cells.cursor;
    out.number(cursor.pos.row.0 as u64);
    out.number(cursor.pos.col.0 as u64);
    out.flag(cursor.should_wrap);
    write_style(out, &cursor.pending_style);
    write_link(out, link_of(cells, cursor.template).as_ref());
}

fn read_cursor(from: &mut Reader<'_>, size: Size, cells: &mut Cells) -> Result<(), DumpError> {
    let (row, col) = read_place(from, size)?;
    cells.cursor.pos.row = Line(row.into());
    cells.cursor.pos.col = Column(col.into());
    cells.cursor.should_wrap = from.flag()?;
    cells.set_template_style(read_style(from)?);
    if let Some(link) = read_link(from)? {
        let id = extras_id(cells, &Extra { link: Some(link), marks: String::new() });
        cells.cursor.template.set_extras_id(id);
        cells.cursor.template.insert_cell_flag(CellFlags::HYPERLINK);
    }
    Ok(())
}

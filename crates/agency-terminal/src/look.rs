//! A cell's look: everything except its character, in a form that is valid on every screen.
//!
//! The engine keeps looks in its own tables, and cells hold only indices; a cell that leaves its screen must take
//! its look along.

use rio_vt::crosswords::grid::row::Row;
use rio_vt::crosswords::pos::Line;
use rio_vt::crosswords::square::{CellFlags, ContentTag, Extras, Hyperlink, Square, Wide};
use rio_vt::crosswords::style::Style;

use crate::cells::{Cells, Link, PROTECTED, link_of};
use crate::dump_style::{read_link, read_style, write_link, write_style};
use crate::encoding::{DumpError, Reader, Writer};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Look {
    wide: u8,
    flags: u8,
    pub(crate) paint: Paint,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Paint {
    /// The look of a character, with what only few cells have.
    Pen(Style, Option<Box<Extra>>),
    /// A blank cell with one of 256 colours, or an RGB colour, as background.
    Palette(u8),
    Rgb(u8, u8, u8),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Extra {
    pub(crate) link: Option<Link>,
    /// Characters that combine with the cell's own.
    pub(crate) marks: String,
}

impl Extra {
    /// Its approximate size in memory, in bytes.
    pub(crate) fn size(&self) -> usize {
        let link = self.link.as_ref().map_or(0, |link| link.id.len() + link.uri.len());
        size_of::<Extra>() + link + self.marks.len()
    }
}

impl Look {
    /// The look of a cell on this screen.
    pub(crate) fn of(cells: &Cells, cell: Square) -> Look {
        let paint = match cell.content_tag() {
            ContentTag::BgPalette => Paint::Palette(cell.bg_palette_index()),
            ContentTag::BgRgb => {
                let (r, g, b) = cell.bg_rgb();
                Paint::Rgb(r, g, b)
            }
            ContentTag::Codepoint => {
                let extras = cell.extras_id().and_then(|id| cells.extras_table.get(id));
                let marks: String = extras.iter().flat_map(|extras| &extras.zerowidth).collect();
                Paint::pen(cells.style_of(&cell), link_of(cells, cell), marks)
            }
        };
        Look { wide: cell.wide() as u8, flags: cell.cell_flags().bits(), paint }
    }

    /// A blank cell with this look on that screen; adds what is missing to the screen's tables.
    fn cell(&self, cells: &mut Cells) -> Square {
        let mut cell = Square::default();
        match &self.paint {
            Paint::Palette(index) => cell.set_bg_palette(*index),
            Paint::Rgb(r, g, b) => cell.set_bg_rgb(*r, *g, *b),
            Paint::Pen(style, extra) => {
                cells.set_template_style(*style);
                cells.sync_template_style();
                cell.set_style_id(cells.template_style_id());
                cell.set_extras_id(extra.as_ref().and_then(|extra| extras_id(cells, extra)));
            }
        }
        cell.set_cell_flags(CellFlags::from_bits_truncate(self.flags));
        cell.set_wide(self.wide());
        cell
    }

    pub(crate) fn wide(&self) -> Wide {
        match self.wide {
            0 => Wide::Narrow,
            1 => Wide::Wide,
            2 => Wide::Spacer,
            _ => Wide::LeadingSpacer,
        }
    }

    /// Whether the cell holds several characters.
    pub(crate) fn is_cluster(&self) -> bool {
        self.flags & CellFlags::GRAPHEME.bits() != 0
    }

    pub(crate) fn is_protected(&self) -> bool {
        self.flags & PROTECTED.bits() != 0
    }

    pub(crate) fn style(&self) -> Style {
        use rio_vt::config::colors::{AnsiColor, ColorRgb};
        let bg = match &self.paint {
            Paint::Pen(style, _) => return *style,
            Paint::Palette(index) => AnsiColor::Indexed(*index),
            Paint::Rgb(r, g, b) => AnsiColor::Spec(ColorRgb { r: *r, g: *g, b: *b }),
        };
        Style { bg, ..Style::default() }
    }

    pub(crate) fn extra(&self) -> Option<&Extra> {
        match &self.paint {
            Paint::Pen(_, extra) => extra.as_deref(),
            Paint::Palette(_) | Paint::Rgb(..) => None,
        }
    }

    pub(crate) fn link(&self) -> Option<&Link> {
        self.extra()?.link.as_ref()
    }

    pub(crate) fn marks(&self) -> &str {
        self.extra().map_or("", |extra| &extra.marks)
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.byte(self.wide);
        out.byte(self.flags);
        match &self.paint {
            Paint::Palette(index) => out.0.extend([1, *index]),
            Paint::Rgb(r, g, b) => out.0.extend([2, *r, *g, *b]),
            Paint::Pen(style, _) => {
                out.byte(0);
                write_style(out, style);
                write_link(out, self.link());
                out.text(self.marks());
            }
        }
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Look, DumpError> {
        let (wide, flags) = (from.byte()?, from.byte()?);
        if wide > Wide::LeadingSpacer as u8 || CellFlags::from_bits(flags).is_none() {
            return Err(DumpError::Damaged);
        }
        let paint = match from.byte()? {
            0 => Paint::pen(read_style(from)?, read_link(from)?, from.text()?.to_owned()),
            1 => Paint::Palette(from.byte()?),
            2 => Paint::Rgb(from.byte()?, from.byte()?, from.byte()?),
            _ => return Err(DumpError::Damaged),
        };
        Ok(Look { wide, flags, paint })
    }
}

impl Paint {
    fn pen(style: Style, link: Option<Link>, marks: String) -> Paint {
        let plain = link.is_none() && marks.is_empty();
        Paint::Pen(style, (!plain).then(|| Box::new(Extra { link, marks })))
    }
}

pub(crate) fn extras_id(cells: &mut Cells, extra: &Extra) -> Option<u16> {
    let hyperlink = extra.link.as_ref().map(|link| Hyperlink::new(Some(&link.id), &link.uri));
    let extras = Extras { zerowidth: extra.marks.chars().collect(), hyperlink };
    Some(cells.alloc_extras(extras)).filter(|id| *id != 0)
}

/// Blank cells with these looks on a screen. Meanwhile they are in a row above the screen, because a cleanup of
/// the engine's tables keeps only what rows use. It keeps the pen too, which is unchanged afterwards.
pub(crate) fn cells_of<'a>(cells: &mut Cells, looks: impl Iterator<Item = &'a Look>) -> Vec<Square> {
    let shelf_line = Line(-1);
    let (pen, template) = (cells.template_style(), cells.cursor.template);
    let mut rows = cells.raw.take_all();
    let above = rows.split_off(rows.len().min(visible(cells)));
    rows.push(Row::from_vec(Vec::new(), 0));
    rows.push(Row::from_vec(vec![template], 1));
    rows.extend(above);
    cells.raw.replace_inner(rows);
    for look in looks {
        let cell = look.cell(cells);
        let shelf = &mut cells.raw[shelf_line];
        shelf.inner.push(cell);
        shelf.has_styles = true;
    }
    let mut rows = cells.raw.take_all();
    let made = rows.remove(visible(cells)).inner;
    rows.remove(visible(cells));
    cells.raw.replace_inner(rows);
    cells.cursor.template = template;
    cells.set_template_style(pen);
    made
}

fn visible(cells: &Cells) -> usize {
    use rio_vt::crosswords::grid::Dimensions;
    cells.screen_lines()
}

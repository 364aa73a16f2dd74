//! Encodes rows of the scrollback as bytes that draw them, without making cells first.

use rio_vt::crosswords::square::{Square, Wide};
use rio_vt::crosswords::style::Style;

use super::{Out, alike_on_a_blank, erase_rest};
use crate::cells::{Cells, is_protected};
use crate::disputed::width_of_text;
use crate::look::Look;
use crate::scrollback::Piece;

/// The first cell of a row.
#[derive(Clone, Copy)]
pub(super) struct First {
    is_wide: bool,
    is_protected: bool,
    style: Style,
}

impl First {
    pub(super) fn of_cell(cells: &Cells, cell: Square) -> First {
        First { is_wide: cell.is_wide(), is_protected: is_protected(cell), style: cells.style_of(&cell) }
    }

    pub(super) fn of_piece(piece: &Piece<'_>) -> Option<First> {
        let look = &piece.looks[piece.runs().next()?.look];
        let is_wide = look.wide() == Wide::Wide;
        Some(First { is_wide, is_protected: look.is_protected(), style: look.style() })
    }
}

/// Like [`super::row`], for a piece of the screen's width. `next` is the cell in which its line continues, if any.
pub(super) fn row(out: &mut Out, piece: &Piece<'_>, next: Option<First>, wrapping: bool) {
    let next = next.filter(|_| piece.head.wrapped);
    let width = out.width;
    let mut at = 0;
    for run in piece.runs() {
        let look = &piece.looks[run.look];
        match look.wide() {
            Wide::Spacer => {}
            Wide::LeadingSpacer if at + 1 == width && wide_follows(look, next) => {}
            Wide::LeadingSpacer => {
                take_up(out, look);
                run.text.chars().for_each(|_| out.say(" "));
            }
            Wide::Narrow | Wide::Wide => {
                take_up(out, look);
                text(out, look, run.text, at);
            }
        }
        at += run.cells;
    }
    if wrapping && at == 0 {
        out.pen(&Style::default(), None);
        out.protect(false);
        out.say(" ");
    }
    if wrapping && at < width {
        erase_rest(out);
    }
}

fn take_up(out: &mut Out, look: &Look) {
    out.pen(&look.style(), look.link());
    out.protect(look.is_protected());
}

/// The characters of a run that starts in this column.
fn text(out: &mut Out, look: &Look, text: &str, mut at: usize) {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && !look.is_cluster() {
        return out.say(text);
    }
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        out.bytes.extend_from_slice(if c == '\0' { ' ' } else { c }.encode_utf8(&mut [0; 4]).as_bytes());
        out.say(look.marks());
        at += 1 + usize::from(look.wide() == Wide::Wide);
        let next = chars.peek().map(|next| width_of_text(*next, false));
        if width_of_text(c, look.is_cluster()).may_displace(next) && at < out.width {
            out.go_to_column(at);
        }
    }
}

fn wide_follows(blank: &Look, next: Option<First>) -> bool {
    next.is_some_and(|next| {
        next.is_wide
            && next.is_protected == blank.is_protected()
            && alike_on_a_blank(&blank.style(), &next.style)
    })
}

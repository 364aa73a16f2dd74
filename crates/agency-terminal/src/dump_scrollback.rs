//! A scrollback as bytes: first the looks in the order of their use, then the rows.

use std::collections::HashMap;

use rio_vt::crosswords::grid::row::SemanticPrompt;
use rio_vt::crosswords::square::Wide;

use crate::encoding::{DumpError, Reader, Writer};
use crate::look::Look;
use crate::scrollback::{Adding, Head, Scrollback};

/// A row cannot be wider than this.
const CELLS_MAX: usize = 1 << 16;

pub(crate) fn write_scrollback(out: &mut Writer, scrollback: &Scrollback) {
    let mut rows = Writer::default();
    let mut places = HashMap::new();
    let mut order: Vec<&Look> = Vec::new();
    let mut known: (&[Look], Vec<Option<usize>>) = (&[], Vec::new());
    for piece in scrollback.pieces() {
        // Rows of one block share their looks.
        if !std::ptr::eq(known.0, piece.looks) {
            known = (piece.looks, vec![None; piece.looks.len()]);
        }
        write_head(&mut rows, piece.head);
        for run in piece.runs() {
            let look = &piece.looks[run.look];
            let place = *known.1[run.look].get_or_insert_with(|| {
                *places.entry(look).or_insert_with(|| {
                    order.push(look);
                    order.len() - 1
                })
            });
            rows.len(run.cells << 1 | usize::from(run.pairs));
            rows.len(place);
            rows.text(run.text);
        }
    }
    out.len(order.len());
    order.iter().for_each(|look| look.write(out));
    out.len(scrollback.len());
    out.0.append(&mut rows.0);
}

pub(crate) fn read_scrollback(from: &mut Reader<'_>, limit: usize) -> Result<Scrollback, DumpError> {
    let looks = (0..from.len()?).map(|_| Look::read(from)).collect::<Result<Vec<_>, _>>()?;
    let mut scrollback = Scrollback::of(limit);
    let rows = from.len()?;
    if rows > limit {
        return Err(DumpError::Damaged);
    }
    let mut adding = scrollback.adding();
    for _ in 0..rows {
        read_row(from, &looks, &mut adding)?;
    }
    Ok(scrollback)
}

fn write_head(out: &mut Writer, head: Head) {
    out.byte(match head.mark {
        SemanticPrompt::None => 0,
        SemanticPrompt::Prompt => 1,
        SemanticPrompt::PromptContinuation => 2,
    });
    out.flag(head.wrapped);
    out.len(head.len);
}

fn read_head(from: &mut Reader<'_>) -> Result<Head, DumpError> {
    let mark = match from.byte()? {
        0 => SemanticPrompt::None,
        1 => SemanticPrompt::Prompt,
        2 => SemanticPrompt::PromptContinuation,
        _ => return Err(DumpError::Damaged),
    };
    let (wrapped, len) = (from.flag()?, from.number()?);
    // A row that continues in the next one is full.
    if len > CELLS_MAX || wrapped && len == 0 {
        Err(DumpError::Damaged)
    } else {
        Ok(Head { len, wrapped, mark })
    }
}

fn read_row(from: &mut Reader<'_>, looks: &[Look], adding: &mut Adding<'_>) -> Result<(), DumpError> {
    let head = read_head(from)?;
    adding.begin(head);
    let mut left = head.len;
    while left > 0 {
        let number: usize = from.number()?;
        let (cells, pairs) = (number >> 1, number & 1 != 0);
        let place: usize = from.number()?;
        let text = from.text()?;
        let look = looks.get(place).ok_or(DumpError::Damaged)?;
        let fits = text.chars().count() * if pairs { 2 } else { 1 } == cells;
        if !fits || cells == 0 || cells > left || pairs && look.wide() != Wide::Wide {
            return Err(DumpError::Damaged);
        }
        let number = adding.number(place as u64, || look.clone());
        adding.run(number, text, cells, pairs);
        left -= cells;
    }
    adding.end();
    Ok(())
}

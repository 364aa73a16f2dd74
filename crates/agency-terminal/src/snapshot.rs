//! A readable copy of a terminal's state, for comparing and inspecting.
//!
//! Cannot be restored; dumps can.

use rio_vt::config::colors::AnsiColor;
use rio_vt::crosswords::grid::Dimensions;
use rio_vt::crosswords::grid::row::{Row, SemanticPrompt};
use rio_vt::crosswords::pos::Line;
use rio_vt::crosswords::square::{Square, Wide};
use rio_vt::crosswords::style::{Style, StyleFlags};
use serde::Serialize;

use crate::cells::{Cells, Link, is_protected, is_wrapped, link_of, occupied, text_of};
use crate::modes::Modes;
use crate::pen;
use crate::scrollback::{Scratch, Scrollback};
use crate::size::Size;
use crate::terminal::{SavedCursor, Terminal};

/// The state of a terminal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Snapshot {
    /// The size.
    pub size: Size,
    /// Oldest first.
    pub scrollback: Vec<RowSnapshot>,
    /// The primary screen.
    pub primary: ScreenSnapshot,
    /// `None` unless it is shown.
    pub alternate: Option<ScreenSnapshot>,
    /// The first and last row that scroll.
    pub margins: (u16, u16),
    /// The first and last column that scroll.
    pub side_margins: (u16, u16),
    /// The columns of the tab stops.
    pub tabs: Vec<u16>,
    /// The final bytes that designate G0 to G3.
    pub charsets: [char; 4],
    /// Which set is in use, and which for the next character only.
    pub charset: (u8, Option<u8>),
    /// The cursor that `ESC 8` restores on the primary screen.
    pub saved_primary: CursorSnapshot,
    /// The cursor that `ESC 8` restores on the alternate screen.
    pub saved_alternate: CursorSnapshot,
    /// Insert mode (IRM).
    pub insert: bool,
    /// Text wraps at the last column (DECAWM).
    pub autowrap: bool,
    /// Characters of a grapheme cluster share a cell (2027).
    pub grapheme_clusters: bool,
    /// The modes for input and the cursor.
    pub modes: Modes,
    /// Private modes that are on and not in `modes`, such as reverse video.
    pub other_modes: Vec<u16>,
    /// The stack of keyboard flags, oldest first; the last entry is active.
    pub keyboard_primary: Vec<u8>,
    /// The same for the alternate screen.
    pub keyboard_alternate: Vec<u8>,
    /// Colours that the program changed, by number; 256 to 258 are foreground, background and cursor.
    pub palette: Vec<(u16, [u8; 3])>,
    /// The window title.
    pub title: String,
    /// Saved window titles, oldest first.
    pub titles: Vec<String>,
    /// Bytes of an incomplete unit.
    pub held: Vec<u8>,
}

/// One of the two screens.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScreenSnapshot {
    /// From top to bottom.
    pub rows: Vec<RowSnapshot>,
    /// The cursor.
    pub cursor: CursorSnapshot,
}

/// One row of a screen or of the scrollback.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowSnapshot {
    /// Without untouched cells at the end.
    pub cells: Vec<CellSnapshot>,
    /// The line continues in the next row.
    pub wrapped: bool,
    /// A shell marked its prompt here.
    pub prompt: bool,
}

/// One cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellSnapshot {
    /// Empty for a cell that was never written, or that is the second half of a wide character.
    pub text: String,
    /// In columns: 0 for the second half of a wide character.
    pub width: u8,
    /// How it looks.
    pub pen: Pen,
}

/// A cursor, current or saved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CursorSnapshot {
    /// From 0.
    pub row: u16,
    /// From 0.
    pub col: u16,
    /// The line is full, so the next character goes to the next line.
    pub wrap_pending: bool,
    /// How the next character looks.
    pub pen: Pen,
    /// The saved origin mode; `None` for a current cursor.
    pub origin: Option<bool>,
}

/// How a character looks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pen {
    /// The colour of the character.
    pub foreground: Colour,
    /// The colour behind it.
    pub background: Colour,
    /// The colour of the underline, if it has its own.
    pub underline_colour: Option<Colour>,
    /// Bold.
    pub bold: bool,
    /// Dim.
    pub dim: bool,
    /// Italic.
    pub italic: bool,
    /// Blinking, slow or fast.
    pub blink: bool,
    /// Foreground and background are exchanged.
    pub inverse: bool,
    /// The character is invisible.
    pub hidden: bool,
    /// Struck out.
    pub strikeout: bool,
    /// 0 none, 1 single, 2 double, 3 curly, 4 dotted, 5 dashed.
    pub underline: u8,
    /// The address of a link.
    pub link: Option<String>,
    /// Selective erasing skips it.
    pub protected: bool,
}

/// A colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Colour {
    /// The terminal's own colour.
    Default,
    /// One of the 256 numbered colours.
    Indexed(u8),
    /// Red, green and blue.
    Rgb(u8, u8, u8),
}

pub(crate) fn snapshot(terminal: &Terminal) -> Snapshot {
    let canvas = &terminal.canvas;
    let primary = canvas.primary();
    let keyboards = &terminal.keyboards;
    Snapshot {
        size: terminal.size,
        scrollback: scrollback(canvas.scrollback(), terminal.size.cols.into()),
        primary: screen(primary),
        alternate: canvas.is_alternate().then(|| screen(canvas.shown())),
        margins: canvas.margins(),
        side_margins: canvas.columns(),
        tabs: terminal.tabs.stops().collect(),
        charsets: terminal.charsets.sets.map(|set| set.last() as char),
        charset: (terminal.charsets.used, terminal.charsets.next),
        saved_primary: saved(&terminal.saved.primary),
        saved_alternate: saved(&terminal.saved.alternate),
        insert: canvas.insert(),
        autowrap: canvas.autowrap(),
        grapheme_clusters: canvas.clusters(),
        modes: terminal.modes,
        other_modes: terminal.settings.on.iter().copied().collect(),
        keyboard_primary: [&keyboards.primary.covered[..], &[keyboards.primary.flags]].concat(),
        keyboard_alternate: [&keyboards.alternate.covered[..], &[keyboards.alternate.flags]].concat(),
        palette: terminal.palette.changed().map(|(index, rgb)| (index, [rgb.0, rgb.1, rgb.2])).collect(),
        title: terminal.title.clone(),
        titles: terminal.titles.clone(),
        held: terminal.scanner.held().0.to_vec(),
    }
}

/// The scrollback's rows at a width.
fn scrollback(scrollback: &Scrollback, width: usize) -> Vec<RowSnapshot> {
    let mut scratch = Scratch::new(width);
    let mut rows = Vec::new();
    for line in scrollback.lines() {
        let flowing = scratch.flow(&line);
        rows.extend(flowing.iter().map(|line| row(&scratch.cells, line)));
    }
    rows
}

fn screen(cells: &Cells) -> ScreenSnapshot {
    let cursor = &cells.cursor;
    ScreenSnapshot {
        rows: (0..cells.screen_lines() as i32).map(|line| row(cells, &cells[Line(line)])).collect(),
        cursor: CursorSnapshot {
            row: cursor.pos.row.0 as u16,
            col: cursor.pos.col.0 as u16,
            wrap_pending: cursor.should_wrap,
            pen: pen_of(
                &cursor.pending_style,
                link_of(cells, cursor.template),
                is_protected(cursor.template),
            ),
            origin: None,
        },
    }
}

fn saved(saved: &SavedCursor) -> CursorSnapshot {
    CursorSnapshot {
        row: saved.row,
        col: saved.col,
        wrap_pending: saved.wrap_pending,
        pen: pen_of(&saved.style, saved.link.clone(), saved.protecting),
        origin: Some(saved.origin),
    }
}

fn row(cells: &Cells, row: &Row<Square>) -> RowSnapshot {
    let used = occupied(&row.inner);
    RowSnapshot {
        cells: row.inner[..used].iter().map(|square| cell(cells, *square)).collect(),
        wrapped: is_wrapped(row),
        prompt: row.semantic_prompt != SemanticPrompt::None,
    }
}

fn cell(cells: &Cells, square: Square) -> CellSnapshot {
    let width = match square.wide() {
        Wide::Narrow => 1,
        Wide::Wide => 2,
        Wide::Spacer | Wide::LeadingSpacer => 0,
    };
    let (c, marks) = text_of(cells, square);
    let written = width > 0 && square.c() != '\0';
    let text = if written { [&[c], marks].concat().iter().collect() } else { String::new() };
    let pen = pen_of(&cells.style_of(&square), link_of(cells, square), is_protected(square));
    CellSnapshot { text, width, pen }
}

fn pen_of(style: &Style, link: Option<Link>, protected: bool) -> Pen {
    let has = |flag| style.flags.intersects(flag);
    Pen {
        foreground: colour(style.fg),
        background: colour(style.bg),
        underline_colour: style.underline_color.map(colour),
        bold: has(StyleFlags::BOLD),
        dim: has(StyleFlags::DIM),
        italic: has(StyleFlags::ITALIC),
        blink: has(StyleFlags::ALL_BLINK),
        inverse: has(StyleFlags::INVERSE),
        hidden: has(StyleFlags::HIDDEN),
        strikeout: has(StyleFlags::STRIKEOUT),
        underline: style.flags.underline_kind().map_or(0, |kind| kind as u8 + 1),
        link: link.map(|link| link.uri),
        protected,
    }
}

fn colour(colour: AnsiColor) -> Colour {
    match colour {
        AnsiColor::Named(name) => pen::index_of(name).map_or(Colour::Default, Colour::Indexed),
        AnsiColor::Indexed(index) => Colour::Indexed(index),
        AnsiColor::Spec(rgb) => Colour::Rgb(rgb.r, rgb.g, rgb.b),
    }
}

//! The part of a screen that a window of another size shows, as bytes, row by row.
//!
//! Does not know what the viewer already sees; the window remembers that.

use rio_vt::crosswords::grid::Dimensions;
use rio_vt::crosswords::pos::Line;
use rio_vt::crosswords::square::{Square, Wide};
use rio_vt::crosswords::style::Style;

use crate::cells::{Cells, Link, link_of, look_of, text_of};
use crate::disputed::{self, Width};
use crate::modes::Modes;
use crate::palette::Rgb;
use crate::pen;
use crate::size::Size;
use crate::terminal::Terminal;

/// The start of every redraw and frame for a viewer: a synchronized update.
pub const PICTURE: &str = "\x1b[?2026h";

/// A place on a screen, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Corner {
    pub(crate) row: u16,
    pub(crate) col: u16,
}

/// How the viewer's keyboard and mouse are set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// As the program wants, because the viewer types.
    Program,
    /// With the defaults, because the viewer only watches.
    Plain,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) alternate: bool,
    pub(crate) clusters: bool,
    /// Each row starts with a plain pen in the first column, and leaves the pen plain.
    pub(crate) rows: Vec<Vec<u8>>,
    pub(crate) palette: Vec<(u16, Rgb)>,
    pub(crate) title: String,
    /// Sequences that switch the keyboard and the mouse to what the program wants.
    pub(crate) keyboard: String,
    pub(crate) cursor: Corner,
    pub(crate) cursor_visible: bool,
    pub(crate) cursor_shape: String,
}

/// `corner` is the place on the screen that the window's first cell shows.
pub(crate) fn picture(terminal: &Terminal, size: Size, corner: Corner, keys: Keys) -> Picture {
    let modes = &terminal.modes;
    let (row, col) = terminal.canvas.cursor();
    let blink = if modes.cursor_blinking { 'h' } else { 'l' };
    Picture {
        alternate: terminal.canvas.is_alternate(),
        clusters: terminal.canvas.clusters(),
        rows: (0..size.rows).map(|line| line_of(terminal, size, corner, line)).collect(),
        palette: terminal.palette.changed().collect(),
        title: terminal.title.clone(),
        keyboard: match keys {
            Keys::Program => keyboard(modes, terminal.keyboards.of(terminal.canvas.is_alternate()).flags),
            Keys::Plain => keyboard(&Modes::default(), 0),
        },
        cursor: Corner { row: row.saturating_sub(corner.row), col: col.saturating_sub(corner.col) },
        cursor_visible: modes.cursor_visible,
        cursor_shape: format!("\x1b[?12{blink}\x1b[{} q", modes.cursor_style()),
    }
}

fn line_of(terminal: &Terminal, size: Size, corner: Corner, line: u16) -> Vec<u8> {
    let cells = terminal.canvas.shown();
    let (rows, cols) = (cells.screen_lines() as u16, cells.columns() as u16);
    let mut out = RowOut::default();
    let spare = usize::from(size.cols).saturating_sub(usize::from(cols - corner.col));
    match line + corner.row {
        at if at < rows => {
            let right = usize::from(cols).min(usize::from(corner.col) + usize::from(size.cols));
            out.cells(cells, at, usize::from(corner.col)..right, spare > 0);
            out.outside("x", 1, spare);
        }
        at if at == rows => {
            let below = usize::from(size.cols) - spare;
            let edge = if spare > 0 { "j" } else { "" };
            out.outside(&format!("{}{edge}", "q".repeat(below)), below + edge.len(), usize::from(size.cols));
        }
        _ => out.bytes.extend_from_slice(b"\x1b[K"),
    }
    out.bytes
}

#[derive(Default)]
struct RowOut {
    bytes: Vec<u8>,
    style: Style,
    link: Option<Link>,
    /// The look of the last cell: neighbouring cells mostly look the same.
    look: Option<Square>,
}

impl RowOut {
    /// The cells of one row in these columns; with `full`, blank cells at the end too.
    fn cells(&mut self, cells: &Cells, row: u16, columns: std::ops::Range<usize>, full: bool) {
        let inner = &cells[Line(row.into())].inner[..columns.end];
        let occupied = inner.iter().rposition(|cell| !cell.is_default()).map_or(0, |last| last + 1);
        let used = if full { columns.end } else { occupied.max(columns.start) };
        let mut at = columns.start;
        while at < used {
            let cell = inner[at];
            at += 1 + usize::from(cell.is_wide());
            match cell.wide() {
                Wide::Wide if at <= columns.end => self.cell(cells, cell),
                Wide::Narrow => self.cell(cells, cell),
                // Half of a character that the edge cuts, or a leftover half.
                Wide::Wide | Wide::Spacer | Wide::LeadingSpacer => self.blank(cells, cell),
            }
            let next = inner.get(at).copied().or((full && at == columns.end).then_some(Square::default()));
            if next.is_some_and(|next| disputed::may_displace(cell, next)) {
                self.say(&format!("\x1b[{}G", at - columns.start + 1));
            }
        }
        self.plain();
        if at < columns.end {
            self.say("\x1b[K");
        }
    }

    fn cell(&mut self, cells: &Cells, cell: Square) {
        let look = look_of(cell);
        if self.look != Some(look) {
            self.pen(cells.style_of(&cell), link_of(cells, cell));
            self.look = Some(look);
        }
        if disputed::width_of(cell) == Width::Disputed {
            // Erase first: if the terminal draws the character narrower, the rest must be blank and not old text.
            self.say(if cell.is_wide() { "\x1b[2X" } else { "\x1b[X" });
        }
        let (c, marks) = text_of(cells, cell);
        for c in std::iter::once(&c).chain(marks) {
            self.say(c.encode_utf8(&mut [0; 4]));
        }
    }

    fn blank(&mut self, cells: &Cells, cell: Square) {
        self.look = None;
        self.pen(cells.style_of(&cell), None);
        self.say(" ");
    }

    fn plain(&mut self) {
        self.pen(Style::default(), None);
        self.look = None;
    }

    fn pen(&mut self, style: Style, link: Option<Link>) {
        if self.style != style {
            self.say(&format!("\x1b[{}m", pen::parameters(&style)));
            self.style = style;
        }
        if self.link != link {
            let (id, uri) = link.as_ref().map_or(("", ""), |link| (&link.id, &link.uri));
            let key = if id.is_empty() { "" } else { "id=" };
            self.say(&format!("\x1b]8;{key}{id};{uri}\x1b\\"));
            self.link = link;
        }
    }

    /// Marks where the screen ends, in line-drawing characters, which are narrow everywhere.
    fn outside(&mut self, line: &str, drawn: usize, room: usize) {
        if room > 0 {
            self.say(&format!("\x1b[2m\x1b(0{line}\x1b(B\x1b[0m"));
        }
        if drawn < room {
            self.say("\x1b[K");
        }
    }

    fn say(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

fn keyboard(modes: &Modes, kitty_flags: u8) -> String {
    let switch = |mode: u16, on: bool| format!("\x1b[?{mode}{}", if on { 'h' } else { 'l' });
    let mut text = String::new();
    for mode in [1, 1004, 1007, 2004] {
        text += &switch(mode, modes.get(mode) == Some(true));
    }
    // The last mode set wins, and resetting any mode resets all: so reset all first, then set one.
    for mode in [9, 1000, 1002, 1003, 1005, 1006, 1015, 1016] {
        text += &switch(mode, false);
    }
    for mode in [modes.mouse.number(), modes.mouse_encoding.number()].into_iter().flatten() {
        text += &switch(mode, true);
    }
    let keypad = if modes.app_keypad { "\x1b=" } else { "\x1b>" };
    text + &format!("{keypad}\x1b[>4;{}m\x1b[<99u\x1b[={kitty_flags};1u", modes.modify_other_keys)
}

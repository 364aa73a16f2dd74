//! Encodes a screen as bytes that draw it on a viewer's terminal of the same size.
//!
//! Works in any state of that terminal, and does not erase its scrollback. Does not send what cannot be seen:
//! the saved cursor of the other screen, prompt marks of shells.

use std::io::Write;

use rio_vt::crosswords::grid::Dimensions;
use rio_vt::crosswords::grid::row::Row;
use rio_vt::crosswords::pos::Line;
use rio_vt::crosswords::square::{Square, Wide};
use rio_vt::crosswords::style::Style;

use crate::canvas::Canvas;
use crate::cells::{Cells, Link, is_protected, is_wrapped, link_of, look_of, occupied, text_of};
use crate::charset::Charsets;
use crate::disputed;
use crate::kitty::Keyboard;
use crate::palette;
use crate::pen;
use crate::picture::PICTURE;
use crate::scrollback::{Scratch, flows_as_it_is};
use crate::settings::{self, Protection};
use crate::tabs::Tabs;
use crate::terminal::{SavedCursor, Terminal};

mod pieces;

pub(crate) fn redraw(terminal: &Terminal, scrollback_rows: usize) -> Vec<u8> {
    let canvas = &terminal.canvas;
    let iso = terminal.settings.protection == Protection::Iso;
    let mut out = Out { iso, width: canvas.cols().into(), ..Out::default() };
    out.say(PICTURE);
    begin(&mut out);
    // Set the cluster mode before drawing, because it changes how characters combine.
    private_mode(&mut out, 2027, canvas.clusters());
    palette_colours(&mut out, terminal);
    let primary = canvas.primary();
    let wrapping = scrollback_rows > 0 && scrollback(&mut out, canvas, scrollback_rows);
    screen(&mut out, primary, wrapping);
    keyboard(&mut out, &terminal.keyboards.primary);
    if canvas.is_alternate() {
        // The viewer's terminal saves the primary cursor and pen, and restores them later.
        cursor(&mut out, primary, &terminal.saved.primary.charsets, canvas.cols() - 1);
        out.say("\x1b[?1049h\x1b(B\x0f\x1b[0m\x1b[H\x1b[2J");
        out.forget_pen();
        screen(&mut out, canvas.shown(), false);
        keyboard(&mut out, &terminal.keyboards.alternate);
    }
    tabs(&mut out, terminal);
    saved_and_margins(&mut out, terminal);
    modes(&mut out, terminal);
    out.say(&format!("\x1b]2;{}\x1b\\", terminal.title));
    cursor(&mut out, canvas.shown(), &terminal.charsets, canvas.columns().1);
    last_modes(&mut out, terminal);
    out.say("\x1b[?2026l");
    out.bytes
}

/// Searching more cached sequences would cost more than it saves.
const SEQUENCES_MAX: usize = 16;

/// The bytes so far, and the state of the viewer's pen.
#[derive(Default)]
struct Out {
    bytes: Vec<u8>,
    style: Option<Style>,
    link: Option<Link>,
    sequences: Vec<(Style, String)>,
    /// The look of the last cell: neighbouring cells mostly look the same.
    look: Option<Square>,
    /// The screen's width in columns.
    width: usize,
    /// The row and the column from which the viewer's terminal counts.
    origin: (u16, u16),
    /// Whether written cells are protected, and whether by the ISO sequences.
    protecting: bool,
    iso: bool,
}

impl Out {
    fn say(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn forget_pen(&mut self) {
        self.style = None;
        self.look = None;
    }

    fn pen(&mut self, style: &Style, link: Option<&Link>) {
        self.look = None;
        if self.style.as_ref() != Some(style) {
            let sequence = self.sequence(style);
            self.bytes.extend_from_slice(self.sequences[sequence].1.as_bytes());
            self.style = Some(*style);
        }
        if self.link.as_ref() != link {
            let (id, uri) = link.map_or(("", ""), |link| (&link.id, &link.uri));
            let key = if id.is_empty() { "" } else { "id=" };
            self.say(&format!("\x1b]8;{key}{id};{uri}\x1b\\"));
            self.link = link.cloned();
        }
    }

    /// The index of the cached sequence for a style. Few styles are in use at a time.
    fn sequence(&mut self, style: &Style) -> usize {
        if let Some(known) = self.sequences.iter().position(|(known, _)| known == style) {
            return known;
        }
        if self.sequences.len() == SEQUENCES_MAX {
            self.sequences.clear();
        }
        self.sequences.push((*style, format!("\x1b[{}m", pen::parameters(style))));
        self.sequences.len() - 1
    }

    fn cell(&mut self, cells: &Cells, cell: Square) {
        let look = look_of(cell);
        if self.look != Some(look) {
            self.pen(&cells.style_of(&cell), link_of(cells, cell).as_ref());
            self.protect(is_protected(cell));
            self.look = Some(look);
        }
        let (c, marks) = text_of(cells, cell);
        self.bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        for mark in marks {
            self.bytes.extend_from_slice(mark.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    fn protect(&mut self, on: bool) {
        if self.protecting == on {
            return;
        }
        self.protecting = on;
        self.say(match (self.iso, on) {
            (true, true) => "\x1bV",
            (true, false) => "\x1bW",
            (false, true) => "\x1b[1\"q",
            (false, false) => "\x1b[0\"q",
        });
    }

    fn go_to_column(&mut self, col: usize) {
        write!(self.bytes, "\x1b[{}G", col + 1).expect("writing to memory does not fail");
    }

    fn go_to(&mut self, row: u16, col: u16) {
        let (top, left) = self.origin;
        self.say(&format!("\x1b[{};{}H", row.saturating_sub(top) + 1, col.saturating_sub(left) + 1));
    }

    /// Rows and columns count from `first` (origin mode), or from the upper left corner.
    fn count_from(&mut self, first: Option<(u16, u16)>) {
        self.say(if first.is_some() { "\x1b[?6h" } else { "\x1b[?6l" });
        self.origin = first.unwrap_or_default();
    }
}

/// From any state to a blank primary screen with default drawing modes.
fn begin(out: &mut Out) {
    // Leave the alternate screen; reset margins, origin, insert, wrap, newline, character sets, pen, protection, link.
    out.say("\x1b[?1049l\x1b[?69l\x1b[r\x1b[?6l\x1b[4l\x1b[?7h\x1b[20l\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b[0m\x1bW\x1b[0\"q\x1b]8;;\x1b\\");
    // Reset reverse video and reverse wrap; the program may have reset them while the viewer was away.
    out.say("\x1b[?5l\x1b[?45l\x1b[?1045l");
    // Clear from the corner on: when told to clear everything, some terminals move the old text to the scrollback.
    out.say("\x1b[H\x1b[J");
}

/// Draws the newest rows of the scrollback, from the beginning of a line. They scroll up. `true` if the last one continues
/// on the screen.
fn scrollback(out: &mut Out, canvas: &Canvas, rows_wanted: usize) -> bool {
    let primary = canvas.primary();
    let mut scratch = Scratch::new(out.width);
    let mut wrapping = false;
    for line in canvas.scrollback().newest_lines(rows_wanted) {
        if flows_as_it_is(&line, out.width) {
            let first_below = pieces::First::of_cell(primary, primary[Line(0)].inner[0]);
            for (at, piece) in line.iter().enumerate() {
                let next = line.get(at + 1).map_or(Some(first_below), pieces::First::of_piece);
                pieces::row(out, piece, next, wrapping);
                wrapping = piece.head.wrapped;
            }
        } else {
            let flowing = scratch.flow(&line);
            wrapping = rows(out, &scratch.cells, flowing.iter(), false);
        }
        if !wrapping {
            new_line(out);
        }
    }
    wrapping
}

/// Draws the rows of a screen one after the other.
fn screen(out: &mut Out, cells: &Cells, wrapping: bool) {
    rows(out, cells, (0..cells.screen_lines() as i32).map(|line| &cells[Line(line)]), wrapping);
}

/// Draws rows; those that do not fit scroll up. `true` if the last row continues.
fn rows<'a>(
    out: &mut Out,
    cells: &Cells,
    rows: impl Iterator<Item = &'a Row<Square>>,
    mut wrapping: bool,
) -> bool {
    let mut rows = rows.peekable();
    while let Some(this) = rows.next() {
        let next = rows.peek().copied();
        row(out, cells, this, next, wrapping);
        wrapping = is_wrapped(this);
        if !wrapping && next.is_some() {
            new_line(out);
        }
    }
    wrapping
}

/// Starts a new row. New rows take the pen's background.
fn new_line(out: &mut Out) {
    out.pen(&Style::default(), None);
    out.say("\r\n");
}

/// With `wrapping`, the row before continues here, so its first cell must be written to cause the wrap.
fn row(out: &mut Out, cells: &Cells, row: &Row<Square>, next: Option<&Row<Square>>, wrapping: bool) {
    let used = match is_wrapped(row) {
        true => row.inner.len(),
        false => occupied(&row.inner).max(usize::from(wrapping)),
    };
    for (at, cell) in row.inner[..used].iter().enumerate() {
        match cell.wide() {
            Wide::Spacer => {}
            // The wide character in the next row creates this cell.
            Wide::LeadingSpacer if wide_follows(cells, row, at, next) => {}
            Wide::LeadingSpacer => {
                out.pen(&cells.style_of(cell), None);
                out.protect(is_protected(*cell));
                out.say(" ");
            }
            Wide::Narrow | Wide::Wide => {
                out.cell(cells, *cell);
                let next = at + 1 + usize::from(cell.is_wide());
                if row.inner.get(next).is_some_and(|next| disputed::may_displace(*cell, *next)) {
                    out.go_to_column(next);
                }
            }
        }
    }
    if wrapping && used < row.inner.len() {
        erase_rest(out);
    }
}

/// Erases the rest of a row: a wrap may have scrolled and filled it with the background of its first character.
fn erase_rest(out: &mut Out) {
    out.pen(&Style::default(), None);
    out.say("\x1b[K");
}

/// Whether the next row starts with a wide character that did not fit here and looks the same.
fn wide_follows(cells: &Cells, row: &Row<Square>, at: usize, next: Option<&Row<Square>>) -> bool {
    let Some(next) = next.filter(|_| at + 1 == row.inner.len() && is_wrapped(row)) else { return false };
    let (here, next) = (row.inner[at], next.inner[0]);
    next.is_wide()
        && is_protected(here) == is_protected(next)
        && alike_on_a_blank(&cells.style_of(&here), &cells.style_of(&next))
}

fn alike_on_a_blank(blank: &Style, style: &Style) -> bool {
    blank == style || !(blank.renders_on_blank() || style.renders_on_blank())
}

/// The cursor's place, pending wrap and pen. `right` is the last column between the viewer's current margins.
fn cursor(out: &mut Out, cells: &Cells, charsets: &Charsets, right: u16) {
    let cursor = &cells.cursor;
    let (row, col) = (cursor.pos.row.0 as u16, cursor.pos.col.0 as u16);
    out.go_to(row, col);
    if cursor.should_wrap {
        write_last_again(out, cells, (row, col), right);
    }
    out.pen(&cursor.pending_style, link_of(cells, cursor.template).as_ref());
    out.protect(is_protected(cursor.template));
    self::charsets(out, charsets);
}

/// Writes the last cell again, because only that makes a wrap pending. Not if the line already continues: that
/// would split it. Not if the line ends at side margins that the viewer's terminal does not have now: the cursor
/// would move on. The margins cannot be set for this, because setting and releasing them moves the cursor. In
/// these cases the cursor's place is right but its pending wrap is lost.
fn write_last_again(out: &mut Out, cells: &Cells, (row, col): (u16, u16), right: u16) {
    let line = &cells[Line(row.into())];
    let lead = if line.inner[usize::from(col)].is_spacer() { col.saturating_sub(1) } else { col };
    let cell = line.inner[usize::from(lead)];
    let ends_here = col == right || usize::from(col) + 1 == out.width;
    // A wide character that the margin cuts would go to the next row.
    let is_cut = cell.is_wide() && lead == right;
    if is_wrapped(line) || !ends_here || is_cut {
        return;
    }
    out.go_to(row, lead);
    out.cell(cells, cell);
}

fn charsets(out: &mut Out, charsets: &Charsets) {
    for (slot, set) in "()*+".chars().zip(charsets.sets) {
        out.say(&format!("\x1b{slot}{}", set.last() as char));
    }
    out.say(["\x0f", "\x0e", "\x1bn", "\x1bo"][usize::from(charsets.used & 3)]);
}

fn palette_colours(out: &mut Out, terminal: &Terminal) {
    for (index, colour) in terminal.palette.changed() {
        out.say(&match index {
            ..palette::FOREGROUND => format!("\x1b]4;{index};{colour}\x1b\\"),
            _ => format!("\x1b]{};{colour}\x1b\\", index - palette::FOREGROUND + 10),
        });
    }
}

/// The keyboard flags of the screen that is shown, with the stack below them.
fn keyboard(out: &mut Out, keyboard: &Keyboard) {
    // More than any terminal keeps, so none are left.
    out.say("\x1b[<99u");
    let mut flags = keyboard.covered.iter().chain([&keyboard.flags]);
    if let Some(base) = flags.next().filter(|base| **base != 0) {
        out.say(&format!("\x1b[={base};1u"));
    }
    flags.for_each(|flags| out.say(&format!("\x1b[>{flags}u")));
}

fn tabs(out: &mut Out, terminal: &Terminal) {
    if terminal.tabs == Tabs::new(terminal.size.cols) {
        return out.say("\x1b[?5W");
    }
    out.say("\x1b[3g");
    for stop in terminal.tabs.stops() {
        out.go_to(0, stop);
        out.say("\x1bH");
    }
}

/// The cursor that `ESC 8` restores, then the margins: between margins not every place can be reached.
fn saved_and_margins(out: &mut Out, terminal: &Terminal) {
    let canvas = &terminal.canvas;
    let saved = terminal.saved.of(canvas.is_alternate());
    if *saved != SavedCursor::default() {
        out.count_from(saved.origin.then_some((0, 0)));
        out.go_to(saved.row, saved.col);
        if saved.wrap_pending {
            write_last_again(out, canvas.shown(), (saved.row, saved.col), canvas.cols() - 1);
        }
        out.pen(&saved.style, saved.link.as_ref());
        out.protect(saved.protecting);
        charsets(out, &saved.charsets);
        out.say("\x1b7\x1b(B\x0f");
    }
    let area = canvas.scrolling_area();
    out.say(&format!("\x1b[{};{}r", area.top + 1, area.bottom + 1));
    if terminal.settings.has(settings::COLUMN_MARGINS) {
        out.say(&format!("\x1b[?69h\x1b[{};{}s", area.left + 1, area.right + 1));
    }
    out.count_from(terminal.modes.origin.then_some((area.top, area.left)));
}

fn modes(out: &mut Out, terminal: &Terminal) {
    let modes = &terminal.modes;
    for mode in [1, 12, 25, 1004, 1007, 2004] {
        private_mode(out, mode, modes.get(mode) == Some(true));
    }
    // The last mode set wins, and resetting any mode resets all: so reset all first, then set one.
    out.say("\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l");
    for mode in [modes.mouse.number(), modes.mouse_encoding.number()].into_iter().flatten() {
        private_mode(out, mode, true);
    }
    // Only modes that are on: drawing modes are off by now, and the backarrow key is the user's choice.
    for mode in terminal.settings.on.iter().filter(|mode| **mode != settings::COLUMN_MARGINS) {
        private_mode(out, *mode, true);
    }
    out.say(if modes.app_keypad { "\x1b=" } else { "\x1b>" });
    out.say(&format!("\x1b[{} q", modes.cursor_style()));
    out.say(&format!("\x1b[>4;{}m", modes.modify_other_keys));
}

/// Sets the modes that would disturb the drawing, after everything is drawn.
fn last_modes(out: &mut Out, terminal: &Terminal) {
    let canvas = &terminal.canvas;
    if terminal.modes.linefeed_newline {
        out.say("\x1b[20h");
    }
    if canvas.insert() {
        out.say("\x1b[4h");
    }
    if !canvas.autowrap() {
        out.say("\x1b[?7l");
    }
    if let Some(next @ 2..) = terminal.charsets.next {
        out.say(if next == 2 { "\x1bN" } else { "\x1bO" });
    }
}

fn private_mode(out: &mut Out, mode: u16, on: bool) {
    let end = if on { 'h' } else { 'l' };
    write!(out.bytes, "\x1b[?{mode}{end}").expect("writing to memory does not fail");
}

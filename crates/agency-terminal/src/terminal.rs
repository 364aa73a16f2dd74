//! A terminal: the complete effect of a program's output so far.
//!
//! Does not catch the engine's panics and is not visible outside the crate; [`crate::Screen`] wraps it.
//! Between two calls it is always between two units of the stream; the scanner holds an incomplete unit.

use rio_vt::codepoint_width::codepoint_width;
use rio_vt::crosswords::style::Style;

use crate::canvas::{Canvas, Erase};
use crate::cells::Link;
use crate::charset::Charsets;
use crate::event::{Fed, ScreenEvent};
use crate::kitty::Keyboard;
use crate::modes::Modes;
use crate::palette::{Colours, Palette};
use crate::scan::{Kind, Scanner, Unit};
use crate::settings::{self, Settings};
use crate::size::Size;
use crate::tabs::Tabs;

/// The maximum number of saved titles; xterm keeps ten.
const TITLES_MAX: usize = 16;

/// Longer titles are cut: users cannot read them, and some programs save dozens.
const TITLE_MAX: usize = 1024;

/// The state that `ESC 7` saves, per screen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SavedCursor {
    pub(crate) row: u16,
    pub(crate) col: u16,
    pub(crate) wrap_pending: bool,
    pub(crate) style: Style,
    pub(crate) link: Option<Link>,
    pub(crate) charsets: Charsets,
    pub(crate) origin: bool,
    pub(crate) protecting: bool,
}

/// One value for each screen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PerScreen<T> {
    pub(crate) primary: T,
    pub(crate) alternate: T,
}

impl<T> PerScreen<T> {
    pub(crate) fn of(&self, alternate: bool) -> &T {
        if alternate { &self.alternate } else { &self.primary }
    }

    pub(crate) fn of_mut(&mut self, alternate: bool) -> &mut T {
        if alternate { &mut self.alternate } else { &mut self.primary }
    }
}

pub(crate) struct Terminal {
    pub(crate) size: Size,
    pub(crate) scanner: Scanner,
    pub(crate) canvas: Canvas,
    pub(crate) modes: Modes,
    pub(crate) settings: Settings,
    pub(crate) charsets: Charsets,
    pub(crate) tabs: Tabs,
    pub(crate) palette: Palette,
    /// Not part of a dump: it belongs to the viewer, and only answers depend on it.
    pub(crate) viewer: Colours,
    pub(crate) title: String,
    pub(crate) titles: Vec<String>,
    pub(crate) saved: PerScreen<SavedCursor>,
    pub(crate) keyboards: PerScreen<Keyboard>,
    /// The character that REP repeats.
    pub(crate) last_printed: Option<char>,
}

impl Terminal {
    pub(crate) fn new(size: Size, scrollback_lines: usize) -> Terminal {
        let size = size.bounded();
        Terminal {
            size,
            scanner: Scanner::default(),
            canvas: Canvas::new(size, scrollback_lines),
            modes: Modes::default(),
            settings: Settings::default(),
            charsets: Charsets::default(),
            tabs: Tabs::new(size.cols),
            palette: Palette::default(),
            viewer: Colours::default(),
            title: String::new(),
            titles: Vec::new(),
            saved: PerScreen::default(),
            keyboards: PerScreen::default(),
            last_printed: None,
        }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8], fed: &mut Fed) {
        let mut scanner = std::mem::take(&mut self.scanner);
        scanner.feed(bytes, |unit| {
            let answered = fed.replies.len();
            self.act(&unit, fed);
            if self.settings.eight_bit {
                fed.shorten_introducers(answered);
            }
        });
        self.scanner = scanner;
    }

    fn act(&mut self, unit: &Unit<'_>, fed: &mut Fed) {
        match unit.kind {
            Kind::Text => self.print(unit.raw),
            Kind::Control => self.control(unit.raw[0], fed),
            Kind::Escape | Kind::Csi | Kind::Aborted => {
                unit.controls().for_each(|control| self.control(control, fed));
                match unit.kind {
                    Kind::Escape => self.escape(unit.body(), fed),
                    Kind::Csi => self.csi(unit.body(), fed),
                    _ => {}
                }
            }
            Kind::String(kind) => self.string(kind, unit.body(), unit.raw, fed),
            // A string too long to be held is an image, which only the viewer's terminal draws.
            Kind::Piece { .. } => {}
        }
    }

    fn print(&mut self, text: &[u8]) {
        if let Ok(text) = std::str::from_utf8(text) {
            return self.print_valid(text);
        }
        for chunk in text.utf8_chunks() {
            self.print_valid(chunk.valid());
            if !chunk.invalid().is_empty() {
                self.print_char(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    fn print_valid(&mut self, mut text: &str) {
        if text.is_ascii() {
            return self.print_ascii(text);
        }
        while !text.is_empty() {
            let ascii = text.bytes().position(|byte| !byte.is_ascii()).unwrap_or(text.len());
            let (plain, rest) = text.split_at(ascii);
            self.print_ascii(plain);
            let other = rest.bytes().position(|byte| byte.is_ascii()).unwrap_or(rest.len());
            let (other, rest) = rest.split_at(other);
            other.chars().for_each(|c| self.print_char(c));
            text = rest;
        }
    }

    fn print_ascii(&mut self, mut text: &str) {
        if let (Some(_), Some(first)) = (self.charsets.next, text.chars().next()) {
            self.print_char(first);
            text = &text[1..];
        }
        if !self.charsets.are_ascii() {
            text.chars().for_each(|c| self.print_char(c));
            return;
        }
        self.canvas.print_ascii(text);
        self.last_printed = text.chars().next_back().or(self.last_printed);
    }

    fn print_char(&mut self, c: char) {
        let c = self.charsets.map(c);
        self.canvas.print(c);
        // A combining mark is not a character of its own.
        if codepoint_width(c as u32).is_some_and(|width| width > 0) {
            self.last_printed = Some(c);
        }
    }

    /// REP. Limited to one screenful, since more has no visible effect.
    pub(crate) fn repeat(&mut self, count: u16) {
        let screenful = u32::from(self.size.cols) * u32::from(self.size.rows);
        if let Some(c) = self.last_printed {
            (0..u32::from(count).min(screenful)).for_each(|_| self.canvas.print(c));
        }
    }

    pub(crate) fn control(&mut self, control: u8, fed: &mut Fed) {
        match control {
            0x07 => fed.bell(),
            0x08 => self.back(1),
            b'\t' => self.tab(1),
            b'\n' | 0x0b | 0x0c => {
                self.canvas.linefeed();
                if self.modes.linefeed_newline {
                    self.carriage_return();
                }
            }
            b'\r' => self.carriage_return(),
            0x0e => self.charsets.used = 1,
            0x0f => self.charsets.used = 0,
            _ => {}
        }
    }

    /// To the left margin, unless the cursor is left of it.
    pub(crate) fn carriage_return(&mut self) {
        let (row, col) = self.canvas.cursor();
        let (left, _) = self.canvas.columns();
        self.canvas.move_to(row, if self.modes.origin || col >= left { left } else { 0 });
    }

    /// BS and CUB: moves left, but not across the left margin unless reverse wrap is on.
    pub(crate) fn back(&mut self, mut count: u16) {
        let wraps =
            self.settings.has(settings::REVERSE_WRAP) || self.settings.has(settings::REVERSE_WRAP_AROUND);
        let wraps = wraps && self.canvas.autowrap();
        if wraps && self.canvas.wrap_pending() {
            self.canvas.set_wrap_pending(false);
            count -= 1;
        }
        while count > 0 {
            let (row, col) = self.canvas.cursor();
            let (left, _) = self.canvas.columns();
            let stop = if col >= left { left } else { 0 };
            let step = count.min(col - stop);
            self.canvas.move_to(row, col - step);
            count -= step;
            if count > 0 && !(wraps && self.wrap_back()) {
                return;
            }
            count = count.saturating_sub(1);
        }
    }

    /// Moves from the start of a row to the end of the previous one. `false` if that is not possible.
    fn wrap_back(&mut self) -> bool {
        let (row, _) = self.canvas.cursor();
        let (first, last) = self.canvas.margins();
        let around = self.settings.has(settings::REVERSE_WRAP_AROUND);
        let before = match row {
            _ if row == first && around => last,
            0 if around => self.size.rows - 1,
            0 => return false,
            _ if row == first => return false,
            _ => row - 1,
        };
        if !around && !self.canvas.goes_on(before) {
            return false;
        }
        self.canvas.move_to(before, self.canvas.columns().1);
        true
    }

    /// Moves to the next tab stops. At the end of a full line the cursor and its pending wrap stay.
    pub(crate) fn tab(&mut self, count: u16) {
        let (row, from) = self.canvas.cursor();
        let (_, right) = self.canvas.columns();
        let stop = if from <= right { right } else { self.size.cols - 1 };
        let to = (0..count.min(self.size.cols)).fold(from, |col, _| self.tabs.after(col)).min(stop);
        if to != from {
            self.canvas.move_to(row, to);
        }
    }

    pub(crate) fn tab_back(&mut self, count: u16) {
        let (row, from) = self.canvas.cursor();
        let to = (0..count.min(self.size.cols)).fold(from, |col, _| self.tabs.before(col));
        self.canvas.move_to(row, to);
        self.keep_inside();
    }

    pub(crate) fn keyboard(&mut self) -> &mut Keyboard {
        self.keyboards.of_mut(self.canvas.is_alternate())
    }

    // Titles.

    pub(crate) fn set_title(&mut self, title: &str, fed: &mut Fed) {
        let title: String = title.chars().filter(|c| !c.is_control()).take(TITLE_MAX).collect();
        let title = title.trim().to_owned();
        if title != self.title {
            self.title = title;
            fed.events.push(ScreenEvent::Title(self.title.clone()));
        }
    }

    pub(crate) fn push_title(&mut self) {
        if self.titles.len() == TITLES_MAX {
            self.titles.remove(0);
        }
        self.titles.push(self.title.clone());
    }

    pub(crate) fn pop_title(&mut self, fed: &mut Fed) {
        if let Some(title) = self.titles.pop() {
            self.set_title(&title, fed);
        }
    }

    // Saving and restoring the cursor.

    pub(crate) fn save_cursor(&mut self) {
        let (row, col) = self.canvas.cursor();
        let saved = SavedCursor {
            row,
            col,
            wrap_pending: self.canvas.wrap_pending(),
            style: self.canvas.style(),
            link: self.canvas.link(),
            charsets: self.charsets,
            origin: self.modes.origin,
            protecting: self.canvas.protecting(),
        };
        *self.saved.of_mut(self.canvas.is_alternate()) = saved;
    }

    pub(crate) fn restore_cursor(&mut self) {
        let saved = self.saved.of(self.canvas.is_alternate()).clone();
        self.canvas.move_to(saved.row, saved.col);
        self.canvas.set_wrap_pending(saved.wrap_pending);
        self.canvas.set_style(saved.style);
        self.canvas.set_link(saved.link.as_ref());
        self.charsets = saved.charsets;
        self.modes.origin = saved.origin;
        self.canvas.set_protecting(saved.protecting);
        self.keep_inside();
    }

    /// In origin mode the cursor is not restored to a place outside the margins, which the program could not name.
    fn keep_inside(&mut self) {
        let (row, col) = self.canvas.cursor();
        let area = self.canvas.scrolling_area();
        let inside = (row.clamp(area.top, area.bottom), col.clamp(area.left, area.right));
        if self.modes.origin && inside != (row, col) {
            self.canvas.move_to(inside.0, inside.1);
        }
    }

    // Both screens.

    /// 1049: saves the primary cursor and shows a blank alternate screen.
    pub(crate) fn show_alternate(&mut self, save_cursor: bool) {
        if self.canvas.is_alternate() {
            return;
        }
        if save_cursor {
            self.save_cursor();
        }
        self.canvas.show_alternate();
    }

    /// Without `restore_cursor` the cursor and the pen stay as they are; both screens share them.
    pub(crate) fn show_primary(&mut self, restore_cursor: bool) {
        if !self.canvas.is_alternate() {
            return;
        }
        let (row, col) = self.canvas.cursor();
        let (style, link) = (self.canvas.style(), self.canvas.link());
        let protecting = self.canvas.protecting();
        self.canvas.show_primary();
        if restore_cursor {
            // The canvas kept cursor and pen, also through resizes. The rest was saved on entering.
            self.charsets = self.saved.primary.charsets;
            self.modes.origin = self.saved.primary.origin;
            self.keep_inside();
        } else {
            self.canvas.move_to(row, col);
            self.canvas.set_style(style);
            self.canvas.set_link(link.as_ref());
            self.canvas.set_protecting(protecting);
        }
    }

    pub(crate) fn resize(&mut self, size: Size) {
        self.size = size.bounded();
        self.canvas.resize(self.size);
        self.tabs.resize(self.size.cols);
        for saved in [&mut self.saved.primary, &mut self.saved.alternate] {
            saved.row = saved.row.min(self.size.rows - 1);
            saved.col = saved.col.min(self.size.cols - 1);
            saved.wrap_pending &= saved.col == self.size.cols - 1;
        }
    }

    // Resets.

    /// DECSTR: resets modes, margins, pen and saved cursor, but nothing that is drawn.
    pub(crate) fn reset_softly(&mut self) {
        self.modes = Modes {
            // Except the mouse and similar modes, which xterm keeps.
            mouse: self.modes.mouse,
            mouse_encoding: self.modes.mouse_encoding,
            focus_events: self.modes.focus_events,
            bracketed_paste: self.modes.bracketed_paste,
            alternate_scroll: self.modes.alternate_scroll,
            synchronized: self.modes.synchronized,
            ..Modes::default()
        };
        self.canvas.set_insert(false);
        self.canvas.set_autowrap(true);
        self.settings.reset_softly();
        self.release_margins();
        self.canvas.set_style(Style::default());
        self.canvas.set_link(None);
        self.canvas.set_protecting(false);
        self.charsets = Charsets::default();
        *self.saved.of_mut(self.canvas.is_alternate()) = SavedCursor::default();
    }

    pub(crate) fn release_margins(&mut self) {
        self.canvas.set_margins(0, self.size.rows - 1);
        self.canvas.release_columns();
    }

    /// RIS, and the start of a new run: resets everything; the contents of the primary screen become history, and no
    /// history is lost.
    pub(crate) fn reset(&mut self, fed: &mut Fed) {
        self.canvas.show_primary();
        self.reset_softly();
        self.modes = Modes::default();
        self.settings = Settings::default();
        self.canvas.set_clusters(true);
        self.canvas.erase_screen(Erase::All);
        self.canvas.move_to(0, 0);
        self.tabs = Tabs::new(self.size.cols);
        self.palette = Palette::default();
        self.titles.clear();
        self.set_title("", fed);
        self.saved = PerScreen::default();
        self.keyboards = PerScreen::default();
        self.last_printed = None;
    }
}

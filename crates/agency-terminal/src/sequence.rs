//! Executes escape and control sequences.
//!
//! Does not answer queries (see `reply`) and does not execute strings (see `string`).

use rio_vt::crosswords::style::Style;

use crate::canvas::{Area, Erase};
use crate::charset::Charset;
use crate::csi::Csi;
use crate::event::Fed;
use crate::pen;
use crate::settings::{self, Protection};
use crate::tabs::Tabs;
use crate::terminal::Terminal;

impl Terminal {
    pub(crate) fn escape(&mut self, body: &[u8], fed: &mut Fed) {
        let Some((&last, rest)) = body.split_last() else { return };
        match (rest.iter().copied().find(|byte| *byte >= 0x20), last) {
            (None, b'6') => self.back_index(),
            (None, b'7') => self.save_cursor(),
            (None, b'8') => self.restore_cursor(),
            (None, b'9') => self.forward_index(),
            (None, b'D') => self.canvas.linefeed(),
            (None, b'E') => {
                self.canvas.linefeed();
                self.carriage_return();
            }
            (None, b'H') => self.tabs.set(self.canvas.cursor().1, true),
            (None, b'M') => self.canvas.reverse_linefeed(),
            (None, b'N') => self.charsets.next = Some(2),
            (None, b'O') => self.charsets.next = Some(3),
            (None, b'V') => self.protect(Protection::Iso, true),
            (None, b'W') if self.settings.protection == Protection::Iso => {
                self.protect(Protection::Iso, false);
            }
            (None, b'Z') => self.report_attributes(0, fed),
            (None, b'c') => self.reset(fed),
            (None, b'n') => self.charsets.used = 2,
            (None, b'o') => self.charsets.used = 3,
            (None, b'=') => self.modes.app_keypad = true,
            (None, b'>') => self.modes.app_keypad = false,
            (Some(b' '), b'F') => self.settings.eight_bit = false,
            (Some(b' '), b'G') => self.settings.eight_bit = true,
            (Some(b'#'), b'8') => self.fill_for_alignment(),
            (Some(slot @ b'('..=b'+'), set) => {
                self.charsets.sets[usize::from(slot - b'(')] = Charset::designated(set);
            }
            _ => {}
        }
    }

    /// DECALN also resets the margins.
    fn fill_for_alignment(&mut self) {
        self.release_margins();
        self.canvas.fill_for_alignment();
        self.canvas.move_to(0, 0);
    }

    /// DECBI: moves left; at the left margin, everything between the margins moves instead.
    fn back_index(&mut self) {
        let (row, col) = self.canvas.cursor();
        if col != self.canvas.columns().0 {
            self.canvas.move_to(row, col.saturating_sub(1));
        } else if self.canvas.cursor_is_inside() {
            self.canvas.shift_area(self.canvas.scrolling_area(), 0, 1);
        }
    }

    /// DECFI: moves right; at the right margin, everything between the margins moves instead.
    fn forward_index(&mut self) {
        let (row, col) = self.canvas.cursor();
        if col != self.canvas.columns().1 {
            self.canvas.move_to(row, col + 1);
        } else if self.canvas.cursor_is_inside() {
            self.canvas.shift_area(self.canvas.scrolling_area(), 0, -1);
        }
    }

    fn protect(&mut self, kind: Protection, on: bool) {
        self.settings.protection = kind;
        self.canvas.set_protecting(on);
    }

    pub(crate) fn csi(&mut self, body: &[u8], fed: &mut Fed) {
        let Some(csi) = Csi::parse(body) else { return };
        match (csi.prefix, csi.intermediate) {
            (0, 0) => self.plain(&csi, fed),
            (b'?', 0) => self.private(&csi, fed),
            (b'>' | b'<' | b'=', 0) => self.keyboard_or_report(&csi, fed),
            (0, _) => self.with_intermediate(&csi, fed),
            (b'?', b'$') if csi.last == b'p' => self.report_private_mode(csi.get(0), fed),
            _ => {}
        }
    }

    fn with_intermediate(&mut self, csi: &Csi, fed: &mut Fed) {
        let count = i32::from(csi.or(0, 1));
        match (csi.intermediate, csi.last) {
            (b' ', b'q') => self.modes.set_cursor_style(csi.get(0)),
            (b' ', b'@') => self.canvas.shift_area(self.canvas.scrolling_area(), 0, -count),
            (b' ', b'A') => self.canvas.shift_area(self.canvas.scrolling_area(), 0, count),
            (b'!', b'p') => self.reset_softly(),
            (b'"', b'p') => self.set_level(csi),
            (b'"', b'q') => self.protect(Protection::Dec, csi.get(0) == 1),
            (b'$', b'p') => self.report_mode(csi.get(0), fed),
            (b'$', b'w') => self.report_presentation(csi.get(0), fed),
            (b'$', _) => self.rectangle(csi),
            (b'*', b'x') => self.settings.extent = csi.get(0).min(2) as u8,
            (b'*', b'y') => self.report_checksum(csi, fed),
            (b'\'', b'}') => self.canvas.shift_columns_behind(count),
            (b'\'', b'~') => self.canvas.shift_columns_behind(-count),
            _ => {}
        }
    }

    /// DECSCL, which also resets.
    fn set_level(&mut self, csi: &Csi) {
        if let level @ 61..=65 = csi.get(0) {
            self.reset_softly();
            self.settings.level = level as u8;
            self.settings.eight_bit = csi.parameters().len() > 1 && csi.get(1) != 1 && level > 61;
        }
    }

    fn plain(&mut self, csi: &Csi, fed: &mut Fed) {
        let count = csi.or(0, 1);
        match csi.last {
            b'A'..=b'H' | b'`' | b'a' | b'd'..=b'f' | b'I' | b'Z' | b'j' | b'k' => self.motion(csi, count),
            b'@' => self.canvas.insert_chars(count),
            b'J' => self.erase_screen(csi.get(0), self.settings.protection == Protection::Iso),
            b'K' => self.erase_line(csi.get(0), self.settings.protection == Protection::Iso),
            b'L' => {
                self.canvas.insert_lines(count);
                self.carriage_return_in_margins();
            }
            b'M' => {
                self.canvas.delete_lines(count);
                self.carriage_return_in_margins();
            }
            b'P' => self.canvas.delete_chars(count),
            b'S' => self.canvas.scroll_up(count),
            // With more parameters this is highlight mouse tracking, which no terminal supports.
            b'T' if csi.parameters().len() == 1 => self.canvas.scroll_down(count),
            b'X' => self.erase_chars(count),
            b'b' => self.repeat(count),
            b'g' => self.clear_tabs(csi.get(0)),
            b'h' => csi.parameters().iter().for_each(|mode| self.set_mode(*mode, true)),
            b'l' => csi.parameters().iter().for_each(|mode| self.set_mode(*mode, false)),
            b'm' => self.set_pen(csi),
            b'r' => self.set_margins(csi),
            b's' if self.settings.has(settings::COLUMN_MARGINS) => self.set_columns(csi),
            b's' => self.save_cursor(),
            b'u' => self.restore_cursor(),
            b't' => self.window(csi.get(0), fed),
            b'c' => self.report_attributes(0, fed),
            b'n' => self.report_status(csi.get(0), fed),
            b'x' => self.report_parameters(csi.get(0), fed),
            _ => {}
        }
    }

    fn private(&mut self, csi: &Csi, fed: &mut Fed) {
        match csi.last {
            b'h' => csi.parameters().iter().for_each(|mode| self.set_private_mode(*mode, true)),
            b'l' => csi.parameters().iter().for_each(|mode| self.set_private_mode(*mode, false)),
            b'J' => self.erase_screen(csi.get(0), self.settings.protection == Protection::Dec),
            b'K' => self.erase_line(csi.get(0), self.settings.protection == Protection::Dec),
            b's' => csi.parameters().iter().for_each(|mode| self.put_away_mode(*mode)),
            b'r' => csi.parameters().iter().for_each(|mode| self.bring_back_mode(*mode)),
            b'W' if csi.get(0) == 5 => self.tabs = Tabs::new(self.size.cols),
            b'n' => self.report_private_status(csi, fed),
            b'u' => self.report_keyboard(fed),
            b'm' if csi.get(0) == 4 => self.report_other_keys(fed),
            b'S' => self.report_graphics(csi.get(0), fed),
            _ => {}
        }
    }

    fn keyboard_or_report(&mut self, csi: &Csi, fed: &mut Fed) {
        match (csi.prefix, csi.last) {
            (b'>', b'u') => self.keyboard().push(csi.get(0)),
            (b'<', b'u') => self.keyboard().pop(csi.or(0, 1)),
            (b'=', b'u') => self.keyboard().set(csi.get(0), csi.or(1, 1)),
            (b'>', b'm') if csi.get(0) == 4 => self.modes.modify_other_keys = csi.get(1).min(2) as u8,
            // Without a parameter, all these options return to their initial values.
            (b'>', b'm') if csi.parameters() == [0] => self.modes.modify_other_keys = 0,
            (b'>', b'n') if csi.get(0) == 4 => self.modes.modify_other_keys = 0,
            (prefix, b'c') => self.report_attributes(prefix, fed),
            (b'>', b'q') => self.report_version(fed),
            _ => {}
        }
    }

    // Motion.

    fn motion(&mut self, csi: &Csi, count: u16) {
        let (row, col) = self.canvas.cursor();
        match csi.last {
            b'A' | b'k' => self.canvas.move_to(self.up(row, count), col),
            b'B' => self.canvas.move_to(self.down(row, count), col),
            b'C' => self.canvas.move_to(row, self.right(col, count)),
            b'D' | b'j' => self.back(count),
            b'E' | b'F' => {
                let to = if csi.last == b'E' { self.down(row, count) } else { self.up(row, count) };
                self.canvas.move_to(to, col);
                self.carriage_return();
            }
            b'G' | b'`' => self.canvas.move_to(row, self.counted_col(count - 1)),
            b'a' => self.canvas.move_to(row, self.relative_col(count)),
            b'd' => self.canvas.move_to(self.counted_row(count - 1), col),
            b'e' => self.canvas.move_to(self.relative_row(count), col),
            b'H' | b'f' => self.go_to(count - 1, csi.or(1, 1) - 1),
            b'I' => self.tab(count),
            b'Z' => self.tab_back(count),
            _ => {}
        }
    }

    /// Up, but not across the top margin.
    fn up(&self, row: u16, count: u16) -> u16 {
        let (first, _) = self.canvas.margins();
        let stop = if row >= first { first } else { 0 };
        row.saturating_sub(count).max(stop)
    }

    /// Down, but not across the bottom margin.
    fn down(&self, row: u16, count: u16) -> u16 {
        let (_, last) = self.canvas.margins();
        let stop = if row <= last { last } else { self.size.rows - 1 };
        row.saturating_add(count).min(stop)
    }

    /// Right, but not across the right margin.
    fn right(&self, col: u16, count: u16) -> u16 {
        let (_, last) = self.canvas.columns();
        let stop = if col <= last { last } else { self.size.cols - 1 };
        col.saturating_add(count).min(stop)
    }

    /// HPR and VPR respect margins only in origin mode.
    fn relative_col(&self, count: u16) -> u16 {
        self.canvas.cursor().1.saturating_add(count).min(self.counted_area().right)
    }

    fn relative_row(&self, count: u16) -> u16 {
        self.canvas.cursor().0.saturating_add(count).min(self.counted_area().bottom)
    }

    /// The area in which the program counts: the screen, or between the margins in origin mode.
    pub(crate) fn counted_area(&self) -> Area {
        if self.modes.origin { self.canvas.scrolling_area() } else { self.canvas.everything() }
    }

    fn counted_row(&self, row: u16) -> u16 {
        let area = self.counted_area();
        row.saturating_add(area.top).min(area.bottom)
    }

    fn counted_col(&self, col: u16) -> u16 {
        let area = self.counted_area();
        col.saturating_add(area.left).min(area.right)
    }

    /// Moves to a place in the program's coordinates.
    pub(crate) fn go_to(&mut self, row: u16, col: u16) {
        self.canvas.move_to(self.counted_row(row), self.counted_col(col));
    }

    fn carriage_return_in_margins(&mut self) {
        if self.canvas.cursor_is_inside() {
            self.carriage_return();
        }
    }

    // Erasing, tabs, pen, margins.

    /// With `selective`, protected cells stay.
    fn erase_screen(&mut self, part: u16, selective: bool) {
        let all = self.canvas.everything();
        let (row, _) = self.canvas.cursor();
        match part {
            0..=2 if selective => {
                if part != 1 && row < all.bottom {
                    self.canvas.erase_area(Area { top: row + 1, ..all }, true);
                }
                if part != 0 && row > 0 {
                    self.canvas.erase_area(Area { bottom: row - 1, ..all }, true);
                }
                self.erase_line(part, true);
            }
            0 => self.canvas.erase_screen(Erase::ToEnd),
            1 => self.canvas.erase_screen(Erase::ToStart),
            2 => self.canvas.erase_screen(Erase::All),
            3 => self.canvas.erase_history(),
            _ => {}
        }
    }

    fn erase_line(&mut self, part: u16, selective: bool) {
        let (row, col) = self.canvas.cursor();
        let line = Area { top: row, bottom: row, ..self.canvas.everything() };
        match part {
            0 if selective => self.canvas.erase_area(Area { left: col, ..line }, true),
            1 if selective => self.canvas.erase_area(Area { right: col, ..line }, true),
            2 if selective => self.canvas.erase_area(line, true),
            0 => self.canvas.erase_line(Erase::ToEnd),
            1 => self.canvas.erase_line(Erase::ToStart),
            2 => self.canvas.erase_line(Erase::All),
            _ => {}
        }
    }

    fn erase_chars(&mut self, count: u16) {
        if self.settings.protection != Protection::Iso {
            return self.canvas.erase_chars(count);
        }
        let (row, col) = self.canvas.cursor();
        let right = col.saturating_add(count - 1).min(self.size.cols - 1);
        self.canvas.erase_area(Area { top: row, left: col, bottom: row, right }, true);
    }

    fn clear_tabs(&mut self, which: u16) {
        match which {
            0 => self.tabs.set(self.canvas.cursor().1, false),
            3 => self.tabs.clear(),
            _ => {}
        }
    }

    fn set_pen(&mut self, csi: &Csi) {
        let mut style: Style = self.canvas.style();
        pen::apply(&mut style, csi);
        self.canvas.set_style(style);
    }

    fn set_margins(&mut self, csi: &Csi) {
        if self.canvas.set_margins(csi.or(0, 1) - 1, csi.or(1, self.size.rows) - 1) {
            self.go_to(0, 0);
        }
    }

    /// DECSLRM.
    fn set_columns(&mut self, csi: &Csi) {
        if self.canvas.set_columns(csi.or(0, 1) - 1, csi.or(1, self.size.cols) - 1) {
            self.go_to(0, 0);
        }
    }

    // Modes.

    fn set_mode(&mut self, mode: u16, on: bool) {
        match mode {
            4 => self.canvas.set_insert(on),
            20 => self.modes.linefeed_newline = on,
            _ => {}
        }
    }

    fn set_private_mode(&mut self, mode: u16, on: bool) {
        match mode {
            3 => self.clear_for_columns(),
            7 => self.canvas.set_autowrap(on),
            47 | 1047 if on => self.show_alternate(false),
            47 | 1047 => self.show_primary(false),
            1048 if on => self.save_cursor(),
            1048 => self.restore_cursor(),
            1049 if on => self.show_alternate(true),
            1049 => self.show_primary(true),
            2027 => self.canvas.set_clusters(on),
            _ if self.settings.set(mode, on) => {
                if mode == settings::COLUMN_MARGINS {
                    self.canvas.release_columns();
                }
            }
            _ => {
                self.modes.set(mode, on);
                if mode == 6 {
                    self.go_to(0, 0);
                }
            }
        }
    }

    /// DECCOLM: does not change the width, which is the viewer's choice, but has its other effects.
    fn clear_for_columns(&mut self) {
        self.settings.set(settings::COLUMN_MARGINS, false);
        self.release_margins();
        self.canvas.erase_screen(Erase::All);
        self.canvas.move_to(0, 0);
    }

    /// XTSAVE.
    fn put_away_mode(&mut self, mode: u16) {
        if let Some(on) = self.private_mode(mode) {
            self.settings.put_away.insert(mode, on);
        }
    }

    /// XTRESTORE.
    fn bring_back_mode(&mut self, mode: u16) {
        if let Some(on) = self.settings.put_away.get(&mode) {
            self.set_private_mode(mode, *on);
        }
    }

    /// The value of a private mode, from the canvas or the mode tables.
    pub(crate) fn private_mode(&self, mode: u16) -> Option<bool> {
        match mode {
            7 => Some(self.canvas.autowrap()),
            47 | 1047 | 1049 => Some(self.canvas.is_alternate()),
            2027 => Some(self.canvas.clusters()),
            _ if settings::KEPT.contains(&mode) => Some(self.settings.has(mode)),
            _ => self.modes.get(mode),
        }
    }

    fn window(&mut self, operation: u16, fed: &mut Fed) {
        match operation {
            22 => self.push_title(),
            23 => self.pop_title(fed),
            _ => self.report_window(operation, fed),
        }
    }
}

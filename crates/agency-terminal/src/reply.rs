//! Answers to a program's queries.
//!
//! Every query is answered here and nowhere else, whether or not there are viewers.

use std::fmt::Display;

use rio_vt::crosswords::style::StyleFlags;

use crate::csi::Csi;
use crate::event::Fed;
use crate::palette;
use crate::pen;
use crate::settings::{self, Settings};
use crate::terminal::Terminal;

/// VT220 with colours. Without sixel: the viewer's terminal shows images, and it may not support them.
const PRIMARY_ATTRIBUTES: &str = "?62;22c";

/// Programs read the second number as xterm's patch level; from 277 on, vim uses the better mouse encoding. Our
/// own version number would be too small for years.
const SECONDARY_ATTRIBUTES: &str = ">1;4000;0c";

/// "AGCY".
const UNIT_ID: &str = "41474359";

/// The states and kinds of OSC 7501 that we understand.
const STATUS_PROTOCOL: &str = "7501;?:states=idle,working,done,blocked,error:kinds=permission,question,auth";

impl Fed {
    fn csi(&mut self, text: impl Display) {
        self.replies.extend_from_slice(format!("\x1b[{text}").as_bytes());
    }

    pub(crate) fn dcs(&mut self, text: impl Display) {
        self.replies.extend_from_slice(format!("\x1bP{text}\x1b\\").as_bytes());
    }

    fn osc(&mut self, text: impl Display, bell: bool) {
        let end = if bell { "\x07" } else { "\x1b\\" };
        self.replies.extend_from_slice(format!("\x1b]{text}{end}").as_bytes());
    }

    /// S8C1T: replaces `ESC [` and similar introducers from `start` on by their one-byte form.
    pub(crate) fn shorten_introducers(&mut self, start: usize) {
        let long = self.replies.split_off(start);
        let mut rest = long.as_slice();
        while let Some((&first, after)) = rest.split_first() {
            match (first, after) {
                (0x1b, [second @ 0x40..=0x5f, after @ ..]) => {
                    self.replies.push(second + 0x40);
                    rest = after;
                }
                _ => {
                    self.replies.push(first);
                    rest = after;
                }
            }
        }
    }
}

impl Terminal {
    /// DA1, DA2, DA3.
    pub(crate) fn report_attributes(&mut self, prefix: u8, fed: &mut Fed) {
        match prefix {
            0 => fed.csi(PRIMARY_ATTRIBUTES),
            b'>' => fed.csi(SECONDARY_ATTRIBUTES),
            b'=' => fed.dcs(format_args!("!|{UNIT_ID}")),
            _ => {}
        }
    }

    /// XTVERSION.
    pub(crate) fn report_version(&mut self, fed: &mut Fed) {
        fed.dcs(concat!(">|agency ", env!("CARGO_PKG_VERSION")));
    }

    /// DSR and CPR.
    pub(crate) fn report_status(&mut self, what: u16, fed: &mut Fed) {
        match what {
            5 => fed.csi("0n"),
            6 => {
                let (row, col) = self.place();
                fed.csi(format_args!("{row};{col}R"));
            }
            _ => {}
        }
    }

    pub(crate) fn report_private_status(&mut self, csi: &Csi, fed: &mut Fed) {
        match csi.get(0) {
            // A VT220 has no pages.
            6 => {
                let (row, col) = self.place();
                fed.csi(format_args!("?{row};{col}R"));
            }
            // No printer, no definable keys, an English keyboard, no locator, no macros, no errors, one session.
            15 => fed.csi("?13n"),
            25 => fed.csi("?21n"),
            26 => fed.csi("?27;1n"),
            53 | 55 => fed.csi("?50n"),
            56 => fed.csi("?57;0n"),
            62 => fed.csi("0000*{"),
            63 => fed.dcs(format_args!("{}!~0000", csi.get(1))),
            75 => fed.csi("?70n"),
            85 => fed.csi("?83n"),
            996 => {
                let dark = self.palette.get(palette::BACKGROUND, &self.viewer).is_dark();
                fed.csi(format_args!("?997;{}n", if dark { 1 } else { 2 }));
            }
            _ => {}
        }
    }

    /// The cursor's place as the program counts: from 1, and from the margins in origin mode.
    fn place(&self) -> (u16, u16) {
        let (row, col) = self.canvas.cursor();
        let area = self.counted_area();
        (row.saturating_sub(area.top) + 1, col.saturating_sub(area.left) + 1)
    }

    /// DECREQTPARM.
    pub(crate) fn report_parameters(&mut self, what: u16, fed: &mut Fed) {
        if what <= 1 {
            fed.csi(format_args!("{};1;1;128;128;1;0x", what + 2));
        }
    }

    /// DECRQM.
    pub(crate) fn report_mode(&mut self, mode: u16, fed: &mut Fed) {
        let state = match mode {
            4 => changeable(self.canvas.insert()),
            20 => changeable(self.modes.linefeed_newline),
            // No local echo.
            12 => ALWAYS_SET,
            // The keyboard is never locked, and there are no forms.
            1 | 2 | 5 | 7 | 10 | 11 | 13..=19 => ALWAYS_RESET,
            _ => UNKNOWN,
        };
        fed.csi(format_args!("{mode};{state}$y"));
    }

    pub(crate) fn report_private_mode(&mut self, mode: u16, fed: &mut Fed) {
        let state = match mode {
            // We support it, but a viewer's terminal may not, and a program that knows of it would draw with it.
            settings::COLUMN_MARGINS => UNKNOWN,
            // Keys always repeat.
            8 => ALWAYS_SET,
            // No 132 columns, no smooth scrolling, no printer, no national characters.
            3 | 4 | 18 | 19 | 35 | 40 | 42 | 60 | 95 => ALWAYS_RESET,
            _ => self.private_mode(mode).map_or(UNKNOWN, changeable),
        };
        fed.csi(format_args!("?{mode};{state}$y"));
    }

    pub(crate) fn report_keyboard(&mut self, fed: &mut Fed) {
        let flags = self.keyboard().flags;
        fed.csi(format_args!("?{flags}u"));
    }

    /// XTQMODKEYS.
    pub(crate) fn report_other_keys(&mut self, fed: &mut Fed) {
        fed.csi(format_args!(">4;{}m", self.modes.modify_other_keys));
    }

    /// XTSMGRAPHICS: always an error, because there are no graphics.
    pub(crate) fn report_graphics(&mut self, item: u16, fed: &mut Fed) {
        fed.csi(format_args!("?{item};1;0S"));
    }

    /// Window reports. Never reports titles: a title could type text for the program that set it.
    pub(crate) fn report_window(&mut self, what: u16, fed: &mut Fed) {
        let (cell_width, cell_height) = self.size.cell_pixels();
        let (width, height) = self.size.text_pixels();
        let (rows, cols) = (self.size.rows, self.size.cols);
        match what {
            11 => fed.csi("1t"),
            13 => fed.csi("3;0;0t"),
            14 => fed.csi(format_args!("4;{height};{width}t")),
            15 => fed.csi(format_args!("5;{height};{width}t")),
            16 => fed.csi(format_args!("6;{cell_height};{cell_width}t")),
            18 => fed.csi(format_args!("8;{rows};{cols}t")),
            19 => fed.csi(format_args!("9;{rows};{cols}t")),
            20 => fed.osc("L", false),
            21 => fed.osc("l", false),
            _ => {}
        }
    }

    /// OSC 4, 10, 11, 12.
    pub(crate) fn report_colour(&mut self, name: &str, index: u16, bell: bool, fed: &mut Fed) {
        let colour = self.palette.get(index, &self.viewer);
        fed.osc(format_args!("{name};{colour}"), bell);
    }

    pub(crate) fn report_status_protocol(&mut self, fed: &mut Fed) {
        fed.osc(STATUS_PROTOCOL, false);
    }

    /// DECRQSS: the setting that a sequence with this ending changes.
    pub(crate) fn report_setting(&mut self, setting: &[u8], fed: &mut Fed) {
        let area = self.canvas.scrolling_area();
        let Settings { level, eight_bit, extent, .. } = self.settings;
        let value = match setting {
            b"m" => format!("{}m", pen::parameters(&self.canvas.style())),
            b"r" => format!("{};{}r", area.top + 1, area.bottom + 1),
            b"s" => format!("{};{}s", area.left + 1, area.right + 1),
            b" q" => format!("{} q", self.modes.cursor_style()),
            b"t" => format!("{}t", self.size.rows),
            b"*|" => format!("{}*|", self.size.rows),
            b"$|" => format!("{}$|", self.size.cols),
            b"\"p" => format!("{level};{}\"p", u8::from(!eight_bit)),
            b"\"q" => format!("{}\"q", u8::from(self.canvas.protecting())),
            b"*x" => format!("{extent}*x"),
            // There is no status line.
            b"$}" => "0$}".to_owned(),
            b"$~" => "0$~".to_owned(),
            _ => return fed.dcs("0$r"),
        };
        fed.dcs(format_args!("1$r{value}"));
    }

    /// DECRQPSR: the cursor state that `ESC 7` saves, or the tab stops.
    pub(crate) fn report_presentation(&mut self, what: u16, fed: &mut Fed) {
        match what {
            1 => fed.dcs(format_args!("1$u{}", self.cursor_information())),
            2 => {
                let stops: Vec<String> = self.tabs.stops().map(|stop| (stop + 1).to_string()).collect();
                fed.dcs(format_args!("2$u{}", stops.join("/")));
            }
            _ => {}
        }
    }

    /// DECCIR: place, page, attributes, protection, flags, character sets. Flags are encoded as a character from
    /// `@` on.
    fn cursor_information(&self) -> String {
        let (row, col) = self.place();
        let flags = self.canvas.style().flags;
        let bits = |bits: &[bool]| {
            let sum = bits.iter().rev().fold(0u8, |sum, bit| sum << 1 | u8::from(*bit));
            char::from(b'@' + sum)
        };
        let attributes = bits(&[
            flags.contains(StyleFlags::BOLD),
            flags.intersects(StyleFlags::ALL_UNDERLINES),
            flags.intersects(StyleFlags::ALL_BLINK),
            flags.contains(StyleFlags::INVERSE),
        ]);
        let protection = bits(&[self.canvas.protecting()]);
        let next = self.charsets.next;
        let flags = bits(&[self.modes.origin, next == Some(2), next == Some(3), self.canvas.wrap_pending()]);
        let sets: String = self.charsets.sets.map(|set| char::from(set.last())).into_iter().collect();
        format!("{row};{col};1;{attributes};{protection};{flags};{};2;@;{sets}", self.charsets.used)
    }

    /// XTGETTCAP: names in hexadecimal, each answered separately.
    pub(crate) fn report_capabilities(&mut self, names: &[u8], fed: &mut Fed) {
        for name in names.split(|byte| *byte == b';') {
            let known = match name.to_ascii_uppercase().as_slice() {
                // TN, name
                b"544E" | b"6E616D65" => "xterm-256color",
                // Co, colors
                b"436F" | b"636F6C6F7273" => "256",
                // RGB
                b"524742" => "8/8/8",
                _ => "",
            };
            // Return only hexadecimal digits, so that a query cannot choose what we type.
            let name: String =
                name.iter().filter(|byte| byte.is_ascii_hexdigit()).map(|byte| *byte as char).collect();
            match known {
                "" => fed.dcs(format_args!("0+r{name}")),
                value => {
                    let value: String = value.bytes().map(|byte| format!("{byte:02X}")).collect();
                    fed.dcs(format_args!("1+r{name}={value}"));
                }
            }
        }
    }
}

/// DECRQM's values for a mode.
const UNKNOWN: u8 = 0;
const ALWAYS_SET: u8 = 3;
const ALWAYS_RESET: u8 = 4;

fn changeable(on: bool) -> u8 {
    if on { 1 } else { 2 }
}

//! Rarely used settings that programs set and query, and that affect neither drawing nor input.
//!
//! Not the modes that a sender of input must know; those are in `modes`.

use std::collections::{BTreeMap, BTreeSet};

/// Modes that are plain flags: reverse video, reverse wrap, what the backarrow key sends, left and right margins,
/// reverse wrap around the screen.
pub(crate) const KEPT: [u16; 5] =
    [REVERSE_VIDEO, REVERSE_WRAP, BACKARROW, COLUMN_MARGINS, REVERSE_WRAP_AROUND];

pub(crate) const REVERSE_VIDEO: u16 = 5;
/// The cursor moves back over the start of a row if the row before continues in it.
pub(crate) const REVERSE_WRAP: u16 = 45;
pub(crate) const BACKARROW: u16 = 67;
pub(crate) const COLUMN_MARGINS: u16 = 69;
/// The cursor moves back over the start of any row, and of the screen.
pub(crate) const REVERSE_WRAP_AROUND: u16 = 1045;

/// Which sequences set the protection: each kind has its own erasing sequences that respect it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protection {
    #[default]
    Unused,
    /// DECSCA: respected by DECSED, DECSEL and DECSERA.
    Dec,
    /// SPA and EPA: respected by ED, EL and ECH.
    Iso,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// DECSCL: 61 for a VT100, up to 65 for a VT500.
    pub(crate) level: u8,
    /// S8C1T: answers start with one byte instead of two.
    pub(crate) eight_bit: bool,
    /// DECSACE, as set: 2 for rectangles, otherwise from the first place to the last.
    pub(crate) extent: u8,
    pub(crate) protection: Protection,
    /// The modes of [`KEPT`] that are on.
    pub(crate) on: BTreeSet<u16>,
    /// Saved modes (XTSAVE).
    pub(crate) put_away: BTreeMap<u16, bool>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            level: 62,
            eight_bit: false,
            extent: 0,
            protection: Protection::Unused,
            on: BTreeSet::new(),
            put_away: BTreeMap::new(),
        }
    }
}

impl Settings {
    pub(crate) fn has(&self, mode: u16) -> bool {
        self.on.contains(&mode)
    }

    /// `false` if the mode is not one of [`KEPT`].
    pub(crate) fn set(&mut self, mode: u16, on: bool) -> bool {
        if !KEPT.contains(&mode) {
            return false;
        }
        match on {
            true => self.on.insert(mode),
            false => self.on.remove(&mode),
        };
        true
    }

    /// DECSTR: resets only what the user would not notice.
    pub(crate) fn reset_softly(&mut self) {
        self.extent = 0;
        self.protection = Protection::Unused;
        self.on.retain(|mode| matches!(*mode, REVERSE_VIDEO | BACKARROW));
    }
}

//! What programs set and ask for that is neither drawn nor needed for input: seldom used, and kept to be told.
//!
//! Not the modes that a sender of input must know; those are in `modes`.

use std::collections::{BTreeMap, BTreeSet};

/// Modes that are on or off and nothing more: reverse video, reverse wrap, what the backarrow key sends,
/// left and right margins, reverse wrap around the screen.
pub(crate) const KEPT: [u16; 5] =
    [REVERSE_VIDEO, REVERSE_WRAP, BACKARROW, COLUMN_MARGINS, REVERSE_WRAP_AROUND];

pub(crate) const REVERSE_VIDEO: u16 = 5;
/// Back over the beginning of a row that the row before goes on in.
pub(crate) const REVERSE_WRAP: u16 = 45;
pub(crate) const BACKARROW: u16 = 67;
pub(crate) const COLUMN_MARGINS: u16 = 69;
/// Back over the beginning of any row, and of the screen.
pub(crate) const REVERSE_WRAP_AROUND: u16 = 1045;

/// Who said what is protected: each kind has erasing sequences of its own that obey it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protection {
    #[default]
    Unused,
    /// DECSCA: DECSED, DECSEL and DECSERA obey.
    Dec,
    /// SPA and EPA: ED, EL and ECH obey.
    Iso,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// DECSCL: 61 for a VT100, up to 65 for a VT500.
    pub(crate) level: u8,
    /// S8C1T: answers begin with one byte instead of two.
    pub(crate) eight_bit: bool,
    /// DECSACE, as it was said: 2 for rectangles, else from the first place to the last.
    pub(crate) extent: u8,
    pub(crate) protection: Protection,
    /// Those of [`KEPT`] that are on.
    pub(crate) on: BTreeSet<u16>,
    /// Modes that were put away (XTSAVE).
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

    /// `false` if this is none of those that are kept.
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

    /// DECSTR: not what the user would notice.
    pub(crate) fn reset_softly(&mut self) {
        self.extent = 0;
        self.protection = Protection::Unused;
        self.on.retain(|mode| matches!(*mode, REVERSE_VIDEO | BACKARROW));
    }
}

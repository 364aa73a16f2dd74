//! The modes that a program set for keys, mouse, paste and cursor.
//!
//! Not the drawing modes (insert, autowrap, margins): the canvas has those.

use serde::{Deserialize, Serialize};

/// Which mouse events the program wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mouse {
    /// No mouse events.
    #[default]
    Off,
    /// Presses only (9).
    Press,
    /// Presses and releases (1000).
    Click,
    /// Presses, releases, and motion with a button held (1002).
    Drag,
    /// Presses, releases and all motion (1003).
    Motion,
}

/// How mouse events are encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MouseEncoding {
    /// One byte per coordinate.
    #[default]
    Bytes,
    /// UTF-8 coordinates (1005).
    Utf8,
    /// Decimal numbers (1006).
    Sgr,
    /// Decimal numbers, the way of urxvt (1015).
    Urxvt,
    /// Decimal numbers in pixels (1016).
    SgrPixels,
}

/// The shape of the cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CursorShape {
    /// A filled cell.
    #[default]
    Block,
    /// A line below the character.
    Underline,
    /// A line left of the character.
    Bar,
}

/// The modes that a viewer or a sender of input must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modes {
    /// Arrow keys send SS3 sequences (DECCKM).
    pub app_cursor: bool,
    /// The keypad sends sequences (DECKPAM).
    pub app_keypad: bool,
    /// Pastes are bracketed by markers (2004).
    pub bracketed_paste: bool,
    /// The terminal reports focus changes (1004).
    pub focus_events: bool,
    /// Which mouse events are sent.
    pub mouse: Mouse,
    /// How they are encoded.
    pub mouse_encoding: MouseEncoding,
    /// The wheel sends arrow keys on the alternate screen.
    pub alternate_scroll: bool,
    /// The cursor is shown (DECTCEM).
    pub cursor_visible: bool,
    /// The cursor blinks.
    pub cursor_blinking: bool,
    /// The shape of the cursor.
    pub cursor_shape: CursorShape,
    /// Synchronized output: the program is in the middle of drawing a frame.
    pub synchronized: bool,
    /// A line feed also returns the carriage.
    pub linefeed_newline: bool,
    /// Rows count from the top margin.
    pub origin: bool,
    /// xterm's modifyOtherKeys level.
    pub modify_other_keys: u8,
}

impl Default for Modes {
    fn default() -> Self {
        Modes {
            app_cursor: false,
            app_keypad: false,
            bracketed_paste: false,
            focus_events: false,
            mouse: Mouse::Off,
            mouse_encoding: MouseEncoding::Bytes,
            alternate_scroll: true,
            cursor_visible: true,
            cursor_blinking: false,
            cursor_shape: CursorShape::Block,
            synchronized: false,
            linefeed_newline: false,
            origin: false,
            modify_other_keys: 0,
        }
    }
}

impl Modes {
    /// Sets a private mode that is only a flag. `false` if it is not one of ours.
    pub(crate) fn set(&mut self, mode: u16, on: bool) -> bool {
        if let Some(mouse) = mouse_of(mode) {
            self.mouse = if on { mouse } else { Mouse::Off };
        } else if let Some(encoding) = encoding_of(mode) {
            self.mouse_encoding = if on { encoding } else { MouseEncoding::Bytes };
        } else if let Some(flag) = self.flag(mode) {
            *flag = on;
        } else {
            return false;
        }
        true
    }

    /// Whether a private mode is on; `None` if it is not one of ours.
    pub(crate) fn get(&self, mode: u16) -> Option<bool> {
        if let Some(mouse) = mouse_of(mode) {
            return Some(self.mouse == mouse);
        }
        if let Some(encoding) = encoding_of(mode) {
            return Some(self.mouse_encoding == encoding);
        }
        let mut copy = *self;
        copy.flag(mode).copied()
    }

    fn flag(&mut self, mode: u16) -> Option<&mut bool> {
        Some(match mode {
            1 => &mut self.app_cursor,
            6 => &mut self.origin,
            12 => &mut self.cursor_blinking,
            25 => &mut self.cursor_visible,
            66 => &mut self.app_keypad,
            1004 => &mut self.focus_events,
            1007 => &mut self.alternate_scroll,
            2004 => &mut self.bracketed_paste,
            2026 => &mut self.synchronized,
            _ => return None,
        })
    }

    /// The DECSCUSR number of the cursor.
    pub(crate) fn cursor_style(&self) -> u8 {
        let steady = match self.cursor_shape {
            CursorShape::Block => 2,
            CursorShape::Underline => 4,
            CursorShape::Bar => 6,
        };
        steady - u8::from(self.cursor_blinking)
    }

    /// DECSCUSR.
    pub(crate) fn set_cursor_style(&mut self, style: u16) {
        self.cursor_shape = match style {
            0..=2 => CursorShape::Block,
            3 | 4 => CursorShape::Underline,
            5 | 6 => CursorShape::Bar,
            _ => return,
        };
        self.cursor_blinking = style % 2 == 1;
    }
}

/// Mouse protocols are one setting: each replaces the one before.
fn mouse_of(mode: u16) -> Option<Mouse> {
    Some(match mode {
        9 => Mouse::Press,
        1000 => Mouse::Click,
        1002 => Mouse::Drag,
        1003 => Mouse::Motion,
        _ => return None,
    })
}

fn encoding_of(mode: u16) -> Option<MouseEncoding> {
    Some(match mode {
        1005 => MouseEncoding::Utf8,
        1006 => MouseEncoding::Sgr,
        1015 => MouseEncoding::Urxvt,
        1016 => MouseEncoding::SgrPixels,
        _ => return None,
    })
}

impl Mouse {
    /// The private mode that turns it on.
    pub(crate) fn number(self) -> Option<u16> {
        [9, 1000, 1002, 1003].into_iter().find(|mode| mouse_of(*mode) == Some(self))
    }
}

impl MouseEncoding {
    pub(crate) fn number(self) -> Option<u16> {
        [1005, 1006, 1015, 1016].into_iter().find(|mode| encoding_of(*mode) == Some(self))
    }
}

//! The size of a terminal, in cells and in pixels.
//!
//! A requested size may be unusable; [`Size::bounded`] brings it into range.

use serde::{Deserialize, Serialize};

/// A wide character needs two columns; a screen wider than this is a mistake.
const COLUMNS: std::ops::RangeInclusive<u16> = 2..=2000;
const ROWS: std::ops::RangeInclusive<u16> = 1..=1000;

/// The cell size that programs assume if the terminal does not report pixels.
const CELL_WIDTH: u16 = 8;
const CELL_HEIGHT: u16 = 16;

/// The size of a terminal. Pixels are 0 if not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Size {
    /// Width in cells.
    pub cols: u16,
    /// Height in cells.
    pub rows: u16,
    /// Width in pixels, or 0.
    pub x_pixels: u16,
    /// Height in pixels, or 0.
    pub y_pixels: u16,
}

impl Size {
    /// A size in cells, without pixels.
    pub fn cells(cols: u16, rows: u16) -> Self {
        Size { cols, rows, x_pixels: 0, y_pixels: 0 }
    }

    /// The nearest size that a screen can have.
    pub fn bounded(self) -> Self {
        Size {
            cols: self.cols.clamp(*COLUMNS.start(), *COLUMNS.end()),
            rows: self.rows.clamp(*ROWS.start(), *ROWS.end()),
            ..self
        }
    }

    /// Width and height of one cell in pixels.
    pub(crate) fn cell_pixels(self) -> (u16, u16) {
        match (self.x_pixels / self.cols.max(1), self.y_pixels / self.rows.max(1)) {
            (0, _) | (_, 0) => (CELL_WIDTH, CELL_HEIGHT),
            cell => cell,
        }
    }

    /// Width and height of the text area in pixels.
    pub(crate) fn text_pixels(self) -> (u32, u32) {
        let (width, height) = self.cell_pixels();
        (u32::from(width) * u32::from(self.cols), u32::from(height) * u32::from(self.rows))
    }
}

//! Draws a program's bytes on a screen with scrollback, and encodes that screen as bytes for a viewer.
//!
//! Starts nothing, reads no clock and no files: the same bytes always draw the same screen. The emulator
//! (rio-vt) is not visible from outside; [`Screen`] is the entry point.

#![warn(missing_docs)]

pub mod answers;
mod canvas;
mod cells;
mod charset;
mod csi;
mod disputed;
mod dump;
mod dump_cells;
mod dump_scrollback;
mod dump_settings;
mod dump_style;
mod encoding;
mod event;
mod filter;
mod history;
pub mod keys;
mod kitty;
mod look;
mod modes;
mod palette;
mod pen;
mod picture;
mod query;
mod rectangle;
mod redraw;
mod reply;
mod scan;
mod screen;
mod scrollback;
mod sequence;
mod settings;
mod size;
mod snapshot;
mod string;
mod tabs;
mod terminal;
mod window;

pub use encoding::DumpError;
pub use event::{Fed, Progress, Prompt, ScreenEvent};
pub use filter::ViewerFilter;
pub use modes::{CursorShape, Modes, Mouse, MouseEncoding};
pub use palette::{Colours, Rgb};
pub use picture::{Keys, PICTURE};
pub use screen::Screen;
pub use size::Size;
pub use snapshot::{CellSnapshot, Colour, CursorSnapshot, Pen, RowSnapshot, ScreenSnapshot, Snapshot};
pub use window::Window;

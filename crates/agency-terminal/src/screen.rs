//! The public interface of a terminal: bytes in, answers and events out; dump, redraw, text.
//!
//! The emulator behind it may panic. A panic costs the bytes that caused it, at worst the contents of the screen,
//! but never the process.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rio_vt::crosswords::grid::Dimensions;
use rio_vt::crosswords::pos::Line;
use rio_vt::crosswords::square::Square;

use crate::cells::WRAP;
use crate::dump;
use crate::encoding::DumpError;
use crate::event::{Fed, ScreenEvent};
use crate::filter::ViewerFilter;
use crate::modes::Modes;
use crate::palette::{Colours, Rgb};
use crate::size::Size;
use crate::snapshot::{self, Snapshot};
use crate::terminal::Terminal;
use crate::{history, redraw};

/// Shown in place of contents that could not be saved.
const LOST: &str = "─── The screen contents were lost ───";

/// A terminal's screen with its scrollback, modes and state.
pub struct Screen {
    terminal: Terminal,
    /// A digest of what was visible at the last [`Screen::take_visible_change`].
    seen: u64,
    /// Whether anything was drawn since then.
    touched: bool,
    /// The number of bytes in a frame that the program has not finished (synchronized output).
    unfinished: usize,
}

/// A longer frame will never be finished: its program forgot to end it, or died.
const UNFINISHED_MAX: usize = 1 << 20;

impl Screen {
    /// A blank screen that keeps at most `scrollback_lines` rows of history.
    pub fn new(size: Size, scrollback_lines: usize) -> Screen {
        Screen::showing(Terminal::new(size, scrollback_lines))
    }

    fn showing(terminal: Terminal) -> Screen {
        let seen = look(&terminal);
        Screen { terminal, seen, touched: false, unfinished: 0 }
    }

    /// Draws what a program wrote. The stream may be cut anywhere between two calls.
    pub fn feed(&mut self, bytes: &[u8]) -> Fed {
        let mut fed = Fed::default();
        if !self.guarded(|terminal| terminal.feed(bytes, &mut fed)) {
            fed.events.push(ScreenEvent::Panicked);
        }
        self.unfinished = if self.terminal.modes.synchronized { self.unfinished + bytes.len() } else { 0 };
        fed
    }

    /// Changes the size; lines reflow to the new width.
    pub fn resize(&mut self, size: Size) {
        self.guarded(|terminal| terminal.resize(size));
    }

    /// The current size.
    pub fn size(&self) -> Size {
        self.terminal.size
    }

    /// The current modes.
    pub fn modes(&self) -> Modes {
        self.terminal.modes
    }

    /// The window title that the program set last.
    pub fn title(&self) -> &str {
        &self.terminal.title
    }

    /// Whether the alternate screen is shown.
    pub fn is_alternate(&self) -> bool {
        self.terminal.canvas.is_alternate()
    }

    /// Sets the colours that programs get when they ask for colours that they did not change. They stay until they
    /// are set again; a restored screen has none and reports the defaults.
    pub fn set_viewer_colours(&mut self, colours: Colours) {
        self.terminal.viewer = colours;
    }

    /// The active kitty keyboard flags.
    pub fn keyboard_flags(&self) -> u8 {
        self.terminal.keyboards.of(self.is_alternate()).flags
    }

    /// Whether the stream is between two units, so nothing of it is held back.
    pub fn in_ground(&self) -> bool {
        self.terminal.scanner.is_idle()
    }

    /// A filter for the output that comes next.
    pub fn viewer_filter(&self) -> ViewerFilter {
        ViewerFilter::going_on(self.terminal.scanner.clone())
    }

    /// The complete lines of the primary screen above the cursor; none while the alternate screen is shown.
    pub fn lines_above_cursor(&mut self) -> Vec<String> {
        history::lines_above_cursor(&self.terminal)
    }

    /// The cursor's row and column, from 0.
    pub fn cursor(&self) -> (u16, u16) {
        self.terminal.canvas.cursor()
    }

    /// Whether text or colours changed since the last call. The cursor does not count, nor does writing the same
    /// again. An unfinished frame (mode 2026) counts only when it ends.
    pub fn take_visible_change(&mut self) -> bool {
        if self.is_half_drawn() {
            return false;
        }
        if !std::mem::take(&mut self.touched) {
            return false;
        }
        let seen = look(&self.terminal);
        std::mem::replace(&mut self.seen, seen) != seen
    }

    /// Whether a frame has started (mode 2026) and is not complete, so no viewer has seen it yet.
    pub fn is_half_drawn(&self) -> bool {
        (1..UNFINISHED_MAX).contains(&self.unfinished)
    }

    /// The visible rows, without colours and trailing blanks.
    pub fn rows(&mut self) -> Vec<String> {
        self.read(history::rows)
    }

    /// The complete state as bytes. Works at any cut of the stream, also inside a sequence or a character.
    pub fn dump(&mut self) -> Vec<u8> {
        self.read(dump::dump)
    }

    /// Restores a screen from a dump.
    pub fn restore(bytes: &[u8]) -> Result<Screen, DumpError> {
        // The decoder may accept what the engine cannot handle.
        let restored = catch_unwind(|| dump::restore(bytes));
        restored.unwrap_or(Err(DumpError::Damaged)).map(Screen::showing)
    }

    /// The number of rows in the scrollback.
    pub fn scrollback_rows(&mut self) -> usize {
        self.read(|terminal| terminal.canvas.scrollback().len())
    }

    /// The bytes that make a viewer's terminal of the same size show this screen. The scrollback, if wanted, is
    /// sent first, as lines that scroll up.
    pub fn redraw(&mut self, with_scrollback: bool) -> Vec<u8> {
        self.redraw_with(if with_scrollback { usize::MAX } else { 0 })
    }

    /// The same with about this many rows of the scrollback, the newest ones: the first of them begins a line.
    pub fn redraw_with(&mut self, scrollback_rows: usize) -> Vec<u8> {
        self.read(|terminal| redraw::redraw(terminal, scrollback_rows))
    }

    /// Starts a new run: resets everything, moves the screen's contents to the scrollback, and writes `text` on its
    /// own line.
    pub fn session_separator(&mut self, text: &str) {
        self.guarded(|terminal| begin_run(terminal, text));
    }

    /// Scrollback and screen as plain text. Wrapped lines are joined; trailing blanks are removed.
    pub fn text(&mut self) -> String {
        self.read(history::text)
    }

    /// Removes and returns the complete lines of the scrollback, so that endless output can pass through.
    pub fn drain_history(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        self.guarded(|terminal| lines = history::drain(terminal));
        lines
    }

    /// Everything that can be compared.
    pub fn snapshot(&mut self) -> Snapshot {
        self.read(snapshot::snapshot)
    }

    /// Reads something that may panic. After a panic, rebuilds the terminal and reads again.
    pub(crate) fn read<T>(&mut self, look: impl Fn(&Terminal) -> T) -> T {
        let settled = || {
            self.terminal.canvas.settle();
            look(&self.terminal)
        };
        if let Ok(read) = catch_unwind(AssertUnwindSafe(settled)) {
            return read;
        }
        self.terminal = rebuilt(&mut self.terminal);
        look(&self.terminal)
    }

    /// Runs something that may panic. `false` if it did; the terminal has then been rebuilt.
    fn guarded(&mut self, act: impl FnOnce(&mut Terminal)) -> bool {
        self.touched = true;
        let terminal = &mut self.terminal;
        let done = catch_unwind(AssertUnwindSafe(|| act(terminal))).is_ok();
        if !done {
            self.terminal = rebuilt(&mut self.terminal);
        }
        done
    }
}

/// Rebuilds a terminal after a panic left the engine in an undefined state. Usually its cells can still be read,
/// and a terminal restored from a dump is sound. Otherwise returns a blank screen with a message.
fn rebuilt(broken: &mut Terminal) -> Terminal {
    let salvage = || {
        broken.canvas.settle();
        dump::restore(&dump::dump(broken))
    };
    let salvaged = catch_unwind(AssertUnwindSafe(salvage));
    let mut terminal = match salvaged {
        Ok(Ok(terminal)) => terminal,
        _ => blank_after_loss(broken),
    };
    terminal.viewer = broken.viewer.clone();
    terminal
}

fn blank_after_loss(lost: &Terminal) -> Terminal {
    let mut terminal = Terminal::new(lost.size, lost.canvas.scrollback().limit());
    begin_run(&mut terminal, LOST);
    terminal
}

fn begin_run(terminal: &mut Terminal, text: &str) {
    let mut unheard = Fed::default();
    terminal.scanner = Default::default();
    terminal.reset(&mut unheard);
    terminal.feed(text.as_bytes(), &mut unheard);
    terminal.feed(b"\r\n", &mut unheard);
}

/// A digest of what is visible, without the cursor.
fn look(terminal: &Terminal) -> u64 {
    let mut digest = Digest::default();
    let cells = terminal.canvas.shown();
    for line in 0..cells.screen_lines() as i32 {
        digest.row(&cells[Line(line)].inner);
    }
    for (index, Rgb(r, g, b)) in terminal.palette.changed() {
        digest.add(0, u64::from(index) << 24 | u64::from(u32::from_be_bytes([0, r, g, b])));
    }
    digest.add(0, terminal.canvas.is_alternate().into());
    digest.lanes.into_iter().fold(0, mix)
}

/// Hashes in independent lanes, because screens are digested after every chunk of a flood.
#[derive(Default)]
struct Digest {
    lanes: [u64; 4],
}

impl Digest {
    fn row(&mut self, cells: &[Square]) {
        let fours = cells.chunks_exact(4);
        fours.remainder().iter().for_each(|cell| self.add(0, seen_of(*cell)));
        for four in fours {
            for (lane, cell) in four.iter().enumerate() {
                self.add(lane, seen_of(*cell));
            }
        }
    }

    fn add(&mut self, lane: usize, word: u64) {
        self.lanes[lane] = mix(self.lanes[lane], word);
    }
}

/// The visible part of a cell: an unwritten cell looks like a space, and a wrap is invisible. Uses the engine's
/// cell layout (the character in the lowest 21 bits) to avoid branches.
fn seen_of(cell: Square) -> u64 {
    let blank = u64::from(cell.raw() & 0x1f_ffff == 0) * u64::from(b' ');
    (cell.raw() | blank) & !WRAP
}

fn mix(sum: u64, word: u64) -> u64 {
    (sum ^ word ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(23)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str) -> Screen {
        let mut screen = Screen::new(Size::cells(60, 5), 10);
        screen.feed(text.as_bytes());
        screen
    }

    #[test]
    fn a_panic_costs_only_the_bytes_that_caused_it() {
        let mut screen = drawn("old\r\n\x1b[31mred\x1b[2;3r");
        let before = screen.snapshot();
        assert!(!screen.guarded(|_| panic!("as the engine might")));
        assert_eq!(screen.snapshot(), before);
        screen.feed(b"\x1b[3;1Hmore");
        assert_eq!(screen.text(), "old\nred\nmore\n");
    }

    #[test]
    fn contents_that_cannot_be_saved_are_replaced_by_a_message() {
        let mut screen = drawn("old");
        let broken = screen.guarded(|terminal| {
            terminal.canvas.shown_mut().cursor.pos.row = Line(77);
            panic!("as the engine might");
        });
        assert!(!broken);
        screen.feed(b"new");
        assert_eq!(screen.text(), format!("{LOST}\nnew\n"));
    }

    #[test]
    fn the_digest_knows_the_engines_cell_layout() {
        let mut wrapped = Square::from_char('\u{10ffff}');
        assert_eq!(wrapped.raw(), 0x10_ffff);
        wrapped.set_wrapline(true);
        assert_eq!(seen_of(wrapped), 0x10_ffff);
        assert_eq!(seen_of(Square::default()), Square::from_char(' ').raw());
    }

    #[test]
    fn readers_survive_any_contents() {
        let mut screen = drawn("old");
        screen.terminal.canvas.shown_mut().raw.replace_inner(Vec::new());
        assert_eq!(screen.text(), format!("{LOST}\n"));
    }
}

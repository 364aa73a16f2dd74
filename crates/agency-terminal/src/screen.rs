//! The door to a terminal: bytes in, answers and events out; dump, redraw, text.
//!
//! Behind it the emulator may panic. That costs the bytes it panicked on, at worst the picture, and never
//! the process.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rio_vt::crosswords::grid::Dimensions;
use rio_vt::crosswords::pos::Line;
use rio_vt::crosswords::square::Square;

use crate::cells::WRAP;
use crate::dump::{self, DumpError};
use crate::event::{Fed, ScreenEvent};
use crate::filter::ViewerFilter;
use crate::modes::Modes;
use crate::palette::{Colours, Rgb};
use crate::size::Size;
use crate::snapshot::{self, Snapshot};
use crate::terminal::Terminal;
use crate::{history, redraw};

/// Shown where a picture was that could not be saved.
const LOST: &str = "─── The screen was lost and begins anew ───";

pub struct Screen {
    terminal: Terminal,
    /// What a person saw when [`Screen::take_visible_change`] was last called.
    seen: u64,
    /// Something was done since then.
    touched: bool,
    /// Bytes drawn into a picture that the program has not finished (synchronized output).
    unfinished: usize,
}

/// A picture longer than this will never be finished: its program forgot, or died.
const UNFINISHED_MAX: usize = 1 << 20;

impl Screen {
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

    pub fn resize(&mut self, size: Size) {
        self.guarded(|terminal| terminal.resize(size));
    }

    pub fn size(&self) -> Size {
        self.terminal.size
    }

    pub fn modes(&self) -> Modes {
        self.terminal.modes
    }

    pub fn title(&self) -> &str {
        &self.terminal.title
    }

    pub fn is_alternate(&self) -> bool {
        self.terminal.canvas.is_alternate()
    }

    /// What programs are told when they ask for colours that they did not change themselves. It stays until
    /// it is set again; a restored screen has none, and tells the usual ones.
    pub fn set_viewer_colours(&mut self, colours: Colours) {
        self.terminal.viewer = colours;
    }

    /// The kitty keyboard flags in force.
    pub fn keyboard_flags(&self) -> u8 {
        self.terminal.keyboards.of(self.is_alternate()).flags
    }

    /// Between two units of the stream: nothing of it is held back.
    pub fn in_ground(&self) -> bool {
        self.terminal.scanner.is_idle()
    }

    /// A filter for the output that comes next.
    pub fn viewer_filter(&self) -> ViewerFilter {
        ViewerFilter::going_on(self.terminal.scanner.clone())
    }

    /// The lines of the primary screen that the cursor has left behind; none while the alternate one is shown.
    pub fn lines_above_cursor(&mut self) -> Vec<String> {
        history::lines_above_cursor(&self.terminal)
    }

    /// Row and column of the cursor, from 0.
    pub fn cursor(&self) -> (u16, u16) {
        self.terminal.canvas.cursor()
    }

    /// Whether text or colours changed since the last call; the cursor does not count, nor does writing
    /// the same again. What is drawn into an unfinished picture (mode 2026) is not seen before its end.
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

    /// A picture has been begun (mode 2026) and is not whole: nobody has seen it yet.
    pub fn is_half_drawn(&self) -> bool {
        (1..UNFINISHED_MAX).contains(&self.unfinished)
    }

    /// What is visible, row by row, without colours and trailing blanks.
    pub fn rows(&mut self) -> Vec<String> {
        self.read(history::rows)
    }

    /// Everything, exactly, as bytes. At any cut of the stream, also inside a sequence or a character.
    pub fn dump(&mut self) -> Vec<u8> {
        self.read(dump::dump)
    }

    pub fn restore(bytes: &[u8]) -> Result<Screen, DumpError> {
        // What the decoder lets through, the engine might still stumble over.
        let restored = catch_unwind(|| dump::restore(bytes));
        restored.unwrap_or(Err(DumpError::Damaged)).map(Screen::showing)
    }

    /// How many rows have left the screen and are kept.
    pub fn scrollback_rows(&mut self) -> usize {
        self.read(|terminal| terminal.canvas.scrollback().len())
    }

    /// What brings a viewer's terminal of the same size to show this. With the scrollback it goes above
    /// the screen as lines that scroll up.
    pub fn redraw(&mut self, with_scrollback: bool) -> Vec<u8> {
        self.read(|terminal| redraw::redraw(terminal, with_scrollback))
    }

    /// A new run begins: all as at first, what was on the screen goes to the scrollback, and `text` stands
    /// on a line of its own.
    pub fn session_separator(&mut self, text: &str) {
        self.guarded(|terminal| begin_run(terminal, text));
    }

    /// Scrollback and screen as plain text. Wrapped lines are joined, trailing blanks are gone.
    pub fn text(&mut self) -> String {
        self.read(history::text)
    }

    /// Takes the scrollback out, as whole lines, so that output without end can pass through.
    pub fn drain_history(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        self.guarded(|terminal| lines = history::drain(terminal));
        lines
    }

    /// All that can be compared.
    pub fn snapshot(&mut self) -> Snapshot {
        self.read(snapshot::snapshot)
    }

    /// Reads what may panic. If it does, the terminal is rebuilt and read again.
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

    /// Runs what may panic. `false` if it did; then the terminal has been rebuilt.
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

/// A panic leaves the engine in a state that nobody meant. Most often its cells can still be read; what
/// passes through a dump is sound. Otherwise there is a blank screen that says so.
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

/// A number for what a person sees, cursor excepted.
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

/// In lanes that do not wait for each other: screens are digested after every chunk of a flood.
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

/// A cell that was never written looks like a space, and a line's wrap cannot be seen. Without branches,
/// on the engine's layout of a cell: the character in the lowest 21 bits.
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
    fn a_panic_costs_what_it_panicked_on_and_nothing_else() {
        let mut screen = drawn("old\r\n\x1b[31mred\x1b[2;3r");
        let before = screen.snapshot();
        assert!(!screen.guarded(|_| panic!("as the engine might")));
        assert_eq!(screen.snapshot(), before);
        screen.feed(b"\x1b[3;1Hmore");
        assert_eq!(screen.text(), "old\nred\nmore\n");
    }

    #[test]
    fn a_picture_that_cannot_be_saved_says_so() {
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
    fn the_engine_lays_out_cells_as_the_digest_expects() {
        let mut wrapped = Square::from_char('\u{10ffff}');
        assert_eq!(wrapped.raw(), 0x10_ffff);
        wrapped.set_wrapline(true);
        assert_eq!(seen_of(wrapped), 0x10_ffff);
        assert_eq!(seen_of(Square::default()), Square::from_char(' ').raw());
    }

    #[test]
    fn readers_do_not_fall_over_what_they_find() {
        let mut screen = drawn("old");
        screen.terminal.canvas.shown_mut().raw.replace_inner(Vec::new());
        assert_eq!(screen.text(), format!("{LOST}\n"));
    }
}

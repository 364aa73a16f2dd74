//! A viewer with a terminal of another size sees an exact part of the screen.

mod common;

use agency_terminal::{CellSnapshot, Keys, Pen, RowSnapshot, Screen, Size, Window};
use common::soup::{Act, play, soup, start};
use common::{Dice, SCROLLBACK, drawn, recordings};
use proptest::prelude::*;

/// A viewer's terminal, drawn only with frames.
struct Viewer {
    window: Window,
    terminal: Screen,
}

impl Viewer {
    fn new(cols: u16, rows: u16) -> Viewer {
        let size = Size::cells(cols, rows);
        // The terminal was used for something else before.
        let old = b"\x1b[?69h\x1b[1;2s\x1b[?5h\x1bVold\x1b[?1049hold\x1b[2;3r\x1b[?6h\x1b[4h\x1b[31;44mold\x1b(0\x1b[>7u\x1b[?1003h\x1b[1;1Hold";
        Viewer { window: Window::new(size), terminal: drawn(size, old) }
    }

    fn look(&mut self, screen: &mut Screen) -> Vec<u8> {
        let frame = screen.frame(&mut self.window, Keys::Plain);
        self.terminal.feed(&frame);
        frame
    }

    /// Checks that the viewer shows the part of the screen around the cursor.
    #[track_caller]
    fn check(&mut self, screen: &mut Screen) {
        self.look(screen);
        let ((row, col), (seen_row, seen_col)) = (screen.cursor(), self.terminal.cursor());
        assert!(row >= seen_row && col >= seen_col, "the cursor is inside of the window");
        let (top, left) = (usize::from(row - seen_row), usize::from(col - seen_col));
        let (meant, seen) = (all_cells(screen), all_cells(&mut self.terminal));
        let size = screen.size();
        for (line, cells) in seen.iter().enumerate() {
            let Some(meant) = meant.get(line + top) else { continue };
            let right = usize::from(size.cols).min(left + cells.len());
            let meant = cut(meant, left..right);
            assert_eq!(&cells[..meant.len()], &meant[..], "row {line} of a window at {top}, {left}");
        }
        let (viewers, programs) = (self.terminal.modes(), screen.modes());
        assert_eq!(viewers.cursor_visible, programs.cursor_visible);
        assert_eq!(viewers.cursor_shape, programs.cursor_shape);
        assert_eq!(self.terminal.snapshot().other_modes, [0u16; 0], "neither reverse video nor margins");
        assert_eq!(self.terminal.title(), screen.title());
        assert_eq!(self.terminal.snapshot().palette, screen.snapshot().palette);
        assert_eq!(self.terminal.is_alternate(), screen.is_alternate());
    }
}

/// A cell's appearance; `None` for the second half of a wide character.
type Look = Option<(String, Pen)>;

fn all_cells(screen: &mut Screen) -> Vec<Vec<Look>> {
    let snapshot = screen.snapshot();
    let cols = usize::from(snapshot.size.cols);
    let shown = snapshot.alternate.unwrap_or(snapshot.primary);
    shown.rows.iter().map(|row| looks_of(row, cols)).collect()
}

fn looks_of(row: &RowSnapshot, cols: usize) -> Vec<Look> {
    let plain = Screen::new(Size::cells(9, 9), 0).snapshot().primary.cursor.pen;
    let mut looks: Vec<Look> = Vec::new();
    for cell in &row.cells {
        let CellSnapshot { text, width, pen } = cell;
        // Protection is invisible.
        let pen = &Pen { protected: false, ..pen.clone() };
        let covered = *width == 0 && looks.last().is_some_and(|last| last.as_ref().is_some_and(is_wide));
        looks.push(match (covered, text.as_str()) {
            (true, _) => None,
            (false, "" | " ") => Some((" ".to_owned(), on_a_blank(pen, &plain))),
            (false, text) => {
                Some((if *width == 2 { format!("{text}\0") } else { text.to_owned() }, pen.clone()))
            }
        });
    }
    looks.resize(cols, Some((" ".to_owned(), plain)));
    looks
}

fn is_wide((text, _): &(String, Pen)) -> bool {
    text.ends_with('\0')
}

fn on_a_blank(pen: &Pen, plain: &Pen) -> Pen {
    let lined = pen.underline != 0 || pen.strikeout;
    Pen {
        background: pen.background,
        inverse: pen.inverse,
        underline: pen.underline,
        strikeout: pen.strikeout,
        foreground: if lined || pen.inverse { pen.foreground } else { plain.foreground },
        underline_colour: pen.underline_colour.filter(|_| lined),
        ..plain.clone()
    }
}

/// A wide character that an edge cuts is blank.
fn cut(row: &[Look], columns: std::ops::Range<usize>) -> Vec<Look> {
    let plain = Screen::new(Size::cells(9, 9), 0).snapshot().primary.cursor.pen;
    let blank = |pen: &Pen| Some((" ".to_owned(), on_a_blank(pen, &plain)));
    let mut cells = row[columns.clone()].to_vec();
    if let Some(last) = cells.last_mut()
        && let Some((_, pen)) = last.as_ref().filter(|last| is_wide(last))
    {
        *last = blank(pen);
    }
    if cells[0].is_none() {
        let (_, pen) = row[columns.start - 1].as_ref().expect("a wide character lies before its second half");
        cells[0] = blank(pen);
    }
    cells
}

const SIZES: [(u16, u16); 6] = [(40, 10), (20, 50), (200, 12), (200, 60), (79, 24), (3, 2)];

#[test]
fn every_size_shows_its_part_of_a_recording() {
    for recording in recordings() {
        let mut screen = Screen::new(recording.size, SCROLLBACK);
        let mut viewers = SIZES.map(|(cols, rows)| Viewer::new(cols, rows));
        for chunk in recording.output.chunks(3001) {
            screen.feed(chunk);
            viewers.iter_mut().for_each(|viewer| viewer.check(&mut screen));
        }
    }
}

#[test]
fn nothing_is_sent_when_nothing_changed_and_little_when_little_did() {
    let mut screen = drawn(Size::cells(80, 24), "some text\r\n".repeat(20).as_bytes());
    let mut viewer = Viewer::new(40, 10);
    assert!(!viewer.look(&mut screen).is_empty());
    assert_eq!(viewer.look(&mut screen), b"");
    screen.feed(b"x");
    let frame = viewer.look(&mut screen);
    assert!(frame.len() < 60, "{}", frame.escape_ascii());
    assert!(frame.starts_with(b"\x1b[?2026h") && frame.ends_with(b"\x1b[?2026l"));
}

#[test]
fn the_window_follows_the_cursor_and_stays_where_it_can() {
    let mut screen = drawn(Size::cells(80, 24), b"top\x1b[24;1Hbottom");
    let mut viewer = Viewer::new(20, 5);
    viewer.check(&mut screen);
    assert_eq!(viewer.terminal.text(), "\n\n\n\nbottom\n");
    screen.feed(b"\x1b[22;1Hnear");
    viewer.check(&mut screen);
    assert_eq!(viewer.terminal.text(), "\n\nnear\n\nbottom\n");
    screen.feed(b"\x1b[1;70Hfar");
    viewer.check(&mut screen);
    assert_eq!(viewer.terminal.text().trim(), "far");
    screen.feed(b"\r");
    viewer.check(&mut screen);
    assert_eq!(viewer.terminal.text().lines().next().unwrap().trim_end(), "top");
}

#[test]
fn the_edge_of_a_smaller_screen_is_drawn() {
    let mut screen = drawn(Size::cells(4, 2), b"abcdxy");
    let mut viewer = Viewer::new(7, 4);
    viewer.check(&mut screen);
    assert_eq!(viewer.terminal.text(), "abcd│\nxy  │\n────┘\n");
}

#[test]
fn a_wide_character_at_the_edge_is_blank() {
    let mut screen = drawn(Size::cells(8, 2), "漢字漢字\x1b[1;1H".as_bytes());
    let mut viewer = Viewer::new(3, 2);
    viewer.check(&mut screen);
    assert_eq!(viewer.terminal.text(), "漢\n");
}

#[test]
fn only_a_viewer_that_types_gets_the_programs_key_modes() {
    let program = b"\x1b[?1h\x1b[?2004h\x1b[?1002h\x1b[?1006h\x1b[>5u\x1b[?1004h\x1b=";
    let mut screen = drawn(Size::cells(20, 4), program);
    let mut viewer = Viewer::new(10, 4);
    viewer.check(&mut screen);
    let plain = Screen::new(Size::cells(10, 4), 0).modes();
    assert_eq!(viewer.terminal.modes(), plain);
    assert_eq!(viewer.terminal.keyboard_flags(), 0);
    let frame = screen.frame(&mut viewer.window, Keys::Program);
    viewer.terminal.feed(&frame);
    assert_eq!(viewer.terminal.modes(), screen.modes());
    assert_eq!(viewer.terminal.keyboard_flags(), 5);
}

#[test]
fn a_terminal_with_other_widths_shows_everything_else_in_its_place() {
    let text = "a👩\u{200d}👩\u{200d}👧b ❤\u{fe0f}c 🇩🇪d ⏺e ──│f\r\nnext";
    let mut screen = drawn(Size::cells(40, 3), text.as_bytes());
    let mut window = Window::new(Size::cells(30, 3));
    let frame = screen.frame(&mut window, Keys::Plain);
    for bytes in [frame, screen.redraw(false)] {
        // Simulates a terminal that draws every disputed character with another width.
        let odd: String = String::from_utf8(bytes).unwrap().chars().map(other_width).collect();
        let mut other = drawn(Size::cells(30, 3), b"");
        other.feed(odd.as_bytes());
        let seen = &all_cells(&mut other)[0];
        let meant = &all_cells(&mut screen)[0];
        for letter in ["a", "b", "c", "d", "e", "f"] {
            let place = |cells: &[Look]| {
                cells.iter().position(|cell| cell.as_ref().is_some_and(|(text, _)| text == letter))
            };
            assert_eq!(place(seen), place(meant), "{letter}: {}", other.text());
        }
    }
}

/// Replaces wide characters by narrow ones and vice versa, without joining.
fn other_width(c: char) -> char {
    match c {
        '\u{200d}' | '\u{fe0f}' => '+',
        '👩' | '👧' | '🇩' | '🇪' | '❤' => '%',
        '⏺' | '─' | '│' => '漢',
        other => other,
    }
}

/// Whether characters combine with their neighbours; they would combine again when drawn in another order.
fn joins(act: &Act) -> bool {
    let Act::Write(bytes) = act else { return false };
    let text = String::from_utf8_lossy(bytes);
    text.contains("2027")
        || text.chars().any(|c| matches!(c, '\u{200d}' | '\u{fe0e}' | '\u{fe0f}' | '\u{900}'..='\u{97f}' | '\u{1f1e6}'..='\u{1f1ff}' | '각'))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_size_shows_its_part_of_any_soup(soup in soup(), cols in 2..30u16, rows in 1..12u16, seed in any::<u64>()) {
        let mut screen = start();
        let mut viewer = Viewer::new(cols, rows);
        let mut dice = Dice(seed);
        for act in soup.iter().filter(|act| !joins(act)) {
            play(&mut screen, act);
            if dice.roll(4) == 0 {
                viewer.check(&mut screen);
            }
        }
        viewer.check(&mut screen);
    }
}

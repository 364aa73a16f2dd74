//! A redraw draws the same picture on the viewer's terminal.

mod common;

use agency_terminal::{CellSnapshot, CursorSnapshot, Pen, RowSnapshot, Screen, Size, Snapshot};
use common::soup::{Act, play, soup, start};
use common::{SCROLLBACK, assert_same, drawn, recordings};
use proptest::prelude::*;

/// The part of a snapshot that can be seen, or that affects keys and mouse.
fn visible(mut snapshot: Snapshot) -> Snapshot {
    let size = snapshot.size;
    snapshot.scrollback.iter_mut().for_each(plain);
    snapshot.primary.rows.iter_mut().for_each(plain);
    forget_wraps_taken(&mut snapshot);
    // It cannot be seen that the last row continues in a row that does not exist.
    snapshot.primary.rows.iter_mut().last().expect("a screen has rows").wrapped = false;
    if let Some(alternate) = &mut snapshot.alternate {
        alternate.rows.iter_mut().for_each(plain);
        alternate.rows.iter_mut().last().expect("a screen has rows").wrapped = false;
        snapshot.saved_primary = nowhere();
    } else {
        snapshot.keyboard_alternate = Vec::new();
        snapshot.saved_alternate = nowhere();
    }
    // A redraw is a complete frame of its own.
    snapshot.modes.synchronized = false;
    Snapshot { size, held: Vec::new(), titles: Vec::new(), ..snapshot }
}

/// Some pending wraps cannot be redrawn.
fn forget_wraps_taken(snapshot: &mut Snapshot) {
    let (edge, right) = (snapshot.size.cols - 1, snapshot.side_margins.1);
    let Snapshot { primary, alternate, saved_primary, saved_alternate, .. } = snapshot;
    match alternate {
        Some(alternate) => {
            forget_wrap_taken(&mut primary.cursor, &primary.rows, edge, edge);
            forget_wrap_taken(&mut alternate.cursor, &alternate.rows, edge, right);
            forget_wrap_taken(saved_alternate, &alternate.rows, edge, edge);
        }
        None => {
            forget_wrap_taken(&mut primary.cursor, &primary.rows, edge, right);
            forget_wrap_taken(saved_primary, &primary.rows, edge, edge);
        }
    }
}

/// A pending wrap is lost if the line already continues, if it ended at side margins that the viewer's terminal
/// does not have at that moment, or if margins cut a wide character. `right` is the margin that it does have.
fn forget_wrap_taken(cursor: &mut CursorSnapshot, rows: &[RowSnapshot], edge: u16, right: u16) {
    let row = &rows[usize::from(cursor.row)];
    let ends_here = cursor.col == right || cursor.col == edge;
    let at_margin = right < edge && (right..=right + 1).contains(&cursor.col);
    let is_cut = at_margin && row.cells.get(usize::from(right)).is_some_and(|cell| cell.width == 2);
    cursor.wrap_pending &= !row.wrapped && ends_here && !is_cut;
}

fn nowhere() -> CursorSnapshot {
    Screen::new(Size::cells(9, 9), 0).snapshot().saved_primary
}

/// Replaces cells that were never written by spaces, which look the same.
fn plain(row: &mut RowSnapshot) {
    let blank = Screen::new(Size::cells(9, 9), 0).snapshot().primary.cursor.pen;
    let mut before: Option<Pen> = None;
    for cell in &mut row.cells {
        match before.take() {
            // The second half of a wide character looks like the first, whatever was moved there.
            Some(first) if cell.text.is_empty() => cell.pen = first,
            _ if cell.text.is_empty() => {
                *cell = CellSnapshot { text: " ".to_owned(), width: 1, pen: cell.pen.clone() };
            }
            _ => {}
        }
        before = (cell.width == 2).then(|| cell.pen.clone());
        if cell.text == " " {
            cell.pen = on_a_blank(&cell.pen, &blank);
        }
    }
    while row.cells.last().is_some_and(|cell| cell.text == " " && cell.pen == blank) {
        row.cells.pop();
    }
    row.prompt = false;
}

/// The part of a pen that is visible on a blank.
fn on_a_blank(pen: &Pen, blank: &Pen) -> Pen {
    let lined = pen.underline != 0 || pen.strikeout;
    Pen {
        foreground: if lined || pen.inverse { pen.foreground } else { blank.foreground },
        underline_colour: pen.underline_colour.filter(|_| lined),
        bold: false,
        dim: false,
        italic: false,
        blink: false,
        hidden: false,
        link: None,
        ..pen.clone()
    }
}

#[track_caller]
fn check(screen: &mut Screen) {
    let bytes = screen.redraw(true);
    let mut viewer = drawn(screen.size(), &bytes);
    let (seen, meant) = (visible(viewer.snapshot()), visible(screen.snapshot()));
    assert_same(&seen, &meant, "fresh");
    // Drawing over something else, or twice, has the same result.
    let mut used = drawn(
        screen.size(),
        b"\x1b[?69h\x1b[1;2s\x1b[?5h\x1b[?45h\x1b[?1045h\x1bVold\x1b[?1049h\x1b[3;5r\x1b[?6h\x1b[4h\x1b[31mold\x1b(0\x1b[>7u\x1b[?1003h\x1b[?7l",
    );
    used.feed(&bytes);
    used.feed(&screen.redraw(false));
    let mut seen = visible(used.snapshot());
    seen.scrollback = meant.scrollback.clone();
    // The alternate screen's keyboard is not changed while it is not shown.
    seen.saved_primary = meant.saved_primary.clone();
    assert_same(&seen, &meant, "used");
}

#[track_caller]
fn check_after(bytes: &str) {
    check(&mut drawn(Size::cells(20, 6), bytes.as_bytes()));
}

#[test]
fn a_redraw_shows_what_a_recording_showed() {
    for recording in recordings() {
        let mut screen = Screen::new(recording.size, SCROLLBACK);
        for chunk in recording.output.chunks(3001) {
            screen.feed(chunk);
            check(&mut screen);
        }
    }
}

#[test]
fn scrollback_comes_first_and_scrolls_up() {
    let lines: String = (0..30).map(|line| format!("line {line}\r\n")).collect();
    check_after(&lines);
    check_after(&format!("{lines}{}", "a long line that wraps more than once ".repeat(5)));
}

#[test]
fn a_part_of_the_scrollback_begins_with_a_whole_line() {
    let mut screen = Screen::new(Size::cells(20, 5), SCROLLBACK);
    let long = "0123456789".repeat(5);
    screen.feed(format!("one\r\n{long}\r\nthree\r\nfour{}", "\r\n".repeat(5)).as_bytes());
    let mut text_with = |rows| {
        let mut viewer = Screen::new(Size::cells(20, 5), SCROLLBACK);
        viewer.feed(&screen.redraw_with(rows));
        viewer.text().trim_end().to_owned()
    };
    assert_eq!(text_with(0), "");
    assert_eq!(text_with(2), "three\nfour");
    for rows in 3..=5 {
        assert_eq!(text_with(rows), format!("{long}\nthree\nfour"), "{rows} rows");
    }
    assert_eq!(text_with(6), format!("one\n{long}\nthree\nfour"));
    assert_eq!(text_with(usize::MAX), text_with(6));
}

#[test]
fn the_alternate_screen_covers_the_primary_one() {
    check_after("primary\r\n\x1b[1mbold\x1b[?1049h\x1b[2;3Halternate\x1b[7m inverse");
    check_after("primary\x1b[?1049hgone\x1b[?1049l back");
    check_after("one\x1b[?47htwo\x1b[3;3H\x1b[31m\x1b[?47lthree");
}

#[test]
fn wide_characters_and_marks_are_redrawn() {
    check_after("漢字漢字漢字漢字漢字漢字漢字");
    check_after("a漢字漢字漢字漢字漢字漢字漢字");
    check_after("e\u{301}🇩🇪👩‍👩‍👧‍👦 ❤\u{fe0f} 한글");
    check_after("漢字\x1b[1;2Hx\x1b[1;20H漢");
}

#[test]
fn a_pending_wrap_is_pending_for_the_viewer_too() {
    check_after("01234567890123456789");
    check_after("012345678901234567漢");
    check_after("\x1b[31;44m0123456789012345678X\x1b[0m");
    check_after("01234567890123456789\x1b[2;5r\x1b[?6h\x1b[4;1H01234567890123456789");
    check_after("01234567890123456789\x1b7\x1b[3;3H");
    check_after("\x1b[?69h\x1b[3;9s0123456");
    check_after("\x1b[?69h\x1b[3;9s0123456\x1b7\x1b[3;3H");
    check_after("\x1b[?69h\x1b[3;9s012345漢\x1b[2;1H\x1b[?69h漢");
}

#[test]
fn a_cursor_at_a_removed_margin_stays_in_its_place() {
    check_after("\x1b[?69h\x1b[2;5sabcde\x1b[?69h");
    check_after("\x1b[?69h\x1b[2;5sabcde\x1b[?69l");
    check_after("\x1b[?69h\x1b[2;5sabcde\x1b[?47h");
    check_after("\x1b[?69h\x1b[2;5sabcde\x1b7\x1b[2;9s\x1b8");
    check_after("\x1b[2;5H漢\x1b[?69h\x1b[2;5s\x1b[1;2Habcd\n");
}

#[test]
fn a_cursor_in_origin_mode_is_between_the_margins() {
    check_after("\x1b[?6h\x1b[5d\x1b7\x1b[1;3r\x1b8");
    check_after("\x1b[?6h\x1b7\x1b[2;4r\x1b[u");
    check_after("\x1b[?6h\x1b[?1049h\x1b[2;4r\x1b[?1049l");
    check_after("\x1b[?69h\x1b[3;7s\x1b[?6h\x1b[Z");
}

#[test]
fn moved_halves_of_wide_characters_look_the_same() {
    let mut screen = drawn(Size::cells(3, 3), "漢字\x1b[1m\x1b[?69h\x1b[2;3s\r\n\x1b[3b".as_bytes());
    check(&mut screen);
    let mut screen = drawn(Size::cells(8, 2), b"\x1b[4hlqqk~~~~~~~~~~~~~~~~~~~~~~~~~~~~\x1b[@");
    screen.feed("한글\x1b[A\x08\n한글\ré한글".as_bytes());
    check(&mut screen);
}

#[test]
fn a_full_primary_screen_does_not_affect_the_alternate_one() {
    let mut screen = drawn(Size::cells(12, 5), b"\x1b[5;1H0123456789abcdef\x1b[?1047h");
    screen.resize(Size::cells(2, 5));
    screen.feed(b"\x1b[5;1H~~\x1b7");
    check(&mut screen);
}

#[test]
fn modes_margins_tabs_and_pen_are_restored() {
    check_after("\x1b[?1h\x1b=\x1b[?2004h\x1b[?1002h\x1b[?1006h\x1b[?1004h\x1b[?25l\x1b[5 q\x1b[?1007l");
    check_after("\x1b[2;4r\x1b[?6h\x1b[2;2H\x1b[1;4:3;38;2;1;2;3;48;5;9;58:5:7m");
    check_after("\x1b[3g\x1b[1;5H\x1bH\x1b[1;9H\x1bH\x1b[4h\x1b[20h\x1b[?7l\x1b[?2027l");
    check_after("\x1b(0\x1b)A\x0elqk\x1b[>1u\x1b[>5u\x1b[=3u\x1b[>4;2m");
    check_after("\x1b[>3u\x1b[?1049h\x1b[>5u\x1b[>7u");
    check_after("\x1b]2;a title\x1b\\\x1b]4;3;#123456\x07\x1b]11;#fff\x07");
    check_after(
        "\x1b]8;id=a;https://example.org\x1b\\link\x1b]8;;\x1b\\ \x1b]8;;https://example.org/2\x1b\\open",
    );
}

#[test]
fn colours_reach_to_the_edge() {
    check_after("\x1b[44m\x1b[2J\x1b[H text \x1b[K\x1b[0m\r\nplain\r\n\x1b[41m\x1b[K\x1b[0m");
    check_after("\x1b[48;5;200m\x1b[K\r\n\x1b[48;2;1;2;3mrgb\x1b[K");
    check_after("\x1b[4;31m\x1b[6;1Hunderlined text that wraps at the end of the screen");
}

#[test]
fn a_redraw_is_one_frame() {
    let bytes = drawn(Size::cells(20, 6), b"hello").redraw(false);
    assert!(bytes.starts_with(b"\x1b[?2026h") && bytes.ends_with(b"\x1b[?2026l"));
}

/// Whether characters combine with their neighbours; they would combine again when drawn in another order.
fn joins(act: &Act) -> bool {
    let Act::Write(bytes) = act else { return false };
    let text = String::from_utf8_lossy(bytes);
    text.contains("2027") || text.chars().any(|c| matches!(c, '\u{200d}' | '\u{fe0e}' | '\u{fe0f}' | '\u{900}'..='\u{97f}' | '\u{1f1e6}'..='\u{1f1ff}' | '각'))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_redraw_shows_what_any_soup_showed(soup in soup()) {
        let mut screen = start();
        soup.iter().filter(|act| !joins(act)).for_each(|act| play(&mut screen, act));
        check(&mut screen);
    }
}

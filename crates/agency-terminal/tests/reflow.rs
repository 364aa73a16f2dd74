//! Text reflows to any width and back: nothing is lost or duplicated, and the cursor stays at its character.

mod common;

use agency_terminal::{CellSnapshot, RowSnapshot, Screen, Size, Snapshot};
use common::soup::{bytewise, play, soup, start};
use common::{Dice, assert_same, reborn};
use proptest::prelude::*;

/// More rows than any of these texts needs, at any width.
const ENOUGH: usize = 100_000;

fn word() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "a",
        "word",
        "0123456789abcdefghijklmnopqrstuvwxyz",
        "漢字",
        "漢字かな交じり文の長い長い言葉",
        "é",
        "e\u{301}",
        "👩‍👩‍👧‍👦",
        "🇩🇪",
        "한글",
        "-",
        "  ",
    ]);
    let pens = prop::sample::select(vec![
        "",
        "\x1b[0m",
        "\x1b[1;31m",
        "\x1b[4m",
        "\x1b[38;2;1;2;3m",
        "\x1b]8;;https://example.org\x07",
        "\x1b]8;;\x07",
    ]);
    (pens, words).prop_map(|(pen, word)| format!("{pen}{word}"))
}

/// Lines without sequences that move the cursor; the last one is not ended, and starts with a word.
fn text() -> impl Strategy<Value = String> {
    let line = prop::collection::vec(word(), 0..12).prop_map(|words| words.join(" "));
    (prop::collection::vec(line, 0..30), word()).prop_map(|(lines, last)| {
        lines.iter().map(|line| format!("{line}\r\n")).collect::<String>() + "#" + &last
    })
}

fn size() -> impl Strategy<Value = Size> {
    (2..60u16, 1..12u16).prop_map(|(cols, rows)| Size::cells(cols, rows))
}

fn drawn(size: Size, text: &str) -> Screen {
    let mut screen = Screen::new(size, ENOUGH);
    screen.feed(text.as_bytes());
    screen
}

/// The cells of each line, independent of the width, without blank cells and blank lines at the end.
fn lines(snapshot: &Snapshot) -> Vec<Vec<CellSnapshot>> {
    let mut lines = vec![Vec::new()];
    for row in snapshot.scrollback.iter().chain(&snapshot.primary.rows) {
        let line = lines.last_mut().expect("there is always one");
        line.extend(row.cells.iter().filter(|cell| cell.width > 0).cloned());
        if !row.wrapped {
            let used = line.iter().rposition(|cell| !cell.text.is_empty()).map_or(0, |last| last + 1);
            line.truncate(used);
            lines.push(Vec::new());
        }
    }
    let used = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    lines.truncate(used);
    lines
}

fn rows(snapshot: &Snapshot) -> Vec<RowSnapshot> {
    let mut rows: Vec<_> = snapshot.scrollback.iter().chain(&snapshot.primary.rows).cloned().collect();
    while rows.last().is_some_and(|row| row.cells.is_empty()) {
        rows.pop();
    }
    // A placeholder for a wide character that does not fit has no link.
    for row in &mut rows {
        if let Some(last) = row.cells.last_mut().filter(|cell| cell.text.is_empty() && row.wrapped) {
            last.pen.link = None;
        }
    }
    rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_resize_loses_or_duplicates_a_character(text in text(), from in size(), sizes in prop::collection::vec(size(), 1..8)) {
        let mut screen = drawn(from, &text);
        let (said, meant) = (screen.text(), lines(&screen.snapshot()));
        for size in sizes {
            screen.resize(size);
            prop_assert_eq!(screen.text(), &said[..], "at {:?}", size);
            prop_assert_eq!(lines(&screen.snapshot()), &meant[..], "at {:?}", size);
        }
    }

    #[test]
    fn the_cursor_stays_after_its_character(text in text(), from in size(), sizes in prop::collection::vec(size(), 1..8)) {
        let mut screen = drawn(from, &text);
        sizes.into_iter().for_each(|size| screen.resize(size));
        let mut meant = drawn(from, &format!("{text}|"));
        screen.feed(b"|");
        prop_assert_eq!(screen.text(), meant.text());
    }

    #[test]
    fn the_original_width_restores_the_original_rows(text in text(), from in size(), widths in prop::collection::vec(2..60u16, 1..5)) {
        let mut screen = drawn(from, &text);
        let before = screen.snapshot();
        for cols in widths {
            screen.resize(Size { cols, ..from });
        }
        screen.resize(from);
        prop_assert_eq!(rows(&screen.snapshot()), rows(&before));
    }

    #[test]
    fn a_dump_between_resizes_changes_nothing(text in text(), sizes in prop::collection::vec(size(), 1..8), history in 0..40usize) {
        let mut whole = Screen::new(Size::cells(20, 5), history);
        let mut running = Screen::new(Size::cells(20, 5), history);
        for size in sizes {
            whole.feed(text.as_bytes());
            running.feed(text.as_bytes());
            running = reborn(&mut running);
            prop_assert_eq!(running.snapshot(), whole.snapshot());
            whole.resize(size);
            running.resize(size);
            prop_assert_eq!(running.snapshot(), whole.snapshot(), "at {:?}", size);
            prop_assert!(running.dump() == whole.dump(), "at {:?}", size);
        }
    }

    #[test]
    fn the_cuts_of_any_soup_make_no_difference(soup in soup(), seed in any::<u64>()) {
        let mut whole = start();
        soup.iter().for_each(|act| play(&mut whole, act));
        let mut cut = start();
        bytewise(&soup).iter().for_each(|act| play(&mut cut, act));
        assert_same(&cut.snapshot(), &whole.snapshot(), "byte by byte");
        let bytes: Vec<u8> = bytewise(&soup).iter().filter_map(common::soup::written).flatten().copied().collect();
        let mut at_once = start();
        at_once.feed(&bytes);
        let mut cut = start();
        let (mut rest, mut dice) = (&bytes[..], Dice(seed));
        while !rest.is_empty() {
            let (now, later) = rest.split_at(1 + dice.roll(rest.len()));
            cut.feed(now);
            rest = later;
        }
        assert_same(&cut.snapshot(), &at_once.snapshot(), "cut anywhere");
        prop_assert!(cut.dump() == at_once.dump());
    }
}

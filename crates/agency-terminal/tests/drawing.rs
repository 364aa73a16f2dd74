//! Drawings of programs, compared as lines of text.

mod common;

use agency_terminal::{Mouse, Progress, Prompt, Screen, ScreenEvent, Size};
use common::drawn;

/// The rows of the screen that is shown, without trailing blanks.
fn rows(screen: &mut Screen) -> Vec<String> {
    let snapshot = screen.snapshot();
    let shown = snapshot.alternate.unwrap_or(snapshot.primary);
    let row = |row: agency_terminal::RowSnapshot| -> String {
        let cells = row.cells.into_iter().filter(|cell| cell.width > 0);
        cells.map(|cell| if cell.text.is_empty() { " ".to_owned() } else { cell.text }).collect()
    };
    let mut rows: Vec<String> =
        shown.rows.into_iter().map(|cells| row(cells).trim_end().to_owned()).collect();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

#[track_caller]
fn check(bytes: &str, expected: &[&str]) {
    assert_eq!(rows(&mut drawn(Size::cells(10, 5), bytes.as_bytes())), expected, "{bytes:?}");
}

#[track_caller]
fn check_text(bytes: &str, expected: &str) {
    assert_eq!(drawn(Size::cells(10, 3), bytes.as_bytes()).text(), expected, "{bytes:?}");
}

#[test]
fn text_wraps_and_scrolls() {
    check("hello\r\nworld", &["hello", "world"]);
    check("0123456789abc", &["0123456789", "abc"]);
    check("1\r\n2\r\n3\r\n4\r\n5\r\n6", &["2", "3", "4", "5", "6"]);
    check("0123456789\r\nx", &["0123456789", "x"]);
    check("\x1b[?7l0123456789abc", &["012345678c"]);
    check("123456789漢", &["123456789", "漢"]);
}

#[test]
fn the_cursor_goes_where_it_is_sent() {
    check("\x1b[3;4Hx\x1b[Ay\x1b[2Bz\x1b[10Dw", &["", "    y", "   x", "w    z"]);
    check("a\tb\x1b[3gc\td", &["a       bc", "d"]);
    check("\x1b[20hone\ntwo", &["one", "two"]);
    check("abc\x1b[1G\x1b[@x\x1b[3G\x1b[P", &["xac"]);
    check("x\x1b[4b", &["xxxxx"]);
}

#[test]
fn erasing_and_margins() {
    check("one\r\ntwo\r\nthree\x1b[2;2H\x1b[1J", &["", "  o", "three"]);
    check("one\r\ntwo\r\nthree\x1b[2;2H\x1b[J", &["one", "t"]);
    check("1\r\n2\r\n3\r\n4\r\n5\x1b[2;4r\x1b[4;1H\nx", &["1", "3", "4", "x", "5"]);
    check("1\r\n2\r\n3\r\n4\r\n5\x1b[2;4r\x1b[2;1H\x1bMx", &["1", "x", "2", "3", "5"]);
    check("1\r\n2\r\n3\x1b[2H\x1b[L", &["1", "", "2", "3"]);
    check("1\r\n2\r\n3\x1b[1H\x1b[M", &["2", "3"]);
    check("0123456789\x1b[1;8H\x1b[99P", &["0123456"]);
}

#[test]
fn lines_deleted_at_the_top_are_not_history() {
    let mut screen = drawn(Size::cells(10, 3), b"1\r\n2\r\n3\x1b[H\x1b[2M");
    assert_eq!(screen.snapshot().scrollback, []);
    assert_eq!(screen.text(), "3\n");
}

#[test]
fn character_sets_and_shifts() {
    check("\x1b(0lqk\x1b(Bx", &["┌─┐x"]);
    check("\x1b)0a\x0ea\x0fa", &["a▒a"]);
    check("\x1b*0\x1bNqq", &["─q"]);
}

#[test]
fn the_alternate_screen_comes_and_goes() {
    check("primary\x1b[?1049halt", &["       alt"]);
    check("primary\x1b[?1049halt\x1b[?1049l!", &["primary!"]);
    check("\x1b[31mred\x1b7\x1b[0m\x1b[?1049h\x1b[5;5Hx\x1b[?1049l\x1b8ok", &["redok"]);
}

#[test]
fn cleared_text_is_kept_as_history() {
    check_text("one\r\ntwo\x1b[2J\x1b[Hthree", "one\ntwo\nthree\n");
    check_text("one\x1b[2J\x1b[3J\x1b[Htwo", "two\n");
    check_text("\x1b[2J\x1b[2J", "");
    check_text("one\x1bctwo", "one\ntwo\n");
}

#[test]
fn text_joins_what_was_wrapped() {
    check_text("a line that is longer than ten\r\nnext   \r\n\r\n", "a line that is longer than ten\nnext\n");
    check_text("123456789漢字 e\u{301}", "123456789漢字 e\u{301}\n");
    check_text("primary\r\n\x1b[?1049h\x1b[Halternate", "primary\nalternate\n");
}

#[test]
fn a_resize_reflows_lines_and_back() {
    let mut screen = drawn(Size::cells(10, 5), b"a line that is longer than ten\r\nnext");
    for (cols, rows) in [(30, 5), (4, 2), (7, 9), (10, 5)] {
        screen.resize(Size::cells(cols, rows));
        assert_eq!(screen.text(), "a line that is longer than ten\nnext\n", "{cols}x{rows}");
    }
    screen.resize(Size::cells(0, 0));
    screen.resize(Size::cells(u16::MAX, u16::MAX));
    assert_eq!(screen.size(), Size::cells(2000, 1000));
}

#[test]
fn drained_history_passes_through_as_whole_lines() {
    let mut screen = Screen::new(Size::cells(10, 3), 50);
    let mut lines = Vec::new();
    for line in 0..200 {
        screen.feed(format!("line {line} is longer than ten\r\n").as_bytes());
        lines.extend(screen.drain_history());
    }
    let expected: Vec<String> =
        (0..lines.len()).map(|line| format!("line {line} is longer than ten")).collect();
    assert_eq!(lines, expected);
    assert!(lines.len() >= 198);
    assert_eq!(screen.drain_history(), Vec::<String>::new());
    // An endless line is split before its beginning is lost.
    let endless: String = (0..100)
        .map(|_| {
            screen.feed(b"0123456789");
            screen.drain_history().concat()
        })
        .collect();
    assert!(endless.matches("0123456789").count() > 60);
}

#[test]
fn a_new_run_begins_on_a_blank_screen_below_the_old_ones_history() {
    let mut screen = drawn(
        Size::cells(30, 5),
        b"old\x1b[?1049h\x1b[31;4m\x1b[2;3ralt\x1b[?1003h\x1b[>1u\x1b]2;t\x07\x1b[",
    );
    screen.session_separator("─── Session restarted ───");
    screen.feed(b"new");
    assert_eq!(rows(&mut screen), ["─── Session restarted ───", "new"]);
    assert_eq!(screen.text(), "old\n─── Session restarted ───\nnew\n");
    let snapshot = screen.snapshot();
    let mut fresh = drawn(Size::cells(30, 5), "─── Session restarted ───\r\nnew".as_bytes());
    let fresh = agency_terminal::Snapshot { scrollback: snapshot.scrollback.clone(), ..fresh.snapshot() };
    common::assert_same(&snapshot, &fresh, "everything is reset");
}

#[test]
fn only_a_visible_difference_is_a_change() {
    let mut screen = Screen::new(Size::cells(20, 5), 10);
    assert!(!screen.take_visible_change());
    let steps: [(&str, bool); 18] = [
        ("hello", true),
        ("", false),
        ("\x1b[H", false),
        ("hello", false),
        ("\x1b[Hhelp!", true),
        ("\x1b[H\x1b[31mhelp!\x1b[0m", true),
        ("\x1b[?25l\x1b[?2004h\x1b]2;title\x07\x07", false),
        ("\x1b[5;1H\r\n", true),
        ("\x1b[4;1H", false),
        ("\x1b]11;#123456\x07", true),
        ("\x1b[?1049h", true),
        ("\x1b[?2026hx\x1b[?2026l", true),
        ("\x1b[1;1H", false),
        ("\x1b[?2026h\x1b[2J", false),
        ("      x\x1b[?2026l", true),
        ("\x1b[?2026h\x1b[2J", false),
        ("\x1b[1;7Hx\x1b[?2026l", false),
        ("\x1b[?1049l", true),
    ];
    for (bytes, changed) in steps {
        screen.feed(bytes.as_bytes());
        assert_eq!(screen.take_visible_change(), changed, "{bytes:?}");
    }
    assert!(!common::reborn(&mut screen).take_visible_change());
}

#[test]
fn events_report_what_a_program_does_not_draw() {
    let said = "\x1b]0;a\x07\x1b]2;b;c\x1b\\\x07\x07\x1b]9;done\x07\x1b]777;notify;t;b\x07\x1b]99;i=1;hey\x1b\\\x1b]9;4;1;42\x07\
                \x1b]9;4;3\x07\x1b]133;A\x07\x1b]133;D;7\x07\x1b]7501;blocked:kind=permission\x1b\\\x1b]7;file://h/tmp\x07\
                \x1b]52;c;aGk=\x07";
    let notification =
        |title: &str, body: &str| ScreenEvent::Notification { title: title.into(), body: body.into() };
    let expected = [
        ScreenEvent::Title("a".into()),
        ScreenEvent::Title("b;c".into()),
        ScreenEvent::Bell,
        notification("", "done"),
        notification("t", "b"),
        notification("hey", ""),
        ScreenEvent::Progress(Progress::Running { percent: Some(42) }),
        ScreenEvent::Progress(Progress::Indeterminate),
        ScreenEvent::Prompt(Prompt::Started),
        ScreenEvent::Prompt(Prompt::Ended { exit: Some(7) }),
        ScreenEvent::Status("blocked:kind=permission".into()),
        ScreenEvent::Directory("file://h/tmp".into()),
        ScreenEvent::Clipboard { selection: "c".into(), data: "aGk=".into() },
    ];
    assert_eq!(Screen::new(Size::cells(9, 9), 0).feed(said.as_bytes()).events, expected);
}

#[test]
fn modes_can_be_read() {
    let mut screen =
        drawn(Size::cells(9, 9), b"\x1b[?2004h\x1b[?1003h\x1b[?1049h\x1b[>5u\x1b]2;t\x07\x1b[3;4H");
    assert!(screen.modes().bracketed_paste && screen.is_alternate());
    assert_eq!((screen.modes().mouse, screen.keyboard_flags()), (Mouse::Motion, 5));
    assert_eq!((screen.title(), screen.cursor()), ("t", (2, 3)));
    screen.feed(b"\x1b[!p");
    assert!(screen.modes().bracketed_paste);
}

#[test]
fn clusters_take_one_place_and_marks_are_limited() {
    check("👩‍👩‍👧‍👦x", &["👩‍👩‍👧‍👦x"]);
    check("🇩🇪🇫🇷x", &["🇩🇪🇫🇷x"]);
    let mut screen = Screen::new(Size::cells(10, 5), 0);
    let flood = format!("e{}", "\u{301}".repeat(200_000));
    assert_eq!(screen.feed(flood.as_bytes()).events, []);
    assert_eq!(rows(&mut screen)[0].chars().count(), 31);
    // Hangul joins without marks; it must be limited too.
    assert_eq!(screen.feed("ᄀ".repeat(100_000).as_bytes()).events, []);
}

#[test]
fn screens_may_move_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    is_send(&Screen::new(Size::cells(9, 9), 0));
    is_send(&agency_terminal::ViewerFilter::new());
}

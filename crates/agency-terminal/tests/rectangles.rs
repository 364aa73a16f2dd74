//! Side margins, protected cells, rectangles and resets: used by few programs.

mod common;

use agency_terminal::{Screen, Size};
use common::reborn;

/// Draws on a small screen, with a dump and restore after every byte, and compares the text.
#[track_caller]
fn check(written: &str, text: &str) {
    let mut screen = Screen::new(Size::cells(8, 4), 0);
    for byte in written.bytes() {
        screen.feed(&[byte]);
        screen = reborn(&mut screen);
    }
    assert_eq!(screen.text(), text, "{written:?}");
}

#[track_caller]
fn check_answer(written: &str, answer: &str) {
    let mut screen = Screen::new(Size::cells(8, 4), 0);
    let answered = screen.feed(written.as_bytes()).replies.escape_ascii().to_string();
    assert_eq!(answered.replace("\\\"", "\""), answer, "{written:?}");
}

const FILLED: &str = "abcdefgh\r\nijklmnop\r\nqrstuvwx";

#[test]
fn text_wraps_and_scrolls_between_side_margins() {
    check("\x1b[?69h\x1b[3;5s\x1b[1;3HABCDEFG", "  ABC\n  DEF\n  G\n");
    check("\x1b[?69h\x1b[3;5s\x1b[1;3H漢字", "  漢\n  字\n");
    check(&format!("{FILLED}\x1b[?69h\x1b[3;5s\x1b[4;3H\n"), "abklmfgh\nijstunop\nqr   vwx\n");
    check(&format!("{FILLED}\x1b[?69h\x1b[3;5s\x1b[1;3H\x1bM"), "ab   fgh\nijcdenop\nqrklmvwx\n  stu\n");
    check(&format!("{FILLED}\x1b[?69h\x1b[3;5s\x1b[2;3H\x1b[M"), "abcdefgh\nijstunop\nqr   vwx\n");
    check(&format!("{FILLED}\x1b[?69h\x1b[3;5s\x1b[2;4H\x1b[@"), "abcdefgh\nijk lnop\nqrstuvwx\n");
    check(&format!("{FILLED}\x1b[?69h\x1b[3;5s\x1b[2;4H\x1b[P"), "abcdefgh\nijkm nop\nqrstuvwx\n");
    // Nothing moves outside the margins.
    check(&format!("{FILLED}\x1b[?69h\x1b[3;5s\x1b[2;7H\x1b[P\x1b[L"), "abcdefgh\nijklmnop\nqrstuvwx\n");
}

#[test]
fn the_cursor_stays_between_side_margins() {
    check_answer(
        "\x1b[?69h\x1b[3;5s\x1b[1;4H\x1b[9C\x1b[6n\x1b[9D\x1b[6n\r\x1b[6n",
        "\\x1b[1;5R\\x1b[1;3R\\x1b[1;3R",
    );
    check_answer("\x1b[?69h\x1b[3;5s\x1b[?6h\x1b[2;9H\x1b[6n\x1b[?6l\x1b[6n", "\\x1b[2;3R\\x1b[1;1R");
    // Without the mode, this is the old sequence that saves the cursor.
    check_answer("\x1b[2;3H\x1b[s\x1b[H\x1b[u\x1b[6n", "\\x1b[2;3R");
}

#[test]
fn columns_are_inserted_deleted_and_shifted() {
    check(&format!("{FILLED}\x1b[2;3H\x1b['}}"), "ab cdefg\nij klmno\nqr stuvw\n");
    check(&format!("{FILLED}\x1b[2;3H\x1b[2'~"), "abefgh\nijmnop\nqruvwx\n");
    check(&format!("{FILLED}\x1b[1;1H\x1b6"), " abcdefg\n ijklmno\n qrstuvw\n");
    check(&format!("{FILLED}\x1b[1;8H\x1b9"), "bcdefgh\njklmnop\nrstuvwx\n");
}

#[test]
fn rectangles_are_filled_erased_and_copied() {
    check(&format!("{FILLED}\x1b[42;2;2;3;4$x"), "abcdefgh\ni***mnop\nq***uvwx\n");
    check(&format!("{FILLED}\x1b[2;2;3;4$z"), "abcdefgh\ni   mnop\nq   uvwx\n");
    check(&format!("{FILLED}\x1b[1;1;2;2;1;2;5;1$v"), "abcdefgh\nijklabop\nqrstijwx\n");
    // Half a wide character is erased.
    check("漢字漢字\x1b[1;2;1;2$z", "  字漢字\n");
    // Corners in the wrong order are ignored.
    check(&format!("{FILLED}\x1b[3;3;2;2$z"), "abcdefgh\nijklmnop\nqrstuvwx\n");
}

#[test]
fn protected_cells_survive_only_selective_erasing() {
    check("a\x1b[1\"qb\x1b[0\"qc\x1b[?2J", " b\n");
    check("a\x1b[1\"qb\x1b[0\"qc\x1b[?1K", " b\n");
    check("a\x1b[1\"qb\x1b[0\"qc\x1b[1;1;1;8${", " b\n");
    check("a\x1b[1\"qb\x1b[0\"qc\x1b[2J", "");
    check("a\x1bVb\x1bWc\x1b[2J", " b\n");
    check("a\x1bVb\x1bWc\x1b[?2J", "");
}

#[test]
fn attributes_change_in_rectangles() {
    let bold = |written: &str| {
        let mut screen = Screen::new(Size::cells(8, 4), 0);
        screen.feed(format!("{FILLED}{written}").as_bytes());
        let rows = screen.snapshot().primary.rows;
        let cells = rows.iter().flat_map(|row| &row.cells).filter(|cell| cell.pen.bold);
        cells.map(|cell| cell.text.clone()).collect::<String>()
    };
    assert_eq!(bold("\x1b[2*x\x1b[1;7;2;8;1$r"), "ghop");
    assert_eq!(bold("\x1b[1;7;2;2;1$r"), "ghij");
    assert_eq!(bold("\x1b[2*x\x1b[1;7;2;8;1$t\x1b[1;7;1;8;1$t"), "op");
}

#[test]
fn checksums_and_stops_are_reported() {
    check_answer("\x1b[1mA\x1b[7;1;1;1;1;1*y", "\\x1bP7!~FF3F\\x1b\\\\");
    check_answer("\x1b[8;1;1;1;2;2*y", "\\x1bP8!~FF80\\x1b\\\\");
    check_answer("\x1b[3g\x1b[4G\x1bH\x1b[2$w", "\\x1bP2$u4\\x1b\\\\");
    check_answer("\x1b[3g\x1bP2$t2/5\x1b\\\x1b[2$w", "\\x1bP2$u2/5\\x1b\\\\");
    check_answer("\x1b[2;3H\x1b[1$w", "\\x1bP1$u2;3;1;@;@;@;0;2;@;BBBB\\x1b\\\\");
}

#[test]
fn settings_are_reported_and_a_soft_reset_resets_them() {
    check_answer("\x1b[?69h\x1b[3;5s\x1bP$qs\x1b\\", "\\x1bP1$r3;5s\\x1b\\\\");
    check_answer("\x1b[?69h\x1b[3;5s\x1b[!p\x1bP$qs\x1b\\", "\\x1bP1$r1;8s\\x1b\\\\");
    check_answer(
        "\x1b[1\"q\x1bP$q\"q\x1b\\\x1b[!p\x1bP$q\"q\x1b\\",
        "\\x1bP1$r1\"q\\x1b\\\\\\x1bP1$r0\"q\\x1b\\\\",
    );
    check_answer("\x1b[2*x\x1bP$q*x\x1b\\", "\\x1bP1$r2*x\\x1b\\\\");
    check_answer("\x1b[64;1\"p\x1bP$q\"p\x1b\\", "\\x1bP1$r64;1\"p\\x1b\\\\");
}

#[test]
fn answers_have_eight_bits_if_requested() {
    check_answer("\x1b G\x1b[5n\x1bP$qr\x1b\\\x1b F\x1b[5n", "\\x9b0n\\x901$r1;4r\\x9c\\x1b[0n");
}

#[test]
fn modes_are_reported_saved_and_restored() {
    check_answer(
        "\x1b[?5h\x1b[?5$p\x1b[?8$p\x1b[?4$p\x1b[12$p",
        "\\x1b[?5;1$y\\x1b[?8;3$y\\x1b[?4;4$y\\x1b[12;3$y",
    );
    // A viewer's terminal may not support it, so it is reported as unknown.
    check_answer("\x1b[?69$p\x1b[?2031$p\x1b[?2048$p", "\\x1b[?69;0$y\\x1b[?2031;0$y\\x1b[?2048;0$y");
    check_answer("\x1b[?7;25s\x1b[?7;25l\x1b[?25r\x1b[?7$p\x1b[?25$p", "\\x1b[?7;2$y\\x1b[?25;1$y");
}

#[test]
fn backspace_wraps_back_if_the_program_wants_it() {
    check_answer("12345678ab\x1b[?45h\x08\x08\x08\x1b[6n", "\\x1b[1;8R");
    check_answer("a\r\nb\x1b[?45h\x08\x08\x08\x1b[6n", "\\x1b[2;1R");
    check_answer("a\r\nb\x1b[?1045h\x08\x08\x08\x1b[6n", "\\x1b[1;7R");
    check_answer("\x1b[?1045h\x08\x1b[6n", "\\x1b[4;8R");
}

#[test]
fn repeating_repeats_the_character_without_its_marks() {
    check("e\u{301}\x1b[2b", "e\u{301}ee\n");
}

#[test]
fn cursor_back_mirrors_cursor_forward() {
    check_answer("\x1b[3;5H\x1b[2j\x1b[1k\x1b[6n\x1b[1a\x1b[1e\x1b[6n", "\\x1b[2;3R\\x1b[3;4R");
}

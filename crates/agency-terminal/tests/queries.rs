//! Every query gets one answer, in order, wherever the stream is cut, also if the screen is restored meanwhile.

mod common;

use agency_terminal::{Colours, Fed, Rgb, Screen, Size};
use common::reborn;

fn screen() -> Screen {
    Screen::new(Size { cols: 80, rows: 24, x_pixels: 800, y_pixels: 480 }, 100)
}

#[track_caller]
fn check(asked: &str, answer: &str) {
    let replies = screen().feed(asked.as_bytes()).replies;
    assert_eq!(String::from_utf8(replies).expect("replies are text"), answer, "{asked:?}");
}

#[test]
fn a_terminal_reports_its_type() {
    check("\x1b[c", "\x1b[?62;22c");
    check("\x1bZ", "\x1b[?62;22c");
    check("\x1b[>c", "\x1b[>1;4000;0c");
    check("\x1b[=c", "\x1bP!|41474359\x1b\\");
    check("\x1b[>q", concat!("\x1bP>|agency ", env!("CARGO_PKG_VERSION"), "\x1b\\"));
}

#[test]
fn the_cursor_is_where_the_program_counts_it() {
    check("\x1b[5n", "\x1b[0n");
    check("\x1b[6n", "\x1b[1;1R");
    check("\x1b[5;7H\x1b[6n", "\x1b[5;7R");
    check("\x1b[3;10r\x1b[?6h\x1b[2;4H\x1b[6n", "\x1b[2;4R");
    check("\x1b[5;7H\x1b[?6n", "\x1b[?5;7R");
}

#[test]
fn modes_are_set_reset_or_unknown() {
    check("\x1b[?25$p\x1b[?25l\x1b[?25$p", "\x1b[?25;1$y\x1b[?25;2$y");
    check("\x1b[4$p\x1b[4h\x1b[4$p", "\x1b[4;2$y\x1b[4;1$y");
    check("\x1b[?2026$p\x1b[?2004$p\x1b[?1049h\x1b[?1049$p", "\x1b[?2026;2$y\x1b[?2004;2$y\x1b[?1049;1$y");
    check("\x1b[?1002h\x1b[?1000$p\x1b[?1002$p", "\x1b[?1000;2$y\x1b[?1002;1$y");
    check("\x1b[?31337$p\x1b[77$p", "\x1b[?31337;0$y\x1b[77;0$y");
}

#[test]
fn settings_are_reported() {
    check("\x1bP$qm\x1b\\", "\x1bP1$r0m\x1b\\");
    check("\x1b[1;4:3;31;48;5;7m\x1bP$qm\x1b\\", "\x1bP1$r0;1;4:3;31;48;5;7m\x1b\\");
    check("\x1b[3;10r\x1bP$qr\x1b\\", "\x1bP1$r3;10r\x1b\\");
    check("\x1b[5 q\x1bP$q q\x1b\\", "\x1bP1$r5 q\x1b\\");
    check("\x1bP$qz\x1b\\", "\x1bP0$r\x1b\\");
    check("\x1bP+q544e;5858\x1b\\", "\x1bP1+r544e=787465726D2D323536636F6C6F72\x1b\\\x1bP0+r5858\x1b\\");
}

#[test]
fn current_colours_are_reported() {
    check("\x1b]11;?\x1b\\", "\x1b]11;rgb:0000/0000/0000\x1b\\");
    check("\x1b]10;?;?\x07", "\x1b]10;rgb:e5e5/e5e5/e5e5\x07\x1b]11;rgb:0000/0000/0000\x07");
    check("\x1b]12;#ff8000\x07\x1b]12;?\x07", "\x1b]12;rgb:ffff/8080/0000\x07");
    check("\x1b]4;1;?;200;?\x1b\\", "\x1b]4;1;rgb:cdcd/0000/0000\x1b\\\x1b]4;200;rgb:ffff/0000/d7d7\x1b\\");
    check("\x1b]4;1;#010203\x07\x1b]104;1\x07\x1b]4;1;?\x07", "\x1b]4;1;rgb:cdcd/0000/0000\x07");
    check("\x1b]4;300;?\x07", "");
}

#[test]
fn colours_that_a_program_did_not_change_are_the_viewers() {
    let mut screen = screen();
    screen.set_viewer_colours(Colours {
        foreground: Rgb::parse(b"rgb:3030/3030/3030"),
        background: Some(Rgb(0xfd, 0xf6, 0xe3)),
        cursor: None,
        palette: [(1, Rgb(0xdc, 0x32, 0x2f))].into(),
    });
    let mut check = |asked: &str, answer: &str| {
        assert_eq!(String::from_utf8(screen.feed(asked.as_bytes()).replies).unwrap(), answer, "{asked:?}");
    };
    check("\x1b]10;?;?\x07", "\x1b]10;rgb:3030/3030/3030\x07\x1b]11;rgb:fdfd/f6f6/e3e3\x07");
    check(
        "\x1b]12;?\x07\x1b]4;1;?;2;?\x07",
        "\x1b]12;rgb:3030/3030/3030\x07\x1b]4;1;rgb:dcdc/3232/2f2f\x07\x1b]4;2;rgb:0000/cdcd/0000\x07",
    );
    check("\x1b[?996n\x1b]11;#000000\x07\x1b[?996n", "\x1b[?997;2n\x1b[?997;1n");
    check(
        "\x1b]11;?\x07\x1b]111\x07\x1b]11;?\x07",
        "\x1b]11;rgb:0000/0000/0000\x07\x1b]11;rgb:fdfd/f6f6/e3e3\x07",
    );
    check("\x1bc\x1b]11;?\x07", "\x1b]11;rgb:fdfd/f6f6/e3e3\x07");
}

#[test]
fn keyboards_and_windows_are_reported() {
    check("\x1b[?u\x1b[>5u\x1b[?u\x1b[<u\x1b[?u", "\x1b[?0u\x1b[?5u\x1b[?0u");
    check("\x1b[>1u\x1b[?1049h\x1b[?u\x1b[?1049l\x1b[?u", "\x1b[?0u\x1b[?1u");
    check("\x1b[>4;2m\x1b[?4m", "\x1b[>4;2m");
    check("\x1b[14t\x1b[16t\x1b[18t", "\x1b[4;480;800t\x1b[6;20;10t\x1b[8;24;80t");
    check("\x1b]2;rm -rf\x07\x1b[21t", "\x1b]l\x1b\\");
}

#[test]
fn the_status_protocol_is_answered_before_later_queries() {
    check(
        "\x1b]7501;?\x1b\\\x1b[c",
        "\x1b]7501;?:states=idle,working,done,blocked,error:kinds=permission,question,auth\x1b\\\x1b[?62;22c",
    );
}

#[test]
fn a_query_cut_in_two_is_answered_once_even_if_restored_in_between() {
    let asked = b"\x1b[6n\x1b]11;?\x1b\\\x1bP$qm\x1b\\\x1b[c\x1b]7501;?\x1b\\";
    let whole = screen().feed(asked).replies;
    let mut running = screen();
    let mut pieces = Vec::new();
    for byte in asked {
        pieces.extend(running.feed(&[*byte]).replies);
        running = reborn(&mut running);
    }
    assert_eq!(pieces, whole);
    // A dump alone causes no answer.
    assert_eq!(running.feed(b""), Fed::default());
}

#[test]
fn clipboards_are_not_read_without_consent() {
    check("\x1b]52;c;?\x07", "");
}

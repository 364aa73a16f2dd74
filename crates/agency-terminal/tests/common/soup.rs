//! Random sequences that no program would write, with resizes in between.

use agency_terminal::{Screen, ScreenEvent, Size};
use proptest::prelude::*;

/// One step of a test: bytes or a resize.
#[derive(Clone)]
pub(crate) enum Act {
    Write(Vec<u8>),
    Resize(u16, u16),
}

impl std::fmt::Debug for Act {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Act::Write(bytes) => write!(f, "b\"{}\"", bytes.escape_ascii()),
            Act::Resize(cols, rows) => write!(f, "{cols}x{rows}"),
        }
    }
}

fn write(text: impl Into<Vec<u8>>) -> Act {
    Act::Write(text.into())
}

fn text() -> impl Strategy<Value = Act> {
    let words = prop::sample::select(vec![
        "a",
        "hello ",
        "0123456789abcdef",
        "漢字",
        "é",
        "e\u{301}",
        "👩‍👩‍👧‍👦",
        "🇩🇪",
        "❤\u{fe0f}",
        "⌚\u{fe0e}",
        "한글",
        "각",
        "\u{200d}",
        "\u{fe0f}",
        "क्षि",
        "lqqk",
        "\t",
        "\r\n",
        "\n",
        "\r",
        "\u{8}",
        "\u{9b}",
        "~~~~~~~~~~~~~~~~~~~~~~~~~~~~",
    ]);
    let bytes = prop::sample::select(vec![
        &b"\xff"[..],
        b"\xe2\x94",
        b"\xf0\x9f",
        b"\x80",
        b"\x00",
        b"\x7f",
        b"\x05",
    ]);
    prop_oneof![8 => words.prop_map(write), 1 => bytes.prop_map(write)]
}

/// Sequences with one or two numbers.
fn counted() -> impl Strategy<Value = Act> {
    let last = prop::sample::select("@ABCDEFGHIJKLMPSTXZ`abdefgrsu".chars().collect::<Vec<_>>());
    (prop::sample::select(vec!["", "0", "1", "2", "3", "5", "9", "40", "99999"]), 0..9u16, last).prop_map(
        |(first, second, last)| match last {
            'H' | 'f' | 'r' => write(format!("\x1b[{first};{second}{last}")),
            _ => write(format!("\x1b[{first}{last}")),
        },
    )
}

fn pen() -> impl Strategy<Value = Act> {
    let one = prop_oneof![
        prop::sample::select(vec![
            "", "0", "1", "2", "3", "4", "4:3", "5", "7", "8", "9", "21", "22", "24", "27", "58:5:3"
        ])
        .prop_map(str::to_owned),
        (30..50u16).prop_map(|number| number.to_string()),
        (90..108u16).prop_map(|number| number.to_string()),
        any::<u8>().prop_map(|index| format!("38;5;{index}")),
        any::<[u8; 3]>().prop_map(|[r, g, b]| format!("48;2;{r};{g};{b}")),
        any::<[u8; 3]>().prop_map(|[r, g, b]| format!("38:2::{r}:{g}:{b}")),
    ];
    prop::collection::vec(one, 1..4).prop_map(|all| write(format!("\x1b[{}m", all.join(";"))))
}

fn mode() -> impl Strategy<Value = Act> {
    let private = prop::sample::select(vec![
        1, 3, 5, 6, 7, 9, 12, 25, 45, 47, 67, 69, 69, 1045, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015,
        1016, 1047, 1048, 1049, 1049, 2004, 2026, 2027,
    ]);
    let end = prop::sample::select(vec!['h', 'l']);
    prop_oneof![
        6 => (private, end.clone()).prop_map(|(mode, end)| write(format!("\x1b[?{mode}{end}"))),
        1 => (prop::sample::select(vec![4, 20]), end).prop_map(|(mode, end)| write(format!("\x1b[{mode}{end}"))),
    ]
}

fn fixed() -> impl Strategy<Value = Act> {
    prop::sample::select(vec![
        "\x1b7",
        "\x1b8",
        "\x1bD",
        "\x1bE",
        "\x1bH",
        "\x1bM",
        "\x1bN",
        "\x1bO",
        "\x1bn",
        "\x1bo",
        "\x1bc",
        "\x1b#8",
        "\x1b(0",
        "\x1b)0",
        "\x1b*A",
        "\x1b(B",
        "\x1b=",
        "\x1b>",
        "\x0e",
        "\x0f",
        "\x1b[!p",
        "\x1b[?5W",
        "\x1b[3g",
        "\x1b[3J",
        "\x1b[2J",
        "\x1b[6n",
        "\x1b[c",
        "\x1b[3 q",
        "\x1b[>1u",
        "\x1b[>5u",
        "\x1b[<u",
        "\x1b[<9u",
        "\x1b[=3;2u",
        "\x1b[?u",
        "\x1b[>4;2m",
        "\x1b[22t",
        "\x1b[23t",
        "\x1b[2;4r",
        "\x1b[r",
        "\x1b[1\n2C",
        "\x1b[3\x18",
        "\x1b[3\x1b[31m",
        "\x1b[?1;1z",
        "\x1b[3;é",
        "\x1b]0;a title\x07",
        "\x1b]2;另一个\x1b\\",
        "\x1b]2;cut\x1b[1m",
        "\x1b]8;;https://example.org\x1b\\",
        "\x1b]8;id=x;https://example.org/x\x07",
        "\x1b]8;;\x1b\\",
        "\x1b]4;3;rgb:12/34/56\x1b\\",
        "\x1b]4;3;?\x07",
        "\x1b]10;#123456;#abc\x07",
        "\x1b]11;?\x1b\\",
        "\x1b]104\x07",
        "\x1b]104;3\x07",
        "\x1b]110\x07",
        "\x1b]133;A\x07",
        "\x1b]133;P;k=c\x07",
        "\x1b]133;D;0\x07",
        "\x1b]7501;?\x1b\\",
        "\x1b]7501;working\x1b\\",
        "\x1b]9;4;1;50\x07",
        "\x1bP$qm\x1b\\",
        "\x1bPq#0;2;0;0;0\x1b\\",
        "\x1b_Gf=100;AAAA\x1b\\",
        "\x1b^pm\x1b\\",
        "\x1bXsos\x1b\\",
        "\x1b]52;c;aGk=\x07",
        "\x1b[3;7s",
        "\x1b[2;5s",
        "\x1b6",
        "\x1b9",
        "\x1bV",
        "\x1bW",
        "\x1b[1\"q",
        "\x1b[0\"q",
        "\x1b[?J",
        "\x1b[?2J",
        "\x1b[?1K",
        "\x1b[2;2;4;6$z",
        "\x1b[1;2;3;5${",
        "\x1b[42;2;2;3;4$x",
        "\x1b[1;1;3;4;1;2;3$v",
        "\x1b[1;2;3;4;1;7$r",
        "\x1b[1;2;3;4;4$t",
        "\x1b[2*x",
        "\x1b[2'}",
        "\x1b[2'~",
        "\x1b[ @",
        "\x1b[3 A",
        "\x1b G",
        "\x1b F",
        "\x1b[?7;25;69s",
        "\x1b[?7;25;69r",
        "\x1b[65;1\"p",
        "\x1b[1;1;1;1;4;4*y",
        "\x1b[1$w",
        "\x1bP2$t3/7\x1b\\",
    ])
    .prop_map(write)
}

pub(crate) fn soup() -> impl Strategy<Value = Vec<Act>> {
    let resize = (2..24u16, 1..9u16).prop_map(|(cols, rows)| Act::Resize(cols, rows));
    let act = prop_oneof![10 => text(), 6 => counted(), 3 => pen(), 4 => mode(), 6 => fixed(), 1 => resize];
    prop::collection::vec(act, 1..60)
}

pub(crate) fn start() -> Screen {
    // A short history, so that it overflows.
    Screen::new(Size::cells(12, 5), 8)
}

pub(crate) fn play(screen: &mut Screen, act: &Act) {
    match act {
        Act::Write(bytes) => {
            let fed = screen.feed(bytes);
            assert!(!fed.events.contains(&ScreenEvent::Panicked), "{bytes:?}");
        }
        Act::Resize(cols, rows) => screen.resize(Size::cells(*cols, *rows)),
    }
}

/// The soup byte by byte: every place where it can be cut.
pub(crate) fn bytewise(soup: &[Act]) -> Vec<Act> {
    let steps = soup.iter().flat_map(|act| match act {
        Act::Write(bytes) => bytes.iter().map(|byte| Act::Write(vec![*byte])).collect(),
        Act::Resize(..) => vec![act.clone()],
    });
    steps.collect()
}

/// The bytes that a step writes.
pub(crate) fn written(act: &Act) -> Option<&[u8]> {
    match act {
        Act::Write(bytes) => Some(bytes),
        Act::Resize(..) => None,
    }
}

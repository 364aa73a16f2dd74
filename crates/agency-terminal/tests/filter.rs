//! The viewer filter: passes everything except what would make a terminal answer.

mod common;

use agency_terminal::{Screen, Size, ViewerFilter};
use common::{Dice, assert_same, drawn, recordings};

fn passed(chunks: &[&[u8]]) -> Vec<u8> {
    let mut filter = ViewerFilter::new();
    let mut out = Vec::new();
    chunks.iter().for_each(|chunk| filter.pass(chunk, &mut out));
    out
}

const QUERIES: [&[u8]; 55] = [
    b"\x1b[c",
    b"\x1b[0c",
    b"\x1b[>c",
    b"\x1b[=c",
    b"\x1bZ",
    b"\x05",
    b"\x1b[5n",
    b"\x1b[6n",
    b"\x1b[?6n",
    b"\x1b[?996n",
    b"\x1b[4$p",
    b"\x1b[?2026$p",
    b"\x1bP$qm\x1b\\",
    b"\x1bP+q544e\x1b\\",
    b"\x1b[>q",
    b"\x1b[>0q",
    b"\x1b[?u",
    b"\x1b[?4m",
    b"\x1b[14t",
    b"\x1b[16t",
    b"\x1b[18t",
    b"\x1b[21t",
    b"\x1b[x",
    b"\x1b[1;1;1;1;1;1*y",
    b"\x1b[?1;1;0S",
    b"\x1b[1$w",
    b"\x1b[#R",
    b"\x1b[#|",
    b"\x1b['|",
    b"\x1b[&u",
    b"\x1b[\"v",
    b"\x1b]4;1;?\x07",
    b"\x1b]4;1;?;2;?\x1b\\",
    b"\x1b]5;1;?\x07",
    b"\x1b]10;?\x07",
    b"\x1b]11;?\x1b\\",
    b"\x1b]12;?\x07",
    b"\x1b]17;?\x07",
    b"\x1b]52;c;?\x07",
    b"\x1b]52;c;aGk=\x07",
    b"\x1b]5522;type=read\x07",
    b"\x1b]21;foreground=?\x1b\\",
    b"\x1b]22;?__current__\x1b\\",
    b"\x1b]50;?\x07",
    b"\x1b]99;i=1:p=?;\x1b\\",
    b"\x1b]1337;ReportCellSize\x07",
    b"\x1b]1337;ReportVariable=x\x07",
    b"\x1b]7501;?\x1b\\",
    b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\",
    b"\x1b[19t",
    b"\x1b[11t",
    b"\x1b[13t",
    b"\x1b[$u",
    b"\x1b[#S",
    b"\x1b[?25n",
];

const HARMLESS: [&[u8]; 34] = [
    b"plain text",
    "漢字 é 👩‍👩‍👧‍👦".as_bytes(),
    b"\r\n\t\x08\x07",
    b"\x1b[1;31m",
    b"\x1b[2J\x1b[H",
    b"\x1b[?1049h",
    b"\x1b[?2026h",
    b"\x1b7\x1b8\x1bM\x1bc",
    b"\x1b(0lqk\x1b(B",
    b"\x1b[2;5r",
    b"\x1b[>1u",
    b"\x1b[<u",
    b"\x1b[=1;1u",
    b"\x1b[>4;2m",
    b"\x1b[>4n",
    b"\x1b[u",
    b"\x1b[s",
    b"\x1b[22;0t",
    b"\x1b[3 q",
    b"\x1b[!p",
    b"\x1b]0;what?\x07",
    b"\x1b]2;?\x1b\\",
    b"\x1b]9;?\x07",
    b"\x1b]8;;https://example.org/?q\x1b\\",
    b"\x1b]4;1;#fff\x07",
    b"\x1b]104\x07",
    b"\x1b]133;A\x07",
    b"\x1b]7501;working\x1b\\",
    b"\x1b]777;notify;?;?\x07",
    b"\x1bPq#0;2;0;0;0\x1b\\",
    b"\x1b_Gf=100,a=T;AAAA\x1b\\",
    b"\x1b^private\x1b\\",
    b"\x1bXstring\x1b\\",
    b"\x1b[1\n2C",
];

#[test]
fn no_query_passes_and_all_else_does() {
    for query in QUERIES {
        assert_eq!(passed(&[b"a", query, b"b"]), b"ab", "{}", query.escape_ascii());
    }
    for text in HARMLESS {
        assert_eq!(passed(&[b"a", text, b"b"]), [b"a", text, b"b"].concat(), "{}", text.escape_ascii());
    }
}

#[test]
fn our_own_screen_answers_nothing_that_passes() {
    let mut dice = Dice(7);
    for _ in 0..300 {
        let stream = stream(&mut dice);
        let mut screen = Screen::new(Size::cells(40, 10), 100);
        let replies = screen.feed(&passed(&[&stream])).replies;
        assert_eq!(replies, b"", "{}", stream.escape_ascii());
    }
}

#[test]
fn the_cuts_of_a_stream_make_no_difference() {
    let mut dice = Dice(11);
    let streams =
        (0..300).map(|_| stream(&mut dice)).chain(recordings().into_iter().map(|recording| recording.output));
    for stream in streams.collect::<Vec<_>>() {
        let whole = passed(&[&stream]);
        let bytewise: Vec<&[u8]> = stream.chunks(1).collect();
        assert!(passed(&bytewise) == whole, "{}", stream.escape_ascii());
        let mut chunks = Vec::new();
        let mut rest = &stream[..];
        while !rest.is_empty() {
            let (chunk, later) = rest.split_at((1 + dice.roll(9)).min(rest.len()));
            chunks.push(chunk);
            rest = later;
        }
        assert!(passed(&chunks) == whole, "{}", stream.escape_ascii());
    }
}

#[test]
fn recordings_pass_without_their_queries() {
    for recording in recordings() {
        let passed = passed(&[&recording.output]);
        assert!(passed.len() * 100 > recording.output.len() * 97, "{}", recording.name);
        let mut viewer = drawn(recording.size, &passed);
        let mut screen = drawn(recording.size, &recording.output);
        assert_same(&viewer.snapshot(), &screen.snapshot(), &recording.name);
    }
}

#[test]
fn broken_units_are_closed_so_that_no_later_text_joins_them() {
    // If `ESC [` stayed open, it and `5n` would form a query once the query in between is dropped.
    assert_eq!(passed(&[b"\x1b[\x1b[6n5n"]), b"5n");
    assert_eq!(passed(&[b"\xc2\x1b[6n\x9b5n"]), "\u{fffd}\u{fffd}5n".as_bytes());
    assert_eq!(passed(&["\u{9b}5n".as_bytes()]), b"5n");
    assert_eq!(passed(&[b"\x1b]0;open\x1b[6nx"]), b"\x1b]0;open\x1b\\x");
    // Controls inside a dropped query still act.
    assert_eq!(passed(&[b"\x1b[\n6n"]), b"\n");
}

#[test]
fn a_boundary_is_between_two_units() {
    let mut filter = ViewerFilter::new();
    let mut out = Vec::new();
    for (byte, boundary) in
        b"a\x1b[3mb\xe2\x94\x82".iter().zip([true, false, false, false, true, true, false, false, true])
    {
        filter.pass(&[*byte], &mut out);
        assert_eq!(filter.at_boundary(), boundary, "after {byte:#x}");
    }
}

#[test]
fn images_stream_through_and_long_clipboards_do_not() {
    let image = [b"\x1bPq", &vec![b'~'; 3 << 20][..], b"\x1b\\"].concat();
    assert!(passed(&[&image]) == image);
    assert!(passed(&image.chunks(4096).collect::<Vec<_>>()) == image);
    let clipboard = [b"\x1b]52;c;", &vec![b'A'; 3 << 20][..], b"\x07"].concat();
    assert_eq!(passed(&[&clipboard]), b"");
    assert_eq!(passed(&clipboard.chunks(4096).collect::<Vec<_>>()), b"");
    let open = [b"\x1bPq", &vec![b'~'; 3 << 20][..], b"\x1b[6nx"].concat();
    let closed = [&open[..open.len() - 5], b"\x1b\\x"].concat();
    assert!(passed(&open.chunks(4096).collect::<Vec<_>>()) == closed);
}

/// Queries, other units and single bytes in random order.
fn stream(dice: &mut Dice) -> Vec<u8> {
    let mut stream = Vec::new();
    for _ in 0..dice.roll(40) {
        match dice.roll(4) {
            0 => stream.extend_from_slice(QUERIES[dice.roll(QUERIES.len())]),
            1 => stream.extend_from_slice(HARMLESS[dice.roll(HARMLESS.len())]),
            2 => stream.push(b"\x1b[]P\\?;56nc\x07\x18\xc2\x9b\xe2"[dice.roll(16)]),
            _ => stream.push(dice.roll(256) as u8),
        }
    }
    stream
}

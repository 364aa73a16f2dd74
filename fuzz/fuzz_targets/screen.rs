//! Any events on a screen, in any order: it never panics, and a restored dump always equals it.
#![no_main]

use agency_terminal::{Screen, ScreenEvent, Size};
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Act<'a> {
    Feed(&'a [u8]),
    Resize(u8, u8),
    Reborn,
    Redraw(bool),
    Separate(&'a str),
    Drain,
    Read,
}

#[derive(Arbitrary, Debug)]
struct Story<'a> {
    cols: u8,
    rows: u8,
    scrollback: u8,
    acts: Vec<Act<'a>>,
}

fuzz_target!(|story: Story<'_>| {
    let size = Size::cells((story.cols % 48).into(), (story.rows % 16).into());
    let mut screen = Screen::new(size, story.scrollback.into());
    // The same, but its stream comes byte by byte.
    let mut other = Screen::new(screen.size(), story.scrollback.into());
    for act in &story.acts {
        play(&mut screen, &mut other, act);
        assert!(screen.dump() == other.dump(), "the two part after {act:?}");
    }
});

fn play(screen: &mut Screen, other: &mut Screen, act: &Act<'_>) {
    match act {
        Act::Feed(bytes) => {
            assert!(!screen.feed(bytes).events.contains(&ScreenEvent::Panicked));
            bytes.iter().for_each(|byte| drop(other.feed(&[*byte])));
        }
        Act::Resize(cols, rows) => {
            let size = Size::cells((cols % 48).into(), (rows % 16).into());
            screen.resize(size);
            other.resize(size);
        }
        Act::Reborn => {
            *other = Screen::restore(&screen.dump()).expect("a fresh dump is sound");
            assert!(other.snapshot() == screen.snapshot());
        }
        Act::Redraw(with_scrollback) => {
            let mut viewer = Screen::new(screen.size(), 1000);
            let fed = viewer.feed(&screen.redraw(*with_scrollback));
            assert!(!fed.events.contains(&ScreenEvent::Panicked));
            assert!(viewer.in_ground(), "a redraw is whole");
        }
        Act::Separate(text) => {
            screen.session_separator(text);
            other.session_separator(text);
        }
        Act::Drain => assert_eq!(screen.drain_history(), other.drain_history()),
        Act::Read => {
            assert_eq!(screen.text(), other.text());
            assert_eq!(screen.lines_above_cursor(), other.lines_above_cursor());
            assert!(screen.snapshot() == other.snapshot());
        }
    }
}

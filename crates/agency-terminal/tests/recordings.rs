//! Real agents' output, cut at every byte: a screen that was dumped and restored continues without a difference.

mod common;

use agency_terminal::{Fed, Screen, Size};
use common::{Dice, Recording, SCROLLBACK, assert_same, drawn, reborn, recordings};

/// After this many cuts, the whole rest is fed as well.
const WHOLE_REST_EVERY: usize = 1009;

#[test]
fn a_dump_at_every_byte_restores_to_itself_and_goes_on_the_same() {
    for recording in recordings() {
        // This screen is replaced by its restored copy after every byte.
        let mut running = Screen::new(recording.size, SCROLLBACK);
        let mut said = Fed::default();
        for (at, byte) in recording.output.iter().enumerate() {
            add(&mut said, running.feed(&[*byte]));
            let dump = running.dump();
            let mut restored = Screen::restore(&dump).expect("a fresh dump is sound");
            assert!(restored.dump() == dump, "{} after byte {at}", recording.name);
            running = restored;
        }
        let mut whole = Screen::new(recording.size, SCROLLBACK);
        let said_at_once = whole.feed(&recording.output);
        assert_same(&running.snapshot(), &whole.snapshot(), &recording.name);
        assert_eq!(said, said_at_once, "{}", recording.name);
    }
}

#[test]
fn a_restored_screen_draws_the_rest_in_the_same_way() {
    for recording in recordings() {
        let mut whole = drawn(recording.size, &recording.output);
        let (expected, snapshot) = (whole.dump(), whole.snapshot());
        let mut running = Screen::new(recording.size, SCROLLBACK);
        for (at, chunk) in recording.output.chunks(WHOLE_REST_EVERY).enumerate() {
            running.feed(chunk);
            let mut restored = reborn(&mut running);
            assert_same(&restored.snapshot(), &running.snapshot(), &recording.name);
            let rest = recording.output.len().min((at + 1) * WHOLE_REST_EVERY);
            restored.feed(&recording.output[rest..]);
            assert!(restored.dump() == expected, "{} cut after chunk {at}", recording.name);
            assert_same(&restored.snapshot(), &snapshot, &recording.name);
        }
    }
}

#[test]
fn a_restored_screen_reflows_in_the_same_way() {
    for recording in recordings() {
        let mut whole = Screen::new(recording.size, SCROLLBACK);
        let mut running = Screen::new(recording.size, SCROLLBACK);
        let mut dice = Dice(5);
        for chunk in recording.output.chunks(701) {
            whole.feed(chunk);
            running.feed(chunk);
            running = reborn(&mut running);
            let size = Size::cells(20 + dice.roll(140) as u16, 4 + dice.roll(60) as u16);
            whole.resize(size);
            running.resize(size);
            assert!(running.dump() == whole.dump(), "{} at {size:?}", recording.name);
        }
    }
}

#[test]
fn the_cuts_of_a_stream_make_no_difference() {
    for Recording { name, size, output } in recordings() {
        let expected = drawn(size, &output).dump();
        for len in [1, 2, 3, 7, 64, 4096] {
            let mut screen = Screen::new(size, SCROLLBACK);
            output.chunks(len).for_each(|chunk| drop(screen.feed(chunk)));
            assert!(screen.dump() == expected, "{name} in chunks of {len}");
        }
    }
}

/// Appends `more`; bells that follow each other become one.
fn add(all: &mut Fed, mut more: Fed) {
    all.replies.append(&mut more.replies);
    for event in more.events {
        if event != agency_terminal::ScreenEvent::Bell || all.events.last() != Some(&event) {
            all.events.push(event);
        }
    }
}

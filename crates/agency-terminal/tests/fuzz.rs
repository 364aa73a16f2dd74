//! Random bytes and damaged dumps: neither may cause a panic.

mod common;

use agency_terminal::keys::DetachKeys;
use agency_terminal::{DumpError, Screen, ScreenEvent, Size, ViewerFilter};
use common::{Dice, reborn, recordings};

/// Random bytes; bytes with a meaning for terminals are more frequent.
fn noise(dice: &mut Dice, len: usize) -> Vec<u8> {
    let serious = b"\x1b\x1b\x1b\x1b[[[[]]PX^_()?>=<!$ \";:0123456789ABCDHJKLMPSTXZ@bcdfghlmnpqrstuwx\\\x07\x18\x9b\xc2\xe2\xf0\r\n\t\x08";
    (0..len)
        .map(|_| match dice.roll(3) {
            0 => dice.roll(256) as u8,
            _ => serious[dice.roll(serious.len())],
        })
        .collect()
}

#[test]
fn noise_never_panics_and_a_dump_always_matches_its_screen() {
    let mut dice = Dice(1);
    for _ in 0..60 {
        let size = Size::cells(dice.roll(40) as u16, dice.roll(12) as u16);
        let scrollback = dice.roll(30);
        let mut screen = Screen::new(size, scrollback);
        // The same bytes, cut differently.
        let mut other = Screen::new(size, scrollback);
        let mut filter = ViewerFilter::new();
        let mut passed = Vec::new();
        for _ in 0..40 {
            let len = dice.roll(300);
            let bytes = noise(&mut dice, len);
            let fed = screen.feed(&bytes);
            assert!(!fed.events.contains(&ScreenEvent::Panicked), "{}", bytes.escape_ascii());
            filter.pass(&bytes, &mut passed);
            let cut = 1 + dice.roll(9);
            bytes.chunks(cut).for_each(|piece| drop(other.feed(piece)));
            let size = Size::cells(dice.roll(50) as u16, dice.roll(14) as u16);
            screen.resize(size);
            other.resize(size);
            let mut restored = reborn(&mut screen);
            assert!(restored.dump() == screen.dump());
            assert!(other.dump() == screen.dump(), "in pieces of {cut}: {}", bytes.escape_ascii());
            screen.redraw(true);
            screen.text();
            if dice.roll(9) == 0 {
                assert_eq!(screen.drain_history(), other.drain_history());
                screen.session_separator("---");
                other.session_separator("---");
            }
        }
    }
}

#[test]
fn typed_noise_passes_in_order() {
    let mut dice = Dice(4);
    for keys in ["ctrl-\\", "ctrl-p,ctrl-q", "ctrl-a,d"] {
        let mut matcher = DetachKeys::parse(keys).expect("these are keys").matcher();
        let (mut typed, mut passed) = (Vec::new(), Vec::new());
        for _ in 0..500 {
            let len = dice.roll(40);
            let bytes = noise(&mut dice, len);
            passed.extend(matcher.feed(&bytes).pass);
            typed.extend(bytes);
            if dice.roll(4) == 0 {
                // The first flush decides about an unfinished key, the second about an unfinished sequence of keys.
                passed.extend(matcher.flush().pass);
                passed.extend(matcher.flush().pass);
                assert_eq!(matcher.pending(), None);
            }
        }
        let mut rest = typed.iter();
        assert!(passed.iter().all(|byte| rest.any(|other| other == byte)), "{keys}");
    }
}

#[test]
fn damaged_dumps_are_refused() {
    let recording = recordings().swap_remove(0);
    let mut screen = Screen::new(recording.size, 100);
    screen.feed(&recording.output[..20_000]);
    let dump = screen.dump();
    let mut dice = Dice(2);
    for _ in 0..300 {
        let mut damaged = dump.clone();
        let at = dice.roll(damaged.len());
        damaged[at] ^= 1 << dice.roll(8);
        assert!(Screen::restore(&damaged).is_err(), "byte {at}");
        assert!(Screen::restore(&dump[..at]).is_err(), "cut at {at}");
    }
    assert_eq!(Screen::restore(b"").err(), Some(DumpError::Foreign));
    assert_eq!(Screen::restore(b"something else entirely").err(), Some(DumpError::Foreign));
}

#[test]
fn a_dump_of_another_version_says_so() {
    let mut dump = Screen::new(Size::cells(9, 9), 0).dump();
    dump[4] = 99;
    assert_eq!(Screen::restore(&dump).err(), Some(DumpError::Version(99)));
}

/// A dump from an earlier version, in which the scrollback consisted of cells.
#[test]
fn a_dump_of_the_previous_version_is_still_read() {
    let mut screen = Screen::restore(include_bytes!("dumps/version-1.dump")).expect("it is sound");
    let line = "red 漢字 e\u{301}link\n".repeat(9);
    let text = format!("{line}a line that is longer than the screen is wide, and the last\nalternate\n");
    assert_eq!(screen.text(), text);
    assert_eq!(screen.snapshot().scrollback.len(), 6);
    assert_eq!(reborn(&mut screen).snapshot(), screen.snapshot());
}

/// Damage with a correct checksum.
#[test]
fn a_forged_dump_is_refused_or_drawn_but_never_panics() {
    let mut screen = Screen::new(Size::cells(20, 6), 20);
    screen.feed("\x1b[31mred 漢字 e\u{301}\x1b]8;;x:y\x07link\r\n".repeat(9).as_bytes());
    screen.feed(b"\x1b[2;4r\x1b[?1049halt\x1b[>3u\x1b]4;1;#fff\x07\x1b7\x1b[");
    let dump = screen.dump();
    let mut dice = Dice(3);
    for _ in 0..6000 {
        let mut forged = dump.clone();
        for _ in 0..=dice.roll(3) {
            let at = 9 + dice.roll(forged.len() - 9);
            forged[at] = dice.roll(256) as u8;
        }
        let checksum = crc32(&forged[9..]);
        forged[5..9].copy_from_slice(&checksum.to_le_bytes());
        if let Ok(mut screen) = Screen::restore(&forged) {
            screen.feed(b"x\r\n\x1b[5A\x1b[2Jy\x1b8\x1b[?1049lz");
            screen.resize(Size::cells(13, 4));
            screen.redraw(true);
            screen.text();
        }
    }
}

/// The checksum of a dump, computed bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
    })
}

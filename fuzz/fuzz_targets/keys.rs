//! Typed bytes in pieces: the matcher adds no byte, reorders none, and holds none for ever.
#![no_main]

use agency_terminal::keys::DetachKeys;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, Vec<(&[u8], bool)>)| {
    let (text, pieces) = input;
    let keys = DetachKeys::parse(text).or_else(|_| DetachKeys::parse("ctrl-\\")).expect("these are keys");
    let mut matcher = keys.matcher();
    let (mut typed, mut passed) = (Vec::new(), Vec::new());
    for (piece, pause) in pieces {
        typed.extend_from_slice(piece);
        passed.extend(matcher.feed(piece).pass);
        // The first flush ends an unfinished key, the second one an unfinished sequence of detach keys.
        for _ in 0..if pause { 2 } else { 0 } {
            passed.extend(matcher.flush().pass);
        }
        assert!(!pause || matcher.pending().is_none());
    }
    let mut rest = typed.iter();
    assert!(passed.iter().all(|byte| rest.any(|other| other == byte)));
});

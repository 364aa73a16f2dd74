//! Typed bytes, in pieces: nothing is made up, nothing changes its place, and nothing is held for ever.
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
        // What is unfinished is decided first, then what only began the keys.
        for _ in 0..if pause { 2 } else { 0 } {
            passed.extend(matcher.flush().pass);
        }
        assert!(!pause || matcher.pending().is_none());
    }
    let mut rest = typed.iter();
    assert!(passed.iter().all(|byte| rest.any(|other| other == byte)));
});

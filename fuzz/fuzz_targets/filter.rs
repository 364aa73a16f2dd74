//! The filter gives viewers the same bytes however the stream is cut.
#![no_main]

use agency_terminal::ViewerFilter;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|pieces: Vec<&[u8]>| {
    let (mut one, mut at_once) = (ViewerFilter::new(), Vec::new());
    one.pass(&pieces.concat(), &mut at_once);
    let (mut other, mut cut) = (ViewerFilter::new(), Vec::new());
    pieces.iter().for_each(|piece| other.pass(piece, &mut cut));
    assert_eq!(at_once, cut);
    assert_eq!(one.at_boundary(), other.at_boundary());
});

//! Any bytes with the header and the checksum of a dump: `restore` refuses or draws them and never panics. A screen that it
//! draws can be dumped and restored again.
#![no_main]

use agency_terminal::{Screen, Size};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((version, body)) = bytes.split_first() else { return };
    let mut dump = b"AgTm".to_vec();
    dump.push(1 + version % 2);
    dump.extend(crc32(body).to_le_bytes());
    dump.extend(body);
    let Ok(mut screen) = Screen::restore(&dump) else { return };
    let again = screen.dump();
    let mut restored = Screen::restore(&again).expect("a fresh dump is sound");
    assert!(restored.dump() == again);
    screen.redraw(true);
    screen.text();
    screen.feed(b"x\r\n\x1b[5A\x1b[2Jy\x1b8\x1b[?1049lz");
    screen.resize(Size::cells(13, 4));
    screen.snapshot();
});

/// The checksum of a dump, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
    })
}

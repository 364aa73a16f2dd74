//! Finding the checkpoint at which a reader can begin.

use std::fs;

use agency_journal::{Body, Writer};

use crate::fixture::{ONE_SEGMENT, Scratch, TINY_SEGMENTS, append_all, output};

fn checkpoint(writer: &mut Writer, name: &str) -> u64 {
    let at_seq = writer.next_seq() - 1;
    writer.append(1, &Body::Checkpoint { at_seq, bytes: name.into() }).expect("room").seq
}

fn name(record: Option<agency_journal::Record>) -> Option<String> {
    match record?.body {
        Body::Checkpoint { bytes, .. } => String::from_utf8(bytes).ok(),
        other => panic!("not a checkpoint: {other:?}"),
    }
}

#[test]
fn the_newest_checkpoint_is_found_in_whatever_segment_it_is() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(TINY_SEGMENTS);
    assert_eq!(scratch.checkpoint(None), None);
    let first = checkpoint(&mut writer, "first");
    append_all(&mut writer, &vec![output(&"x".repeat(100)); 5]);
    assert_eq!(name(scratch.checkpoint(None)).as_deref(), Some("first"));
    let second = checkpoint(&mut writer, "second");
    let third = checkpoint(&mut writer, "third");
    append_all(&mut writer, &vec![output(&"x".repeat(100)); 5]);
    scratch.seal(1);
    assert_eq!(name(scratch.checkpoint(None)).as_deref(), Some("third"));
    assert_eq!(name(scratch.checkpoint(Some(third))).as_deref(), Some("second"));
    assert_eq!(name(scratch.checkpoint(Some(second))).as_deref(), Some("first"));
    assert_eq!(scratch.checkpoint(Some(first)), None);
}

#[test]
fn a_damaged_checkpoint_is_skipped_for_an_older_one() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(ONE_SEGMENT);
    checkpoint(&mut writer, "older");
    append_all(&mut writer, &[output("between")]);
    checkpoint(&mut writer, "newer");
    append_all(&mut writer, &[output("after")]);
    let bytes = fs::read(scratch.segment(1)).expect("there");
    let newer = bytes.windows(5).position(|window| window == b"newer").expect("there");
    // Damage in its bytes, in its length, in its seq.
    for at in [newer, newer - 40, newer - 36] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        scratch.rewrite(1, &damaged);
        assert_eq!(name(scratch.checkpoint(None)).as_deref(), Some("older"), "damage at {at}");
    }
}

#[test]
fn damage_elsewhere_does_not_hide_the_newest_checkpoint() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(ONE_SEGMENT);
    append_all(&mut writer, &[output("one"), output("two")]);
    checkpoint(&mut writer, "newest");
    append_all(&mut writer, &[output("three")]);
    let bytes = fs::read(scratch.segment(1)).expect("there");
    let found = scratch.checkpoint(None);
    let newest = bytes.windows(6).position(|window| window == b"newest").expect("there");
    for at in (0..newest - 8 - 36).chain(newest + 6..bytes.len()) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x81;
        scratch.rewrite(1, &damaged);
        assert_eq!(scratch.checkpoint(None), found, "damage at {at}");
    }
}

#[test]
fn a_torn_checkpoint_does_not_count() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(ONE_SEGMENT);
    checkpoint(&mut writer, "whole");
    let whole = fs::metadata(scratch.segment(1)).expect("there").len() as usize;
    checkpoint(&mut writer, "torn");
    let bytes = fs::read(scratch.segment(1)).expect("there");
    for cut in whole..bytes.len() {
        scratch.rewrite(1, &bytes[..cut]);
        assert_eq!(name(scratch.checkpoint(None)).as_deref(), Some("whole"), "cut at {cut}");
    }
}

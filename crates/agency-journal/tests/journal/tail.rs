//! A follower that lags reads from the files.

use std::fs;

use agency_journal::{Chunk, GapCause, Limits, Record, Tail, records};

use crate::fixture::{
    ONE_SEGMENT, Scratch, TINY_SEGMENTS, append_all, assert_whole, every_kind, gap, output,
};

fn decoded(bytes: &[u8]) -> Vec<Record> {
    records(bytes).map(|encoded| encoded.decode()).collect()
}

/// Reads until it has caught up, in small portions. Expects no sealed segments.
fn drain(tail: &mut Tail) -> Vec<Record> {
    let mut seen = Vec::new();
    loop {
        let mut out = Vec::new();
        match tail.read(100, &mut out).expect("readable") {
            Chunk::Records => seen.extend(decoded(&out)),
            Chunk::CaughtUp => return seen,
            Chunk::Sealed { .. } => panic!("nothing is sealed"),
        }
    }
}

#[test]
fn a_tail_gives_the_bytes_of_the_files_from_any_record_on() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(TINY_SEGMENTS);
    append_all(&mut writer, &every_kind());
    let all = scratch.records();
    for seq in 1..=writer.next_seq() {
        let mut tail = Tail::open(&scratch.dir, seq).expect("readable");
        assert_eq!(tail.next_seq(), seq);
        assert_eq!(drain(&mut tail), all[seq as usize - 1..]);
        assert_eq!(tail.next_seq(), writer.next_seq());
    }
}

#[test]
fn portions_are_bounded_and_never_cut_a_record() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(ONE_SEGMENT);
    append_all(&mut writer, &vec![output(&"x".repeat(100)); 20]);
    let mut tail = Tail::open(&scratch.dir, 1).expect("readable");
    let mut out = Vec::new();
    while tail.read(300, &mut out).expect("readable") == Chunk::Records {
        assert!(out.len() < 300 + 136, "{} bytes", out.len());
        assert_eq!(out.len() % 136, 0);
        out.clear();
    }
    writer.append(1, &output("more")).expect("room");
    assert_eq!(drain(&mut tail).len(), 1);
}

#[test]
fn a_tail_outlives_the_deletion_of_its_segment() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(Limits { segment_bytes: 1000, max_bytes: Some(3000) });
    writer.append(0, &output("start")).expect("room");
    let mut tail = Tail::open(&scratch.dir, 1).expect("readable");
    assert_eq!(tail.read(1, &mut Vec::new()).expect("readable"), Chunk::Records);
    append_all(&mut writer, &vec![output(&"x".repeat(90)); 100]);
    assert!(!scratch.segment(1).exists());
    let seen = drain(&mut tail);
    assert_whole(&seen[seen.iter().position(|record| gap(record).is_some()).expect("a gap")..]);
    assert_eq!(seen.last(), scratch.records().last());
    let first_gap = seen.iter().find_map(gap).expect("a gap");
    assert_eq!(first_gap.1, GapCause::Retention);
    assert_eq!(tail.next_seq(), writer.next_seq());
}

#[test]
fn sealed_segments_are_reported_and_skipped() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(TINY_SEGMENTS);
    append_all(&mut writer, &every_kind());
    let all = scratch.records();
    let mut tail = Tail::open(&scratch.dir, 2).expect("readable");
    scratch.seal(1);
    scratch.seal(2);
    let mut out = Vec::new();
    let Chunk::Sealed { from_seq, until_seq } = tail.read(100, &mut out).expect("readable") else {
        panic!("the first segment is sealed")
    };
    assert_eq!(from_seq, 2);
    let Chunk::Sealed { from_seq: second, until_seq: raw_from } = tail.read(100, &mut out).expect("readable")
    else {
        panic!("the second segment is sealed")
    };
    assert_eq!(second, until_seq);
    assert!(out.is_empty());
    assert_eq!(drain(&mut tail), all[raw_from as usize - 1..]);
}

#[test]
fn damage_reaches_a_follower_as_a_gap_record() {
    let scratch = Scratch::new();
    append_all(&mut scratch.writer(ONE_SEGMENT), &[output("one"), output("two"), output("three")]);
    let mut bytes = fs::read(scratch.segment(1)).expect("there");
    bytes[36 + 39 + 37] ^= 1;
    scratch.rewrite(1, &bytes);
    let seen = drain(&mut Tail::open(&scratch.dir, 1).expect("readable"));
    assert_eq!(gap(&seen[1]), Some((3, GapCause::Corrupt)));
    assert_whole(&seen);
}

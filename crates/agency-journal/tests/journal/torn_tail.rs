//! A writer that died in the middle of a write.

use std::fs;

use agency_journal::{Body, GapCause, Record};

use crate::fixture::{
    ONE_SEGMENT, Scratch, TINY_SEGMENTS, append_all, assert_whole, every_kind, output, read_on,
};

struct Written {
    scratch: Scratch,
    bytes: Vec<u8>,
    records: Vec<Record>,
    /// The end of each record in the file.
    ends: Vec<usize>,
}

fn written() -> Written {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(ONE_SEGMENT);
    let mut ends = Vec::new();
    for (at, body) in every_kind().iter().enumerate() {
        writer.append(at as u64, body).expect("room");
        ends.push(fs::metadata(scratch.segment(1)).expect("there").len() as usize);
    }
    let bytes = fs::read(scratch.segment(1)).expect("there");
    let records = scratch.records();
    Written { scratch, bytes, records, ends }
}

#[test]
fn a_tail_torn_at_any_byte_shows_the_whole_records_and_goes_on() {
    let Written { scratch, bytes, records, ends } = written();
    for cut in 0..=bytes.len() {
        scratch.rewrite(1, &bytes[..cut]);
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let mut reader = scratch.reader();
        assert_eq!(read_on(&mut reader), records[..whole], "cut at {cut}");

        let mut writer = scratch.recovered();
        assert_eq!(writer.next_seq(), whole as u64 + 1, "cut at {cut}");
        writer.append(99, &output("recovered")).expect("room");
        let after = scratch.records();
        assert_eq!(after[..whole], records[..whole], "cut at {cut}");
        assert_eq!(after[whole..].len(), 1, "cut at {cut}");
        assert_whole(&after);
        // The reader at the torn tail continues as if nothing had been torn.
        assert_eq!(read_on(&mut reader), after[whole..], "cut at {cut}");
    }
}

#[test]
fn a_tail_of_zeros_is_cut_off() {
    let Written { scratch, mut bytes, records, .. } = written();
    bytes.extend_from_slice(&[0; 5000]);
    scratch.rewrite(1, &bytes);
    assert_eq!(scratch.records(), records);
    scratch.recovered().append(99, &output("recovered")).expect("room");
    assert_eq!(scratch.records().len(), records.len() + 1);
    assert_whole(&scratch.records());
}

#[test]
fn recovery_keeps_good_records_behind_a_damaged_one() {
    let Written { scratch, mut bytes, records, ends } = written();
    bytes[ends[3] + 10] ^= 1;
    scratch.rewrite(1, &bytes);
    let mut writer = scratch.recovered();
    assert_eq!(writer.next_seq(), records.len() as u64 + 1);
    writer.append(99, &output("recovered")).expect("room");
    assert_eq!(fs::metadata(scratch.segment(1)).expect("there").len(), bytes.len() as u64 + 36 + 9);
}

#[test]
fn recovery_continues_in_the_newest_of_many_segments() {
    let scratch = Scratch::new();
    append_all(&mut scratch.writer(TINY_SEGMENTS), &every_kind());
    let before = scratch.files();
    assert!(before.len() > 2, "{before:?}");
    let mut writer = scratch.recovered();
    writer.append(99, &Body::Gap { output_bytes: 50, cause: GapCause::KeeperLost }).expect("room");
    writer.append(99, &output("recovered")).expect("room");
    assert_eq!(scratch.files(), before);
    assert_eq!(scratch.records().len(), every_kind().len() + 2);
    assert_whole(&scratch.records());
}

#[test]
fn recovery_of_nothing_begins_a_journal() {
    let scratch = Scratch::new();
    scratch.recovered().append(1, &output("first")).expect("room");
    assert_eq!(scratch.records()[0].seq, 1);
}

#[test]
fn a_newest_segment_without_a_header_is_written_again() {
    let scratch = Scratch::new();
    append_all(&mut scratch.writer(ONE_SEGMENT), &every_kind());
    fs::write(scratch.segment(2), b"").expect("room");
    scratch.recovered().append(99, &output("recovered")).expect("room");
    assert_eq!(scratch.records().len(), every_kind().len() + 1);
    assert_whole(&scratch.records());
}

#[test]
fn an_incomplete_segment_of_a_dead_writer_is_no_obstacle() {
    let scratch = Scratch::new();
    append_all(&mut scratch.writer(TINY_SEGMENTS), &every_kind());
    let next = scratch.files().len() as u32 + 1;
    fs::write(scratch.segment(next).with_extension("aj.tmp"), b"agen").expect("room");
    let mut writer = agency_journal::Writer::recover(&scratch.dir, TINY_SEGMENTS).expect("recovers");
    append_all(&mut writer, &every_kind());
    assert_eq!(scratch.records().len(), 2 * every_kind().len());
    assert_whole(&scratch.records());
    assert!(scratch.files().iter().all(|name| name.ends_with(".aj")), "{:?}", scratch.files());
}

//! Bytes that the disk has changed.

use std::fs;

use agency_journal::{Body, GapCause, Record, Stream};
use proptest::prelude::*;

use crate::fixture::{
    ONE_SEGMENT, Scratch, TINY_SEGMENTS, append_all, every_kind, gap, output, rewrite, text_of,
};

const SEGMENT_HEADER_BYTES: usize = 36;

/// Returns the records that a reader must show if exactly one record is unreadable.
fn without(records: &[Record], index: usize) -> Vec<Record> {
    let mut expected = records.to_vec();
    let damaged = &records[index];
    match records.get(index + 1) {
        // A damaged last record looks like a torn one.
        None => expected.truncate(index),
        Some(next) => {
            let output_bytes = damaged.end_offset() - damaged.output_offset;
            let body = Body::Gap { output_bytes, cause: GapCause::Corrupt };
            expected[index] = Record { body, at_ns: next.at_ns, ..damaged.clone() };
        }
    }
    expected
}

#[test]
fn a_flipped_byte_anywhere_costs_one_record() {
    let scratch = Scratch::new();
    append_all(&mut scratch.writer(ONE_SEGMENT), &every_kind());
    let (records, bytes) = (scratch.records(), fs::read(scratch.segment(1)).expect("there"));
    let (mut start, mut index) = (SEGMENT_HEADER_BYTES, 0);
    for at in 0..bytes.len() {
        let mut len = Vec::new();
        records[index].encode_into(&mut len);
        if at == start + len.len() {
            (start, index) = (at, index + 1);
        }
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            scratch.rewrite(1, &damaged);
            let expected = if at < SEGMENT_HEADER_BYTES { records.clone() } else { without(&records, index) };
            assert_eq!(scratch.records(), expected, "byte {at} ^ {flip:#x}");
        }
    }
}

#[test]
fn a_damaged_end_of_a_segment_is_a_gap_once_another_follows() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(TINY_SEGMENTS);
    append_all(&mut writer, &[output(&"a".repeat(100)), output(&"b".repeat(100)), output("c")]);
    let mut bytes = fs::read(scratch.segment(1)).expect("there");
    bytes.pop();
    scratch.rewrite(1, &bytes);
    let records = scratch.records();
    assert_eq!(gap(&records[0]), Some((100, GapCause::Corrupt)));
    assert_eq!(text_of(&records), format!("{}c", "b".repeat(100)));
}

#[test]
fn a_printed_journal_is_not_taken_for_the_journal_itself() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(ONE_SEGMENT);
    append_all(&mut writer, &every_kind());
    let own = fs::read(scratch.segment(1)).expect("there");
    let mut foreign = Vec::new();
    for seq in [1, 500, 501, u64::MAX] {
        Record { seq, output_offset: 9, at_ns: 1, body: output("forged") }.encode_into(&mut foreign);
    }
    // `cat` of both, then a good record.
    let bytes = [own, foreign].concat();
    let printed = bytes.len() as u64;
    let start = fs::metadata(scratch.segment(1)).expect("there").len() as usize;
    writer.append(20, &Body::Output { stream: Stream::Terminal, bytes }).expect("room");
    writer.append(21, &output("good")).expect("room");
    let mut file = fs::read(scratch.segment(1)).expect("there");
    file[start + 8] ^= 1;
    scratch.rewrite(1, &file);
    let records = scratch.records();
    let tail: Vec<_> = records[every_kind().len()..].iter().map(|record| record.seq).collect();
    assert_eq!(tail, [14, 15]);
    assert_eq!(gap(&records[13]), Some((printed, GapCause::Corrupt)));
}

#[test]
fn a_journal_of_a_newer_version_is_refused_by_name() {
    let scratch = Scratch::new();
    append_all(&mut scratch.writer(ONE_SEGMENT), &every_kind());
    let mut bytes = fs::read(scratch.segment(1)).expect("there");
    bytes[8] = 2;
    let crc = crc32fast::hash(&bytes[..32]);
    bytes[32..36].copy_from_slice(&crc.to_le_bytes());
    scratch.rewrite(1, &bytes);
    let refused = agency_journal::Reader::open(&scratch.dir, crate::fixture::unzstd).err();
    assert!(refused.is_some_and(|err| err.to_string().contains("version 2")));
}

proptest! {
    // Each case writes about forty files; PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    #[test]
    fn any_damage_to_any_segment_never_stops_a_reader_or_a_recovery(
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in any::<prop::sample::Index>(),
    ) {
        let scratch = Scratch::new();
        append_all(&mut scratch.writer(TINY_SEGMENTS), &every_kind());
        for (file, at, byte) in hits {
            let path = scratch.dir.join(file.get(&scratch.files()));
            let mut bytes = fs::read(&path).expect("there");
            let at = at.index(bytes.len());
            bytes[at] = byte;
            rewrite(&path, &bytes);
        }
        let path = scratch.dir.join(cut.get(&scratch.files()));
        let bytes = fs::read(&path).expect("there");
        rewrite(&path, &bytes[..cut.index(bytes.len())]);
        let before = scratch.records();
        prop_assert!(before.is_sorted_by(|a, b| a.seq < b.seq), "{before:?}");
        scratch.checkpoint(None);
        scratch.recovered().append(99, &output("recovered")).expect("room");
        prop_assert_eq!(text_of(&scratch.records()), text_of(&before) + "recovered");
    }
}

//! Segments follow each other, and the oldest ones are deleted.

use std::fs;

use agency_journal::{Body, GapCause, Limits};

use crate::fixture::{
    ONE_SEGMENT, Scratch, TINY_SEGMENTS, append_all, assert_whole, gap, output, read_on, text_of,
};

const LIMITS: Limits = Limits { segment_bytes: 1000, max_bytes: Some(4000) };

fn disk_use(scratch: &Scratch) -> u64 {
    let sizes =
        scratch.files().into_iter().map(|name| fs::metadata(scratch.dir.join(name)).expect("there").len());
    sizes.sum()
}

#[test]
fn a_full_segment_is_followed_by_the_next() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(TINY_SEGMENTS);
    append_all(&mut writer, &vec![output(&"x".repeat(100)); 3]);
    assert_eq!(scratch.files(), ["00000001.aj", "00000002.aj", "00000003.aj"]);
    // A record that is larger than any segment gets its own.
    writer.append(1, &output(&"y".repeat(500))).expect("room");
    writer.append(1, &output("z")).expect("room");
    assert_eq!(scratch.files().len(), 5);
    assert_whole(&scratch.records());
}

#[test]
fn a_journal_never_outgrows_its_limit_and_records_deletions() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(LIMITS);
    for number in 0..200u64 {
        writer.append(number, &output(&format!("{number:090}"))).expect("room");
        assert!(disk_use(&scratch) <= 4000, "{} bytes after {number}", disk_use(&scratch));
    }
    let records = scratch.records();
    assert_whole(&records);
    let (missing, cause) = gap(&records[0]).expect("a missing beginning shows as a gap");
    assert_eq!((missing, cause), (records[1].output_offset, GapCause::Retention));
    assert_eq!(missing + text_of(&records).len() as u64, 200 * 90);
}

#[test]
fn each_deletion_is_recorded_with_its_bytes() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(LIMITS);
    let mut recorded = 0;
    for number in 0..200u64 {
        let appended = writer.append(number, &output(&"x".repeat(90))).expect("room");
        let deletions = appended.records().filter_map(|encoded| gap(&encoded.decode()));
        recorded += deletions
            .inspect(|(_, cause)| assert_eq!(*cause, GapCause::Retention))
            .map(|(bytes, _)| bytes)
            .sum::<u64>();
    }
    assert!(recorded > 0);
    assert_eq!(gap(&scratch.records()[0]), Some((recorded, GapCause::Retention)));
}

#[test]
fn sealed_segments_count_with_their_size_on_disk_and_go_too() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(LIMITS);
    append_all(&mut writer, &vec![output(&"x".repeat(90)); 20]);
    assert_eq!(scratch.files().len(), 3);
    scratch.seal(1);
    scratch.seal(2);
    append_all(&mut writer, &vec![output(&"y".repeat(90)); 10]);
    assert!(
        scratch.files().contains(&"00000001.aj.zst".into()),
        "sealed ones take little: {:?}",
        scratch.files()
    );
    append_all(&mut writer, &vec![output(&"y".repeat(90)); 60]);
    let records = scratch.records();
    let (missing, cause) = gap(&records[0]).expect("a gap");
    assert_eq!(cause, GapCause::Retention);
    assert_eq!(missing + text_of(&records).len() as u64, 90 * 90);
    assert!(!scratch.files().iter().any(|name| name.ends_with("zst")), "{:?}", scratch.files());
}

#[test]
fn recorded_deletions_are_right_across_sealed_segments_and_a_new_writer() {
    let scratch = Scratch::new();
    append_all(&mut scratch.writer(LIMITS), &vec![output(&"x".repeat(90)); 20]);
    scratch.seal(1);
    scratch.seal(2);
    let mut writer = agency_journal::Writer::recover(&scratch.dir, LIMITS).expect("recovers");
    let mut recorded = 0;
    for number in 0..100 {
        let appended = writer.append(number, &output(&"y".repeat(90))).expect("room");
        recorded += appended
            .records()
            .filter_map(|encoded| gap(&encoded.decode()))
            .map(|(bytes, _)| bytes)
            .sum::<u64>();
    }
    assert_eq!(gap(&scratch.records()[0]), Some((recorded, GapCause::Retention)));
}

#[test]
fn without_a_limit_nothing_is_deleted() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(TINY_SEGMENTS);
    append_all(&mut writer, &vec![output(&"x".repeat(100)); 50]);
    assert_eq!(scratch.files().len(), 50);
    assert_eq!(text_of(&scratch.records()).len(), 5000);
}

#[test]
fn seeking_to_a_deleted_record_says_so_first() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(LIMITS);
    append_all(&mut writer, &vec![output(&"x".repeat(90)); 100]);
    let mut reader = scratch.reader();
    reader.seek(3).expect("readable");
    let records = read_on(&mut reader);
    assert_eq!(gap(&records[0]).map(|(_, cause)| cause), Some(GapCause::Retention));
    assert_eq!(records[0].seq + 1, records[1].seq);
    assert_eq!(records[0].output_offset, records[1].output_offset);
}

#[test]
fn a_missing_middle_shows_as_one_gap() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(TINY_SEGMENTS);
    append_all(&mut writer, &vec![output(&"x".repeat(100)); 5]);
    fs::remove_file(scratch.segment(2)).expect("there");
    fs::remove_file(scratch.segment(3)).expect("there");
    let records = scratch.records();
    assert_eq!(records.iter().map(|record| record.seq).collect::<Vec<_>>(), [1, 3, 4, 5]);
    assert_eq!(gap(&records[1]), Some((200, GapCause::Retention)));
}

#[test]
fn lost_bytes_and_deleted_bytes_are_different_gaps() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(ONE_SEGMENT);
    writer.append(1, &output("before")).expect("room");
    writer.note_lost(10);
    writer.note_lost(5);
    assert_eq!(writer.output_offset(), 21);
    writer.append(2, &Body::Resize { cols: 1, rows: 1, x_pixels: 0, y_pixels: 0 }).expect("room");
    let records = scratch.records();
    assert_whole(&records);
    assert_eq!(gap(&records[1]), Some((15, GapCause::DiskFull)));
    assert_eq!(records[2].output_offset, 21);
}

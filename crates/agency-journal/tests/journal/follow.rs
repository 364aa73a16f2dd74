//! A reader that follows a journal while it grows.

use agency_journal::{Body, ExitStatus, GapCause, Limits};

use crate::fixture::{
    ONE_SEGMENT, Scratch, TINY_SEGMENTS, append_all, assert_whole, every_kind, gap, output, read_on, text_of,
};

#[test]
fn the_tail_is_none_until_more_comes() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(ONE_SEGMENT);
    let mut reader = scratch.reader();
    for (at, body) in every_kind().iter().enumerate() {
        assert_eq!(reader.next().expect("readable"), None);
        assert_eq!(reader.next_seq(), at as u64 + 1);
        writer.append(1, body).expect("room");
        assert_eq!(reader.next().expect("readable").map(|record| record.body).as_ref(), Some(body));
    }
}

#[test]
fn a_reader_may_exist_before_the_first_segment() {
    let scratch = Scratch::new();
    std::fs::create_dir(&scratch.dir).expect("room");
    let mut reader = scratch.reader();
    reader.seek(0).expect("readable");
    assert_eq!(reader.next().expect("readable"), None);
    append_all(&mut scratch.writer(ONE_SEGMENT), &every_kind());
    assert_eq!(read_on(&mut reader).len(), every_kind().len());
}

#[test]
fn a_follower_crosses_rotations() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(TINY_SEGMENTS);
    let mut reader = scratch.reader();
    let mut seen = Vec::new();
    for _ in 0..5 {
        append_all(&mut writer, &every_kind());
        seen.extend(read_on(&mut reader));
    }
    assert_eq!(seen, scratch.records());
    assert_whole(&seen);
}

#[test]
fn a_follower_that_retention_overtook_gets_a_gap() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(Limits { segment_bytes: 200, max_bytes: Some(800) });
    writer.append(0, &output("start")).expect("room");
    let mut reader = scratch.reader();
    assert_eq!(text_of(&read_on(&mut reader)), "start");
    append_all(&mut writer, &vec![output(&"x".repeat(100)); 50]);
    let seen = read_on(&mut reader);
    let (missing, cause) = gap(&seen[0]).expect("a gap comes first");
    assert_eq!(cause, GapCause::Retention);
    assert_eq!(seen[0].output_offset, 5 + missing);
    assert_eq!(missing + text_of(&seen).len() as u64, 5000);
    assert_whole(&seen);
}

#[test]
fn seeking_finds_every_record_in_every_segment() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(TINY_SEGMENTS);
    append_all(&mut writer, &every_kind());
    append_all(&mut writer, &every_kind());
    scratch.seal(1);
    let all = scratch.records();
    let mut reader = scratch.reader();
    for seq in (1..=all.len() as u64).rev() {
        reader.seek(seq).expect("readable");
        assert_eq!(reader.next_seq(), seq);
        assert_eq!(read_on(&mut reader), all[seq as usize - 1..]);
    }
}

#[test]
fn seeking_past_the_end_waits_for_that_record() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(TINY_SEGMENTS);
    let mut reader = scratch.reader();
    reader.seek(10).expect("readable");
    append_all(&mut writer, &every_kind());
    assert_eq!(read_on(&mut reader), scratch.records()[9..]);
}

#[test]
fn a_reader_beside_a_running_writer_sees_every_record_once() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(Limits { segment_bytes: 4000, max_bytes: None });
    let mut reader = scratch.reader();
    let count = 5000;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..count {
                writer.append(number, &output(&format!("{number}\n").repeat(5))).expect("room");
            }
            writer
                .append(count, &Body::Exit { status: ExitStatus::Code(0), stopped_by: None })
                .expect("room");
        });
        let mut seen = Vec::new();
        while !matches!(seen.last(), Some(agency_journal::Record { body: Body::Exit { .. }, .. })) {
            seen.extend(reader.next().expect("readable"));
        }
        assert_eq!(seen.len() as u64, count + 1);
        assert_whole(&seen);
    });
}

//! A reader gets what the writer wrote.

use agency_journal::{Body, Decoded, ExitStatus, GapCause, Record, Source, StopSignal, Stream, records};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::fixture::{ONE_SEGMENT, Scratch, TINY_SEGMENTS, append_all, assert_whole, every_kind, output};

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..300)
}

fn source() -> impl Strategy<Value = Source> {
    prop_oneof![
        Just(Source::User),
        Just(Source::Send),
        any::<u64>().prop_map(|output_offset| Source::Answer { output_offset })
    ]
}

fn exit() -> impl Strategy<Value = Body> {
    let status = prop_oneof![
        any::<i32>().prop_map(ExitStatus::Code),
        any::<i32>().prop_map(ExitStatus::Signal),
        Just(ExitStatus::Unknown)
    ];
    let stopped_by = prop_oneof![Just(None), Just(Some(StopSignal::Term)), Just(Some(StopSignal::Kill))];
    (status, stopped_by).prop_map(|(status, stopped_by)| Body::Exit { status, stopped_by })
}

fn cause() -> impl Strategy<Value = GapCause> {
    prop_oneof![
        Just(GapCause::DiskFull),
        Just(GapCause::KeeperLost),
        Just(GapCause::Retention),
        Just(GapCause::Corrupt)
    ]
}

fn body() -> impl Strategy<Value = Body> {
    let stream = prop_oneof![Just(Stream::Terminal), Just(Stream::Stdout), Just(Stream::Stderr)];
    prop_oneof![
        (stream, bytes()).prop_map(|(stream, bytes)| Body::Output { stream, bytes }),
        (source(), bytes()).prop_map(|(source, bytes)| Body::Input { source, bytes }),
        (source(), any::<u64>()).prop_map(|(source, len)| Body::HiddenInput { source, len }),
        any::<[u16; 4]>().prop_map(|[cols, rows, x_pixels, y_pixels]| Body::Resize {
            cols,
            rows,
            x_pixels,
            y_pixels
        }),
        exit(),
        (".*", bytes()).prop_map(|(tag, bytes)| Body::Note { tag, bytes }),
        any::<(i64, u64, [u8; 16])>().prop_map(|(wall_unix_ns, boottime_ns, boot_id)| Body::Anchor {
            wall_unix_ns,
            boottime_ns,
            boot_id
        }),
        (0..u64::MAX / 1000, cause()).prop_map(|(output_bytes, cause)| Body::Gap { output_bytes, cause }),
        (any::<u64>(), bytes()).prop_map(|(at_seq, bytes)| Body::Checkpoint { at_seq, bytes }),
        (10..=255u8, any::<u8>(), bytes()).prop_map(|(kind, flags, bytes)| Body::Unknown {
            kind,
            flags,
            bytes
        }),
    ]
}

fn encoded(record: &Record) -> Vec<u8> {
    let mut out = Vec::new();
    record.encode_into(&mut out);
    out
}

proptest! {
    #[test]
    fn every_record_decodes_to_itself(
        seq in any::<u64>(), output_offset in any::<u64>(), at_ns in any::<u64>(), body in body(), more in bytes()
    ) {
        let record = Record { seq, output_offset, at_ns, body };
        let mut bytes = encoded(&record);
        let len = bytes.len();
        bytes.extend_from_slice(&more);
        prop_assert_eq!(Record::decode(&bytes), Decoded::Complete(record, len));
        for cut in 0..len {
            prop_assert_eq!(Record::decode(&bytes[..cut]), Decoded::Incomplete);
        }
    }

    #[test]
    fn noise_is_refused_and_skipped(noise in bytes()) {
        let mut left = &noise[..];
        while let Decoded::Corrupt { skip } = Record::decode(left) {
            prop_assert!((1..=left.len()).contains(&skip));
            left = &left[skip..];
        }
        prop_assert_eq!(Record::decode(left), Decoded::Incomplete);
    }

}

proptest! {
    // Files are slow; PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    #[test]
    fn a_journal_reads_as_it_was_written(bodies in vec(body(), 0..40), segment_bytes in 100..2000u64) {
        let scratch = Scratch::new();
        let mut writer = scratch.writer(agency_journal::Limits { segment_bytes, max_bytes: None });
        append_all(&mut writer, &bodies);
        let records = scratch.records();
        assert_whole(&records);
        let read: Vec<Body> = records.into_iter().map(|record| record.body).collect();
        prop_assert_eq!(read, bodies);
    }
}

#[test]
fn an_append_returns_the_bytes_in_the_file() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(ONE_SEGMENT);
    let mut forwarded = Vec::new();
    for (at, body) in every_kind().iter().enumerate() {
        let appended = writer.append(at as u64, body).expect("room");
        assert_eq!(appended.seq, at as u64 + 1);
        forwarded.extend(appended.records().map(|encoded| encoded.decode()));
    }
    assert_eq!(forwarded, scratch.records());
}

#[test]
fn encoded_records_split_into_single_ones() {
    let mut bytes = Vec::new();
    for (seq, body) in every_kind().into_iter().enumerate() {
        Record { seq: seq as u64, output_offset: 0, at_ns: 0, body }.encode_into(&mut bytes);
    }
    let bodies: Vec<Body> = records(&bytes).map(|encoded| encoded.decode().body).collect();
    assert_eq!(bodies, every_kind());
}

#[test]
fn a_payload_that_does_not_fit_its_kind_is_kept_as_unknown() {
    // Kind 4 is a resize, which needs 8 bytes. Flags 9 is a stream that does not exist yet.
    for body in [
        Body::Unknown { kind: 4, flags: 0, bytes: b"short".to_vec() },
        Body::Unknown { kind: 1, flags: 9, bytes: b"output".to_vec() },
        Body::Unknown { kind: 6, flags: 0, bytes: [0xff; 40].to_vec() },
    ] {
        let record = Record { seq: 1, output_offset: 0, at_ns: 0, body };
        let bytes = encoded(&record);
        assert_eq!(Record::decode(&bytes), Decoded::Complete(record, bytes.len()));
    }
}

#[test]
fn unknown_kinds_do_not_disturb_the_records_around_them() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(TINY_SEGMENTS);
    append_all(&mut writer, &every_kind());
    let records = scratch.records();
    assert_whole(&records);
    assert_eq!(records.len(), every_kind().len());
}

#[test]
fn a_record_that_no_reader_would_accept_is_refused() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(ONE_SEGMENT);
    let bytes = vec![0; agency_journal::MAX_PAYLOAD_BYTES];
    let refused = writer.append(1, &Body::Checkpoint { at_seq: 0, bytes });
    assert_eq!(refused.err().map(|err| err.kind()), Some(std::io::ErrorKind::InvalidInput));
    writer.append(2, &output("on")).expect("room");
    assert_eq!(scratch.records().len(), 1);
}

#[test]
fn a_journal_is_private_and_not_made_twice() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    let writer = scratch.writer(ONE_SEGMENT);
    let mode = |path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&scratch.dir), 0o700);
    assert_eq!(mode(&scratch.segment(1)), 0o600);
    assert!(agency_journal::Writer::create(writer.dir(), ONE_SEGMENT).is_err());
}

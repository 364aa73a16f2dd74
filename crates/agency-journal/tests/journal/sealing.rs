//! Segments that the daemon has compressed.

use std::fs;
use std::io;
use std::path::Path;

use agency_journal::{GapCause, Reader, seal, sealed_segments};

use crate::fixture::{
    Scratch, TINY_SEGMENTS, append_all, every_kind, gap, output, read_on, rewrite, unzstd, zstd,
};

fn many_segments(scratch: &Scratch) -> agency_journal::Writer {
    let mut writer = scratch.writer(TINY_SEGMENTS);
    append_all(&mut writer, &every_kind());
    append_all(&mut writer, &every_kind());
    writer
}

#[test]
fn all_but_the_newest_segment_can_be_sealed_and_read_as_before() {
    let scratch = Scratch::new();
    let mut writer = many_segments(&scratch);
    let before = scratch.records();
    let sealable = sealed_segments(&scratch.dir).expect("readable");
    assert_eq!(sealable.len(), scratch.files().len() - 1);
    for path in sealable {
        seal(&path, zstd).expect("room");
        assert_eq!(scratch.records(), before);
    }
    assert!(sealed_segments(&scratch.dir).expect("readable").is_empty());
    writer.append(1, &output("on")).expect("room");
    assert_eq!(scratch.records().len(), before.len() + 1);
}

#[test]
fn any_compression_is_possible() {
    fn inverted(bytes: &[u8]) -> io::Result<Vec<u8>> {
        Ok(bytes.iter().map(|byte| !byte).collect())
    }
    fn revert(path: &Path) -> io::Result<Vec<u8>> {
        // Skips the header frame, as zstd does by itself.
        inverted(&fs::read(path)?[8 + 36..])
    }
    let scratch = Scratch::new();
    many_segments(&scratch);
    let before = scratch.records();
    for path in sealed_segments(&scratch.dir).expect("readable") {
        seal(&path, inverted).expect("room");
    }
    assert_eq!(read_on(&mut Reader::open(&scratch.dir, revert).expect("readable")), before);
}

#[test]
fn a_segment_is_sealed_under_a_reader() {
    let scratch = Scratch::new();
    many_segments(&scratch);
    let before = scratch.records();
    let mut reader = scratch.reader();
    let mut seen = vec![reader.next().expect("readable").expect("a record")];
    for path in sealed_segments(&scratch.dir).expect("readable") {
        seal(&path, zstd).expect("room");
        seen.extend(reader.next().expect("readable"));
    }
    seen.extend(read_on(&mut reader));
    assert_eq!(seen, before);
}

#[test]
fn both_forms_at_once_count_as_one() {
    let scratch = Scratch::new();
    many_segments(&scratch);
    let before = scratch.records();
    let raw = fs::read(scratch.segment(1)).expect("there");
    scratch.seal(1);
    fs::write(scratch.segment(1), raw).expect("room");
    assert_eq!(scratch.records(), before);
}

#[test]
fn a_segment_deleted_while_it_was_compressed_does_not_come_back() {
    let scratch = Scratch::new();
    many_segments(&scratch);
    let path = scratch.segment(1);
    let sealed = seal(&path, |bytes| {
        fs::remove_file(&path)?;
        zstd(bytes)
    });
    assert_eq!(sealed.map_err(|err| err.kind()), Err(io::ErrorKind::NotFound));
    assert_eq!(scratch.files()[0], "00000002.aj");
}

#[test]
fn a_sealed_segment_that_cannot_be_unsealed_is_a_gap() {
    let scratch = Scratch::new();
    many_segments(&scratch);
    let before = scratch.records();
    scratch.seal(2);
    let path = scratch.dir.join("00000002.aj.zst");
    let mut bytes = fs::read(&path).expect("there");
    bytes.truncate(60);
    rewrite(&path, &bytes);
    assert!(unzstd(&path).is_err());
    let records = scratch.records();
    let gaps: Vec<_> = records
        .iter()
        .filter(|record| gap(record).is_some_and(|(_, cause)| cause == GapCause::Corrupt))
        .collect();
    assert_eq!(gaps.len(), 1);
    assert_eq!(records.last(), before.last());
    assert_eq!(records.first(), before.first());
}

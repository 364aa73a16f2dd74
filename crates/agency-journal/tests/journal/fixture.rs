//! Small journals for stories.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agency_journal::{
    Body, ExitStatus, GapCause, Limits, Reader, Record, Source, StopSignal, Stream, Writer,
    latest_checkpoint, seal,
};
use tempfile::TempDir;

pub(crate) const ONE_SEGMENT: Limits = Limits { segment_bytes: 1 << 20, max_bytes: None };
/// Every record of more than a few bytes begins a new segment.
pub(crate) const TINY_SEGMENTS: Limits = Limits { segment_bytes: 200, max_bytes: None };

pub(crate) struct Scratch {
    _root: TempDir,
    pub(crate) dir: PathBuf,
}

impl Scratch {
    pub(crate) fn new() -> Scratch {
        let root = tempfile::tempdir().expect("a scratch directory");
        let dir = root.path().join("j");
        Scratch { _root: root, dir }
    }

    pub(crate) fn writer(&self, limits: Limits) -> Writer {
        Writer::create(&self.dir, limits).expect("a new journal")
    }

    pub(crate) fn recovered(&self) -> Writer {
        Writer::recover(&self.dir, ONE_SEGMENT).expect("a journal recovers")
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::open(&self.dir, unzstd).expect("a journal opens")
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        read_on(&mut self.reader())
    }

    pub(crate) fn checkpoint(&self, before: Option<u64>) -> Option<Record> {
        latest_checkpoint(&self.dir, unzstd, before).expect("a journal can be searched")
    }

    pub(crate) fn segment(&self, number: u32) -> PathBuf {
        self.dir.join(format!("{number:08}.aj"))
    }

    /// Returns the file names, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.dir).expect("the journal is there");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("ASCII")).collect();
        names.sort();
        names
    }

    pub(crate) fn rewrite(&self, number: u32, bytes: &[u8]) {
        rewrite(&self.segment(number), bytes);
    }

    pub(crate) fn seal(&self, number: u32) {
        seal(&self.segment(number), zstd).expect("a segment can be sealed");
    }
}

/// Replaces a file by a new one. Truncating it would write it to the disk at once, thousands of times.
pub(crate) fn rewrite(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).and_then(|()| fs::write(path, bytes)).expect("room");
}

pub(crate) fn zstd(bytes: &[u8]) -> io::Result<Vec<u8>> {
    zstd::encode_all(bytes, 1)
}

pub(crate) fn unzstd(path: &Path) -> io::Result<Vec<u8>> {
    zstd::decode_all(fs::File::open(path)?)
}

pub(crate) fn read_on(reader: &mut Reader) -> Vec<Record> {
    std::iter::from_fn(|| reader.next().expect("the journal can be read")).collect()
}

pub(crate) fn output(text: &str) -> Body {
    Body::Output { stream: Stream::Terminal, bytes: text.into() }
}

pub(crate) fn append_all(writer: &mut Writer, bodies: &[Body]) {
    for (at, body) in bodies.iter().enumerate() {
        writer.append(at as u64, body).expect("the disk has room");
    }
}

/// Returns one body of every kind.
pub(crate) fn every_kind() -> Vec<Body> {
    vec![
        Body::Anchor { wall_unix_ns: -5, boottime_ns: 77, boot_id: [9; 16] },
        Body::Resize { cols: 80, rows: 24, x_pixels: 800, y_pixels: 480 },
        output("hello\r\n"),
        Body::Input { source: Source::User, bytes: b"ls\r".to_vec() },
        Body::Input { source: Source::Answer { output_offset: 7 }, bytes: b"\x1b[?6c".to_vec() },
        Body::HiddenInput { source: Source::Send, len: 12 },
        Body::Output { stream: Stream::Stderr, bytes: vec![0xf5, 0x9e, 0, 0xf5] },
        Body::Note { tag: "hook".into(), bytes: b"{}".to_vec() },
        Body::Checkpoint { at_seq: 6, bytes: b"screen".to_vec() },
        Body::Gap { output_bytes: 100, cause: GapCause::KeeperLost },
        Body::Unknown { kind: 200, flags: 3, bytes: b"from the future".to_vec() },
        output("bye\r\n"),
        Body::Exit { status: ExitStatus::Signal(15), stopped_by: Some(StopSignal::Term) },
    ]
}

pub(crate) fn gap(record: &Record) -> Option<(u64, GapCause)> {
    match record.body {
        Body::Gap { output_bytes, cause } => Some((output_bytes, cause)),
        _ => None,
    }
}

pub(crate) fn text_of(records: &[Record]) -> String {
    let outputs = records.iter().filter_map(|record| match &record.body {
        Body::Output { bytes, .. } => Some(String::from_utf8_lossy(bytes)),
        _ => None,
    });
    outputs.collect()
}

/// Asserts that every record begins where the previous one ended, and that seqs have no hole.
pub(crate) fn assert_whole(records: &[Record]) {
    for pair in records.windows(2) {
        assert_eq!(pair[0].seq + 1, pair[1].seq, "{pair:?}");
        assert_eq!(pair[0].end_offset(), pair[1].output_offset, "{pair:?}");
    }
}

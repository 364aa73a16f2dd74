//! A disk that becomes full in the middle of a record, and later has space again.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use agency_journal::{Appendable, Body, Disk, GapCause, Limits, RealDisk, Tail, Writer};

use crate::fixture::{ONE_SEGMENT, Scratch, assert_whole, gap, output, text_of};

/// A real directory with a limited number of free bytes.
#[derive(Clone, Default)]
struct SmallDisk {
    left: Arc<AtomicU64>,
    refuses_truncate: Arc<AtomicBool>,
}

struct SmallFile {
    disk: SmallDisk,
    file: Box<dyn Appendable>,
    len: u64,
}

impl SmallDisk {
    fn with(left: u64) -> SmallDisk {
        let disk = SmallDisk::default();
        disk.left.store(left, SeqCst);
        disk
    }

    fn file(&self, file: Box<dyn Appendable>, len: u64) -> Box<dyn Appendable> {
        Box::new(SmallFile { disk: self.clone(), file, len })
    }
}

impl Disk for SmallDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Appendable>> {
        Ok(self.file(RealDisk.create(path)?, 0))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Appendable>> {
        Ok(self.file(RealDisk.open(path)?, std::fs::metadata(path)?.len()))
    }
}

impl Appendable for SmallFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fitting = bytes.len().min(self.disk.left.load(SeqCst) as usize);
        if fitting == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.disk.left.fetch_sub(fitting as u64, SeqCst);
        self.len += fitting as u64;
        self.file.append(&bytes[..fitting])
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        if self.disk.refuses_truncate.load(SeqCst) {
            return Err(io::Error::other("no"));
        }
        self.disk.left.fetch_add(self.len - len, SeqCst);
        self.len = len;
        self.file.truncate(len)
    }
}

/// Appends a record. Returns whether that was possible.
fn try_append(writer: &mut Writer, text: &str) -> bool {
    match writer.append(1, &output(text)) {
        Ok(_) => true,
        Err(err) => {
            assert_eq!(err.kind(), io::ErrorKind::StorageFull);
            writer.note_lost(text.len() as u64);
            false
        }
    }
}

#[test]
fn a_disk_that_fills_at_any_byte_leaves_whole_records_and_later_a_gap() {
    const LINE: &str = "twelve bytes";
    const LINES: u64 = 3;
    for room in 36..36 + LINES * 48 {
        for limits in [ONE_SEGMENT, Limits { segment_bytes: 150, max_bytes: None }] {
            let scratch = Scratch::new();
            let disk = SmallDisk::with(room);
            let mut writer =
                Writer::create_on(Box::new(disk.clone()), &scratch.dir, limits).expect("room for a header");
            let kept = (0..LINES).filter(|_| try_append(&mut writer, LINE)).count();
            assert_eq!(text_of(&scratch.records()), LINE.repeat(kept), "{room} bytes");
            assert_eq!(writer.output_offset(), LINES * 12);

            disk.left.store(1 << 20, SeqCst);
            assert!(try_append(&mut writer, "back"));
            let records = scratch.records();
            assert_whole(&records);
            assert_eq!(records.last().map(|record| record.output_offset), Some(LINES * 12));
            let lost: u64 = records.iter().filter_map(gap).map(|(bytes, _)| bytes).sum();
            assert_eq!(lost, (LINES - kept as u64) * 12);
            assert!(records.iter().filter_map(gap).all(|(_, cause)| cause == GapCause::DiskFull));
        }
    }
}

#[test]
fn a_torn_record_that_could_not_be_cut_off_is_cut_off_before_the_next() {
    let scratch = Scratch::new();
    let disk = SmallDisk::with(36 + 48 + 20);
    let mut writer = Writer::create_on(Box::new(disk.clone()), &scratch.dir, ONE_SEGMENT).expect("room");
    assert!(try_append(&mut writer, "twelve bytes"));
    disk.refuses_truncate.store(true, SeqCst);
    assert!(writer.append(1, &output("twelve bytes")).is_err());
    writer.note_lost(12);
    disk.left.store(1 << 20, SeqCst);
    assert!(writer.append(1, &output("still not")).is_err(), "nothing goes behind half a record");
    writer.note_lost(9);
    assert_eq!(text_of(&scratch.records()), "twelve bytes");
    disk.refuses_truncate.store(false, SeqCst);
    assert!(try_append(&mut writer, "back"));
    assert_eq!(gap(&scratch.records()[1]), Some((21, GapCause::DiskFull)));
    assert_whole(&scratch.records());
}

#[test]
fn a_loss_without_output_is_recorded_too() {
    let scratch = Scratch::new();
    let mut writer = scratch.writer(ONE_SEGMENT);
    writer.note_lost(0);
    writer.append(1, &Body::Resize { cols: 1, rows: 2, x_pixels: 0, y_pixels: 0 }).expect("room");
    assert_eq!(gap(&scratch.records()[0]), Some((0, GapCause::DiskFull)));
}

#[test]
fn a_live_follower_gets_the_gap_with_the_record_after_it() {
    let scratch = Scratch::new();
    let disk = SmallDisk::with(36 + 60);
    let mut writer = Writer::create_on(Box::new(disk.clone()), &scratch.dir, ONE_SEGMENT).expect("room");
    assert!(!try_append(&mut writer, &"x".repeat(100)));
    disk.left.store(1 << 20, SeqCst);
    let appended = writer.append(5, &output("back")).expect("room");
    assert_eq!((appended.seq, appended.output_offset), (2, 100));
    let live = appended.encoded.to_vec();
    let mut stored = Vec::new();
    Tail::open(&scratch.dir, 1).expect("readable").read(1 << 20, &mut stored).expect("readable");
    assert_eq!(live, stored);
}

//! The writing end of a journal: appends records, rotates segments and deletes the oldest.
//!
//! Reads no clock, syncs nothing, maps nothing: plain write(2). It cuts off an incomplete record if it can,
//! and after an error it continues as soon as the disk works again.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::body::{BodyRef, GapCause};
use crate::disk::{Appendable, Disk, RealDisk};
use crate::record::{self, MAX_PAYLOAD_BYTES, RECORD_HEADER_BYTES, Records, records};
use crate::retention;
use crate::segment::{self, SEGMENT_HEADER_BYTES, Segment, SegmentHeader};
use crate::walk::Walk;

/// The sizes of segments and of the whole journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The size at which the writer begins a new segment.
    pub segment_bytes: u64,
    /// The size of all segments together on disk. The oldest ones are deleted first. `None`: nothing is ever
    /// deleted.
    pub max_bytes: Option<u64>,
}

impl Limits {
    /// The limits for a run in a terminal.
    pub const TERMINAL: Limits = Limits { segment_bytes: 8 << 20, max_bytes: Some(256 << 20) };
    /// The limits for a run with pipes, whose conversation must stay complete.
    pub const PIPES: Limits = Limits { segment_bytes: 8 << 20, max_bytes: None };
}

/// Frees a larger buffer, which grew for one huge record (a checkpoint).
const KEEP_BUFFER_BYTES: usize = 256 * 1024;

/// Appends records to a journal.
pub struct Writer {
    dir: PathBuf,
    limits: Limits,
    disk: Box<dyn Disk>,
    file: Box<dyn Appendable>,
    number: u32,
    /// The length of the segment up to the end of its last complete record.
    len: u64,
    /// Whether bytes of a failed append may follow `len`.
    is_torn: bool,
    next_seq: u64,
    /// The output offset without lost bytes that are not recorded yet.
    recorded_offset: u64,
    lost: Option<u64>,
    removed: Option<u64>,
    buffer: Vec<u8>,
}

/// The result of an append.
#[derive(Clone, Copy, Debug)]
pub struct Appended<'w> {
    /// The seq of the record itself. Gap records may come before it.
    pub seq: u64,
    /// The output offset of the record.
    pub output_offset: u64,
    /// All records that this append wrote, encoded, in order: a live follower needs all of them.
    pub encoded: &'w [u8],
}

impl<'w> Appended<'w> {
    /// Splits `encoded` into records.
    pub fn records(&self) -> Records<'w> {
        records(self.encoded)
    }
}

impl Writer {
    /// Creates a journal. Makes the directory (0700) if it is missing. It must not hold a journal yet.
    pub fn create(dir: &Path, limits: Limits) -> io::Result<Writer> {
        Writer::create_on(Box::new(RealDisk), dir, limits)
    }

    /// Like [`Writer::create`], on another [`Disk`].
    pub fn create_on(disk: Box<dyn Disk>, dir: &Path, limits: Limits) -> io::Result<Writer> {
        make_private(dir)?;
        if !segment::list(dir)?.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the directory already contains a journal",
            ));
        }
        let header = SegmentHeader { number: 1, first_seq: 1, first_offset: 0 };
        let file = new_segment(disk.as_ref(), dir, &header)?;
        Ok(Writer::at(disk, file, dir, limits, header, SEGMENT_HEADER_BYTES as u64))
    }

    /// Continues a journal whose writer died: cuts off a torn tail, and continues seq and offset.
    pub fn recover(dir: &Path, limits: Limits) -> io::Result<Writer> {
        Writer::recover_on(Box::new(RealDisk), dir, limits)
    }

    /// Like [`Writer::recover`], on another [`Disk`].
    pub fn recover_on(disk: Box<dyn Disk>, dir: &Path, limits: Limits) -> io::Result<Writer> {
        make_private(dir)?;
        let Some(newest) = segment::list(dir)?.pop() else {
            return Writer::create_on(disk, dir, limits);
        };
        if newest.is_sealed {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the newest segment is sealed"));
        }
        let end = Walk::to_end(dir)?;
        let header =
            SegmentHeader { number: newest.number, first_seq: end.next_seq, first_offset: end.next_offset };
        let mut file = disk.open(&newest.path)?;
        if fs::metadata(&newest.path)?.len() < SEGMENT_HEADER_BYTES as u64 {
            // Only a power loss leaves this: the rename survived, the header did not.
            file.truncate(0)?;
            append_all(file.as_mut(), &header.encode())?;
        }
        file.truncate(end.position)?;
        Ok(Writer::at(disk, file, dir, limits, header, end.position))
    }

    fn at(
        disk: Box<dyn Disk>,
        file: Box<dyn Appendable>,
        dir: &Path,
        limits: Limits,
        next: SegmentHeader,
        len: u64,
    ) -> Writer {
        Writer {
            dir: dir.to_path_buf(),
            limits,
            disk,
            file,
            number: next.number,
            len,
            is_torn: false,
            next_seq: next.first_seq,
            recorded_offset: next.first_offset,
            lost: None,
            removed: None,
            buffer: Vec::new(),
        }
    }

    /// Returns the directory of the journal.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the seq of the next record.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Returns the number of output bytes so far, lost ones included.
    pub fn output_offset(&self) -> u64 {
        self.recorded_offset.saturating_add(self.lost.unwrap_or(0))
    }

    /// Counts output that could not be written. The offset moves on, and the next successful append writes a
    /// gap first.
    pub fn note_lost(&mut self, output_bytes: u64) {
        self.lost = Some(self.lost.unwrap_or(0).saturating_add(output_bytes));
    }

    /// Whether output was lost and no gap in the journal says so yet.
    pub fn owes_gap(&self) -> bool {
        self.lost.is_some()
    }

    /// Begins a new segment if another process deleted or cut the current one, or its directory: readers would not find
    /// later records in it. Sequence numbers go on.
    pub fn continue_after_damage(&mut self) -> io::Result<()> {
        let path = Segment::raw(&self.dir, self.number).path;
        if fs::metadata(path).is_ok_and(|meta| meta.len() >= self.len) {
            return Ok(());
        }
        make_private(&self.dir)?;
        self.rotate();
        Ok(())
    }

    /// Frees the memory that large records needed.
    pub fn release_memory(&mut self) {
        self.buffer = Vec::new();
    }

    /// Writes one record, and pending gaps before it. After an error the file contains nothing of it.
    pub fn append<'b>(&mut self, at_ns: u64, body: impl Into<BodyRef<'b>>) -> io::Result<Appended<'_>> {
        let body = body.into();
        if body.payload_len() > MAX_PAYLOAD_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the record is too large"));
        }
        self.cut_torn_tail()?;
        self.rotate_if_full(body.payload_len());
        let end = self.encode(at_ns, &body);
        self.write_buffer()?;
        self.len += self.buffer.len() as u64;
        (self.next_seq, self.recorded_offset) = (end.next_seq, end.next_offset);
        (self.lost, self.removed) = (None, None);
        Ok(Appended {
            seq: end.next_seq - 1,
            output_offset: end.next_offset.saturating_sub(body.output_advance()),
            encoded: &self.buffer,
        })
    }

    fn encode(&mut self, at_ns: u64, body: &BodyRef<'_>) -> RecordsEnd {
        self.buffer.clear();
        self.buffer.shrink_to(KEEP_BUFFER_BYTES);
        let lost = self.lost.map(|bytes| BodyRef::Gap { output_bytes: bytes, cause: GapCause::DiskFull });
        let removed =
            self.removed.map(|bytes| BodyRef::Gap { output_bytes: bytes, cause: GapCause::Retention });
        let mut end = RecordsEnd { next_seq: self.next_seq, next_offset: self.recorded_offset };
        for body in lost.iter().chain(&removed).chain([body]) {
            record::encode_into(&mut self.buffer, end.next_seq, end.next_offset, at_ns, body);
            end.next_seq += 1;
            end.next_offset = end.next_offset.saturating_add(body.output_advance());
        }
        end
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        let written = append_all(self.file.as_mut(), &self.buffer);
        if written.is_err() {
            self.is_torn = true;
            // If this fails too, the next append tries again before it writes.
            self.cut_torn_tail()?;
        }
        written
    }

    fn cut_torn_tail(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.file.truncate(self.len)?;
            self.is_torn = false;
        }
        Ok(())
    }

    fn rotate_if_full(&mut self, payload_len: usize) {
        let record_bytes = (RECORD_HEADER_BYTES + payload_len) as u64;
        let has_records = self.len > SEGMENT_HEADER_BYTES as u64;
        if has_records && self.len + record_bytes > self.limits.segment_bytes {
            self.remove_oldest();
            self.rotate();
        }
    }

    /// Begins a new segment. If that fails, the old one grows and the next append tries again, so that no
    /// record is lost.
    fn rotate(&mut self) {
        let header = SegmentHeader {
            number: self.number.saturating_add(1),
            first_seq: self.next_seq,
            first_offset: self.recorded_offset,
        };
        if let Ok(file) = new_segment(self.disk.as_ref(), &self.dir, &header) {
            self.file = file;
            self.number = header.number;
            self.len = SEGMENT_HEADER_BYTES as u64;
        }
    }

    fn remove_oldest(&mut self) {
        let Some(max_bytes) = self.limits.max_bytes else { return };
        // The next segment needs space too.
        let room = max_bytes.saturating_sub(self.limits.segment_bytes);
        let removed = retention::remove_oldest(&self.dir, room);
        if removed.segments > 0 {
            self.removed = Some(self.removed.unwrap_or(0).saturating_add(removed.output_bytes));
        }
    }
}

/// The end of a sequence of records.
struct RecordsEnd {
    next_seq: u64,
    next_offset: u64,
}

fn make_private(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Creates a segment. It gets its name only when its header is complete, so that no reader sees half of it.
fn new_segment(disk: &dyn Disk, dir: &Path, header: &SegmentHeader) -> io::Result<Box<dyn Appendable>> {
    let path = Segment::raw(dir, header.number).path;
    let unfinished = path.with_extension("aj.tmp");
    let mut file = disk.create(&unfinished)?;
    append_all(file.as_mut(), &header.encode())?;
    fs::rename(&unfinished, &path)?;
    Ok(file)
}

fn append_all(file: &mut dyn Appendable, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.append(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
            Err(err) => return Err(err),
        }
    }
    Ok(())
}

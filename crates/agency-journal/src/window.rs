//! The bytes of one segment, from a position on, and the search for the next complete record in them.
//!
//! Knows nothing of other segments. Holds the bytes of one read. Only while it searches for the end of damage
//! it may hold up to a whole segment.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::buffer::spare_capacity;
use rustix::io::{Errno, pread};

use crate::record::{self, Parsed, RECORD_HEADER_BYTES, RecordHeader};
use crate::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};

const READ_BYTES: usize = 64 * 1024;

pub(crate) struct Window {
    /// `None` for an unsealed segment, whose bytes are all in `buf`.
    file: Option<File>,
    /// The position of `buf[0]` in the segment.
    base: u64,
    buf: Vec<u8>,
    /// The start of the bytes that were not taken yet.
    at: usize,
    /// The record that was taken last.
    taken: Range<usize>,
}

impl Window {
    /// Returns the segment's header too, if it is complete.
    pub(crate) fn over_file(file: File) -> io::Result<(Window, Option<SegmentHeader>)> {
        let mut start = [0; SEGMENT_HEADER_BYTES];
        let header = match file.read_exact_at(&mut start, 0) {
            Ok(()) => SegmentHeader::decode(&start)?,
            Err(err) if err.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(err) => return Err(err),
        };
        let base = SEGMENT_HEADER_BYTES as u64;
        Ok((Window { file: Some(file), base, buf: Vec::new(), at: 0, taken: 0..0 }, header))
    }

    pub(crate) fn over_bytes(buf: Vec<u8>) -> io::Result<(Window, Option<SegmentHeader>)> {
        let header = SegmentHeader::decode(&buf)?;
        let at = SEGMENT_HEADER_BYTES.min(buf.len());
        Ok((Window { file: None, base: 0, buf, at, taken: 0..0 }, header))
    }

    /// Returns the position in the segment of the first byte that was not taken.
    pub(crate) fn position(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Moves to the next complete record and returns its header; `None` at the end of the bytes.
    ///
    /// Accepts only a record whose seq fits. Output may contain encoded records (the agent printed a
    /// journal), and if the record around them is damaged they must not be taken for records of this journal.
    pub(crate) fn find(&mut self, next_seq: u64, least_seq: Option<u64>) -> io::Result<Option<RecordHeader>> {
        let mut skipped = 0;
        loop {
            let ahead = self.ahead(skipped);
            let is_foreign = RecordHeader::peek(ahead)
                .is_some_and(|header| !fits(header.seq, skipped, next_seq, least_seq));
            match if is_foreign { Parsed::Corrupt } else { record::parse(ahead) } {
                Parsed::Complete(header) => {
                    self.at += skipped;
                    return Ok(Some(header));
                }
                Parsed::Incomplete if self.fill()? => {}
                Parsed::Incomplete if self.ahead(skipped).is_empty() => return Ok(None),
                // The file ends inside it: a torn record, or a damaged length.
                Parsed::Incomplete | Parsed::Corrupt => skipped += record::next_mark(self.ahead(skipped)),
            }
        }
    }

    fn ahead(&self, skipped: usize) -> &[u8] {
        self.buf.get(self.at + skipped..).unwrap_or_default()
    }

    /// Steps over the record that `find` returned.
    pub(crate) fn take(&mut self, header: &RecordHeader) {
        self.taken = self.at..self.at + header.encoded_len();
        self.at = self.taken.end;
    }

    /// Returns the record that was taken last, encoded.
    pub(crate) fn taken(&self) -> &[u8] {
        self.buf.get(self.taken.clone()).unwrap_or_default()
    }

    /// Forgets bytes that were read but not taken: a torn tail may be cut off and replaced.
    pub(crate) fn forget_ahead(&mut self) {
        if self.file.is_some() {
            self.buf.truncate(self.at);
        }
    }

    fn fill(&mut self) -> io::Result<bool> {
        if self.file.is_some() {
            self.drop_taken();
        }
        let Some(file) = &self.file else { return Ok(false) };
        let end = self.base + self.buf.len() as u64;
        self.buf.reserve(READ_BYTES);
        match pread(file, spare_capacity(&mut self.buf), end) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(true),
            Err(err) => Err(err.into()),
        }
    }

    fn drop_taken(&mut self) {
        self.base += self.at as u64;
        self.buf.drain(..self.at);
        (self.at, self.taken) = (0, 0..0);
        // One huge record must not hold its memory forever.
        if self.buf.len() < READ_BYTES {
            self.buf.shrink_to(4 * READ_BYTES);
        }
    }
}

/// Whether a seq is possible here. Seqs have no holes, so `skipped` damaged bytes hide at most that number of
/// bytes divided by the size of a header.
fn fits(seq: u64, skipped: usize, next_seq: u64, least_seq: Option<u64>) -> bool {
    let first = next_seq.max(least_seq.unwrap_or(0));
    let hidden = (skipped / RECORD_HEADER_BYTES) as u64;
    seq >= first && (least_seq.is_none() || seq - first <= hidden)
}

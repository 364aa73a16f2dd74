//! The bytes of one segment, from a position on, and the search for the next whole record in them.
//!
//! Knows nothing of other segments. Holds at most one segment's worth of bytes, and that only while it
//! looks for the end of a damaged place; otherwise one read.

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
    /// `None`: the bytes are all here (a segment that was unsealed).
    file: Option<File>,
    /// Position in the segment of `buf[0]`.
    base: u64,
    buf: Vec<u8>,
    /// Start of what was not taken yet.
    at: usize,
    /// The record that was taken last.
    taken: Range<usize>,
}

impl Window {
    /// The segment's header too, if it is whole.
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

    /// Where the first byte that was not taken stands in the segment.
    pub(crate) fn position(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Moves to the next whole record and returns its header; `None` at the end of what is there.
    ///
    /// Only a record whose seq fits is believed: output may contain encoded records (somebody printed a
    /// journal), and when the record around them is damaged they must not be taken for ours.
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
                // The end of the file is inside it: a torn record, or one whose length is damaged.
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

    /// The record that was stepped over last, encoded.
    pub(crate) fn taken(&self) -> &[u8] {
        self.buf.get(self.taken.clone()).unwrap_or_default()
    }

    /// Forgets what was read but not taken: a torn tail may be cut off and written anew.
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
        // One huge record must not hold its memory for ever.
        if self.buf.len() < READ_BYTES {
            self.buf.shrink_to(4 * READ_BYTES);
        }
    }
}

/// Seqs have no holes, so a damaged place of so many bytes hides at most so many records.
fn fits(seq: u64, skipped: usize, next_seq: u64, least_seq: Option<u64>) -> bool {
    let first = next_seq.max(least_seq.unwrap_or(0));
    let hidden = (skipped / RECORD_HEADER_BYTES) as u64;
    seq >= first && (least_seq.is_none() || seq - first <= hidden)
}

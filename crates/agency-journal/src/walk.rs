//! A walk over the records of a journal, from segment to segment, while the files change.
//!
//! Knows neither how to decompress nor what a record means. `Reader` and `Tail` use it. Meanwhile the keeper
//! appends to segments, the daemon seals them, and retention deletes them. Missing seqs become one gap
//! record.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::body::{Body, GapCause};
use crate::record::{Record, RecordHeader};
use crate::segment::{self, SEGMENT_HEADER_BYTES, Segment, SegmentHeader};
use crate::window::Window;

/// Each failed attempt means that a segment was sealed or deleted meanwhile.
const ENTER_ATTEMPTS: usize = 16;

pub(crate) struct Walk {
    dir: PathBuf,
    open: Option<OpenSegment>,
    /// The segment that is open or was open last; 0 before the first.
    number: u32,
    next_seq: u64,
    next_offset: u64,
    /// Records before this one are skipped silently.
    from_seq: u64,
}

struct OpenSegment {
    window: Window,
    /// The cause of a hole before the first record of this segment, or in it.
    hole: GapCause,
    /// No record of this segment has a smaller seq; `None` if that is not known.
    least_seq: Option<u64>,
    /// A later segment exists, so no more records will come to this one.
    has_successor: bool,
}

pub(crate) enum WalkStep {
    /// Its bytes are `Walk::bytes` until the next step.
    Record(RecordHeader),
    Gap(Record),
    /// There is nothing more now; ask again later.
    Tail,
    /// The next segment is compressed: call `enter_bytes` or `pass`.
    Sealed(Segment),
}

pub(crate) struct WalkEnd {
    pub(crate) next_seq: u64,
    pub(crate) next_offset: u64,
    /// In the newest segment, after its last complete record.
    pub(crate) position: u64,
}

impl Walk {
    /// Starts at record `from_seq`.
    pub(crate) fn new(dir: &Path, from_seq: u64) -> io::Result<Walk> {
        let mut walk = Walk::at_beginning(dir);
        walk.seek(from_seq)?;
        Ok(walk)
    }

    fn at_beginning(dir: &Path) -> Walk {
        Walk { dir: dir.to_path_buf(), open: None, number: 0, next_seq: 1, next_offset: 0, from_seq: 1 }
    }

    pub(crate) fn next_seq(&self) -> u64 {
        self.next_seq.max(self.from_seq)
    }

    pub(crate) fn seek(&mut self, from_seq: u64) -> io::Result<()> {
        // Seqs begin at 1. A caller that asks for 0 wants everything.
        let from_seq = from_seq.max(1);
        if from_seq != self.next_seq {
            self.next_offset = 0;
        }
        (self.open, self.number) = (None, 0);
        (self.next_seq, self.from_seq) = (from_seq, from_seq);
        if segment::list(&self.dir)?.first().is_some_and(|oldest| oldest.number == 1) {
            (self.next_seq, self.next_offset) = (1, 0);
        }
        self.skip_segments_before(from_seq)
    }

    /// Moves to the newest segment that is known to begin at this seq or before it.
    fn skip_segments_before(&mut self, seq: u64) -> io::Result<()> {
        for segment in segment::list(&self.dir)?.iter().rev() {
            match segment.header() {
                Ok(Some(header)) if header.first_seq <= seq => {
                    self.stand_before(segment.number, &header);
                    break;
                }
                // Damaged or just deleted: an older segment leads there as well.
                Ok(_) => {}
                Err(err) if err.kind() == io::ErrorKind::NotFound => {}
                Err(err) => return Err(err),
            }
        }
        Ok(())
    }

    fn stand_before(&mut self, number: u32, header: &SegmentHeader) {
        self.number = number - 1;
        self.next_seq = header.first_seq;
        self.next_offset = header.first_offset;
    }

    pub(crate) fn step(&mut self) -> io::Result<WalkStep> {
        loop {
            let step = if self.open.is_some() { self.look()? } else { self.enter_next()? };
            if let Some(step) = step {
                return Ok(step);
            }
        }
    }

    /// Returns the record of the last step, encoded.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.open.as_ref().map_or(&[], |open| open.window.taken())
    }

    /// Returns `None` if something changed and the caller must look again.
    fn look(&mut self) -> io::Result<Option<WalkStep>> {
        let Some(open) = &mut self.open else { return Ok(None) };
        match open.window.find(self.next_seq, open.least_seq)? {
            Some(header) => Ok(self.meet(header)),
            None if open.has_successor => {
                self.open = None;
                Ok(None)
            }
            None => {
                open.window.forget_ahead();
                self.look_for_successor()
            }
        }
    }

    fn look_for_successor(&mut self) -> io::Result<Option<WalkStep>> {
        if self.successor()?.is_none() {
            return Ok(Some(WalkStep::Tail));
        }
        // The last records may have been written between that look and the rotation: look once more.
        if let Some(open) = &mut self.open {
            open.has_successor = true;
        }
        Ok(None)
    }

    fn meet(&mut self, header: RecordHeader) -> Option<WalkStep> {
        if header.seq > self.next_seq && header.seq > self.from_seq {
            return Some(WalkStep::Gap(self.cross_hole(&header)));
        }
        let open = self.open.as_mut()?;
        open.window.take(&header);
        (open.hole, open.least_seq) = (GapCause::Corrupt, Some(0));
        if header.seq < self.next_seq {
            return None;
        }
        self.next_offset = header.end_offset(open.window.taken());
        self.next_seq = header.seq.saturating_add(1);
        (header.seq >= self.from_seq).then_some(WalkStep::Record(header))
    }

    /// Returns a gap record for the records that are missing before this one.
    fn cross_hole(&mut self, after: &RecordHeader) -> Record {
        let cause = self.open.as_ref().map_or(GapCause::Corrupt, |open| open.hole);
        let output_bytes = after.output_offset.saturating_sub(self.next_offset);
        let (seq, output_offset) = match cause {
            // A retention gap describes the bytes before it. Other gaps describe the bytes that would follow.
            GapCause::Retention => (after.seq - 1, after.output_offset),
            _ => (self.next_seq(), self.next_offset),
        };
        (self.next_seq, self.next_offset) = (after.seq, after.output_offset);
        Record { seq, output_offset, at_ns: after.at_ns, body: Body::Gap { output_bytes, cause } }
    }

    fn enter_next(&mut self) -> io::Result<Option<WalkStep>> {
        for _ in 0..ENTER_ATTEMPTS {
            let Some(segment) = self.successor()? else { return Ok(Some(WalkStep::Tail)) };
            if segment.is_sealed {
                return Ok(Some(WalkStep::Sealed(segment)));
            }
            match File::open(&segment.path) {
                Ok(file) => {
                    let (window, header) = Window::over_file(file)?;
                    self.enter(segment.number, window, header, false);
                    return Ok(None);
                }
                // Sealed or deleted since it was listed.
                Err(err) if err.kind() == io::ErrorKind::NotFound => {}
                Err(err) => return Err(err),
            }
        }
        Err(io::Error::new(io::ErrorKind::NotFound, "the segments change too quickly"))
    }

    /// Continues in a sealed segment, whose bytes the caller has unsealed.
    pub(crate) fn enter_bytes(&mut self, segment: &Segment, bytes: Vec<u8>) -> io::Result<()> {
        let (window, header) = Window::over_bytes(bytes)?;
        // The newest segment is never sealed.
        self.enter(segment.number, window, header, true);
        Ok(())
    }

    fn enter(&mut self, number: u32, window: Window, header: Option<SegmentHeader>, has_successor: bool) {
        let follows = number == self.number.saturating_add(1);
        let hole = if follows { GapCause::Corrupt } else { GapCause::Retention };
        let least_seq = header.map(|header| header.first_seq);
        self.number = number;
        self.open = Some(OpenSegment { window, hole, least_seq, has_successor });
    }

    /// Skips a sealed segment: the caller gets its records elsewhere.
    pub(crate) fn pass(&mut self, sealed: &Segment) -> io::Result<()> {
        self.number = sealed.number;
        let Some(next) = self.successor()? else { return Ok(()) };
        if next.number == sealed.number.saturating_add(1)
            && let Some(header) = next.header()?
        {
            self.stand_before(next.number, &header);
        }
        Ok(())
    }

    fn successor(&self) -> io::Result<Option<Segment>> {
        Ok(segment::list(&self.dir)?.into_iter().find(|segment| segment.number > self.number))
    }

    /// Finds the end of a journal whose writer is gone.
    pub(crate) fn to_end(dir: &Path) -> io::Result<WalkEnd> {
        let mut walk = Walk::at_beginning(dir);
        walk.skip_segments_before(u64::MAX)?;
        // Skips all records: only the end matters.
        walk.from_seq = u64::MAX;
        loop {
            match walk.step()? {
                WalkStep::Record(_) | WalkStep::Gap(_) => {}
                WalkStep::Sealed(segment) => walk.pass(&segment)?,
                WalkStep::Tail => break,
            }
        }
        let position = walk.open.map_or(SEGMENT_HEADER_BYTES as u64, |open| open.window.position());
        Ok(WalkEnd { next_seq: walk.next_seq, next_offset: walk.next_offset, position })
    }
}

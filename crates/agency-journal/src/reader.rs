//! The reading end of a journal: one record after another, sealed segments included, also while the journal
//! grows.

use std::io;
use std::path::Path;

use crate::record::Record;
use crate::segment::{Segment, Unseal};
use crate::walk::{Walk, WalkStep};

/// Reads the records of a journal in order.
pub struct Reader {
    walk: Walk,
    unseal: Unseal,
}

impl Reader {
    /// Opens a journal before its first record.
    pub fn open(dir: &Path, unseal: Unseal) -> io::Result<Reader> {
        Ok(Reader { walk: Walk::new(dir, 1)?, unseal })
    }

    /// Moves before record `seq`. If that record is gone, a gap (or the first record that exists) comes next.
    pub fn seek(&mut self, seq: u64) -> io::Result<()> {
        self.walk.seek(seq)
    }

    /// Returns the seq of the next record, if nothing is missing.
    pub fn next_seq(&self) -> u64 {
        self.walk.next_seq()
    }

    /// Returns the next record, or `None` at the tail: more may come, so call again later. Missing records
    /// appear as one `Gap` with the number of bytes that are known to be missing (after a `seek` to a deleted
    /// record: since the beginning).
    #[expect(clippy::should_implement_trait, reason = "an iterator must not go on after None; this one does")]
    pub fn next(&mut self) -> io::Result<Option<Record>> {
        loop {
            match self.walk.step()? {
                WalkStep::Record(header) => return Ok(Some(header.record(self.walk.bytes()))),
                WalkStep::Gap(gap) => return Ok(Some(gap)),
                WalkStep::Tail => return Ok(None),
                WalkStep::Sealed(segment) => self.unseal(&segment)?,
            }
        }
    }

    fn unseal(&mut self, segment: &Segment) -> io::Result<()> {
        match segment.unsealed(self.unseal)? {
            Some(bytes) => self.walk.enter_bytes(segment, bytes),
            // The walk continues after it, with a gap.
            None => Ok(()),
        }
    }
}

//! The reading end of a journal: record after record, sealed segments included, and on as it grows.

use std::io;
use std::path::Path;

use crate::record::Record;
use crate::segment::{Segment, Unseal};
use crate::walk::{Step, Walk};

pub struct Reader {
    walk: Walk,
    unseal: Unseal,
}

impl Reader {
    /// Stands before the first record.
    pub fn open(dir: &Path, unseal: Unseal) -> io::Result<Reader> {
        Ok(Reader { walk: Walk::new(dir, 1)?, unseal })
    }

    /// Stands before record `seq`. If that is gone, a gap (or the first one there is) comes next.
    pub fn seek(&mut self, seq: u64) -> io::Result<()> {
        self.walk.seek(seq)
    }

    /// The seq of the record that comes next, if nothing is missing.
    pub fn next_seq(&self) -> u64 {
        self.walk.next_seq()
    }

    /// `None` at the tail: more may come, call again later. Missing records show as one `Gap`, whose
    /// count is what is known to be missing (after a `seek` to a deleted record: since the beginning).
    #[expect(clippy::should_implement_trait, reason = "an iterator must not go on after None; this one does")]
    pub fn next(&mut self) -> io::Result<Option<Record>> {
        loop {
            match self.walk.step()? {
                Step::Record(header) => return Ok(Some(header.record(self.walk.bytes()))),
                Step::Gap(gap) => return Ok(Some(gap)),
                Step::Tail => return Ok(None),
                Step::Sealed(segment) => self.unseal(&segment)?,
            }
        }
    }

    fn unseal(&mut self, segment: &Segment) -> io::Result<()> {
        match segment.unsealed(self.unseal)? {
            Some(bytes) => self.walk.enter_bytes(segment, bytes),
            // The walk goes on behind it, with a gap.
            None => Ok(()),
        }
    }
}

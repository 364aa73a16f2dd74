//! The raw encoded records of a journal from a given seq on, in bounded portions, for a follower that lags.
//!
//! The files are the queue, so nothing is held in memory for it. Does not decompress: the daemon reads the
//! segments that it has sealed.

use std::io;
use std::path::Path;

use crate::walk::{Walk, WalkStep};

/// Reads encoded records for a follower.
pub struct Tail {
    walk: Walk,
}

/// The result of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// At least one complete record was added to the buffer.
    Records,
    /// There is nothing more now.
    CaughtUp,
    /// These records are in sealed segments. The tail continues after them.
    Sealed {
        /// The first record.
        from_seq: u64,
        /// The first record after them.
        until_seq: u64,
    },
}

impl Tail {
    /// Opens the journal before record `seq`.
    pub fn open(dir: &Path, seq: u64) -> io::Result<Tail> {
        Ok(Tail { walk: Walk::new(dir, seq)? })
    }

    /// Returns the seq of the next record. The tail has caught up when this is the writer's `next_seq`.
    pub fn next_seq(&self) -> u64 {
        self.walk.next_seq()
    }

    /// Adds complete records to `out` until this call has added `enough` bytes. Adds at most one record more.
    pub fn read(&mut self, enough: usize, out: &mut Vec<u8>) -> io::Result<Chunk> {
        let start = out.len();
        while out.len() - start < enough.max(1) {
            match self.walk.step()? {
                WalkStep::Record(_) => out.extend_from_slice(self.walk.bytes()),
                WalkStep::Gap(gap) => gap.encode_into(out),
                WalkStep::Tail if out.len() == start => return Ok(Chunk::CaughtUp),
                WalkStep::Sealed(segment) if out.len() == start => {
                    let from_seq = self.walk.next_seq();
                    self.walk.pass(&segment)?;
                    return Ok(Chunk::Sealed { from_seq, until_seq: self.walk.next_seq() });
                }
                // Return the records found so far. The next call reports this step.
                WalkStep::Tail | WalkStep::Sealed(_) => break,
            }
        }
        Ok(Chunk::Records)
    }
}

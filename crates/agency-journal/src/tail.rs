//! The raw encoded records of a journal from some seq on, in bounded portions: for a follower that lags.
//!
//! The files are the queue, so nothing is held in memory for it. Does not decompress: a segment that the
//! daemon sealed is the daemon's to read.

use std::io;
use std::path::Path;

use crate::walk::{Step, Walk};

pub struct Tail {
    walk: Walk,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// At least one whole record was added to the buffer.
    Records,
    /// Nothing more now.
    CaughtUp,
    /// These records are in sealed segments; the tail stands behind them now.
    Sealed { from_seq: u64, until_seq: u64 },
}

impl Tail {
    /// Stands before record `seq`.
    pub fn open(dir: &Path, seq: u64) -> io::Result<Tail> {
        Ok(Tail { walk: Walk::new(dir, seq)? })
    }

    /// The seq of the record that comes next. Caught up with a writer when equal to its `next_seq`.
    pub fn next_seq(&self) -> u64 {
        self.walk.next_seq()
    }

    /// Adds whole records to `out` until this call added `enough` bytes: at most one record more than that.
    pub fn read(&mut self, enough: usize, out: &mut Vec<u8>) -> io::Result<Chunk> {
        let start = out.len();
        while out.len() - start < enough.max(1) {
            match self.walk.step()? {
                Step::Record(_) => out.extend_from_slice(self.walk.bytes()),
                Step::Gap(gap) => gap.encode_into(out),
                Step::Tail if out.len() == start => return Ok(Chunk::CaughtUp),
                Step::Sealed(segment) if out.len() == start => {
                    let from_seq = self.walk.next_seq();
                    self.walk.pass(&segment)?;
                    return Ok(Chunk::Sealed { from_seq, until_seq: self.walk.next_seq() });
                }
                // What was found so far goes first; the next call says it.
                Step::Tail | Step::Sealed(_) => break,
            }
        }
        Ok(Chunk::Records)
    }
}

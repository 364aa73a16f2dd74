//! The append-only journal of a run: every byte in and out, resizes and the exit, each with its time.
//!
//! Knows nothing of keepers, daemons or terminals, reads no clock and starts no process. The keeper writes
//! (`Writer`) and serves followers that lag (`Tail`). The daemon reads (`Reader`), seals old segments
//! (`sealed_segments`, `seal`) and finds where to begin (`latest_checkpoint`).

#![warn(missing_docs)]

mod body;
mod checkpoint;
mod codec;
mod disk;
mod payload;
mod reader;
mod record;
mod retention;
mod segment;
mod tail;
mod walk;
mod window;
mod writer;

pub use body::{Body, BodyRef, ExitStatus, GapCause, Source, StopSignal, Stream};
pub use checkpoint::latest_checkpoint;
pub use disk::{Appendable, Disk, RealDisk};
pub use reader::Reader;
pub use record::{
    Decoded, Encoded, MAX_PAYLOAD_BYTES, RECORD_HEADER_BYTES, Record, RecordHeader, Records, records,
};
pub use segment::{Unseal, seal, sealed_segments};
pub use tail::{Chunk, Tail};
pub use writer::{Appended, Limits, Writer};

//! Deletes the oldest segments of a journal that has grown too large.

use std::fs;
use std::path::Path;

use crate::segment::{self, Segment};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RemovedSegments {
    pub(crate) segments: usize,
    /// The number according to the headers. A damaged header counts as 0.
    pub(crate) output_bytes: u64,
}

/// Deletes the oldest segments until the rest takes at most `room` bytes on disk. The newest segment always
/// stays.
///
/// Stops at the first error: a journal that is too large is better than one with holes.
pub(crate) fn remove_oldest(dir: &Path, room: u64) -> RemovedSegments {
    let mut removed = RemovedSegments::default();
    let Ok(segments) = segment::list(dir) else { return removed };
    let sizes: Vec<u64> = segments.iter().map(size_on_disk).collect();
    let mut total: u64 = sizes.iter().sum();
    for (pair, size) in segments.windows(2).zip(sizes) {
        if total <= room {
            break;
        }
        let output_bytes = output_between(&pair[0], &pair[1]);
        if fs::remove_file(&pair[0].path).is_err() {
            break;
        }
        total -= size;
        removed.segments += 1;
        removed.output_bytes += output_bytes;
    }
    removed
}

fn size_on_disk(segment: &Segment) -> u64 {
    fs::metadata(&segment.path).map_or(0, |meta| meta.len())
}

fn output_between(older: &Segment, newer: &Segment) -> u64 {
    match (older.header(), newer.header()) {
        (Ok(Some(older)), Ok(Some(newer))) => newer.first_offset.saturating_sub(older.first_offset),
        _ => 0,
    }
}

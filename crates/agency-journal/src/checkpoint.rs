//! Finds the newest checkpoint of a journal without reading everything before it.

use std::fs;
use std::io;
use std::path::Path;

use crate::record::{Decoded, Record, RecordHeader};
use crate::segment::{self, SEGMENT_HEADER_BYTES, Segment, Unseal};
use crate::window::Window;

/// Returns the newest complete checkpoint record, or the newest one with a seq below `before`.
///
/// Searches the newest segment first. Lengths lead from header to header. Checksums are computed for
/// checkpoints only, unless a segment is damaged.
pub fn latest_checkpoint(dir: &Path, unseal: Unseal, before: Option<u64>) -> io::Result<Option<Record>> {
    let before = before.unwrap_or(u64::MAX);
    for segment in segment::list(dir)?.iter().rev() {
        let Some(bytes) = read(segment, unseal)? else { continue };
        let found = match checkpoint_positions(&bytes, before) {
            Some(positions) => newest_whole(&bytes, &positions),
            None => newest_between_damage(bytes, before)?,
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Returns `None` if the segment was deleted since it was listed.
fn read(segment: &Segment, unseal: Unseal) -> io::Result<Option<Vec<u8>>> {
    if segment.is_sealed {
        return segment.unsealed(unseal);
    }
    match fs::read(&segment.path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => segment.as_sealed().unsealed(unseal),
        bytes => bytes.map(Some),
    }
}

/// Returns the positions of checkpoints, oldest first. `None` if the headers do not lead from the first
/// record to the end.
fn checkpoint_positions(bytes: &[u8], before: u64) -> Option<Vec<usize>> {
    let mut positions = Vec::new();
    let (mut at, mut expected_seq) = (SEGMENT_HEADER_BYTES, None);
    while at < bytes.len() {
        let header = RecordHeader::peek(&bytes[at..])?;
        if expected_seq.is_some_and(|expected| expected != header.seq) {
            return None;
        }
        if header.is_checkpoint() && header.seq < before {
            positions.push(at);
        }
        at += header.encoded_len();
        expected_seq = header.seq.checked_add(1);
    }
    (at == bytes.len()).then_some(positions)
}

fn newest_whole(bytes: &[u8], positions: &[usize]) -> Option<Record> {
    positions.iter().rev().find_map(|at| match Record::decode(&bytes[*at..]) {
        Decoded::Complete(record, _) => Some(record),
        Decoded::Incomplete | Decoded::Corrupt { .. } => None,
    })
}

fn newest_between_damage(bytes: Vec<u8>, before: u64) -> io::Result<Option<Record>> {
    let (mut window, header) = Window::over_bytes(bytes)?;
    let (mut next_seq, mut least_seq) = (0, header.map(|header| header.first_seq));
    let mut newest = None;
    while let Some(header) = window.find(next_seq, least_seq)? {
        window.take(&header);
        (next_seq, least_seq) = (header.seq.saturating_add(1), Some(0));
        if header.is_checkpoint() && header.seq < before {
            newest = Some(header.record(window.taken()));
        }
    }
    Ok(newest)
}

//! Reads a run's journal from disk.

use std::path::{Path, PathBuf};

use agency_journal::{Body, Reader, Record, Source};

use crate::stage::Stage;

pub fn dir(stage: &Stage, run: &str) -> PathBuf {
    stage.state().join("r").join(run).join("j")
}

pub fn reader(stage: &Stage, run: &str) -> Reader {
    Reader::open(&dir(stage, run), unseal).expect("a journal can be read")
}

pub fn records(stage: &Stage, run: &str) -> Vec<Record> {
    let mut reader = reader(stage, run);
    std::iter::from_fn(|| reader.next().expect("a journal can be read")).collect()
}

/// The output offsets of answered queries, in the order of the answers.
pub fn answered_queries(stage: &Stage, run: &str) -> Vec<u64> {
    let offset = |record: &Record| match &record.body {
        Body::Input { source: Source::Answer { output_offset }, .. } => Some(*output_offset),
        _ => None,
    };
    records(stage, run).iter().filter_map(offset).collect()
}

/// Whether an agent on pipes got a part of a long line, and nothing after it.
pub fn is_half_written(dir: &Path) -> bool {
    let Ok(mut reader) = Reader::open(dir, unseal) else { return false };
    let records = std::iter::from_fn(|| reader.next().ok().flatten());
    let inputs = records.filter_map(|record| match record.body {
        Body::Input { bytes, .. } => Some(bytes),
        _ => None,
    });
    inputs.last().is_some_and(|bytes| bytes.len() > 4_000 && !bytes.ends_with(b"\n"))
}

fn unseal(path: &Path) -> std::io::Result<Vec<u8>> {
    zstd::decode_all(std::fs::File::open(path)?)
}

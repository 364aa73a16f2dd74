//! What became of a run that its own journal cannot say, because it was over by then: shown at its conversation's end.
//!
//! A file of lines beside the journal. Added to by the daemon alone, never changed.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agency_core::conversation::Item;
use serde::{Deserialize, Serialize};

use crate::json_lines::JsonLines;

/// A run has a few of them; more would be an accident.
const TURNED_AT_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExitNote {
    /// Since 1970.
    unix_ms: u64,
    pub item: Item,
}

impl ExitNote {
    /// Since 1970.
    pub fn at(&self) -> Duration {
        Duration::from_millis(self.unix_ms)
    }
}

pub fn append(journal: &Path, item: Item) -> io::Result<()> {
    let unix_ms = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0);
    file(journal).append(&ExitNote { unix_ms, item })
}

/// Oldest first. None where they cannot be read: the conversation is worth having without them.
pub fn read(journal: &Path) -> Vec<ExitNote> {
    file(journal).read().unwrap_or_else(|cause| {
        tracing::warn!(journal = %journal.display(), %cause, "how a run ended cannot be read");
        Vec::new()
    })
}

/// Grows with each of them.
pub fn file_size(journal: &Path) -> u64 {
    std::fs::metadata(beside(journal)).map_or(0, |known| known.len())
}

fn file(journal: &Path) -> JsonLines {
    JsonLines::at(beside(journal), TURNED_AT_BYTES)
}

fn beside(journal: &Path) -> PathBuf {
    journal.with_file_name("last-words.jsonl")
}

//! Entries that the daemon adds to a conversation after its run has ended, when its journal is closed.
//!
//! They are in a file beside the journal. Only the daemon writes it, and it only appends.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agency_core::conversation::Item;
use serde::{Deserialize, Serialize};

use crate::json_lines::JsonLines;

/// A run has only a few of them; more would be a mistake.
const ROTATE_AT_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExitNote {
    /// Milliseconds since 1970.
    unix_ms: u64,
    pub item: Item,
}

impl ExitNote {
    /// Returns the time of the note, since 1970.
    pub fn at(&self) -> Duration {
        Duration::from_millis(self.unix_ms)
    }
}

pub fn append(journal: &Path, item: Item) -> io::Result<()> {
    let unix_ms = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0);
    file(journal).append(&ExitNote { unix_ms, item })
}

/// Returns the notes, oldest first. If the file cannot be read, the conversation is shown without them.
pub fn read(journal: &Path) -> Vec<ExitNote> {
    file(journal).read().unwrap_or_else(|cause| {
        tracing::warn!(journal = %journal.display(), %cause, "the exit notes of a run cannot be read");
        Vec::new()
    })
}

/// Returns the size of the file, which changes with every note.
pub fn file_size(journal: &Path) -> u64 {
    std::fs::metadata(path(journal)).map_or(0, |known| known.len())
}

fn file(journal: &Path) -> JsonLines {
    JsonLines::at(path(journal), ROTATE_AT_BYTES)
}

fn path(journal: &Path) -> PathBuf {
    journal.with_file_name("last-words.jsonl")
}

//! Compresses the closed segments of journals.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

use tokio::sync::Semaphore;

use crate::fold::compress;

/// Journals that are being compressed. Two passes over one journal would disturb each other.
static BUSY: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);

/// One journal at a time: each takes the memory of a segment or two, and many agents may fall silent together.
static TURN: Semaphore = Semaphore::const_new(1);

/// Compresses in a task of its own, unless the journal is being compressed already.
pub fn compress_in_background(journal: PathBuf) {
    if busy().insert(journal.clone()) {
        tokio::spawn(async move {
            let turn = TURN.acquire().await;
            let sealing = journal.clone();
            if let Err(cause) = tokio::task::spawn_blocking(move || seal_all(&sealing)).await {
                tracing::error!(journal = %journal.display(), %cause, "the task that compresses a journal panicked");
            }
            drop(turn);
            busy().remove(&journal);
        });
    }
}

fn seal_all(journal: &Path) {
    let segments = match agency_journal::sealed_segments(journal) {
        Ok(segments) => segments,
        Err(cause) => return tracing::warn!(journal = %journal.display(), %cause, "cannot list segments"),
    };
    for segment in segments {
        match agency_journal::seal(&segment, compress) {
            Ok(_) => {}
            // The keeper has deleted it meanwhile.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => {
                // It stays readable as it is. The next quiet moment tries again.
                tracing::warn!(segment = %segment.display(), %cause, "cannot compress a segment");
                return;
            }
        }
    }
}

fn busy() -> std::sync::MutexGuard<'static, HashSet<PathBuf>> {
    BUSY.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

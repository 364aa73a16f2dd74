//! Compressing the parts of a journal that nobody writes to any more.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

use tokio::sync::Semaphore;

use crate::fold::compress;

/// Journals being worked on: a second pass over one would only collide with the first.
static BUSY: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);

/// One after the other: each takes the memory of a segment or two, and agents fall silent together.
static TURN: Semaphore = Semaphore::const_new(1);

pub fn compress_in_background(journal: PathBuf) {
    if busy().insert(journal.clone()) {
        tokio::spawn(async move {
            let turn = TURN.acquire().await;
            let sealing = journal.clone();
            if let Err(cause) = tokio::task::spawn_blocking(move || seal_all(&sealing)).await {
                tracing::error!(journal = %journal.display(), %cause, "compressing went badly wrong");
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
            // Too old by now: the keeper has deleted it.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => {
                // It stays as it is, readable; the next quiet moment tries again.
                tracing::warn!(segment = %segment.display(), %cause, "cannot compress a segment");
                return;
            }
        }
    }
}

fn busy() -> std::sync::MutexGuard<'static, HashSet<PathBuf>> {
    BUSY.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

//! The daemon's own log: what it found, did and could not do. Never prompts, never environment values.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Mutex;

use agency_api::paths::StateDir;
use tracing_subscriber::EnvFilter;

/// Enough for weeks; one older file is kept.
const ROTATE_AT_BYTES: u64 = 8 << 20;

pub fn open(state: &StateDir) -> io::Result<()> {
    let file = append_to(&state.daemon_log())?;
    let filter = EnvFilter::try_from_env("AGENCY_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_target(false)
        .with_writer(Mutex::new(file))
        .finish();
    // Only a second daemon in one process could have set it before; tests do, and keep the first.
    tracing::subscriber::set_global_default(subscriber).unwrap_or_default();
    Ok(())
}

fn append_to(path: &Path) -> io::Result<File> {
    if std::fs::metadata(path).is_ok_and(|meta| meta.len() > ROTATE_AT_BYTES) {
        std::fs::rename(path, path.with_extension("log.1"))?;
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

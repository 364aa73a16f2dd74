//! The daemon's own log. It contains neither prompts nor values of environment variables.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Mutex;

use agency_api::paths::StateDir;
use tracing_subscriber::EnvFilter;

/// Enough for weeks. One older file is kept.
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
    // This fails only if a daemon in the same process has set a subscriber before, as in tests. That one stays.
    tracing::subscriber::set_global_default(subscriber).unwrap_or_default();
    Ok(())
}

fn append_to(path: &Path) -> io::Result<File> {
    if std::fs::metadata(path).is_ok_and(|meta| meta.len() > ROTATE_AT_BYTES) {
        std::fs::rename(path, path.with_extension("log.1"))?;
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

//! One daemon per user and host: a lock that dies with its holder, and the epoch that fences off the one before.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use agency_api::paths::StateDir;
use rustix::fs::{FlockOperation, flock};

use crate::atomic;

/// Held for as long as the daemon lives.
#[derive(Debug)]
pub struct DaemonLock {
    _file: File,
}

impl DaemonLock {
    /// `None` when another daemon holds it.
    pub fn take(state: &StateDir) -> io::Result<Option<DaemonLock>> {
        let mut file = private_file(&state.daemon_lock())?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(err) => return Err(err.into()),
        }
        // For people who look; the lock itself is what counts.
        file.set_len(0)?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Some(DaemonLock { _file: file }))
    }
}

/// One more than the epoch of the daemon before. A keeper refuses daemons of lower epochs.
pub fn next_epoch(state: &StateDir) -> io::Result<u64> {
    let before = match std::fs::read_to_string(state.epoch()) {
        Ok(text) => text.trim().parse().unwrap_or(0),
        Err(err) if err.kind() == io::ErrorKind::NotFound => 0,
        Err(err) => return Err(err),
    };
    let epoch = before + 1;
    atomic::write(&state.epoch(), format!("{epoch}\n").as_bytes())?;
    Ok(epoch)
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

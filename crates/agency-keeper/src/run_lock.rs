//! The lock on the directory of a run: its keeper holds it for its whole life, and the kernel releases it.
//!
//! So the lock says whether a keeper is there, whatever the files in the directory say.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use crate::failure::Failure;

/// The daemon leaves this file in the directory of a run that must not start any more.
pub const ABANDONED_FILE: &str = "abandoned";

/// Whether a keeper holds the lock of a run.
#[derive(Debug)]
pub enum LockState {
    /// A keeper holds it.
    Held,
    /// No keeper holds it. None can begin before the file is closed.
    Free(File),
    /// The file system has no locks.
    Unknown(io::Error),
}

/// Finds out whether a keeper holds the lock of the run in this directory.
pub fn lock_state(run_dir: &Path) -> io::Result<LockState> {
    let directory = File::open(run_dir)?;
    Ok(match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => LockState::Free(directory),
        Err(Errno::WOULDBLOCK) => LockState::Held,
        Err(err) => LockState::Unknown(err.into()),
    })
}

/// Locks the run in the working directory: two keepers on one journal would destroy it.
pub(crate) fn lock_run() -> Result<OwnedFd, Failure> {
    let opened = rustix::fs::open(".", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let directory = opened.map_err(|err| Failure::new("open the run directory", err.into()))?;
    match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Err(err @ Errno::WOULDBLOCK) => {
            Err(Failure::new("lock the run: another keeper holds it", err.into()))
        }
        // The daemon that started us died, and its successor already reported that this run never started.
        _ if Path::new(ABANDONED_FILE).exists() => {
            Err(Failure::new("begin: the run was abandoned", Errno::CANCELED.into()))
        }
        // Some file systems have no locks; a run without a lock is better than no run.
        _ => Ok(directory),
    }
}

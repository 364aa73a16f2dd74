//! The epoch of this daemon: a keeper refuses daemons with a lower one than it has seen.
//!
//! The file `epoch` only makes a good guess possible. A keeper that refuses names the epoch that it has seen, and the
//! daemon takes a higher one. So a lost or stale file locks no daemon out.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use agency_api::paths::StateDir;

use crate::atomic;

/// The epoch of this daemon. It only rises.
#[derive(Debug)]
pub struct DaemonEpoch {
    number: AtomicU64,
    file: PathBuf,
    lock: PathBuf,
    /// Identifies the lock file that this daemon holds.
    held: Option<(u64, u64)>,
    problem: Option<String>,
}

impl DaemonEpoch {
    /// One more than the epoch of the last daemon, if the file says it. `lock` is the daemon's lock file.
    pub fn begin(state: &StateDir, lock: &File) -> DaemonEpoch {
        let file = state.epoch();
        let (before, problem) = match read(&file) {
            Ok(before) => (before, None),
            Err(cause) => {
                let problem = format!("{} could not be read: {cause}; it is written again", file.display());
                tracing::warn!("{problem}");
                (0, Some(problem))
            }
        };
        let held = lock.metadata().ok().as_ref().map(identity);
        let number = AtomicU64::new(before.saturating_add(1));
        let epoch = DaemonEpoch { number, file, lock: state.daemon_lock(), held, problem };
        epoch.write();
        epoch
    }

    /// The epoch now.
    pub fn get(&self) -> u64 {
        self.number.load(Ordering::SeqCst)
    }

    /// The problem with the file, if there was one.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// A keeper has seen this epoch. Takes a higher one, unless this daemon has lost its lock: then another daemon has
    /// taken over, and this one must not compete with it. Returns whether the epoch is higher now.
    pub fn exceed(&self, seen: u64) -> bool {
        if !self.holds_lock() {
            return false;
        }
        let before = self.number.fetch_max(seen.saturating_add(1), Ordering::SeqCst);
        if before <= seen {
            tracing::warn!(before, seen, "a keeper has seen a higher epoch; the daemon takes the next one");
            self.write();
        }
        self.get() > seen
    }

    /// Whether the lock file at its place is still the one that this daemon holds.
    pub fn holds_lock(&self) -> bool {
        self.held.is_some() && std::fs::metadata(&self.lock).ok().as_ref().map(identity) == self.held
    }

    /// The daemon must run on a full disk, too. The lock alone keeps other daemons out.
    fn write(&self) {
        let epoch = self.get();
        if let Err(cause) = atomic::write(&self.file, format!("{epoch}\n").as_bytes()) {
            tracing::warn!(%cause, epoch, "cannot write the epoch");
        }
    }
}

fn read(file: &std::path::Path) -> io::Result<u64> {
    match std::fs::read_to_string(file) {
        Ok(text) => text.trim().parse().map_err(|err| io::Error::new(io::ErrorKind::InvalidData, err)),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(err) => Err(err),
    }
}

fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> (tempfile::TempDir, StateDir, File) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path().to_path_buf());
        let lock = File::create(state.daemon_lock()).unwrap();
        (dir, state, lock)
    }

    #[test]
    fn each_daemon_has_a_higher_epoch_and_an_unreadable_file_stops_none() {
        let (_dir, state, lock) = state();
        assert_eq!(DaemonEpoch::begin(&state, &lock).get(), 1);
        let second = DaemonEpoch::begin(&state, &lock);
        assert_eq!((second.get(), second.problem()), (2, None));
        for spoiled in [&b"\xff\xfe"[..], b"", b"x", b"-3"] {
            std::fs::write(state.epoch(), spoiled).unwrap();
            let epoch = DaemonEpoch::begin(&state, &lock);
            assert_eq!(epoch.get(), 1, "{spoiled:?}");
            assert!(epoch.problem().is_some());
        }
        std::fs::write(state.epoch(), u64::MAX.to_string()).unwrap();
        assert_eq!(DaemonEpoch::begin(&state, &lock).get(), u64::MAX);
    }

    #[test]
    fn a_daemon_exceeds_what_a_keeper_has_seen_and_writes_it() {
        let (_dir, state, lock) = state();
        let epoch = DaemonEpoch::begin(&state, &lock);
        assert!(epoch.exceed(7));
        assert!(epoch.exceed(3));
        assert_eq!((epoch.get(), std::fs::read_to_string(state.epoch()).unwrap().as_str()), (8, "8\n"));
    }

    #[test]
    fn a_daemon_that_lost_its_lock_does_not_compete() {
        let (_dir, state, lock) = state();
        let epoch = DaemonEpoch::begin(&state, &lock);
        std::fs::remove_file(state.daemon_lock()).unwrap();
        assert!(!epoch.exceed(7));
        let _next = File::create(state.daemon_lock()).unwrap();
        assert!(!epoch.exceed(7));
        assert_eq!(epoch.get(), 1);
    }
}

//! One daemon per user and host: a lock that the kernel releases when its holder dies, and the epoch by which keepers
//! refuse older daemons.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use agency_api::ProcessIdentity;
use agency_api::paths::StateDir;
use agency_keeper::platform;
use agency_store::atomic;
use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;

/// The daemon holds it until it ends.
#[derive(Debug)]
pub struct DaemonLock {
    _file: File,
}

impl DaemonLock {
    /// `None` if another daemon holds it.
    pub fn take(state: &StateDir) -> io::Result<Option<DaemonLock>> {
        let mut file = private_file(&state.daemon_lock())?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(err) => return Err(err.into()),
        }
        // The content is for people and for `ask_holder_to_bind`. On a full disk the lock works without it.
        let own = platform::own_identity();
        file.set_len(0).and_then(|()| writeln!(file, "{}\n{}", own.pid, own.start_time)).unwrap_or_default();
        Ok(Some(DaemonLock { _file: file }))
    }
}

/// Asks the daemon that holds the lock to bind its socket again, in case the socket was deleted.
pub fn ask_holder_to_bind(state: &StateDir) {
    if let Some(holder) = holder(state) {
        // A daemon that has left meanwhile needs no socket.
        drop(platform::signal_if_same(&holder, Signal::USR1));
    }
}

fn holder(state: &StateDir) -> Option<ProcessIdentity> {
    let text = std::fs::read_to_string(state.daemon_lock()).ok()?;
    let mut lines = text.lines();
    let pid = lines.next()?.parse().ok()?;
    let start_time = lines.next()?.parse().ok()?;
    Some(ProcessIdentity { pid, start_time, boot_id: platform::boot_id() })
}

/// One more than the epoch of the last daemon. A keeper refuses daemons of lower epochs.
pub fn next_epoch(state: &StateDir) -> io::Result<u64> {
    let before = match std::fs::read_to_string(state.epoch()) {
        Ok(text) => text.trim().parse().unwrap_or(0),
        Err(err) if err.kind() == io::ErrorKind::NotFound => 0,
        Err(err) => return Err(err),
    };
    let epoch = before + 1;
    if let Err(cause) = atomic::write(&state.epoch(), format!("{epoch}\n").as_bytes()) {
        // The daemon must run on a full disk, too. The lock alone keeps other daemons out.
        tracing::warn!(%cause, epoch, "cannot write the epoch");
    }
    Ok(epoch)
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

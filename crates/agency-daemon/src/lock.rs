//! One daemon per user and host: a lock that the kernel releases when its holder dies.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use agency_api::ProcessIdentity;
use agency_api::paths::StateDir;
use agency_keeper::platform;
use agency_store::epoch::DaemonEpoch;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use tokio::io::Interest;

/// The daemon holds it until it ends.
#[derive(Debug)]
pub struct DaemonLock {
    file: File,
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
        let content = format!("{}\n{}\n", own.pid, own.start_time);
        // First written over, then cut: on a full disk a file that is cut first cannot grow again.
        file.write_all(content.as_bytes())
            .and_then(|()| file.set_len(content.len() as u64))
            .unwrap_or_default();
        Ok(Some(DaemonLock { file }))
    }

    pub fn file(&self) -> &File {
        &self.file
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

/// On a read-only disk, an existing file can still be locked.
fn private_file(path: &Path) -> io::Result<File> {
    let opened =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    opened.or_else(|cause| File::open(path).map_err(|_| cause))
}

/// Returns once the lock file is not at its place any more: a user deleted or moved the state directory. Then another
/// daemon can begin, and this one must leave. Never returns if the kernel cannot watch it.
pub async fn wait_until_lost(state: &StateDir, epoch: &DaemonEpoch) {
    let opened = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).and_then(|kernel| {
        // To delete the file changes its number of links.
        let file = WatchFlags::ATTRIB | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        inotify::add_watch(&kernel, state.daemon_lock(), file)?;
        inotify::add_watch(&kernel, state.root(), WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF)?;
        Ok(kernel)
    });
    let watched = opened
        .map_err(io::Error::from)
        .and_then(|kernel| agency_stream::watch_descriptor(kernel, Interest::READABLE));
    let kernel = match watched {
        Ok(kernel) => kernel,
        Err(cause) => {
            tracing::warn!(%cause, "cannot watch the lock; the daemon will not notice a deleted state directory");
            return std::future::pending().await;
        }
    };
    while epoch.holds_lock() {
        match kernel.readable().await {
            Ok(mut ready) => {
                let mut events = [0; 4096];
                // The loop only has to know that something changed.
                while matches!(rustix::io::read(kernel.get_ref(), &mut events), Ok(1..)) {}
                ready.clear_ready();
            }
            Err(cause) => {
                tracing::warn!(%cause, "cannot watch the lock; the daemon will not notice a deleted state directory");
                return std::future::pending().await;
            }
        }
    }
}

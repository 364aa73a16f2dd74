//! Watches directories: those that hold workspaces, for deletions, and those of configuration files, for changes.
//!
//! It only reports that something has changed. The loop then finds out what, by looking at the file system.
//! The kernel does not report that a directory is deleted while a process uses it, so the watch is on its parent.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Reports that something has changed.
pub type Report = Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// A watch that could not be opened reports nothing. Then the loop checks a workspace when the state of its agent
/// changes.
#[derive(Debug, Clone, Default)]
pub struct DirectoryWatch {
    kernel: Option<Arc<AsyncFd<OwnedFd>>>,
}

impl DirectoryWatch {
    /// Begins to watch: no directory at first.
    pub fn begin(report: Report) -> DirectoryWatch {
        let opened = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .map_err(io::Error::from)
            .and_then(|kernel| agency_stream::watch_descriptor(kernel, Interest::READABLE));
        match opened {
            Ok(kernel) => {
                let kernel = Arc::new(kernel);
                tokio::spawn(report_changes(kernel.clone(), report));
                DirectoryWatch { kernel: Some(kernel) }
            }
            Err(cause) => {
                tracing::warn!(%cause, "cannot watch directories; a missing workspace will be noticed only at the next state change");
                DirectoryWatch::default()
            }
        }
    }

    /// Watches for deletions. To add a directory twice changes nothing.
    pub fn add(&self, directory: &Path) {
        let wanted =
            WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        self.watch(directory, wanted, "a missing workspace will be noticed only at the next state change");
    }

    /// Watches only for the move or the deletion of the directory itself.
    pub fn add_itself(&self, directory: &Path) {
        let wanted = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        self.watch(directory, wanted, "a moved project will be noticed only at the next state change");
    }

    /// Watches also for files that are written.
    pub fn add_with_writes(&self, directory: &Path) {
        let wanted = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::DELETE;
        self.watch(directory, wanted, "new rules take effect at the next call");
    }

    /// A directory may be watched for both reasons: the second watch does not replace the first.
    fn watch(&self, directory: &Path, wanted: WatchFlags, otherwise: &str) {
        let Some(kernel) = &self.kernel else { return };
        let wanted = wanted | WatchFlags::MASK_ADD | WatchFlags::ONLYDIR;
        if let Err(cause) = inotify::add_watch(kernel.get_ref(), directory, wanted) {
            tracing::warn!(%cause, directory = %directory.display(), "{otherwise}");
        }
    }
}

async fn report_changes(kernel: Arc<AsyncFd<OwnedFd>>, report: Report) {
    loop {
        match kernel.readable().await {
            Ok(mut ready) => {
                drain(kernel.get_ref());
                ready.clear_ready();
            }
            Err(cause) => {
                return tracing::warn!(%cause, "a missing workspace will be noticed only at the next state change");
            }
        }
        report().await;
    }
}

/// Reads and drops the events: the loop needs only to know that there were some.
fn drain(kernel: &OwnedFd) {
    let mut buffer = [0; 4096];
    loop {
        match rustix::io::read(kernel, &mut buffer) {
            Ok(0) => return,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

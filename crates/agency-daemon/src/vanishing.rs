//! Hears when something is deleted or moved away beside workspaces, without looking again and again.
//!
//! Says only that it happened: whose workspace is gone is a look at the file system, which is the loop's to take.
//! A directory that a process stands in is not told of itself, so its parent is watched.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::loop_event::{LoopEvent, Reporter};

/// Without one, workspaces are looked at whenever the state of their agents changes.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    kernel: Option<Arc<AsyncFd<OwnedFd>>>,
}

impl Watch {
    pub fn begin(reporter: Reporter) -> Watch {
        let opened = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .map_err(io::Error::from)
            .and_then(|kernel| agency_stream::watch_descriptor(kernel, Interest::READABLE));
        match opened {
            Ok(kernel) => {
                let kernel = Arc::new(kernel);
                tokio::spawn(hear(kernel.clone(), reporter));
                Watch { kernel: Some(kernel) }
            }
            Err(cause) => {
                tracing::warn!(%cause, "a workspace that disappears is noticed late");
                Watch::default()
            }
        }
    }

    /// Adding one again changes nothing.
    pub fn add(&self, directory: &Path) {
        let wanted =
            WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        self.watch(directory, wanted, "workspaces that disappear are noticed late");
    }

    /// Also when a file there is written anew.
    pub fn add_written(&self, directory: &Path) {
        let wanted = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::DELETE;
        self.watch(directory, wanted, "new rules are heeded at the next call");
    }

    /// A directory may be watched for both reasons: one does not end the other.
    fn watch(&self, directory: &Path, wanted: WatchFlags, otherwise: &str) {
        let Some(kernel) = &self.kernel else { return };
        let wanted = wanted | WatchFlags::MASK_ADD | WatchFlags::ONLYDIR;
        if let Err(cause) = inotify::add_watch(kernel.get_ref(), directory, wanted) {
            tracing::warn!(%cause, directory = %directory.display(), "{otherwise}");
        }
    }
}

async fn hear(kernel: Arc<AsyncFd<OwnedFd>>, reporter: Reporter) {
    loop {
        match kernel.readable().await {
            Ok(mut ready) => {
                drain(kernel.get_ref());
                ready.clear_ready();
            }
            Err(cause) => return tracing::warn!(%cause, "workspaces that disappear are noticed late"),
        }
        reporter.report(LoopEvent::DirectoriesChanged).await;
    }
}

/// What it says is not needed.
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

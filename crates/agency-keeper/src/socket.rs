//! The keeper's listening socket in the run directory.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::peers::Peers;

/// A relative path, because a socket address is too short for some directories.
const NAME: &str = "k";

pub(crate) struct Socket {
    run_dir: PathBuf,
    listener: UnixListener,
    /// Identifies our socket file.
    inode: u64,
    /// Accept no connection before this time.
    pause_until: Option<Instant>,
}

/// Without a pause, a machine that is out of descriptors would make the loop spin.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(100);

impl Socket {
    /// Binds the socket. The working directory must be the run directory.
    pub(crate) fn bind(run_dir: &Path) -> io::Result<Socket> {
        let (listener, inode) = bind()?;
        Ok(Socket { run_dir: run_dir.to_path_buf(), listener, inode, pause_until: None })
    }

    /// Binds the socket again. Existing connections stay open; new ones use the new socket.
    pub(crate) fn rebind(&mut self) -> io::Result<()> {
        agency_api::paths::create_private(&self.run_dir)?;
        std::env::set_current_dir(&self.run_dir)?;
        let (listener, inode) = bind()?;
        (self.listener, self.inode) = (listener, inode);
        Ok(())
    }

    pub(crate) fn listener(&self) -> Option<&UnixListener> {
        self.deadline().is_none().then_some(&self.listener)
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.pause_until.filter(|until| *until > Instant::now())
    }

    pub(crate) fn accept_into(&mut self, peers: &mut Peers) {
        self.pause_until = None;
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => peers.admit(stream),
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => return,
                Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.pause_until = Some(Instant::now() + PAUSE_AFTER_FAILURE),
            }
        }
    }

    /// Removes the socket file if it is still ours.
    pub(crate) fn remove(&self) -> io::Result<()> {
        match std::fs::symlink_metadata(NAME) {
            Ok(meta) if meta.ino() == self.inode => std::fs::remove_file(NAME),
            Ok(_) => Ok(()),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(err) => Err(err),
        }
    }
}

fn bind() -> io::Result<(UnixListener, u64)> {
    let listener = agency_api::socket::bind(Path::new(NAME))?;
    listener.set_nonblocking(true)?;
    let inode = std::fs::symlink_metadata(NAME)?.ino();
    Ok((listener, inode))
}

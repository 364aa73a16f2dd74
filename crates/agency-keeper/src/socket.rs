//! The socket that the keeper listens on, in its run directory.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::clients::Clients;

/// Relative, so that no directory is too deep for an address.
const NAME: &str = "k";

pub(crate) struct Socket {
    run_dir: PathBuf,
    listener: UnixListener,
    /// Which file is ours.
    inode: u64,
    /// Nobody is let in before.
    rest_until: Option<Instant>,
}

/// A machine without descriptors left must not be asked for them in a tight loop.
const REST_AFTER_FAILURE: Duration = Duration::from_millis(100);

impl Socket {
    /// The working directory is the run directory.
    pub(crate) fn bind(run_dir: &Path) -> io::Result<Socket> {
        let (listener, inode) = bind()?;
        Ok(Socket { run_dir: run_dir.to_path_buf(), listener, inode, rest_until: None })
    }

    /// Connections that exist go on; new ones come through the new socket.
    pub(crate) fn bind_anew(&mut self) -> io::Result<()> {
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
        self.rest_until.filter(|until| *until > Instant::now())
    }

    pub(crate) fn accept_into(&mut self, clients: &mut Clients) {
        self.rest_until = None;
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => clients.admit(stream),
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => return,
                Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.rest_until = Some(Instant::now() + REST_AFTER_FAILURE),
            }
        }
    }

    /// Removes the file if it is still ours.
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

//! The daemon's socket: in the state directory, or below `/tmp` while the disk of the state directory is read-only.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::paths::{StateDir, create_private, keep_private, short_hash};
use crate::socket;

/// Binds the daemon's socket. Also returns its path.
pub fn bind(state: &StateDir) -> io::Result<(UnixListener, PathBuf)> {
    let usual = state.daemon_socket();
    let cause = match socket::bind(&usual) {
        Ok(listener) => return Ok((listener, usual)),
        Err(cause) if is_unwritable(&cause) => cause,
        Err(cause) => return Err(cause),
    };
    let spare = SpareSocket::of(state);
    // Where the spare one cannot be bound either, the user must mend the state directory.
    let bound = create_private(&spare.directory)
        .and_then(|()| spare.check())
        .and_then(|()| socket::bind(&spare.path));
    bound.map(|listener| (listener, spare.path)).map_err(|_| cause)
}

/// Connects to the daemon. Also returns the path of its socket.
pub fn connect(state: &StateDir) -> io::Result<(UnixStream, PathBuf)> {
    let usual = state.daemon_socket();
    let cause = match socket::connect(&usual) {
        Ok(stream) => return Ok((stream, usual)),
        Err(cause) => cause,
    };
    let spare = SpareSocket::of(state);
    let connected = spare.check().and_then(|()| socket::connect(&spare.path));
    connected.map(|stream| (stream, spare.path)).map_err(|_| cause)
}

fn is_unwritable(cause: &io::Error) -> bool {
    matches!(Errno::from_io_error(cause), Some(Errno::ROFS | Errno::NOSPC | Errno::DQUOT))
}

/// The same for every process of the user, whatever its environment.
struct SpareSocket {
    directory: PathBuf,
    path: PathBuf,
}

impl SpareSocket {
    fn of(state: &StateDir) -> SpareSocket {
        let directory = Path::new("/tmp").join(format!("agency-{}", rustix::process::geteuid().as_raw()));
        let root = short_hash(state.root().as_os_str().as_encoded_bytes());
        let path = directory.join(format!("d-{}-{}.sock", state.host(), root));
        SpareSocket { directory, path }
    }

    /// Everyone may write to `/tmp`, so the directory must be ours, and not a link.
    fn check(&self) -> io::Result<()> {
        if !std::fs::symlink_metadata(&self.directory)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        keep_private(&self.directory, rustix::process::geteuid().as_raw())
    }
}

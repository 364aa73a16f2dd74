//! Unix sockets that only their owner can use, also at long paths.
//!
//! A socket address holds 108 bytes. State directories can be deeper than that, so long paths go through a descriptor
//! of the directory.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// The longest address without its closing zero on every system that we know (macOS has 104, Linux 108).
const MAX_ADDRESS_BYTES: usize = 103;

/// Binds a new socket at `path` that only its owner can use. Replaces a file of that name.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Ok(()) => {}
        Err(err) if err.kind() == io::ErrorKind::NotFound => {}
        Err(err) => return Err(err),
    }
    let (_directory, address) = short_address(path)?;
    let listener = UnixListener::bind(&address)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Connects to the socket at `path`.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let (_directory, address) = short_address(path)?;
    UnixStream::connect(address)
}

/// An address for `path` that is short enough. The descriptor must live as long as the address is used.
fn short_address(path: &Path) -> io::Result<(Option<OwnedFd>, PathBuf)> {
    if path.as_os_str().len() <= MAX_ADDRESS_BYTES {
        return Ok((None, path.to_path_buf()));
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a socket needs a directory and a name"));
    };
    let directory = rustix::fs::open(parent, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let address = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
    Ok((Some(directory), address))
}

/// Whether the peer is our own user. Root counts too, because root can do everything anyway.
pub fn peer_is_us(stream: impl AsFd) -> io::Result<bool> {
    let uid = peer_uid(stream)?;
    Ok(uid == rustix::process::geteuid().as_raw() || uid == 0)
}

/// The process at the other end: for a client, the process that listens.
#[cfg(target_os = "linux")]
pub fn peer_pid(stream: impl AsFd) -> Option<i32> {
    rustix::net::sockopt::socket_peercred(stream).ok().map(|peer| peer.pid.as_raw_nonzero().get())
}

/// There are no peer credentials here.
#[cfg(not(target_os = "linux"))]
pub fn peer_pid(_stream: impl AsFd) -> Option<i32> {
    None
}

#[cfg(target_os = "linux")]
fn peer_uid(stream: impl AsFd) -> io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(stream)?.uid.as_raw())
}

/// Without peer credentials, the modes of the socket (0600) and of its directory (0700) keep other users out.
#[cfg(not(target_os = "linux"))]
fn peer_uid(_stream: impl AsFd) -> io::Result<u32> {
    Ok(rustix::process::geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_socket_at_a_path_longer_than_an_address_is_reached() {
        let base = std::env::temp_dir().join(format!("agency-socket-{}", std::process::id()));
        let deep = base.join("d".repeat(90)).join("e".repeat(90));
        std::fs::create_dir_all(&deep).unwrap();
        let path = deep.join("k");
        std::fs::write(&path, "left behind").unwrap();
        let listener = bind(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let mut client = connect(&path).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        assert!(peer_is_us(&server).unwrap());
        client.write_all(b"x").unwrap();
        let mut byte = [0];
        server.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
        std::fs::remove_dir_all(base).unwrap();
    }
}

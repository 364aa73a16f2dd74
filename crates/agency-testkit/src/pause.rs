//! A point at which a fake agent waits (`await PATH` in its script) until the test releases it.
//!
//! A named pipe: it needs no daemon, so a test can release an agent while no daemon is running.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use rustix::io::Errno;

use crate::eventually::eventually;

pub struct Pause {
    path: PathBuf,
}

impl Pause {
    /// Makes the named pipe at a path that does not exist yet.
    pub fn at(path: PathBuf) -> Pause {
        mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).expect("room for a named pipe");
        Pause { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until a process reads the pipe, and lets it continue.
    pub fn release(&self) {
        let what = format!("a process waits at {}", self.path.display());
        drop(eventually(&what, Duration::from_secs(60), || self.open_for_reader()));
    }

    /// `None`: no process reads the pipe yet.
    fn open_for_reader(&self) -> Option<OwnedFd> {
        match open(&self.path, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()) {
            Ok(pipe) => Some(pipe),
            Err(Errno::NXIO) => None,
            Err(err) => panic!("{}: {err}", self.path.display()),
        }
    }
}

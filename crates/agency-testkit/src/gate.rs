//! A gate that an agent waits at until the test opens it: the `await` of its script.
//!
//! Needs no daemon, so that a test decides what happens while none lives.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use rustix::io::Errno;

use crate::eventually::eventually;

pub struct Gate {
    path: PathBuf,
}

impl Gate {
    /// Closed, at a path where nothing is yet.
    pub fn at(path: PathBuf) -> Gate {
        mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).expect("room for a named pipe");
        Gate { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until somebody stands there, and lets them through.
    pub fn open(&self) {
        let what = format!("somebody waits at {}", self.path.display());
        drop(eventually(&what, Duration::from_secs(60), || self.someone()));
    }

    fn someone(&self) -> Option<OwnedFd> {
        match open(&self.path, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()) {
            Ok(pipe) => Some(pipe),
            Err(Errno::NXIO) => None,
            Err(err) => panic!("{}: {err}", self.path.display()),
        }
    }
}

//! The door to the file system that the writer goes through, so that a test can fill the disk.
//!
//! Only what appends: listing, reading and deleting need no fake.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub trait Disk: Send {
    /// An empty file, whatever stood there before.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Appendable>>;
    /// An existing file, to append to.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Appendable>>;
}

pub trait Appendable: Send {
    /// One write(2) at the end; may take only a part.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;
    fn truncate(&mut self, len: u64) -> io::Result<()>;
}

/// The real one.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Appendable>> {
        // Not truncated: file systems write such a file out when it is closed, and rotation must not wait for that.
        match fs::remove_file(path) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
            _ => {}
        }
        Ok(Box::new(OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Appendable>> {
        Ok(Box::new(OpenOptions::new().append(true).open(path)?))
    }
}

impl Appendable for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write(bytes)
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
}

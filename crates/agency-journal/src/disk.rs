//! The writer's access to the file system, as a trait, so that a test can simulate a full disk.
//!
//! Only appending. Listing, reading and deleting need no fake.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Creates and opens files to append to.
pub trait Disk: Send {
    /// Creates an empty file, and replaces an existing one.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Appendable>>;
    /// Opens an existing file, to append to.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Appendable>>;
}

/// A file that can be appended to.
pub trait Appendable: Send {
    /// Calls write(2) once, at the end of the file. It may write only a part.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Cuts the file to `len` bytes.
    fn truncate(&mut self, len: u64) -> io::Result<()>;
}

/// The real file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Appendable>> {
        // Not truncated: file systems write a truncated file out when it is closed, and rotation must not
        // wait for that.
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

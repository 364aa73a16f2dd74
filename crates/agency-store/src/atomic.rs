//! Files that are either as before or as wanted, also after a power cut.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Two writers of one file must not share a temporary one.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// Temp, fsync, rename, fsync of the directory. Keeps the mode of a file that was there; 0600 otherwise.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mode = std::fs::metadata(path).map_or(0o600, |meta| meta.mode() & 0o777);
    write_with_mode(path, content, mode)
}

pub fn write_with_mode(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let temporary = beside(path)?;
    let written = write_new(&temporary, content, mode).and_then(|()| std::fs::rename(&temporary, path));
    if let Err(err) = written {
        // Ours, seconds old and of no use; the first error is the one to tell.
        std::fs::remove_file(&temporary).unwrap_or_default();
        return Err(err);
    }
    sync_directory(path)
}

fn write_new(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    // The umask takes bits away at open; the file's owner chose them.
    file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    file.write_all(content)?;
    file.sync_all()
}

fn beside(path: &Path) -> io::Result<PathBuf> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a file needs a directory and a name"));
    };
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    Ok(parent.join(format!(".{}.{}-{count}.tmp", name.to_string_lossy(), std::process::id())))
}

fn sync_directory(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

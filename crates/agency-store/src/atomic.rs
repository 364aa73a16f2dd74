//! Replaces a file in one step: after a crash or a power cut it has either its old or its new content.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Two writers of one file must not share a temporary file.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// Writes a temporary file, syncs and renames it, and syncs the directory. Keeps the mode of an existing file; a new
/// one gets 0600.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mode = std::fs::metadata(path).map_or(0o600, |meta| meta.mode() & 0o777);
    write_with_mode(path, content, mode)
}

pub fn write_with_mode(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let temporary = temporary_path(path)?;
    let written = write_new(&temporary, content, mode).and_then(|()| std::fs::rename(&temporary, path));
    if let Err(err) = written {
        // The temporary file is useless, and the first error is the one to report.
        std::fs::remove_file(&temporary).unwrap_or_default();
        return Err(err);
    }
    sync_directory(path)
}

fn write_new(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    // The umask removes bits when the file is opened, but the caller chose this mode.
    file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    file.write_all(content)?;
    file.sync_all()
}

fn temporary_path(path: &Path) -> io::Result<PathBuf> {
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

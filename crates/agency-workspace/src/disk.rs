//! The files and directories of a workspace as they are on the disk, with their modes.
//!
//! Knows nothing of git: the caller says which paths to leave out.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The permission bits of a mode, with set-user-id, set-group-id and sticky.
const PERMISSIONS: u32 = 0o7777;
const OWNER_WRITES: u32 = 0o300;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskKind {
    File,
    Link,
    /// `is_leaf`: no other entry of the walk is in it.
    Directory {
        is_leaf: bool,
    },
    /// A pipe, a socket or a device.
    Special,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiskEntry {
    /// Relative to the root of the walk.
    pub(crate) path: PathBuf,
    pub(crate) kind: DiskKind,
    pub(crate) mode: u32,
    pub(crate) size: u64,
}

/// Everything below a directory, the parent always before its children.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    pub(crate) entries: Vec<DiskEntry>,
    /// Directories that cannot be read.
    pub(crate) unreadable: Vec<(PathBuf, io::Error)>,
}

impl Disk {
    /// Lists everything below `root/below`, without the paths in `left_out`. All are relative to `root`.
    pub(crate) fn walk(root: &Path, below: &Path, left_out: &HashSet<PathBuf>) -> Self {
        let mut disk = Self::default();
        disk.walk_into(root, below, left_out);
        disk
    }

    /// Adds one path and everything below it.
    pub(crate) fn add(&mut self, root: &Path, path: &Path) {
        if let Ok(meta) = root.join(path).symlink_metadata() {
            self.push(root, path.to_owned(), &meta, &HashSet::new());
        }
    }

    /// Returns the number of entries in the directory.
    fn walk_into(&mut self, root: &Path, dir: &Path, left_out: &HashSet<PathBuf>) -> usize {
        let children = fs::read_dir(root.join(dir)).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut children = match children {
            Ok(children) => children,
            Err(err) if err.kind() == io::ErrorKind::NotFound => return 0,
            Err(err) => {
                self.unreadable.push((dir.to_owned(), err));
                return 1;
            }
        };
        children.sort_by_key(fs::DirEntry::file_name);
        let mut count = 0;
        for child in children {
            let path = dir.join(child.file_name());
            // A file that disappears during the walk was not there.
            let Ok(meta) = child.path().symlink_metadata() else { continue };
            if left_out.contains(&path) {
                continue;
            }
            count += 1;
            self.push(root, path, &meta, left_out);
        }
        count
    }

    fn push(&mut self, root: &Path, path: PathBuf, meta: &fs::Metadata, left_out: &HashSet<PathBuf>) {
        let kind = match meta.file_type() {
            kind if kind.is_dir() => DiskKind::Directory { is_leaf: false },
            kind if kind.is_file() => DiskKind::File,
            kind if kind.is_symlink() => DiskKind::Link,
            _ => DiskKind::Special,
        };
        let (mode, at) = (meta.mode() & PERMISSIONS, self.entries.len());
        self.entries.push(DiskEntry { path: path.clone(), kind, mode, size: meta.size() });
        if meta.is_dir() {
            let is_leaf = self.walk_into(root, &path, left_out) == 0;
            self.entries[at].kind = DiskKind::Directory { is_leaf };
        }
    }

    /// Lets the owner write in every directory. Otherwise only root could change or delete files there.
    pub(crate) fn open_directories(&self, root: &Path) -> io::Result<()> {
        let closed = |entry: &&DiskEntry| {
            matches!(entry.kind, DiskKind::Directory { .. }) && entry.mode & OWNER_WRITES != OWNER_WRITES
        };
        let mut closed = self.entries.iter().filter(closed);
        closed.try_for_each(|entry| set_mode(&root.join(&entry.path), entry.mode | OWNER_WRITES))
    }
}

pub(crate) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Returns the permission bits of a file, or None if it does not exist.
pub(crate) fn mode_of(path: &Path) -> Option<u32> {
    path.symlink_metadata().ok().map(|meta| meta.mode() & PERMISSIONS)
}

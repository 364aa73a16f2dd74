//! A directory with task files: their names, and how to list and read them.
//!
//! The directory of the project and the directory of the mirrors both have this form.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use agency_core::ids::TaskId;
use agency_core::slug::TaskName;

use crate::bounded_read::{Links, read_bounded};

/// One file for each task.
pub(crate) type Files = BTreeMap<TaskId, (TaskName, PathBuf)>;

pub(crate) fn file_name(name: &TaskName) -> String {
    format!("{name}.md")
}

pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_bounded(path, Links::Refused)
}

/// Returns the task files in a directory, sorted by id. Ignores other files.
pub(crate) fn list(directory: &Path) -> io::Result<Vec<(TaskName, PathBuf)>> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries.collect::<io::Result<Vec<_>>>()?,
        Err(err) if err.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(err) => return Err(err),
    };
    let named = |path: PathBuf| {
        let name: TaskName = path.file_name()?.to_str()?.strip_suffix(".md")?.parse().ok()?;
        Some((name, path))
    };
    let mut files: Vec<_> = entries.into_iter().filter_map(|entry| named(entry.path())).collect();
    files.sort_by(|(one, at), (other, there)| (one.id, at).cmp(&(other.id, there)));
    Ok(files)
}

//! The files in git's directory of a worktree that belong to the workspace: an operation in progress (a merge,
//! a rebase, a cherry-pick, a revert, a bisection), the sparse checkout and the worktree's own settings.
//!
//! Not its index and its `HEAD`: `saved_commit` holds those.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskKind};

/// Files and directories that exist only during an operation.
const OPERATION: [&str; 23] = [
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "MERGE_RR",
    "MERGE_AUTOSTASH",
    "AUTO_MERGE",
    "SQUASH_MSG",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "BISECT_LOG",
    "BISECT_START",
    "BISECT_TERMS",
    "BISECT_NAMES",
    "BISECT_HEAD",
    "BISECT_RUN",
    "BISECT_EXPECTED_REV",
    "BISECT_ANCESTORS_OK",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "refs/bisect",
    "refs/rewritten",
];

/// Git always has this file. It matters only during an operation, which may go back to it.
const ORIGIN: &str = "ORIG_HEAD";

/// Settings of the worktree itself.
const SETTINGS: [&str; 2] = ["config.worktree", "info/sparse-checkout"];

/// Lists the files of an operation in progress, relative to git's directory.
fn operation_files(git_dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        OPERATION.iter().flat_map(|name| files_at(git_dir, Path::new(name))).collect();
    if !files.is_empty() {
        files.extend(files_at(git_dir, Path::new(ORIGIN)));
    }
    files
}

/// Lists all files that belong to the workspace, relative to git's directory.
pub(crate) fn state_files(git_dir: &Path) -> Vec<PathBuf> {
    let settings = SETTINGS.iter().flat_map(|name| files_at(git_dir, Path::new(name)));
    operation_files(git_dir).into_iter().chain(settings).collect()
}

pub(crate) fn is_setting(path: &Path) -> bool {
    SETTINGS.iter().any(|name| path == Path::new(name))
}

fn files_at(git_dir: &Path, path: &Path) -> Vec<PathBuf> {
    match git_dir.join(path).symlink_metadata() {
        Ok(meta) if meta.is_file() => vec![path.to_owned()],
        Ok(meta) if meta.is_dir() => {
            let entries = Disk::walk(git_dir, path, &HashSet::new()).entries;
            entries.into_iter().filter(|entry| entry.kind == DiskKind::File).map(|entry| entry.path).collect()
        }
        _ => Vec::new(),
    }
}

/// Deletes the files of an operation in progress.
pub(crate) fn delete_operation(git_dir: &Path) -> io::Result<()> {
    for name in OPERATION {
        let path = git_dir.join(name);
        let deleted = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        match deleted {
            Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
            _ => {}
        }
    }
    Ok(())
}

/// Returns the full object ids that a file names.
pub(crate) fn named_ids(content: &[u8]) -> Vec<String> {
    let words = content.split(|byte| !byte.is_ascii_alphanumeric());
    let ids = words.filter(|word| [40, 64].contains(&word.len()) && word.iter().all(u8::is_ascii_hexdigit));
    ids.map(|id| String::from_utf8_lossy(id).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_between_other_words() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(named_ids(format!("pick {id} words\n{id}\nabc\n").as_bytes()), [id, id]);
        assert!(named_ids(format!("{id}0").as_bytes()).is_empty());
    }
}

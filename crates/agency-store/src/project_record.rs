//! `project.json`: facts about a project that its directory does not show.
//!
//! Rebuilds a record that is lost from the runs of the project and from the names in its directory.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use agency_api::paths::{StateDir, project_id};
use agency_core::ids::TaskId;
use agency_core::slug::MAX_ID;
use serde::{Deserialize, Serialize};

use crate::{atomic, saved_conflicts};

/// The name of the file in the directory of the project.
pub(crate) const FILE: &str = "project.json";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProjectRecord {
    pub(crate) root: PathBuf,
    pub(crate) vcs: String,
    /// No two tasks ever get the same id, even after one is removed.
    pub(crate) next_id: u64,
    /// Recognizes the root after the user has moved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) directory: Option<DirectoryIdentity>,
    /// The user no longer wants to see the project in lists. The next use of the project clears this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) forgotten: bool,
}

/// Identifies a directory wherever it is. A move within a file system keeps the inode and the time of birth; a copy
/// has others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DirectoryIdentity {
    /// Which machine saw it. Another machine may have the same directory at another path.
    host: String,
    inode: u64,
    /// In nanoseconds since 1970. A deleted directory may leave its inode to another one, but not its birth.
    born: u64,
}

impl DirectoryIdentity {
    /// `None` if there is no such directory, or if its file system does not record births.
    pub(crate) fn of(path: &Path, host: &str) -> Option<DirectoryIdentity> {
        let meta = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_dir)?;
        let born = meta.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let born = u64::try_from(born.as_nanos()).ok()?;
        Some(DirectoryIdentity { host: host.to_owned(), inode: meta.ino(), born })
    }
}

/// A project that runs name. If the record of a project is lost, its runs say where it is.
#[derive(Debug, Clone)]
pub struct ProjectHint {
    pub root: PathBuf,
    pub vcs: String,
    /// The task of the run.
    pub task: TaskId,
    /// Whether its agent is running. A project with a live agent is opened even if nothing else is left of it.
    pub lives: bool,
}

impl ProjectRecord {
    pub(crate) fn read(directory: &Path) -> io::Result<ProjectRecord> {
        Ok(serde_json::from_slice(&std::fs::read(directory.join(FILE))?)?)
    }

    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        atomic::write(&directory.join(FILE), &serde_json::to_vec_pretty(self)?)
    }

    /// The record of the project in this directory, as its runs describe it.
    fn from_hints(directory: &Path, hints: &[ProjectHint]) -> Option<ProjectRecord> {
        let id = directory.file_name()?.to_str()?;
        let of_project = || hints.iter().filter(|hint| project_id(&hint.root) == id);
        let hint = of_project().find(|hint| !hint.vcs.is_empty()).or(of_project().next())?;
        let highest = of_project().map(|hint| hint.task.0).max().unwrap_or(0);
        let next_id = first_free_id(directory).max(highest.saturating_add(1));
        Some(ProjectRecord {
            root: hint.root.clone(),
            vcs: hint.vcs.clone(),
            next_id,
            directory: None,
            forgotten: false,
        })
    }
}

/// Reads the records of all projects, and rebuilds those that are lost. Returns also what was wrong with them.
pub(crate) fn read_or_rebuild(state: &StateDir, hints: &[ProjectHint]) -> (Vec<ProjectRecord>, Vec<String>) {
    let (mut records, mut problems) = (Vec::new(), Vec::new());
    for directory in directories(state) {
        match ProjectRecord::read(&directory) {
            Ok(record) => records.push(record),
            // A daemon was killed just before it deleted the directory.
            Err(_) if std::fs::remove_dir(&directory).is_ok() => {}
            Err(cause) => {
                let rebuilt = ProjectRecord::from_hints(&directory, hints);
                let path = directory.join(FILE);
                let problem = match &rebuilt {
                    Some(_) => "it is written again from its runs",
                    None => "`agency ls` in the project writes it again",
                };
                let problem = format!("{} could not be read: {cause}; {problem}", path.display());
                tracing::warn!("{problem}");
                problems.push(problem);
                records.extend(rebuilt);
            }
        }
    }
    for hint in hints.iter().filter(|hint| hint.lives) {
        if !records.iter().any(|record| record.root == hint.root) {
            records.extend(ProjectRecord::from_hints(&state.project(&project_id(&hint.root)), hints));
        }
    }
    (records, problems)
}

/// The directories of all projects.
pub(crate) fn directories(state: &StateDir) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(state.projects()) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// One more than every id that the directory of a project mentions: in mirrors, workspaces and the trash.
pub(crate) fn first_free_id(directory: &Path) -> u64 {
    let names = ["tasks", "w", "trash"].into_iter().flat_map(|part| named_ids(&directory.join(part)));
    names.map(|(id, _)| id).max().unwrap_or(0).saturating_add(1)
}

/// The entries of a directory whose names begin with the id of a task.
pub(crate) fn named_ids(directory: &Path) -> Vec<(u64, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let named = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let digits = name.split(|letter: char| !letter.is_ascii_digit()).next()?;
        Some((digits.parse::<u64>().ok().filter(|id| *id <= MAX_ID)?, entry.path()))
    };
    entries.flatten().filter_map(named).collect()
}

/// Deletes the directory `from` of a project whose contents are in `to` now: its record, mirrors that `to` has too, and
/// what a daemon computes again. Fails if anything else is left there, and then the record stays.
pub(crate) fn delete_emptied(from: &Path, to: &Path) -> io::Result<()> {
    for mirror in std::fs::read_dir(from.join("tasks")).into_iter().flatten().flatten() {
        let there = to.join("tasks").join(mirror.file_name());
        match there.exists() {
            true => std::fs::remove_file(mirror.path())?,
            false => std::fs::rename(mirror.path(), there)?,
        }
    }
    for part in ["tasks", "w", "trash"] {
        ignore_missing(std::fs::remove_dir(from.join(part)))?;
    }
    ignore_missing(std::fs::remove_file(saved_conflicts::path_in(from)))?;
    let is_emptied = std::fs::read_dir(from)?.flatten().all(|entry| entry.file_name() == FILE);
    if !is_emptied {
        return Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, "something else is there"));
    }
    ignore_missing(std::fs::remove_file(from.join(FILE)))?;
    std::fs::remove_dir(from)
}

fn ignore_missing(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_moved_directory_is_recognized_and_a_new_one_at_its_place_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        fs::create_dir(&old).unwrap();
        let identity = DirectoryIdentity::of(&old, "a");
        fs::rename(&old, &new).unwrap();
        assert_eq!(DirectoryIdentity::of(&new, "a"), identity);
        assert_eq!(DirectoryIdentity::of(&old, "a"), None);
        fs::create_dir(&old).unwrap();
        assert!(identity.is_none() || DirectoryIdentity::of(&old, "a") != identity);
        assert!(identity.is_none() || DirectoryIdentity::of(&new, "b") != identity, "another machine");
    }

    #[test]
    fn an_emptied_directory_is_deleted_and_its_last_mirrors_move() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        for path in ["from/tasks", "from/w", "from/trash", "to/tasks"] {
            fs::create_dir_all(dir.path().join(path)).unwrap();
        }
        fs::write(from.join(FILE), "{}").unwrap();
        fs::write(saved_conflicts::path_in(&from), "[]").unwrap();
        for (path, text) in
            [("from/tasks/1-a.md", "old"), ("to/tasks/1-a.md", "new"), ("from/tasks/2-b.md", "b")]
        {
            fs::write(dir.path().join(path), text).unwrap();
        }
        delete_emptied(&from, &to).unwrap();
        assert!(!from.exists());
        let read = |name: &str| fs::read_to_string(to.join("tasks").join(name)).unwrap();
        assert_eq!((read("1-a.md").as_str(), read("2-b.md").as_str()), ("new", "b"));
    }

    #[test]
    fn a_directory_with_something_else_keeps_its_record() {
        for left in ["trash/1-a-7", "w/1", "unknown"] {
            let dir = tempfile::tempdir().unwrap();
            let (from, to) = (dir.path().join("from"), dir.path().join("to"));
            fs::create_dir_all(from.join(left)).unwrap();
            fs::write(from.join(FILE), "{}").unwrap();
            assert!(delete_emptied(&from, &to).is_err(), "{left}");
            assert!(from.join(FILE).exists() && from.join(left).exists(), "{left}");
        }
    }
}

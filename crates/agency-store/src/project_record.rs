//! `project.json`: facts about a project that its directory does not show.
//!
//! Rebuilds a record that is lost from the runs of the project and from the names in its directory.

use std::io;
use std::path::{Path, PathBuf};

use agency_api::paths::{StateDir, project_id};
use agency_core::ids::TaskId;
use agency_core::slug::MAX_ID;
use serde::{Deserialize, Serialize};

use crate::atomic;

/// The name of the file in the directory of the project.
pub(crate) const FILE: &str = "project.json";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProjectRecord {
    pub(crate) root: PathBuf,
    pub(crate) vcs: String,
    /// No two tasks ever get the same id, even after one is removed.
    pub(crate) next_id: u64,
}

/// A project that runs name. If the record of a project is lost, its runs say where it is.
#[derive(Debug, Clone)]
pub struct ProjectHint {
    pub root: PathBuf,
    pub vcs: String,
    /// The task of the run.
    pub task: TaskId,
    /// Whether its agent lives. A project with a live agent is opened even if nothing else is left of it.
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
        Some(ProjectRecord { root: hint.root.clone(), vcs: hint.vcs.clone(), next_id })
    }
}

/// Reads the records of all projects, and rebuilds those that are lost. Returns also what was wrong with them.
pub(crate) fn read_or_rebuild(state: &StateDir, hints: &[ProjectHint]) -> (Vec<ProjectRecord>, Vec<String>) {
    let (mut records, mut problems) = (Vec::new(), Vec::new());
    for directory in directories(state) {
        match ProjectRecord::read(&directory) {
            Ok(record) => records.push(record),
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
    let names =
        ["tasks", "w", "trash"].into_iter().filter_map(|part| std::fs::read_dir(directory.join(part)).ok());
    let ids = names.flatten().flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let digits = name.split(|letter: char| !letter.is_ascii_digit()).next()?;
        digits.parse::<u64>().ok().filter(|id| *id <= MAX_ID)
    });
    ids.max().unwrap_or(0).saturating_add(1)
}

//! `collisions.json` of a project: the conflicts between workspaces that the daemon found last.
//!
//! The next daemon shows them until it has looked for conflicts itself.

use std::io;
use std::path::{Path, PathBuf};

use agency_api::Bytes;
use agency_api::paths::{StateDir, create_private};
use agency_workspace::{ConflictWith, WorkspaceConflict};
use serde::{Deserialize, Serialize};

use crate::atomic;

#[derive(Serialize, Deserialize)]
struct SavedConflict {
    workspace: String,
    with: SavedOpponent,
    files: Vec<Bytes>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SavedOpponent {
    Base(String),
    Workspace(String),
}

/// Returns no conflicts if the file cannot be read: the daemon finds them again.
pub fn read(state: &StateDir, project: &str) -> Vec<WorkspaceConflict> {
    let text = std::fs::read(path(state, project)).unwrap_or_default();
    let saved: Vec<SavedConflict> = serde_json::from_slice(&text).unwrap_or_default();
    saved.into_iter().filter_map(from_saved).collect()
}

pub fn write(state: &StateDir, project: &str, found: &[WorkspaceConflict]) -> io::Result<()> {
    create_private(&state.project(project))?;
    let saved: Vec<SavedConflict> = found.iter().map(to_saved).collect();
    atomic::write(&path(state, project), &serde_json::to_vec(&saved)?)
}

fn path(state: &StateDir, project: &str) -> PathBuf {
    path_in(&state.project(project))
}

/// The file in the directory of a project.
pub(crate) fn path_in(directory: &Path) -> PathBuf {
    directory.join("collisions.json")
}

fn to_saved(conflict: &WorkspaceConflict) -> SavedConflict {
    let with = match &conflict.with {
        ConflictWith::Base(base) => SavedOpponent::Base(base.clone()),
        ConflictWith::Workspace(name) => SavedOpponent::Workspace(name.to_string()),
    };
    let files = conflict.files.iter().map(|file| Bytes::from(file.as_path())).collect();
    SavedConflict { workspace: conflict.workspace.to_string(), with, files }
}

fn from_saved(saved: SavedConflict) -> Option<WorkspaceConflict> {
    let with = match saved.with {
        SavedOpponent::Base(base) => ConflictWith::Base(base),
        SavedOpponent::Workspace(name) => ConflictWith::Workspace(name.parse().ok()?),
    };
    let files = saved.files.into_iter().map(|file| PathBuf::from(file.into_os_string())).collect();
    Some(WorkspaceConflict { workspace: saved.workspace.parse().ok()?, with, files })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_conflicts_are_read_back_and_a_broken_file_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path().to_owned());
        assert_eq!(read(&state, "p"), []);
        let (one, two) = ("1-one".parse().unwrap(), "2-two".parse().unwrap());
        let files = vec![PathBuf::from("a b"), PathBuf::from("ü")];
        let found = [
            WorkspaceConflict {
                workspace: one,
                with: ConflictWith::Base("main".into()),
                files: files.clone(),
            },
            WorkspaceConflict {
                workspace: two,
                with: ConflictWith::Workspace("1-one".parse().unwrap()),
                files,
            },
        ];
        write(&state, "p", &found).unwrap();
        assert_eq!(read(&state, "p"), found);
        std::fs::write(path(&state, "p"), "[{").unwrap();
        assert_eq!(read(&state, "p"), []);
    }
}

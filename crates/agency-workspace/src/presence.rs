//! How much of a workspace exists, and how much work is in it.
//!
//! Only the types: `state` and the repositories fill them.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

/// How much of a workspace exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// The workspace exists, and an agent can work in it.
    Ready,
    /// Git is still filling the directory, or was killed while it did. No agent should start in it.
    HalfMade,
    /// The branch exists, the directory does not: [`crate::reattach`] creates it again.
    DirectoryGone,
    /// The path holds something that git does not know as a worktree of this project.
    NotOurs,
    /// Never created, or removed.
    Absent,
}

/// How much of a workspace exists, and the work in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceState {
    /// The path of the workspace.
    pub path: PathBuf,
    /// How much of it exists.
    pub presence: Presence,
    /// The branch, if it exists.
    pub branch: Option<String>,
    /// Changed, staged and untracked files, relative to the workspace, without ignored ones.
    pub uncommitted: Vec<PathBuf>,
    /// The number of commits of the workspace that are not in its base.
    pub unmerged_commits: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathStatus {
    Missing,
    /// Treated like a missing directory: nothing can be lost with it.
    EmptyDirectory,
    Occupied,
}

impl PathStatus {
    pub(crate) fn of(path: &Path) -> Self {
        match path.symlink_metadata() {
            Err(_) => PathStatus::Missing,
            Ok(_) if fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none()) => {
                PathStatus::EmptyDirectory
            }
            Ok(_) => PathStatus::Occupied,
        }
    }
}

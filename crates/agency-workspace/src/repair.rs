//! Connects the worktrees of a project again after the user has moved the project.
//!
//! Git records the path of each worktree, and each worktree the path of the repository. Both are wrong after a
//! move. jj records relative paths, so its workspaces survive one.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tracing::{info, warn};

use crate::name::WORKTREES;
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::tool::ToolError;

/// Repairs git's records if the project was moved. Looks at one worktree first, because a move breaks all of
/// them, so it costs nearly nothing otherwise.
pub fn repair_moved(project: &Project) {
    let Kind::Git(repository) = &project.kind else { return };
    let mut worktrees = list_worktrees(repository);
    if !worktrees.next().is_some_and(|first| is_moved(repository, &first)) {
        return;
    }
    let moved: Vec<PathBuf> = list_worktrees(repository).filter(|path| is_moved(repository, path)).collect();
    match repair(repository, &moved) {
        Ok(()) => {
            info!(root = %project.root().display(), "the project was moved; git's records are repaired")
        }
        Err(err) => {
            warn!(root = %project.root().display(), %err, "cannot repair the records of a moved project")
        }
    }
}

/// Lists the directories below the folder of workspaces that have been worktrees.
fn list_worktrees(repository: &Repository) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(repository.root().join(WORKTREES)).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.join(".git").is_file())
}

/// Whether neither side of the connection exists at the recorded place. In a copy of a project both exist, at
/// the place of the original: a repair would take the worktrees away from it.
fn is_moved(repository: &Repository, path: &Path) -> bool {
    let Some(git_dir) = read_path(&path.join(".git"), b"gitdir: ") else { return false };
    let Some(id) = git_dir.file_name() else { return false };
    let recorded = read_path(&repository.common_dir().join("worktrees").join(id).join("gitdir"), b"");
    !git_dir.exists() && recorded.is_some_and(|recorded| !recorded.exists())
}

/// Reads an absolute path. A relative one is still right after a move.
fn read_path(file: &Path, before: &[u8]) -> Option<PathBuf> {
    let text = fs::read(file).ok()?;
    let path = PathBuf::from(OsStr::from_bytes(text.strip_prefix(before)?.trim_ascii_end()));
    path.is_absolute().then_some(path)
}

fn repair(repository: &Repository, moved: &[PathBuf]) -> Result<(), ToolError> {
    let args = ["worktree", "repair", "--"].map(OsStr::new);
    let paths: Vec<&OsStr> = moved.iter().map(|path| path.as_os_str()).collect();
    repository.git().change(&[&args[..], &paths].concat()).map(drop)
}

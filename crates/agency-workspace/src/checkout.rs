//! The files of a checkout that no commit holds.
//!
//! Not commits: those are counted in `state`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::git::Git;
use crate::project::{Kind, Project};
use crate::tool::ToolError;

/// Every untracked file by itself, whatever the user configured for their own eyes; no renames, so
/// that each entry is one path.
const STATUS: [&str; 6] =
    ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=none"];

#[derive(Debug, thiserror::Error)]
#[error("cannot look into the main checkout {}", root.display())]
pub struct CheckoutError {
    pub root: PathBuf,
    pub source: ToolError,
}

impl CheckoutError {
    pub fn hint(&self) -> Option<String> {
        self.source.hint()
    }
}

/// Uncommitted files of the main checkout, which new workspaces start without. None in a bare
/// repository or a plain directory.
pub fn dirty_checkout(project: &Project) -> Result<Vec<PathBuf>, CheckoutError> {
    match &project.kind {
        Kind::Git(repository) if !repository.is_bare() => {
            let git = repository.git().with_work_tree(repository.root());
            uncommitted_files(&git, &["--", ":/", ":(top,exclude).agency"])
                .map_err(|source| CheckoutError { root: project.root().to_owned(), source })
        }
        // What is in front of a jj user is a commit like any other, and new workspaces start on it.
        Kind::Git(_) | Kind::Jj(_) | Kind::Plain(_) => Ok(Vec::new()),
    }
}

pub(crate) fn uncommitted_files(git: &Git, paths: &[&str]) -> Result<Vec<PathBuf>, ToolError> {
    let listed = git.read(&[&STATUS[..], paths].concat())?;
    let entries = listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    // Two letters and a space come before the path.
    Ok(entries
        .filter_map(|entry| entry.get(3..))
        .map(|path| PathBuf::from(OsStr::from_bytes(path)))
        .collect())
}

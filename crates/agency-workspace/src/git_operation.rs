//! Git operations that the user has begun in a checkout and has not finished, such as a rebase.
//!
//! Looks only at the files that git keeps during them. Starts no process.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::repository::Repository;
use crate::tool::ToolError;
use crate::worktree::worktrees_on_branch;

/// A git operation that is not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GitOperation {
    /// With its article.
    pub(crate) what: &'static str,
    /// The arguments of the git command that takes it back.
    pub(crate) abort: &'static str,
}

/// The file of each operation in git's directory of a checkout. The first one that exists decides: a rebase
/// that stops at a conflict also has the file of a cherry-pick.
const SIGNS: [(&str, GitOperation); 8] = [
    ("rebase-merge", GitOperation { what: "a rebase", abort: "rebase --abort" }),
    ("rebase-apply/applying", GitOperation { what: "a `git am`", abort: "am --abort" }),
    ("rebase-apply", GitOperation { what: "a rebase", abort: "rebase --abort" }),
    ("MERGE_HEAD", GitOperation { what: "a merge", abort: "merge --abort" }),
    ("CHERRY_PICK_HEAD", GitOperation { what: "a cherry-pick", abort: "cherry-pick --abort" }),
    ("REVERT_HEAD", GitOperation { what: "a revert", abort: "revert --abort" }),
    // Stays between the commits of a long cherry-pick or revert. Either command takes both back.
    ("sequencer/todo", GitOperation { what: "a cherry-pick or revert", abort: "cherry-pick --abort" }),
    ("BISECT_START", GitOperation { what: "a bisect", abort: "bisect reset" }),
];

impl GitOperation {
    /// Returns the operation in progress in a checkout.
    pub(crate) fn in_progress(git_dir: &Path) -> Option<Self> {
        SIGNS.into_iter().find(|(sign, _)| git_dir.join(sign).exists()).map(|(_, operation)| operation)
    }

    /// Returns an operation that is in progress in any checkout of a branch, and the path of that checkout. A
    /// rebase or bisect leaves `HEAD` detached, and moves the branch, or `HEAD` back to it, when it ends.
    pub(crate) fn on_branch(
        repository: &Repository,
        branch: &str,
    ) -> Result<Option<(PathBuf, Self)>, ToolError> {
        for (path, git_dir) in checkouts(repository) {
            let Some(operation) = Self::in_progress(&git_dir) else { continue };
            let is_on_branch = || -> Result<bool, ToolError> {
                Ok(worktrees_on_branch(repository, branch)?.iter().any(|record| record.path == path))
            };
            if will_move(&git_dir, branch) || is_on_branch()? {
                return Ok(Some((path, operation)));
            }
        }
        Ok(None)
    }
}

/// Lists the checkouts that exist, each with git's directory of it.
fn checkouts(repository: &Repository) -> Vec<(PathBuf, PathBuf)> {
    let common_dir = repository.common_dir();
    let main =
        (!repository.is_bare()).then(|| (repository.root().to_owned(), repository.common_dir().to_owned()));
    let linked = fs::read_dir(common_dir.join("worktrees")).into_iter().flatten().flatten();
    let linked = linked.filter_map(|entry| Some((linked_checkout(&entry.path())?, entry.path())));
    main.into_iter().chain(linked).filter(|(path, _)| path.is_dir()).collect()
}

/// Reads where the checkout of a git directory is. The path may be relative to that directory.
fn linked_checkout(git_dir: &Path) -> Option<PathBuf> {
    let link = fs::read(git_dir.join("gitdir")).ok()?;
    let link = git_dir.join(OsStr::from_bytes(link.trim_ascii_end()));
    let parent = link.parent()?;
    Some(parent.canonicalize().unwrap_or_else(|_| parent.to_owned()))
}

/// Whether the operation in progress moves the branch, or `HEAD` back to it, when it ends.
fn will_move(git_dir: &Path, branch: &str) -> bool {
    let full = format!("refs/heads/{branch}");
    let has_line = |file: &str, wanted: &str| {
        fs::read_to_string(git_dir.join(file)).is_ok_and(|text| text.lines().any(|line| line == wanted))
    };
    has_line("rebase-merge/head-name", &full)
        || has_line("rebase-apply/head-name", &full)
        || has_line("rebase-merge/update-refs", &full)
        || has_line("BISECT_START", branch)
}

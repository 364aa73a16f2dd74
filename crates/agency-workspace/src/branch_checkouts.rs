//! Finds a git operation that is not finished in any checkout of a branch.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::git_operation::GitOperation;
use crate::repository::Repository;
use crate::tool::ToolError;
use crate::worktree::worktrees_on_branch;

/// Returns an operation that is in progress in any checkout of a branch, and the path of that checkout. A
/// rebase or bisect leaves `HEAD` detached, and moves the branch, or `HEAD` back to it, when it ends.
pub(crate) fn find_operation_on_branch(
    repository: &Repository,
    branch: &str,
) -> Result<Option<(PathBuf, GitOperation)>, ToolError> {
    for (path, git_dir) in checkouts(repository) {
        let Some(operation) = GitOperation::in_progress(&git_dir) else { continue };
        let is_on_branch = || -> Result<bool, ToolError> {
            Ok(worktrees_on_branch(repository, branch)?.iter().any(|record| record.path == path))
        };
        if will_move(&git_dir, branch) || is_on_branch()? {
            return Ok(Some((path, operation)));
        }
    }
    Ok(None)
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

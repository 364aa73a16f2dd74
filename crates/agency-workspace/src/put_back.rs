//! Writes saved work into a worktree: the files, the index, the operation in progress, and the branch.

use std::path::PathBuf;

use crate::error::OperationCause;
use crate::git::Git;
use crate::git_workspace::ReadyWorkspace;
use crate::name::WorkspaceName;
use crate::repository::{Repository, tree_of};
use crate::restore_details::{Details, open_directories};
use crate::saved_commit::Trailers;
use crate::temp_index::{TempIndex, blocking_files, parse_paths};
use crate::tool::ToolError;
use crate::worktree::Worktree;

/// Files that are not as they were saved.
pub(crate) type Different = Vec<PathBuf>;

/// Writes the files of a saved commit, then the index and the operation in progress, and moves the branch.
/// `PendingRestore` completes it after an interruption.
pub(crate) fn put_back(
    repository: &Repository,
    name: &WorkspaceName,
    ready: &ReadyWorkspace,
    commit: &str,
) -> Result<Different, OperationCause> {
    let (trailers, head_then) = Trailers::read(repository, commit)?;
    let details = trailers.read_details(repository)?;
    let put = put_tree(repository, &ready.worktree, &tree_of(repository, commit)?, details.as_ref())?;
    if is_on_own_branch(name, ready, &trailers) {
        move_branch(repository, ready, head_then.as_deref())?;
        put_index(repository, &ready.worktree, &trailers, head_then.as_deref(), details.as_ref())?;
    }
    put.differences(repository, &ready.worktree, details.as_ref(), State::Other)
}

/// Files that are written to a worktree.
pub(crate) struct PutTree {
    temp_index: TempIndex,
    tree: String,
}

/// Whether git's directory of the worktree has the saved state too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Saved,
    Other,
}

/// Makes the files of a worktree those of a tree.
pub(crate) fn put_tree(
    repository: &Repository,
    worktree: &Worktree,
    wanted: &str,
    details: Option<&Details>,
) -> Result<PutTree, OperationCause> {
    let temp_index = worktree.temp_index(repository)?;
    temp_index.show_all_files()?;
    temp_index.add_all_files()?;
    let now = temp_index.tree()?;
    let absent = details.map(|details| &details.manifest.absent).filter(|absent| !absent.is_empty());
    let wanted = match absent {
        Some(absent) => {
            let without = worktree.temp_index(repository)?;
            without.git().change(&["read-tree", wanted])?;
            without.remove_entries(absent.iter().map(PathBuf::as_path))?;
            without.tree()?
        }
        None => wanted.to_owned(),
    };
    let files = blocking_files(temp_index.git(), &worktree.path, &now, &wanted)?;
    if !files.is_empty() {
        return Err(OperationCause::InTheWay { files });
    }
    open_directories(&temp_index, &worktree.path)?;
    temp_index.check_out(&now, &wanted)?;
    if let Some(details) = details {
        details.put_files(repository, &temp_index, &worktree.path)?;
    }
    Ok(PutTree { temp_index, tree: wanted })
}

impl PutTree {
    /// Reads the files again, and compares them with what was saved.
    pub(crate) fn differences(
        &self,
        repository: &Repository,
        worktree: &Worktree,
        details: Option<&Details>,
        state: State,
    ) -> Result<Different, OperationCause> {
        self.temp_index.add_all_files()?;
        let args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", &self.tree];
        let now = self.temp_index.tree()?;
        let mut different = parse_paths(&repository.git().read(&[&args[..], &[&now]].concat())?);
        if let Some(details) = details {
            let git_dir = (state == State::Saved).then_some(&*worktree.git_dir);
            different.extend(details.differences(self.temp_index.git(), &worktree.path, git_dir)?);
        }
        different.sort();
        different.dedup();
        Ok(different)
    }
}

fn is_on_own_branch(name: &WorkspaceName, ready: &ReadyWorkspace, trailers: &Trailers) -> bool {
    let own = Some(name.branch());
    let is_on_own = ready.found.record.as_ref().is_some_and(|record| record.branch == own);
    let was_on = trailers.head.as_deref().and_then(|head| head.strip_prefix("refs/heads/"));
    is_on_own && was_on == own.as_deref()
}

/// Removes later commits from the branch: with them, the restored files would look like a revert by hand.
fn move_branch(
    repository: &Repository,
    ready: &ReadyWorkspace,
    head_then: Option<&str>,
) -> Result<(), ToolError> {
    let Some(head_then) = head_then.filter(|head| ready.found.head() != Some(head)) else { return Ok(()) };
    let git = ready.worktree.git(repository).with_variable("GIT_REFLOG_ACTION", "agency: restore");
    git.change(&["reset", "--quiet", "--mixed", head_then]).map(drop)
}

/// Makes the index and the operation in progress those of the saved commit.
pub(crate) fn put_index(
    repository: &Repository,
    worktree: &Worktree,
    trailers: &Trailers,
    head_then: Option<&str>,
    details: Option<&Details>,
) -> Result<(), OperationCause> {
    let git = worktree.git(repository);
    let Some(details) = details else { return Ok(read_index(&git, trailers.index.as_deref())?) };
    read_index(&git, trailers.index.as_deref().or(head_then))?;
    details.put_index(&git, &worktree.path)?;
    details.put_operation(repository, &worktree.git_dir)
}

fn read_index(git: &Git, index: Option<&str>) -> Result<(), ToolError> {
    let Some(index) = index else { return Ok(()) };
    git.change(&["read-tree", index])?;
    git.change(&["update-index", "-q", "--refresh"]).map(drop)
}

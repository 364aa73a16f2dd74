//! Commits all the work in a workspace, as its user would.
//!
//! Runs the user's hooks and uses their identity and signing key. Commits on the workspace's own branch only.

use std::path::PathBuf;
use std::{fs, io};

use crate::error::{Operation, OperationCause, OperationError};
use crate::git_workspace::ReadyWorkspace;
use crate::integration_lock::IntegrationLock;
use crate::jj;
use crate::merge_target::refuse_busy_or_other_branch;
use crate::name::WorkspaceName;
use crate::pending_sync;
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::tool::{ToolError, text};
use crate::worktree::Worktree;

/// Commits everything in the workspace. Returns the new commit, or None if there was nothing to commit.
pub fn commit_all(
    project: &Project,
    name: &WorkspaceName,
    message: &str,
) -> Result<Option<String>, OperationError> {
    let committed = match &project.kind {
        Kind::Git(repository) => commit_worktree(repository, name, message),
        Kind::Jj(repository) => jj::commit_all(repository, name, message),
        Kind::Plain(_) => Err(OperationCause::Plain { path: project.root().to_owned() }),
    };
    committed.map_err(Operation::Commit.failed(name))
}

fn commit_worktree(
    repository: &Repository,
    name: &WorkspaceName,
    message: &str,
) -> Result<Option<String>, OperationCause> {
    // Files that an interrupted sync brought from the base are not work of this task.
    pending_sync::recover_sync(repository, name, &IntegrationLock::acquire(repository)?)?;
    let ready = ReadyWorkspace::find(repository, name)?;
    refuse_busy_or_other_branch(repository, name, &ready.found, &ready.worktree)?;
    if ready.found.uncommitted(repository)?.is_empty() {
        return Ok(None);
    }
    let git = ready.worktree.git(repository).with_variable("GIT_EDITOR", "true");
    let index = SavedIndex::of(&ready.worktree)?;
    let commit = || -> Result<(), ToolError> {
        git.change(&["add", "--all", "--", ":/"])?;
        git.change_with_hooks(&["commit", "--quiet", "--message", message])
    };
    if let Err(err) = commit() {
        index.restore()?;
        return Err(err.into());
    }
    Ok(Some(git.read_line(&["rev-parse", "--verify", "HEAD"]).map(text)?))
}

/// The index before this commit. If a hook or the signing program refuses the commit, the index is restored.
struct SavedIndex {
    path: PathBuf,
    before: Option<Vec<u8>>,
}

impl SavedIndex {
    fn of(worktree: &Worktree) -> Result<Self, OperationCause> {
        let path = worktree.git_dir.join("index");
        match fs::read(&path) {
            Ok(before) => Ok(Self { path, before: Some(before) }),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(Self { path, before: None }),
            Err(source) => Err(OperationCause::Write { path, source }),
        }
    }

    fn restore(self) -> Result<(), OperationCause> {
        let Some(before) = self.before else { return Ok(()) };
        // Replaced in one step, so that a concurrent reader sees the old index or the new one.
        let aside = self.path.with_extension("agency");
        let put = fs::write(&aside, before).and_then(|()| fs::rename(&aside, &self.path));
        put.map_err(|source| OperationCause::Write { path: self.path, source })
    }
}

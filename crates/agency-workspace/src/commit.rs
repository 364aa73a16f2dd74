//! Commits all the work in a workspace, as its user would.
//!
//! With their hooks, identity and signing; on the workspace's own branch only.

use std::path::PathBuf;
use std::{fs, io};

use crate::jj;
use crate::merge::refuse_busy_or_other_branch;
use crate::name::WorkspaceName;
use crate::operation::{Operation, OperationCause, OperationError};
use crate::pending_sync;
use crate::project::{Kind, Project};
use crate::repository::{Repository, text};
use crate::tool::ToolError;
use crate::trial_worktree::IntegrationLock;
use crate::versions::ReadyWorkspace;
use crate::worktree::Worktree;

/// The new commit; None if there was nothing to commit.
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
    // Files of a base that came half-way are not the work of anybody here.
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

/// What was staged before us. A hook or a signature that refuses the commit leaves it as it was.
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
        // In one step: whoever reads it sees the one or the other.
        let aside = self.path.with_extension("agency");
        let put = fs::write(&aside, before).and_then(|()| fs::rename(&aside, &self.path));
        put.map_err(|source| OperationCause::Write { path: self.path, source })
    }
}

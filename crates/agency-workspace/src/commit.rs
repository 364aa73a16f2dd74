//! Commits all the work in a workspace, as its user would.
//!
//! With their hooks, identity and signing; on the workspace's own branch only.

use crate::jj;
use crate::merge::refuse_unfinished;
use crate::name::WorkspaceName;
use crate::operation::{Operation, OperationCause, OperationError};
use crate::project::{Kind, Project};
use crate::repository::{Repository, text};
use crate::versions::Ready;

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
    let ready = Ready::look(repository, name)?;
    refuse_unfinished(repository, name, &ready.found, &ready.worktree)?;
    if ready.found.uncommitted(repository)?.is_empty() {
        return Ok(None);
    }
    let git = ready.worktree.git(repository).with_variable("GIT_EDITOR", "true");
    git.change(&["add", "--all", "--", ":/"])?;
    git.change_with_hooks(&["commit", "--quiet", "--message", message])?;
    Ok(Some(git.line(&["rev-parse", "--verify", "HEAD"]).map(text)?))
}

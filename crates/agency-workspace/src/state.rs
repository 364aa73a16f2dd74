//! The state of a workspace: what exists of it, and which work would be lost with it.
//!
//! Read-only: nothing is changed here, not even the index.

use crate::error::OperationCause;
use crate::git_workspace::GitWorkspace;
use crate::jj;
use crate::merged_refs::MergedRefs;
use crate::name::WorkspaceName;
use crate::presence::{Presence, WorkspaceState};
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::tool::ToolError;

/// The state of a workspace could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read workspace {workspace}")]
pub struct StateError {
    /// The workspace.
    pub workspace: WorkspaceName,
    /// Why it failed.
    #[source]
    pub cause: OperationCause,
}

impl StateError {
    /// Returns a way out for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        self.cause.hint(&self.workspace)
    }
}

/// Reads the state of a workspace. `base` is the task's `base_branch`; without one, the current branch of the
/// main checkout.
pub fn state(
    project: &Project,
    name: &WorkspaceName,
    base: Option<&str>,
) -> Result<WorkspaceState, StateError> {
    let failed = |cause: ToolError| StateError { workspace: name.clone(), cause: cause.into() };
    match &project.kind {
        Kind::Git(repository) => worktree_state(repository, name, base).map_err(failed),
        Kind::Jj(repository) => {
            jj::state(repository, name, base).map_err(|cause| StateError { workspace: name.clone(), cause })
        }
        Kind::Plain(_) => Ok(directory_state(project)),
    }
}

/// Returns the quick part of [`state`]: whether there is a workspace to work in. Reads no files in it.
pub fn presence(project: &Project, name: &WorkspaceName) -> Result<Presence, StateError> {
    let failed = |cause: ToolError| StateError { workspace: name.clone(), cause: cause.into() };
    match &project.kind {
        Kind::Git(repository) => {
            GitWorkspace::find(repository, name).map(|found| found.presence()).map_err(failed)
        }
        Kind::Jj(repository) => jj::presence(repository, name).map_err(failed),
        Kind::Plain(_) => Ok(directory_state(project).presence),
    }
}

/// Whether the directory of an existing workspace has disappeared, or is another one now. Asks the file
/// system only, so it is cheap.
pub fn is_gone(project: &Project, name: &WorkspaceName) -> bool {
    match &project.kind {
        Kind::Git(repository) => {
            let link = repository.workspace_path(name).join(".git");
            !link.symlink_metadata().is_ok_and(|meta| meta.is_file())
        }
        Kind::Jj(repository) => !jj::is_workspace_there(repository, name),
        Kind::Plain(_) => !project.root().is_dir(),
    }
}

fn worktree_state(
    repository: &Repository,
    name: &WorkspaceName,
    base: Option<&str>,
) -> Result<WorkspaceState, ToolError> {
    let found = GitWorkspace::find(repository, name)?;
    Ok(WorkspaceState {
        path: repository.workspace_path(name),
        presence: found.presence(),
        branch: found.tip.as_ref().map(|_| name.branch()),
        uncommitted: found.uncommitted(repository)?,
        unmerged_commits: found.count_unmerged(repository, &MergedRefs::of(repository, name, base)?)?,
    })
}

fn directory_state(project: &Project) -> WorkspaceState {
    let path = project.root().to_owned();
    let presence = if path.is_dir() { Presence::Ready } else { Presence::Absent };
    WorkspaceState { path, presence, branch: None, uncommitted: Vec::new(), unmerged_commits: 0 }
}

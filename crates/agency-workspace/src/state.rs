//! What there is of a workspace, and what in it would be lost with it.
//!
//! Only looks: nothing is changed here, not even the index.

use std::fs;
use std::path::{Path, PathBuf};

use crate::checkout::uncommitted_files;
use crate::jj;
use crate::merged_refs::MergedRefs;
use crate::name::WorkspaceName;
use crate::operation::OperationCause;
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::tool::ToolError;
use crate::worktree::{Worktree, WorktreeRecord, find_record};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// There, and an agent can work in it.
    Ready,
    /// Git is still filling it, or was killed while it did: nobody should start in it.
    HalfMade,
    /// The branch is there, the directory is not: [`crate::reattach`] brings it back.
    DirectoryGone,
    /// In its place is something that git does not know as a worktree of this project.
    NotOurs,
    /// Never made, or removed.
    Absent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceState {
    pub path: PathBuf,
    pub presence: Presence,
    /// The branch, if it exists.
    pub branch: Option<String>,
    /// Relative to the workspace: changed, staged and untracked files, without ignored ones.
    pub uncommitted: Vec<PathBuf>,
    /// Commits of the workspace that are not in its base.
    pub unmerged_commits: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot look into workspace {workspace}")]
pub struct StateError {
    pub workspace: WorkspaceName,
    #[source]
    pub cause: OperationCause,
}

impl StateError {
    pub fn hint(&self) -> Option<String> {
        self.cause.hint(&self.workspace)
    }
}

/// `base` is the task's `base_branch`; without one, the current branch of the main checkout.
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

/// The quick part of [`state`]: whether there is a workspace to work in. Reads no files of it.
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

/// Whether the directory of a workspace that was there has disappeared, or is another one now. Asks the file
/// system only, so it can be called often.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathStatus {
    Missing,
    /// As good as missing: nothing can be lost with it.
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

/// All traces of one workspace.
#[derive(Debug)]
pub(crate) struct GitWorkspace {
    pub(crate) path_status: PathStatus,
    pub(crate) record: Option<WorktreeRecord>,
    pub(crate) worktree: Option<Worktree>,
    /// The commit its branch points to.
    pub(crate) tip: Option<String>,
}

impl GitWorkspace {
    pub(crate) fn find(repository: &Repository, name: &WorkspaceName) -> Result<Self, ToolError> {
        let path = repository.workspace_path(name);
        let record = find_record(repository, name)?;
        let worktree = match &record {
            Some(_) => Worktree::open(repository, &path),
            None => None,
        };
        let path_status = PathStatus::of(&path);
        Ok(Self { path_status, record, worktree, tip: repository.branch_tip(&name.branch())? })
    }

    /// The commit the directory stands on, or would.
    pub(crate) fn head(&self) -> Option<&str> {
        self.record.as_ref().and_then(|record| record.head.as_deref()).or(self.tip.as_deref())
    }

    pub(crate) fn presence(&self) -> Presence {
        let half_made = self.record.as_ref().is_some_and(WorktreeRecord::is_incomplete);
        match (self.path_status, &self.worktree, &self.tip) {
            (PathStatus::Occupied, Some(_), _) if half_made => Presence::HalfMade,
            (PathStatus::Occupied, Some(_), _) => Presence::Ready,
            (PathStatus::Occupied, None, _) => Presence::NotOurs,
            (PathStatus::Missing | PathStatus::EmptyDirectory, _, Some(_)) => Presence::DirectoryGone,
            (PathStatus::Missing | PathStatus::EmptyDirectory, _, None) => Presence::Absent,
        }
    }

    pub(crate) fn uncommitted(&self, repository: &Repository) -> Result<Vec<PathBuf>, ToolError> {
        self.worktree
            .as_ref()
            .map_or(Ok(Vec::new()), |worktree| uncommitted_files(&worktree.git(repository), &[]))
    }

    /// Commits that only this workspace leads to. Another branch checked out in it stays when the
    /// workspace goes; a detached `HEAD` does not.
    pub(crate) fn count_unmerged(
        &self,
        repository: &Repository,
        merged_refs: &MergedRefs,
    ) -> Result<u64, ToolError> {
        let detached = self.record.as_ref().and_then(WorktreeRecord::detached_head);
        let tips: Vec<&str> = self.tip.as_deref().into_iter().chain(detached).collect();
        merged_refs.count_missing(repository, &tips)
    }
}

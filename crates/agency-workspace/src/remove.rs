//! Removes a workspace, and keeps what was in it.
//!
//! Decides by itself what may go; whether an agent still works in it is the caller's to know.

use std::io;
use std::path::PathBuf;

use crate::create::delete_untouched_branch;
use crate::jj;
use crate::merged_refs::MergedRefs;
use crate::name::WorkspaceName;
use crate::operation::{OperationCause, shown};
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::saved_commit::{self, Contents, Ignored};
use crate::state::{GitWorkspace, PathStatus, Presence};
use crate::tool::ToolError;
use crate::trash::{self, TrashReason};
use crate::work::WorkAtRisk;
use crate::worktree::{Force, WorktreeRecord, other_worktree_on_branch};

/// What is gone, and where it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removed {
    /// `refs/agency/trash/…`: the files, the index and the branch as they were. None if there was
    /// nothing to remove.
    pub trash_ref: Option<String>,
    /// The branch that was deleted.
    pub branch: Option<String>,
    /// The directory that was deleted.
    pub directory: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot remove workspace {workspace}")]
pub struct RemoveError {
    pub workspace: WorkspaceName,
    #[source]
    pub cause: RemoveCause,
}

#[derive(Debug, thiserror::Error)]
pub enum RemoveCause {
    #[error("{0}")]
    HasWork(WorkAtRisk),
    #[error("{} is not a worktree that git knows of this repository", path.display())]
    NotOurs { path: PathBuf },
    #[error("its worktree is locked: {reason}")]
    Locked { path: PathBuf, reason: String },
    #[error("its branch {branch} is checked out in {}", path.display())]
    BranchInUse { branch: String, path: PathBuf },
    #[error("git cannot keep the repositories inside it: {}", shown(paths))]
    NestedRepositories { paths: Vec<PathBuf> },
    #[error("cannot copy the index in {}", path.display())]
    Index { path: PathBuf, source: io::Error },
    #[error("it could not be removed completely")]
    Unfinished { trash_ref: Option<String>, source: ToolError },
    #[error(transparent)]
    Unreadable(Box<OperationCause>),
    #[error(transparent)]
    Git(#[from] ToolError),
}

impl RemoveError {
    pub fn hint(&self) -> Option<String> {
        self.cause.hint()
    }
}

impl RemoveCause {
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            RemoveCause::HasWork(work) => Some(work.hint()),
            RemoveCause::NotOurs { path } => Some(format!(
                "if the repository was moved, run: git worktree repair '{0}'; otherwise delete {0} yourself",
                path.display()
            )),
            RemoveCause::Locked { path, .. } => {
                Some(format!("run: git worktree unlock '{}'", path.display()))
            }
            RemoveCause::BranchInUse { .. } => Some("switch to another branch there".into()),
            RemoveCause::NestedRepositories { .. } => {
                Some("push what they hold and delete them, or move them somewhere else".into())
            }
            RemoveCause::Unfinished { trash_ref, source } => trash_ref
                .as_ref()
                .map(|kept| format!("everything in it is kept as {kept}"))
                .or_else(|| source.hint()),
            RemoveCause::Index { .. } | RemoveCause::Unreadable(_) => None,
            RemoveCause::Git(err) => err.hint(),
        }
    }
}

/// How a workspace is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemoveOptions {
    /// Also with work that is uncommitted, or not in the base.
    pub discard: bool,
    /// The trash gets ignored files too, which may be many.
    pub keep_ignored: bool,
}

impl RemoveOptions {
    /// With whatever is in it.
    pub fn discarding() -> Self {
        Self { discard: true, ..Self::default() }
    }
}

/// Removes directory, record and branch. `base` as in [`crate::state()`].
///
/// Work that is uncommitted, or not in the base, refuses unless it is to be discarded. Either way everything but
/// ignored files, and those too if asked, is first kept under [`Removed::trash_ref`].
pub fn remove(
    project: &Project,
    name: &WorkspaceName,
    base: Option<&str>,
    options: RemoveOptions,
) -> Result<Removed, RemoveError> {
    match &project.kind {
        Kind::Git(repository) => remove_worktree(repository, name, base, options)
            .map_err(|cause| RemoveError { workspace: name.clone(), cause }),
        Kind::Jj(repository) => jj::remove(repository, name, base, options)
            .map_err(|cause| RemoveError { workspace: name.clone(), cause }),
        // The directory is the user's own; there is nothing of ours in it.
        Kind::Plain(_) => Ok(Removed::default()),
    }
}

/// Whether [`remove`] would refuse, found out without touching anything but the object store.
pub fn check_remove(
    project: &Project,
    name: &WorkspaceName,
    base: Option<&str>,
    options: RemoveOptions,
) -> Result<(), RemoveError> {
    let checked = match &project.kind {
        Kind::Git(repository) => find_removable(repository, name, base, options).and_then(|found| {
            let Some(worktree) = &found.worktree else { return Ok(()) };
            Contents::read_all(repository, worktree, found.head(), Ignored::Left).map(drop)
        }),
        Kind::Jj(repository) => jj::removable(repository, name, base, options),
        Kind::Plain(_) => Ok(()),
    };
    checked.map_err(|cause| RemoveError { workspace: name.clone(), cause })
}

impl From<OperationCause> for RemoveCause {
    fn from(cause: OperationCause) -> Self {
        match cause {
            OperationCause::Save(cause) => cause,
            OperationCause::Git(err) => RemoveCause::Git(err),
            cause => RemoveCause::Unreadable(Box::new(cause)),
        }
    }
}

fn remove_worktree(
    repository: &Repository,
    name: &WorkspaceName,
    base: Option<&str>,
    options: RemoveOptions,
) -> Result<Removed, RemoveCause> {
    let found = find_removable(repository, name, base, options)?;
    let force = force_for(repository, &found, options.discard)?;
    let ignored = if options.keep_ignored { Ignored::Saved } else { Ignored::Left };
    let trash_ref = trash::save_workspace(repository, name, &found, TrashReason::Removed, ignored)?;
    let unfinished = |source| RemoveCause::Unfinished { trash_ref: trash_ref.clone(), source };
    let directory = delete_worktree(repository, &found, force).map_err(unfinished)?;
    let branch = delete_branch(repository, name, &found).map_err(unfinished)?;
    Ok(Removed { trash_ref, branch, directory })
}

/// All that there is, if it may go.
fn find_removable(
    repository: &Repository,
    name: &WorkspaceName,
    base: Option<&str>,
    options: RemoveOptions,
) -> Result<GitWorkspace, RemoveCause> {
    let found = GitWorkspace::find(repository, name)?;
    refuse_foreign(repository, name, &found)?;
    if !options.discard {
        refuse_work(repository, name, &found, base)?;
    }
    Ok(found)
}

fn refuse_foreign(
    repository: &Repository,
    name: &WorkspaceName,
    found: &GitWorkspace,
) -> Result<(), RemoveCause> {
    let path = repository.workspace_path(name);
    if found.presence() == Presence::NotOurs {
        return Err(RemoveCause::NotOurs { path });
    }
    if let Some(reason) = found.record.as_ref().and_then(WorktreeRecord::user_lock_reason) {
        return Err(RemoveCause::Locked { path, reason: reason.to_owned() });
    }
    match other_worktree_on_branch(repository, name)? {
        Some(path) => Err(RemoveCause::BranchInUse { branch: name.branch(), path }),
        None => Ok(()),
    }
}

fn refuse_work(
    repository: &Repository,
    name: &WorkspaceName,
    found: &GitWorkspace,
    base: Option<&str>,
) -> Result<(), RemoveCause> {
    let merged_refs = MergedRefs::of(repository, name, base)?;
    match WorkAtRisk::at_risk(repository, name, found, &merged_refs)? {
        Some(work) => Err(RemoveCause::HasWork(work)),
        None => Ok(()),
    }
}

/// The directory that went with the record, if there was one.
fn delete_worktree(
    repository: &Repository,
    found: &GitWorkspace,
    force: Force,
) -> Result<Option<PathBuf>, ToolError> {
    let Some(record) = &found.record else { return Ok(None) };
    record.remove(repository, force)?;
    Ok((found.path_status != PathStatus::Missing).then(|| record.path.clone()))
}

/// Git does not remove a checkout with submodules unless forced, not even a clean one.
fn force_for(repository: &Repository, found: &GitWorkspace, discard: bool) -> Result<Force, ToolError> {
    let links = match &found.worktree {
        Some(worktree) => saved_commit::gitlinks(&worktree.git(repository))?,
        None => Vec::new(),
    };
    Ok(if discard || !links.is_empty() { Force::Yes } else { Force::No })
}

/// Only as it was kept: not by `git branch`, which would also delete a commit that was made since. With what is
/// configured for it.
fn delete_branch(
    repository: &Repository,
    name: &WorkspaceName,
    found: &GitWorkspace,
) -> Result<Option<String>, ToolError> {
    let Some(tip) = &found.tip else { return Ok(None) };
    delete_untouched_branch(repository, name, tip)?;
    let branch = name.branch();
    match repository.git().change(&["config", "--remove-section", &format!("branch.{branch}")]) {
        Err(err) if !err.stderr_contains("no such section") => Err(err),
        _ => Ok(Some(branch)),
    }
}

//! Removes a workspace, and saves its content in the trash.
//!
//! Checks whether work would be lost. The caller must know whether an agent still works in it.

use std::path::PathBuf;

use crate::create::delete_untouched_branch;
use crate::doomed_files::DoomedFiles;
use crate::error::{RemoveCause, RemoveError};
use crate::git_workspace::GitWorkspace;
use crate::index_entries;
use crate::jj;
use crate::lost::Lost;
use crate::merged_refs::MergedRefs;
use crate::name::WorkspaceName;
use crate::presence::{PathStatus, Presence};
use crate::project::{Kind, Project};
use crate::removal::{RemoveOptions, Removed};
use crate::repository::Repository;
use crate::saved_commit::{Contents, Ignored};
use crate::tool::ToolError;
use crate::trash::{self, TrashReason};
use crate::worktree::{Force, WorktreeRecord, other_worktree_on_branch};

/// Removes directory, record and branch. `base` as in [`crate::state()`].
///
/// Refuses if there is work that is uncommitted or not in the base, unless `options.discard` is set. In any
/// case everything but ignored files, and those too on request, is first saved under [`Removed::trash_ref`].
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
        // The directory is the user's own. Nothing in it is ours.
        Kind::Plain(_) => Ok(Removed::default()),
    }
}

/// Checks whether [`remove`] would refuse, and returns what it would lose. Changes nothing but the object
/// store.
pub fn check_remove(
    project: &Project,
    name: &WorkspaceName,
    base: Option<&str>,
    options: RemoveOptions,
) -> Result<Lost, RemoveError> {
    let checked = match &project.kind {
        Kind::Git(repository) => find_removable(repository, name, base, options).and_then(|found| {
            let Some(worktree) = &found.worktree else { return Ok(Lost::default()) };
            let doomed = DoomedFiles::find(
                &worktree.git(repository),
                repository.environment(),
                &worktree.path,
                options,
            )?;
            Contents::check_readable(repository, worktree, found.head())?;
            Ok(doomed.lost)
        }),
        Kind::Jj(repository) => jj::removable(repository, name, base, options),
        Kind::Plain(_) => Ok(Lost::default()),
    };
    checked.map_err(|cause| RemoveError { workspace: name.clone(), cause })
}

fn remove_worktree(
    repository: &Repository,
    name: &WorkspaceName,
    base: Option<&str>,
    options: RemoveOptions,
) -> Result<Removed, RemoveCause> {
    let found = find_removable(repository, name, base, options)?;
    let force = force_for(repository, &found, options.discard)?;
    let worktree = found.worktree.as_ref();
    let doomed = worktree
        .map(|worktree| {
            DoomedFiles::find(&worktree.git(repository), repository.environment(), &worktree.path, options)
        })
        .transpose()?;
    let ignored = if options.keep_ignored { Ignored::Saved } else { Ignored::Left };
    let trash_ref = trash::save_workspace(repository, name, &found, TrashReason::Removed, ignored)?;
    let unfinished = |source| RemoveCause::Unfinished { trash_ref: trash_ref.clone(), source };
    if let (Some(doomed), Some(worktree)) = (&doomed, worktree) {
        doomed.open_directories(&worktree.path).map_err(unfinished)?;
    }
    let directory = delete_worktree(repository, &found, force).map_err(unfinished)?;
    let branch = delete_branch(repository, name, &found).map_err(unfinished)?;
    let saved_bytes = doomed.as_ref().map(|doomed| doomed.saved_bytes(options));
    Ok(Removed { trash_ref, branch, directory, saved_bytes, lost: doomed.unwrap_or_default().lost })
}

/// Finds the workspace, and refuses if it may not be removed.
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
        return Err(RemoveCause::NotOurs { path, in_jj: false });
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
    match found.work_at_risk(repository, name, &merged_refs)? {
        Some(work) => Err(RemoveCause::HasWork(work)),
        None => Ok(()),
    }
}

/// Deletes the record and its directory. Returns the directory, if there was one.
fn delete_worktree(
    repository: &Repository,
    found: &GitWorkspace,
    force: Force,
) -> Result<Option<PathBuf>, ToolError> {
    let Some(record) = &found.record else { return Ok(None) };
    record.remove(repository, force)?;
    Ok((found.path_status != PathStatus::Missing).then(|| record.path.clone()))
}

/// Git removes a checkout with submodules only with force, even a clean one.
fn force_for(repository: &Repository, found: &GitWorkspace, discard: bool) -> Result<Force, ToolError> {
    let links = match &found.worktree {
        Some(worktree) => index_entries::gitlinks(&worktree.git(repository))?,
        None => Vec::new(),
    };
    Ok(if discard || !links.is_empty() { Force::Yes } else { Force::No })
}

/// Deletes the branch at the tip that was saved, and its configuration. `git branch` would also delete a
/// commit that was made since.
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

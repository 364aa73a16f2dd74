//! Brings the new commits of the base into a workspace.
//!
//! Prepares the result in a trial worktree first: after a conflict nothing has changed. Uncommitted files
//! stay as they are, and the sync refuses if they are in the way.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::base::{base_or_current, find_commit};
use crate::changed_files::changed_files;
use crate::error::{Operation, OperationCause, OperationError};
use crate::git_workspace::ReadyWorkspace;
use crate::integration::{SyncMethod, Synced};
use crate::integration_lock::IntegrationLock;
use crate::jj;
use crate::merge_target::refuse_busy_or_other_branch;
use crate::merged_refs::MergedRefs;
use crate::name::WorkspaceName;
use crate::pending_sync::{self, PendingSync};
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::saved_commit::{Ignored, save_details_of};
use crate::temp_index::blocking_files;
use crate::trash::{self, TrashReason};
use crate::trial_worktree::TrialWorktree;

/// Brings the new commits of `base` into the workspace. `base` as in [`crate::state()`].
pub fn sync(
    project: &Project,
    name: &WorkspaceName,
    base: Option<&str>,
    how: SyncMethod,
) -> Result<Synced, OperationError> {
    let synced = match &project.kind {
        Kind::Git(repository) => sync_worktree(repository, name, base, how),
        Kind::Jj(repository) => jj::sync(repository, name, base, how),
        Kind::Plain(_) => Err(OperationCause::Plain { path: project.root().to_owned() }),
    };
    synced.map_err(Operation::Sync.failed(name))
}

fn sync_worktree(
    repository: &Repository,
    name: &WorkspaceName,
    base: Option<&str>,
    how: SyncMethod,
) -> Result<Synced, OperationCause> {
    let lock = IntegrationLock::acquire(repository)?;
    pending_sync::recover_sync(repository, name, &lock)?;
    let ready = ReadyWorkspace::find(repository, name)?;
    refuse_busy_or_other_branch(repository, name, &ready.found, &ready.worktree)?;
    let (base, commit) = base_commit(repository, base)?;
    let before = ready.found.head().unwrap_or_default().to_owned();
    let commits = MergedRefs::only(&before, "").count_missing(repository, &[&commit])?;
    if commits == 0 {
        return Ok(Synced { base, commits, after: before.clone(), before, trash_ref: None });
    }
    let after = create_synced_commit(repository, name, &before, (&base, &commit), how, &lock)?;
    refuse_in_the_way(repository, &ready, &before, &after)?;
    ready.worktree.git(repository).refresh_index()?;
    let trash_ref = match how {
        SyncMethod::Rebase => {
            trash::save_workspace(repository, name, &ready.found, TrashReason::Rebased, Ignored::Left)?
        }
        SyncMethod::Merge => None,
    };
    let mut pending = PendingSync { name: name.clone(), base, before, after, details: None };
    let replaced = pending.incoming_files(repository)?;
    pending.details = Some(save_details_of(repository, &ready.worktree, &replaced)?);
    advance(repository, &ready, &pending, &lock)?;
    let PendingSync { base, before, after, .. } = pending;
    Ok(Synced { base, commits, before, after, trash_ref })
}

fn base_commit(repository: &Repository, base: Option<&str>) -> Result<(String, String), OperationCause> {
    let base = base_or_current(repository, base)?.unwrap_or_else(|| "HEAD".into());
    match find_commit(repository, &base)? {
        Some(commit) => Ok((base, commit)),
        None => Err(OperationCause::BaseMissing { base }),
    }
}

fn create_synced_commit(
    repository: &Repository,
    name: &WorkspaceName,
    before: &str,
    (base, commit): (&str, &str),
    how: SyncMethod,
    lock: &IntegrationLock,
) -> Result<String, OperationCause> {
    let trial = TrialWorktree::create(repository, before, lock)?;
    match how {
        SyncMethod::Rebase => trial.run_merge(&["rebase", "--quiet", commit], base)?,
        SyncMethod::Merge => {
            let message = format!("Merge {base} into {}", name.branch());
            trial
                .run_merge(&["merge", "--no-edit", "--ff", "--no-progress", "-m", &message, commit], base)?;
        }
    }
    Ok(trial.head()?)
}

fn refuse_in_the_way(
    repository: &Repository,
    ready: &ReadyWorkspace,
    before: &str,
    after: &str,
) -> Result<(), OperationCause> {
    let git = ready.worktree.git(repository);
    let mut files = blocking_files(&git, &ready.worktree.path, before, after)?;
    let coming = changed_files(repository, before, after)?;
    let coming: HashSet<PathBuf> =
        coming.into_iter().flat_map(|file| file.old_path.into_iter().chain([file.path])).collect();
    files.extend(ready.found.uncommitted(repository)?.into_iter().filter(|file| coming.contains(file)));
    files.sort();
    files.dedup();
    if files.is_empty() { Ok(()) } else { Err(OperationCause::InTheWay { files }) }
}

/// Updates files and index first, then moves the branch, if it is still where it was. Otherwise puts the
/// files back. The pending sync is recorded meanwhile, so that the next call can recover it after an
/// interruption.
fn advance(
    repository: &Repository,
    ready: &ReadyWorkspace,
    pending: &PendingSync,
    lock: &IntegrationLock,
) -> Result<(), OperationCause> {
    let git = ready.worktree.git(repository);
    let (before, after) = (&pending.before, &pending.after);
    let path = || ready.worktree.path.clone();
    let unsettled =
        |left: OperationCause| OperationCause::RecoveryFailed { path: path(), left: Box::new(left) };
    pending.write(repository)?;
    if let Err(err) = git.change(&["read-tree", "-m", "-u", before, after]) {
        let is_synced = pending.recover(repository, lock).map_err(unsettled)?;
        return if is_synced { Ok(()) } else { Err(err.into()) };
    }
    let Err(err) = pending.complete(repository) else { return Ok(()) };
    let back = || {
        git.change(&["read-tree", "-m", "-u", after, before])?;
        pending.put_details(repository, &ready.worktree, pending.incoming_files(repository)?)?;
        Ok(pending.delete(repository)?)
    };
    back().map_err(unsettled)?;
    match err {
        err if err.stderr_contains("but expected") => {
            Err(OperationCause::TargetMoved { branch: pending.name.branch() })
        }
        err => Err(err.into()),
    }
}

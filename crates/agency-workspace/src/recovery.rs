//! Recovers merges and syncs that a crash, a kill or a power cut interrupted.
//!
//! Chooses the recovery for the kind of project; `pending_merge` and `pending_sync` do it.

use tracing::warn;

use crate::error::{Operation, OperationError};
use crate::integration_lock::IntegrationLock;
use crate::jj;
use crate::pending_merge::{self, RecoveredMerge, pending_merges};
use crate::pending_restore::all_pending_restores;
use crate::pending_sync;
use crate::pending_unmerge::PendingUnmerge;
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::trial_worktree;

/// Recovers merges and syncs that were interrupted. Returns the merges. Call it while no operation on this
/// project is in progress; [`crate::merge()`] does the same at its start.
pub fn recover_integrations(project: &Project) -> Result<Vec<RecoveredMerge>, OperationError> {
    let Some(repository) = project.git_repository() else { return Ok(Vec::new()) };
    recover_syncs(project)?;
    let notes = pending_merges(repository).inspect_err(|err| warn!(%err, "pending merges cannot be read"));
    let Some(first) = notes.unwrap_or_default().into_iter().next() else {
        remove_trial_worktrees(project);
        return Ok(Vec::new());
    };
    let recovered = || {
        let lock = IntegrationLock::acquire(repository)?;
        match &project.kind {
            Kind::Jj(repository) => jj::recover_merges(repository, &lock),
            Kind::Git(_) | Kind::Plain(_) => pending_merge::recover_merges(repository, &lock),
        }
    };
    recovered().map_err(Operation::Merge.failed(&first.name))
}

/// Removes trial worktrees that an interrupted merge has left. Starts no process if there are none, and does
/// nothing while a merge or a sync is in progress.
pub fn remove_trial_worktrees(project: &Project) {
    let Kind::Git(repository) = &project.kind else { return };
    if !trial_worktree::has_leftovers(repository) {
        return;
    }
    let swept = match IntegrationLock::try_acquire(repository) {
        Ok(Some(_lock)) => trial_worktree::remove_leftovers(repository),
        // A merge or a sync is in progress, and begins by removing them.
        Ok(None) => Ok(()),
        Err(cause) => return warn!(%cause, "a trial worktree could not be removed"),
    };
    swept.unwrap_or_else(|left| warn!(%left, "a trial worktree could not be removed"));
}

/// Completes restores that were interrupted.
fn recover_restores(repository: &Repository) -> Result<(), OperationError> {
    let notes =
        all_pending_restores(repository).inspect_err(|err| warn!(%err, "pending restores cannot be read"));
    let notes = notes.unwrap_or_default();
    notes
        .iter()
        .try_for_each(|pending| pending.recover(repository).map_err(Operation::Restore.failed(&pending.name)))
}

/// Finishes or undoes merges that were being taken back.
fn recover_unmerges(repository: &Repository) -> Result<(), OperationError> {
    let notes =
        PendingUnmerge::all(repository).inspect_err(|err| warn!(%err, "pending undos cannot be read"));
    for pending in notes.unwrap_or_default() {
        let settle = || {
            let _lock = IntegrationLock::acquire(repository)?;
            pending.recover(repository).map(drop)
        };
        settle().map_err(Operation::Unmerge.failed(pending.name()))?;
    }
    Ok(())
}

/// Recovers syncs and restores that were interrupted: each sync is completed or rolled back. [`crate::recover_integrations()`]
/// does this too.
pub fn recover_syncs(project: &Project) -> Result<(), OperationError> {
    // In jj a sync is a single operation, which cannot be interrupted half-way.
    let Kind::Git(repository) = &project.kind else { return Ok(()) };
    recover_restores(repository)?;
    recover_unmerges(repository)?;
    let notes = pending_sync::pending_syncs(repository, pending_sync::FOLDER)
        .inspect_err(|err| warn!(%err, "pending syncs cannot be read"));
    for pending in notes.unwrap_or_default() {
        let settle = || pending.recover(repository, &IntegrationLock::acquire(repository)?);
        settle().map_err(Operation::Sync.failed(&pending.name))?;
    }
    Ok(())
}

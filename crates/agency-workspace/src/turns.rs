//! Snapshots for the turns of an agent: one before the first turn, one after each turn with changes.
//!
//! `snapshot` takes, lists and restores them.

use crate::error::{Operation, OperationCause, OperationError};
use crate::name::WorkspaceName;
use crate::project::Project;
use crate::repository::tree_of;
use crate::saved_commit::{Contents, Trailers};
use crate::snapshot::{Snapshot, SnapshotContents, snapshots};

/// Takes a snapshot of the workspace before its first turn, with the number 0, unless it has snapshots
/// already.
pub fn snapshot_before_first_turn(
    project: &Project,
    name: &WorkspaceName,
    label: &str,
) -> Result<(), OperationError> {
    if !snapshots(project, name)?.is_empty() {
        return Ok(());
    }
    let taken =
        SnapshotContents::read(project, name).and_then(|contents| contents.save(project, name, label, 0));
    taken.map(drop).map_err(Operation::Snapshot.failed(name))
}

/// Like [`crate::snapshot()`], but returns None if the newest snapshot has the same files on the same `HEAD`.
pub fn snapshot_if_changed(
    project: &Project,
    name: &WorkspaceName,
    label: &str,
) -> Result<Option<Snapshot>, OperationError> {
    let last = snapshots(project, name)?.pop();
    let take = || {
        let contents = SnapshotContents::read(project, name)?;
        match &last {
            Some(last) if is_same(project, &contents.contents, last)? => Ok(None),
            _ => contents.save(project, name, label, 1).map(Some),
        }
    };
    take().map_err(Operation::Snapshot.failed(name))
}

fn is_same(project: &Project, contents: &Contents, last: &Snapshot) -> Result<bool, OperationCause> {
    let repository = project.require_repository()?;
    if contents.tree != last.tree {
        return Ok(false);
    }
    let (trailers, head) = Trailers::read(repository, &last.commit)?;
    let details =
        |commit: &Option<String>| commit.as_ref().map(|commit| tree_of(repository, commit)).transpose();
    if contents.head != head {
        return Ok(false);
    }
    // A snapshot of an earlier version may have no details.
    Ok(trailers.details.is_none() || details(&contents.details)? == details(&trailers.details)?)
}

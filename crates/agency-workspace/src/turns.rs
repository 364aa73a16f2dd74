//! Snapshots as turns of an agent: one before the first, one at the end of each that changed something.
//!
//! Not the snapshots themselves: those are taken, listed and put back by their own file.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::kept::{Contents, Kept, tree_of};
use crate::name::WorkspaceName;
use crate::operation::{Operation, OperationCause, OperationError};
use crate::project::Project;
use crate::snapshot::{Snapshot, Taking, snapshot, snapshots};

/// Keeps the workspace as it is before its first turn, under the number 0, unless there are snapshots of it.
pub fn snapshot_before(project: &Project, name: &WorkspaceName, label: &str) -> Result<(), OperationError> {
    if !snapshots(project, name)?.is_empty() {
        return Ok(());
    }
    let taken = snapshot(project, name, label)?;
    let Some(folder) = taken.reference.strip_suffix("/1") else { return Ok(()) };
    let (reference, commit) = (&taken.reference, &taken.commit);
    let steps = format!("create {folder}/0 {commit}\ndelete {reference} {commit}\n");
    let renamed = || {
        let repository = project.versions()?;
        repository.git().change_by(&["update-ref", "--stdin"], steps.as_bytes())?;
        Ok(())
    };
    renamed().map_err(Operation::Snapshot.failed(name))
}

/// Like [`snapshot`], but none if the newest one has the same files on the same `HEAD`.
pub fn snapshot_if_changed(
    project: &Project,
    name: &WorkspaceName,
    label: &str,
) -> Result<Option<Snapshot>, OperationError> {
    let last = snapshots(project, name)?.pop();
    let take = || {
        let taking = Taking::look(project, name)?;
        match &last {
            Some(last) if is_same(project, &taking.contents, last)? => Ok(None),
            _ => taking.keep(project, name, label).map(Some),
        }
    };
    take().map_err(Operation::Snapshot.failed(name))
}

fn is_same(project: &Project, contents: &Contents, last: &Snapshot) -> Result<bool, OperationCause> {
    let repository = project.versions()?;
    if contents.tree != tree_of(repository, &last.commit)? {
        return Ok(false);
    }
    let (_, head) = Kept::read(repository, &last.commit)?;
    Ok(contents.head == head)
}

/// When each snapshot was taken, by its number.
pub fn snapshot_times(
    project: &Project,
    name: &WorkspaceName,
) -> Result<HashMap<u64, SystemTime>, OperationError> {
    let Some(repository) = project.store() else { return Ok(HashMap::new()) };
    let folder = format!("refs/agency/turns/{}/", name.task_id());
    let format = "--format=%(refname) %(creatordate:unix)";
    let listed = repository.git().read(&["for-each-ref", format, &folder]);
    let listed = listed.map_err(|err| Operation::Snapshot.failed(name)(err.into()))?;
    let time = |line: &str| {
        let (reference, seconds) = line.split_once(' ')?;
        let number = reference.rsplit('/').next()?.parse().ok()?;
        Some((number, UNIX_EPOCH + Duration::from_secs(seconds.parse().ok()?)))
    };
    Ok(String::from_utf8_lossy(&listed).lines().filter_map(time).collect())
}

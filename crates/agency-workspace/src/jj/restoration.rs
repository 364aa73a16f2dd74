//! Restores a jj workspace, or replaces its present files by saved ones.
//!
//! Saves the present state first.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::error::OperationCause;
use crate::jj::creation::{
    add_workspace, clean_up_failed_add, describe_workspace, edit_commit, forget_workspace,
};
use crate::jj::files::{commit_index, current_index, temp_index, walk_indexed};
use crate::jj::removal::{abandon, list_own_commits};
use crate::jj::repository::{JjRepository, Revision};
use crate::jj::saving::{save_unreferenced, save_workspace};
use crate::jj::workspace::{JjWorkspace, find_parents, list_changed};
use crate::name::WorkspaceName;
use crate::presence::{PathStatus, Presence};
use crate::repository::tree_of;
use crate::saved_commit::{Ignored, Trailers};
use crate::tool::ToolError;
use crate::trash::{TrashEntry, TrashReason};
use crate::workspace::{Created, Workspace};

/// Replaces the present files by those of a saved commit, on top of the commits of that time. Returns the trash
/// ref of the present ones, and the files that are not as they were saved.
pub(crate) fn restore_over(
    repository: &JjRepository,
    name: &WorkspaceName,
    commit: &str,
) -> Result<(String, Vec<PathBuf>), OperationCause> {
    let found = JjWorkspace::snapshot_and_find(repository, name)?;
    let now = found.ready(repository, name)?.clone();
    let present = save_workspace(repository, name, &found, TrashReason::PutBack, Ignored::Left)?;
    let (trailers, then) = Trailers::read(repository.store(), commit)?;
    let then = then.unwrap_or_else(|| commit.to_owned());
    let inside = repository.jj_in_task(&repository.workspace_path(name));
    let parents = find_parents(repository, &then)?;
    let goes_back =
        parents.iter().collect::<HashSet<_>>() != find_parents(repository, &now.id)?.iter().collect();
    if goes_back {
        let on = if parents.is_empty() { "root()".to_owned() } else { parents.join("|") };
        inside.run(&["new", &on])?;
    }
    inside.run(&["restore", "--from", &then])?;
    if goes_back {
        describe_as(repository, &inside, &then)?;
        let own = list_own_commits(repository, name, &JjWorkspace::find(repository, name)?, &now.id)?;
        abandon(repository, name, &own)?;
    }
    let different = put_details(repository, name, &trailers)?;
    Ok((present.unwrap_or_default(), different))
}

/// Brings back what jj does not write: modes, empty directories. Returns the files that are not as they were
/// saved.
fn put_details(
    repository: &JjRepository,
    name: &WorkspaceName,
    trailers: &Trailers,
) -> Result<Vec<PathBuf>, OperationCause> {
    let Some(details) = trailers.read_details(repository.store())? else { return Ok(Vec::new()) };
    let found = JjWorkspace::find(repository, name)?;
    let (root, target) = (repository.workspace_path(name), found.ready(repository, name)?);
    // Only jj can read the tree of a commit with conflicts.
    let index = match target.has_conflict {
        true => current_index(repository.store(), &root, target)?,
        false => commit_index(repository.store(), &root, target)?,
    };
    details.put_saved(repository.store(), &root, || walk_indexed(&index, &root))?;
    Ok(details.differences(index.git(), &root, None)?)
}

fn describe_as(repository: &JjRepository, inside: &crate::jj::Jj, commit: &str) -> Result<(), ToolError> {
    let text = repository.store().git().read(&["log", "-1", "--format=%B", commit])?;
    let text = String::from_utf8_lossy(&text).trim_end().to_owned();
    if text.is_empty() { Ok(()) } else { inside.run(&["describe", "-m", &text]).map(drop) }
}

/// Also returns the files that are not as they were saved.
pub(crate) fn restore(
    repository: &JjRepository,
    entry: &TrashEntry,
) -> Result<(Workspace, Vec<PathBuf>), OperationCause> {
    let name = &entry.workspace;
    let found = JjWorkspace::find(repository, name)?;
    let is_over = matches!(entry.reason, TrashReason::PutBack | TrashReason::Rebased)
        && found.presence() == Presence::Ready;
    if is_over {
        let (_, different) = restore_over(repository, name, &entry.commit)?;
        return Ok((describe_workspace(repository, name, Created::Nothing), different));
    }
    if found.path_status == PathStatus::Occupied {
        return Err(OperationCause::PathTaken { path: repository.workspace_path(name) });
    }
    let bookmark = entry.trailers.branch.as_ref();
    if let Some((branch, _)) = bookmark.filter(|(_, tip)| found.bookmark.as_ref().is_some_and(|at| at != tip))
    {
        return Err(OperationCause::BranchExists { branch: branch.clone() });
    }
    if found.target.is_some() {
        save_unreferenced(repository, name, &found)?;
        forget_workspace(repository, name)?;
    }
    let different = restore_removed(repository, name, &found, entry)
        .inspect_err(|_| clean_up_failed_add(repository, name, found.path_status))?;
    Ok((describe_workspace(repository, name, Created::Nothing), different))
}

fn restore_removed(
    repository: &JjRepository,
    name: &WorkspaceName,
    found: &JjWorkspace,
    entry: &TrashEntry,
) -> Result<Vec<PathBuf>, OperationCause> {
    let (trailers, then) = Trailers::read(repository.store(), &entry.commit)?;
    let then = then.unwrap_or_else(|| entry.commit.clone());
    let parents = find_parents(repository, &then)?;
    add_workspace(repository, name, found.path_status, &parents)
        .map_err(|cause| OperationCause::Create(Box::new(cause)))?;
    let blank = repository.store().git().read(&["log", "-1", "--format=%B", &then])?.trim_ascii().is_empty()
        && list_changed(repository, &then)?.is_empty();
    let commit = Revision { id: then.clone(), is_empty: blank, is_described: !blank, has_conflict: false };
    edit_commit(repository, name, &commit)?;
    if let Some((branch, tip)) = trailers.branch.as_ref().filter(|_| found.bookmark.is_none()) {
        // Not `set`, which would move a bookmark that the user has made meanwhile.
        repository.jj().run(&["bookmark", "create", "-r", tip, branch])?;
        repository.export()?;
    }
    let files = tree_of(repository.store(), trailers.ignored.as_deref().unwrap_or(&entry.commit))?;
    let now = tree_of(repository.store(), &then)?;
    let temp_index = temp_index(repository, name, &commit)?;
    // Entries from a tree have no file times. Without this refresh every file looks changed.
    temp_index.git().change(&["update-index", "-q", "--refresh"])?;
    temp_index.check_out(&now, &files)?;
    let root = repository.workspace_path(name);
    match trailers.read_details(repository.store())? {
        Some(details) => {
            details.put_files(repository.store(), &temp_index, &root)?;
            Ok(details.differences(temp_index.git(), &root, None)?)
        }
        None => Ok(Vec::new()),
    }
}

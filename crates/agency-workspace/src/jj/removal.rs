//! Removes a jj workspace, and saves everything in it first.
//!
//! Abandons only commits that nothing else refers to.

use crate::doomed_files::DoomedFiles;
use crate::error::{OperationCause, RemoveCause, UndoCause};
use crate::jj::creation::{delete_directory, forget_workspace};
use crate::jj::files::{list_changed_since, temp_index};
use crate::jj::repository::{JjRepository, any_of, named_by_others};
use crate::jj::saving::{read_contents, save_workspace};
use crate::jj::workspace::{JjWorkspace, find_parents};
use crate::lost::Lost;
use crate::name::WorkspaceName;
use crate::presence::{PathStatus, Presence};
use crate::removal::{RemoveOptions, Removed};
use crate::saved_commit::Ignored;
use crate::tool::ToolError;
use crate::trash::TrashReason;
use crate::work::WorkAtRisk;

fn work_at_risk(
    repository: &JjRepository,
    name: &WorkspaceName,
    found: &JjWorkspace,
    base: Option<&str>,
) -> Result<Option<WorkAtRisk>, OperationCause> {
    let mut files = found.uncommitted(repository, name)?;
    // jj takes no snapshot of a workspace that it has forgotten.
    if let Some(last) = found.target.as_ref().filter(|_| found.is_forgotten) {
        files.extend(list_changed_since(repository, name, last)?);
        files.sort();
        files.dedup();
    }
    let files = files.len();
    let commits = found.count_unmerged(repository, name, base)?;
    let words = match base {
        Some(bookmark) if repository.has_bookmark(base)? => format!("not in {bookmark}"),
        _ => "in no other bookmark".to_owned(),
    };
    Ok(WorkAtRisk::of(name, files, commits, words))
}

pub(crate) fn undo(repository: &JjRepository, name: &WorkspaceName, commit: &str) -> Result<(), UndoCause> {
    let found = JjWorkspace::snapshot_and_find(repository, name).map_err(UndoCause::Git)?;
    if found.presence() == Presence::NotOurs {
        return Err(UndoCause::NotOurs { path: repository.workspace_path(name) });
    }
    let unreadable = |cause: OperationCause| UndoCause::Unreadable(Box::new(cause));
    let files = found.uncommitted(repository, name).map_err(unreadable)?.len();
    let commits = match &found.target {
        Some(target) => new_commits(repository, &target.id, commit)?,
        None => 0,
    };
    if let Some(work) = WorkAtRisk::of(name, files, commits, "new".into()) {
        return Err(UndoCause::HasWork(work));
    }
    if found.target.is_some() {
        delete_workspace(repository, name, &found)?;
    }
    Ok(())
}

/// Counts described commits that came after the workspace was on `first`.
fn new_commits(repository: &JjRepository, target: &str, first: &str) -> Result<u64, ToolError> {
    let parents = find_parents(repository, first)?;
    let below = if parents.is_empty() { "root()".to_owned() } else { parents.join("|") };
    let new = repository.revisions(&format!("::{target} ~ ::({below})"))?;
    Ok(new.iter().filter(|revision| revision.is_described).count() as u64)
}

/// Finds the workspace, and refuses if it may not be removed.
fn find_removable(
    repository: &JjRepository,
    name: &WorkspaceName,
    base: Option<&str>,
    options: RemoveOptions,
) -> Result<JjWorkspace, RemoveCause> {
    let found = JjWorkspace::snapshot_and_find(repository, name)?;
    let found = match found.forgotten(repository, name)? {
        Some(last) => JjWorkspace { target: Some(last), is_forgotten: true, ..found },
        None => found,
    };
    if found.presence() == Presence::NotOurs {
        return Err(RemoveCause::NotOurs { path: repository.workspace_path(name), in_jj: true });
    }
    if !options.discard
        && let Some(work) = work_at_risk(repository, name, &found, base)?
    {
        return Err(RemoveCause::HasWork(work));
    }
    Ok(found)
}

pub(crate) fn removable(
    repository: &JjRepository,
    name: &WorkspaceName,
    base: Option<&str>,
    options: RemoveOptions,
) -> Result<Lost, RemoveCause> {
    let found = find_removable(repository, name, base, options)?;
    let doomed = doomed_files(repository, name, &found, options)?;
    read_contents(repository, name, &found, Ignored::Left)?;
    Ok(doomed.lost)
}

fn doomed_files(
    repository: &JjRepository,
    name: &WorkspaceName,
    found: &JjWorkspace,
    options: RemoveOptions,
) -> Result<DoomedFiles, RemoveCause> {
    let Some(target) = found.target.as_ref().filter(|_| found.presence() == Presence::Ready) else {
        return Ok(DoomedFiles::default());
    };
    let temp_index = temp_index(repository, name, target)?;
    let environment = repository.store().environment();
    DoomedFiles::find(temp_index.git(), environment, &repository.workspace_path(name), options)
}

pub(crate) fn remove(
    repository: &JjRepository,
    name: &WorkspaceName,
    base: Option<&str>,
    options: RemoveOptions,
) -> Result<Removed, RemoveCause> {
    let found = find_removable(repository, name, base, options)?;
    let path = repository.workspace_path(name);
    let doomed = doomed_files(repository, name, &found, options)?;
    let ignored = if options.keep_ignored { Ignored::Saved } else { Ignored::Left };
    let trash_ref =
        save_workspace(repository, name, &found, TrashReason::Removed, ignored).map_err(RemoveCause::from)?;
    let unfinished = |source| RemoveCause::Unfinished { trash_ref: trash_ref.clone(), source };
    doomed.open_directories(&path).map_err(unfinished)?;
    let directory = (found.path_status != PathStatus::Missing).then_some(path);
    delete_workspace(repository, name, &found).map_err(unfinished)?;
    let saved_bytes = directory.as_ref().map(|_| doomed.saved_bytes(options));
    Ok(Removed {
        branch: found.bookmark.map(|_| name.branch()),
        directory,
        trash_ref,
        saved_bytes,
        lost: doomed.lost,
    })
}

/// Forgets the workspace, abandons the commits that only it refers to, and deletes its bookmark and
/// directory.
fn delete_workspace(
    repository: &JjRepository,
    name: &WorkspaceName,
    found: &JjWorkspace,
) -> Result<(), ToolError> {
    let jj = repository.jj();
    if let Some(target) = &found.target {
        let own = list_own_commits(repository, name, found, &target.id)?;
        forget_workspace(repository, name)?;
        abandon(repository, name, &own)?;
    }
    if found.bookmark.is_some() {
        // Not `delete`: the next push would delete the bookmark on the server too.
        jj.run(&["bookmark", "forget", &format!("exact:{}", name.branch())])?;
        repository.export()?;
    }
    delete_directory(&repository.workspace_path(name))
        .map_err(|source| ToolError::Start { command: "rm".into(), source })
}

/// Lists commits that only this workspace refers to.
pub(super) fn list_own_commits(
    repository: &JjRepository,
    name: &WorkspaceName,
    found: &JjWorkspace,
    from: &str,
) -> Result<Vec<String>, ToolError> {
    let landed = format!("{}|{}", any_of(&found.others), named_by_others(name));
    let own = repository.revisions(&format!("(::{from} ~ ::({landed})) & mutable()"))?;
    Ok(own.into_iter().map(|revision| revision.id).collect())
}

/// Abandons the commits that still belong to no other workspace at this moment: for others jj would delete
/// bookmarks and move commits.
pub(super) fn abandon(
    repository: &JjRepository,
    name: &WorkspaceName,
    commits: &[String],
) -> Result<(), ToolError> {
    if commits.is_empty() {
        return Ok(());
    }
    // Commits that were removed with the workspace are hidden already.
    let visible = format!("({}) & ::visible_heads()", any_of(commits));
    let others = format!("working_copies()|{}|(visible_heads() ~ ({visible}))", named_by_others(name));
    repository.jj().run(&["abandon", "-r", &format!("({visible}) ~ ::({others})")]).map(drop)
}

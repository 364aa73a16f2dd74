//! Takes a jj workspace away: all there is of it is kept first.
//!
//! Only commits that nobody else leads to go with it.

use crate::jj::creation::{delete_directory, forget_workspace};
use crate::jj::files::read_all;
use crate::jj::repository::{JjRepository, any_of, quoted};
use crate::jj::workspace::{JjWorkspace, find_parents};
use crate::name::WorkspaceName;
use crate::operation::OperationCause;
use crate::remove::{RemoveCause, RemoveOptions, Removed};
use crate::saved_commit::{Contents, Ignored};
use crate::state::{PathStatus, Presence};
use crate::tool::ToolError;
use crate::trash::{self, TrashReason};
use crate::undo_create::UndoCause;
use crate::work::WorkAtRisk;

fn work_at_risk(
    repository: &JjRepository,
    name: &WorkspaceName,
    found: &JjWorkspace,
    base: Option<&str>,
) -> Result<Option<WorkAtRisk>, OperationCause> {
    let files = found.uncommitted(repository, name)?.len();
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

/// Described ones that came since the workspace stood on `first`.
fn new_commits(repository: &JjRepository, target: &str, first: &str) -> Result<u64, ToolError> {
    let parents = find_parents(repository, first)?;
    let below = if parents.is_empty() { "root()".to_owned() } else { parents.join("|") };
    let new = repository.revisions(&format!("::{target} ~ ::({below})"))?;
    Ok(new.iter().filter(|revision| revision.is_described).count() as u64)
}

/// All that there is, if it may go.
fn find_removable(
    repository: &JjRepository,
    name: &WorkspaceName,
    base: Option<&str>,
    options: RemoveOptions,
) -> Result<JjWorkspace, RemoveCause> {
    let found = JjWorkspace::snapshot_and_find(repository, name)?;
    if found.presence() == Presence::NotOurs {
        return Err(RemoveCause::NotOurs { path: repository.workspace_path(name) });
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
) -> Result<(), RemoveCause> {
    let found = find_removable(repository, name, base, options)?;
    Ok(read_contents(repository, name, &found, Ignored::Left).map(drop)?)
}

pub(crate) fn remove(
    repository: &JjRepository,
    name: &WorkspaceName,
    base: Option<&str>,
    options: RemoveOptions,
) -> Result<Removed, RemoveCause> {
    let found = find_removable(repository, name, base, options)?;
    let path = repository.workspace_path(name);
    let ignored = if options.keep_ignored { Ignored::Saved } else { Ignored::Left };
    let trash_ref =
        save_workspace(repository, name, &found, TrashReason::Removed, ignored).map_err(RemoveCause::from)?;
    let unfinished = |source| RemoveCause::Unfinished { trash_ref: trash_ref.clone(), source };
    let directory = (found.path_status != PathStatus::Missing).then_some(path);
    delete_workspace(repository, name, &found).map_err(unfinished)?;
    Ok(Removed { branch: found.bookmark.map(|_| name.branch()), directory, trash_ref })
}

/// Keeps all there is of it. None if there is nothing.
pub(crate) fn save_workspace(
    repository: &JjRepository,
    name: &WorkspaceName,
    found: &JjWorkspace,
    reason: TrashReason,
    ignored: Ignored,
) -> Result<Option<String>, OperationCause> {
    let Some(contents) = read_contents(repository, name, found, ignored)? else { return Ok(None) };
    let trailers = found.describe(repository, name)?;
    Ok(Some(trash::save_contents(repository.store(), name, &contents, trailers, reason)?))
}

/// Refuses if anything cannot be kept.
fn read_contents(
    repository: &JjRepository,
    name: &WorkspaceName,
    found: &JjWorkspace,
    ignored: Ignored,
) -> Result<Option<Contents>, OperationCause> {
    let contents = match (&found.target, &found.bookmark) {
        (Some(target), _) if found.presence() == Presence::Ready => {
            read_all(repository, name, target, ignored)?
        }
        (Some(target), _) => Contents::of_commit(repository.store(), &target.id)?,
        (None, Some(tip)) => Contents::of_commit(repository.store(), tip)?,
        (None, None) => return Ok(None),
    };
    Ok(Some(contents))
}

/// Keeps what jj would not lead to any more if it forgot a workspace whose directory is gone.
pub(super) fn save_unreferenced(
    repository: &JjRepository,
    name: &WorkspaceName,
    found: &JjWorkspace,
) -> Result<Option<String>, ToolError> {
    let Some(target) = &found.target else { return Ok(None) };
    if target.is_blank() && found.count_unmerged(repository, name, None)? == 0 {
        return Ok(None);
    }
    let contents = Contents::of_commit(repository.store(), &target.id)?;
    let trailers = found.describe(repository, name)?;
    trash::save_contents(repository.store(), name, &contents, trailers, TrashReason::Loose).map(Some)
}

/// Forgets the workspace, abandons what only it leads to, deletes its bookmark and its directory.
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
        // Not `delete`, which would go on to the server with the next push.
        jj.run(&["bookmark", "forget", &format!("exact:{}", name.branch())])?;
        repository.export()?;
    }
    delete_directory(&repository.workspace_path(name))
        .map_err(|source| ToolError::Start { command: "rm".into(), source })
}

/// Commits that nothing but this workspace leads to.
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

/// Not `bookmarks() ~ …`, which is about commits: one that has ours and another's bookmark is another's too.
pub(super) fn other_bookmarks(name: &WorkspaceName) -> String {
    format!("bookmarks(~exact:{})", quoted(&name.branch()))
}

/// What others gave a name to.
fn named_by_others(name: &WorkspaceName) -> String {
    format!("{}|remote_bookmarks()|tags()", other_bookmarks(name))
}

/// Only what still is nobody else's when it happens: jj would delete their bookmarks and move their commits.
pub(super) fn abandon(
    repository: &JjRepository,
    name: &WorkspaceName,
    commits: &[String],
) -> Result<(), ToolError> {
    if commits.is_empty() {
        return Ok(());
    }
    // Those that went with the workspace are hidden already.
    let visible = format!("({}) & ::visible_heads()", any_of(commits));
    let others = format!("working_copies()|{}|(visible_heads() ~ ({visible}))", named_by_others(name));
    repository.jj().run(&["abandon", "-r", &format!("({visible}) ~ ::({others})")]).map(drop)
}

//! Brings a jj workspace back, or puts kept files over those of now.
//!
//! What is there now is kept first.

use std::collections::HashSet;

use crate::create::{Made, Workspace};
use crate::jj::creation::{add, edit, forget, made, sweep};
use crate::jj::files::scratch;
use crate::jj::removal::{abandon, keep, keep_loose, own_commits};
use crate::jj::repository::{JjRepository, Revision};
use crate::jj::workspace::{Jujutsu, changed_in, parents_of};
use crate::kept::{Ignored, Kept, tree_of};
use crate::name::WorkspaceName;
use crate::operation::OperationCause;
use crate::state::{Place, Presence};
use crate::tool::ToolError;
use crate::trash::{TrashEntry, TrashReason};

/// Puts the files of a kept commit over those of now, with the commits of then below them.
pub(crate) fn over(
    repository: &JjRepository,
    name: &WorkspaceName,
    commit: &str,
) -> Result<String, OperationCause> {
    let found = Jujutsu::take_in(repository, name)?;
    let now = found.ready(repository, name)?.clone();
    let present = keep(repository, name, &found, TrashReason::PutBack, Ignored::Left)?;
    let (_, then) = Kept::read(repository.store(), commit)?;
    let then = then.unwrap_or_else(|| commit.to_owned());
    let inside = repository.jj_inside(&repository.workspace_path(name));
    let parents = parents_of(repository, &then)?;
    let goes_back =
        parents.iter().collect::<HashSet<_>>() != parents_of(repository, &now.id)?.iter().collect();
    if goes_back {
        let on = if parents.is_empty() { "root()".to_owned() } else { parents.join("|") };
        inside.run(&["new", &on])?;
    }
    inside.run(&["restore", "--from", &then])?;
    if goes_back {
        describe_as(repository, &inside, &then)?;
        let own = own_commits(repository, name, &Jujutsu::look(repository, name)?, &now.id)?;
        abandon(repository, name, &own)?;
    }
    Ok(present.unwrap_or_default())
}

fn describe_as(repository: &JjRepository, inside: &crate::jj::Jj, commit: &str) -> Result<(), ToolError> {
    let text = repository.store().git().read(&["log", "-1", "--format=%B", commit])?;
    let text = String::from_utf8_lossy(&text).trim_end().to_owned();
    if text.is_empty() { Ok(()) } else { inside.run(&["describe", "-m", &text]).map(drop) }
}

pub(crate) fn restore(repository: &JjRepository, trashed: &TrashEntry) -> Result<Workspace, OperationCause> {
    let name = &trashed.workspace;
    let found = Jujutsu::look(repository, name)?;
    let is_over = matches!(trashed.reason, TrashReason::PutBack | TrashReason::Rebased)
        && found.presence() == Presence::Ready;
    if is_over {
        over(repository, name, &trashed.commit)?;
        return Ok(made(repository, name, Made::Nothing));
    }
    if found.place == Place::Occupied {
        return Err(OperationCause::PathTaken { path: repository.workspace_path(name) });
    }
    let bookmark = trashed.kept.branch.as_ref();
    if let Some((branch, _)) = bookmark.filter(|(_, tip)| found.bookmark.as_ref().is_some_and(|at| at != tip))
    {
        return Err(OperationCause::BranchExists { branch: branch.clone() });
    }
    if found.target.is_some() {
        keep_loose(repository, name, &found)?;
        forget(repository, name)?;
    }
    anew(repository, name, &found, trashed).inspect_err(|_| sweep(repository, name, found.place))?;
    Ok(made(repository, name, Made::Nothing))
}

fn anew(
    repository: &JjRepository,
    name: &WorkspaceName,
    found: &Jujutsu,
    trashed: &TrashEntry,
) -> Result<(), OperationCause> {
    let (kept, then) = Kept::read(repository.store(), &trashed.commit)?;
    let then = then.unwrap_or_else(|| trashed.commit.clone());
    let parents = parents_of(repository, &then)?;
    add(repository, name, found.place, &parents).map_err(|cause| OperationCause::Make(Box::new(cause)))?;
    let blank = repository.store().git().read(&["log", "-1", "--format=%B", &then])?.trim_ascii().is_empty()
        && changed_in(repository, &then)?.is_empty();
    let commit = Revision { id: then.clone(), is_empty: blank, is_described: !blank, has_conflict: false };
    edit(repository, name, &commit)?;
    if let Some((branch, tip)) = kept.branch.as_ref().filter(|_| found.bookmark.is_none()) {
        // Not `set`, which would move one that somebody made meanwhile.
        repository.jj().run(&["bookmark", "create", "-r", tip, branch])?;
        repository.export()?;
    }
    let files = tree_of(repository.store(), kept.ignored.as_deref().unwrap_or(&trashed.commit))?;
    let now = tree_of(repository.store(), &then)?;
    Ok(scratch(repository, name, &commit)?.put(&now, &files)?)
}

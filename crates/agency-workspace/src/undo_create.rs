//! Removes a new workspace again, because its agent could not be started.
//!
//! Not the way to restore what a user removed: that is in the trash.

use crate::create::delete_untouched_branch;
use crate::error::{UndoCause, UndoError};
use crate::git_workspace::GitWorkspace;
use crate::jj;
use crate::merged_refs::MergedRefs;
use crate::name::WorkspaceName;
use crate::presence::Presence;
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::trash::delete_snapshots_and_mark;
use crate::workspace::{Created, Workspace};
use crate::worktree::Force;

/// Removes what the call that returned `workspace` created, if nothing has changed in it since.
pub fn undo_create(project: &Project, workspace: &Workspace) -> Result<(), UndoError> {
    let name = &workspace.name;
    let undone = match (&project.kind, &workspace.created) {
        (Kind::Plain(_), _) | (Kind::Git(_), Created::Nothing) => Ok(()),
        (Kind::Git(repository), Created::Worktree) => {
            let merged_refs = MergedRefs::only(&format!("refs/heads/{}", name.branch()), "not on its branch");
            undo_worktree(repository, name, &merged_refs).map(drop)
        }
        (Kind::Git(repository), Created::WorktreeAndBranch { tip }) => {
            undo_all(repository, name, tip).and_then(|()| delete_turn_refs(repository, name))
        }
        (Kind::Jj(repository), Created::Jj { commit }) => {
            jj::undo(repository, name, commit).and_then(|()| delete_turn_refs(repository.store(), name))
        }
        // The project was opened with another kind when it created this workspace.
        (Kind::Jj(_), _) | (Kind::Git(_), Created::Jj { .. }) => Ok(()),
    };
    undone.map_err(|cause| UndoError { workspace: name.clone(), cause })
}

/// Deletes the snapshots: the next task may get the same number.
fn delete_turn_refs(repository: &Repository, name: &WorkspaceName) -> Result<(), UndoCause> {
    Ok(delete_snapshots_and_mark(repository, name).map(drop)?)
}

fn undo_all(repository: &Repository, name: &WorkspaceName, tip: &str) -> Result<(), UndoCause> {
    let found = undo_worktree(repository, name, &MergedRefs::only(tip, "new"))?;
    if found.tip.is_some() {
        delete_untouched_branch(repository, name, tip)?;
    }
    Ok(())
}

fn undo_worktree(
    repository: &Repository,
    name: &WorkspaceName,
    merged_refs: &MergedRefs,
) -> Result<GitWorkspace, UndoCause> {
    let found = GitWorkspace::find(repository, name)?;
    if found.presence() == Presence::NotOurs {
        return Err(UndoCause::NotOurs { path: repository.workspace_path(name) });
    }
    if let Some(work) = found.work_at_risk(repository, name, merged_refs)? {
        return Err(UndoCause::HasWork(work));
    }
    if let Some(record) = &found.record {
        record.remove(repository, Force::No)?;
    }
    Ok(found)
}

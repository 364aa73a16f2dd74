//! Takes back a workspace that was made for nothing, because its agent could not be started.
//!
//! Not the way to bring back what a user removed: that lies in the trash.

use std::path::PathBuf;

use crate::create::{Created, Workspace, delete_untouched_branch};
use crate::jj;
use crate::merged_refs::MergedRefs;
use crate::name::WorkspaceName;
use crate::operation::OperationCause;
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::state::{GitWorkspace, Presence};
use crate::tool::ToolError;
use crate::trash::delete_snapshots_and_mark;
use crate::work::WorkAtRisk;
use crate::worktree::Force;

#[derive(Debug, thiserror::Error)]
#[error("workspace {workspace} stays")]
pub struct UndoError {
    pub workspace: WorkspaceName,
    #[source]
    pub cause: UndoCause,
}

#[derive(Debug, thiserror::Error)]
pub enum UndoCause {
    #[error("{0}")]
    HasWork(WorkAtRisk),
    #[error("{} is not a worktree of this repository", path.display())]
    NotOurs { path: PathBuf },
    #[error(transparent)]
    Unreadable(Box<OperationCause>),
    #[error(transparent)]
    Git(#[from] ToolError),
}

impl UndoError {
    pub fn hint(&self) -> Option<String> {
        match &self.cause {
            UndoCause::HasWork(_) | UndoCause::NotOurs { .. } | UndoCause::Unreadable(_) => None,
            UndoCause::Git(err) => err.hint(),
        }
    }
}

/// Removes what the call that returned `workspace` made, if nothing was changed in it since.
pub fn undo_create(project: &Project, workspace: &Workspace) -> Result<(), UndoError> {
    let name = &workspace.name;
    let undone = match (&project.kind, &workspace.made) {
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
        // Not made by this project as it is opened now.
        (Kind::Jj(_), _) | (Kind::Git(_), Created::Jj { .. }) => Ok(()),
    };
    undone.map_err(|cause| UndoError { workspace: name.clone(), cause })
}

/// The next task may get the same number, and its turns are its own.
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
    if let Some(work) = WorkAtRisk::at_risk(repository, name, &found, merged_refs)? {
        return Err(UndoCause::HasWork(work));
    }
    if let Some(record) = &found.record {
        record.remove(repository, Force::No)?;
    }
    Ok(found)
}

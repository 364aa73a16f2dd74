//! Restores saved work: a removed workspace from the trash, or an earlier state of a workspace that exists.
//!
//! Saves the present state first, and cleans up after a failure.

use tracing::warn;

use crate::create::{
    CheckoutTarget, add_worktree, clean_up_failed_add, clear_stale_record, delete_untouched_branch,
    describe_workspace,
};
use crate::error::{Operation, OperationCause, OperationError, shown};
use crate::git_workspace::{GitWorkspace, ReadyWorkspace};
use crate::jj;
use crate::name::WorkspaceName;
use crate::pending_restore::{PendingRestore, recover_restore};
use crate::presence::{PathStatus, Presence};
use crate::project::{Kind, Project};
use crate::put_back::{Different, State, put_back, put_index, put_tree};
use crate::repository::{Repository, tree_of};
use crate::saved_commit::{Ignored, Trailers};
use crate::tool::ToolError;
use crate::trash::{self, TrashEntry, TrashReason};
use crate::workspace::{Created, Workspace};
use crate::worktree::worktrees_on_branch;

/// Restores the directory with all its files, the index, `HEAD` and the branch, and deletes the trash entry.
/// If the entry holds the state before a rebase or before a snapshot was restored, and the workspace exists,
/// its present state is saved first and then replaced.
pub fn restore(project: &Project, entry: &TrashEntry) -> Result<Workspace, OperationError> {
    let restored = || {
        let (store, reference) = (project.require_repository()?, &entry.reference);
        if store.commit(reference)?.as_ref() != Some(&entry.commit) {
            return Err(OperationCause::TrashMissing { reference: reference.clone() });
        }
        let (mut workspace, different) = restore_entry(project, entry)?;
        if different.is_empty() {
            store.git().change(&["update-ref", "-d", reference, &entry.commit])?;
        } else {
            workspace.warnings.push(format!(
                "these files are not as they were saved: {}; {reference} still has them",
                shown(&different)
            ));
        }
        Ok(workspace)
    };
    restored().map_err(Operation::Restore.failed(&entry.workspace))
}

fn restore_entry(project: &Project, entry: &TrashEntry) -> Result<(Workspace, Different), OperationCause> {
    match (&project.kind, &entry.trailers.operation) {
        (Kind::Git(repository), None) => restore_worktree(repository, entry),
        (Kind::Jj(repository), Some(_)) => jj::restore(repository, entry),
        (Kind::Git(_), Some(_)) => Err(OperationCause::OtherVcs { saved_with: "jj", used_with: "git" }),
        (Kind::Jj(_), None) => Err(OperationCause::OtherVcs { saved_with: "git", used_with: "jj" }),
        (Kind::Plain(_), _) => Err(OperationCause::Plain { path: project.root().to_owned() }),
    }
}

fn restore_worktree(
    repository: &Repository,
    entry: &TrashEntry,
) -> Result<(Workspace, Different), OperationCause> {
    let name = &entry.workspace;
    let found = GitWorkspace::find(repository, name)?;
    match (entry.reason, found.presence()) {
        (TrashReason::PutBack | TrashReason::Rebased, Presence::Ready) => {
            let (_, different) = restore_over(repository, name, &entry.commit)?;
            Ok((describe_workspace(repository, name, Vec::new(), Created::Nothing), different))
        }
        _ => restore_removed(repository, name, &found, entry),
    }
}

/// Makes the files of the workspace those of a saved commit, and moves its branch back to where it was then.
/// Returns the trash ref that holds the present state.
pub(crate) fn restore_over(
    repository: &Repository,
    name: &WorkspaceName,
    commit: &str,
) -> Result<(String, Different), OperationCause> {
    recover_restore(repository, name)?;
    let ready = ReadyWorkspace::find(repository, name)?;
    let present = trash::save_workspace(repository, name, &ready.found, TrashReason::PutBack, Ignored::Left)?;
    let pending = PendingRestore { name: name.clone(), commit: commit.to_owned() };
    pending.write(repository)?;
    let different = put_back(repository, name, &ready, commit);
    if let (Err(_), Some(present)) = (&different, &present) {
        undo_put_back(repository, name, present)?;
    }
    pending.delete(repository)?;
    Ok((present.unwrap_or_default(), different?))
}

/// Restores the state before a restore that failed.
fn undo_put_back(repository: &Repository, name: &WorkspaceName, present: &str) -> Result<(), OperationCause> {
    let undo = || put_back(repository, name, &ReadyWorkspace::find(repository, name)?, present);
    let path = repository.workspace_path(name);
    undo().map(drop).map_err(|left| OperationCause::RecoveryFailed { path, left: Box::new(left) })
}

fn restore_removed(
    repository: &Repository,
    name: &WorkspaceName,
    found: &GitWorkspace,
    entry: &TrashEntry,
) -> Result<(Workspace, Different), OperationCause> {
    if found.path_status == PathStatus::Occupied {
        return Err(OperationCause::PathTaken { path: repository.workspace_path(name) });
    }
    clear_stale_record(repository, name, found)?;
    let made_branch = restore_branch(repository, found, &entry.trailers)?;
    let filled = fill_worktree(repository, name, found, entry);
    if filled.is_err() {
        clean_up_failed_add(repository, name, found.path_status);
        if let Some(tip) = made_branch {
            delete_untouched_branch(repository, name, &tip).unwrap_or_else(
                |left| warn!(%name, %left, "the branch of a failed restore could not be deleted"),
            );
        }
    }
    let (warnings, different) = filled?;
    Ok((describe_workspace(repository, name, warnings, Created::Nothing), different))
}

/// Creates the branch again. Returns its commit if this call created it.
fn restore_branch(
    repository: &Repository,
    found: &GitWorkspace,
    trailers: &Trailers,
) -> Result<Option<String>, OperationCause> {
    let Some((branch, tip)) = &trailers.branch else { return Ok(None) };
    match &found.tip {
        Some(there) if there == tip => Ok(None),
        Some(_) => Err(OperationCause::BranchExists { branch: branch.clone() }),
        None => {
            let full = format!("refs/heads/{branch}");
            repository.git().change(&["update-ref", "-m", "agency: restored", &full, tip, ""])?;
            Ok(Some(tip.clone()))
        }
    }
}

fn fill_worktree(
    repository: &Repository,
    name: &WorkspaceName,
    found: &GitWorkspace,
    entry: &TrashEntry,
) -> Result<(Vec<String>, Different), OperationCause> {
    let (trailers, head_then) = Trailers::read(repository, &entry.commit)?;
    let (checkout, warning) =
        choose_checkout(repository, name, &trailers, head_then.as_deref().unwrap_or(&entry.commit))?;
    let mut warnings = add_worktree(repository, name, found.path_status, &checkout)?;
    warnings.extend(warning);
    let ready = ReadyWorkspace::find(repository, name)?;
    let worktree = &ready.worktree;
    let details = trailers.read_details(repository)?;
    if let Some(details) = &details {
        details.put_settings(repository, &worktree.git_dir)?;
    }
    let files = trailers.ignored.as_deref().unwrap_or(&entry.commit);
    let put = put_tree(repository, worktree, &tree_of(repository, files)?, details.as_ref())?;
    put_index(repository, worktree, &trailers, head_then.as_deref(), details.as_ref())?;
    let different = put.differences(repository, worktree, details.as_ref(), State::Saved)?;
    Ok((warnings, different))
}

/// Returns where `HEAD` was, if it can be there again.
fn choose_checkout(
    repository: &Repository,
    name: &WorkspaceName,
    trailers: &Trailers,
    head_then: &str,
) -> Result<(CheckoutTarget, Option<String>), ToolError> {
    let detached = || CheckoutTarget::Detached(head_then.to_owned());
    let branch = match (trailers.head.as_deref(), &trailers.branch) {
        (Some(head), _) => match head.strip_prefix("refs/heads/") {
            Some(branch) => branch.to_owned(),
            None => return Ok((detached(), None)),
        },
        (None, Some((branch, _))) => branch.clone(),
        (None, None) => return Ok((detached(), None)),
    };
    let is_free = repository.branch_tip(&branch)?.as_deref() == Some(head_then)
        && worktrees_on_branch(repository, &branch)?.is_empty();
    match is_free {
        true => Ok((CheckoutTarget::Branch(branch), None)),
        false => Ok((
            detached(),
            Some(format!(
                "{name} was on {branch}, which has moved or is checked out elsewhere; it is now on no branch"
            )),
        )),
    }
}

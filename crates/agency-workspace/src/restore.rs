//! Restores saved work: a removed workspace from the trash, or an earlier state of a workspace that exists.
//!
//! Saves the present state first, and cleans up after a failure.

use tracing::warn;

use crate::create::{
    CheckoutTarget, add_worktree, clean_up_failed_add, clear_stale_record, delete_untouched_branch,
    describe_workspace,
};
use crate::error::{Operation, OperationCause, OperationError};
use crate::git_workspace::{GitWorkspace, ReadyWorkspace};
use crate::jj;
use crate::name::WorkspaceName;
use crate::presence::{PathStatus, Presence};
use crate::project::{Kind, Project};
use crate::repository::{Repository, tree_of};
use crate::saved_commit::{Ignored, Trailers};
use crate::temp_index::blocking_files;
use crate::tool::ToolError;
use crate::trash::{self, TrashEntry, TrashReason};
use crate::workspace::{Created, Workspace};
use crate::worktree::{Worktree, worktrees_on_branch};

/// Restores the directory with all its files, the index, `HEAD` and the branch, and deletes the trash entry.
/// If the entry holds the state before a rebase or before a snapshot was restored, and the workspace exists,
/// its present state is saved first and then replaced.
pub fn restore(project: &Project, entry: &TrashEntry) -> Result<Workspace, OperationError> {
    let restored = || {
        let (store, reference) = (project.require_repository()?, &entry.reference);
        if store.commit(reference)?.as_ref() != Some(&entry.commit) {
            return Err(OperationCause::TrashMissing { reference: reference.clone() });
        }
        let workspace = restore_entry(project, entry)?;
        store.git().change(&["update-ref", "-d", reference, &entry.commit])?;
        Ok(workspace)
    };
    restored().map_err(Operation::Restore.failed(&entry.workspace))
}

fn restore_entry(project: &Project, entry: &TrashEntry) -> Result<Workspace, OperationCause> {
    match (&project.kind, &entry.trailers.operation) {
        (Kind::Git(repository), None) => restore_worktree(repository, entry),
        (Kind::Jj(repository), Some(_)) => jj::restore(repository, entry),
        (Kind::Git(_), Some(_)) => Err(OperationCause::OtherVcs { saved_with: "jj", used_with: "git" }),
        (Kind::Jj(_), None) => Err(OperationCause::OtherVcs { saved_with: "git", used_with: "jj" }),
        (Kind::Plain(_), _) => Err(OperationCause::Plain { path: project.root().to_owned() }),
    }
}

fn restore_worktree(repository: &Repository, entry: &TrashEntry) -> Result<Workspace, OperationCause> {
    let name = &entry.workspace;
    let found = GitWorkspace::find(repository, name)?;
    match (entry.reason, found.presence()) {
        (TrashReason::PutBack | TrashReason::Rebased, Presence::Ready) => {
            restore_over(repository, name, &entry.commit)?;
            Ok(describe_workspace(repository, name, Vec::new(), Created::Nothing))
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
) -> Result<String, OperationCause> {
    let ready = ReadyWorkspace::find(repository, name)?;
    let present = trash::save_workspace(repository, name, &ready.found, TrashReason::PutBack, Ignored::Left)?;
    put_tree(repository, &ready.worktree, &tree_of(repository, commit)?)?;
    let (trailers, head_then) = Trailers::read(repository, commit)?;
    move_branch(repository, name, &ready, &trailers, head_then.as_deref())?;
    Ok(present.unwrap_or_default())
}

/// Makes the files of a worktree those of a tree.
fn put_tree(repository: &Repository, worktree: &Worktree, wanted: &str) -> Result<(), OperationCause> {
    let temp_index = worktree.temp_index(repository)?;
    temp_index.add_all_files()?;
    let now = temp_index.tree()?;
    let files = blocking_files(temp_index.git(), &worktree.path, &now, wanted)?;
    if !files.is_empty() {
        return Err(OperationCause::InTheWay { files });
    }
    Ok(temp_index.check_out(&now, wanted)?)
}

/// Removes later commits from the branch: with them, the restored files would look like a revert by hand.
/// Does not move another branch that is or was checked out there.
fn move_branch(
    repository: &Repository,
    name: &WorkspaceName,
    ready: &ReadyWorkspace,
    trailers: &Trailers,
    head_then: Option<&str>,
) -> Result<(), ToolError> {
    let own = Some(name.branch());
    let is_on_own = ready.found.record.as_ref().is_some_and(|record| record.branch == own);
    let was_on_own =
        trailers.head.as_deref().and_then(|head| head.strip_prefix("refs/heads/")) == own.as_deref();
    let Some(head_then) =
        head_then.filter(|head| is_on_own && was_on_own && ready.found.head() != Some(head))
    else {
        return Ok(());
    };
    let git = ready.worktree.git(repository).with_variable("GIT_REFLOG_ACTION", "agency: restore");
    git.change(&["reset", "--quiet", "--mixed", head_then])?;
    read_index(&ready.worktree, repository, trailers)
}

fn read_index(worktree: &Worktree, repository: &Repository, trailers: &Trailers) -> Result<(), ToolError> {
    let Some(index) = &trailers.index else { return Ok(()) };
    let git = worktree.git(repository);
    git.change(&["read-tree", index])?;
    git.change(&["update-index", "-q", "--refresh"]).map(drop)
}

fn restore_removed(
    repository: &Repository,
    name: &WorkspaceName,
    found: &GitWorkspace,
    entry: &TrashEntry,
) -> Result<Workspace, OperationCause> {
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
    let warnings = filled?;
    Ok(describe_workspace(repository, name, warnings, Created::Nothing))
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
) -> Result<Vec<String>, OperationCause> {
    let (trailers, head_then) = Trailers::read(repository, &entry.commit)?;
    let (checkout, warning) =
        choose_checkout(repository, name, &trailers, head_then.as_deref().unwrap_or(&entry.commit))?;
    let mut warnings = add_worktree(repository, name, found.path_status, &checkout)?;
    warnings.extend(warning);
    let ready = ReadyWorkspace::find(repository, name)?;
    let files = trailers.ignored.as_deref().unwrap_or(&entry.commit);
    put_tree(repository, &ready.worktree, &tree_of(repository, files)?)?;
    read_index(&ready.worktree, repository, &trailers)?;
    Ok(warnings)
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

//! Every obstacle to a merge, at once.
//!
//! Only looks, except that an interrupted merge or sync is recovered first. Merging is in `merge`.

use crate::error::{Operation, OperationCause};
use crate::git_workspace::{GitWorkspace, not_ready};
use crate::integration::{MergeInspection, MergeMethod, MergeRequest};
use crate::integration_lock::IntegrationLock;
use crate::jj;
use crate::merge::refuse_own_branch;
use crate::merge_target::{MergeTarget, refuse_busy_or_other_branch};
use crate::merge_tree::{WorkCommit, conflicting_files};
use crate::merged_refs::MergedRefs;
use crate::name::WorkspaceName;
use crate::pending_merge;
use crate::pending_sync;
use crate::presence::Presence;
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::worktree_status::WorktreeStatus;

/// Finds every obstacle to a merge.
pub fn inspect_merge(project: &Project, name: &WorkspaceName, request: &MergeRequest) -> MergeInspection {
    let mut causes = Vec::new();
    let mut inspection = MergeInspection::default();
    let inspected = refuse_own_branch(name, request).and_then(|()| match &project.kind {
        Kind::Git(repository) => inspect_branch(repository, name, request, &mut inspection, &mut causes),
        Kind::Jj(repository) => jj::inspect_merge(repository, name, request, &mut inspection),
        Kind::Plain(_) => Err(OperationCause::Plain { path: project.root().to_owned() }),
    });
    causes.extend(inspected.err());
    inspection.refusals = causes.into_iter().map(Operation::Merge.failed(name)).collect();
    inspection
}

fn inspect_branch(
    repository: &Repository,
    name: &WorkspaceName,
    request: &MergeRequest,
    inspection: &mut MergeInspection,
    causes: &mut Vec<OperationCause>,
) -> Result<(), OperationCause> {
    recover(repository, name)?;
    let found = GitWorkspace::find(repository, name)?;
    causes.extend(refuse_workspace(repository, name, &found).err());
    inspection.uncommitted = found.uncommitted_work(repository, name)?;
    let target = MergeTarget::find(repository, request.into.as_deref(), request.base.as_deref())?;
    inspection.into = Some(target.branch.clone());
    causes.extend(target.refuse_busy_or_dirty(repository).err());
    let Some(tip) = &found.tip else { return Ok(()) };
    let is_new = MergedRefs::only(&target.tip, "").count_missing(repository, &[tip])? > 0;
    if !is_new && inspection.uncommitted.is_none() {
        return Err(OperationCause::NothingNew { target: target.branch });
    }
    causes.extend(refuse_conflicts(repository, name, &target, request.how).err());
    Ok(())
}

fn recover(repository: &Repository, name: &WorkspaceName) -> Result<(), OperationCause> {
    let lock = IntegrationLock::acquire(repository)?;
    pending_merge::recover_merges(repository, &lock)?;
    pending_sync::recover_sync(repository, name, &lock)
}

fn refuse_workspace(
    repository: &Repository,
    name: &WorkspaceName,
    found: &GitWorkspace,
) -> Result<(), OperationCause> {
    match (&found.worktree, found.presence()) {
        (_, Presence::NotOurs) => Err(not_ready(repository, name, found)),
        (Some(worktree), _) => refuse_busy_or_other_branch(repository, name, found, worktree),
        (None, _) if found.tip.is_none() => Err(not_ready(repository, name, found)),
        (None, _) => Ok(()),
    }
}

fn refuse_conflicts(
    repository: &Repository,
    name: &WorkspaceName,
    target: &MergeTarget,
    how: MergeMethod,
) -> Result<(), OperationCause> {
    let Some(status) = WorktreeStatus::read(repository, name)? else { return Ok(()) };
    let work = status.look(repository)?;
    let branch = target.branch.clone();
    let files = conflicting_files(repository, &WorkCommit::stored(&target.tip), &work)?;
    if !files.is_empty() {
        return Err(OperationCause::Conflicts { with: branch, files });
    }
    match (how, status.head()) {
        (MergeMethod::FastForward, Some(head)) => {
            let commits = MergedRefs::only(head, "").count_missing(repository, &[&target.tip])?;
            let fast_forward = Err(OperationCause::NotFastForward { target: branch, commits });
            if commits > 0 { fast_forward } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

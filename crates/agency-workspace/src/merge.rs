//! Merges the branch of a workspace into another one.
//!
//! The merge is made in a trial worktree. Then the target moves in one step, if it is still where it was. A
//! process that is killed meanwhile leaves the repository unchanged or merged: see `pending_merge`.

use crate::error::{Operation, OperationCause, OperationError};
use crate::git::Git;
use crate::git_workspace::{GitWorkspace, not_ready};
use crate::hidden_ref::merged_mark_ref;
use crate::integration::{MergeMethod, MergeRequest, Merged, commit_message};
use crate::integration_lock::IntegrationLock;
use crate::jj;
use crate::merge_target::{MergeTarget, TargetCheckout, refuse_busy_or_other_branch};
use crate::merge_tree::{WorkCommit, conflicting_files};
use crate::merged_refs::MergedRefs;
use crate::name::WorkspaceName;
use crate::pending_merge::{self, MergeOutcome, PendingMerge};
use crate::pending_sync;
use crate::presence::Presence;
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::temp_index::blocking_files;
use crate::tool::ToolError;
use crate::trial_worktree::TrialWorktree;
use crate::worktree_status::WorktreeStatus;

/// Merges everything that is committed in the workspace. Refuses if the workspace has uncommitted files, or
/// if the target is checked out with changes.
pub fn merge(
    project: &Project,
    name: &WorkspaceName,
    request: &MergeRequest,
) -> Result<Merged, OperationError> {
    let merged = refuse_own_branch(name, request).and_then(|()| match &project.kind {
        Kind::Git(repository) => merge_branch(repository, name, request),
        Kind::Jj(repository) => jj::merge(repository, name, request),
        Kind::Plain(_) => Err(OperationCause::Plain { path: project.root().to_owned() }),
    });
    merged.map_err(Operation::Merge.failed(name))
}

/// Checks whether [`merge`] would refuse once all the work is committed.
pub fn check_merge(
    project: &Project,
    name: &WorkspaceName,
    request: &MergeRequest,
) -> Result<(), OperationError> {
    let looked = refuse_own_branch(name, request).and_then(|()| match &project.kind {
        Kind::Git(repository) => may_merge_branch(repository, name, request),
        Kind::Jj(repository) => jj::may_merge(repository, name, request),
        Kind::Plain(_) => Err(OperationCause::Plain { path: project.root().to_owned() }),
    });
    looked.map_err(Operation::Merge.failed(name))
}

/// Refuses to merge a workspace into its own branch, which would be a no-op that looks like success.
pub(crate) fn refuse_own_branch(name: &WorkspaceName, request: &MergeRequest) -> Result<(), OperationCause> {
    let own = name.branch();
    match request.into.as_deref().map(|into| into.strip_prefix("refs/heads/").unwrap_or(into)) {
        Some(into) if into == own => Err(OperationCause::OwnBranch { branch: own }),
        _ => Ok(()),
    }
}

fn may_merge_branch(
    repository: &Repository,
    name: &WorkspaceName,
    request: &MergeRequest,
) -> Result<(), OperationCause> {
    let target = MergeTarget::find(repository, request.into.as_deref(), request.base.as_deref())?;
    target.refuse_busy_or_dirty(repository)?;
    let Some(status) = WorktreeStatus::read(repository, name)? else { return Ok(()) };
    let files = conflicting_files(repository, &WorkCommit::stored(&target.tip), &status.look(repository)?)?;
    if files.is_empty() {
        return Ok(());
    }
    Err(OperationCause::Conflicts { with: target.branch, files })
}

fn merge_branch(
    repository: &Repository,
    name: &WorkspaceName,
    request: &MergeRequest,
) -> Result<Merged, OperationCause> {
    let lock = IntegrationLock::acquire(repository)?;
    pending_merge::recover_merges(repository, &lock)?;
    pending_sync::recover_sync(repository, name, &lock)?;
    let tip = committed_tip(repository, name)?;
    let target = MergeTarget::find(repository, request.into.as_deref(), request.base.as_deref())?;
    if MergedRefs::only(&target.tip, "").count_missing(repository, &[&tip])? == 0 {
        return Err(OperationCause::NothingNew { target: target.branch });
    }
    target.refuse_busy_or_dirty(repository)?;
    let after = create_merged_commit(repository, name, &target, &tip, request, &lock)?;
    let pending = PendingMerge {
        name: name.clone(),
        target: target.branch.clone(),
        old: target.tip.clone(),
        new: after,
        tip,
    };
    match &target.checkout {
        None => move_ref(repository, &pending)?,
        Some(checkout) => move_checkout(repository, &pending, checkout)?,
    }
    let checkout = target.checkout.map(|checkout| checkout.path);
    Ok(Merged { into: pending.target, before: pending.old, after: pending.new, checkout, notes: Vec::new() })
}

/// Returns the tip of the workspace's branch. Refuses if there is uncommitted work.
fn committed_tip(repository: &Repository, name: &WorkspaceName) -> Result<String, OperationCause> {
    let found = GitWorkspace::find(repository, name)?;
    // There may be work in the directory that git does not see.
    if found.presence() == Presence::NotOurs {
        return Err(not_ready(repository, name, &found));
    }
    if let Some(worktree) = &found.worktree {
        refuse_busy_or_other_branch(repository, name, &found, worktree)?;
        if let Some(work) = found.uncommitted_work(repository, name)? {
            return Err(OperationCause::HasWork(work));
        }
    }
    let (path, presence) = (repository.workspace_path(name), found.presence());
    found.tip.ok_or(OperationCause::NotReady { path, presence })
}

fn create_merged_commit(
    repository: &Repository,
    name: &WorkspaceName,
    target: &MergeTarget,
    tip: &str,
    request: &MergeRequest,
    lock: &IntegrationLock,
) -> Result<String, OperationCause> {
    let message = commit_message(repository, name, (&target.branch, &target.tip), &[tip], request)?;
    match request.how {
        MergeMethod::FastForward => fast_forward(repository, target, tip),
        MergeMethod::Merge => {
            let trial = TrialWorktree::create(repository, &target.tip, lock)?;
            let args = ["merge", "--no-ff", "--no-edit", "--no-progress", "-m", &message, tip];
            trial.run_merge(&args, &target.branch)?;
            Ok(trial.head()?)
        }
        MergeMethod::Squash => {
            let trial = TrialWorktree::create(repository, &target.tip, lock)?;
            // Git refuses `--squash` with `merge.ff = false`, so `--ff` overrides that setting.
            trial.run_merge(&["merge", "--squash", "--ff", "--no-progress", tip], &target.branch)?;
            refuse_nothing_staged(&trial, target)?;
            trial.git().change_with_hooks(&["commit", "--quiet", "--message", &message])?;
            Ok(trial.head()?)
        }
        MergeMethod::Rebase => {
            let trial = TrialWorktree::create(repository, tip, lock)?;
            trial.run_merge(&["rebase", "--quiet", &target.tip], &target.branch)?;
            let after = trial.head()?;
            let target_has_it = after == target.tip;
            if target_has_it {
                Err(OperationCause::NothingNew { target: target.branch.clone() })
            } else {
                Ok(after)
            }
        }
    }
}

fn fast_forward(repository: &Repository, target: &MergeTarget, tip: &str) -> Result<String, OperationCause> {
    let commits = MergedRefs::only(tip, "").count_missing(repository, &[&target.tip])?;
    if commits > 0 {
        return Err(OperationCause::NotFastForward { target: target.branch.clone(), commits });
    }
    Ok(tip.to_owned())
}

fn refuse_nothing_staged(trial: &TrialWorktree, target: &MergeTarget) -> Result<(), OperationCause> {
    let staged = trial.git().read(&["diff-index", "--cached", "--name-only", "-z", "HEAD"])?;
    if staged.is_empty() { Err(OperationCause::NothingNew { target: target.branch.clone() }) } else { Ok(()) }
}

/// Moves a target that is not checked out, together with the mark, or neither.
fn move_ref(repository: &Repository, pending: &PendingMerge) -> Result<(), OperationCause> {
    let (record, mark) = (pending.record(repository)?, merged_mark_ref(&pending.name));
    let PendingMerge { target, old, new, .. } = pending;
    let steps = format!("update refs/heads/{target} {new} {old}\nupdate {mark} {record}\n");
    let why = format!("agency: merge {}", pending.name);
    match repository.git().change_with_input(&["update-ref", "-m", &why, "--stdin"], steps.as_bytes()) {
        Err(err) if err.stderr_contains("but expected") => {
            Err(OperationCause::TargetMoved { branch: target.clone() })
        }
        moved => Ok(moved?),
    }
}

/// Lets git update the checkout of the target, by the command that a user would run there. The pending merge
/// is recorded meanwhile, so that the next call can recover it after an interruption.
fn move_checkout(
    repository: &Repository,
    pending: &PendingMerge,
    checkout: &TargetCheckout,
) -> Result<(), OperationCause> {
    let git = checkout.git(repository);
    let files = blocking_files(&git, &checkout.path, &pending.old, &pending.new)?;
    if !files.is_empty() {
        return Err(OperationCause::TargetBlocked { path: checkout.path.clone(), files });
    }
    pending.write(repository)?;
    let git = git.with_variable("GIT_REFLOG_ACTION", format!("agency merge {}", pending.name));
    let git = without_merge_options(git, &pending.target);
    let options =
        ["--ff-only", "--commit", "--no-squash", "--no-overwrite-ignore", "--quiet", "--no-progress"];
    let refused = git.change_with_hooks(&[&["merge"], &options[..], &[&pending.new]].concat()).err();
    let unsure = |source| OperationCause::MergeUncertain { branch: pending.target.clone(), source };
    if refused.is_none() && pending.has_arrived(repository).map_err(unsure)? {
        return pending.complete(repository).map_err(unsure);
    }
    match pending.recover(repository).map_err(|left| recovery_error(checkout, left))? {
        // Git moved the branch and failed afterwards.
        MergeOutcome::Merged => Ok(()),
        MergeOutcome::RolledBack { trash_ref } => {
            let refused = match refused {
                Some(err) => refused_by_git(repository, pending, err)?,
                None => OperationCause::NotMoved { branch: pending.target.clone() },
            };
            Err(match trash_ref {
                Some(trash_ref) => OperationCause::RolledBack {
                    path: checkout.path.clone(),
                    trash_ref,
                    source: Box::new(refused),
                },
                None => refused,
            })
        }
    }
}

/// Ignores the options that the user has configured for merges into this branch. The merge itself is already
/// made; with `--squash` or `-s ours` git would not move the branch to it.
fn without_merge_options(git: Git, branch: &str) -> Git {
    git.with_variable("GIT_CONFIG_COUNT", "1")
        .with_variable("GIT_CONFIG_KEY_0", format!("branch.{branch}.mergeOptions"))
        .with_variable("GIT_CONFIG_VALUE_0", "--ff-only")
}

fn recovery_error(checkout: &TargetCheckout, left: OperationCause) -> OperationCause {
    match left {
        // This cause explains itself.
        left @ OperationCause::InterruptedMerge { .. } => left,
        left => OperationCause::RecoveryFailed { path: checkout.path.clone(), left: Box::new(left) },
    }
}

fn refused_by_git(
    repository: &Repository,
    pending: &PendingMerge,
    err: ToolError,
) -> Result<OperationCause, ToolError> {
    let branch = pending.target.clone();
    let has_moved = repository.branch_tip(&branch)?.as_ref() != Some(&pending.old);
    Ok(if has_moved { OperationCause::TargetMoved { branch } } else { err.into() })
}

//! Merges the branch of a workspace into another one.
//!
//! The merge is made aside; then the target moves in one step, if it still is where it was. Whoever is killed
//! on the way leaves the repository as it was, or merged: see `merging`.

use std::path::{Path, PathBuf};

use crate::base::{current_branch, explicit_base, find_commit};
use crate::conflicts::conflicting_files;
use crate::git::Git;
use crate::jj;
use crate::merged_refs::{MergedRefs, merged_mark_ref};
use crate::name::WorkspaceName;
use crate::operation::{Operation, OperationCause, OperationError};
use crate::pending_merge::{self, MergeOutcome, PendingMerge};
use crate::pending_sync;
use crate::project::{Kind, Project};
use crate::repository::{Repository, resolve_path};
use crate::state::GitWorkspace;
use crate::temp_index::{blocking_files, parse_paths};
use crate::tool::ToolError;
use crate::trial_worktree::{IntegrationLock, TrialWorktree};
use crate::work::WorkAtRisk;
use crate::worktree::{Worktree, worktrees_on_branch};
use crate::worktree_status::WorktreeStatus;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MergeMethod {
    /// A merge commit, always.
    #[default]
    Merge,
    /// One commit with all of it.
    Squash,
    /// Its commits, written anew on top of the target.
    Rebase,
    /// Its commits as they are; refused if the target has others.
    FastForward,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MergeRequest {
    pub how: MergeMethod,
    /// A local branch. Unless given, it is that of `base`, or where there is no base that could be merged into
    /// (a tag, a commit), the current one of the main checkout.
    pub into: Option<String>,
    /// What the workspace was made from.
    pub base: Option<String>,
    /// Of the new commit, if one is made.
    pub message: Option<String>,
    /// The first line of a squashed commit for which there is no message.
    pub title: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    pub into: String,
    /// The commit of the target before and after.
    pub before: String,
    pub after: String,
    /// The checkout of the target, whose files were brought up to date.
    pub checkout: Option<PathBuf>,
    /// What the user should know of it.
    pub notes: Vec<String>,
}

/// Merges all that is committed in the workspace. Uncommitted files refuse, and so does a target that is checked
/// out with changes of its own.
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

/// Whether [`merge`] would refuse once all the work is committed.
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

/// There all of the work is, and nobody has it.
fn refuse_own_branch(name: &WorkspaceName, request: &MergeRequest) -> Result<(), OperationCause> {
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
    let target = MergeTarget::find(repository, request)?;
    target.refuse_busy_or_dirty(repository)?;
    let Some(status) = WorktreeStatus::read(repository, name)? else { return Ok(()) };
    let files = conflicting_files(repository, &target.tip, &status.commit(repository)?)?;
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
    let target = MergeTarget::find(repository, request)?;
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

/// The commit of the workspace's branch, if nothing but it is to be merged.
fn committed_tip(repository: &Repository, name: &WorkspaceName) -> Result<String, OperationCause> {
    let found = GitWorkspace::find(repository, name)?;
    if let Some(worktree) = &found.worktree {
        refuse_busy_or_other_branch(repository, name, &found, worktree)?;
        if let Some(work) = WorkAtRisk::uncommitted_in(repository, name, &found)? {
            return Err(OperationCause::HasWork(work));
        }
    }
    let (path, presence) = (repository.workspace_path(name), found.presence());
    found.tip.ok_or(OperationCause::NotReady { path, presence })
}

/// Refuses in the middle of something, or on another branch: the work may be elsewhere than it seems.
pub(crate) fn refuse_busy_or_other_branch(
    repository: &Repository,
    name: &WorkspaceName,
    found: &GitWorkspace,
    worktree: &Worktree,
) -> Result<(), OperationCause> {
    let path = repository.workspace_path(name);
    if let Some(what) = operation_in_progress(&worktree.git_dir) {
        return Err(OperationCause::Busy { path, what });
    }
    let head = found.record.as_ref().and_then(|record| record.branch.clone());
    let branch = name.branch();
    if head.as_ref() == Some(&branch) {
        Ok(())
    } else {
        Err(OperationCause::OtherBranch { path, head, branch })
    }
}

/// What git is in the middle of, by the files it leaves meanwhile.
pub(crate) fn operation_in_progress(git_dir: &Path) -> Option<&'static str> {
    let signs = [
        ("MERGE_HEAD", "a merge"),
        ("rebase-merge", "a rebase"),
        ("rebase-apply", "a rebase"),
        ("CHERRY_PICK_HEAD", "a cherry-pick"),
        ("REVERT_HEAD", "a revert"),
    ];
    signs.into_iter().find(|(sign, _)| git_dir.join(sign).exists()).map(|(_, what)| what)
}

/// The branch that is merged into.
pub(crate) struct MergeTarget {
    pub(crate) branch: String,
    pub(crate) tip: String,
    pub(crate) checkout: Option<TargetCheckout>,
}

/// Where it is checked out.
pub(crate) struct TargetCheckout {
    pub(crate) path: PathBuf,
    pub(crate) git_dir: PathBuf,
}

impl MergeTarget {
    pub(crate) fn find(repository: &Repository, request: &MergeRequest) -> Result<Self, OperationCause> {
        let branch = match &request.into {
            Some(branch) => branch.strip_prefix("refs/heads/").unwrap_or(branch).to_owned(),
            None => target_branch(repository, request.base.as_deref())?,
        };
        let Some(tip) = repository.branch_tip(&branch)? else {
            return Err(OperationCause::TargetMissing { branch });
        };
        let checkout = TargetCheckout::of(repository, &branch)?;
        Ok(Self { branch, tip, checkout })
    }

    fn refuse_busy_or_dirty(&self, repository: &Repository) -> Result<(), OperationCause> {
        let Some(checkout) = &self.checkout else { return Ok(()) };
        let path = checkout.path.clone();
        if let Some(what) = operation_in_progress(&checkout.git_dir) {
            return Err(OperationCause::Busy { path, what });
        }
        let files = checkout.changed_files(repository)?;
        if files.is_empty() {
            return Ok(());
        }
        Err(OperationCause::TargetDirty { branch: self.branch.clone(), path, files })
    }
}

/// Never a branch that only happens to be checked out, if the work began on another one.
fn target_branch(repository: &Repository, base: Option<&str>) -> Result<String, OperationCause> {
    if let Some(base) = explicit_base(base) {
        if repository.branch_tip(base)?.is_some() {
            return Ok(base.to_owned());
        }
        let remote = format!("refs/remotes/{base}");
        if repository.commit(&remote)?.is_some() {
            let missing = OperationCause::RemoteBase { base: base.to_owned() };
            return local_branch_tracking(repository, &remote)?.ok_or(missing);
        }
        if find_commit(repository, base)?.is_none() {
            return Err(OperationCause::TargetMissing { branch: base.to_owned() });
        }
    }
    current_branch(repository)?.ok_or(OperationCause::NoCurrentBranch)
}

/// The local branch that follows one of a server.
fn local_branch_tracking(repository: &Repository, remote: &str) -> Result<Option<String>, ToolError> {
    let args = ["for-each-ref", "--format=%(upstream)%00%(refname)", "refs/heads"];
    let listed = String::from_utf8_lossy(&repository.git().read(&args)?).into_owned();
    let follows = |line: &str| {
        line.split_once('\0')
            .filter(|(upstream, _)| *upstream == remote)?
            .1
            .strip_prefix("refs/heads/")
            .map(str::to_owned)
    };
    Ok(listed.lines().find_map(follows))
}

impl TargetCheckout {
    pub(crate) fn of(repository: &Repository, branch: &str) -> Result<Option<Self>, ToolError> {
        for record in worktrees_on_branch(repository, branch)? {
            // A record without its directory has no files to bring up to date.
            let there = Git::discovering(repository.environment(), &record.path);
            match resolve_path(&there, &record.path, "--git-dir") {
                Ok(git_dir) => return Ok(Some(Self { path: record.path, git_dir })),
                Err(ToolError::Missing { program }) => return Err(ToolError::Missing { program }),
                Err(_) => {}
            }
        }
        Ok(None)
    }

    pub(crate) fn git(&self, repository: &Repository) -> Git {
        Git::on(repository.environment(), &self.git_dir, &self.path).with_work_tree(&self.path)
    }

    /// Tracked files that are not as committed.
    pub(crate) fn changed_files(&self, repository: &Repository) -> Result<Vec<PathBuf>, ToolError> {
        let git = self.git(repository);
        let staged = git.read(&["diff-index", "--cached", "--name-only", "-z", "HEAD"])?;
        let args = [
            "status",
            "--porcelain",
            "-z",
            "--no-renames",
            "--untracked-files=no",
            "--ignore-submodules=dirty",
        ];
        let status = git.read(&args)?;
        let changed = status.split(|byte| *byte == 0).filter_map(|entry| entry.get(3..)).map(<[u8]>::to_vec);
        let changed: Vec<u8> = changed.flat_map(|path| path.into_iter().chain([0])).collect();
        let mut files = [parse_paths(&staged), parse_paths(&changed)].concat();
        files.sort();
        files.dedup();
        Ok(files)
    }
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
            trial.run_merge(&["merge", "--squash", "--no-progress", tip], &target.branch)?;
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

/// What the commit says that a merge or a squash makes.
pub(crate) fn commit_message(
    repository: &Repository,
    name: &WorkspaceName,
    (into, before): (&str, &str),
    tips: &[&str],
    request: &MergeRequest,
) -> Result<String, ToolError> {
    let default = || format!("Merge {} into {into}", name.branch());
    match (&request.message, request.how) {
        (Some(message), _) => Ok(message.clone()),
        (None, MergeMethod::Squash) => {
            let title = request.title.clone().unwrap_or_else(default);
            squash_message(repository, name, before, tips, title)
        }
        (None, _) => Ok(default()),
    }
}

/// A title, and below it what the commits were called that go into it.
fn squash_message(
    repository: &Repository,
    name: &WorkspaceName,
    before: &str,
    tips: &[&str],
    title: String,
) -> Result<String, ToolError> {
    let without = format!("^{before}");
    let args = [&["log", "--reverse", "--no-merges", "--format=%s", &without], tips].concat();
    let listed = String::from_utf8_lossy(&repository.git().read(&args)?).into_owned();
    let subjects: Vec<&str> = listed.lines().filter(|line| !line.trim().is_empty()).collect();
    Ok(match subjects.as_slice() {
        [] => title,
        [only] if *only == title => title,
        subjects => {
            let lines: Vec<String> = subjects.iter().map(|subject| format!("* {subject}")).collect();
            format!("{title}\n\nSquashed from {}:\n\n{}\n", name.branch(), lines.join("\n"))
        }
    })
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

/// Nobody has files of it: the target moves, and the mark with it, or neither.
fn move_ref(repository: &Repository, pending: &PendingMerge) -> Result<(), OperationCause> {
    let (target, mark) = (&pending.target, merged_mark_ref(&pending.name));
    let PendingMerge { old, new, tip, .. } = pending;
    let steps = format!("update refs/heads/{target} {new} {old}\nupdate {mark} {tip}\n");
    let why = format!("agency: merge {}", pending.name);
    match repository.git().change_with_input(&["update-ref", "-m", &why, "--stdin"], steps.as_bytes()) {
        Err(err) if err.stderr_contains("but expected") => {
            Err(OperationCause::TargetMoved { branch: target.clone() })
        }
        moved => Ok(moved?),
    }
}

/// Git itself brings the checkout up to date, by what a user would do there. A note is left meanwhile, so that
/// the next one can clean up if it is cut off.
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
    let args = ["merge", "--ff-only", "--no-overwrite-ignore", "--quiet", "--no-progress", &pending.new];
    let Err(err) = git.change_with_hooks(&args) else {
        let unsure = |source| OperationCause::MergeUncertain { branch: pending.target.clone(), source };
        return pending.complete(repository).map_err(unsure);
    };
    match pending.recover(repository).map_err(|left| recovery_error(checkout, left))? {
        // It moved the branch and failed afterwards.
        MergeOutcome::Merged => Ok(()),
        MergeOutcome::RolledBack { trash_ref: kept } => {
            let refused = refused_by_git(repository, pending, err)?;
            Err(match kept {
                Some(kept) => OperationCause::RolledBack {
                    path: checkout.path.clone(),
                    kept,
                    source: Box::new(refused),
                },
                None => refused,
            })
        }
    }
}

fn recovery_error(checkout: &TargetCheckout, left: OperationCause) -> OperationCause {
    match left {
        // Says it all by itself.
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

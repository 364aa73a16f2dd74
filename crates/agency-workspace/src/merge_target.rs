//! The branch that a merge goes into, and its checkout.
//!
//! Also the refusals for a checkout that is not ready. Merging is not done here.

use std::path::PathBuf;

use crate::base::{current_branch, explicit_base, find_commit};
use crate::branch_checkouts::find_operation_on_branch;
use crate::error::OperationCause;
use crate::git::Git;
use crate::git_operation::GitOperation;
use crate::git_workspace::GitWorkspace;
use crate::name::WorkspaceName;
use crate::repository::{Repository, resolve_path};
use crate::temp_index::parse_paths;
use crate::tool::ToolError;
use crate::worktree::{Worktree, worktrees_on_branch};

/// The branch to merge into.
pub(crate) struct MergeTarget {
    pub(crate) branch: String,
    pub(crate) tip: String,
    pub(crate) checkout: Option<TargetCheckout>,
}

/// The checkout of a branch.
pub(crate) struct TargetCheckout {
    pub(crate) path: PathBuf,
    pub(crate) git_dir: PathBuf,
}

impl MergeTarget {
    pub(crate) fn find(
        repository: &Repository,
        into: Option<&str>,
        base: Option<&str>,
    ) -> Result<Self, OperationCause> {
        let branch = match into {
            Some(branch) => branch.strip_prefix("refs/heads/").unwrap_or(branch).to_owned(),
            None => target_branch(repository, base)?,
        };
        let Some(tip) = repository.branch_tip(&branch)? else {
            return Err(OperationCause::TargetMissing { branch });
        };
        let checkout = TargetCheckout::of(repository, &branch)?;
        Ok(Self { branch, tip, checkout })
    }

    pub(crate) fn refuse_busy_or_dirty(&self, repository: &Repository) -> Result<(), OperationCause> {
        if let Some((path, operation)) = find_operation_on_branch(repository, &self.branch)? {
            return Err(operation.refusal(path));
        }
        let Some(checkout) = &self.checkout else { return Ok(()) };
        let path = checkout.path.clone();
        let files = checkout.changed_files(repository)?;
        if files.is_empty() {
            return Ok(());
        }
        Err(OperationCause::TargetDirty { branch: self.branch.clone(), path, files })
    }
}

/// Chooses the branch to merge into. Never a branch that only happens to be checked out, if the work began on
/// another one.
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

/// Returns the local branch that tracks a branch of a server.
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
            // A record without its directory has no files to update.
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

    /// Lists tracked files that differ from the commit.
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

/// Refuses a workspace in which a git operation is in progress, or which is on another branch: its work may
/// not be where it seems to be.
pub(crate) fn refuse_busy_or_other_branch(
    repository: &Repository,
    name: &WorkspaceName,
    found: &GitWorkspace,
    worktree: &Worktree,
) -> Result<(), OperationCause> {
    let path = repository.workspace_path(name);
    if let Some(operation) = GitOperation::in_progress(&worktree.git_dir) {
        return Err(operation.refusal(path));
    }
    let head = found.record.as_ref().and_then(|record| record.branch.clone());
    let branch = name.branch();
    if head.as_ref() == Some(&branch) {
        Ok(())
    } else {
        Err(OperationCause::OtherBranch { path, head, branch })
    }
}

//! Creates a workspace, or nothing at all.
//!
//! Not what a fresh checkout lacks: `copy` brings ignored files, and the daemon runs the setup.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use tracing::warn;

use crate::base::Base;
use crate::error::{CreateCause, CreateError};
use crate::git_workspace::GitWorkspace;
use crate::jj;
use crate::merged_refs::MergedRefs;
use crate::name::WorkspaceName;
use crate::presence::PathStatus;
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::tool::{ToolError, retry_while_locked};
use crate::trash;
use crate::workspace::{Created, Workspace};
use crate::worktree::{Force, Worktree, WorktreeRecord, find_record, other_worktree_on_branch};

/// The branch or commit that a new worktree checks out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CheckoutTarget {
    Branch(String),
    Detached(String),
}

/// Checks everything that [`create`] would refuse, without creating anything. Returns the base that the
/// workspace would start from, or None for a plain directory.
pub fn check_create(
    project: &Project,
    name: &WorkspaceName,
    base: Option<&str>,
) -> Result<Option<Base>, CreateError> {
    let checked = match &project.kind {
        Kind::Git(repository) => check_worktree(repository, name, base).map(|(base, _)| Some(base)),
        Kind::Jj(repository) => jj::check(repository, name, base).map(Some),
        Kind::Plain(_) => use_directory(project, name).map(|_| None),
    };
    checked.map_err(|cause| CreateError { workspace: name.clone(), cause })
}

/// Creates the workspace `name` from `base`, or from the current branch of the main checkout.
pub fn create(project: &Project, name: &WorkspaceName, base: Option<&str>) -> Result<Workspace, CreateError> {
    let created = match &project.kind {
        Kind::Git(repository) => create_worktree(repository, name, base),
        Kind::Jj(repository) => jj::create(repository, name, base),
        Kind::Plain(_) => use_directory(project, name),
    };
    let mut workspace = created.map_err(|cause| CreateError { workspace: name.clone(), cause })?;
    workspace.warnings.extend(project.note().map(str::to_owned));
    Ok(workspace)
}

/// Creates the directory of a workspace again, from its branch.
pub fn reattach(project: &Project, name: &WorkspaceName) -> Result<Workspace, CreateError> {
    let attached = match &project.kind {
        Kind::Git(repository) => reattach_worktree(repository, name),
        Kind::Jj(repository) => jj::reattach(repository, name),
        Kind::Plain(_) => use_directory(project, name),
    };
    attached.map_err(|cause| CreateError { workspace: name.clone(), cause })
}

fn use_directory(project: &Project, name: &WorkspaceName) -> Result<Workspace, CreateCause> {
    let path = project.root().to_owned();
    if !path.is_dir() {
        return Err(CreateCause::DirectoryGone { path });
    }
    let (name, warnings) = (name.clone(), Vec::new());
    Ok(Workspace { name, path, branch: None, base: None, warnings, created: Created::Nothing })
}

fn create_worktree(
    repository: &Repository,
    name: &WorkspaceName,
    base: Option<&str>,
) -> Result<Workspace, CreateCause> {
    let (base, found) = check_worktree(repository, name, base)?;
    clear_stale_record(repository, name, &found)?;
    create_branch(repository, name, &base)?;
    match add_worktree(repository, name, found.path_status, &CheckoutTarget::Branch(name.branch())) {
        Ok(mut warnings) => {
            warnings.extend(missing_content_warnings(repository, name));
            let created = Created::WorktreeAndBranch { tip: base.commit.clone() };
            Ok(Workspace { base: Some(base), ..describe_workspace(repository, name, warnings, created) })
        }
        Err(err) => {
            // This call created the branch seconds ago, and it has no commits.
            delete_untouched_branch(repository, name, &base.commit).unwrap_or_else(
                |left| warn!(%name, %left, "the branch of a failed workspace could not be deleted"),
            );
            Err(err.into())
        }
    }
}

/// Warns about content that a fresh checkout lacks: submodules, and large files without git-lfs.
fn missing_content_warnings(repository: &Repository, name: &WorkspaceName) -> Vec<String> {
    let path = repository.workspace_path(name);
    let mut warnings = Vec::new();
    if path.join(".gitmodules").exists() {
        warnings.push(format!("the submodules of {name} are empty: git submodule update --init fills them"));
    }
    let attributes = fs::read_to_string(path.join(".gitattributes")).unwrap_or_default();
    if attributes.contains("filter=lfs") && !repository.environment().has_lfs() {
        warnings.push(format!("git-lfs is not installed: {name} has pointers instead of large files"));
    }
    warnings
}

fn reattach_worktree(repository: &Repository, name: &WorkspaceName) -> Result<Workspace, CreateCause> {
    let found = GitWorkspace::find(repository, name)?;
    let branch = name.branch();
    if found.tip.is_none() {
        return Err(CreateCause::BranchMissing { branch });
    }
    if let Some(path) = other_worktree_on_branch(repository, name)? {
        return Err(CreateCause::BranchInUse { branch, path });
    }
    refuse_taken_path(repository, name, &found)?;
    clear_stale_record(repository, name, &found)?;
    let warnings = add_worktree(repository, name, found.path_status, &CheckoutTarget::Branch(name.branch()))?;
    Ok(describe_workspace(repository, name, warnings, Created::Worktree))
}

pub(crate) fn describe_workspace(
    repository: &Repository,
    name: &WorkspaceName,
    warnings: Vec<String>,
    created: Created,
) -> Workspace {
    let (path, branch) = (repository.workspace_path(name), Some(name.branch()));
    Workspace { name: name.clone(), path, branch, base: None, warnings, created }
}

fn check_worktree(
    repository: &Repository,
    name: &WorkspaceName,
    base: Option<&str>,
) -> Result<(Base, GitWorkspace), CreateCause> {
    let base = Base::find(repository, base)?;
    let found = GitWorkspace::find(repository, name)?;
    refuse_taken_path(repository, name, &found)?;
    let branch = name.branch();
    if found.tip.is_some() {
        return Err(CreateCause::BranchExists { branch });
    }
    if repository.branch_tip("agency")?.is_some() {
        return Err(CreateCause::BranchBlocked { branch, blocking: "agency".into() });
    }
    Ok((base, found))
}

fn refuse_taken_path(
    repository: &Repository,
    name: &WorkspaceName,
    found: &GitWorkspace,
) -> Result<(), CreateCause> {
    let path = repository.workspace_path(name);
    if found.path_status == PathStatus::Occupied {
        return Err(CreateCause::PathTaken { path });
    }
    match found.record.as_ref().and_then(WorktreeRecord::user_lock_reason) {
        Some(reason) => Err(CreateCause::Locked { path, reason: reason.to_owned() }),
        None => Ok(()),
    }
}

/// Removes git's record of a worktree whose directory is deleted. With the record git would refuse to create
/// the worktree again.
///
/// Removes only this record: `git worktree prune` would also forget those of other worktrees, whose
/// directories may be on a disk that is not mounted now.
pub(crate) fn clear_stale_record(
    repository: &Repository,
    name: &WorkspaceName,
    found: &GitWorkspace,
) -> Result<(), ToolError> {
    let Some(record) = &found.record else { return Ok(()) };
    if let Some(head) = record.detached_head()
        && MergedRefs::any_other_branch(name).count_missing(repository, &[head])? > 0
    {
        trash::save_commit(repository, name, head)?;
    }
    record.remove(repository, Force::Yes)?;
    Ok(())
}

fn create_branch(repository: &Repository, name: &WorkspaceName, base: &Base) -> Result<(), CreateCause> {
    let branch = name.branch();
    let (full, why) = (format!("refs/heads/{branch}"), format!("agency: created from {}", base.name));
    // The empty old value means that the branch must not exist, so that this call is the one that created it.
    match repository.git().change(&["update-ref", "-m", &why, &full, &base.commit, ""]) {
        Err(err) if err.stderr_contains("reference already exists") => {
            Err(CreateCause::BranchExists { branch })
        }
        created => Ok(created.map(drop)?),
    }
}

/// Deletes the branch only if it still points to `tip`.
pub(crate) fn delete_untouched_branch(
    repository: &Repository,
    name: &WorkspaceName,
    tip: &str,
) -> Result<(), ToolError> {
    let full = format!("refs/heads/{}", name.branch());
    repository.git().change(&["update-ref", "-d", &full, tip]).map(drop)
}

/// Checks the branch out. Returns the message of a hook that failed as a warning: git reports failure
/// although the worktree is complete, and hooks fail in fresh worktrees for reasons (git-lfs, node) that do
/// not matter here.
pub(crate) fn add_worktree(
    repository: &Repository,
    name: &WorkspaceName,
    before: PathStatus,
    checkout: &CheckoutTarget,
) -> Result<Vec<String>, ToolError> {
    let path = repository.workspace_path(name);
    let mut args: Vec<&OsStr> = ["worktree", "add", "--quiet"].map(OsStr::new).to_vec();
    let what = match checkout {
        CheckoutTarget::Branch(branch) => branch,
        CheckoutTarget::Detached(commit) => {
            args.push("--detach".as_ref());
            commit
        }
    };
    args.extend(["--".as_ref(), path.as_os_str(), what.as_ref()]);
    retry_while_locked(|| match repository.git().change_with_hooks(&args) {
        Ok(()) => Ok(Vec::new()),
        Err(ToolError::Failed { stderr, .. }) if is_complete(repository, name, &path)? => {
            Ok(vec![format!("a hook failed in {}: {stderr}", path.display())])
        }
        Err(err) => {
            clean_up_failed_add(repository, name, before);
            Err(err)
        }
    })
}

/// Whether git has completed the worktree. Git removes its own record if it cannot check everything out.
fn is_complete(repository: &Repository, name: &WorkspaceName, path: &Path) -> Result<bool, ToolError> {
    let recorded = find_record(repository, name)?.is_some_and(|record| !record.is_incomplete());
    Ok(recorded && Worktree::open(repository, path).is_some())
}

/// Removes the remains of a failed `git worktree add`. Before that call there was neither a record nor
/// content.
pub(crate) fn clean_up_failed_add(repository: &Repository, name: &WorkspaceName, before: PathStatus) {
    let path = repository.workspace_path(name);
    let left = find_record(repository, name).and_then(|record| match record {
        Some(record) => record.remove(repository, Force::Yes),
        None => Ok(()),
    });
    left.unwrap_or_else(|left| warn!(%name, %left, "a failed worktree could not be removed"));
    if before == PathStatus::EmptyDirectory && !path.exists() {
        fs::create_dir(&path)
            .unwrap_or_else(|left| warn!(%name, %left, "an empty directory could not be created again"));
    }
}

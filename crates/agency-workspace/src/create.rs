//! Makes a workspace, or nothing at all.
//!
//! Not its contents: what a fresh checkout lacks is somebody else's care.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use tracing::warn;

use crate::base::Base;
use crate::jj;
use crate::merged_refs::MergedRefs;
use crate::name::WorkspaceName;
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::state::{GitWorkspace, PathStatus};
use crate::tool::{ToolError, retry_while_locked};
use crate::trash;
use crate::worktree::{Force, Worktree, WorktreeRecord, find_record, other_worktree_on_branch};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    pub name: WorkspaceName,
    /// The agent's working directory.
    pub path: PathBuf,
    /// None for a plain directory.
    pub branch: Option<String>,
    /// None for a plain directory, and when only the directory was brought back.
    pub base: Option<Base>,
    /// What the user should know of it: a hook that failed, a directory without `.git`.
    pub warnings: Vec<String>,
    pub(crate) made: Created,
}

/// What the call that returned the workspace made, and [`crate::undo_create()`] may therefore take away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Created {
    Nothing,
    Worktree,
    WorktreeAndBranch {
        tip: String,
    },
    /// A jj workspace, whose working-copy commit was this one.
    Jj {
        commit: String,
    },
}

/// What a worktree is to stand on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CheckoutTarget {
    Branch(String),
    Detached(String),
}

#[derive(Debug, thiserror::Error)]
#[error("cannot make workspace {workspace}")]
pub struct CreateError {
    pub workspace: WorkspaceName,
    #[source]
    pub cause: CreateCause,
}

#[derive(Debug, thiserror::Error)]
pub enum CreateCause {
    #[error("the repository has no commit yet")]
    NoCommit,
    #[error("there is no branch, tag or commit `{base}`")]
    BaseMissing { base: String, near: Vec<String> },
    #[error("there is no bookmark, tag or commit `{base}`")]
    RevisionMissing { base: String, near: Vec<String> },
    #[error("the bookmark {bookmark} exists already")]
    BookmarkExists { bookmark: String },
    #[error("the bookmark {bookmark} does not exist")]
    BookmarkMissing { bookmark: String },
    #[error("the branch {branch} exists already")]
    BranchExists { branch: String },
    #[error("the branch {branch} does not exist")]
    BranchMissing { branch: String },
    #[error("the branch {branch} is checked out in {}", path.display())]
    BranchInUse { branch: String, path: PathBuf },
    #[error("git cannot have a branch {branch} beside the branch {blocking}")]
    BranchBlocked { branch: String, blocking: String },
    #[error("jj knows a workspace {name} already")]
    WorkspaceKnown { name: WorkspaceName },
    #[error("{} exists already", path.display())]
    PathTaken { path: PathBuf },
    #[error("{} is gone, but its worktree is locked: {reason}", path.display())]
    Locked { path: PathBuf, reason: String },
    #[error("{} is not a directory any more", path.display())]
    DirectoryGone { path: PathBuf },
    #[error(transparent)]
    Git(#[from] ToolError),
}

impl CreateError {
    pub fn hint(&self) -> Option<String> {
        self.cause.hint()
    }
}

impl CreateCause {
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            CreateCause::NoCommit => {
                Some("commit first, or pass --vcs none to work in the directory itself".into())
            }
            CreateCause::BaseMissing { near, .. } if near.is_empty() => {
                Some("pass an existing branch with --base-branch".into())
            }
            CreateCause::RevisionMissing { near, .. } if near.is_empty() => {
                Some("pass an existing bookmark or revision with --base-branch".into())
            }
            CreateCause::BaseMissing { near, .. } | CreateCause::RevisionMissing { near, .. } => {
                Some(format!("did you mean {}?", near.join(" or ")))
            }
            CreateCause::BranchExists { branch } => {
                Some(format!("look at it with `git log {branch}`, then rename or delete it"))
            }
            CreateCause::BookmarkExists { bookmark } => Some(format!(
                "look at it with `jj log -r {bookmark}`, then: jj bookmark rename {bookmark} another-name"
            )),
            CreateCause::BranchInUse { .. } => Some("switch to another branch there".into()),
            CreateCause::BranchBlocked { blocking, .. } => {
                Some(format!("rename it: git branch -m {blocking} another-name"))
            }
            CreateCause::WorkspaceKnown { name } => {
                Some(format!("look at it with `jj workspace list`, then: jj workspace forget {name}"))
            }
            CreateCause::PathTaken { .. } => Some("move it away; nothing in it was touched".into()),
            CreateCause::Locked { path, .. } => {
                Some(format!("bring the directory back, or run: git worktree unlock '{}'", path.display()))
            }
            CreateCause::BranchMissing { .. }
            | CreateCause::BookmarkMissing { .. }
            | CreateCause::DirectoryGone { .. } => None,
            CreateCause::Git(err) => err.hint(),
        }
    }
}

/// Finds out everything that [`create`] would refuse, before anything is made, and what the
/// workspace would start from (None for a plain directory).
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

/// Makes the workspace `name` from `base`: the current branch of the main checkout unless given.
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

/// Brings back the directory of a workspace whose branch is still there.
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
    Ok(Workspace { name, path, branch: None, base: None, warnings, made: Created::Nothing })
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
            let made = Created::WorktreeAndBranch { tip: base.commit.clone() };
            Ok(Workspace { base: Some(base), ..describe_workspace(repository, name, warnings, made) })
        }
        Err(err) => {
            // The branch is ours, seconds old, and without commits.
            delete_untouched_branch(repository, name, &base.commit).unwrap_or_else(
                |left| warn!(%name, %left, "the branch of a workspace that failed stays behind"),
            );
            Err(err.into())
        }
    }
}

/// What a fresh checkout has no files for, by what the commit itself says.
fn missing_content_warnings(repository: &Repository, name: &WorkspaceName) -> Vec<String> {
    let path = repository.workspace_path(name);
    let mut warnings = Vec::new();
    if path.join(".gitmodules").exists() {
        warnings.push(format!("the submodules of {name} are empty: git submodule update --init fills them"));
    }
    let attributes = fs::read_to_string(path.join(".gitattributes")).unwrap_or_default();
    if attributes.contains("filter=lfs") && !repository.environment().has_lfs() {
        warnings.push(format!("git-lfs is not installed: {name} has pointers in the place of large files"));
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
    made: Created,
) -> Workspace {
    let (path, branch) = (repository.workspace_path(name), Some(name.branch()));
    Workspace { name: name.clone(), path, branch, base: None, warnings, made }
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

/// Git still knows a worktree whose directory somebody deleted, and refuses to make it again.
///
/// Only this one record goes: `git worktree prune` would also forget those of others, whose
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
    // The empty old value: it must not exist, so that what exists afterwards is ours.
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

/// Checks the branch out. Returns what a failing hook said: git calls that a failure although all
/// is there, and hooks fail in fresh worktrees for reasons (git-lfs, node) that are no reason to
/// go without one.
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

/// Git takes its own record away again if it cannot check everything out.
fn is_complete(repository: &Repository, name: &WorkspaceName, path: &Path) -> Result<bool, ToolError> {
    let recorded = find_record(repository, name)?.is_some_and(|record| !record.is_incomplete());
    Ok(recorded && Worktree::open(repository, path).is_some())
}

/// Takes away what a failed `git worktree add` left: there was neither record nor content before.
pub(crate) fn clean_up_failed_add(repository: &Repository, name: &WorkspaceName, before: PathStatus) {
    let path = repository.workspace_path(name);
    let left = find_record(repository, name).and_then(|record| match record {
        Some(record) => record.remove(repository, Force::Yes),
        None => Ok(()),
    });
    left.unwrap_or_else(|left| warn!(%name, %left, "a worktree that failed stays behind"));
    if before == PathStatus::EmptyDirectory && !path.exists() {
        fs::create_dir(&path)
            .unwrap_or_else(|left| warn!(%name, %left, "an empty directory was not put back"));
    }
}

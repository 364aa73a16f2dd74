//! Creates a jj workspace on top of a base, or nothing.
//!
//! Never moves the user's own working copy.

use std::fs;
use std::path::Path;

use tracing::warn;

use crate::base::{Base, explicit_base, nearest_names};
use crate::error::{CreateCause, OperationCause};
use crate::integration_lock::IntegrationLock;
use crate::jj::Jj;
use crate::jj::repository::{JjRepository, Revision, revisions};
use crate::jj::saving::save_unreferenced;
use crate::jj::workspace::{JjWorkspace, find_parents};
use crate::name::{WORKTREES, WorkspaceName};
use crate::presence::{PathStatus, Presence};
use crate::tool::{ToolError, retry_while_locked};
use crate::workspace::{Created, Workspace};
use crate::worktree::{Force, find_record};

/// Finds the base of a workspace, and the commits to put it on.
fn find_base(repository: &JjRepository, wanted: Option<&str>) -> Result<(Base, Vec<String>), CreateCause> {
    let Some(name) = explicit_base(wanted) else { return current_base(repository, &repository.jj()) };
    match repository.commit_of(name)? {
        Some(commit) => Ok((Base { name: name.to_owned(), commit: commit.clone() }, vec![commit])),
        None => {
            let near = nearest_names(name, repository.bookmarks()?);
            Err(CreateCause::RevisionMissing { base: name.to_owned(), near })
        }
    }
}

/// Returns the user's working copy, or its parents while it is empty. `jj` runs in a workspace of the user.
fn current_base(repository: &JjRepository, jj: &Jj) -> Result<(Base, Vec<String>), CreateCause> {
    let at = revisions(jj, "@")?;
    let is_blank = at.iter().all(Revision::is_blank);
    let on = if is_blank { revisions(jj, "@-")? } else { at };
    let is_root = |revision: &Revision| revision.id.bytes().all(|byte| byte == b'0');
    let Some(first) = on.iter().find(|revision| !is_root(revision)) else {
        return Err(CreateCause::NoCommit);
    };
    let name = repository.name_of(&first.id)?;
    let parents = on.iter().map(|revision| revision.id.clone()).collect();
    Ok((Base { name, commit: first.id.clone() }, parents))
}

/// Returns the base that a user means who names none in `dir`, if `dir` is in another workspace of theirs than
/// the main one.
pub(crate) fn base_in_user_workspace(repository: &JjRepository, dir: &Path) -> Option<String> {
    let top = dir.ancestors().find(|dir| dir.join(".jj").is_dir())?;
    let is_of_task = top.starts_with(repository.root().join(WORKTREES));
    if top == repository.root() || is_of_task || !repository.is_workspace(top) {
        return None;
    }
    let environment = repository.store().environment();
    let snapshot = || Jj::in_user_workspace(environment, top).run(&["util", "snapshot"]).map(drop);
    // Without a snapshot the base has an older version of the same change.
    retry_while_locked(snapshot)
        .unwrap_or_else(|err| warn!(top = %top.display(), %err, "the files of a workspace are not saved"));
    current_base(repository, &Jj::on(environment, top)).ok().map(|(base, _)| base.name)
}

pub(crate) fn check(
    repository: &JjRepository,
    name: &WorkspaceName,
    base: Option<&str>,
) -> Result<Base, CreateCause> {
    let found = JjWorkspace::find(repository, name)?;
    refuse_taken(repository, name, &found)?;
    snapshot_user_files(repository)?;
    Ok(find_base(repository, base)?.0)
}

/// Takes a snapshot of the user's files: their latest edits belong to their working copy.
fn snapshot_user_files(repository: &JjRepository) -> Result<(), ToolError> {
    retry_while_locked(|| repository.jj_in_user_workspace().run(&["util", "snapshot"]).map(drop))
}

fn refuse_taken(
    repository: &JjRepository,
    name: &WorkspaceName,
    found: &JjWorkspace,
) -> Result<(), CreateCause> {
    match (found.path_status, found.presence()) {
        (PathStatus::Occupied, _) => Err(CreateCause::PathTaken { path: repository.workspace_path(name) }),
        (_, Presence::DirectoryGone) if found.bookmark.is_some() => {
            Err(CreateCause::BookmarkExists { bookmark: name.branch() })
        }
        (_, Presence::DirectoryGone) => Err(CreateCause::WorkspaceKnown { name: name.clone() }),
        _ => Ok(()),
    }
}

pub(crate) fn create(
    repository: &JjRepository,
    name: &WorkspaceName,
    base: Option<&str>,
) -> Result<Workspace, CreateCause> {
    let found = JjWorkspace::find(repository, name)?;
    refuse_taken(repository, name, &found)?;
    snapshot_user_files(repository)?;
    let (base, parents) = find_base(repository, base)?;
    if found.target.is_some() {
        save_unreferenced(repository, name, &found)?;
        forget_workspace(repository, name)?;
    }
    let is_first = !has_others(repository, name);
    add_workspace(repository, name, found.path_status, &parents)?;
    let commit = JjWorkspace::find(repository, name)?.target.map(|target| target.id).unwrap_or_default();
    let workspace = describe_workspace(repository, name, Created::Jj { commit });
    // Only for the first workspace: the same holds for all of them.
    let warnings = without_git(repository, name).filter(|_| is_first).into_iter().collect();
    Ok(Workspace { base: Some(base), warnings, ..workspace })
}

/// Creates the directory of a workspace again, from its working-copy commit or its bookmark.
pub(crate) fn reattach(repository: &JjRepository, name: &WorkspaceName) -> Result<Workspace, CreateCause> {
    let found = JjWorkspace::find(repository, name)?;
    if found.path_status == PathStatus::Occupied {
        return Err(CreateCause::PathTaken { path: repository.workspace_path(name) });
    }
    match (&found.target, &found.bookmark) {
        (Some(target), _) => {
            let parents = find_parents(repository, &target.id)?;
            // Nothing else may refer to this commit until the workspace does again.
            let kept = save_unreferenced(repository, name, &found)?;
            forget_workspace(repository, name)?;
            add_workspace(repository, name, found.path_status, &parents)?;
            edit_commit(repository, name, target)?;
            if let Some(kept) = kept {
                repository.store().git().change(&["update-ref", "-d", &kept])?;
            }
        }
        (None, Some(tip)) => add_workspace(repository, name, found.path_status, std::slice::from_ref(tip))?,
        (None, None) => return Err(CreateCause::BookmarkMissing { bookmark: name.branch() }),
    }
    Ok(describe_workspace(repository, name, Created::Nothing))
}

pub(super) fn describe_workspace(
    repository: &JjRepository,
    name: &WorkspaceName,
    created: Created,
) -> Workspace {
    let path = repository.workspace_path(name);
    Workspace { name: name.clone(), path, branch: None, base: None, warnings: Vec::new(), created }
}

/// Whether there are workspaces of other tasks.
fn has_others(repository: &JjRepository, name: &WorkspaceName) -> bool {
    let entries = fs::read_dir(repository.root().join(WORKTREES)).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name() != name.as_str()).any(|entry| entry.path().join(".jj").exists())
}

/// Warns if the directory has no `.git`. That depends on the version of jj.
fn without_git(repository: &JjRepository, name: &WorkspaceName) -> Option<String> {
    if repository.workspace_path(name).join(".git").exists() {
        return None;
    }
    // All tasks of a project are of one kind.
    let way_out = match repository.is_colocated() {
        true => format!("; to have git worktrees: agency rm {name}, then agency new with --vcs git"),
        false => String::new(),
    };
    Some(format!("a jj workspace without `.git`: jj works in it, git does not{way_out}"))
}

/// Creates the workspace on top of these commits, or nothing.
pub(super) fn add_workspace(
    repository: &JjRepository,
    name: &WorkspaceName,
    before: PathStatus,
    parents: &[String],
) -> Result<(), CreateCause> {
    let path = repository.workspace_path(name);
    let folder = repository.root().join(WORKTREES);
    fs::create_dir_all(&folder)
        .map_err(|source| ToolError::Start { command: "jj workspace add".into(), source })?;
    let on = if parents.is_empty() { "root()".to_owned() } else { parents.join("|") };
    let args = ["workspace", "add", "--name", name.as_str(), "-r", &on].map(AsRef::as_ref);
    let args = [&args[..], &["--".as_ref(), path.as_os_str()]].concat();
    // Where jj makes a git worktree too, two of its commands at once conflict over git's refs.
    let _lock = IntegrationLock::acquire(repository.store()).map_err(unwritable)?;
    let added = retry_while_locked(|| {
        repository
            .jj_in_user_workspace()
            .run(&args)
            .map(drop)
            .inspect_err(|_| clean_up_failed_add(repository, name, before))
    });
    Ok(added?)
}

fn unwritable(cause: OperationCause) -> ToolError {
    let source = std::io::Error::other(cause);
    ToolError::Start { command: "jj workspace add".into(), source }
}

/// Removes the remains of a failed `jj workspace add`. There was nothing before that call.
pub(super) fn clean_up_failed_add(repository: &JjRepository, name: &WorkspaceName, before: PathStatus) {
    forget_workspace(repository, name)
        .unwrap_or_else(|left| warn!(%name, %left, "jj could not forget a failed workspace"));
    let path = repository.workspace_path(name);
    let deleted = match before {
        _ if repository.is_workspace(&path) => delete_directory(&path),
        // If there are files in it, another process has made it meanwhile.
        PathStatus::Missing => ignore_not_found(fs::remove_dir(&path)),
        PathStatus::EmptyDirectory | PathStatus::Occupied => Ok(()),
    };
    deleted.unwrap_or_else(
        |left| warn!(%name, %left, "the directory of a failed workspace could not be deleted"),
    );
}

pub(super) fn delete_directory(path: &Path) -> std::io::Result<()> {
    ignore_not_found(fs::remove_dir_all(path))
}

fn ignore_not_found(deleted: std::io::Result<()>) -> std::io::Result<()> {
    match deleted {
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(()),
        deleted => deleted,
    }
}

/// Makes a commit the working copy of the workspace, also an abandoned one.
pub(super) fn edit_commit(
    repository: &JjRepository,
    name: &WorkspaceName,
    commit: &Revision,
) -> Result<(), ToolError> {
    if commit.is_blank() {
        return Ok(());
    }
    let inside = repository.jj_in_task(&repository.workspace_path(name));
    inside.run(&["edit", &commit.id]).map(drop)
}

/// Forgets the workspace. jj only warns about an unknown name. Newer versions give a workspace a git
/// worktree, and leave git's record of it when its directory is gone.
pub(super) fn forget_workspace(repository: &JjRepository, name: &WorkspaceName) -> Result<(), ToolError> {
    repository.jj().run(&["workspace", "forget", name.as_str()])?;
    if repository.workspace_path(name).exists() {
        return Ok(());
    }
    match find_record(repository.store(), name)? {
        Some(record) => record.remove(repository.store(), Force::Yes),
        None => Ok(()),
    }
}

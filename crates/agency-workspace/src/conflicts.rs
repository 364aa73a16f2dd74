//! Finds workspaces that would conflict with their base or with each other, by merging their work, committed
//! or not, in the object store.
//!
//! Touches no checkout. The scanner remembers its results: it merges no pair twice, a workspace without changes
//! costs one `git status`, and if no workspace has changed, a scan costs no process at all.

use std::collections::HashMap;
use std::path::PathBuf;

use tracing::debug;

use crate::change_check::ChangeCheck;
use crate::error::OperationCause;
use crate::git_workspace::GitWorkspace;
use crate::jj;
use crate::merge_tree::{WorkCommit, conflicting_files};
use crate::name::WorkspaceName;
use crate::presence::Presence;
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::tool::ToolError;
use crate::worktree_status::WorktreeStatus;

/// Equal fingerprints mean the same work, committed or not.
type Fingerprint = u64;

/// The workspaces of the last scan, each with a commit of its work.
type Seen = HashMap<WorkspaceName, (Fingerprint, WorkCommit)>;

/// A workspace that conflicts with its base or with another workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceConflict {
    /// The workspace.
    pub workspace: WorkspaceName,
    /// The other side of the conflict.
    pub with: ConflictWith,
    /// The files that cannot be merged.
    pub files: Vec<PathBuf>,
}

/// The other side of a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConflictWith {
    /// The workspace conflicts with its base, which has this name.
    Base(String),
    /// The workspace conflicts with this one.
    Workspace(WorkspaceName),
}

/// The workspaces could not be compared.
#[derive(Debug, thiserror::Error)]
#[error("cannot check the workspaces of {} for conflicts", root.display())]
pub struct ConflictsError {
    /// The root of the project.
    pub root: PathBuf,
    /// The error of git or jj.
    pub source: ToolError,
}

impl ConflictsError {
    /// Returns a way out for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        self.source.hint()
    }
}

/// A workspace, the name of its base, and a commit of everything in it.
type Work<'a> = (&'a WorkspaceName, Option<&'a str>, WorkCommit);

/// The commit of each base; None for a base that does not exist.
type Tips<'a> = HashMap<Option<&'a str>, Option<WorkCommit>>;

/// Scans the workspaces of one project for conflicts, and remembers the results.
#[derive(Debug, Default)]
pub struct ConflictScanner {
    changes: ChangeCheck,
    seen: Seen,
    tried: HashMap<(String, String), Vec<PathBuf>>,
    merges: u64,
}

impl ConflictScanner {
    /// Finds all conflicts between these workspaces and with their bases (as in [`crate::state()`]). The
    /// scanner skips a workspace that it cannot read.
    pub fn scan(
        &mut self,
        project: &Project,
        workspaces: &[(WorkspaceName, Option<String>)],
    ) -> Result<Vec<WorkspaceConflict>, ConflictsError> {
        let Some(repository) = project.git_repository() else { return Ok(Vec::new()) };
        let work = self.work_in(project, workspaces);
        let found = self.compare(project, repository, &work).or_else(|err| {
            // No branch refers to the remembered commits, so git may have deleted them since.
            debug!(%err, "comparing all workspaces again");
            self.seen.clear();
            self.tried.clear();
            let work = self.work_in(project, workspaces);
            self.compare(project, repository, &work)
        });
        found.map_err(|source| ConflictsError { root: project.root().to_owned(), source })
    }

    /// Like [`ConflictScanner::scan`], but returns None if nothing has changed since the last call. Then it
    /// starts no process.
    pub fn scan_changes(
        &mut self,
        project: &Project,
        workspaces: &[(WorkspaceName, Option<String>)],
    ) -> Result<Option<Vec<WorkspaceConflict>>, ConflictsError> {
        if !self.changes.take_change(project, workspaces) {
            return Ok(None);
        }
        let found = self.scan(project, workspaces);
        found.map(Some).inspect_err(|_| self.changes.forget())
    }

    fn work_in<'a>(
        &mut self,
        project: &Project,
        workspaces: &'a [(WorkspaceName, Option<String>)],
    ) -> Vec<Work<'a>> {
        let (before, mut work) = (std::mem::take(&mut self.seen), Vec::new());
        for (name, base) in workspaces {
            match commit_of(project, name, &before) {
                Ok((fingerprint, commit)) => {
                    self.seen.insert(name.clone(), (fingerprint, commit.clone()));
                    work.push((name, base.as_deref(), commit));
                }
                Err(err) => {
                    debug!(%name, %err, "a workspace was skipped in the scan for conflicts");
                    self.changes.forget();
                }
            }
        }
        work
    }

    /// Returns the number of merges tried so far, which is the cost of the scans.
    pub fn merge_count(&self) -> u64 {
        self.merges
    }

    fn compare(
        &mut self,
        project: &Project,
        repository: &Repository,
        work: &[Work],
    ) -> Result<Vec<WorkspaceConflict>, ToolError> {
        let before = std::mem::take(&mut self.tried);
        let tips = tips_of(project, work)?;
        let mut with_base = Vec::new();
        for (_, base, commit) in work {
            with_base.push(match tips.get(base) {
                Some(Some(tip)) => self.conflicts(repository, &before, tip, commit)?,
                _ => Vec::new(),
            });
        }
        let mut found = Vec::new();
        for (at, (name, base, commit)) in work.iter().enumerate() {
            let with = ConflictWith::Base(base.unwrap_or("HEAD").to_owned());
            found.push(WorkspaceConflict { workspace: (*name).clone(), with, files: with_base[at].clone() });
            for (after, (other, _, other_commit)) in work.iter().enumerate().skip(at + 1) {
                let with = ConflictWith::Workspace((*other).clone());
                let mut files = self.conflicts(repository, &before, commit, other_commit)?;
                // A file in which only one of the two conflicts with the base is not a conflict between the
                // two.
                files.retain(|file| with_base[at].contains(file) == with_base[after].contains(file));
                found.push(WorkspaceConflict { workspace: (*name).clone(), with, files });
            }
        }
        found.retain(|conflict| !conflict.files.is_empty());
        Ok(found)
    }

    fn conflicts(
        &mut self,
        repository: &Repository,
        before: &HashMap<(String, String), Vec<PathBuf>>,
        one: &WorkCommit,
        other: &WorkCommit,
    ) -> Result<Vec<PathBuf>, ToolError> {
        let key = (one.id.clone(), other.id.clone());
        let files = match before.get(&key).or_else(|| self.tried.get(&key)) {
            Some(files) => files.clone(),
            None => {
                self.merges += 1;
                conflicting_files(repository, one, other)?
            }
        };
        self.tried.insert(key, files.clone());
        Ok(files)
    }
}

/// Returns a commit of all the work in a workspace, on no branch. Reuses the last commit if nothing has
/// changed.
fn commit_of(
    project: &Project,
    name: &WorkspaceName,
    before: &Seen,
) -> Result<(Fingerprint, WorkCommit), OperationCause> {
    let known = |now: Fingerprint| before.get(name).filter(|(then, _)| *then == now).cloned();
    match &project.kind {
        Kind::Git(repository) => {
            let Some(status) = WorktreeStatus::read(repository, name)? else {
                return commit_without_files(repository, name);
            };
            let now = status.fingerprint();
            known(now).map_or_else(|| Ok((now, status.look(repository)?)), Ok)
        }
        Kind::Jj(repository) => {
            let status = jj::JjStatus::read(repository, name)?;
            let now = status.fingerprint();
            known(now).map_or_else(|| Ok((now, status.commit(repository)?)), Ok)
        }
        Kind::Plain(_) => Err(OperationCause::Plain { path: project.root().to_owned() }),
    }
}

/// Returns the tip of the branch of a workspace whose directory is gone.
fn commit_without_files(
    repository: &Repository,
    name: &WorkspaceName,
) -> Result<(Fingerprint, WorkCommit), OperationCause> {
    let found = GitWorkspace::find(repository, name)?;
    let (path, presence) = (repository.workspace_path(name), found.presence());
    match found.head().filter(|_| presence == Presence::DirectoryGone) {
        Some(head) => Ok((Fingerprint::default(), WorkCommit::stored(head))),
        None => Err(OperationCause::NotReady { path, presence }),
    }
}

/// Looks each base up once, because many workspaces share one.
fn tips_of<'a>(project: &Project, work: &[Work<'a>]) -> Result<Tips<'a>, ToolError> {
    let mut tips = Tips::new();
    for (_, base, _) in work {
        if !tips.contains_key(base) {
            tips.insert(*base, project.base_tips(*base)?.into_iter().next().map(WorkCommit::stored));
        }
    }
    Ok(tips)
}

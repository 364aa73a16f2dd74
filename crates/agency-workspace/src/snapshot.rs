//! Snapshots of a workspace: numbered commits under hidden refs, on no branch.
//!
//! Not the trash, although its commits look the same: a snapshot is taken of a workspace that continues.

use std::time::SystemTime;

use crate::changed_files::changed_files;
use crate::diff::Diff;
use crate::error::{Operation, OperationCause, OperationError};
use crate::git_workspace::ReadyWorkspace;
use crate::hidden_ref::{HiddenRef, turn_refs};
use crate::jj::{self, JjWorkspace};
use crate::name::WorkspaceName;
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::restore;
use crate::saved_commit::{Completeness, Contents, Trailers, describe};
use crate::scratch_objects::KeptObjects;
use crate::tool::ToolError;

/// The files of a workspace at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Counts up from 1 for each task; 0 is the state before the first turn.
    pub number: u64,
    /// A description that the caller gave.
    pub label: String,
    /// The hidden ref: `refs/agency/turns/{id}/{number}`.
    pub reference: String,
    /// The time at which the snapshot was taken.
    pub at: SystemTime,
    /// Messages about files that could not be read.
    pub warnings: Vec<String>,
    pub(crate) commit: String,
    pub(crate) tree: String,
}

/// Takes a snapshot of the present files of the workspace.
pub fn snapshot(project: &Project, name: &WorkspaceName, label: &str) -> Result<Snapshot, OperationError> {
    let taken =
        SnapshotContents::read(project, name).and_then(|contents| contents.save(project, name, label, 1));
    taken.map_err(Operation::Snapshot.failed(name))
}

/// Lists all snapshots of a workspace, the oldest first.
pub fn snapshots(project: &Project, name: &WorkspaceName) -> Result<Vec<Snapshot>, OperationError> {
    let Some(repository) = project.git_repository() else { return Ok(Vec::new()) };
    list(repository, name).map_err(|err| Operation::Snapshot.failed(name)(err.into()))
}

/// Compares two snapshots.
pub fn diff_between(
    project: &Project,
    name: &WorkspaceName,
    from: &Snapshot,
    to: &Snapshot,
) -> Result<Diff, OperationError> {
    diff_since(project, name, &from.tree, to)
}

/// Compares a commit, as [`Diff::from`] names one, with a snapshot.
pub fn diff_since(
    project: &Project,
    name: &WorkspaceName,
    from: &str,
    to: &Snapshot,
) -> Result<Diff, OperationError> {
    let compare = || {
        let repository = project.require_repository()?;
        let files = changed_files(repository, from, &to.tree)?;
        let (from, to) = (from.to_owned(), to.tree.clone());
        Ok(Diff { from, to, files, warnings: Vec::new(), objects: KeptObjects::default() })
    };
    compare().map_err(Operation::Compare.failed(name))
}

/// Restores the files of a snapshot, and moves the branch back too if it has new commits since. Saves the
/// present state in the trash first and returns its ref. Ignored files stay as they are.
pub fn restore_snapshot(
    project: &Project,
    name: &WorkspaceName,
    snapshot: &Snapshot,
) -> Result<String, OperationError> {
    restore_files(project, name, snapshot).map_err(Operation::Restore.failed(name))
}

/// The content of a workspace, read once, and the trailers that describe it.
pub(crate) struct SnapshotContents {
    pub(crate) contents: Contents,
    trailers: Trailers,
}

impl SnapshotContents {
    pub(crate) fn read(project: &Project, name: &WorkspaceName) -> Result<Self, OperationCause> {
        let (contents, trailers) = match &project.kind {
            Kind::Git(repository) => {
                let ReadyWorkspace { found, worktree } = ReadyWorkspace::find(repository, name)?;
                let (head, all) = (found.head(), Completeness::WithDetails);
                let contents = Contents::read_readable(repository, &worktree, head, all)?;
                (contents, describe(name, &found))
            }
            Kind::Jj(repository) => {
                JjWorkspace::find(repository, name)?.ready(repository, name)?;
                jj::contents(repository, name, repository.store(), Completeness::WithDetails)?
            }
            Kind::Plain(_) => return Err(OperationCause::Plain { path: project.root().to_owned() }),
        };
        Ok(Self { contents, trailers })
    }

    /// `first` is the number of the first snapshot of a task.
    pub(crate) fn save(
        self,
        project: &Project,
        name: &WorkspaceName,
        label: &str,
        first: u64,
    ) -> Result<Snapshot, OperationCause> {
        let repository = project.require_repository()?;
        let Self { contents, trailers } = self;
        let trailers = Trailers { label: Some(label.to_owned()), ..trailers };
        let commit = contents.save(repository, &format!("agency: workspace {name}, {label}"), trailers)?;
        let next = list(repository, name)?.last().map_or(first, |last| last.number + 1);
        let (number, reference) =
            repository.add_hidden_ref(&commit, next, |number| format!("{}{number}", turn_refs(name)))?;
        let (label, at) = (label.to_owned(), SystemTime::now());
        let Contents { tree, warnings, .. } = contents;
        Ok(Snapshot { number, label, reference, at, warnings, commit, tree })
    }
}

fn list(repository: &Repository, name: &WorkspaceName) -> Result<Vec<Snapshot>, ToolError> {
    let mut found: Vec<Snapshot> =
        repository.hidden_refs(&turn_refs(name))?.into_iter().filter_map(parse).collect();
    found.sort_by_key(|snapshot| snapshot.number);
    Ok(found)
}

fn parse(hidden: HiddenRef) -> Option<Snapshot> {
    let HiddenRef { reference, commit, tree, at, message } = hidden;
    let number = reference.rsplit('/').next()?.parse().ok()?;
    let label = Trailers::parse(&message).label.unwrap_or_default();
    Some(Snapshot { number, label, reference, at, warnings: Vec::new(), commit, tree })
}

fn restore_files(
    project: &Project,
    name: &WorkspaceName,
    snapshot: &Snapshot,
) -> Result<String, OperationCause> {
    let repository = project.require_repository()?;
    if repository.commit(&snapshot.reference)?.as_ref() != Some(&snapshot.commit) {
        return Err(OperationCause::SnapshotMissing { number: snapshot.number });
    }
    let (trash_ref, files) = match &project.kind {
        Kind::Git(repository) => restore::restore_over(repository, name, &snapshot.commit)?,
        Kind::Jj(repository) => jj::restore_over(repository, name, &snapshot.commit)?,
        Kind::Plain(_) => return Err(OperationCause::Plain { path: project.root().to_owned() }),
    };
    match files.is_empty() {
        true => Ok(trash_ref),
        false => Err(OperationCause::NotRestored { files, trash_ref }),
    }
}

//! Snapshots of a workspace: numbered, under hidden refs, on nobody's branch.
//!
//! Not the trash, although they are made alike: a snapshot is taken of what goes on.

use std::time::SystemTime;

use crate::diff::{Diff, changed_files};
use crate::jj::{self, JjWorkspace};
use crate::name::WorkspaceName;
use crate::operation::{Operation, OperationCause, OperationError};
use crate::project::{Kind, Project};
use crate::repository::{HiddenRef, Repository};
use crate::restore;
use crate::saved_commit::{Contents, Trailers, describe};
use crate::tool::ToolError;
use crate::versions::ReadyWorkspace;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Counts up from 1 for each task; 0 is before the first turn.
    pub number: u64,
    pub label: String,
    /// `refs/agency/turns/{id}/{number}`
    pub reference: String,
    /// When it was taken.
    pub at: SystemTime,
    /// What could not be read when it was taken.
    pub warnings: Vec<String>,
    pub(crate) commit: String,
    pub(crate) tree: String,
}

/// Keeps the files of the workspace as they are now.
pub fn snapshot(project: &Project, name: &WorkspaceName, label: &str) -> Result<Snapshot, OperationError> {
    let taken =
        SnapshotContents::read(project, name).and_then(|contents| contents.save(project, name, label, 1));
    taken.map_err(Operation::Snapshot.failed(name))
}

/// All snapshots of a workspace, the oldest first.
pub fn snapshots(project: &Project, name: &WorkspaceName) -> Result<Vec<Snapshot>, OperationError> {
    let Some(repository) = project.git_repository() else { return Ok(Vec::new()) };
    list(repository, name).map_err(|err| Operation::Snapshot.failed(name)(err.into()))
}

/// What changed from one snapshot to another.
pub fn diff_between(
    project: &Project,
    name: &WorkspaceName,
    from: &Snapshot,
    to: &Snapshot,
) -> Result<Diff, OperationError> {
    diff_since(project, name, &from.tree, to)
}

/// What changed from a commit, as [`Diff::from`] names one, to a snapshot.
pub fn diff_since(
    project: &Project,
    name: &WorkspaceName,
    from: &str,
    to: &Snapshot,
) -> Result<Diff, OperationError> {
    let compare = || {
        let repository = project.require_repository()?;
        let files = changed_files(repository, from, &to.tree)?;
        Ok(Diff { from: from.to_owned(), to: to.tree.clone(), files, warnings: Vec::new() })
    };
    compare().map_err(Operation::Compare.failed(name))
}

/// Puts the files back as they were then, and the branch too if it went on since. What is there now is first
/// kept in the trash, whose ref is returned. Ignored files stay as they are.
pub fn restore_snapshot(
    project: &Project,
    name: &WorkspaceName,
    snapshot: &Snapshot,
) -> Result<String, OperationError> {
    restore_files(project, name, snapshot).map_err(Operation::Restore.failed(name))
}

/// What is in a workspace, read once, and what there is to say of it.
pub(crate) struct SnapshotContents {
    pub(crate) contents: Contents,
    trailers: Trailers,
}

impl SnapshotContents {
    pub(crate) fn read(project: &Project, name: &WorkspaceName) -> Result<Self, OperationCause> {
        let (contents, trailers) = match &project.kind {
            Kind::Git(repository) => {
                let ReadyWorkspace { found, worktree } = ReadyWorkspace::find(repository, name)?;
                let contents = Contents::read_readable(repository, &worktree, found.head())?;
                (contents, describe(name, &found))
            }
            Kind::Jj(repository) => {
                JjWorkspace::find(repository, name)?.ready(repository, name)?;
                jj::contents(repository, name)?
            }
            Kind::Plain(_) => return Err(OperationCause::Plain { path: project.root().to_owned() }),
        };
        Ok(Self { contents, trailers })
    }

    /// `first` is its number, if there is none before it.
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

/// Where its snapshots are.
pub(crate) fn turn_refs(name: &WorkspaceName) -> String {
    format!("refs/agency/turns/{}/", name.task_id())
}

fn list(repository: &Repository, name: &WorkspaceName) -> Result<Vec<Snapshot>, ToolError> {
    let mut found: Vec<Snapshot> =
        repository.hidden_refs(&turn_refs(name))?.into_iter().filter_map(parse).collect();
    found.sort_by_key(|snapshot| snapshot.number);
    Ok(found)
}

fn parse(kept: HiddenRef) -> Option<Snapshot> {
    let HiddenRef { reference, commit, tree, at, message } = kept;
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
    match &project.kind {
        Kind::Git(repository) => restore::restore_over(repository, name, &snapshot.commit),
        Kind::Jj(repository) => jj::restore_over(repository, name, &snapshot.commit),
        Kind::Plain(_) => Err(OperationCause::Plain { path: project.root().to_owned() }),
    }
}

//! The changes of a workspace: files, counts and the patch.
//!
//! Read-only: the index and `HEAD` stay as they are. Untracked files are included.

use crate::changed_files::{FileDiff, changed_files};
use crate::error::{Operation, OperationCause, OperationError};
use crate::name::WorkspaceName;
use crate::project::{Project, Vcs};
use crate::repository::Repository;
use crate::saved_commit::Contents;
use crate::scratch_objects::KeptObjects;
use crate::tool::text;

/// The changes of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// The old side: a commit, or the tree of a snapshot.
    pub from: String,
    /// The new side: the tree of the present files.
    pub to: String,
    /// The changed files.
    pub files: Vec<FileDiff>,
    /// Messages about files that could not be read.
    pub warnings: Vec<String>,
    /// The objects of the new side, if they are not in the repository.
    pub(crate) objects: KeptObjects,
}

impl Diff {
    /// Returns the number of added lines.
    pub fn additions(&self) -> u64 {
        self.files.iter().map(|file| file.additions).sum()
    }

    /// Returns the number of deleted lines.
    pub fn deletions(&self) -> u64 {
        self.files.iter().map(|file| file.deletions).sum()
    }
}

/// Compares the workspace with the commit at which it left its base. Includes uncommitted work and untracked
/// files. `base` as in [`crate::state()`].
pub fn diff(project: &Project, name: &WorkspaceName, base: Option<&str>) -> Result<Diff, OperationError> {
    let compare = || {
        let repository = project.require_repository()?;
        let (contents, objects) = project.read_contents(name)?;
        let from = fork_point(project, repository, base, &contents)?;
        let files = changed_files(&repository.with_objects(&objects), &from, &contents.tree)?;
        Ok(Diff { from, to: contents.tree, files, warnings: contents.warnings, objects })
    };
    compare().map_err(Operation::Compare.failed(name))
}

/// Returns the text of a diff, as `git apply` reads it.
pub fn patch(project: &Project, name: &WorkspaceName, diff: &Diff) -> Result<Vec<u8>, OperationError> {
    let read = || {
        let args =
            ["diff-tree", "-r", "-p", "-M", "--binary", "--no-color", "--no-ext-diff", &diff.from, &diff.to];
        Ok(project.require_repository()?.with_objects(&diff.objects).git().read(&args)?)
    };
    read().map_err(Operation::Compare.failed(name))
}

/// Returns the commit at which the workspace and its base parted, or the base itself if they have no common
/// commit.
fn fork_point(
    project: &Project,
    repository: &Repository,
    base: Option<&str>,
    contents: &Contents,
) -> Result<String, OperationCause> {
    let tips = project.base_tips(base)?;
    let Some(first) = tips.first() else {
        let base = base.unwrap_or("HEAD").to_owned();
        return Err(match project.vcs() {
            Vcs::Jj => OperationCause::RevisionMissing { base },
            Vcs::Git | Vcs::Plain => OperationCause::BaseMissing { base },
        });
    };
    let Some(head) = &contents.head else { return Ok(first.clone()) };
    // Of several tips, git takes the merge base nearest to any of them.
    let args = ["merge-base", head].into_iter().chain(tips.iter().map(String::as_str));
    let parted = repository.git().read_optional(&args.collect::<Vec<_>>())?.map(text);
    Ok(parted.unwrap_or_else(|| first.clone()))
}

//! Finds what workspaces have left in a repository, and erases it.
//!
//! Does not remove the workspaces themselves: `remove` does, one by one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::exclude::{self, ExcludeError};
use crate::git::Git;
use crate::name::{WORKTREES, WorkspaceName};
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::tool::ToolError;

const BRANCHES: &str = "refs/heads/agency/";
const HIDDEN: &str = "refs/agency/";

/// Everything that Agency has left in a repository.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Traces {
    /// Every name for which a directory or a branch exists.
    pub workspaces: BTreeSet<WorkspaceName>,
    /// Hidden refs that hold removed work.
    pub hidden_refs: Vec<String>,
    /// The exclude file, if it has our line.
    pub exclude: Option<PathBuf>,
    /// Whether the repository itself tracks files in `.agency`. They are not ours.
    pub tracked: bool,
}

/// The traces could not be found or erased.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// git failed.
    #[error("cannot read the repository of {}", root.display())]
    Git {
        /// The root of the project.
        root: PathBuf,
        /// The error below.
        source: ToolError,
    },
    /// The exclude file could not be changed.
    #[error(transparent)]
    Exclude(#[from] ExcludeError),
}

/// Finds everything that Agency has left in the repository of a project.
pub fn find_traces(project: &Project) -> Result<Traces, TracesError> {
    let exclude = exclude::find_exclude_line(project)?;
    match &project.kind {
        Kind::Plain(_) => Ok(Traces { exclude, ..Traces::default() }),
        Kind::Git(_) | Kind::Jj(_) => project
            .git_repository()
            .map_or(Ok(Traces::default()), find_in_repository)
            .map(|traces| Traces { exclude, ..traces })
            .map_err(|source| git_error(project.root(), source)),
    }
}

fn find_in_repository(repository: &Repository) -> Result<Traces, ToolError> {
    let refs = repository.git().read(&["for-each-ref", "--format=%(refname)", BRANCHES, HIDDEN])?;
    let refs = String::from_utf8_lossy(&refs).into_owned();
    let branches = refs.lines().filter_map(|name| name.strip_prefix(BRANCHES)).map(str::to_owned);
    let directories = fs::read_dir(repository.root().join(WORKTREES)).into_iter().flatten().flatten();
    let directories = directories.filter_map(|entry| entry.file_name().into_string().ok());
    Ok(Traces {
        workspaces: branches.chain(directories).filter_map(|name| name.parse().ok()).collect(),
        hidden_refs: refs.lines().filter(|name| name.starts_with(HIDDEN)).map(str::to_owned).collect(),
        exclude: None,
        tracked: has_tracked_files(repository)?,
    })
}

fn has_tracked_files(repository: &Repository) -> Result<bool, ToolError> {
    if repository.is_bare() {
        return Ok(false);
    }
    let git = Git::discovering(repository.environment(), repository.root());
    Ok(!git.read(&["ls-files", "-z", "--", ".agency"])?.is_empty())
}

/// Deletes these hidden refs, and the line in the exclude file.
pub fn erase_traces(project: &Project, refs: &[String]) -> Result<(), TracesError> {
    if let Some(repository) = project.git_repository() {
        for name in refs.iter().filter(|name| name.starts_with(HIDDEN)) {
            let deleted = repository.git().change(&["update-ref", "-d", name]);
            deleted.map_err(|source| git_error(project.root(), source))?;
        }
    }
    Ok(exclude::remove_exclude_line(project)?)
}

fn git_error(root: &Path, source: ToolError) -> TracesError {
    TracesError::Git { root: root.to_owned(), source }
}

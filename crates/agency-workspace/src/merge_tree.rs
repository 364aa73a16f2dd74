//! Finds the files that conflict when two commits are merged.
//!
//! Works in a temporary object directory: no checkout and no repository changes.

use std::path::PathBuf;

use crate::repository::Repository;
use crate::scratch_objects::{KeptObjects, object_variables};
use crate::temp_index::parse_paths;
use crate::tool::ToolError;

/// A commit of everything in a workspace, on no branch.
#[derive(Debug, Clone)]
pub(crate) struct WorkCommit {
    pub(crate) id: String,
    /// Its objects, if they are not in the repository.
    pub(crate) objects: KeptObjects,
}

impl WorkCommit {
    /// A commit that is in the repository.
    pub(crate) fn stored(id: impl Into<String>) -> Self {
        Self { id: id.into(), objects: KeptObjects::default() }
    }
}

/// Lists the files that git cannot merge by itself.
pub(crate) fn conflicting_files(
    repository: &Repository,
    one: &WorkCommit,
    other: &WorkCommit,
) -> Result<Vec<PathBuf>, ToolError> {
    let options = ["--write-tree", "--name-only", "--no-messages", "--allow-unrelated-histories", "-z"];
    let args = [&["merge-tree"], &options[..], &[&one.id, &other.id]].concat();
    // Only names of files are needed, and the objects of many merges would make git collect garbage again and
    // again.
    let thrown_away = tempfile::Builder::new().prefix("agency-radar-").tempdir();
    let thrown_away =
        thrown_away.map_err(|source| ToolError::Start { command: "git merge-tree".into(), source })?;
    let objects: Vec<_> = [one, other].into_iter().filter_map(|side| side.objects.0.as_deref()).collect();
    let variables = object_variables(repository, thrown_away.path(), &objects).into_iter().flatten();
    let git = variables.fold(repository.git(), |git, (name, value)| git.with_variable(name, value));
    let (is_clean, output) = git.read_yes_or_no(&args)?;
    if is_clean {
        return Ok(Vec::new());
    }
    // The first field is the tree.
    let mut files: Vec<PathBuf> = parse_paths(&output).into_iter().skip(1).collect();
    files.sort();
    files.dedup();
    Ok(files)
}

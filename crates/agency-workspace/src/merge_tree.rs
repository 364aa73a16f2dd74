//! Finds the files that conflict when two commits are merged.
//!
//! Works in a temporary object directory: no checkout and no repository changes.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::path::PathBuf;

use crate::git::Git;
use crate::repository::Repository;
use crate::temp_index::parse_paths;
use crate::tool::ToolError;

/// Lists the files that git cannot merge by itself.
pub(crate) fn conflicting_files(
    repository: &Repository,
    one: &str,
    other: &str,
) -> Result<Vec<PathBuf>, ToolError> {
    let options = ["--write-tree", "--name-only", "--no-messages", "--allow-unrelated-histories", "-z"];
    let args = [&["merge-tree"], &options[..], &[one, other]].concat();
    let thrown_away = tempfile::Builder::new().prefix("agency-radar-").tempdir();
    let thrown_away =
        thrown_away.map_err(|source| ToolError::Start { command: "git merge-tree".into(), source })?;
    let (is_clean, output) = writing_to(repository, thrown_away.path()).read_yes_or_no(&args)?;
    if is_clean {
        return Ok(Vec::new());
    }
    // The first field is the tree.
    let mut files: Vec<PathBuf> = parse_paths(&output).into_iter().skip(1).collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// Returns git on this repository that writes its objects elsewhere. Only names of files are needed, and the
/// objects of many merges would make git collect garbage again and again.
fn writing_to(repository: &Repository, dir: &Path) -> Git {
    let objects = repository.common_dir().join("objects");
    // Git would read a colon as the end of the path.
    if objects.as_os_str().as_bytes().iter().any(|byte| b":\"".contains(byte)) {
        return repository.git();
    }
    let git = repository.git().with_variable("GIT_OBJECT_DIRECTORY", dir);
    git.with_variable("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects)
}

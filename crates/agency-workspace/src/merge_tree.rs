//! Finds the files that conflict when two commits are merged.
//!
//! Works in a temporary object directory: no checkout and no repository changes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::path::PathBuf;

use crate::repository::{Repository, tree_of};
use crate::scratch_objects::{KeptObjects, ScratchObjects, object_variables};
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
    let (is_clean, output) = merge_tree(repository, one, other)?;
    if is_clean {
        return Ok(Vec::new());
    }
    // The first field is the tree.
    let files = parse_paths(&output).into_iter().skip(1);
    let mut files: Vec<PathBuf> = files.map(|file| name_in_commits(&file, &[&one.id, &other.id])).collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// Returns the name of a file as the commits have it. Where one side has a file and the other a directory, git
/// adds the name of the side: `src~12ab` or `src~12ab_0`.
fn name_in_commits(file: &Path, sides: &[&str]) -> PathBuf {
    let name = file.as_os_str().as_bytes();
    let of_side = |side: &&str| {
        let added = format!("~{side}");
        let at = name.windows(added.len()).rposition(|part| part == added.as_bytes())?;
        let rest = &name[at + added.len()..];
        let is_end = rest.is_empty() || (rest[0] == b'_' && rest[1..].iter().all(u8::is_ascii_digit));
        is_end.then(|| PathBuf::from(OsStr::from_bytes(&name[..at])))
    };
    sides.iter().find_map(of_side).unwrap_or_else(|| file.to_owned())
}

/// Whether a merge of `other` would change nothing in `one`: it already has all changes, perhaps as other
/// commits.
pub(crate) fn adds_nothing(repository: &Repository, one: &str, other: &str) -> Result<bool, ToolError> {
    let (is_clean, output) = merge_tree(repository, &WorkCommit::stored(one), &WorkCommit::stored(other))?;
    let merged = parse_paths(&output).into_iter().next();
    Ok(is_clean && merged == Some(tree_of(repository, one)?.into()))
}

/// Merges in a temporary object directory: the objects of many merges would make git collect garbage again and
/// again. Returns whether there was no conflict, and the output of git.
fn merge_tree(
    repository: &Repository,
    one: &WorkCommit,
    other: &WorkCommit,
) -> Result<(bool, Vec<u8>), ToolError> {
    let options = ["--write-tree", "--name-only", "--no-messages", "--allow-unrelated-histories", "-z"];
    let args = [&["merge-tree"], &options[..], &[&one.id, &other.id]].concat();
    let scratch = ScratchObjects::create(repository.common_dir())
        .map_err(|source| ToolError::Start { command: "git merge-tree".into(), source })?;
    let objects: Vec<_> = [one, other].into_iter().filter_map(|side| side.objects.0.as_deref()).collect();
    let variables = object_variables(repository.common_dir(), scratch.path(), &objects).into_iter().flatten();
    let git = variables.fold(repository.git(), |git, (name, value)| git.with_variable(name, value));
    git.read_yes_or_no(&args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_name_that_the_commits_give_it() {
        let name = |file: &str| name_in_commits(Path::new(file), &["12ab", "34cd"]).display().to_string();
        assert_eq!(name("src/lib~12ab"), "src/lib");
        assert_eq!(name("src/lib~34cd_0"), "src/lib");
        for own in ["lib~56ef", "lib~12ab.rs", "lib~12ab_x", "lib"] {
            assert_eq!(name(own), own);
        }
    }
}

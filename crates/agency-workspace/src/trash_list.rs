//! Lists, measures and deletes trash entries.
//!
//! Sizes are those of the files. Git stores them in less space.

use crate::project::Project;
use crate::tool::ToolError;
use crate::trash::{self, TrashEntry, delete_snapshots_and_mark};

/// Returns the size in bytes of all files that a restore would write.
pub fn trash_entry_bytes(project: &Project, entry: &TrashEntry) -> Result<u64, TrashError> {
    let Some(repository) = project.git_repository() else { return Ok(0) };
    let files = entry.trailers.ignored.as_deref().unwrap_or(&entry.commit);
    let listed = repository.git().read(&["ls-tree", "-r", "-l", "--full-tree", files]);
    let failed = |source: ToolError| TrashError { root: project.root().to_owned(), source };
    Ok(String::from_utf8_lossy(&listed.map_err(failed)?).lines().filter_map(size).sum())
}

/// Parses `100644 blob <id>     123\t<path>`; submodules have a dash instead of a size.
fn size(line: &str) -> Option<u64> {
    line.split('\t').next()?.rsplit(' ').next()?.parse().ok()
}

/// The trash could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the trash of {}", root.display())]
pub struct TrashError {
    /// The root of the project.
    pub root: std::path::PathBuf,
    /// The error of git.
    pub source: ToolError,
}

impl TrashError {
    /// Returns a way out for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        self.source.hint()
    }
}

/// Lists the trash entries of a project, the newest first.
pub fn trash_entries(project: &Project) -> Result<Vec<TrashEntry>, TrashError> {
    let Some(repository) = project.git_repository() else { return Ok(Vec::new()) };
    trash::list(repository).map_err(|source| TrashError { root: project.root().to_owned(), source })
}

/// Deletes these entries for good, as far as they exist, and the snapshots and marks of workspaces that have
/// nothing else left. Returns the refs that are deleted.
pub fn expire_trash(project: &Project, entries: &[TrashEntry]) -> Result<Vec<String>, TrashError> {
    let Some(repository) = project.git_repository() else { return Ok(Vec::new()) };
    let expired = || {
        let (old, stays): (Vec<_>, Vec<_>) =
            trash::list(repository)?.into_iter().partition(|entry| entries.contains(entry));
        let mut gone = Vec::new();
        for entry in old {
            repository.git().change(&["update-ref", "-d", &entry.reference, &entry.commit])?;
            gone.push(entry.reference);
            let spoken_for = stays.iter().any(|other| other.workspace == entry.workspace);
            if !spoken_for && !project.has_workspace(&entry.workspace)? {
                gone.extend(delete_snapshots_and_mark(repository, &entry.workspace)?);
            }
        }
        Ok(gone)
    };
    expired().map_err(|source| TrashError { root: project.root().to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_comes_before_the_path() {
        assert_eq!(size("100644 blob 12ab     123\ta 7 b"), Some(123));
        assert_eq!(size("160000 commit 12ab       -\tsub"), None);
    }
}

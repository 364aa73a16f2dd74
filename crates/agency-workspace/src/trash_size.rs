//! How much the trash keeps.
//!
//! The sizes of the files as they were; what git makes of them on the disk is less.

use crate::project::Project;
use crate::tool::ToolError;
use crate::trash::{TrashEntry, TrashError};

/// All files that would come back, in bytes.
pub fn trash_entry_bytes(project: &Project, entry: &TrashEntry) -> Result<u64, TrashError> {
    let Some(repository) = project.git_repository() else { return Ok(0) };
    let files = entry.trailers.ignored.as_deref().unwrap_or(&entry.commit);
    let listed = repository.git().read(&["ls-tree", "-r", "-l", "--full-tree", files]);
    let told = |source: ToolError| TrashError { root: project.root().to_owned(), source };
    Ok(String::from_utf8_lossy(&listed.map_err(told)?).lines().filter_map(size).sum())
}

/// `100644 blob <id>     123\t<path>`; submodules have a dash.
fn size(line: &str) -> Option<u64> {
    line.split('\t').next()?.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_stands_before_the_path() {
        assert_eq!(size("100644 blob 12ab     123\ta 7 b"), Some(123));
        assert_eq!(size("160000 commit 12ab       -\tsub"), None);
    }
}

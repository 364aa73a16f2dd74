//! The status of a worktree, from one `git status`: its commit, and the files that are not committed.
//!
//! Not the content of the files, unless the caller asks for a commit.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::OperationCause;
use crate::merge_tree::WorkCommit;
use crate::name::WorkspaceName;
use crate::repository::{Repository, commit_tree};
use crate::scratch_objects::KeptObjects;
use crate::tool::ToolError;
use crate::worktree::Worktree;

/// Reads commit and files at once, so that no commit can come between the two. Skips the comparison with a
/// server's branch, which takes time.
const STATUS: [&str; 8] = [
    "status",
    "--porcelain=v2",
    "--branch",
    "--no-ahead-behind",
    "-z",
    "--no-renames",
    "--untracked-files=all",
    "--ignore-submodules=none",
];

#[derive(Debug)]
pub(crate) struct WorktreeStatus {
    worktree: Worktree,
    /// None before the first commit.
    head: Option<String>,
    uncommitted: Vec<PathBuf>,
}

impl WorktreeStatus {
    /// Reads the status. Returns None if there is no directory, or if it is not ours.
    pub(crate) fn read(repository: &Repository, name: &WorkspaceName) -> Result<Option<Self>, ToolError> {
        let Some(worktree) = Worktree::open(repository, &repository.workspace_path(name)) else {
            return Ok(None);
        };
        let (head, uncommitted) = parse(&worktree.git(repository).read(&STATUS)?);
        Ok(Some(Self { worktree, head, uncommitted }))
    }

    /// The commit, or None before the first one.
    pub(crate) fn head(&self) -> Option<&str> {
        self.head.as_deref()
    }

    /// Equal for the same commit and the same times of the uncommitted files.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.head.hash(&mut hasher);
        for file in &self.uncommitted {
            stamp(&self.worktree.path.join(file)).hash(&mut hasher);
            file.hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Makes a commit of all the work outside the repository.
    pub(crate) fn look(&self, repository: &Repository) -> Result<WorkCommit, OperationCause> {
        let objects = repository.scratch_objects()?;
        let id = self.commit(&repository.writing_to(&objects))?;
        Ok(WorkCommit { id, objects: KeptObjects(Some(objects)) })
    }

    /// Returns a commit of all the work, on no branch: the present one if everything is committed.
    fn commit(&self, repository: &Repository) -> Result<String, OperationCause> {
        if let Some(head) = self.head.as_ref().filter(|_| self.uncommitted.is_empty()) {
            return Ok(head.clone());
        }
        let temp_index = self.worktree.temp_index(repository)?;
        temp_index.add_readable_files()?;
        let parents: Vec<&str> = self.head.as_deref().into_iter().collect();
        Ok(commit_tree(repository, &temp_index.tree()?, &parents, "agency: work in progress")?)
    }
}

fn parse(status: &[u8]) -> (Option<String>, Vec<PathBuf>) {
    let entries = || status.split(|byte| *byte == 0);
    let head = entries().find_map(|entry| entry.strip_prefix(b"# branch.oid "));
    let head = head.filter(|head| *head != b"(initial)");
    let files = entries().filter_map(path_of).map(|path| Path::new(OsStr::from_bytes(path)).to_owned());
    (head.map(|head| String::from_utf8_lossy(head).into_owned()), files.collect())
}

/// Returns the last field of an entry. The first letter determines the number of fields before it.
fn path_of(entry: &[u8]) -> Option<&[u8]> {
    let before = match entry.first()? {
        b'1' => 8,
        b'u' => 10,
        b'?' => 1,
        _ => return None,
    };
    entry.splitn(before + 1, |byte| *byte == b' ').nth(before)
}

type Stamp = (u64, i64, i64, i64, i64, u32);

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = path.symlink_metadata().ok()?;
    Some((meta.size(), meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec(), meta.mode()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_git_is_parsed() {
        let output = b"# branch.oid 12ab\0# branch.head main\0\
            1 .M N... 100644 100644 100644 12ab 12ab a b\0\
            u UU N... 100644 100644 100644 100644 1 2 3 both\0? new file\0! ignored\0";
        let (head, files) = parse(output);
        assert_eq!(head.as_deref(), Some("12ab"));
        assert_eq!(files, ["a b", "both", "new file"].map(PathBuf::from));
        assert_eq!(parse(b"# branch.oid (initial)\0"), (None, Vec::new()));
    }
}

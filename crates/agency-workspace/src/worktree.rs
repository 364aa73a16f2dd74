//! Worktrees of git: its own records of them, and access to one.
//!
//! Not whether there is work in them: see `git_workspace`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tracing::debug;

use crate::error::OperationCause;
use crate::git::Git;
use crate::name::WorkspaceName;
use crate::repository::Repository;
use crate::temp_index::TempIndex;
use crate::tool::ToolError;

/// Git locks a record with this reason while it fills the directory. If the lock stays, git was killed.
const INITIALIZING: &str = "initializing";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WorktreeRecord {
    pub(crate) path: PathBuf,
    /// None before the first commit of an orphan branch.
    pub(crate) head: Option<String>,
    /// None where `HEAD` is detached.
    pub(crate) branch: Option<String>,
    lock: Option<String>,
}

impl WorktreeRecord {
    /// Returns the reason that the user gave for a lock, if they locked the worktree.
    pub(crate) fn user_lock_reason(&self) -> Option<&str> {
        self.lock.as_deref().filter(|reason| *reason != INITIALIZING)
    }

    pub(crate) fn is_incomplete(&self) -> bool {
        self.lock.as_deref() == Some(INITIALIZING)
    }

    /// Removes record and directory. Without force git itself checks for uncommitted files once more.
    pub(crate) fn remove(&self, repository: &Repository, force: Force) -> Result<(), ToolError> {
        // Git does not accept an empty directory as a worktree. This call deletes nothing else.
        if self.path.is_dir()
            && let Err(err) = fs::remove_dir(&self.path)
        {
            debug!(path = %self.path.display(), %err, "the worktree is not empty");
        }
        let forced: &[&str] = match force {
            // The second `--force` is for the lock that a killed git has left.
            _ if self.is_incomplete() => &["--force", "--force"],
            Force::Yes => &["--force"],
            Force::No => &[],
        };
        let args: Vec<&OsStr> = ["worktree", "remove"].iter().chain(forced).map(OsStr::new).collect();
        let git = repository.git().with_config("status.showUntrackedFiles=all");
        git.change(&[&args[..], &["--".as_ref(), self.path.as_os_str()]].concat()).map(drop)
    }

    /// Returns a commit that perhaps no ref but this record holds.
    pub(crate) fn detached_head(&self) -> Option<&str> {
        if self.branch.is_none() { self.head.as_deref() } else { None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Force {
    Yes,
    No,
}

/// Lists all worktrees, the main checkout included.
pub(crate) fn list_records(repository: &Repository) -> Result<Vec<WorktreeRecord>, ToolError> {
    let mut records = parse(&repository.git().read(&["worktree", "list", "--porcelain", "-z"])?);
    // Git lists the main checkout first. It prints the path of its own directory instead, if that is not the
    // `.git` of the checkout: in a submodule, or after `git init --separate-git-dir`.
    if let Some(main) = records.first_mut().filter(|_| !repository.is_bare()) {
        main.path = repository.root().to_owned();
    }
    Ok(records)
}

pub(crate) fn find_record(
    repository: &Repository,
    name: &WorkspaceName,
) -> Result<Option<WorktreeRecord>, ToolError> {
    let path = canonical_parent(&repository.workspace_path(name));
    Ok(list_records(repository)?.into_iter().find(|record| record.path == path))
}

/// Returns another worktree that has the branch of this workspace checked out.
pub(crate) fn other_worktree_on_branch(
    repository: &Repository,
    name: &WorkspaceName,
) -> Result<Option<PathBuf>, ToolError> {
    let path = canonical_parent(&repository.workspace_path(name));
    let users = worktrees_on_branch(repository, &name.branch())?;
    Ok(users.into_iter().map(|record| record.path).find(|user| *user != path))
}

/// Lists the worktrees, the main checkout included, that have the branch checked out.
pub(crate) fn worktrees_on_branch(
    repository: &Repository,
    branch: &str,
) -> Result<Vec<WorktreeRecord>, ToolError> {
    let mut records = list_records(repository)?;
    records.retain(|record| record.branch.as_deref() == Some(branch));
    Ok(records)
}

/// Resolves the links in the parent directory, because git's records hold real paths and `.agency` may be a
/// link to a bigger disk. The last part need not exist.
fn canonical_parent(path: &Path) -> PathBuf {
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    parent.zip(path.file_name()).map(|(parent, name)| parent.join(name)).unwrap_or_else(|| path.to_owned())
}

fn parse(porcelain: &[u8]) -> Vec<WorktreeRecord> {
    let mut records: Vec<WorktreeRecord> = Vec::new();
    for line in porcelain.split(|byte| *byte == 0) {
        let (key, value) = line.split_at(line.iter().position(|byte| *byte == b' ').unwrap_or(line.len()));
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = || String::from_utf8_lossy(value).into_owned();
        match (key, records.last_mut()) {
            (b"worktree", _) => records.push(WorktreeRecord {
                path: PathBuf::from(OsStr::from_bytes(value)),
                ..WorktreeRecord::default()
            }),
            (b"HEAD", Some(record)) => {
                record.head = Some(text()).filter(|head| head.bytes().any(|b| b != b'0'))
            }
            (b"branch", Some(record)) => record.branch = Some(text().replacen("refs/heads/", "", 1)),
            (b"locked", Some(record)) => record.lock = Some(text()),
            _ => {}
        }
    }
    records
}

/// Reads a file of git's that contains a path relative to itself.
fn read_pointer(file: &Path, before: &str) -> Option<PathBuf> {
    let is_file = file.symlink_metadata().is_ok_and(|meta| meta.is_file());
    let text = fs::read(file).ok().filter(|_| is_file)?;
    let target = text.strip_prefix(before.as_bytes())?;
    let target = target.strip_suffix(b"\n").unwrap_or(target);
    file.parent()?.join(OsStr::from_bytes(target)).canonicalize().ok()
}

/// A worktree of this repository whose directory exists and points back to it.
#[derive(Debug, Clone)]
pub(crate) struct Worktree {
    pub(crate) path: PathBuf,
    pub(crate) git_dir: PathBuf,
}

impl Worktree {
    /// Returns None if the directory is not a worktree of this repository. Follows the links as git does,
    /// without calling it, because every look at a workspace begins here.
    pub(crate) fn open(repository: &Repository, path: &Path) -> Option<Self> {
        // Without this file git would search upwards and take the main checkout for the workspace.
        let git_dir = read_pointer(&path.join(".git"), "gitdir: ")?;
        let common_dir = read_pointer(&git_dir.join("commondir"), "")?;
        let is_linked = common_dir == repository.common_dir() && git_dir != common_dir;
        (is_linked && git_dir.join("HEAD").exists()).then(|| Self { path: path.to_owned(), git_dir })
    }

    /// Creates a temporary index over its files.
    pub(crate) fn temp_index(&self, repository: &Repository) -> Result<TempIndex, OperationCause> {
        let unwritable = |source| OperationCause::Write { path: self.git_dir.clone(), source };
        TempIndex::copy_of(self.git(repository), &self.git_dir).map_err(unwritable)
    }

    /// Git in exactly this worktree.
    pub(crate) fn git(&self, repository: &Repository) -> Git {
        Git::on(repository.environment(), &self.git_dir, &self.path).with_work_tree(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worktree_list_of_git_is_parsed() {
        let list =
            b"worktree /a b\nc\0HEAD 12ab\0branch refs/heads/feature/x\0\0worktree /c\0HEAD 0000\0detached\0\
                     locked initializing\0\0worktree /d\0bare\0locked\0prunable gone\0";
        let [main, half, bare] = &parse(list)[..] else { panic!("three records") };
        assert_eq!((main.path.as_path(), main.branch.as_deref()), (Path::new("/a b\nc"), Some("feature/x")));
        assert_eq!((main.detached_head(), half.detached_head()), (None, None));
        assert!(half.is_incomplete() && half.user_lock_reason().is_none());
        assert_eq!(bare.user_lock_reason(), Some(""));
    }
}

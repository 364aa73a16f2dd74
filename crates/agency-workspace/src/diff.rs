//! What a workspace changed: files, counts and the patch.
//!
//! Only looks: the index and `HEAD` stay as they are, and untracked files are seen all the same.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::name::WorkspaceName;
use crate::operation::{Operation, OperationCause, OperationError};
use crate::project::{Project, Vcs};
use crate::repository::{Repository, text};
use crate::saved_commit::Contents;
use crate::tool::ToolError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// What it is compared with: a commit, or the tree of a snapshot.
    pub from: String,
    /// The tree of what it is now.
    pub to: String,
    pub files: Vec<FileDiff>,
    /// What could not be read.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    pub path: PathBuf,
    /// Where it was before, if it was renamed or copied.
    pub old_path: Option<PathBuf>,
    pub status: FileStatus,
    /// Lines; none of a binary file.
    pub additions: u64,
    pub deletions: u64,
    pub binary: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileStatus {
    Added,
    Modified,
    Deleted,
    Renamed,
    Copied,
    /// A file became a link or a submodule, or the other way round.
    TypeChanged,
}

impl Diff {
    pub fn additions(&self) -> u64 {
        self.files.iter().map(|file| file.additions).sum()
    }

    pub fn deletions(&self) -> u64 {
        self.files.iter().map(|file| file.deletions).sum()
    }
}

/// What the workspace changed since it left its base, uncommitted work and untracked files included. `base` as
/// in [`crate::state()`].
pub fn diff(project: &Project, name: &WorkspaceName, base: Option<&str>) -> Result<Diff, OperationError> {
    let compare = || {
        let repository = project.require_repository()?;
        let contents = project.read_contents(name)?;
        let from = fork_point(project, repository, base, &contents)?;
        let files = changed_files(repository, &from, &contents.tree)?;
        Ok(Diff { from, to: contents.tree, files, warnings: contents.warnings })
    };
    compare().map_err(Operation::Compare.failed(name))
}

/// The text of a diff, as `git apply` takes it.
pub fn patch(project: &Project, name: &WorkspaceName, diff: &Diff) -> Result<Vec<u8>, OperationError> {
    let read = || {
        let args =
            ["diff-tree", "-r", "-p", "-M", "--binary", "--no-color", "--no-ext-diff", &diff.from, &diff.to];
        Ok(project.require_repository()?.git().read(&args)?)
    };
    read().map_err(Operation::Compare.failed(name))
}

/// The commit at which the workspace and its base parted; the base itself if they never were together.
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
    // Of several, git takes the place nearest to any of them.
    let args = ["merge-base", head].into_iter().chain(tips.iter().map(String::as_str));
    let parted = repository.git().read_optional(&args.collect::<Vec<_>>())?.map(text);
    Ok(parted.unwrap_or_else(|| first.clone()))
}

pub(crate) fn changed_files(
    repository: &Repository,
    from: &str,
    to: &str,
) -> Result<Vec<FileDiff>, ToolError> {
    let args = ["diff-tree", "-r", "-z", "-M", "--raw", "--numstat", "--no-ext-diff", from, to];
    Ok(parse(&repository.git().read(&args)?))
}

/// Entries like `:100644 100755 12ab 34cd M\0path\0`, then counts like `1\t2\tpath\0`, in the same order.
fn parse(listed: &[u8]) -> Vec<FileDiff> {
    let mut fields = listed.split(|byte| *byte == 0);
    let path = |fields: &mut dyn Iterator<Item = &[u8]>| {
        fields.next().map(|path| PathBuf::from(OsStr::from_bytes(path))).unwrap_or_default()
    };
    let (mut files, mut counts) = (Vec::new(), Vec::new());
    while let Some(field) = fields.next() {
        if let Some(entry) = field.strip_prefix(b":") {
            let status = status(entry);
            let moved = matches!(status, FileStatus::Renamed | FileStatus::Copied);
            let old_path = moved.then(|| path(&mut fields));
            let path = path(&mut fields);
            files.push(FileDiff { path, old_path, status, additions: 0, deletions: 0, binary: false });
        } else if let Some((count, is_moved)) = count(field) {
            counts.push(count);
            // The two paths of a renamed file are fields of their own.
            if is_moved {
                fields.nth(1);
            }
        }
    }
    for (file, (additions, deletions)) in files.iter_mut().zip(counts) {
        file.binary = additions.is_none();
        (file.additions, file.deletions) = (additions.unwrap_or(0), deletions.unwrap_or(0));
    }
    files
}

fn status(entry: &[u8]) -> FileStatus {
    match entry.split(|byte| *byte == b' ').nth(4).and_then(|status| status.first()) {
        Some(b'A') => FileStatus::Added,
        Some(b'D') => FileStatus::Deleted,
        Some(b'R') => FileStatus::Renamed,
        Some(b'C') => FileStatus::Copied,
        Some(b'T') => FileStatus::TypeChanged,
        _ => FileStatus::Modified,
    }
}

type Count = (Option<u64>, Option<u64>);

fn count(field: &[u8]) -> Option<(Count, bool)> {
    let mut parts = field.splitn(3, |byte| *byte == b'\t');
    let mut number = || parts.next().map(|part| String::from_utf8_lossy(part).parse().ok());
    let count = (number()?, number()?);
    Some((count, parts.next()?.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_and_counts_of_git_are_brought_together() {
        let listed = b":100644 100644 aa bb R090\0old\0new\0:000000 100644 00 cc A\0pic\0:100644 000000 aa 00 D\0b\tc\0\
                       1\t2\t\0old\0new\0-\t-\tpic\x000\t7\tb\tc\0";
        let [moved, added, deleted] = &parse(listed)[..] else { panic!("three files") };
        assert_eq!((moved.status, moved.old_path.as_deref()), (FileStatus::Renamed, Some("old".as_ref())));
        assert_eq!((moved.additions, moved.deletions, moved.binary), (1, 2, false));
        assert_eq!((added.status, added.binary, added.path.to_str()), (FileStatus::Added, true, Some("pic")));
        assert_eq!((deleted.deletions, deleted.path.to_str()), (7, Some("b\tc")));
    }
}

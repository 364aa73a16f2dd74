//! The files that differ between two trees, with counts of their lines.
//!
//! Not what the trees are: `diff` and the snapshots choose them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::repository::Repository;
use crate::tool::ToolError;

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// The path of the file.
    pub path: PathBuf,
    /// The path before a rename or a copy.
    pub old_path: Option<PathBuf>,
    /// The kind of change.
    pub status: FileStatus,
    /// Added lines; 0 for a binary file.
    pub additions: u64,
    /// Deleted lines; 0 for a binary file.
    pub deletions: u64,
    /// Whether the file is binary.
    pub binary: bool,
}

/// The kind of change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileStatus {
    /// The file is new.
    Added,
    /// The content or the permissions changed.
    Modified,
    /// The file was deleted.
    Deleted,
    /// The file was renamed.
    Renamed,
    /// The file is a copy of another one.
    Copied,
    /// A file became a link or a submodule, or the other way round.
    TypeChanged,
}

pub(crate) fn changed_files(
    repository: &Repository,
    from: &str,
    to: &str,
) -> Result<Vec<FileDiff>, ToolError> {
    let args = ["diff-tree", "-r", "-z", "-M", "--raw", "--numstat", "--no-ext-diff", from, to];
    Ok(parse(&repository.git().read(&args)?))
}

/// Parses entries like `:100644 100755 12ab 34cd M\0path\0`, then counts like `1\t2\tpath\0`, in the same
/// order.
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
            // The two paths of a renamed file are separate fields.
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
    fn entries_and_counts_of_git_are_combined() {
        let listed = b":100644 100644 aa bb R090\0old\0new\0:000000 100644 00 cc A\0pic\0:100644 000000 aa 00 D\0b\tc\0\
                       1\t2\t\0old\0new\0-\t-\tpic\x000\t7\tb\tc\0";
        let [moved, added, deleted] = &parse(listed)[..] else { panic!("three files") };
        assert_eq!((moved.status, moved.old_path.as_deref()), (FileStatus::Renamed, Some("old".as_ref())));
        assert_eq!((moved.additions, moved.deletions, moved.binary), (1, 2, false));
        assert_eq!((added.status, added.binary, added.path.to_str()), (FileStatus::Added, true, Some("pic")));
        assert_eq!((deleted.deletions, deleted.path.to_str()), (7, Some("b\tc")));
    }
}

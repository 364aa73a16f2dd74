//! The entries of an index, with the flags that hide files from git and the sides of conflicts.
//!
//! Read-only: `temp_index` and `details` change indexes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::git::Git;
use crate::tool::ToolError;

/// One entry of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// The mode as git prints it: `100644`, `100755`, `120000` or `160000`.
    pub(crate) mode: String,
    pub(crate) id: String,
    /// 0, or the side of a conflict: 1 to 3.
    pub(crate) stage: u8,
    pub(crate) path: PathBuf,
    /// Git takes the file for absent, as outside a sparse checkout, and looks at it no more.
    pub(crate) is_skipped: bool,
    /// The user has promised not to change the file, so git looks at it no more.
    pub(crate) is_assumed_unchanged: bool,
}

impl IndexEntry {
    pub(crate) fn is_hidden(&self) -> bool {
        self.is_skipped || self.is_assumed_unchanged
    }

    pub(crate) fn is_gitlink(&self) -> bool {
        self.mode == "160000"
    }

    /// Whether the entry is a file with content, neither a link nor a repository.
    pub(crate) fn is_file(&self) -> bool {
        self.mode.starts_with("100")
    }

    /// Parses `H 100644 <id> 0\t<path>`. A small letter marks a file that is assumed unchanged.
    pub(crate) fn parse(entry: &[u8]) -> Option<Self> {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let fields = String::from_utf8_lossy(&entry[..tab]).into_owned();
        let mut fields = fields.split(' ');
        let tag = fields.next()?;
        Some(Self {
            mode: fields.next()?.to_owned(),
            id: fields.next()?.to_owned(),
            stage: fields.next()?.parse().ok()?,
            path: Path::new(OsStr::from_bytes(&entry[tab + 1..])).to_owned(),
            is_skipped: tag.eq_ignore_ascii_case("S"),
            is_assumed_unchanged: tag.bytes().all(|byte| byte.is_ascii_lowercase()),
        })
    }
}

/// Lists all entries of the index that `git` uses.
pub(crate) fn index_entries(git: &Git) -> Result<Vec<IndexEntry>, ToolError> {
    let listed = git.read(&["ls-files", "-v", "--stage", "-z", "--", ":/"])?;
    Ok(listed.split(|byte| *byte == 0).filter_map(IndexEntry::parse).collect())
}

/// Joins paths for git's standard input: each ends with a zero byte.
pub(crate) fn join_paths<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Vec<u8> {
    paths.into_iter().flat_map(|path| path.as_os_str().as_bytes().iter().copied().chain([0])).collect()
}

/// Lists the repositories that the index names by a commit: the commit and the path of each.
pub(crate) fn gitlinks(git: &Git) -> Result<Vec<(String, PathBuf)>, ToolError> {
    let links = index_entries(git)?.into_iter().filter(IndexEntry::is_gitlink);
    Ok(links.map(|entry| (entry.id, entry.path)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_stages_are_parsed() {
        let flags = |entry: &[u8]| {
            let entry = IndexEntry::parse(entry).unwrap();
            (entry.is_skipped, entry.is_assumed_unchanged, entry.stage)
        };
        assert_eq!(flags(b"H 100644 12ab 0\ta b"), (false, false, 0));
        assert_eq!(flags(b"S 100644 12ab 0\ta"), (true, false, 0));
        assert_eq!(flags(b"h 100644 12ab 0\ta"), (false, true, 0));
        assert_eq!(flags(b"s 100644 12ab 0\ta"), (true, true, 0));
        assert_eq!(flags(b"M 100644 12ab 2\ta\tb"), (false, false, 2));
        assert_eq!(IndexEntry::parse(b"M 100644 12ab 2\ta\tb").unwrap().path, Path::new("a\tb"));
        assert_eq!(IndexEntry::parse(b""), None);
    }
}

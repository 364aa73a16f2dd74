//! A temporary index next to the one of a checkout: it writes trees of files and checks trees out.
//!
//! Only reads the checkout's own index, and touches neither `HEAD` nor branches.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::git::Git;
use crate::tool::{ToolError, text};

pub(crate) struct TempIndex {
    git: Git,
    /// Deleted on drop.
    dir: TempDir,
}

impl TempIndex {
    /// Starts as a copy of the checkout's index, which knows the files that need not be read again. It is in
    /// git's directory of the checkout, where a split index finds its other half.
    pub(crate) fn copy_of(git: Git, git_dir: &Path) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("agency-").tempdir_in(git_dir)?;
        let index = dir.path().join("index");
        match copy_with_time(&git_dir.join("index"), &index) {
            // There is no index if git was killed while it made the worktree.
            Err(err) if err.kind() == io::ErrorKind::NotFound => {}
            copied => copied?,
        }
        Ok(Self { git: git.with_variable("GIT_INDEX_FILE", index), dir })
    }

    /// Starts empty, for a directory without an index.
    pub(crate) fn empty(git: Git, git_dir: &Path) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("agency-").tempdir_in(git_dir)?;
        let index = dir.path().join("index");
        Ok(Self { git: git.with_variable("GIT_INDEX_FILE", index), dir })
    }

    /// Starts as a copy of the cached index. Returns false if there is no cache.
    pub(crate) fn from_cache(git: Git, git_dir: &Path, cache: &Path) -> io::Result<(Self, bool)> {
        let temp_index = Self::empty(git, git_dir)?;
        match copy_with_time(cache, &temp_index.dir.path().join("index")) {
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok((temp_index, false)),
            copied => copied.map(|()| (temp_index, true)),
        }
    }

    /// Replaces the cache in one step, so that a concurrent reader finds it complete.
    pub(crate) fn write_cache(&self, cache: &Path) -> io::Result<()> {
        let beside = tempfile::NamedTempFile::new_in(cache.parent().unwrap_or(cache))?;
        copy_with_time(&self.dir.path().join("index"), beside.path())?;
        beside.persist(cache).map(drop).map_err(|err| err.error)
    }

    /// Git with this index.
    pub(crate) fn git(&self) -> &Git {
        &self.git
    }

    /// Returns the tree of the index, or None during a merge, when the index has no tree.
    pub(crate) fn staged_tree(&self) -> Result<Option<String>, ToolError> {
        match self.tree() {
            Err(ToolError::Failed { .. }) => Ok(None),
            tree => tree.map(Some),
        }
    }

    pub(crate) fn tree(&self) -> Result<String, ToolError> {
        self.git.change(&["write-tree"]).map(text)
    }

    /// Adds every file that is not ignored.
    pub(crate) fn add_all_files(&self) -> Result<(), ToolError> {
        self.add(&["--", ":/"])
    }

    /// Adds every readable file. Returns git's messages about the others: files without permission, or nested
    /// repositories without a commit.
    pub(crate) fn add_readable_files(&self) -> Result<Vec<String>, ToolError> {
        self.add_readable(&[":/"])
    }

    /// Like [`Self::add_readable_files`], without this directory.
    pub(crate) fn add_readable_except(&self, directory: &str) -> Result<Vec<String>, ToolError> {
        self.add_readable(&[":/", &format!(":(top,exclude){directory}")])
    }

    fn add_readable(&self, paths: &[&str]) -> Result<Vec<String>, ToolError> {
        match self.add(&[&["--"], paths].concat()) {
            Err(ToolError::Failed { stderr, .. }) => {
                match self.add(&[&["--ignore-errors", "--"], paths].concat()) {
                    Ok(()) | Err(ToolError::Failed { .. }) => {}
                    Err(err) => return Err(err),
                }
                Ok(stderr.lines().map(str::to_owned).collect())
            }
            added => added.map(|()| Vec::new()),
        }
    }

    /// Adds ignored files too.
    pub(crate) fn add_ignored_files(&self) -> Result<(), ToolError> {
        match self.add(&["--force", "--ignore-errors", "--", ":/"]) {
            // Caches contain repositories and sockets that git cannot add. Everything else is added.
            Err(ToolError::Failed { .. }) => Ok(()),
            added => added,
        }
    }

    /// Adds or removes these paths, depending on whether they exist.
    pub(crate) fn add_paths(&self, paths: &[PathBuf]) -> Result<(), ToolError> {
        // Without any path, git would add all files.
        if paths.is_empty() {
            return Ok(());
        }
        let listed = paths.iter().flat_map(|path| path.as_os_str().as_bytes().iter().copied().chain([0]));
        let git = self.git.clone().with_variable("GIT_LITERAL_PATHSPECS", "1");
        let args = ["add", "--all", "--force", "--pathspec-from-file=-", "--pathspec-file-nul"];
        git.change_with_input(&args, &listed.collect::<Vec<u8>>())
    }

    fn add<A: AsRef<OsStr>>(&self, rest: &[A]) -> Result<(), ToolError> {
        let git =
            self.git.clone().with_config("core.safecrlf=false").with_config("advice.addEmbeddedRepo=false");
        let sparse = git.read_optional(&["config", "--bool", "core.sparseCheckout"])?;
        let mut args: Vec<&OsStr> = vec!["add".as_ref(), "--all".as_ref()];
        if sparse.is_some_and(|sparse| sparse == "true") {
            args.push("--sparse".as_ref());
        }
        args.extend(rest.iter().map(AsRef::as_ref));
        git.change(&args).map(drop)
    }

    /// Makes the files of the checkout, which are those of `now`, the files of `wanted`.
    pub(crate) fn check_out(&self, now: &str, wanted: &str) -> Result<(), ToolError> {
        if self.staged_tree()?.as_deref() != Some(now) {
            self.git.change(&["read-tree", now])?;
            // Entries from a tree have no file times. Without this refresh every file looks changed.
            self.git.change(&["update-index", "-q", "--refresh"])?;
        }
        self.git.change(&["read-tree", "-m", "-u", now, wanted]).map(drop)
    }
}

/// Copies an index with its modification time. Git takes a file for unchanged by its size and modification
/// time, unless the index is not newer than the file. A copy with a newer time hides a change within the
/// second of the last `git add`.
fn copy_with_time(from: &Path, to: &Path) -> io::Result<()> {
    let (mut from, mut to) = (File::open(from)?, File::create(to)?);
    let written = from.metadata()?.modified()?;
    io::copy(&mut from, &mut to)?;
    to.set_modified(written)
}

/// Lists existing files at paths that `wanted` has and `now` does not: untracked ones, and ignored ones,
/// which git would overwrite silently.
pub(crate) fn blocking_files(
    git: &Git,
    root: &Path,
    now: &str,
    wanted: &str,
) -> Result<Vec<PathBuf>, ToolError> {
    let args = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A", now, wanted];
    let added = parse_paths(&git.read(&args)?);
    let mut in_the_way: Vec<PathBuf> = added.iter().filter_map(|path| blocking_file(root, path)).collect();
    in_the_way.dedup();
    Ok(in_the_way)
}

/// Parses paths that end with a zero byte each.
pub(crate) fn parse_paths(listed: &[u8]) -> Vec<PathBuf> {
    let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect()
}

/// Returns the path, or the first part of it, that is a file on the disk.
fn blocking_file(root: &Path, path: &Path) -> Option<PathBuf> {
    let mut parts: Vec<&Path> = path.ancestors().filter(|part| !part.as_os_str().is_empty()).collect();
    parts.reverse();
    let is_file = |part: &&&Path| root.join(part).symlink_metadata().is_ok_and(|meta| !meta.is_dir());
    parts.iter().find(is_file).map(|part| part.to_path_buf())
}

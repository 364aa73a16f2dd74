//! An index of our own beside the one of a checkout: it makes trees of files and puts trees back.
//!
//! The checkout's own index is only read, and `HEAD` and branches are not touched.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::git::Git;
use crate::repository::text;
use crate::tool::ToolError;

pub(crate) struct TempIndex {
    git: Git,
    /// Deleted with the value.
    dir: TempDir,
}

impl TempIndex {
    /// Starts as a copy of the checkout's index, because that knows which files need not be read
    /// again. It lies in git's directory of the checkout, where a split index finds its other half.
    pub(crate) fn copy_of(git: Git, git_dir: &Path) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("agency-").tempdir_in(git_dir)?;
        let index = dir.path().join("index");
        match copy_with_time(&git_dir.join("index"), &index) {
            // A worktree that git was killed in while making it has none yet.
            Err(err) if err.kind() == io::ErrorKind::NotFound => {}
            copied => copied?,
        }
        Ok(Self { git: git.with_variable("GIT_INDEX_FILE", index), dir })
    }

    /// Starts empty, for a directory that has no index.
    pub(crate) fn empty(git: Git, git_dir: &Path) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("agency-").tempdir_in(git_dir)?;
        let index = dir.path().join("index");
        Ok(Self { git: git.with_variable("GIT_INDEX_FILE", index), dir })
    }

    /// Starts as it was when it was last remembered there; false if it never was.
    pub(crate) fn from_cache(git: Git, git_dir: &Path, cache: &Path) -> io::Result<(Self, bool)> {
        let temp_index = Self::empty(git, git_dir)?;
        match copy_with_time(cache, &temp_index.dir.path().join("index")) {
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok((temp_index, false)),
            copied => copied.map(|()| (temp_index, true)),
        }
    }

    /// In one step, so that who reads it at the same time finds it whole.
    pub(crate) fn write_cache(&self, cache: &Path) -> io::Result<()> {
        let beside = tempfile::NamedTempFile::new_in(cache.parent().unwrap_or(cache))?;
        copy_with_time(&self.dir.path().join("index"), beside.path())?;
        beside.persist(cache).map(drop).map_err(|err| err.error)
    }

    /// Git with this index.
    pub(crate) fn git(&self) -> &Git {
        &self.git
    }

    /// None in the middle of a merge, when there is no tree of the index.
    pub(crate) fn staged_tree(&self) -> Result<Option<String>, ToolError> {
        match self.tree() {
            Err(ToolError::Failed { .. }) => Ok(None),
            tree => tree.map(Some),
        }
    }

    pub(crate) fn tree(&self) -> Result<String, ToolError> {
        self.git.change(&["write-tree"]).map(text)
    }

    /// Every file that is not ignored.
    pub(crate) fn add_all_files(&self) -> Result<(), ToolError> {
        self.add(&["--", ":/"])
    }

    /// As much as can be read. Returns what git said of the rest: files without permission, or
    /// repositories inside that have no commit yet.
    pub(crate) fn add_readable_files(&self) -> Result<Vec<String>, ToolError> {
        self.add_readable(&[":/"])
    }

    /// As [`Self::add_what_can_be_read`], without this directory.
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

    /// Ignored files too.
    pub(crate) fn add_ignored_files(&self) -> Result<(), ToolError> {
        match self.add(&["--force", "--ignore-errors", "--", ":/"]) {
            // Caches hold repositories and sockets that git cannot take; the rest is there.
            Err(ToolError::Failed { .. }) => Ok(()),
            added => added,
        }
    }

    /// These, whether they are there or not.
    pub(crate) fn add_paths(&self, paths: &[PathBuf]) -> Result<(), ToolError> {
        // Told of no path, git takes all of them.
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

    /// Makes the files of the checkout, which are as `now` says, those of `wanted`.
    pub(crate) fn check_out(&self, now: &str, wanted: &str) -> Result<(), ToolError> {
        if self.staged_tree()?.as_deref() != Some(now) {
            self.git.change(&["read-tree", now])?;
            // Entries that come from a tree know no file times; without them everything looks changed.
            self.git.change(&["update-index", "-q", "--refresh"])?;
        }
        self.git.change(&["read-tree", "-m", "-u", now, wanted]).map(drop)
    }
}

/// Git takes a file for unchanged by its size and the second it was written in, unless the index is no younger.
/// A copy that looks younger than it is hides what was written in the second of the last `git add`.
fn copy_with_time(from: &Path, to: &Path) -> io::Result<()> {
    let (mut from, mut to) = (File::open(from)?, File::create(to)?);
    let written = from.metadata()?.modified()?;
    io::copy(&mut from, &mut to)?;
    to.set_modified(written)
}

/// Files at places where `wanted` has one and `now` has none: untracked ones, and ignored ones, which git would
/// write over without a word.
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

/// Each ended by a zero byte.
pub(crate) fn parse_paths(listed: &[u8]) -> Vec<PathBuf> {
    let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect()
}

/// The path, or the first part of it, that is a file on the disk.
fn blocking_file(root: &Path, path: &Path) -> Option<PathBuf> {
    let mut parts: Vec<&Path> = path.ancestors().filter(|part| !part.as_os_str().is_empty()).collect();
    parts.reverse();
    let is_file = |part: &&&Path| root.join(part).symlink_metadata().is_ok_and(|meta| !meta.is_dir());
    parts.iter().find(is_file).map(|part| part.to_path_buf())
}

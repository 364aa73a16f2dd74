//! A temporary index next to the one of a checkout: it writes trees of files and checks trees out.
//!
//! Only reads the checkout's own index, and touches neither `HEAD` nor branches.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::git::Git;
use crate::index_entries::{IndexEntry, index_entries, join_paths};
use crate::tool::{ToolError, text};

/// The temporary index has all files that exist, also those outside a sparse checkout.
const WHOLE: &str = "core.sparseCheckout=false";

/// The index of the last check, in git's directory of the checkout. The removal after it starts from there.
const KEPT: &str = "agency-index";
/// Tells for which index of the checkout it was made.
const KEPT_STAMP: &str = "agency-index-of";

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
        Ok(Self { git: git.with_config(WHOLE).with_variable("GIT_INDEX_FILE", index), dir })
    }

    /// Starts empty, for a directory without an index.
    pub(crate) fn empty(git: Git, git_dir: &Path) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("agency-").tempdir_in(git_dir)?;
        let index = dir.path().join("index");
        Ok(Self { git: git.with_config(WHOLE).with_variable("GIT_INDEX_FILE", index), dir })
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

    /// Keeps a copy for [`Self::kept_for`].
    pub(crate) fn keep_for(&self, git_dir: &Path) -> io::Result<()> {
        let stamp = git_dir.join(KEPT_STAMP);
        match fs::remove_file(&stamp) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
            _ => {}
        }
        self.write_cache(&git_dir.join(KEPT))?;
        index_stamp(git_dir).map_or(Ok(()), |of| fs::write(stamp, of))
    }

    /// Starts as the copy of the last [`Self::keep_for`], which knows untracked files too. Returns None if the
    /// checkout's own index has changed since.
    pub(crate) fn kept_for(git: Git, git_dir: &Path) -> io::Result<Option<Self>> {
        let now = index_stamp(git_dir);
        if now.is_none() || fs::read_to_string(git_dir.join(KEPT_STAMP)).ok() != now {
            return Ok(None);
        }
        let (temp_index, is_known) = Self::from_cache(git, git_dir, &git_dir.join(KEPT))?;
        Ok(is_known.then_some(temp_index))
    }

    /// Git with this index.
    pub(crate) fn git(&self) -> &Git {
        &self.git
    }

    /// The directory of the index, deleted on drop.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Makes git look again at the files that `skip-worktree` and `assume-unchanged` hide. Entries of absent
    /// files under `skip-worktree` stay as they are.
    pub(crate) fn show_hidden_files(&self, root: &Path, entries: &[IndexEntry]) -> Result<(), ToolError> {
        self.clear_flags(entries.iter().filter(|entry| !entry.is_skipped || exists(root, &entry.path)))
    }

    /// Like [`Self::show_hidden_files`], also for absent files, which the next `add` then removes.
    pub(crate) fn show_all_files(&self) -> Result<(), ToolError> {
        self.clear_flags(index_entries(&self.git)?.iter())
    }

    fn clear_flags<'a>(
        &self,
        entries: impl Iterator<Item = &'a IndexEntry> + Clone,
    ) -> Result<(), ToolError> {
        let skipped = entries.clone().filter(|entry| entry.is_skipped);
        let assumed = entries.filter(|entry| entry.is_assumed_unchanged);
        self.update_paths("--no-skip-worktree", skipped.map(|entry| &*entry.path))?;
        self.update_paths("--no-assume-unchanged", assumed.map(|entry| &*entry.path))
    }

    /// Removes these entries. The files stay.
    pub(crate) fn remove_entries<'a>(&self, paths: impl Iterator<Item = &'a Path>) -> Result<(), ToolError> {
        self.update_paths("--force-remove", paths)
    }

    fn update_paths<'a>(&self, how: &str, paths: impl Iterator<Item = &'a Path>) -> Result<(), ToolError> {
        update_index_paths(&self.git, how, paths)
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
        let git = self.git.clone().with_variable("GIT_LITERAL_PATHSPECS", "1");
        let args = ["add", "--all", "--force", "--pathspec-from-file=-", "--pathspec-file-nul"];
        git.change_with_input(&args, &join_paths(paths.iter().map(PathBuf::as_path)))
    }

    fn add<A: AsRef<OsStr>>(&self, rest: &[A]) -> Result<(), ToolError> {
        let git =
            self.git.clone().with_config("core.safecrlf=false").with_config("advice.addEmbeddedRepo=false");
        let add = |options: &[&str]| {
            let options = ["add", "--all"].iter().chain(options).map(AsRef::as_ref);
            let args: Vec<&OsStr> = options.chain(rest.iter().map(AsRef::as_ref)).collect();
            git.change(&args).map(drop)
        };
        match add(&[]) {
            // The only entries are those of absent files under `skip-worktree`.
            Err(err) if err.stderr_contains("sparse-checkout definition") => add(&["--sparse"]),
            added => added,
        }
    }

    /// Compares all files with the index, so that unchanged ones are known.
    pub(crate) fn refresh(&self) -> Result<(), ToolError> {
        self.git.change(&["update-index", "-q", "--refresh"]).map(drop)
    }

    /// Makes the files of the checkout, which are those of `now`, the files of `wanted`.
    pub(crate) fn check_out(&self, now: &str, wanted: &str) -> Result<(), ToolError> {
        if self.staged_tree()?.as_deref() != Some(now) {
            self.git.change(&["read-tree", now])?;
            // Entries from a tree have no file times. Without this refresh every file looks changed.
            self.refresh()?;
        }
        self.git.change(&["read-tree", "-m", "-u", now, wanted]).map(drop)
    }
}

/// Runs `git update-index` with these paths, if there are any.
pub(crate) fn update_index_paths<'a>(
    git: &Git,
    how: &str,
    paths: impl Iterator<Item = &'a Path>,
) -> Result<(), ToolError> {
    let paths = join_paths(paths);
    if paths.is_empty() {
        return Ok(());
    }
    git.change_with_input(&["update-index", how, "-z", "--stdin"], &paths)
}

/// Changes with every change of the checkout's own index.
fn index_stamp(git_dir: &Path) -> Option<String> {
    let meta = git_dir.join("index").metadata().ok()?;
    Some(format!("{} {} {} {}", meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec()))
}

fn exists(root: &Path, path: &Path) -> bool {
    root.join(path).symlink_metadata().is_ok()
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

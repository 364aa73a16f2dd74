//! Brings back the details that a tree of git does not hold: raw bytes, modes, empty directories, flags and conflicts of the
//! index, an operation in progress.
//!
//! `details` has saved it. Afterwards the disk is compared with what was saved.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::conversion::converted_files;
use crate::details::{MANIFEST, NESTED, RAW, STATE, Store, hash_files, index_info, unescape};
use crate::disk::{Disk, DiskKind, mode_of, set_mode};
use crate::error::OperationCause;
use crate::git::Git;
use crate::ignored::ignored_paths;
use crate::index_entries::{IndexEntry, gitlinks, index_entries, join_paths};
use crate::manifest::Manifest;
use crate::operation_state::{delete_operation, is_setting};
use crate::repository::Repository;
use crate::temp_index::{TempIndex, update_index_paths};
use crate::tool::ToolError;

/// A file in the details, with its place in the workspace or in git's directory.
#[derive(Debug, Clone)]
struct SavedFile {
    mode: String,
    id: String,
    path: PathBuf,
}

/// The details of a saved commit.
#[derive(Debug)]
pub(crate) struct Details {
    pub(crate) manifest: Manifest,
    raw: Vec<SavedFile>,
    nested: Vec<SavedFile>,
    state: Vec<SavedFile>,
}

impl Details {
    pub(crate) fn read(repository: &Repository, commit: &str) -> Result<Self, ToolError> {
        let git = repository.git();
        let listed = git.read(&["ls-tree", "-r", "-z", "--full-tree", commit])?;
        let files: Vec<SavedFile> = listed.split(|byte| *byte == 0).filter_map(parse).collect();
        let below = |folder: &str| {
            let inside = |file: &SavedFile| {
                let path = file.path.strip_prefix(folder).ok()?.to_owned();
                Some(SavedFile { path, ..file.clone() })
            };
            files.iter().filter_map(inside).collect::<Vec<_>>()
        };
        let nested = below(NESTED).into_iter().map(|file| SavedFile { path: unescape(&file.path), ..file });
        let manifest = git.read(&["cat-file", "blob", &format!("{commit}:{MANIFEST}")])?;
        let manifest = Manifest::parse(&manifest);
        Ok(Self { manifest, nested: nested.collect(), raw: below(RAW), state: below(STATE) })
    }

    /// Writes the settings of the worktree: its sparse checkout.
    pub(crate) fn put_settings(&self, repository: &Repository, git_dir: &Path) -> Result<(), OperationCause> {
        let settings: Vec<SavedFile> =
            self.state.iter().filter(|file| is_setting(&file.path)).cloned().collect();
        write_files(repository, git_dir, &settings)
    }

    /// Writes files that git has not written as they were. `temp_index` has the files that it has written.
    pub(crate) fn put_files(
        &self,
        repository: &Repository,
        temp_index: &TempIndex,
        root: &Path,
    ) -> Result<(), OperationCause> {
        self.check_out_converted(temp_index, root)?;
        self.put_saved(repository, root, || walk_saved(temp_index.git(), root))
    }

    /// Writes the saved bytes, then directories and modes of everything in the `walk` that follows.
    pub(crate) fn put_saved<E: Into<OperationCause>>(
        &self,
        repository: &Repository,
        root: &Path,
        walk: impl FnOnce() -> Result<Disk, E>,
    ) -> Result<(), OperationCause> {
        write_files(repository, root, &self.raw)?;
        write_files(repository, root, &self.nested)?;
        let disk = walk().map_err(Into::into)?;
        self.put_directories(root, &disk).map_err(unwritable(root))?;
        self.put_modes(root, &disk).map_err(unwritable(root))
    }

    /// Makes the bytes and modes of some files as they were. All of them exist.
    pub(crate) fn put_some_files(
        &self,
        repository: &Repository,
        root: &Path,
        files: impl IntoIterator<Item = PathBuf>,
    ) -> Result<(), OperationCause> {
        write_files(repository, root, &self.raw)?;
        let mut disk = Disk::default();
        let saved = self.raw.iter().map(|file| file.path.clone());
        files.into_iter().chain(saved).for_each(|file| disk.add(root, &file));
        self.put_modes(root, &disk).map_err(unwritable(root))
    }

    /// Git does not write a file again that it takes for unchanged, whatever its bytes are.
    fn check_out_converted(&self, temp_index: &TempIndex, root: &Path) -> Result<(), ToolError> {
        let disk = walk_saved(temp_index.git(), root)?;
        let files = disk.entries.iter().filter(|entry| entry.kind == DiskKind::File);
        let sizes: HashMap<&Path, u64> = files.map(|entry| (&*entry.path, entry.size)).collect();
        let entries = index_entries(temp_index.git())?;
        let raw: HashSet<&Path> = self.raw.iter().map(|file| &*file.path).collect();
        let mut other = converted_files(temp_index, root, &entries, &sizes)?;
        other.retain(|file| !file.comes_back && !raw.contains(&*file.path));
        if other.is_empty() {
            return Ok(());
        }
        let paths = join_paths(other.iter().map(|file| &*file.path));
        let args = ["checkout-index", "--quiet", "--force", "--index", "-z", "--stdin"];
        temp_index.git().change_with_input(&args, &paths)
    }

    /// Creates the empty directories, and deletes those that came later.
    fn put_directories(&self, root: &Path, disk: &Disk) -> io::Result<()> {
        let wanted = &self.manifest.empty_directories;
        wanted.iter().try_for_each(|dir| fs::create_dir_all(root.join(dir)))?;
        let parents: HashSet<&Path> = wanted.iter().flat_map(|dir| dir.ancestors()).collect();
        let mut later: Vec<&Path> = disk
            .entries
            .iter()
            .filter(|entry| matches!(entry.kind, DiskKind::Directory { .. }))
            .map(|entry| &*entry.path)
            .filter(|dir| !parents.contains(dir))
            .collect();
        // Children come after their parents.
        later.reverse();
        for dir in later {
            match fs::remove_dir(root.join(dir)) {
                Err(err) if err.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                Err(err) if err.kind() == io::ErrorKind::NotFound => {}
                deleted => deleted?,
            }
        }
        Ok(())
    }

    fn put_modes(&self, root: &Path, before: &Disk) -> io::Result<()> {
        let created = self.manifest.empty_directories.iter().flat_map(|dir| dir.ancestors());
        let created = created.filter(|dir| !dir.as_os_str().is_empty());
        let nested = self.nested.iter().flat_map(|file| file.path.ancestors());
        let nested = nested.filter(|dir| !dir.as_os_str().is_empty());
        let known = before
            .entries
            .iter()
            .filter(|entry| matches!(entry.kind, DiskKind::File | DiskKind::Directory { .. }));
        let all = known.map(|entry| &*entry.path).chain(created).chain(nested);
        let all = all.chain(self.manifest.modes.keys().map(PathBuf::as_path));
        // A directory that becomes read-only must be the last of its files.
        for path in all.collect::<BTreeSet<&Path>>().into_iter().rev() {
            let full = root.join(path);
            let Ok(meta) = full.symlink_metadata().map(|meta| (meta.is_dir(), meta.is_symlink())) else {
                continue;
            };
            let (is_dir, is_link) = meta;
            let Some(mode) = mode_of(&full).filter(|_| !is_link) else { continue };
            let wanted = self.manifest.mode_of(path, is_dir || mode & 0o100 != 0);
            if mode != wanted {
                set_mode(&full, wanted)?;
            }
        }
        Ok(())
    }

    /// Makes the flags and conflicts of an index those of the manifest. `git` uses the worktree's own index.
    pub(crate) fn put_index(&self, git: &Git, root: &Path) -> Result<(), ToolError> {
        let Manifest { skipped, assumed_unchanged, conflicts, intended, .. } = &self.manifest;
        if !conflicts.is_empty() {
            let paths: BTreeSet<&Path> = conflicts.iter().map(|entry| &*entry.path).collect();
            update_index_paths(git, "--force-remove", paths.into_iter())?;
            let sides = conflicts.iter();
            let input = sides.flat_map(|entry| index_info(&entry.mode, &entry.id, entry.stage, &entry.path));
            git.change_with_input(&["update-index", "-z", "--index-info"], &input.collect::<Vec<u8>>())?;
        }
        let there = intended.iter().filter(|path| root.join(path).symlink_metadata().is_ok());
        let later = join_paths(there.map(PathBuf::as_path));
        if !later.is_empty() {
            let literal = git.clone().with_variable("GIT_LITERAL_PATHSPECS", "1");
            let args = ["add", "--intent-to-add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul"];
            literal.change_with_input(&args, &later)?;
        }
        git.change(&["update-index", "-q", "--unmerged", "--refresh"]).map(drop).or_else(ignore_failure)?;
        let entries = index_entries(git)?;
        let flagged = |is: fn(&IndexEntry) -> bool| {
            entries.iter().filter(move |entry| is(entry)).map(|entry| entry.path.clone()).collect()
        };
        let now: BTreeSet<PathBuf> = flagged(|entry| entry.is_skipped);
        set_flag(git, "skip-worktree", &now, skipped)?;
        let now: BTreeSet<PathBuf> = flagged(|entry| entry.is_assumed_unchanged);
        set_flag(git, "assume-unchanged", &now, assumed_unchanged)
    }

    /// Replaces the operation in progress by the saved one.
    pub(crate) fn put_operation(
        &self,
        repository: &Repository,
        git_dir: &Path,
    ) -> Result<(), OperationCause> {
        delete_operation(git_dir).map_err(unwritable(git_dir))?;
        let operation: Vec<SavedFile> =
            self.state.iter().filter(|file| !is_setting(&file.path)).cloned().collect();
        write_files(repository, git_dir, &operation)
    }

    /// Lists what is not as it was saved.
    pub(crate) fn differences(
        &self,
        git: &Git,
        root: &Path,
        git_dir: Option<&Path>,
    ) -> Result<Vec<PathBuf>, ToolError> {
        let mut other = other_bytes(git, root, self.manifest.converted.iter())?;
        let is_file = |file: &&SavedFile| file.mode.starts_with("100");
        let nested = self.nested.iter().filter(is_file).map(|file| (&file.path, &file.id));
        other.extend(other_bytes(git, root, nested)?);
        let modes = self.manifest.modes.iter();
        other.extend(
            modes
                .filter(|(path, mode)| mode_of(&root.join(path)) != Some(**mode))
                .map(|(path, _)| path.clone()),
        );
        let empty = self.manifest.empty_directories.iter();
        other.extend(empty.filter(|dir| !root.join(dir).is_dir()).cloned());
        if let Some(git_dir) = git_dir {
            let state = self.state.iter().map(|file| (&file.path, &file.id));
            let differing = other_bytes(git, git_dir, state)?;
            other.extend(differing.into_iter().map(|path| Path::new(".git").join(path)));
        }
        other.sort();
        other.dedup();
        Ok(other)
    }
}

fn ignore_failure(err: ToolError) -> Result<(), ToolError> {
    // Files that differ from the index are normal here.
    if matches!(err, ToolError::Failed { .. }) { Ok(()) } else { Err(err) }
}

fn set_flag(
    git: &Git,
    flag: &str,
    now: &BTreeSet<PathBuf>,
    wanted: &BTreeSet<PathBuf>,
) -> Result<(), ToolError> {
    let (cleared, set) = (now.difference(wanted), wanted.difference(now));
    update_index_paths(git, &format!("--no-{flag}"), cleared.map(PathBuf::as_path))?;
    update_index_paths(git, &format!("--{flag}"), set.map(PathBuf::as_path))
}

/// Walks everything but ignored files and submodules.
fn walk_saved(git: &Git, root: &Path) -> Result<Disk, ToolError> {
    let mut left_out: HashSet<PathBuf> = [".git", ".jj"].map(PathBuf::from).into();
    left_out.extend(ignored_paths(git)?);
    left_out.extend(gitlinks(git)?.into_iter().map(|(_, path)| path));
    Ok(Disk::walk(root, Path::new(""), &left_out))
}

/// Lets the owner write in every directory, so that git can replace files there.
pub(crate) fn open_directories(temp_index: &TempIndex, root: &Path) -> Result<(), OperationCause> {
    walk_saved(temp_index.git(), root)?.open_directories(root).map_err(unwritable(root))
}

/// Lists files whose bytes do not have these ids.
fn other_bytes<'a>(
    git: &Git,
    root: &Path,
    wanted: impl Iterator<Item = (&'a PathBuf, &'a String)>,
) -> Result<Vec<PathBuf>, ToolError> {
    let is_there = |path: &Path| root.join(path).symlink_metadata().is_ok_and(|meta| meta.is_file());
    let (there, missing): (Vec<_>, Vec<_>) = wanted.partition(|(path, _)| is_there(path));
    let paths: Vec<PathBuf> = there.iter().map(|(path, _)| (*path).clone()).collect();
    let now = hash_files(git, root, &paths, Store::No)?;
    let differing = there.into_iter().filter(|(path, id)| now.get(*path) != Some(*id));
    Ok(differing.chain(missing).map(|(path, _)| path.clone()).collect())
}

/// Parses `100644 blob <id>\t<path>`.
fn parse(entry: &[u8]) -> Option<SavedFile> {
    let tab = entry.iter().position(|byte| *byte == b'\t')?;
    let fields = String::from_utf8_lossy(&entry[..tab]).into_owned();
    let mut fields = fields.split(' ');
    let (mode, id) = (fields.next()?.to_owned(), fields.nth(1)?.to_owned());
    Some(SavedFile { mode, id, path: Path::new(OsStr::from_bytes(&entry[tab + 1..])).to_owned() })
}

/// Writes files with exactly the stored bytes. Git itself would convert them.
fn write_files(repository: &Repository, root: &Path, files: &[SavedFile]) -> Result<(), OperationCause> {
    if files.is_empty() {
        return Ok(());
    }
    let ids: String = files.iter().map(|file| format!("{}\n", file.id)).collect();
    let write = |from: &mut dyn BufRead| {
        files.iter().try_for_each(|file| write_file(from, &root.join(&file.path), &file.mode))
    };
    let written = repository.git().stream(&["cat-file", "--batch", "--buffer"], ids.as_bytes(), write);
    Ok(written?)
}

/// Reads `<id> blob <size>\n<content>\n`.
fn write_file(from: &mut dyn BufRead, path: &Path, mode: &str) -> io::Result<()> {
    let mut header = String::new();
    from.read_line(&mut header)?;
    let size = header.trim_end().rsplit(' ').next().and_then(|size| size.parse::<u64>().ok());
    let size = size.ok_or_else(|| io::Error::other(format!("git has no object: {}", header.trim_end())))?;
    let mut content = from.take(size);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::remove_file(path) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
        _ => {}
    }
    if mode == "120000" {
        let mut target = Vec::new();
        content.read_to_end(&mut target)?;
        symlink(std::ffi::OsString::from_vec(target), path)?;
    } else {
        io::copy(&mut content, &mut File::create_new(path)?)?;
        if mode == "100755" {
            let mode = mode_of(path).unwrap_or(0o644);
            // Like git: each reader of the file may run it.
            set_mode(path, mode | ((mode & 0o444) >> 2))?;
        }
    }
    from.read_exact(&mut [0])
}

fn unwritable(path: &Path) -> impl Fn(io::Error) -> OperationCause {
    let path = path.to_owned();
    move |source| OperationCause::Write { path: path.clone(), source }
}

//! The details of a workspace that a tree of git does not hold, as a commit beside it.
//!
//! The tree of this commit has a `manifest` (see there), the bytes of files that git does not give back as
//! they were (`raw/`), repositories in ignored folders (`nested/`), the sides of conflicts (`conflicts/`) and
//! the files of an operation in progress (`state/`). Commits that the operation names are its parents, so that
//! everything stays reachable.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use crate::conversion::converted_files;
use crate::disk::{Disk, DiskEntry, DiskKind, mode_of};
use crate::git::Git;
use crate::index_entries::{IndexEntry, index_entries};
use crate::manifest::{Manifest, usual_mode};
use crate::operation_state::{named_ids, state_files};
use crate::repository::{Repository, commit_tree};
use crate::temp_index::{TempIndex, parse_paths};
use crate::tool::{ToolError, text};

pub(crate) const MANIFEST: &str = "manifest";
pub(crate) const RAW: &str = "raw";
pub(crate) const NESTED: &str = "nested";
pub(crate) const STATE: &str = "state";
const CONFLICTS: &str = "conflicts";

/// Where to read details from.
pub(crate) struct DetailsSource<'a> {
    pub(crate) repository: &'a Repository,
    /// Holds all files that are saved.
    pub(crate) temp_index: &'a TempIndex,
    /// The workspace.
    pub(crate) root: &'a Path,
    /// None in jj.
    pub(crate) worktree: Option<OwnIndex<'a>>,
    /// Paths that are not saved: ignored files, and the directories of git and jj.
    pub(crate) left_out: &'a HashSet<PathBuf>,
    /// Repositories in ignored folders that are saved whole.
    pub(crate) nested: &'a [PathBuf],
    /// If given, only these files.
    pub(crate) only: Option<&'a HashSet<PathBuf>>,
}

/// The index of the worktree itself.
pub(crate) struct OwnIndex<'a> {
    /// Git's directory of the worktree.
    pub(crate) git_dir: &'a Path,
    /// Git with this index.
    pub(crate) git: &'a Git,
    pub(crate) entries: &'a [IndexEntry],
}

/// The ids of an empty file, by SHA-1 and SHA-256.
const EMPTY: [&str; 2] = [
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
];

/// An entry of the tree: mode, id and path.
type TreeEntry = (String, String, PathBuf);

impl DetailsSource<'_> {
    /// Writes the commit.
    pub(crate) fn save(&self) -> Result<String, ToolError> {
        let mut entries = index_entries(self.temp_index.git())?;
        let disk = match self.only {
            None => Disk::walk(self.root, Path::new(""), self.left_out),
            Some(only) => {
                entries.retain(|entry| only.contains(&entry.path));
                let mut disk = Disk::default();
                entries.iter().for_each(|entry| disk.add(self.root, &entry.path));
                disk
            }
        };
        let mut manifest = self.read_modes(&disk, &entries);
        let mut tree = self.save_converted(&disk, &entries, &mut manifest)?;
        for nested in self.nested {
            tree.extend(self.save_nested(nested)?);
        }
        let mut commits = Vec::new();
        if let Some(own) = &self.worktree {
            self.read_flags(own, &mut manifest)?;
            let side = |entry: &IndexEntry| {
                let path = Path::new(CONFLICTS).join(entry.stage.to_string()).join(&entry.path);
                (entry.mode.clone(), entry.id.clone(), path)
            };
            tree.extend(manifest.conflicts.iter().map(side));
            let (files, named) = self.save_state(own.git_dir)?;
            tree.extend(files);
            commits = named;
        }
        let id = self.git().read_with_input(&["hash-object", "-w", "--stdin"], &manifest.to_bytes())?;
        tree.push(("100644".into(), trim(&id), MANIFEST.into()));
        let parents: Vec<&str> = commits.iter().map(String::as_str).collect();
        let tree = self.write_tree(&tree)?;
        commit_tree(self.repository, &tree, &parents, "agency: modes, flags and raw files")
    }

    fn git(&self) -> &Git {
        self.temp_index.git()
    }

    fn read_modes(&self, disk: &Disk, entries: &[IndexEntry]) -> Manifest {
        let executable: HashSet<&Path> =
            entries.iter().filter(|entry| entry.mode == "100755").map(|entry| &*entry.path).collect();
        let mut manifest = Manifest { umask: self.umask(), ..Manifest::default() };
        for DiskEntry { path, kind, mode, .. } in &disk.entries {
            let is_open = match kind {
                DiskKind::File => executable.contains(&**path),
                DiskKind::Directory { is_leaf } => {
                    if *is_leaf {
                        manifest.empty_directories.insert(path.clone());
                    }
                    true
                }
                DiskKind::Link | DiskKind::Special => continue,
            };
            if *mode != usual_mode(manifest.umask, is_open) {
                manifest.modes.insert(path.clone(), *mode);
            }
        }
        manifest
    }

    /// Returns the umask of this process. No call reads it without changing it, so a new file and a new
    /// directory show it.
    fn umask(&self) -> u32 {
        let probe = self.temp_index.dir().join("umask");
        let made = fs::File::create(&probe).ok().and_then(|_| mode_of(&probe));
        let dir = self.temp_index.dir().join("umask-dir");
        let made_dir = fs::create_dir(&dir).ok().and_then(|()| mode_of(&dir));
        match (made, made_dir) {
            (Some(file), Some(dir)) => (0o666 & !file) | (0o777 & !dir),
            _ => 0o22,
        }
    }

    /// Stores the bytes that git would not give back.
    fn save_converted(
        &self,
        disk: &Disk,
        entries: &[IndexEntry],
        manifest: &mut Manifest,
    ) -> Result<Vec<TreeEntry>, ToolError> {
        let files = disk.entries.iter().filter(|entry| entry.kind == DiskKind::File);
        let sizes: HashMap<&Path, u64> = files.map(|entry| (&*entry.path, entry.size)).collect();
        let modes: HashMap<&Path, &str> = entries.iter().map(|entry| (&*entry.path, &*entry.mode)).collect();
        let converted = converted_files(self.temp_index, self.root, entries, &sizes)?;
        let (same, other): (Vec<_>, Vec<_>) = converted.into_iter().partition(|file| file.comes_back);
        let paths = |files: Vec<crate::conversion::ConvertedFile>| -> Vec<PathBuf> {
            files.into_iter().map(|file| file.path).collect()
        };
        let (same, other) = (paths(same), paths(other));
        manifest.converted = hash_files(self.git(), self.root, &same, Store::No)?;
        let raw = hash_files(self.git(), self.root, &other, Store::Yes)?;
        let entry = |(path, id): (&PathBuf, &String)| {
            let mode = modes.get(&**path).copied().unwrap_or("100644").to_owned();
            (mode, id.clone(), Path::new(RAW).join(path))
        };
        let tree = raw.iter().map(entry).collect();
        manifest.converted.extend(raw);
        Ok(tree)
    }

    /// Stores a whole repository: its files and its `.git`.
    fn save_nested(&self, nested: &Path) -> Result<Vec<TreeEntry>, ToolError> {
        let disk = Disk::walk(self.root, nested, self.left_out);
        let of_kind = |kind: DiskKind| disk.entries.iter().filter(move |entry| entry.kind == kind);
        let files: Vec<PathBuf> = of_kind(DiskKind::File).map(|entry| entry.path.clone()).collect();
        let stored = hash_files(self.git(), self.root, &files, Store::Yes)?;
        let place = |path: &Path| Path::new(NESTED).join(escape(path));
        let mut tree: Vec<TreeEntry> =
            stored.iter().map(|(path, id)| ("100644".into(), id.clone(), place(path))).collect();
        for entry in of_kind(DiskKind::Link) {
            let target = fs::read_link(self.root.join(&entry.path)).map_err(unreadable)?;
            let args = ["hash-object", "-w", "--stdin", "--no-filters"];
            let id = self.git().read_with_input(&args, target.as_os_str().as_bytes())?;
            tree.push(("120000".into(), trim(&id), place(&entry.path)));
        }
        Ok(tree)
    }

    fn read_flags(&self, own: &OwnIndex, manifest: &mut Manifest) -> Result<(), ToolError> {
        let staged = own.entries;
        let paths = |which: fn(&&IndexEntry) -> bool| {
            staged.iter().filter(which).map(|entry| entry.path.clone()).collect()
        };
        manifest.skipped = paths(|entry| entry.is_skipped);
        manifest.assumed_unchanged = paths(|entry| entry.is_assumed_unchanged);
        let is_absent = |path: &&PathBuf| self.root.join(path).symlink_metadata().is_err();
        manifest.absent = manifest.skipped.iter().filter(is_absent).cloned().collect();
        // Git stores an intended file as an empty one, and compares it with the disk as a new one.
        if staged.iter().any(|entry| EMPTY.contains(&entry.id.as_str())) {
            let args = ["diff-files", "--name-only", "-z", "--no-ext-diff", "--diff-filter=A"];
            manifest.intended = parse_paths(&own.git.read(&args)?).into_iter().collect();
        }
        manifest.conflicts = staged.iter().filter(|entry| entry.stage != 0).cloned().collect();
        Ok(())
    }

    /// Stores the files of git's directory. Also returns the commits that they name.
    fn save_state(&self, git_dir: &Path) -> Result<(Vec<TreeEntry>, Vec<String>), ToolError> {
        let files = state_files(git_dir);
        let stored = hash_files(self.git(), git_dir, &files, Store::Yes)?;
        let entry =
            |(path, id): (&PathBuf, &String)| ("100644".to_owned(), id.clone(), Path::new(STATE).join(path));
        let mut ids: Vec<String> = files
            .iter()
            .flat_map(|file| named_ids(&fs::read(git_dir.join(file)).unwrap_or_default()))
            .collect();
        ids.sort();
        ids.dedup();
        Ok((stored.iter().map(entry).collect(), only_commits(self.git(), &ids)?))
    }

    fn write_tree(&self, entries: &[TreeEntry]) -> Result<String, ToolError> {
        let index = self.temp_index.dir().join("details");
        let git = self.git().clone().with_variable("GIT_INDEX_FILE", index);
        let input: Vec<u8> =
            entries.iter().flat_map(|entry| index_info(&entry.0, &entry.1, 0, &entry.2)).collect();
        git.change_with_input(&["update-index", "-z", "--index-info"], &input)?;
        git.change(&["write-tree"]).map(text)
    }
}

/// Formats an entry for `git update-index --index-info`.
pub(crate) fn index_info(mode: &str, id: &str, stage: u8, path: &Path) -> Vec<u8> {
    let mut line = format!("{mode} {id} {stage}\t").into_bytes();
    line.extend_from_slice(path.as_os_str().as_bytes());
    line.push(0);
    line
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    Yes,
    No,
}

/// Returns the ids of the bytes of these files, without any conversion.
pub(crate) fn hash_files(
    git: &Git,
    root: &Path,
    files: &[PathBuf],
    store: Store,
) -> Result<BTreeMap<PathBuf, String>, ToolError> {
    match hash_all(git, root, files, store) {
        // An agent has deleted one of them meanwhile, or made it unreadable.
        Err(ToolError::Failed { .. }) => {
            let is_readable = |file: &&PathBuf| fs::File::open(root.join(file)).is_ok();
            let files: Vec<PathBuf> = files.iter().filter(is_readable).cloned().collect();
            hash_all(git, root, &files, store)
        }
        hashed => hashed,
    }
}

fn hash_all(
    git: &Git,
    root: &Path,
    files: &[PathBuf],
    store: Store,
) -> Result<BTreeMap<PathBuf, String>, ToolError> {
    if files.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut args = vec!["hash-object", "--no-filters", "--stdin-paths"];
    if store == Store::Yes {
        args.push("-w");
    }
    let input: Vec<u8> = files.iter().flat_map(|file| quote(&root.join(file))).collect();
    let ids = git.read_with_input(&args, &input)?;
    let ids = String::from_utf8_lossy(&ids).into_owned();
    Ok(files.iter().cloned().zip(ids.lines().map(str::to_owned)).collect())
}

/// Quotes a path as git does in its output, and ends it with a newline.
fn quote(path: &Path) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            b' '..=b'~' => quoted.push(*byte),
            byte => quoted.extend(format!("\\{byte:03o}").bytes()),
        }
    }
    quoted.extend(b"\"\n");
    quoted
}

fn only_commits(git: &Git, ids: &[String]) -> Result<Vec<String>, ToolError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let listed =
        git.read_with_input(&["cat-file", "--batch-check=%(objectname) %(objecttype)"], input.as_bytes())?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    Ok(listed.lines().filter_map(|line| line.strip_suffix(" commit")).map(str::to_owned).collect())
}

/// Git refuses paths with a part `.git`, so every part of a nested path gets a letter before it.
fn escape(path: &Path) -> PathBuf {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(part) => Some(part),
        _ => None,
    });
    parts.map(|part| OsString::from_vec([b"_", part.as_bytes()].concat())).collect()
}

pub(crate) fn unescape(path: &Path) -> PathBuf {
    let plain = |part: Component| {
        let part = part.as_os_str().as_bytes();
        OsStr::from_bytes(part.strip_prefix(b"_").unwrap_or(part)).to_owned()
    };
    path.components().map(plain).collect()
}

fn trim(id: &[u8]) -> String {
    String::from_utf8_lossy(id).trim().to_owned()
}

fn unreadable(source: io::Error) -> ToolError {
    ToolError::Start { command: "git hash-object".into(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_nested_paths_are_escaped() {
        let path = Path::new("vendor/.git/_a");
        assert_eq!(escape(path), Path::new("_vendor/_.git/__a"));
        assert_eq!(unescape(&escape(path)), path);
    }

    #[test]
    fn paths_are_quoted_as_git_reads_them() {
        assert_eq!(quote(Path::new("a \"b\"\n\\ü")), b"\"a \\\"b\\\"\\012\\\\\\303\\274\"\n");
    }
}

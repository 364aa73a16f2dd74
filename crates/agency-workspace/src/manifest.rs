//! The facts about a workspace that a tree of git does not hold: modes, empty directories, the flags and conflicts of the
//! index, and the ids of files that git converts.
//!
//! Only the record and its text. `details` fills and applies it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::index_entries::IndexEntry;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Manifest {
    /// The permissions that new files did not get. The modes of all files follow from it, except `modes`.
    pub(crate) umask: u32,
    /// Files and directories with other modes.
    pub(crate) modes: BTreeMap<PathBuf, u32>,
    pub(crate) empty_directories: BTreeSet<PathBuf>,
    /// Files under `skip-worktree`.
    pub(crate) skipped: BTreeSet<PathBuf>,
    /// Files under `skip-worktree` that did not exist.
    pub(crate) absent: BTreeSet<PathBuf>,
    /// Files under `assume-unchanged`.
    pub(crate) assumed_unchanged: BTreeSet<PathBuf>,
    /// Files of `git add --intent-to-add`.
    pub(crate) intended: BTreeSet<PathBuf>,
    /// The sides of conflicts in the index.
    pub(crate) conflicts: Vec<IndexEntry>,
    /// The ids of the bytes on the disk, for files that git converts.
    pub(crate) converted: BTreeMap<PathBuf, String>,
}

impl Manifest {
    /// Returns the mode of a file or directory. `is_open` means a directory or an executable file.
    pub(crate) fn mode_of(&self, path: &Path, is_open: bool) -> u32 {
        let usual = usual_mode(self.umask, is_open);
        self.modes.get(path).copied().unwrap_or(usual)
    }

    /// One record for each fact, each ended by a zero byte, because a path may contain anything else.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut push = |key: String, path: &Path| {
            text.extend_from_slice(key.as_bytes());
            text.extend_from_slice(path.as_os_str().as_bytes());
            text.push(0);
        };
        push(format!("umask {:o}", self.umask), Path::new(""));
        self.modes.iter().for_each(|(path, mode)| push(format!("mode {mode:o} "), path));
        for (key, paths) in [
            ("empty ", &self.empty_directories),
            ("skip-worktree ", &self.skipped),
            ("absent ", &self.absent),
            ("assume-unchanged ", &self.assumed_unchanged),
            ("intent-to-add ", &self.intended),
        ] {
            paths.iter().for_each(|path| push(key.to_owned(), path));
        }
        for IndexEntry { mode, id, stage, path, .. } in &self.conflicts {
            push(format!("conflict {mode} {id} {stage} "), path);
        }
        self.converted.iter().for_each(|(path, id)| push(format!("converted {id} "), path));
        text
    }

    /// Skips records that this version does not know.
    pub(crate) fn parse(text: &[u8]) -> Self {
        let mut manifest = Self::default();
        for record in text.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            manifest.parse_record(record);
        }
        manifest
    }

    fn parse_record(&mut self, record: &[u8]) -> Option<()> {
        let (key, rest) = split_field(record)?;
        let path = |rest: &[u8]| Path::new(OsStr::from_bytes(rest)).to_owned();
        match key.as_str() {
            "umask" => self.umask = u32::from_str_radix(&String::from_utf8_lossy(rest), 8).ok()?,
            "mode" => {
                let (mode, rest) = split_field(rest)?;
                self.modes.insert(path(rest), u32::from_str_radix(&mode, 8).ok()?);
            }
            "empty" => drop(self.empty_directories.insert(path(rest))),
            "skip-worktree" => drop(self.skipped.insert(path(rest))),
            "absent" => drop(self.absent.insert(path(rest))),
            "assume-unchanged" => drop(self.assumed_unchanged.insert(path(rest))),
            "intent-to-add" => drop(self.intended.insert(path(rest))),
            "conflict" => {
                let (mode, rest) = split_field(rest)?;
                let (id, rest) = split_field(rest)?;
                let (stage, rest) = split_field(rest)?;
                let (stage, path) = (stage.parse().ok()?, path(rest));
                let (is_skipped, is_assumed_unchanged) = (false, false);
                self.conflicts.push(IndexEntry { mode, id, stage, path, is_skipped, is_assumed_unchanged });
            }
            "converted" => {
                let (id, rest) = split_field(rest)?;
                self.converted.insert(path(rest), id);
            }
            _ => {}
        }
        Some(())
    }
}

/// Returns the mode that a new file or directory gets.
pub(crate) fn usual_mode(umask: u32, is_open: bool) -> u32 {
    (if is_open { 0o777 } else { 0o666 }) & !umask
}

fn split_field(record: &[u8]) -> Option<(String, &[u8])> {
    let space = record.iter().position(|byte| *byte == b' ')?;
    Some((String::from_utf8_lossy(&record[..space]).into_owned(), &record[space + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_parsed_as_it_was_written() {
        let set = |path: &str| BTreeSet::from([PathBuf::from(path)]);
        let manifest = Manifest {
            umask: 0o22,
            modes: BTreeMap::from([("id rsa".into(), 0o600), ("a\nb".into(), 0o4755)]),
            empty_directories: set("empty"),
            skipped: set("skip ped"),
            absent: set("absent"),
            assumed_unchanged: set("assumed"),
            intended: set("later"),
            conflicts: vec![IndexEntry {
                mode: "100644".into(),
                id: "12ab".into(),
                stage: 2,
                path: "read me".into(),
                is_skipped: false,
                is_assumed_unchanged: false,
            }],
            converted: BTreeMap::from([("a.txt".into(), "34cd".into())]),
        };
        assert_eq!(Manifest::parse(&manifest.to_bytes()), manifest);
        assert_eq!(Manifest::parse(b"umask 2\0later words\0").umask, 2);
        assert_eq!(
            (manifest.mode_of("id rsa".as_ref(), false), manifest.mode_of("x".as_ref(), true)),
            (0o600, 0o755)
        );
    }
}

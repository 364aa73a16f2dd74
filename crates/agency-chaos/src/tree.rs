//! The files of a workspace, to compare them before a removal and after it was taken back.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Mode and content of every file, without the version control's own files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    files: BTreeMap<PathBuf, (u32, Vec<u8>)>,
}

impl Tree {
    pub fn read(root: &Path) -> std::io::Result<Tree> {
        let mut tree = Tree::default();
        let mut dirs = vec![root.to_path_buf()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(&dir)? {
                let entry = entry?;
                if [".git", ".jj"].iter().any(|own| entry.file_name() == *own) {
                    continue;
                }
                let (path, meta) = (entry.path(), entry.metadata()?);
                if meta.is_dir() {
                    dirs.push(path);
                } else {
                    let name = path.strip_prefix(root).unwrap_or(&path).to_path_buf();
                    tree.files.insert(name, (meta.permissions().mode(), fs::read(&path)?));
                }
            }
        }
        Ok(tree)
    }

    /// The paths that differ.
    pub fn difference(&self, other: &Tree) -> Vec<PathBuf> {
        let paths = self.files.keys().chain(other.files.keys());
        let mut paths: Vec<PathBuf> =
            paths.filter(|path| self.files.get(*path) != other.files.get(*path)).cloned().collect();
        paths.sort();
        paths.dedup();
        paths
    }
}

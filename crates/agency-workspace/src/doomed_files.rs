//! The files that a removal is about to delete, and which of them are lost.
//!
//! Deletes nothing itself.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskKind};
use crate::environment::Environment;
use crate::error::RemoveCause;
use crate::git::Git;
use crate::ignored::{IgnoredFiles, has_own_commits, ignored_paths};
use crate::lost::Lost;
use crate::removal::RemoveOptions;
use crate::tool::ToolError;

/// All files of a workspace.
#[derive(Debug, Default)]
pub(crate) struct DoomedFiles {
    disk: Disk,
    ignored: IgnoredFiles,
    pub(crate) lost: Lost,
}

impl DoomedFiles {
    /// Refuses repositories in ignored folders that have commits of their own, unless they are saved or
    /// discarded.
    pub(crate) fn find(
        git: &Git,
        environment: &Environment,
        root: &Path,
        options: RemoveOptions,
    ) -> Result<Self, RemoveCause> {
        let own: HashSet<PathBuf> = [".git", ".jj"].map(PathBuf::from).into();
        let mut paths = ignored_paths(git)?;
        paths.retain(|path| !own.contains(path));
        let ignored = IgnoredFiles::find(root, &paths);
        if !options.discard && !options.keep_ignored {
            refuse_own_commits(environment, root, &ignored)?;
        }
        let left_out = paths.into_iter().chain(own).collect();
        let disk = Disk::walk(root, Path::new(""), &left_out);
        let special = disk.entries.iter().filter(|entry| entry.kind == DiskKind::Special);
        let unreadable = disk.unreadable.iter().map(|(path, _)| path);
        let unsaved = special.map(|entry| &entry.path).chain(unreadable).cloned().collect();
        let lost = Lost::of(&ignored, options.keep_ignored, unsaved);
        Ok(Self { disk, ignored, lost })
    }

    /// Returns the size of the files that a restore writes.
    pub(crate) fn saved_bytes(&self, options: RemoveOptions) -> u64 {
        let ignored = if options.keep_ignored { &self.ignored.disk.entries[..] } else { &[] };
        let files = self.disk.entries.iter().chain(ignored).filter(|entry| entry.kind == DiskKind::File);
        files.map(|entry| entry.size).sum()
    }

    /// Git cannot delete files in a directory in which their owner may not write.
    pub(crate) fn open_directories(&self, root: &Path) -> Result<(), ToolError> {
        let opened = self.disk.open_directories(root);
        let opened = opened.and_then(|()| self.ignored.disk.open_directories(root));
        opened.map_err(|source| ToolError::Start { command: "git worktree remove".into(), source })
    }
}

fn refuse_own_commits(
    environment: &Environment,
    root: &Path,
    ignored: &IgnoredFiles,
) -> Result<(), RemoveCause> {
    let mut paths = ignored.repositories();
    paths.retain(|path| has_own_commits(environment, &root.join(path)));
    if paths.is_empty() { Ok(()) } else { Err(RemoveCause::IgnoredRepositories { paths }) }
}

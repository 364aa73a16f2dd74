//! Stamps of files, directories and refs: two equal stamps mean that nothing has changed in between.
//!
//! Reads only metadata, and starts no process. A program can reset the modification time of a file, but not its
//! change time.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::project::{Kind, Project};
use crate::repository::Repository;

/// Files in git's directory that change when a branch or a setting does.
const REF_FILES: [&str; 4] = ["HEAD", "config", "packed-refs", "reftable/tables.list"];
const REF_FOLDERS: [&str; 3] = ["refs/heads", "refs/remotes", "refs/tags"];

/// Some file systems record times in steps of two seconds. A file that was changed less than this before can
/// change again without a new time.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// Collects the metadata of files.
pub(crate) struct Stamper {
    hasher: DefaultHasher,
    begun: SystemTime,
    newest: SystemTime,
}

impl Stamper {
    pub(crate) fn begin() -> Self {
        Self { hasher: DefaultHasher::new(), begun: SystemTime::now(), newest: UNIX_EPOCH }
    }

    /// Adds a file or directory. A directory changes when an entry is added, removed or renamed.
    pub(crate) fn add(&mut self, path: &Path) {
        path.hash(&mut self.hasher);
        self.add_metadata(path.symlink_metadata().ok().as_ref());
    }

    fn add_metadata(&mut self, meta: Option<&fs::Metadata>) {
        let of_file = meta.map(|meta| {
            let times = (meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec());
            (meta.dev(), meta.ino(), meta.mode(), meta.size(), times)
        });
        of_file.hash(&mut self.hasher);
        if let Some(meta) = meta {
            let changed = Duration::new(meta.ctime().max(0) as u64, meta.ctime_nsec().max(0) as u32);
            self.newest = self.newest.max(UNIX_EPOCH + changed);
        }
    }

    /// Adds a directory and everything in it, without the paths that `skips` names.
    pub(crate) fn add_tree(&mut self, path: &Path, skips: &impl Fn(&Path) -> bool) {
        let meta = path.symlink_metadata().ok();
        path.hash(&mut self.hasher);
        self.add_metadata(meta.as_ref());
        if !meta.is_some_and(|meta| meta.is_dir()) {
            return;
        }
        let mut entries: Vec<_> =
            fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        entries.sort();
        entries.iter().filter(|entry| !skips(entry)).for_each(|entry| self.add_tree(entry, skips));
    }

    /// Returns the stamp, or None if a file is so young that it could change again without a new time.
    pub(crate) fn finish(self) -> Option<u64> {
        let is_settled = self.newest + SETTLED_AFTER <= self.begun;
        is_settled.then(|| self.hasher.finish())
    }
}

/// Stamps everything that changes when a branch, a bookmark or the configuration does, and `more` in git's
/// directory. Leaves out the paths that `skips` names.
pub(crate) fn stamp_refs(
    project: &Project,
    repository: &Repository,
    more: &[&str],
    skips: &impl Fn(&Path) -> bool,
) -> Option<u64> {
    let mut stamper = Stamper::begin();
    for path in REF_FILES.iter().chain(&REF_FOLDERS).chain(more) {
        stamper.add_tree(&repository.common_dir().join(path), skips);
    }
    if let Kind::Jj(repository) = &project.kind {
        stamper.add_tree(&repository.operation_heads(), &|_| false);
    }
    stamper.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(path: &Path) -> u64 {
        let mut stamper = Stamper::begin();
        stamper.add_tree(path, &|entry| entry.ends_with("skipped"));
        stamper.hasher.finish()
    }

    #[test]
    fn every_change_changes_the_stamp_and_a_young_file_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("below/file");
        fs::create_dir_all(dir.path().join("below/skipped")).unwrap();
        fs::write(&file, "1").unwrap();
        let first = stamp(dir.path());
        assert_eq!(stamp(dir.path()), first);
        fs::write(dir.path().join("below/skipped/more"), "1").unwrap();
        assert_eq!(stamp(dir.path()), first);
        fs::write(&file, "12").unwrap();
        let second = stamp(dir.path());
        assert_ne!(second, first);
        fs::write(dir.path().join("below/new"), "").unwrap();
        assert_ne!(stamp(dir.path()), second);
        let mut stamper = Stamper::begin();
        stamper.add(&file);
        assert_eq!(stamper.finish(), None);
    }
}

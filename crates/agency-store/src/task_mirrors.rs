//! Mirrors: a copy of each task file of a project, in the state directory.
//!
//! A deleted task file is restored from its mirror. A mirror never replaces a task file that is there.

use std::io;
use std::path::{Path, PathBuf};

use agency_api::paths::create_private;
use agency_core::slug::TaskName;
use agency_core::task_file::TaskFile;

use crate::atomic;
use crate::task_directory::{self, Files, file_name};

/// The mirrors of one project.
pub(crate) struct TaskMirrors {
    directory: PathBuf,
    /// Takes the mirrors of files that were renamed.
    trash: PathBuf,
}

/// A deleted task file that could not be restored.
pub(crate) struct LostFile {
    pub(crate) name: TaskName,
    pub(crate) path: PathBuf,
    pub(crate) problem: String,
}

impl TaskMirrors {
    /// The mirrors of the project with this directory in the state directory.
    pub(crate) fn of(project: &Path) -> TaskMirrors {
        TaskMirrors { directory: project.join("tasks"), trash: project.join("trash") }
    }

    /// Makes the directory of the mirrors.
    pub(crate) fn make_directory(&self) -> io::Result<()> {
        create_private(&self.directory)
    }

    pub(crate) fn path(&self, name: &TaskName) -> PathBuf {
        self.directory.join(file_name(name))
    }

    /// Copies a task file to its mirror. Failing here must not stop the caller: the file itself is written.
    pub(crate) fn write(&self, name: &TaskName, bytes: &[u8]) {
        let mirror = self.path(name);
        // A daemon that boots reads every task file; to write and sync each mirror would take seconds.
        if task_directory::read(&mirror).is_ok_and(|known| known == bytes) {
            return;
        }
        if let Err(cause) = atomic::write(&mirror, bytes) {
            tracing::warn!(%cause, mirror = %mirror.display(), "cannot update the mirror of a task file");
        }
    }

    pub(crate) fn read(&self, name: &TaskName) -> Option<TaskFile> {
        TaskFile::parse(&task_directory::read(&self.path(name)).ok()?).ok()
    }

    /// Restores files that were deleted from `tasks`, for example by `git clean -fdx`, and adds them to `files`. Returns
    /// those whose mirror cannot be read.
    pub(crate) fn restore_deleted(&self, tasks: &Path, files: &mut Files) -> Vec<LostFile> {
        let mirrors = &self.directory;
        let found = task_directory::list(mirrors).unwrap_or_else(|cause| {
            tracing::warn!(%cause, mirrors = %mirrors.display(), "the mirrors cannot be listed");
            Vec::new()
        });
        let mut lost = Vec::new();
        for (name, mirror) in found {
            let path = tasks.join(file_name(&name));
            if let Some((now, _)) = files.get(&name.id) {
                if name != *now && path.symlink_metadata().is_err() {
                    self.follow_rename(&name, &mirror, now);
                }
                continue;
            }
            match restore(&mirror, &path, tasks) {
                Ok(()) => {
                    tracing::info!(task = %name, "restored a deleted task file from its mirror");
                    files.insert(name.id, (name, path));
                }
                Err(cause) => {
                    let problem = format!("it was deleted, and cannot be restored from its mirror: {cause}");
                    lost.push(LostFile { name, path, problem });
                }
            }
        }
        lost
    }

    /// The user renamed the file: renames its mirror too, so that it does not restore the old name.
    fn follow_rename(&self, name: &TaskName, mirror: &Path, now: &TaskName) {
        let follows = self.path(now);
        let moved = match follows.exists() {
            false => std::fs::rename(mirror, &follows),
            true => create_private(&self.trash)
                .and_then(|()| std::fs::rename(mirror, self.trash.join(file_name(name)))),
        };
        if let Err(cause) = moved {
            tracing::warn!(%cause, mirror = %mirror.display(), "cannot rename the mirror of a renamed task");
        }
    }
}

fn restore(mirror: &Path, path: &Path, tasks: &Path) -> io::Result<()> {
    let bytes = task_directory::read(mirror)?;
    std::fs::create_dir_all(tasks)?;
    atomic::write_with_mode(path, &bytes, 0o644)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_mirror_is_written_only_if_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        let mirrors = TaskMirrors::of(dir.path());
        mirrors.make_directory().unwrap();
        let name: TaskName = "1-one".parse().unwrap();
        let inode = || std::fs::metadata(mirrors.path(&name)).unwrap().ino();
        mirrors.write(&name, b"first");
        let first = inode();
        mirrors.write(&name, b"first");
        assert_eq!(inode(), first, "not replaced");
        mirrors.write(&name, b"second");
        assert_eq!(std::fs::read(mirrors.path(&name)).unwrap(), b"second");
    }
}

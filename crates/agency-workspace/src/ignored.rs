//! The ignored files of a workspace, and the repositories among them.
//!
//! Git saves none of them by itself. `lost` tells the user about them.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskEntry, DiskKind};
use crate::environment::Environment;
use crate::git::Git;
use crate::tool::ToolError;

/// Lists ignored files and directories. A directory that is ignored as a whole stands for everything in it.
pub(crate) fn ignored_paths(git: &Git) -> Result<Vec<PathBuf>, ToolError> {
    let args = ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignored=matching"];
    let listed = git.read(&[&args[..], &["--ignore-submodules=all"]].concat())?;
    let ignored = listed.split(|byte| *byte == 0).filter_map(|entry| entry.strip_prefix(b"!! "));
    // Without the slash at the end of directories.
    Ok(ignored.map(|path| Path::new(OsStr::from_bytes(path)).components().collect()).collect())
}

/// Everything that is ignored, as it is on the disk.
#[derive(Debug, Default)]
pub(crate) struct IgnoredFiles {
    pub(crate) disk: Disk,
}

impl IgnoredFiles {
    pub(crate) fn find(root: &Path, ignored: &[PathBuf]) -> Self {
        let mut disk = Disk::default();
        for path in ignored {
            disk.add(root, path);
        }
        Self { disk }
    }

    pub(crate) fn of_kind(&self, kind: DiskKind) -> impl Iterator<Item = &DiskEntry> {
        self.disk.entries.iter().filter(move |entry| entry.kind == kind)
    }

    /// Lists the repositories, without those inside another one.
    pub(crate) fn repositories(&self) -> Vec<PathBuf> {
        let doors =
            self.disk.entries.iter().filter(|entry| entry.path.file_name() == Some(OsStr::new(".git")));
        let parents: HashSet<&Path> = doors.filter_map(|entry| entry.path.parent()).collect();
        let is_outermost = |path: &&&Path| !path.ancestors().skip(1).any(|above| parents.contains(above));
        let mut found: Vec<PathBuf> =
            parents.iter().filter(is_outermost).map(|path| path.to_path_buf()).collect();
        found.sort();
        found
    }
}

/// Whether a repository has commits that no server has.
pub(crate) fn has_own_commits(environment: &Environment, repository: &Path) -> bool {
    let git = Git::discovering(environment, repository);
    let count = git.read_line(&["rev-list", "--count", "--all", "--not", "--remotes"]);
    // A repository that git cannot read may have some.
    count.map_or_else(|err| !err.stderr_contains("not a git repository"), |count| count != "0")
}

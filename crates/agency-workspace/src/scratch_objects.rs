//! A temporary object directory: git reads the objects of the repository and writes new ones here.
//!
//! A look at a workspace must not fill the repository. The objects disappear when the last user of the look
//! drops it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::process::{Pid, test_kill_process};
use tempfile::TempDir;

/// The process id follows. A process that was killed leaves its directories to the next one.
const PREFIX: &str = "agency-look-";

#[derive(Debug)]
pub(crate) struct ScratchObjects {
    dir: TempDir,
}

impl ScratchObjects {
    /// Creates a directory in the common directory of a repository, where there is room for objects.
    pub(crate) fn create(common_dir: &Path) -> io::Result<Arc<Self>> {
        delete_leftovers(common_dir);
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let dir = tempfile::Builder::new().prefix(&prefix).tempdir_in(common_dir)?;
        Ok(Arc::new(Self { dir }))
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Keeps the objects of a look as long as its result. Not part of the result.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeptObjects(pub(crate) Option<Arc<ScratchObjects>>);

impl PartialEq for KeptObjects {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for KeptObjects {}

/// Returns the variables with which git writes objects to `to`, and also finds those of the repository with
/// this common directory and of `others`. None if git could not read these paths.
pub(crate) fn object_variables(
    common_dir: &Path,
    to: &Path,
    others: &[&ScratchObjects],
) -> Option<[(&'static str, OsString); 2]> {
    let objects = common_dir.join("objects");
    let mut alternates = OsString::new();
    for path in [&*objects].into_iter().chain(others.iter().map(|other| other.path())) {
        // Git would read a colon as the end of the path.
        if path.as_os_str().as_bytes().iter().any(|byte| b":\"".contains(byte)) {
            return None;
        }
        if !alternates.is_empty() {
            alternates.push(":");
        }
        alternates.push(path);
    }
    let writes = ("GIT_OBJECT_DIRECTORY", to.as_os_str().to_owned());
    Some([writes, ("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternates)])
}

fn delete_leftovers(common_dir: &Path) {
    for entry in fs::read_dir(common_dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let pid = rest.split('-').next().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
        if pid.is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH)) {
            fs::remove_dir_all(entry.path())
                .unwrap_or_else(|left| tracing::debug!(%left, "the objects of a dead process stay"));
        }
    }
}

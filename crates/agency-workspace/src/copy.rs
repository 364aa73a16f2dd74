//! Copies ignored files into a new workspace: `.env`, local settings, installed dependencies.
//!
//! Shares blocks with the original where the file system can. A file appears under its name only when it is
//! complete, and never replaces an existing file, so an interrupted copy can be repeated. `include` decides
//! which files to copy.

use std::collections::HashSet;
use std::fs::{self, File, FileTimes, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::include::list_included_files;
use crate::name::WorkspaceName;
use crate::project::{Project, workspace_path};
use crate::tool::ToolError;

/// Holds a file until it is complete. Git excludes it like everything in `.agency/`.
const STAGE: &str = ".agency/copying";

/// The result of copying ignored files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copied {
    /// The number of files that were copied.
    pub files: u64,
    /// The files that could not be copied, each with the reason.
    pub left_out: Vec<String>,
}

/// Why ignored files could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The files could not be listed.
    #[error("cannot list the ignored files to copy")]
    List(#[from] ToolError),
    /// One file could not be copied, and others would fail too.
    #[error("cannot copy {} into the workspace", path.display())]
    File {
        /// The path that the error is about.
        path: PathBuf,
        /// The error below.
        source: io::Error,
    },
    /// The caller stopped the copying.
    #[error("copying was stopped")]
    Stopped,
}

impl CopyError {
    /// Returns a way out for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            CopyError::List(source) => source.hint(),
            CopyError::File { source, .. } if is_fatal(source) => Some("make room on that disk".into()),
            CopyError::File { .. } | CopyError::Stopped => None,
        }
    }
}

/// Copies the files that git ignores and that `.worktreeinclude` or `patterns` name. Calls `go_on` before
/// each file, and stops when it returns false.
pub fn copy_ignored(
    project: &Project,
    name: &WorkspaceName,
    patterns: &[String],
    mut go_on: impl FnMut() -> bool,
) -> Result<Copied, CopyError> {
    let (from, to) = (project.root(), workspace_path(project, name));
    let files = list_included_files(project, patterns)?;
    let mut copied = Copied::default();
    if files.is_empty() {
        return Ok(copied);
    }
    let mut target_dir =
        CopyTarget::open(&to).map_err(|source| CopyError::File { path: to.join(STAGE), source })?;
    for file in files {
        if !go_on() {
            return Err(CopyError::Stopped);
        }
        match target_dir.copy(&from.join(&file), &file) {
            Ok(is_new) => copied.files += u64::from(is_new),
            Err(source) if is_fatal(&source) => return Err(CopyError::File { path: file, source }),
            Err(cause) => copied.left_out.push(format!("{}: {cause}", file.display())),
        }
    }
    Ok(copied)
}

/// Whether the next file would fail in the same way.
fn is_fatal(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::ReadOnlyFilesystem)
}

/// The workspace that receives the copies.
struct CopyTarget {
    root: PathBuf,
    stage: PathBuf,
    /// Directories that are known to be real ones, all the way down.
    directories: HashSet<PathBuf>,
}

impl CopyTarget {
    fn open(root: &Path) -> io::Result<CopyTarget> {
        let mut target_dir =
            CopyTarget { root: root.to_owned(), stage: root.join(STAGE), directories: HashSet::new() };
        target_dir.ensure_directory(Path::new(STAGE))?;
        Ok(target_dir)
    }

    /// Returns false if the target exists already.
    fn copy(&mut self, from: &Path, to: &Path) -> io::Result<bool> {
        let target = self.root.join(to);
        if target.symlink_metadata().is_ok() {
            return Ok(false);
        }
        let meta = from.symlink_metadata()?;
        self.ensure_directory(to.parent().unwrap_or(Path::new("")))?;
        let staged = self.stage.join("file");
        remove_if_exists(&staged)?;
        if meta.is_symlink() {
            symlink(fs::read_link(from)?, &staged)?;
        } else if meta.is_file() {
            copy_file(from, &staged, &meta)?;
        } else {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is neither a file nor a link"));
        }
        rename_into_place(&staged, &target)
    }

    /// Makes the directory. Refuses a link, which could lead anywhere.
    fn ensure_directory(&mut self, directory: &Path) -> io::Result<()> {
        if directory.as_os_str().is_empty() || self.directories.contains(directory) {
            return Ok(());
        }
        self.ensure_directory(directory.parent().unwrap_or(Path::new("")))?;
        let path = self.root.join(directory);
        match fs::create_dir(&path) {
            Err(err) if err.kind() == ErrorKind::AlreadyExists && path.symlink_metadata()?.is_dir() => {}
            Err(err) if err.kind() == ErrorKind::AlreadyExists => {
                let problem = format!("{} is not a directory in the workspace", directory.display());
                return Err(io::Error::new(ErrorKind::NotADirectory, problem));
            }
            made => made?,
        }
        self.directories.insert(directory.to_owned());
        Ok(())
    }
}

impl Drop for CopyTarget {
    /// Deletes an incomplete copy in the stage, and the directory above it if that is empty.
    fn drop(&mut self) {
        let cleared = remove_if_exists(&self.stage.join("file")).and_then(|()| fs::remove_dir(&self.stage));
        if let Err(left) = cleared {
            tracing::warn!(stage = %self.stage.display(), %left, "an incomplete copy could not be removed");
        } else if let Some(above) = self.stage.parent() {
            // If it is not empty, the files in it are not ours and stay.
            fs::remove_dir(above).unwrap_or_default();
        }
    }
}

fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(err) if err.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn copy_file(from: &Path, to: &Path, meta: &Metadata) -> io::Result<()> {
    let mut source = OpenOptions::new().read(true).custom_flags(NO_FOLLOW).open(from)?;
    let mut target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    if !try_clone_blocks(&source, &target) {
        io::copy(&mut source, &mut target)?;
    }
    target.set_permissions(fs::Permissions::from_mode(meta.permissions().mode() & 0o7777))?;
    // Build tools compare modification times.
    target.set_times(FileTimes::new().set_modified(meta.modified()?))
}

const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

#[cfg(target_os = "linux")]
fn try_clone_blocks(source: &File, target: &File) -> bool {
    rustix::fs::ioctl_ficlone(target, source).is_ok()
}

/// On other systems `io::copy` shares blocks where it can.
#[cfg(not(target_os = "linux"))]
fn try_clone_blocks(_source: &File, _target: &File) -> bool {
    false
}

/// Renames the file to its final name. Returns false if another process has created that name meanwhile.
fn rename_into_place(staged: &Path, target: &Path) -> io::Result<bool> {
    match renameat_with(CWD, staged, CWD, target, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        // Some network file systems do not support this flag.
        Err(Errno::INVAL | Errno::NOSYS) if target.symlink_metadata().is_err() => {
            fs::rename(staged, target).map(|()| true)
        }
        Err(err) => Err(err.into()),
    }
}

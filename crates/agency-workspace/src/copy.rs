//! Copies ignored files into a fresh workspace: `.env`, local settings, installed dependencies.
//!
//! Shares blocks with the original where the file system can. A file is whole when it appears under its name,
//! and never takes the place of one that is there, so a copy that was cut short can be done again.
//! Not which files: see `include`.

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

/// Where a file is until it is whole. Excluded from git like all of `.agency/`.
const STAGE: &str = ".agency/copying";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Copied {
    pub files: u64,
    /// Files that could not be copied, each with the reason.
    pub left_out: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("cannot tell which ignored files to copy")]
    List(#[from] ToolError),
    #[error("cannot copy {} into the workspace", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the copying was stopped")]
    Stopped,
}

impl CopyError {
    pub fn hint(&self) -> Option<String> {
        match self {
            CopyError::List(source) => source.hint(),
            CopyError::File { source, .. } if is_fatal(source) => Some("make room on that disk".into()),
            CopyError::File { .. } | CopyError::Stopped => None,
        }
    }
}

/// Copies what `.worktreeinclude` and `patterns` name and git ignores. `go_on` is asked before each file.
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

/// The next file would fare no better.
fn is_fatal(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::ReadOnlyFilesystem)
}

/// The workspace that is copied into.
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

    /// False if one is there already.
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

    /// Makes the directory. One that is a link could lead anywhere.
    fn ensure_directory(&mut self, directory: &Path) -> io::Result<()> {
        if directory.as_os_str().is_empty() || self.directories.contains(directory) {
            return Ok(());
        }
        self.ensure_directory(directory.parent().unwrap_or(Path::new("")))?;
        let path = self.root.join(directory);
        match fs::create_dir(&path) {
            Err(err) if err.kind() == ErrorKind::AlreadyExists && path.symlink_metadata()?.is_dir() => {}
            Err(err) if err.kind() == ErrorKind::AlreadyExists => {
                let problem = format!("{} is no directory in the workspace", directory.display());
                return Err(io::Error::new(ErrorKind::NotADirectory, problem));
            }
            made => made?,
        }
        self.directories.insert(directory.to_owned());
        Ok(())
    }
}

impl Drop for CopyTarget {
    /// What is left in the stage is half a file of ours; the directory above goes if nothing else is in it.
    fn drop(&mut self) {
        let cleared = remove_if_exists(&self.stage.join("file")).and_then(|()| fs::remove_dir(&self.stage));
        if let Err(left) = cleared {
            tracing::warn!(stage = %self.stage.display(), %left, "half a copy stays behind");
        } else if let Some(above) = self.stage.parent() {
            // Somebody else's files are in it, and stay.
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
    // Build tools go by it.
    target.set_times(FileTimes::new().set_modified(meta.modified()?))
}

const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

#[cfg(target_os = "linux")]
fn try_clone_blocks(source: &File, target: &File) -> bool {
    rustix::fs::ioctl_ficlone(target, source).is_ok()
}

/// There `io::copy` does what can be done.
#[cfg(not(target_os = "linux"))]
fn try_clone_blocks(_source: &File, _target: &File) -> bool {
    false
}

/// Gives the file its name, unless somebody else has it by now.
fn rename_into_place(staged: &Path, target: &Path) -> io::Result<bool> {
    match renameat_with(CWD, staged, CWD, target, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        // Some network file systems cannot promise it.
        Err(Errno::INVAL | Errno::NOSYS) if target.symlink_metadata().is_err() => {
            fs::rename(staged, target).map(|()| true)
        }
        Err(err) => Err(err.into()),
    }
}

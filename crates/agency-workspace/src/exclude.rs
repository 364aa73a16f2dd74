//! Keeps `.agency/` out of git, through the repository's own exclude file.
//!
//! Never through `.gitignore`, which belongs to everyone who shares the repository.

use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::git::Git;
use crate::project::{Kind, Project};
use crate::repository::resolve_path;
use crate::tool::ToolError;

/// The exclude file could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum ExcludeError {
    /// The exclude file was not found.
    #[error("cannot find the exclude file of {}", root.display())]
    Git {
        /// The root of the project.
        root: PathBuf,
        /// The error below.
        source: ToolError,
    },
    /// The exclude file cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The path that the error is about.
        path: PathBuf,
        /// The error below.
        source: io::Error,
    },
}

impl ExcludeError {
    /// Returns a way out for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            ExcludeError::Git { source, .. } => source.hint(),
            ExcludeError::Write { .. } => {
                Some("add .agency/ to an exclude file yourself, or git shows it as untracked".into())
            }
        }
    }
}

/// Adds the line once. For a plain directory inside a repository, the line goes into the exclude file of that
/// repository.
pub fn exclude_agency_dir(project: &Project) -> Result<(), ExcludeError> {
    let Some((path, pattern)) = find_exclude_file(project)? else { return Ok(()) };
    add_line(&path, &pattern).map_err(|source| ExcludeError::Write { path, source })
}

/// Returns the exclude file if it has our line.
pub(crate) fn find_exclude_line(project: &Project) -> Result<Option<PathBuf>, ExcludeError> {
    let found = find_exclude_file(project)?;
    let has_line = |(path, pattern): &(PathBuf, Vec<u8>)| {
        fs::read(path).is_ok_and(|content| has_line(&content, pattern))
    };
    Ok(found.filter(has_line).map(|(path, _)| path))
}

/// Removes the line, and leaves the rest of the file as it is.
pub(crate) fn remove_exclude_line(project: &Project) -> Result<(), ExcludeError> {
    let Some((path, pattern)) = find_exclude_file(project)? else { return Ok(()) };
    remove_line(&path, &pattern).map_err(|source| ExcludeError::Write { path, source })
}

/// Returns the exclude file, and the pattern that matches this project's `.agency` in it.
fn find_exclude_file(project: &Project) -> Result<Option<(PathBuf, Vec<u8>)>, ExcludeError> {
    let found = match &project.kind {
        Kind::Git(repository) => Ok(Some((repository.common_dir().to_owned(), b"/.agency/".to_vec()))),
        Kind::Jj(repository) => Ok(Some((repository.store().common_dir().to_owned(), b"/.agency/".to_vec()))),
        Kind::Plain(environment) => {
            enclosing_repository(&Git::discovering(environment, project.root()), project.root())
        }
    };
    let found = found.map_err(|source| ExcludeError::Git { root: project.root().to_owned(), source })?;
    Ok(found.map(|(common_dir, pattern)| (common_dir.join("info/exclude"), pattern)))
}

/// Returns the repository around a plain directory, and the pattern that matches its `.agency` there.
fn enclosing_repository(git: &Git, root: &Path) -> Result<Option<(PathBuf, Vec<u8>)>, ToolError> {
    let common_dir = match resolve_path(git, root, "--git-common-dir") {
        Err(ToolError::Failed { .. } | ToolError::Missing { .. }) => return Ok(None),
        found => found?,
    };
    let prefix = git.read_line(&["rev-parse", "--show-prefix"])?;
    let mut pattern = b"/".to_vec();
    for byte in prefix.as_bytes() {
        if b"*?[\\".contains(byte) {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    pattern.extend(b".agency/");
    Ok(Some((common_dir, pattern)))
}

fn add_line(path: &Path, line: &[u8]) -> io::Result<()> {
    // Dotfile managers make this file a link. Write through the link.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut content = match fs::read(&path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read?,
    };
    if has_line(&content, line) {
        return Ok(());
    }
    if content.last().is_some_and(|byte| *byte != b'\n') {
        content.push(b'\n');
    }
    content.extend(line);
    content.push(b'\n');
    replace(&path, &content)
}

fn remove_line(path: &Path, line: &[u8]) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let content = match fs::read(&path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(()),
        read => read?,
    };
    if !has_line(&content, line) {
        return Ok(());
    }
    let others =
        content.split_inclusive(|byte| *byte == b'\n').filter(|known| known.trim_ascii_end() != line);
    replace(&path, &others.collect::<Vec<_>>().concat())
}

fn has_line(content: &[u8], line: &[u8]) -> bool {
    content.split(|byte| *byte == b'\n').any(|known| known.trim_ascii_end() == line)
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let dir = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(dir)?;
    let permissions = match fs::metadata(path) {
        Ok(meta) => meta.permissions(),
        Err(_) => fs::Permissions::from_mode(0o644),
    };
    let mut new = NamedTempFile::new_in(dir)?;
    new.write_all(content)?;
    new.as_file().set_permissions(permissions)?;
    new.as_file().sync_all()?;
    new.persist(path)?;
    Ok(())
}

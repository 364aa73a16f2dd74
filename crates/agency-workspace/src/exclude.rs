//! Keeps `.agency/` out of git, through the repository's own exclude file.
//!
//! Never through `.gitignore`, which belongs to everyone who shares the repository.

use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::git::{Git, GitError};
use crate::project::{Kind, Project};
use crate::repository::resolved;

#[derive(Debug, thiserror::Error)]
pub enum ExcludeError {
    #[error("cannot find the exclude file of {}", root.display())]
    Git { root: PathBuf, source: GitError },
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl ExcludeError {
    pub fn hint(&self) -> Option<String> {
        match self {
            ExcludeError::Git { source, .. } => source.hint(),
            ExcludeError::Write { .. } => {
                Some("or exclude .agency/ yourself: git takes it for untracked files".into())
            }
        }
    }
}

/// Adds the line once. A plain directory inside a repository is kept out of that one.
pub fn exclude(project: &Project) -> Result<(), ExcludeError> {
    let found = match &project.kind {
        Kind::Git(repository) => Ok(Some((repository.common_dir().to_owned(), b"/.agency/".to_vec()))),
        Kind::Plain(environment) => around(&Git::discovering(environment, project.root()), project.root()),
    };
    let found = found.map_err(|source| ExcludeError::Git { root: project.root().to_owned(), source })?;
    let Some((common_dir, pattern)) = found else { return Ok(()) };
    let path = common_dir.join("info/exclude");
    add_line(&path, &pattern).map_err(|source| ExcludeError::Write { path, source })
}

/// The repository around a plain directory, and the pattern that means its `.agency` there.
fn around(git: &Git, root: &Path) -> Result<Option<(PathBuf, Vec<u8>)>, GitError> {
    let common_dir = match resolved(git, root, "--git-common-dir") {
        Err(GitError::Failed { .. } | GitError::Missing) => return Ok(None),
        found => found?,
    };
    let prefix = git.line(&["rev-parse", "--show-prefix"])?;
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
    // Dotfile managers make it a link; the link stays.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut content = match fs::read(&path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read?,
    };
    if content.split(|byte| *byte == b'\n').any(|known| known.trim_ascii_end() == line) {
        return Ok(());
    }
    if content.last().is_some_and(|byte| *byte != b'\n') {
        content.push(b'\n');
    }
    content.extend(line);
    content.push(b'\n');
    replace(&path, &content)
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

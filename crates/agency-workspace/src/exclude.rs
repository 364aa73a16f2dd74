//! Keeps `.agency/` out of git, through the repository's own exclude file. The project's configuration in it is not kept
//! out: it belongs to everyone who works in the project.
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

/// Adds the lines once. For a plain directory inside a repository, the lines go into the exclude file of that
/// repository.
pub fn exclude_agency_dir(project: &Project) -> Result<(), ExcludeError> {
    let Some((path, lines)) = find_exclude_file(project)? else { return Ok(()) };
    change(&path, |content| lines.added_to(content)).map_err(|source| ExcludeError::Write { path, source })
}

/// Replaces the line of earlier versions, which kept the project's configuration out of git, too.
pub fn update_exclude_lines(project: &Project) -> Result<(), ExcludeError> {
    let Some((path, lines)) = find_exclude_file(project)? else { return Ok(()) };
    let update = |content: &[u8]| match has_line(content, &lines.former) {
        true => lines.added_to(content),
        false => content.to_vec(),
    };
    change(&path, update).map_err(|source| ExcludeError::Write { path, source })
}

/// Returns the exclude file if it has a line of ours.
pub(crate) fn find_exclude_line(project: &Project) -> Result<Option<PathBuf>, ExcludeError> {
    let found = find_exclude_file(project)?;
    let has_lines = |(path, lines): &(PathBuf, Lines)| {
        fs::read(path).is_ok_and(|content| lines.all().any(|line| has_line(&content, line)))
    };
    Ok(found.filter(has_lines).map(|(path, _)| path))
}

/// Removes our lines, and leaves the rest of the file as it is.
pub(crate) fn remove_exclude_line(project: &Project) -> Result<(), ExcludeError> {
    let Some((path, lines)) = find_exclude_file(project)? else { return Ok(()) };
    change(&path, |content| lines.removed_from(content))
        .map_err(|source| ExcludeError::Write { path, source })
}

/// The lines about the `.agency` of one project.
struct Lines {
    /// Everything in the directory.
    everything: Vec<u8>,
    /// The configuration, which belongs to everyone who works in the project.
    but_configuration: Vec<u8>,
    /// The line of earlier versions.
    former: Vec<u8>,
}

impl Lines {
    /// `place`: the directory around `.agency`, as a pattern.
    fn below(place: &[u8]) -> Lines {
        Lines {
            everything: [place, b".agency/*"].concat(),
            but_configuration: [b"!", place, b".agency/config.toml"].concat(),
            former: [place, b".agency/"].concat(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Vec<u8>> {
        [&self.everything, &self.but_configuration, &self.former].into_iter()
    }

    fn removed_from(&self, content: &[u8]) -> Vec<u8> {
        let is_ours = |line: &&[u8]| self.all().any(|ours| line.trim_ascii_end() == ours.as_slice());
        let others = content.split_inclusive(|byte| *byte == b'\n').filter(|line| !is_ours(line));
        others.collect::<Vec<_>>().concat()
    }

    /// The second line has an effect only after the first one.
    fn added_to(&self, content: &[u8]) -> Vec<u8> {
        let is_complete = has_line(content, &self.everything) && has_line(content, &self.but_configuration);
        if is_complete && !has_line(content, &self.former) {
            return content.to_vec();
        }
        let mut content = self.removed_from(content);
        if content.last().is_some_and(|byte| *byte != b'\n') {
            content.push(b'\n');
        }
        for line in [&self.everything, &self.but_configuration] {
            content.extend(line);
            content.push(b'\n');
        }
        content
    }
}

/// Returns the exclude file, and the lines about this project's `.agency` in it.
fn find_exclude_file(project: &Project) -> Result<Option<(PathBuf, Lines)>, ExcludeError> {
    let found = match &project.kind {
        Kind::Git(repository) => Ok(Some((repository.common_dir().to_owned(), b"/".to_vec()))),
        Kind::Jj(repository) => Ok(Some((repository.store().common_dir().to_owned(), b"/".to_vec()))),
        Kind::Plain(environment) => {
            enclosing_repository(&Git::discovering(environment, project.root()), project.root())
        }
    };
    let found = found.map_err(|source| ExcludeError::Git { root: project.root().to_owned(), source })?;
    Ok(found.map(|(common_dir, place)| (common_dir.join("info/exclude"), Lines::below(&place))))
}

/// Returns the repository around a plain directory, and the pattern that matches the directory there.
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
    Ok(Some((common_dir, pattern)))
}

/// Replaces the file if its content changes.
fn change(path: &Path, new_content: impl Fn(&[u8]) -> Vec<u8>) -> io::Result<()> {
    // Dotfile managers make this file a link. Write through the link.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let content = match fs::read(&path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read?,
    };
    let new = new_content(&content);
    if new == content { Ok(()) } else { replace(&path, &new) }
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

//! A private file that holds a text while the user edits it.
//!
//! Invariant: a text that the user wrote is not lost. The file stays until the text is stored elsewhere.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use agency_api::paths::{StateDir, create_private};
use agency_api::{Failure, FailureCode};
use tokio::signal::unix::{SignalKind, signal};

use crate::{editor, output};

/// A file in the directory of drafts.
#[derive(Debug)]
pub(crate) struct Draft {
    path: PathBuf,
}

impl Draft {
    /// Creates a new file `{name}.{number}.{extension}`. Two drafts of one name are two files.
    pub(crate) fn create(
        state: &StateDir,
        name: &str,
        extension: &str,
        text: &[u8],
    ) -> Result<Draft, Failure> {
        let drafts = state.root().join("drafts");
        let created = create_numbered(&drafts, name, extension, text);
        created.map(|path| Draft { path }).map_err(|err| {
            Failure::new("cannot create a file for the text").code(FailureCode::IoError).caused_by(&err)
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn read(&self) -> Result<Vec<u8>, Failure> {
        std::fs::read(&self.path).map_err(|err| {
            let message = format!("cannot read {}", self.path.display());
            Failure::new(message).code(FailureCode::IoError).caused_by(&err)
        })
    }

    /// Replaces the content of the file.
    pub(crate) fn overwrite(&self, text: &[u8]) -> io::Result<()> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&self.path);
        file?.write_all(text)
    }

    /// Deletes the file.
    pub(crate) fn delete(self) {
        if let Err(err) = std::fs::remove_file(&self.path) {
            output::warning(&format!("cannot delete {}: {err}", self.path.display()));
        }
    }

    /// Opens the file in the user's editor and waits until the editor exits.
    pub(crate) async fn edit(&self) -> Result<(), Failure> {
        let words = editor::words()?;
        let none = || Failure::new("there is no editor").code(FailureCode::CommandNotFound);
        let (program, words) = words.split_first().ok_or_else(none)?;
        let failed = |code: FailureCode, cause: String| {
            Failure::new("the editor failed")
                .code(code)
                .because(format!("{program}: {cause}"))
                .hint("set $VISUAL or $EDITOR")
        };
        // Ctrl-c in the editor sends SIGINT to us too. We must not exit while the editor runs.
        let _interrupts =
            signal(SignalKind::interrupt()).map_err(|err| failed(FailureCode::Internal, err.to_string()))?;
        let status = tokio::process::Command::new(program).args(words).arg(&self.path).status().await;
        match status {
            Ok(status) if status.success() => Ok(()),
            // Editors exit with another code than 0 when the user gives up, as by `:cq`.
            Ok(status) => Err(failed(FailureCode::Cancelled, status.to_string())),
            Err(err) => Err(failed(FailureCode::CommandNotFound, err.to_string())),
        }
    }
}

fn create_numbered(drafts: &Path, name: &str, extension: &str, text: &[u8]) -> io::Result<PathBuf> {
    create_private(drafts)?;
    let safe: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(40).collect();
    let mut number: u64 = 1;
    loop {
        let path = drafts.join(format!("{safe}.{number}.{extension}"));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => return file.write_all(text).map(|()| path),
            Err(err) if err.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(err) => return Err(err),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn drafts_never_overwrite_each_other_and_are_private() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::at(home.path().join("state"));
        let first = Draft::create(&state, "../fix", "md", b"one").unwrap();
        let second = Draft::create(&state, "../fix", "md", b"two").unwrap();
        assert_eq!(first.path().parent(), Some(state.root().join("drafts").as_path()));
        assert_eq!((first.read().unwrap(), second.read().unwrap()), (b"one".into(), b"two".into()));
        assert_eq!(std::fs::metadata(first.path()).unwrap().permissions().mode() & 0o777, 0o600);
        first.overwrite(b"1").unwrap();
        assert_eq!(first.read().unwrap(), b"1");
    }
}

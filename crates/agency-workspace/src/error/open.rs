//! Why a project cannot be opened.

use std::io;
use std::path::PathBuf;

use crate::tool::ToolError;

/// Why a project could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory cannot be read.
    #[error("cannot enter {}", path.display())]
    Directory {
        /// The path that the error is about.
        path: PathBuf,
        /// The error below.
        source: io::Error,
    },
    /// There is no git repository.
    #[error("{} is not in a git repository", path.display())]
    NotARepository {
        /// The path that the error is about.
        path: PathBuf,
    },
    /// There is no jj repository.
    #[error("{} is not in a jj repository", path.display())]
    NotAJjRepository {
        /// The path that the error is about.
        path: PathBuf,
    },
    /// jj is not installed.
    #[error("{} is a jj repository, and jj is not installed, or not in the PATH", path.display())]
    JjMissing {
        /// The path that the error is about.
        path: PathBuf,
    },
    /// The main checkout of the repository was not found.
    #[error("the main checkout of the repository {} cannot be found from {}", git_dir.display(), path.display())]
    NoMainCheckout {
        /// The directory of the repository.
        git_dir: PathBuf,
        /// The path that the error is about.
        path: PathBuf,
    },
    /// git failed.
    #[error("cannot open the repository of {}", path.display())]
    Git {
        /// The path that the error is about.
        path: PathBuf,
        /// The error below.
        source: ToolError,
    },
}

impl OpenError {
    /// Returns a way out for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            OpenError::Directory { .. } => None,
            OpenError::NotARepository { .. } => Some(
                "run `git init` and commit, or work in the directory itself: agency new SLUG --vcs none"
                    .into(),
            ),
            OpenError::NotAJjRepository { .. } => Some("run `jj git init`, or leave --vcs jj out".into()),
            OpenError::JjMissing { .. } => {
                Some("install jj, or work in the directory itself: agency new SLUG --vcs none".into())
            }
            OpenError::NoMainCheckout { .. } => Some("run the command in the main checkout".into()),
            OpenError::Git { source, .. } => source.hint(),
        }
    }
}

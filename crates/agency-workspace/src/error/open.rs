//! Why a project cannot be opened.

use std::io;
use std::path::PathBuf;

use crate::tool::ToolError;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot enter {}", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("{} is not in a git repository", path.display())]
    NotARepository { path: PathBuf },
    #[error("{} is not in a jj repository", path.display())]
    NotAJjRepository { path: PathBuf },
    #[error("{} is a jj repository, and jj is not installed, or not in the PATH", path.display())]
    JjMissing { path: PathBuf },
    #[error("the main checkout of the repository {} cannot be found from {}", git_dir.display(), path.display())]
    NoMainCheckout { git_dir: PathBuf, path: PathBuf },
    #[error("cannot open the repository of {}", path.display())]
    Git { path: PathBuf, source: ToolError },
}

impl OpenError {
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

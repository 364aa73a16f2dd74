//! The uncommitted files of the user's main checkout.
//!
//! Not those of a workspace: see `state`.

use std::path::PathBuf;

use crate::project::{Kind, Project};
use crate::tool::ToolError;
use crate::uncommitted::uncommitted_files;

/// The main checkout could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the main checkout {}", root.display())]
pub struct CheckoutError {
    /// The root of the project.
    pub root: PathBuf,
    /// The error of git.
    pub source: ToolError,
}

impl CheckoutError {
    /// Returns a way out for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        self.source.hint()
    }
}

/// Lists the uncommitted files of the main checkout. A new workspace does not have them. The list is empty
/// for a bare repository and for a plain directory.
pub fn dirty_checkout(project: &Project) -> Result<Vec<PathBuf>, CheckoutError> {
    match &project.kind {
        Kind::Git(repository) if !repository.is_bare() => {
            let git = repository.git().with_work_tree(repository.root());
            uncommitted_files(&git, &["--", ":/", ":(top,exclude).agency"])
                .map_err(|source| CheckoutError { root: project.root().to_owned(), source })
        }
        // The working copy of a jj user is a commit like any other, and new workspaces start on it.
        Kind::Git(_) | Kind::Jj(_) | Kind::Plain(_) => Ok(Vec::new()),
    }
}

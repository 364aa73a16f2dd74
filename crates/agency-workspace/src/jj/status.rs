//! The present content of a jj workspace, read without jj: its operation log and the agent's files stay as
//! they are.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use crate::error::OperationCause;
use crate::jj::files::write_current_tree;
use crate::jj::repository::{JjRepository, Revision};
use crate::jj::staleness::{files_operation, stale_commit};
use crate::jj::workspace::JjWorkspace;
use crate::name::WorkspaceName;
use crate::presence::Presence;
use crate::repository::{commit_tree, tree_of};

#[derive(Debug)]
pub(crate) struct JjStatus {
    path: PathBuf,
    target: Revision,
    /// None where the directory is gone.
    tree: Option<String>,
}

impl JjStatus {
    pub(crate) fn read(repository: &JjRepository, name: &WorkspaceName) -> Result<Self, OperationCause> {
        let found = JjWorkspace::find(repository, name)?;
        let target = match (&found.target, found.presence()) {
            (Some(target), Presence::DirectoryGone) => target.clone(),
            _ => found.ready(repository, name)?.clone(),
        };
        let is_ready = found.presence() == Presence::Ready;
        let tree = is_ready.then(|| write_current_tree(repository, name, &target)).transpose()?;
        Ok(Self { path: repository.workspace_path(name), target, tree })
    }

    /// Equal for the same commit and the same files.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.target.id, &self.tree, files_operation(&self.path)).hash(&mut hasher);
        hasher.finish()
    }

    /// Returns a commit of all the work, on no branch. Ignores files that are stale.
    pub(crate) fn commit(&self, repository: &JjRepository) -> Result<String, OperationCause> {
        let (store, target) = (repository.store(), &self.target.id);
        let Some(tree) = &self.tree else { return Ok(target.clone()) };
        let lags = stale_commit(&repository.jj_in_task(&self.path), &self.path)?.is_some();
        if lags || *tree == tree_of(store, target)? {
            return Ok(target.clone());
        }
        Ok(commit_tree(store, tree, &[target], "agency: work in progress")?)
    }
}

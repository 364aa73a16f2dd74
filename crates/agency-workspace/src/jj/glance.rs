//! What is in a jj workspace right now, found out without jj: nothing gets into its log by it, and an agent's files
//! stay as they are.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use crate::jj::files::tree_now;
use crate::jj::repository::{JjRepository, Revision};
use crate::jj::staleness::{lagging_behind, operation_of_files};
use crate::jj::workspace::Jujutsu;
use crate::kept::{commit_tree, tree_of};
use crate::name::WorkspaceName;
use crate::operation::OperationCause;
use crate::state::Presence;

#[derive(Debug)]
pub(crate) struct Glance {
    path: PathBuf,
    target: Revision,
    /// None where the directory is gone.
    tree: Option<String>,
}

impl Glance {
    pub(crate) fn at(repository: &JjRepository, name: &WorkspaceName) -> Result<Self, OperationCause> {
        let found = Jujutsu::look(repository, name)?;
        let target = match (&found.target, found.presence()) {
            (Some(target), Presence::DirectoryGone) => target.clone(),
            _ => found.ready(repository, name)?.clone(),
        };
        let is_ready = found.presence() == Presence::Ready;
        let tree = is_ready.then(|| tree_now(repository, name, &target)).transpose()?;
        Ok(Self { path: repository.workspace_path(name), target, tree })
    }

    /// Equal for the same commit and the same files.
    pub(crate) fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.target.id, &self.tree, operation_of_files(&self.path)).hash(&mut hasher);
        hasher.finish()
    }

    /// A commit of all the work, on nobody's branch. Files that lag behind their commit do not count.
    pub(crate) fn commit(&self, repository: &JjRepository) -> Result<String, OperationCause> {
        let (store, target) = (repository.store(), &self.target.id);
        let Some(tree) = &self.tree else { return Ok(target.clone()) };
        let lags = lagging_behind(&repository.jj_inside(&self.path), &self.path)?.is_some();
        if lags || *tree == tree_of(store, target)? {
            return Ok(target.clone());
        }
        Ok(commit_tree(store, tree, &[target], "agency: work in progress")?)
    }
}

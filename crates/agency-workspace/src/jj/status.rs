//! The present content of a jj workspace, read without jj: its operation log, its objects and the agent's files
//! stay as they are.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::OperationCause;
use crate::jj::files::current_index;
use crate::jj::repository::{JjRepository, Revision};
use crate::jj::staleness::{files_operation, stale_commit};
use crate::jj::workspace::JjWorkspace;
use crate::merge_tree::WorkCommit;
use crate::name::WorkspaceName;
use crate::presence::Presence;
use crate::repository::{commit_tree, tree_of};
use crate::scratch_objects::{KeptObjects, ScratchObjects};

#[derive(Debug)]
pub(crate) struct JjStatus {
    path: PathBuf,
    target: Revision,
    /// None where the directory is gone.
    tree: Option<(String, Arc<ScratchObjects>)>,
}

impl JjStatus {
    pub(crate) fn read(repository: &JjRepository, name: &WorkspaceName) -> Result<Self, OperationCause> {
        let found = JjWorkspace::find(repository, name)?;
        let target = match (&found.target, found.presence()) {
            (Some(target), Presence::DirectoryGone) => target.clone(),
            _ => found.ready(repository, name)?.clone(),
        };
        let path = repository.workspace_path(name);
        let tree = match found.presence() {
            Presence::Ready => {
                let objects = repository.store().scratch_objects()?;
                let index = current_index(&repository.store().writing_to(&objects), &path, &target)?;
                Some((index.tree()?, objects))
            }
            _ => None,
        };
        Ok(Self { path, target, tree })
    }

    /// Equal for the same commit and the same files.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let tree = self.tree.as_ref().map(|(tree, _)| tree);
        (&self.target.id, tree, files_operation(&self.path)).hash(&mut hasher);
        hasher.finish()
    }

    /// Returns a commit of all the work, on no branch. Ignores files that are stale.
    pub(crate) fn commit(&self, repository: &JjRepository) -> Result<WorkCommit, OperationCause> {
        let (store, target) = (repository.store(), &self.target.id);
        let Some((tree, objects)) = &self.tree else { return Ok(WorkCommit::stored(target)) };
        let lags = stale_commit(&repository.jj_in_task(&self.path), &self.path)?.is_some();
        if lags || *tree == tree_of(store, target)? {
            return Ok(WorkCommit::stored(target));
        }
        let id = commit_tree(&store.writing_to(objects), tree, &[target], "agency: work in progress")?;
        Ok(WorkCommit { id, objects: KeptObjects(Some(objects.clone())) })
    }
}

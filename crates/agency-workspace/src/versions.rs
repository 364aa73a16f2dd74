//! The git objects of a project of any kind, and the work in its workspaces as objects.
//!
//! Changes nothing but the object store; a look at a workspace not even that.

use crate::error::OperationCause;
use crate::git_workspace::{GitWorkspace, not_ready};
use crate::jj;
use crate::merged_refs;
use crate::name::WorkspaceName;
use crate::presence::Presence;
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::saved_commit::{Completeness, Contents};
use crate::scratch_objects::KeptObjects;
use crate::tool::ToolError;

impl Project {
    /// Returns the git repository, or None for a plain directory.
    pub(crate) fn git_repository(&self) -> Option<&Repository> {
        match &self.kind {
            Kind::Git(repository) => Some(repository),
            Kind::Jj(repository) => Some(repository.store()),
            Kind::Plain(_) => None,
        }
    }

    pub(crate) fn require_repository(&self) -> Result<&Repository, OperationCause> {
        self.git_repository().ok_or_else(|| OperationCause::Plain { path: self.root().to_owned() })
    }

    /// Whether a directory or a branch of the workspace exists.
    pub(crate) fn has_workspace(&self, name: &WorkspaceName) -> Result<bool, ToolError> {
        match &self.kind {
            Kind::Git(repository) => Ok(GitWorkspace::find(repository, name)?.presence() != Presence::Absent),
            Kind::Jj(repository) => Ok(jj::presence(repository, name)? != Presence::Absent),
            Kind::Plain(_) => Ok(false),
        }
    }

    /// Returns the commits of a base, the one of its server included. Empty if there is no such base.
    pub(crate) fn base_tips(&self, base: Option<&str>) -> Result<Vec<String>, ToolError> {
        match &self.kind {
            Kind::Git(repository) => merged_refs::base_tips(repository, base),
            Kind::Jj(repository) => repository.tips(base),
            Kind::Plain(_) => Ok(Vec::new()),
        }
    }

    /// Reads the content of the workspace, or of its branch if the directory is gone, without writing to the
    /// repository. Also returns the objects of that content. jj itself saves changed files, as each of its
    /// commands does.
    pub(crate) fn read_contents(
        &self,
        name: &WorkspaceName,
    ) -> Result<(Contents, KeptObjects), OperationCause> {
        match &self.kind {
            Kind::Git(repository) => {
                let objects = repository.scratch_objects()?;
                let contents = read_worktree(&repository.writing_to(&objects), name)?;
                Ok((contents, KeptObjects(Some(objects))))
            }
            Kind::Jj(repository) => {
                let objects = repository.store().scratch_objects()?;
                let store = repository.store().writing_to(&objects);
                let (contents, _) = jj::contents(repository, name, &store, Completeness::Trees)?;
                Ok((contents, KeptObjects(Some(objects))))
            }
            Kind::Plain(_) => Err(OperationCause::Plain { path: self.root().to_owned() }),
        }
    }
}

fn read_worktree(repository: &Repository, name: &WorkspaceName) -> Result<Contents, OperationCause> {
    let found = GitWorkspace::find(repository, name)?;
    match (&found.worktree, found.head()) {
        (Some(worktree), head) => Contents::read_readable(repository, worktree, head, Completeness::Trees),
        (None, Some(tip)) if found.presence() == Presence::DirectoryGone => {
            Ok(Contents::of_commit(repository, tip)?)
        }
        (None, _) => Err(not_ready(repository, name, &found)),
    }
}

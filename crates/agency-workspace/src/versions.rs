//! The git objects behind a project, whatever kind it is, and the work in its workspaces as such.
//!
//! Changes nothing but the object store.

use crate::jj;
use crate::merged_refs;
use crate::name::WorkspaceName;
use crate::operation::OperationCause;
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::saved_commit::Contents;
use crate::state::{GitWorkspace, Presence};
use crate::tool::ToolError;
use crate::worktree::Worktree;

impl Project {
    /// None for a plain directory.
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

    /// Whether a directory or a branch is left of it.
    pub(crate) fn has_workspace(&self, name: &WorkspaceName) -> Result<bool, ToolError> {
        match &self.kind {
            Kind::Git(repository) => Ok(GitWorkspace::find(repository, name)?.presence() != Presence::Absent),
            Kind::Jj(repository) => Ok(jj::presence(repository, name)? != Presence::Absent),
            Kind::Plain(_) => Ok(false),
        }
    }

    /// The commits a base stands for, its server's included; none if there is no such base.
    pub(crate) fn base_tips(&self, base: Option<&str>) -> Result<Vec<String>, ToolError> {
        match &self.kind {
            Kind::Git(repository) => merged_refs::base_tips(repository, base),
            Kind::Jj(repository) => repository.tips(base),
            Kind::Plain(_) => Ok(Vec::new()),
        }
    }

    /// What is in the workspace now, or on its branch if the directory is gone.
    pub(crate) fn read_contents(&self, name: &WorkspaceName) -> Result<Contents, OperationCause> {
        match &self.kind {
            Kind::Git(repository) => {
                let found = GitWorkspace::find(repository, name)?;
                match (&found.worktree, found.head()) {
                    (Some(worktree), head) => Contents::read_readable(repository, worktree, head),
                    (None, Some(tip)) if found.presence() == Presence::DirectoryGone => {
                        Ok(Contents::of_commit(repository, tip)?)
                    }
                    (None, _) => Err(not_ready(repository, name, &found)),
                }
            }
            Kind::Jj(repository) => Ok(jj::contents(repository, name)?.0),
            Kind::Plain(_) => Err(OperationCause::Plain { path: self.root().to_owned() }),
        }
    }
}

/// A workspace that is there to work in.
pub(crate) struct ReadyWorkspace {
    pub(crate) found: GitWorkspace,
    pub(crate) worktree: Worktree,
}

impl ReadyWorkspace {
    pub(crate) fn find(repository: &Repository, name: &WorkspaceName) -> Result<Self, OperationCause> {
        let found = GitWorkspace::find(repository, name)?;
        match (&found.worktree, found.presence()) {
            (Some(worktree), Presence::Ready) => Ok(Self { worktree: worktree.clone(), found }),
            _ => Err(not_ready(repository, name, &found)),
        }
    }
}

fn not_ready(repository: &Repository, name: &WorkspaceName, found: &GitWorkspace) -> OperationCause {
    OperationCause::NotReady { path: repository.workspace_path(name), presence: found.presence() }
}

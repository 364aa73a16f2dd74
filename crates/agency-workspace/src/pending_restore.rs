//! A record of a restore in progress, and the completion of a restore that was interrupted.
//!
//! The record is a commit under `refs/agency/restoring/` whose message names the saved commit. A restore writes
//! the files first, then the index, and moves the branch. A process that is interrupted in between leaves files
//! of one moment on a branch of another.

use crate::error::OperationCause;
use crate::git_workspace::ReadyWorkspace;
use crate::name::WorkspaceName;
use crate::put_back::put_back;
use crate::repository::{Repository, commit_tree, tree_of};
use crate::saved_commit::Ignored;
use crate::tool::ToolError;
use crate::trash::{self, TrashReason};

const FOLDER: &str = "refs/agency/restoring/";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingRestore {
    pub(crate) name: WorkspaceName,
    /// The saved commit to restore.
    pub(crate) commit: String,
}

/// Completes the restore of one workspace, if it was interrupted.
pub(crate) fn recover_restore(repository: &Repository, name: &WorkspaceName) -> Result<(), OperationCause> {
    let pending = pending_restores(repository, &format!("{FOLDER}{name}"))?;
    pending.iter().try_for_each(|pending| pending.recover(repository))
}

/// Lists the restores of all workspaces that were interrupted.
pub(crate) fn all_pending_restores(repository: &Repository) -> Result<Vec<PendingRestore>, ToolError> {
    pending_restores(repository, FOLDER)
}

fn pending_restores(repository: &Repository, under: &str) -> Result<Vec<PendingRestore>, ToolError> {
    let refs = repository.hidden_refs(under)?;
    Ok(refs.iter().filter_map(|hidden| PendingRestore::parse(&hidden.reference, &hidden.message)).collect())
}

impl PendingRestore {
    fn reference(&self) -> String {
        format!("{FOLDER}{}", self.name)
    }

    pub(crate) fn write(&self, repository: &Repository) -> Result<(), ToolError> {
        let Self { name, commit } = self;
        let message = format!("agency: restoring workspace {name}\n\nAgency-Restore: {commit}\n");
        let note = commit_tree(repository, &tree_of(repository, commit)?, &[commit], &message)?;
        repository.git().change(&["update-ref", &self.reference(), &note]).map(drop)
    }

    fn parse(reference: &str, message: &str) -> Option<Self> {
        let commit = message.lines().find_map(|line| line.strip_prefix("Agency-Restore: "))?.to_owned();
        Some(Self { name: reference.strip_prefix(FOLDER)?.parse().ok()?, commit })
    }

    pub(crate) fn delete(&self, repository: &Repository) -> Result<(), ToolError> {
        repository.git().change(&["update-ref", "-d", &self.reference()]).map(drop)
    }

    /// Saves the present files, which may be half written or the user's, and restores again.
    pub(crate) fn recover(&self, repository: &Repository) -> Result<(), OperationCause> {
        match ReadyWorkspace::find(repository, &self.name) {
            Ok(ready) => {
                let found = &ready.found;
                trash::save_workspace(repository, &self.name, found, TrashReason::Loose, Ignored::Left)?;
                put_back(repository, &self.name, &ready, &self.commit)?;
            }
            // Without files there is nothing to complete.
            Err(OperationCause::NotReady { .. }) => {}
            Err(cause) => return Err(cause),
        }
        Ok(self.delete(repository)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_parsed_as_it_was_written() {
        let (reference, message) =
            ("refs/agency/restoring/1-fix", "agency: restoring workspace 1-fix\n\nAgency-Restore: 1a\n");
        let pending = PendingRestore::parse(reference, message).unwrap();
        assert_eq!((pending.name.as_str(), pending.commit.as_str()), ("1-fix", "1a"));
        assert_eq!(PendingRestore::parse(reference, "words"), None);
    }
}

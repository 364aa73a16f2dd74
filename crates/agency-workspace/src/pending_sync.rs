//! The note that a workspace is being synced, and what to do when it is found.
//!
//! A commit under `refs/agency/syncing/` whose message says what was to happen. Git writes the files first, then
//! the index, and the branch moves last; whoever is cut off between them leaves files of the base that look like
//! the task's own work.

use std::collections::HashSet;
use std::path::PathBuf;

use tracing::warn;

use crate::diff::changed_files;
use crate::merge::{TargetCheckout, refuse_busy_or_other_branch};
use crate::name::WorkspaceName;
use crate::operation::{Operation, OperationCause, OperationError};
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::saved_commit::{Contents, Trailers, commit_tree, tree_of};
use crate::temp_index::parse_paths;
use crate::tool::ToolError;
use crate::trash::{self, TrashReason};
use crate::trial_worktree::IntegrationLock;
use crate::versions::ReadyWorkspace;
use crate::worktree::Worktree;

const FOLDER: &str = "refs/agency/syncing/";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingSync {
    pub(crate) name: WorkspaceName,
    pub(crate) base: String,
    /// The workspace's branch before and after.
    pub(crate) before: String,
    pub(crate) after: String,
}

/// Settles syncs that were cut off: each is finished, or taken back. [`crate::recover_integrations()`] does it too.
pub fn recover_syncs(project: &Project) -> Result<(), OperationError> {
    // Of jj a sync is one operation.
    let Kind::Git(repository) = &project.kind else { return Ok(()) };
    let notes =
        pending_syncs(repository, FOLDER).inspect_err(|err| warn!(%err, "notes of syncs cannot be read"));
    for pending in notes.unwrap_or_default() {
        let settle = || pending.recover(repository, &IntegrationLock::acquire(repository)?);
        settle().map_err(Operation::Sync.failed(&pending.name))?;
    }
    Ok(())
}

/// Settles the sync of one workspace, if it was cut off.
pub(crate) fn recover_sync(
    repository: &Repository,
    name: &WorkspaceName,
    lock: &IntegrationLock,
) -> Result<(), OperationCause> {
    let notes = pending_syncs(repository, &format!("{FOLDER}{name}"))?;
    notes.iter().try_for_each(|pending| pending.recover(repository, lock).map(drop))
}

fn pending_syncs(repository: &Repository, under: &str) -> Result<Vec<PendingSync>, ToolError> {
    let notes = repository.hidden_refs(under)?;
    Ok(notes.iter().filter_map(|note| PendingSync::parse(&note.reference, &note.message)).collect())
}

impl PendingSync {
    fn reference(&self) -> String {
        format!("{FOLDER}{}", self.name)
    }

    pub(crate) fn write(&self, repository: &Repository) -> Result<(), ToolError> {
        let Self { name, base, before, after } = self;
        let message = format!(
            "agency: syncing workspace {name}\n\nAgency-Sync: {before} {after}\nAgency-Base: {base}\n"
        );
        let commit = commit_tree(repository, &tree_of(repository, after)?, &[before, after], &message)?;
        repository.git().change(&["update-ref", &self.reference(), &commit]).map(drop)
    }

    fn parse(reference: &str, message: &str) -> Option<Self> {
        let said = |key: &str| message.lines().find_map(|line| line.strip_prefix(key));
        let (before, after) = said("Agency-Sync: ")?.split_once(' ')?;
        Some(Self {
            name: reference.strip_prefix(FOLDER)?.parse().ok()?,
            base: said("Agency-Base: ")?.to_owned(),
            before: before.to_owned(),
            after: after.to_owned(),
        })
    }

    /// The branch moves, if it still is where it was, and the note goes, both at once.
    pub(crate) fn complete(&self, repository: &Repository) -> Result<(), ToolError> {
        let Self { name, base, before, after } = self;
        let steps =
            format!("update refs/heads/{} {after} {before}\ndelete {}\n", name.branch(), self.reference());
        let why = format!("agency: sync with {base}");
        repository.git().change_with_input(&["update-ref", "-m", &why, "--stdin"], steps.as_bytes())
    }

    /// Nothing is left to be settled.
    pub(crate) fn delete(&self, repository: &Repository) -> Result<(), ToolError> {
        repository.git().change(&["update-ref", "-d", &self.reference()]).map(drop)
    }

    /// With all files there the sync is finished; otherwise those that came are taken back. Whether it is finished.
    pub(crate) fn recover(
        &self,
        repository: &Repository,
        _: &IntegrationLock,
    ) -> Result<bool, OperationCause> {
        let tip = repository.branch_tip(&self.name.branch())?;
        let ready = match ReadyWorkspace::find(repository, &self.name) {
            // Without files, or on commits that somebody made since, there is nothing to go on with.
            Ok(ready) if tip.as_ref() == Some(&self.before) => ready,
            Ok(_) | Err(OperationCause::NotReady { .. }) => {
                return Ok(self.delete(repository).map(|()| false)?);
            }
            Err(cause) => return Err(cause),
        };
        refuse_busy_or_other_branch(repository, &self.name, &ready.found, &ready.worktree)?;
        if self.is_staged(repository, &ready.worktree)? {
            return Ok(self.complete(repository).map(|()| true)?);
        }
        self.roll_back(repository, &ready.worktree)?;
        Ok(self.delete(repository).map(|()| false)?)
    }

    fn incoming_files(&self, repository: &Repository) -> Result<HashSet<PathBuf>, ToolError> {
        let files = changed_files(repository, &self.before, &self.after)?;
        Ok(files.into_iter().flat_map(|file| file.old_path.into_iter().chain([file.path])).collect())
    }

    /// Git writes the index when all files are there.
    fn is_staged(&self, repository: &Repository, worktree: &Worktree) -> Result<bool, ToolError> {
        let args = ["diff-index", "--cached", "--name-only", "--no-renames", "-z", &self.after];
        let others = parse_paths(&worktree.git(repository).read(&args)?);
        let coming = self.incoming_files(repository)?;
        Ok(!others.iter().any(|file| coming.contains(file)))
    }

    /// What was to come met no file that was not committed. So what is at those places now came with the sync, or
    /// somebody wrote it since: it is kept.
    fn roll_back(&self, repository: &Repository, worktree: &Worktree) -> Result<(), OperationCause> {
        let temp_index = worktree.temp_index(repository)?;
        let written = self.list_written(repository, worktree)?;
        let Some(then) = temp_index.staged_tree()?.filter(|_| !written.is_empty()) else { return Ok(()) };
        temp_index.add_paths(&written)?;
        let tree = temp_index.tree()?;
        let head = Some(self.before.clone());
        let contents = Contents { tree: tree.clone(), head, ..Contents::default() };
        trash::save_contents(repository, &self.name, &contents, Trailers::default(), TrashReason::Loose)?;
        temp_index.check_out(&tree, &then)?;
        worktree.git(repository).change(&["update-index", "-q", "--refresh"])?;
        Ok(())
    }

    fn list_written(&self, repository: &Repository, worktree: &Worktree) -> Result<Vec<PathBuf>, ToolError> {
        let checkout = TargetCheckout { path: worktree.path.clone(), git_dir: worktree.git_dir.clone() };
        let untracked = parse_paths(&worktree.git(repository).read(&["ls-files", "--others", "-z"])?);
        let coming = self.incoming_files(repository)?;
        let now = checkout.changed_files(repository)?.into_iter().chain(untracked);
        Ok(now.filter(|file| coming.contains(file)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let (note, said) = (
            "refs/agency/syncing/1-fix",
            "agency: syncing workspace 1-fix\n\nAgency-Sync: 1a 2b\nAgency-Base: main\n",
        );
        let pending = PendingSync::parse(note, said).unwrap();
        assert_eq!((pending.name.as_str(), pending.base.as_str()), ("1-fix", "main"));
        assert_eq!([pending.before, pending.after], ["1a", "2b"]);
        assert_eq!(PendingSync::parse(note, "words"), None);
    }
}

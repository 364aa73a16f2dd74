//! A record of a sync in progress, and the recovery of a sync that was interrupted.
//!
//! The record is a commit under `refs/agency/syncing/` whose message describes the sync. Git writes the files
//! first, then the index, and the branch moves last. A process that is interrupted in between leaves files of
//! the base that look like the task's own work.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::changed_files::changed_files;
use crate::error::OperationCause;
use crate::git_workspace::ReadyWorkspace;
use crate::integration_lock::IntegrationLock;
use crate::merge_target::{TargetCheckout, refuse_busy_or_other_branch};
use crate::name::WorkspaceName;
use crate::pending_restore;
use crate::repository::{Repository, commit_tree, tree_of};
use crate::restore_details::Details;
use crate::saved_commit::{Contents, Trailers};
use crate::temp_index::parse_paths;
use crate::tool::ToolError;
use crate::trash::{self, TrashReason};
use crate::worktree::Worktree;

pub(crate) const FOLDER: &str = "refs/agency/syncing/";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingSync {
    pub(crate) name: WorkspaceName,
    pub(crate) base: String,
    /// The commit of the workspace's branch before the sync.
    pub(crate) before: String,
    pub(crate) after: String,
    /// The modes and raw bytes of the files that the sync replaces. Earlier versions did not save them.
    pub(crate) details: Option<String>,
}

/// Recovers the sync of one workspace, if it was interrupted.
pub(crate) fn recover_sync(
    repository: &Repository,
    name: &WorkspaceName,
    lock: &IntegrationLock,
) -> Result<(), OperationCause> {
    pending_restore::recover_restore(repository, name)?;
    let pending = pending_syncs(repository, &format!("{FOLDER}{name}"))?;
    pending.iter().try_for_each(|pending| pending.recover(repository, lock).map(drop))
}

pub(crate) fn pending_syncs(repository: &Repository, under: &str) -> Result<Vec<PendingSync>, ToolError> {
    let refs = repository.hidden_refs(under)?;
    Ok(refs.iter().filter_map(|hidden| PendingSync::parse(&hidden.reference, &hidden.message)).collect())
}

impl PendingSync {
    fn reference(&self) -> String {
        format!("{FOLDER}{}", self.name)
    }

    pub(crate) fn write(&self, repository: &Repository) -> Result<(), ToolError> {
        let Self { name, base, before, after, details } = self;
        let mut message = format!(
            "agency: syncing workspace {name}\n\nAgency-Sync: {before} {after}\nAgency-Base: {base}\n"
        );
        let mut parents = vec![before.as_str(), after];
        if let Some(details) = details {
            message.push_str(&format!("Agency-Details: {details}\n"));
            parents.push(details);
        }
        let commit = commit_tree(repository, &tree_of(repository, after)?, &parents, &message)?;
        repository.git().change(&["update-ref", &self.reference(), &commit]).map(drop)
    }

    fn parse(reference: &str, message: &str) -> Option<Self> {
        let value = |key: &str| message.lines().find_map(|line| line.strip_prefix(key));
        let (before, after) = value("Agency-Sync: ")?.split_once(' ')?;
        Some(Self {
            name: reference.strip_prefix(FOLDER)?.parse().ok()?,
            base: value("Agency-Base: ")?.to_owned(),
            before: before.to_owned(),
            after: after.to_owned(),
            details: value("Agency-Details: ").map(str::to_owned),
        })
    }

    /// Moves the branch, if it is still where it was, and deletes the record, both in one step.
    pub(crate) fn complete(&self, repository: &Repository) -> Result<(), ToolError> {
        let Self { name, base, before, after, .. } = self;
        let steps =
            format!("update refs/heads/{} {after} {before}\ndelete {}\n", name.branch(), self.reference());
        let why = format!("agency: sync with {base}");
        repository.git().change_with_input(&["update-ref", "-m", &why, "--stdin"], steps.as_bytes())
    }

    /// Deletes the record.
    pub(crate) fn delete(&self, repository: &Repository) -> Result<(), ToolError> {
        repository.git().change(&["update-ref", "-d", &self.reference()]).map(drop)
    }

    /// Completes the sync if all files are there, otherwise rolls it back. Returns whether it is complete.
    pub(crate) fn recover(
        &self,
        repository: &Repository,
        _: &IntegrationLock,
    ) -> Result<bool, OperationCause> {
        let tip = repository.branch_tip(&self.name.branch())?;
        let ready = match ReadyWorkspace::find(repository, &self.name) {
            // Without files, or after new commits of the user, there is nothing to continue.
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

    /// Whether all files are there: git writes the index after them.
    fn is_staged(&self, repository: &Repository, worktree: &Worktree) -> Result<bool, ToolError> {
        let args = ["diff-index", "--cached", "--name-only", "--no-renames", "-z", &self.after];
        let others = parse_paths(&worktree.git(repository).read(&args)?);
        let coming = self.incoming_files(repository)?;
        Ok(!others.iter().any(|file| coming.contains(file)))
    }

    /// Restores the files that the sync was to write, and saves them first. The sync met no uncommitted file,
    /// so a file there came with the sync, or the user wrote it afterwards.
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
        self.put_details(repository, worktree, written)?;
        worktree.git(repository).refresh_index()?;
        Ok(())
    }

    /// Git has written the old files as it would check them out. Makes their bytes and modes as they were.
    pub(crate) fn put_details(
        &self,
        repository: &Repository,
        worktree: &Worktree,
        written: impl IntoIterator<Item = PathBuf>,
    ) -> Result<(), OperationCause> {
        let Some(details) = &self.details else { return Ok(()) };
        Details::read(repository, details)?.put_some_files(repository, &worktree.path, written)
    }

    pub(crate) fn incoming_files(&self, repository: &Repository) -> Result<HashSet<PathBuf>, ToolError> {
        let files = changed_files(repository, &self.before, &self.after)?;
        Ok(files.into_iter().flat_map(|file| file.old_path.into_iter().chain([file.path])).collect())
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
    fn a_record_is_parsed_as_it_was_written() {
        let (reference, message) = (
            "refs/agency/syncing/1-fix",
            "agency: syncing workspace 1-fix\n\nAgency-Sync: 1a 2b\nAgency-Base: main\n",
        );
        let pending = PendingSync::parse(reference, message).unwrap();
        assert_eq!((pending.name.as_str(), pending.base.as_str()), ("1-fix", "main"));
        assert_eq!([pending.before, pending.after], ["1a", "2b"]);
        assert_eq!(PendingSync::parse(reference, "words"), None);
    }
}

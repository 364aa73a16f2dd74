//! The note that a merge is under way while a checkout is brought up to date, and what to do when it is found.
//!
//! A commit under `refs/agency/merging/` whose message says what was to happen. Git writes the files first and
//! moves the branch last; whoever is cut off between the two leaves files of the merge on the branch as it was.

use std::collections::HashSet;
use std::path::PathBuf;

use tracing::warn;

use crate::diff::changed_files;
use crate::jj;
use crate::merge::TargetCheckout;
use crate::merged_refs::{MergedRefs, merged_mark_ref};
use crate::name::WorkspaceName;
use crate::operation::{Operation, OperationCause, OperationError};
use crate::pending_sync::recover_syncs;
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::saved_commit::{Contents, Trailers, commit_tree, tree_of};
use crate::temp_index::{TempIndex, parse_paths};
use crate::tool::ToolError;
use crate::trash::{self, TrashReason};
use crate::trial_worktree::{self, IntegrationLock};

const FOLDER: &str = "refs/agency/merging/";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingMerge {
    pub(crate) name: WorkspaceName,
    pub(crate) target: String,
    /// The target before and after.
    pub(crate) old: String,
    pub(crate) new: String,
    /// The branch of the workspace.
    pub(crate) tip: String,
}

/// A merge that was cut off and is settled now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredMerge {
    pub workspace: WorkspaceName,
    pub into: String,
    pub outcome: MergeOutcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeOutcome {
    Merged,
    /// The checkout is as before the merge. What was in it is kept under the ref, if it was changed.
    RolledBack {
        trash_ref: Option<String>,
    },
}

/// Settles merges and syncs that were cut off: by a crash, a kill or a power cut. Only merges are told. To be
/// called when nothing of this project is under way; [`crate::merge()`] does it by itself.
pub fn recover_integrations(project: &Project) -> Result<Vec<RecoveredMerge>, OperationError> {
    let Some(repository) = project.git_repository() else { return Ok(Vec::new()) };
    recover_syncs(project)?;
    let notes = pending_merges(repository).inspect_err(|err| warn!(%err, "notes of merges cannot be read"));
    let Some(first) = notes.unwrap_or_default().into_iter().next() else {
        remove_trial_worktrees(&project.kind);
        return Ok(Vec::new());
    };
    let recovered = || {
        let lock = IntegrationLock::acquire(repository)?;
        match &project.kind {
            Kind::Jj(repository) => jj::recover_merges(repository, &lock),
            Kind::Git(_) | Kind::Plain(_) => recover_merges(repository, &lock),
        }
    };
    recovered().map_err(Operation::Merge.failed(&first.name))
}

/// What was cut off while it was tried aside.
fn remove_trial_worktrees(kind: &Kind) {
    let Kind::Git(repository) = kind else { return };
    let swept = IntegrationLock::acquire(repository)
        .and_then(|_lock| Ok(trial_worktree::remove_leftovers(repository)?));
    swept.unwrap_or_else(|left| warn!(%left, "a worktree of ours stays behind"));
}

/// Whether all that is committed in the workspace was merged, here and by us.
pub fn is_merged(project: &Project, name: &WorkspaceName) -> Result<bool, OperationError> {
    let Some(repository) = project.git_repository() else { return Ok(false) };
    let looked = || -> Result<bool, ToolError> {
        let (mark, tip) =
            (repository.commit(&merged_mark_ref(name))?, repository.branch_tip(&name.branch())?);
        Ok(mark.is_some() && (tip.is_none() || tip == mark))
    };
    looked().map_err(|err| Operation::Merge.failed(name)(err.into()))
}

pub(crate) fn recover_merges(
    repository: &Repository,
    _: &IntegrationLock,
) -> Result<Vec<RecoveredMerge>, OperationCause> {
    trial_worktree::remove_leftovers(repository)?;
    let recover = |pending: &PendingMerge| {
        let outcome = pending.recover(repository)?;
        Ok(RecoveredMerge { workspace: pending.name.clone(), into: pending.target.clone(), outcome })
    };
    pending_merges(repository)?.iter().map(recover).collect()
}

pub(crate) fn pending_merges(repository: &Repository) -> Result<Vec<PendingMerge>, ToolError> {
    let notes = repository.hidden_refs(FOLDER)?;
    Ok(notes.iter().filter_map(|note| PendingMerge::parse(&note.reference, &note.message)).collect())
}

impl PendingMerge {
    fn reference(&self) -> String {
        format!("{FOLDER}{}", self.name)
    }

    pub(crate) fn write(&self, repository: &Repository) -> Result<(), ToolError> {
        let Self { name, target, old, new, tip } = self;
        let message = format!(
            "agency: merging workspace {name}\n\nAgency-Merge: {old} {new} {tip}\nAgency-Target: {target}\n"
        );
        let commit = commit_tree(repository, &tree_of(repository, new)?, &[old, new, tip], &message)?;
        repository.git().change(&["update-ref", &self.reference(), &commit]).map(drop)
    }

    fn parse(reference: &str, message: &str) -> Option<Self> {
        let said = |key: &str| message.lines().find_map(|line| line.strip_prefix(key));
        let mut commits = said("Agency-Merge: ")?.split(' ').map(str::to_owned);
        Some(Self {
            name: reference.strip_prefix(FOLDER)?.parse().ok()?,
            target: said("Agency-Target: ")?.to_owned(),
            old: commits.next()?,
            new: commits.next()?,
            tip: commits.next()?,
        })
    }

    /// The target has it: says so, and takes the note away, both at once.
    pub(crate) fn complete(&self, repository: &Repository) -> Result<(), ToolError> {
        let steps =
            format!("update {} {}\ndelete {}\n", merged_mark_ref(&self.name), self.tip, self.reference());
        repository.git().change_with_input(&["update-ref", "--stdin"], steps.as_bytes())
    }

    pub(crate) fn recover(&self, repository: &Repository) -> Result<MergeOutcome, OperationCause> {
        let tip = repository.branch_tip(&self.target)?;
        let has_it = match &tip {
            Some(tip) => MergedRefs::only(tip, "").count_missing(repository, &[&self.new])? == 0,
            None => false,
        };
        if has_it {
            self.complete(repository)?;
            return Ok(MergeOutcome::Merged);
        }
        let checkout = TargetCheckout::of(repository, &self.target)?;
        // A branch that somebody moved elsewhere has files that are theirs.
        let kept = match checkout.filter(|_| tip.as_ref() == Some(&self.old)) {
            Some(checkout) => self.roll_back(repository, &checkout)?,
            None => None,
        };
        self.delete(repository)?;
        Ok(MergeOutcome::RolledBack { trash_ref: kept })
    }

    /// The target does not have it.
    pub(crate) fn delete(&self, repository: &Repository) -> Result<(), ToolError> {
        repository.git().change(&["update-ref", "-d", &self.reference()]).map(drop)
    }

    /// Before the merge the checkout was clean, so what differs now was written by the merge, or by somebody
    /// afterwards; only what the merge was to write is taken back, and kept first.
    fn roll_back(
        &self,
        repository: &Repository,
        checkout: &TargetCheckout,
    ) -> Result<Option<String>, OperationCause> {
        let written = self.list_written(repository, checkout)?;
        if written.is_empty() {
            return Ok(None);
        }
        let unwritable = |source| OperationCause::Write { path: checkout.git_dir.clone(), source };
        let git = checkout.git(repository);
        let temp_index = TempIndex::copy_of(git.clone(), &checkout.git_dir).map_err(unwritable)?;
        temp_index.git().change(&["read-tree", &self.old])?;
        temp_index.add_paths(&written)?;
        let now = temp_index.tree()?;
        let kept = self.save_written(repository, &now)?;
        temp_index.check_out(&now, &self.old)?;
        // Not `git reset`, which would touch the branch that a hook of the user may just have protected.
        git.change(&["read-tree", &self.old])?;
        git.change(&["update-index", "-q", "--refresh"])?;
        Ok(kept)
    }

    /// Not what the merge alone has made: the commit of it can be made again.
    fn save_written(&self, repository: &Repository, now: &str) -> Result<Option<String>, ToolError> {
        if now == tree_of(repository, &self.new)? {
            return Ok(None);
        }
        let contents = Contents { tree: now.to_owned(), head: Some(self.old.clone()), ..Contents::default() };
        trash::save_contents(repository, &self.name, &contents, Trailers::default(), TrashReason::Loose)
            .map(Some)
    }

    /// Files that the merge wrote, as far as it came.
    fn list_written(
        &self,
        repository: &Repository,
        checkout: &TargetCheckout,
    ) -> Result<Vec<PathBuf>, OperationCause> {
        let to_write = changed_files(repository, &self.old, &self.new)?;
        let to_write: HashSet<PathBuf> =
            to_write.into_iter().flat_map(|file| file.old_path.into_iter().chain([file.path])).collect();
        let changed = checkout.changed_files(repository)?;
        let foreign: Vec<PathBuf> =
            changed.iter().filter(|file| !to_write.contains(*file)).cloned().collect();
        if changed.iter().any(|file| to_write.contains(file)) && !foreign.is_empty() {
            let (branch, path) = (self.target.clone(), checkout.path.clone());
            return Err(OperationCause::InterruptedMerge { branch, path, files: foreign });
        }
        let untracked = checkout.git(repository).read(&["ls-files", "--others", "-z"])?;
        let new = parse_paths(&untracked).into_iter().chain(changed);
        Ok(new.filter(|file| to_write.contains(file)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let (note, said) = (
            "refs/agency/merging/1-fix",
            "agency: merging workspace 1-fix\n\nAgency-Merge: 1a 2b 3c\nAgency-Target: main\n",
        );
        let pending = PendingMerge::parse(note, said).unwrap();
        assert_eq!((pending.name.as_str(), pending.target.as_str()), ("1-fix", "main"));
        assert_eq!([pending.old, pending.new, pending.tip], ["1a", "2b", "3c"]);
        assert_eq!(PendingMerge::parse(note, "words"), None);
    }
}

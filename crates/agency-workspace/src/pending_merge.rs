//! A record of a merge in progress, and the recovery of a merge that was interrupted.
//!
//! The record is a commit under `refs/agency/merging/` whose message describes the merge. Git writes the
//! files of the checkout first and moves the branch last. A process that is interrupted in between leaves
//! files of the merge on the old branch.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::changed_files::changed_files;
use crate::error::OperationCause;
use crate::hidden_ref::{HiddenRef, merged_mark_ref};
use crate::integration_lock::IntegrationLock;
use crate::merge_target::TargetCheckout;
use crate::merged_refs::MergedRefs;
use crate::name::WorkspaceName;
use crate::repository::{Repository, commit_tree, tree_of};
use crate::saved_commit::{Contents, Trailers};
use crate::temp_index::{TempIndex, parse_paths};
use crate::tool::ToolError;
use crate::trash::{self, TrashReason};
use crate::trial_worktree;

const FOLDER: &str = "refs/agency/merging/";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingMerge {
    pub(crate) name: WorkspaceName,
    pub(crate) target: String,
    /// The commit of the target before the merge.
    pub(crate) old: String,
    pub(crate) new: String,
    /// The commit of the workspace's branch.
    pub(crate) tip: String,
}

/// A merge that was interrupted and is now recovered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredMerge {
    /// The workspace.
    pub workspace: WorkspaceName,
    /// The branch or bookmark to merge into.
    pub into: String,
    /// How the merge ended.
    pub outcome: MergeOutcome,
}

/// How an interrupted merge ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeOutcome {
    /// The merge is complete.
    Merged,
    /// The checkout is as before the merge. Files that were changed meanwhile are saved under the trash ref.
    RolledBack {
        /// The trash ref that holds everything, if something was saved.
        trash_ref: Option<String>,
    },
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
    let refs = repository.hidden_refs(FOLDER)?;
    let parse = |hidden: &HiddenRef| {
        let name = hidden.reference.strip_prefix(FOLDER)?.parse().ok()?;
        PendingMerge::parse(&name, &hidden.message)
    };
    Ok(refs.iter().filter_map(parse).collect())
}

impl PendingMerge {
    /// Reads the record of the last merge of a workspace.
    pub(crate) fn last(repository: &Repository, name: &WorkspaceName) -> Result<Self, OperationCause> {
        let mark = repository.hidden_refs(&merged_mark_ref(name))?.into_iter().next();
        mark.and_then(|mark| Self::parse(name, &mark.message)).ok_or(OperationCause::NeverMerged)
    }

    fn reference(&self) -> String {
        format!("{FOLDER}{}", self.name)
    }

    /// Creates the commit that describes the merge. It keeps the commits of the merge alive.
    pub(crate) fn record(&self, repository: &Repository) -> Result<String, ToolError> {
        let Self { name, target, old, new, tip } = self;
        let message = format!(
            "agency: merging workspace {name}\n\nAgency-Merge: {old} {new} {tip}\nAgency-Target: {target}\n"
        );
        commit_tree(repository, &tree_of(repository, new)?, &[old, new, tip], &message)
    }

    pub(crate) fn write(&self, repository: &Repository) -> Result<(), ToolError> {
        let commit = self.record(repository)?;
        repository.git().change(&["update-ref", &self.reference(), &commit]).map(drop)
    }

    /// Returns None if the message does not describe a merge.
    pub(crate) fn parse(name: &WorkspaceName, message: &str) -> Option<Self> {
        let value = |key: &str| message.lines().find_map(|line| line.strip_prefix(key));
        let mut commits = value("Agency-Merge: ")?.split(' ').map(str::to_owned);
        Some(Self {
            name: name.clone(),
            target: value("Agency-Target: ")?.to_owned(),
            old: commits.next()?,
            new: commits.next()?,
            tip: commits.next()?,
        })
    }

    /// Marks the workspace as merged and deletes the record, both in one step.
    pub(crate) fn complete(&self, repository: &Repository) -> Result<(), ToolError> {
        let mark = self.record(repository)?;
        let steps = format!("update {} {mark}\ndelete {}\n", merged_mark_ref(&self.name), self.reference());
        repository.git().change_with_input(&["update-ref", "--stdin"], steps.as_bytes())
    }

    /// Whether the target contains the merge.
    pub(crate) fn has_arrived(&self, repository: &Repository) -> Result<bool, ToolError> {
        match repository.branch_tip(&self.target)? {
            Some(tip) => Ok(MergedRefs::only(&tip, "").count_missing(repository, &[&self.new])? == 0),
            None => Ok(false),
        }
    }

    pub(crate) fn recover(&self, repository: &Repository) -> Result<MergeOutcome, OperationCause> {
        if self.has_arrived(repository)? {
            self.complete(repository)?;
            return Ok(MergeOutcome::Merged);
        }
        let tip = repository.branch_tip(&self.target)?;
        let checkout = TargetCheckout::of(repository, &self.target)?;
        // If the user has moved the branch since, the files in its checkout are theirs.
        let trash_ref = match checkout.filter(|_| tip.as_ref() == Some(&self.old)) {
            Some(checkout) => self.roll_back(repository, &checkout)?,
            None => None,
        };
        self.delete(repository)?;
        Ok(MergeOutcome::RolledBack { trash_ref })
    }

    /// Deletes the record of a merge that did not happen.
    pub(crate) fn delete(&self, repository: &Repository) -> Result<(), ToolError> {
        repository.git().change(&["update-ref", "-d", &self.reference()]).map(drop)
    }

    /// Restores the files that the merge was to write, and saves them first. The checkout was clean before
    /// the merge, so a difference comes from the merge, or the user made it afterwards.
    pub(crate) fn roll_back(
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
        let trash_ref = self.save_written(repository, &now)?;
        temp_index.check_out(&now, &self.old)?;
        // Not `git reset`: it would touch the branch, which a hook of the user may just have protected.
        git.change(&["read-tree", &self.old])?;
        git.refresh_index()?;
        Ok(trash_ref)
    }

    /// Saves the files, unless they are exactly those of the merge: its commit can be created again.
    fn save_written(&self, repository: &Repository, now: &str) -> Result<Option<String>, ToolError> {
        if now == tree_of(repository, &self.new)? {
            return Ok(None);
        }
        let contents = Contents { tree: now.to_owned(), head: Some(self.old.clone()), ..Contents::default() };
        trash::save_contents(repository, &self.name, &contents, Trailers::default(), TrashReason::Loose)
            .map(Some)
    }

    /// Lists the files that the merge has written so far.
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
    fn a_record_is_parsed_as_it_was_written() {
        let name: WorkspaceName = "1-fix".parse().unwrap();
        let message = "agency: merging workspace 1-fix\n\nAgency-Merge: 1a 2b 3c\nAgency-Target: main\n";
        let pending = PendingMerge::parse(&name, message).unwrap();
        assert_eq!((pending.name.as_str(), pending.target.as_str()), ("1-fix", "main"));
        assert_eq!([pending.old, pending.new, pending.tip], ["1a", "2b", "3c"]);
        assert_eq!(PendingMerge::parse(&name, "words"), None);
    }
}

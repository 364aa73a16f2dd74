//! A record of a merge that is being taken back, and the recovery after an interruption.
//!
//! The record is a commit under `refs/agency/unmerging/`. Git writes the files of the checkout first and moves the
//! branch last, as in a merge, so an interrupted one is rolled back like a merge in the other direction.

use crate::error::OperationCause;
use crate::hidden_ref::HiddenRef;
use crate::integration_lock::IntegrationLock;
use crate::merge_target::TargetCheckout;
use crate::name::WorkspaceName;
use crate::pending_merge::PendingMerge;
use crate::repository::Repository;
use crate::tool::ToolError;

const FOLDER: &str = "refs/agency/unmerging/";

/// A merge from the merged commit back to the one before.
pub(crate) struct PendingUnmerge(PendingMerge);

impl PendingUnmerge {
    pub(crate) fn of(merge: &PendingMerge) -> Self {
        Self(PendingMerge { old: merge.new.clone(), new: merge.old.clone(), ..merge.clone() })
    }

    pub(crate) fn name(&self) -> &WorkspaceName {
        &self.0.name
    }

    pub(crate) fn all(repository: &Repository) -> Result<Vec<Self>, ToolError> {
        let parse = |hidden: &HiddenRef| {
            let name = hidden.reference.strip_prefix(FOLDER)?.parse().ok()?;
            PendingMerge::parse(&name, &hidden.message).map(Self)
        };
        Ok(repository.hidden_refs(FOLDER)?.iter().filter_map(parse).collect())
    }

    pub(crate) fn recover_all(repository: &Repository, _: &IntegrationLock) -> Result<(), OperationCause> {
        Self::all(repository)?.iter().try_for_each(|pending| pending.recover(repository).map(drop))
    }

    fn reference(&self) -> String {
        format!("{FOLDER}{}", self.0.name)
    }

    pub(crate) fn write(&self, repository: &Repository) -> Result<(), ToolError> {
        let commit = self.0.record(repository)?;
        repository.git().change(&["update-ref", &self.reference(), &commit]).map(drop)
    }

    /// Returns whether the merge is taken back. If not, the checkout is as before.
    pub(crate) fn recover(&self, repository: &Repository) -> Result<bool, OperationCause> {
        let tip = repository.branch_tip(&self.0.target)?;
        let is_back = tip.as_ref() == Some(&self.0.new);
        // If the user has moved the branch since, the files in its checkout are theirs.
        if tip.as_ref() == Some(&self.0.old)
            && let Some(checkout) = TargetCheckout::of(repository, &self.0.target)?
        {
            self.0.roll_back(repository, &checkout)?;
        }
        repository.git().change(&["update-ref", "-d", &self.reference()])?;
        Ok(is_back)
    }
}

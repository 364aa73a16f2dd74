//! Takes a merge back, as long as nothing was built on it.
//!
//! The target moves back to the commit before the merge, in one step, if it is still at the merge. A process that is
//! killed meanwhile leaves the merge in place or taken back: see `pending_unmerge`.

use std::time::SystemTime;

use crate::error::{Operation, OperationCause, OperationError};
use crate::hidden_ref::{HiddenRef, MERGED_MARKS};
use crate::integration::UndoneMerge;
use crate::integration_lock::IntegrationLock;
use crate::jj;
use crate::merge_target::{MergeTarget, TargetCheckout};
use crate::name::WorkspaceName;
use crate::pending_merge::{self, PendingMerge};
use crate::pending_unmerge::PendingUnmerge;
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::temp_index::blocking_files;
use crate::tool::ToolError;
use crate::trash_list::TrashError;

/// A merge that Agency made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastMerge {
    /// The workspace.
    pub workspace: WorkspaceName,
    /// The branch or bookmark that was merged into.
    pub into: String,
    /// When it was merged.
    pub at: SystemTime,
    /// The hidden ref that describes the merge.
    pub reference: String,
    /// Whether the merge is the last commit of its target.
    pub is_last: bool,
}

/// Lists the last merge of each workspace, the newest first.
pub fn past_merges(project: &Project) -> Result<Vec<PastMerge>, TrashError> {
    let Some(repository) = project.git_repository() else { return Ok(Vec::new()) };
    let listed = || {
        let marks = repository.hidden_refs(MERGED_MARKS)?;
        let mut merges = Vec::new();
        for mark in &marks {
            merges.extend(past_merge(repository, mark)?);
        }
        merges.sort_by_key(|merge| std::cmp::Reverse(merge.at));
        Ok(merges)
    };
    listed().map_err(|source| TrashError { root: project.root().to_owned(), source })
}

fn past_merge(repository: &Repository, mark: &HiddenRef) -> Result<Option<PastMerge>, ToolError> {
    let name = mark.reference.strip_prefix(MERGED_MARKS).and_then(|name| name.parse().ok());
    let merge = name.as_ref().and_then(|name| PendingMerge::parse(name, &mark.message));
    let (Some(workspace), Some(merge)) = (name, merge) else { return Ok(None) };
    let is_last = repository.branch_tip(&merge.target)?.as_ref() == Some(&merge.new);
    let (into, reference) = (merge.target, mark.reference.clone());
    Ok(Some(PastMerge { workspace, into, at: mark.at, reference, is_last }))
}

/// Takes the last merge of a workspace back. Refuses if its target has other commits since, or if another branch has
/// the merge.
pub fn undo_merge(project: &Project, name: &WorkspaceName) -> Result<UndoneMerge, OperationError> {
    let undone = match &project.kind {
        Kind::Git(repository) => unmerge_branch(repository, name),
        Kind::Jj(repository) => jj::undo_merge(repository, name),
        Kind::Plain(_) => Err(OperationCause::Plain { path: project.root().to_owned() }),
    };
    undone.map_err(Operation::Unmerge.failed(name))
}

fn unmerge_branch(repository: &Repository, name: &WorkspaceName) -> Result<UndoneMerge, OperationCause> {
    let lock = IntegrationLock::acquire(repository)?;
    pending_merge::recover_merges(repository, &lock)?;
    PendingUnmerge::recover_all(repository, &lock)?;
    let merge = PendingMerge::last(repository, name)?;
    let target = MergeTarget::find(repository, Some(&merge.target), None)?;
    refuse_built_upon(repository, name, &merge, &target)?;
    target.refuse_busy_or_dirty(repository)?;
    match &target.checkout {
        None => move_ref(repository, &merge)?,
        Some(checkout) => move_checkout(repository, &merge, checkout)?,
    }
    let checkout = target.checkout.map(|checkout| checkout.path);
    Ok(UndoneMerge { branch: merge.target, before: merge.new, after: merge.old, checkout })
}

fn refuse_built_upon(
    repository: &Repository,
    name: &WorkspaceName,
    merge: &PendingMerge,
    target: &MergeTarget,
) -> Result<(), OperationCause> {
    let branch = merge.target.clone();
    if target.tip != merge.new {
        return Err(OperationCause::BuiltUpon { branch: branch.clone(), by: branch });
    }
    let contains = format!("--contains={}", merge.new);
    let args = ["for-each-ref", &contains, "--format=%(refname)", "refs/heads", "refs/remotes", "refs/tags"];
    let listed = String::from_utf8_lossy(&repository.git().read(&args)?).into_owned();
    let own = [format!("refs/heads/{branch}"), format!("refs/heads/{}", name.branch())];
    match listed.lines().find(|reference| !own.iter().any(|own| own == reference)) {
        None => Ok(()),
        Some(other) => {
            let by = other.trim_start_matches("refs/").split_once('/').map_or(other, |(_, by)| by);
            Err(OperationCause::BuiltUpon { branch, by: by.to_owned() })
        }
    }
}

fn move_ref(repository: &Repository, merge: &PendingMerge) -> Result<(), OperationCause> {
    let PendingMerge { target, old, new, name, .. } = merge;
    let why = format!("agency: undo merge {name}");
    match repository.git().change(&["update-ref", "-m", &why, &format!("refs/heads/{target}"), old, new]) {
        Err(err) if err.stderr_contains("but expected") => {
            Err(OperationCause::TargetMoved { branch: target.clone() })
        }
        moved => Ok(moved.map(drop)?),
    }
}

/// Lets git update the checkout, by the command that a user would run there.
fn move_checkout(
    repository: &Repository,
    merge: &PendingMerge,
    checkout: &TargetCheckout,
) -> Result<(), OperationCause> {
    let git = checkout.git(repository);
    let files = blocking_files(&git, &checkout.path, &merge.new, &merge.old)?;
    if !files.is_empty() {
        return Err(OperationCause::TargetBlocked { path: checkout.path.clone(), files });
    }
    let pending = PendingUnmerge::of(merge);
    pending.write(repository)?;
    let git = git.with_variable("GIT_REFLOG_ACTION", format!("agency undo merge {}", merge.name));
    let refused = git.change_with_hooks(&["reset", "--quiet", "--keep", &merge.old]).err();
    match (pending.recover(repository)?, refused) {
        (true, _) => Ok(()),
        (false, Some(err)) => Err(err.into()),
        (false, None) => Err(OperationCause::NotMoved { branch: merge.target.clone() }),
    }
}

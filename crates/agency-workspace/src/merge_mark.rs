//! The mark of a merge: which commit of a workspace was merged, where, and as which commit.
//!
//! A squashed or rebased workspace has other commits in its base, and the mark says that they are merged. It
//! counts only while the target has them: the user may undo a merge.

use crate::base::base_or_current;
use crate::hidden_ref::{HiddenRef, MERGED_MARKS, merged_mark_ref};
use crate::merge_tree::adds_nothing;
use crate::merged_refs::{MergedRefs, branch_ref, upstream_of};
use crate::name::{BRANCHES, WorkspaceName};
use crate::pending_merge::PendingMerge;
use crate::repository::Repository;
use crate::tool::ToolError;

/// A comparison of contents takes a few milliseconds for each branch, and old branches do not get new merges.
const MOST_BRANCHES: usize = 20;

pub(crate) struct MergeMark {
    /// The commit of the workspace's branch that was merged.
    pub(crate) tip: String,
    /// None in a mark of an earlier version, which names only the commit of the workspace.
    pub(crate) merge: Option<TargetMerge>,
}

/// The branch or bookmark that was merged into, and its commit after the merge.
pub(crate) struct TargetMerge {
    pub(crate) target: String,
    pub(crate) commit: String,
}

impl MergeMark {
    pub(crate) fn read(repository: &Repository, name: &WorkspaceName) -> Result<Option<Self>, ToolError> {
        let found = repository.hidden_refs(&merged_mark_ref(name))?.into_iter().next();
        Ok(found.map(|hidden| Self::parse(name, hidden)))
    }

    /// Reads the marks of all workspaces.
    pub(crate) fn all(repository: &Repository) -> Result<Vec<(WorkspaceName, Self)>, ToolError> {
        let named = |hidden: HiddenRef| {
            let name: WorkspaceName = hidden.reference.strip_prefix(MERGED_MARKS)?.parse().ok()?;
            let mark = Self::parse(&name, hidden);
            Some((name, mark))
        };
        Ok(repository.hidden_refs(MERGED_MARKS)?.into_iter().filter_map(named).collect())
    }

    fn parse(name: &WorkspaceName, hidden: HiddenRef) -> Self {
        match PendingMerge::parse(name, &hidden.message) {
            Some(PendingMerge { target, new, tip, .. }) => {
                Self { tip, merge: Some(TargetMerge { target, commit: new }) }
            }
            None => Self { tip: hidden.commit, merge: None },
        }
    }

    /// Whether the target, or its upstream, still has the merge. `bases` are the refs of the workspace's base,
    /// for a mark that names no target.
    fn has_landed(&self, repository: &Repository, bases: &[String]) -> Result<bool, ToolError> {
        let Some(TargetMerge { target, commit }) = &self.merge else {
            return self.is_contained(repository, bases);
        };
        let (within, revisions) = target_revisions(repository, target)?;
        Ok(within.count_missing(repository, &[commit])? == 0 || self.is_contained(repository, &revisions)?)
    }

    /// Whether one of these revisions has all changes of the workspace, as whichever commits: the user may
    /// have rewritten the merge.
    pub(crate) fn is_contained(
        &self,
        repository: &Repository,
        revisions: &[String],
    ) -> Result<bool, ToolError> {
        for revision in revisions {
            if adds_nothing(repository, revision, &self.tip)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl MergedRefs {
    pub(crate) fn of(
        repository: &Repository,
        name: &WorkspaceName,
        base: Option<&str>,
    ) -> Result<Self, ToolError> {
        let base = base_or_current(repository, base)?;
        let refs = base_refs(repository, base.as_deref())?;
        let mark = match MergeMark::read(repository, name)? {
            Some(mark) if mark.has_landed(repository, &refs)? => Some(mark.tip),
            _ => None,
        };
        let merged_refs = match base {
            Some(base) if !refs.is_empty() => Self::described(refs, format!("not in {base}")),
            _ => Self::any_other_branch(name),
        };
        Ok(merged_refs.and(mark))
    }
}

/// Returns the refs that must contain a merge, and the revisions that may contain its changes: the target and its
/// upstream; or the branches of the user, if they have deleted or renamed the target.
pub(crate) fn target_revisions(
    repository: &Repository,
    target: &str,
) -> Result<(MergedRefs, Vec<String>), ToolError> {
    let refs = base_refs(repository, Some(target))?;
    if refs.is_empty() {
        return Ok((MergedRefs::branches_of_user(), recent_branches(repository)?));
    }
    Ok((MergedRefs::listed(refs.clone()), refs))
}

/// Returns the branches of the user that were committed to last.
pub(crate) fn recent_branches(repository: &Repository) -> Result<Vec<String>, ToolError> {
    let args = ["for-each-ref", "--format=%(refname)", "--sort=-committerdate", "refs/heads"];
    let listed = String::from_utf8_lossy(&repository.git().read(&args)?).into_owned();
    let tasks = format!("refs/heads/{BRANCHES}");
    let of_user = listed.lines().filter(|name| !name.starts_with(&tasks));
    Ok(of_user.take(MOST_BRANCHES).map(str::to_owned).collect())
}

/// Returns the refs of a base that is a branch, the one of its server included.
fn base_refs(repository: &Repository, base: Option<&str>) -> Result<Vec<String>, ToolError> {
    let moving = base.map(|base| branch_ref(repository, base)).transpose()?.flatten();
    let Some(moving) = moving else { return Ok(Vec::new()) };
    let upstream = upstream_of(repository, &moving)?;
    Ok([moving].into_iter().chain(upstream).collect())
}

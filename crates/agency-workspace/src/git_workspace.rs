//! The parts of a workspace in a git repository: its directory, worktree record and branch.
//!
//! Read-only: nothing is changed here, not even the index.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::error::OperationCause;
use crate::index_entries::{IndexEntry, index_entries};
use crate::merged_refs::MergedRefs;
use crate::name::WorkspaceName;
use crate::presence::{PathStatus, Presence};
use crate::repository::Repository;
use crate::temp_index::{TempIndex, parse_paths};
use crate::tool::ToolError;
use crate::uncommitted::uncommitted_files;
use crate::work::WorkAtRisk;
use crate::worktree::{Worktree, WorktreeRecord, find_record};

/// Everything that exists of one workspace.
#[derive(Debug)]
pub(crate) struct GitWorkspace {
    pub(crate) path_status: PathStatus,
    pub(crate) record: Option<WorktreeRecord>,
    pub(crate) worktree: Option<Worktree>,
    /// The commit that its branch points to.
    pub(crate) tip: Option<String>,
}

impl GitWorkspace {
    pub(crate) fn find(repository: &Repository, name: &WorkspaceName) -> Result<Self, ToolError> {
        let path = repository.workspace_path(name);
        let record = find_record(repository, name)?;
        let worktree = match &record {
            Some(_) => Worktree::open(repository, &path),
            None => None,
        };
        let path_status = PathStatus::of(&path);
        Ok(Self { path_status, record, worktree, tip: repository.branch_tip(&name.branch())? })
    }

    /// Returns the commit that the directory is on, or would be on if it existed.
    pub(crate) fn head(&self) -> Option<&str> {
        self.record.as_ref().and_then(|record| record.head.as_deref()).or(self.tip.as_deref())
    }

    pub(crate) fn presence(&self) -> Presence {
        let half_made = self.record.as_ref().is_some_and(WorktreeRecord::is_incomplete);
        match (self.path_status, &self.worktree, &self.tip) {
            (PathStatus::Occupied, Some(_), _) if half_made => Presence::HalfMade,
            (PathStatus::Occupied, Some(_), _) => Presence::Ready,
            (PathStatus::Occupied, None, _) => Presence::NotOurs,
            (PathStatus::Missing | PathStatus::EmptyDirectory, _, Some(_)) => Presence::DirectoryGone,
            (PathStatus::Missing | PathStatus::EmptyDirectory, _, None) => Presence::Absent,
        }
    }

    pub(crate) fn uncommitted(&self, repository: &Repository) -> Result<Vec<PathBuf>, ToolError> {
        self.worktree
            .as_ref()
            .map_or(Ok(Vec::new()), |worktree| uncommitted_files(&worktree.git(repository), &[]))
    }

    /// Counts commits that only this workspace refers to. Another branch that is checked out in it outlives
    /// the workspace; a detached `HEAD` does not.
    pub(crate) fn count_unmerged(
        &self,
        repository: &Repository,
        merged_refs: &MergedRefs,
    ) -> Result<u64, ToolError> {
        let detached = self.record.as_ref().and_then(WorktreeRecord::detached_head);
        let tips: Vec<&str> = self.tip.as_deref().into_iter().chain(detached).collect();
        merged_refs.count_missing(repository, &tips)
    }

    /// Lists changed files that `skip-worktree` and `assume-unchanged` hide from git. No commit of the user
    /// holds them, and `git status` does not show them.
    fn hidden_edits(&self, repository: &Repository) -> Result<Vec<PathBuf>, ToolError> {
        let Some(worktree) = &self.worktree else { return Ok(Vec::new()) };
        let entries = index_entries(&worktree.git(repository))?;
        let is_there = |entry: &&IndexEntry| worktree.path.join(&entry.path).symlink_metadata().is_ok();
        let hidden: Vec<&IndexEntry> =
            entries.iter().filter(|entry| entry.is_hidden() && entry.is_file()).filter(is_there).collect();
        if hidden.is_empty() {
            return Ok(Vec::new());
        }
        let copied = TempIndex::copy_of(worktree.git(repository), &worktree.git_dir);
        let temp_index =
            copied.map_err(|source| ToolError::Start { command: "git update-index".into(), source })?;
        temp_index.show_hidden_files(&worktree.path, &entries)?;
        let args = ["diff-files", "--name-only", "-z", "--no-ext-diff", "--ignore-submodules=all"];
        // Reads files again whose times have changed.
        temp_index.refresh()?;
        let changed: HashSet<PathBuf> = parse_paths(&temp_index.git().read(&args)?).into_iter().collect();
        let paths = hidden.into_iter().map(|entry| entry.path.clone());
        Ok(paths.filter(|path| changed.contains(path)).collect())
    }

    /// Returns the work that would be lost with the workspace, or None if there is nothing to lose.
    pub(crate) fn work_at_risk(
        &self,
        repository: &Repository,
        name: &WorkspaceName,
        merged_refs: &MergedRefs,
    ) -> Result<Option<WorkAtRisk>, ToolError> {
        let uncommitted_files = self.uncommitted(repository)?.len() + self.hidden_edits(repository)?.len();
        let unmerged_commits = self.count_unmerged(repository, merged_refs)?;
        Ok(WorkAtRisk::of(name, uncommitted_files, unmerged_commits, merged_refs.description.clone()))
    }

    /// Returns the files that are not committed, or None if all are.
    pub(crate) fn uncommitted_work(
        &self,
        repository: &Repository,
        name: &WorkspaceName,
    ) -> Result<Option<WorkAtRisk>, ToolError> {
        Ok(WorkAtRisk::of(name, self.uncommitted(repository)?.len(), 0, String::new()))
    }
}

/// A workspace that an agent can work in.
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

pub(crate) fn not_ready(
    repository: &Repository,
    name: &WorkspaceName,
    found: &GitWorkspace,
) -> OperationCause {
    OperationCause::NotReady { path: repository.workspace_path(name), presence: found.presence() }
}

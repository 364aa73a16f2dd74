//! Requests and results of merges and syncs.
//!
//! Not how they are done: see `merge` and `sync`.

use std::path::PathBuf;

use crate::error::OperationError;
use crate::name::WorkspaceName;
use crate::repository::Repository;
use crate::tool::ToolError;
use crate::work::WorkAtRisk;

/// How the commits of a workspace get into the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MergeMethod {
    /// Always creates a merge commit.
    #[default]
    Merge,
    /// Creates one commit with all changes.
    Squash,
    /// Creates the workspace's commits again on top of the target.
    Rebase,
    /// Takes the commits as they are. Refused if the target has other commits.
    FastForward,
}

/// The parameters of a merge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MergeRequest {
    /// How to merge.
    pub how: MergeMethod,
    /// The local branch to merge into. By default it is the branch of `base`, or the current branch of the
    /// main checkout if the base is a tag or a commit.
    pub into: Option<String>,
    /// The base that the workspace was created from.
    pub base: Option<String>,
    /// The message of the new commit, if the merge creates one.
    pub message: Option<String>,
    /// The first line of a squashed commit, if there is no message.
    pub title: Option<String>,
}

/// The obstacles to a merge.
#[derive(Debug, Default)]
pub struct MergeInspection {
    /// The branch or bookmark to merge into, if there is one.
    pub into: Option<String>,
    /// Work that must be committed first.
    pub uncommitted: Option<WorkAtRisk>,
    /// Every reason to refuse the merge, even once all work is committed.
    pub refusals: Vec<OperationError>,
}

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The branch or bookmark that was merged into.
    pub into: String,
    /// The commit of the target before the merge.
    pub before: String,
    /// The commit of the target after the merge.
    pub after: String,
    /// The checkout of the target, if the merge has updated its files.
    pub checkout: Option<PathBuf>,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

/// A merge that was taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneMerge {
    /// The branch or bookmark that was merged into.
    pub branch: String,
    /// The commit of that branch before it moved back.
    pub before: String,
    /// The commit of that branch now.
    pub after: String,
    /// The checkout of that branch, if its files were updated.
    pub checkout: Option<PathBuf>,
}

/// How new commits of the base get into a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncMethod {
    /// Creates the workspace's commits again on top of the base.
    #[default]
    Rebase,
    /// Creates a merge commit on the workspace's branch.
    Merge,
}

/// The result of a sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synced {
    /// The name of the base.
    pub base: String,
    /// The number of new commits of the base.
    pub commits: u64,
    /// The commit of the workspace's branch before the sync.
    pub before: String,
    /// The commit of the workspace's branch after the sync.
    pub after: String,
    /// The trash ref that holds the workspace as it was before a rebase.
    pub trash_ref: Option<String>,
}

/// Returns the message of the commit that a merge or a squash creates.
pub(crate) fn commit_message(
    repository: &Repository,
    name: &WorkspaceName,
    (into, before): (&str, &str),
    tips: &[&str],
    request: &MergeRequest,
) -> Result<String, ToolError> {
    let default = || format!("Merge {} into {into}", name.branch());
    match (&request.message, request.how) {
        (Some(message), _) => Ok(message.clone()),
        (None, MergeMethod::Squash) => {
            let title = request.title.clone().unwrap_or_else(default);
            squash_message(repository, name, before, tips, title)
        }
        (None, _) => Ok(default()),
    }
}

/// Returns a title, and below it the subjects of the squashed commits.
fn squash_message(
    repository: &Repository,
    name: &WorkspaceName,
    before: &str,
    tips: &[&str],
    title: String,
) -> Result<String, ToolError> {
    let without = format!("^{before}");
    let args = [&["log", "--reverse", "--no-merges", "--format=%s", &without], tips].concat();
    let listed = String::from_utf8_lossy(&repository.git().read(&args)?).into_owned();
    let subjects: Vec<&str> = listed.lines().filter(|line| !line.trim().is_empty()).collect();
    Ok(match subjects.as_slice() {
        [] => title,
        [only] if *only == title => title,
        subjects => {
            let lines: Vec<String> = subjects.iter().map(|subject| format!("* {subject}")).collect();
            format!("{title}\n\nSquashed from {}:\n\n{}\n", name.branch(), lines.join("\n"))
        }
    })
}

//! The work in workspaces: differences, merges, syncs and conflicts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::FailureCode;
use crate::caller::{Caller, TaskRef};
use crate::view;

/// Which work to compare.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// Show the changes of this turn. Absent: all of the task's work.
    #[serde(default)]
    pub turn: Option<u64>,
    /// Return files and counts without the patch.
    #[serde(default)]
    pub stat: bool,
}

/// The changes in a workspace, with uncommitted and untracked files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    /// The id of the task.
    pub task: u64,
    /// The slug of the task.
    pub slug: String,
    /// The base that the work is compared with. Absent for a turn.
    pub base: Option<String>,
    /// The turn, if the changes are those of one turn.
    pub turn: Option<u64>,
    /// The commit or tree before the changes.
    pub from: String,
    /// The tree after the changes.
    pub to: String,
    /// The changed files.
    pub files: Vec<FileDiff>,
    /// The number of added lines.
    pub additions: u64,
    /// The number of removed lines.
    pub deletions: u64,
    /// The patch in the format of `git apply`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Bytes>,
    /// The pager in git's configuration, `pager.diff` or `core.pager`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pager: Option<String>,
    /// Files that could not be read, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The changes of one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileDiff {
    /// The path of the file.
    pub path: Bytes,
    /// The path before, if the file was renamed or copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_path: Option<Bytes>,
    /// The kind of change.
    pub status: FileStatus,
    /// The number of added lines, 0 for a binary file.
    pub additions: u64,
    /// The number of removed lines, 0 for a binary file.
    pub deletions: u64,
    /// Whether the file is binary.
    pub binary: bool,
}

/// The kind of change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileStatus {
    /// The file is new.
    Added,
    /// The content or the mode changed.
    Modified,
    /// The file is gone.
    Deleted,
    /// The file has another path.
    Renamed,
    /// The file is a copy of another one.
    Copied,
    /// A file became a link or a submodule, or the reverse.
    TypeChanged,
}

/// A merge of a task's work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MergeParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// The kind of merge.
    #[serde(default)]
    pub how: MergeHow,
    /// The local branch to merge into. Absent: the task's base if it is a branch, otherwise the current branch of the main
    /// checkout.
    #[serde(default)]
    pub into: Option<String>,
    /// The message of the new commit, if the merge makes one.
    #[serde(default)]
    pub message: Option<String>,
    /// Commit uncommitted work first. Without this, uncommitted work refuses the merge.
    #[serde(default)]
    pub commit: bool,
    /// Stop an agent that waits for input first. Without this, a running agent refuses the merge.
    #[serde(default)]
    pub stop: bool,
    /// With `stop`: also stop an agent that is in the middle of its turn.
    #[serde(default)]
    pub interrupt: bool,
    /// The caller. git and its hooks get the caller's environment.
    #[serde(default)]
    pub caller: Caller,
}

/// Every obstacle to a merge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MergePlan {
    /// The task.
    pub task: view::Task,
    /// The branch to merge into, if there is one.
    pub into: Option<String>,
    /// The obstacles. None: the merge can begin.
    pub obstacles: Vec<MergeObstacle>,
}

/// One obstacle to a merge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MergeObstacle {
    /// The code of the refusal.
    pub code: FailureCode,
    /// The reason, for people.
    pub text: String,
    /// The step of a merge that removes the obstacle. Absent: the user must remove it.
    #[serde(default)]
    pub step: Option<MergeStep>,
    /// A way out for the user, if no step removes the obstacle.
    #[serde(default)]
    pub hint: Option<String>,
}

/// A step that a merge can take first, if the caller agrees to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeStep {
    /// Stop an agent that waits for input: `stop`.
    Stop,
    /// Stop an agent that is in the middle of its turn: `stop` and `interrupt`.
    Interrupt,
    /// Commit uncommitted work: `commit`.
    Commit,
}

impl MergeParams {
    /// Whether the caller agrees to the step.
    pub fn agrees_to(&self, step: MergeStep) -> bool {
        match step {
            MergeStep::Stop => self.stop,
            MergeStep::Interrupt => self.stop && self.interrupt,
            MergeStep::Commit => self.commit,
        }
    }
}

/// The kind of merge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeHow {
    /// Always make a merge commit.
    #[default]
    Merge,
    /// Make one commit with all of the work.
    Squash,
    /// Rewrite the task's commits on top of the target.
    Rebase,
    /// Move the target to the task's commits. Refused if the target has other commits.
    FastForward,
}

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Merged {
    /// The task.
    pub task: view::Task,
    /// The branch that the work was merged into.
    pub into: String,
    /// The commit of that branch before the merge.
    pub before: String,
    /// The commit of that branch after the merge.
    pub after: String,
    /// The checkout of that branch whose files were updated.
    #[serde(default)]
    pub checkout: Option<Bytes>,
    /// The commit that Agency made of uncommitted work.
    #[serde(default)]
    pub committed: Option<String>,
    /// Whether Agency stopped the agent first.
    #[serde(default)]
    pub stopped: bool,
    /// Remarks for the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A sync of a workspace with its base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SyncParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// The kind of sync.
    #[serde(default)]
    pub how: SyncHow,
    /// The caller. git and its hooks get the caller's environment.
    #[serde(default)]
    pub caller: Caller,
}

/// The kind of sync.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SyncHow {
    /// Rewrite the task's commits on top of the base.
    #[default]
    Rebase,
    /// Make a merge commit on the task's branch.
    Merge,
}

/// The result of a sync.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Synced {
    /// The task.
    pub task: view::Task,
    /// The base.
    pub base: String,
    /// The number of commits of the base that are new in the workspace.
    pub commits: u64,
    /// The commit of the task's branch before the sync.
    pub before: String,
    /// The commit of the task's branch after the sync.
    pub after: String,
    /// The hidden ref that keeps the workspace as it was before a rebase.
    #[serde(default)]
    pub kept: Option<String>,
}

/// Tasks whose work conflicts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conflicts {
    /// The conflicts, one for each pair.
    pub conflicts: Vec<TaskConflict>,
}

/// A conflict and its task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskConflict {
    /// The id of the task.
    pub task: u64,
    /// The slug of the task.
    pub slug: String,
    /// The conflict.
    pub conflict: view::Conflict,
}

//! The work in workspaces: what it changes, where it goes, and with what it would collide.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::method::{Caller, TaskRef};
use crate::view;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffParams {
    #[serde(flatten)]
    pub task: TaskRef,
    /// What this turn of the agent's did; all of the work when absent.
    #[serde(default)]
    pub turn: Option<u64>,
    /// Files and counts alone, without the patch.
    #[serde(default)]
    pub stat: bool,
}

/// What a workspace changes, uncommitted and untracked files included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    pub task: u64,
    pub slug: String,
    /// The base it is compared with; of a turn, absent.
    pub base: Option<String>,
    pub turn: Option<u64>,
    /// The commit or tree before, and the tree after.
    pub from: String,
    pub to: String,
    pub files: Vec<FileDiff>,
    pub additions: u64,
    pub deletions: u64,
    /// As `git apply` takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Bytes>,
    /// What git is configured to show it with, `pager.diff` or `core.pager`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pager: Option<String>,
    /// What could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileDiff {
    pub path: Bytes,
    /// Where it was before, if it was renamed or copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_path: Option<Bytes>,
    pub status: FileStatus,
    /// Lines; none of a binary file.
    pub additions: u64,
    pub deletions: u64,
    pub binary: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileStatus {
    Added,
    Modified,
    Deleted,
    Renamed,
    Copied,
    /// A file became a link or a submodule, or the other way round.
    TypeChanged,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MergeParams {
    #[serde(flatten)]
    pub task: TaskRef,
    #[serde(default)]
    pub how: MergeHow,
    /// A local branch; when absent the task's base, or the current branch of the main checkout if that is none.
    #[serde(default)]
    pub into: Option<String>,
    /// Of the new commit, if one is made.
    #[serde(default)]
    pub message: Option<String>,
    /// Commit what is not committed first; otherwise that refuses.
    #[serde(default)]
    pub commit: bool,
    /// Whose environment git and the hooks get.
    #[serde(default)]
    pub caller: Caller,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeHow {
    /// A merge commit, always.
    #[default]
    Merge,
    /// One commit with all of it.
    Squash,
    /// Its commits, written anew on top of the target.
    Rebase,
    /// Its commits as they are; refused if the target has others.
    FastForward,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Merged {
    pub task: view::Task,
    pub into: String,
    /// The commit of the target before and after.
    pub before: String,
    pub after: String,
    /// The checkout of the target, whose files were brought up to date.
    #[serde(default)]
    pub checkout: Option<Bytes>,
    /// The commit of what was not committed.
    #[serde(default)]
    pub committed: Option<String>,
    /// What else is worth knowing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SyncParams {
    #[serde(flatten)]
    pub task: TaskRef,
    #[serde(default)]
    pub how: SyncHow,
    /// Whose environment git and the hooks get.
    #[serde(default)]
    pub caller: Caller,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SyncHow {
    /// The task's commits are written anew on top of the base.
    #[default]
    Rebase,
    /// A merge commit on the task's branch.
    Merge,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Synced {
    pub task: view::Task,
    pub base: String,
    /// Commits of the base that came in.
    pub commits: u64,
    /// The commit of the task's branch before and after.
    pub before: String,
    pub after: String,
    /// The hidden ref that keeps the workspace as it was before a rebase.
    #[serde(default)]
    pub kept: Option<String>,
}

/// Whose work would collide.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conflicts {
    pub conflicts: Vec<Colliding>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Colliding {
    pub task: u64,
    pub slug: String,
    pub conflict: view::Conflict,
}

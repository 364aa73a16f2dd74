//! The work in workspaces: what it changes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::method::TaskRef;

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

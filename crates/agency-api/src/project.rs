//! The list of projects: directories in which Agency was used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;

/// All projects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Projects {
    /// The projects, by path.
    pub projects: Vec<ProjectView>,
}

/// One project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectView {
    /// The end of its path that no other project has. `NAME/TASK` names a task of the project from everywhere.
    pub name: String,
    /// Its root directory.
    pub root: Bytes,
    /// The kind of its workspaces: `git`, `jj` or `none`. Empty if the project cannot be opened.
    pub vcs: String,
    /// The number of its tasks.
    pub tasks: u64,
    /// The number of its agents that are running.
    pub live_agents: u64,
    /// Whether its directory is missing or cannot be opened.
    pub missing: bool,
}

/// The project to add.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectAddParams {
    /// A directory in the project, as an absolute path.
    pub path: Bytes,
}

/// The project to leave out of lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectForgetParams {
    /// The caller's directory.
    pub cwd: Bytes,
    /// A path, or the end of the path of exactly one project.
    pub name: String,
}

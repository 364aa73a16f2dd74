//! The caller of a method: the task or project it names, and the environment it calls from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::config::Overrides;
use crate::keeper::Size;

/// The project that a directory is in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectRef {
    /// The caller's directory.
    pub cwd: Bytes,
}

/// A task, as a user names it: of the project that a directory is in, or of another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRef {
    /// The caller's directory.
    pub cwd: Bytes,
    /// In the project of `cwd`: the id, the slug, `id-slug` or a unique prefix of the slug. In another project:
    /// `PROJECT/NAME`, where `PROJECT` is the end of the project's path; or a whole slug or `id-slug` that no other
    /// project has. The project of `cwd` comes first. `cwd` may be in no project.
    pub name: String,
}

/// The properties of the caller's terminal and process that a started program takes over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Caller {
    /// The environment variables.
    pub env: Vec<(Bytes, Bytes)>,
    /// The size of the terminal.
    pub size: Option<Size>,
    /// The soft and the hard limit of open files.
    pub open_files: Option<(u64, u64)>,
    /// Configuration for this call only.
    #[serde(default)]
    pub overrides: Overrides,
    /// A word that the caller chooses. Events of a setup that this call starts or waits for carry it in `asked_by`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<String>,
}

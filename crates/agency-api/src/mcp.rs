//! What agents may do to other tasks, and who of them asks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::view;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TermsParams {
    pub cwd: Bytes,
    /// The run of the agent that asks; absent when a person's own program does.
    #[serde(default)]
    pub run: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Terms {
    /// The names of the tools that `[mcp]` allows.
    pub allow: Vec<String>,
    /// Whose agent asks.
    pub asker: Option<view::Task>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PermitParams {
    #[serde(flatten)]
    pub who: TermsParams,
    pub tool: String,
    /// What it is about, as for other methods; absent where it is about no task.
    #[serde(default)]
    pub task: Option<String>,
}

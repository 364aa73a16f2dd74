//! The actions that an agent may take on other tasks through the MCP server, and which agent calls it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::view;

/// The caller of the MCP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TermsParams {
    /// The caller's directory. It selects the project.
    pub cwd: Bytes,
    /// The run of the agent that calls. Absent if a program of the user calls.
    #[serde(default)]
    pub run: Option<String>,
}

/// The actions that the caller may take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Terms {
    /// The names of the tools that `[mcp]` allows.
    pub allow: Vec<String>,
    /// The task of the agent that calls.
    pub asker: Option<view::Task>,
}

/// Asks whether the caller may use a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PermitParams {
    /// The caller.
    #[serde(flatten)]
    pub who: TermsParams,
    /// The name of the tool.
    pub tool: String,
    /// The task that the tool would act on, named as in other methods. Absent if it acts on no task.
    #[serde(default)]
    pub task: Option<String>,
}

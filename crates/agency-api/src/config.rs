//! The configuration as it travels: what a call says about it, what is in force, what was changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;

/// Variables that Agency itself sets or heeds and that are no part of the configuration.
const OTHER_VARIABLES: [&str; 13] = [
    "AGENCY_TASK_ID",
    "AGENCY_SLUG",
    "AGENCY_BODY",
    "AGENCY_PROMPT",
    "AGENCY_PROMPT_FILE",
    "AGENCY_PROJECT_ROOT",
    "AGENCY_WORKTREE",
    "AGENCY_SESSION_ID",
    "AGENCY_MESSAGE",
    "AGENCY_SOCKET",
    "AGENCY_RUN_ID",
    "AGENCY_LOG",
    "AGENCY_KEEPER",
];

/// What a call says about the configuration, for itself alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Overrides {
    /// `AGENCY_…` variables of its environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<(String, String)>,
    /// `KEY=VALUE`, as given on its command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

impl Overrides {
    pub fn from_process(options: &[String]) -> Overrides {
        let ours = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok().filter(|name| is_setting(name))?;
            Some((name, value.to_string_lossy().into_owned()))
        });
        Overrides { variables: ours.collect(), options: options.to_vec() }
    }
}

fn is_setting(variable: &str) -> bool {
    variable.starts_with("AGENCY_") && !OTHER_VARIABLES.contains(&variable)
}

/// Which file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    #[default]
    User,
    Project,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShowParams {
    pub cwd: Bytes,
    /// This key alone.
    #[serde(default)]
    pub key: Option<String>,
    #[serde(default)]
    pub overrides: Overrides,
}

/// The effective configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shown {
    pub files: Files,
    pub settings: Vec<Entry>,
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Files {
    pub user: Option<FileState>,
    /// Absent outside a project.
    pub project: Option<FileState>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileState {
    pub path: Bytes,
    pub exists: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    pub key: String,
    /// Null where nothing is set and there is no default.
    pub value: serde_json::Value,
    /// The value as `config.toml` has it; empty for null.
    pub toml: String,
    pub origin: Origin,
    /// When a change counts.
    pub applies: String,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    Default,
    User { file: Bytes, line: u64 },
    Project { file: Bytes, line: u64 },
    Environment { variable: String },
    Option,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetParams {
    pub cwd: Bytes,
    #[serde(default)]
    pub scope: Scope,
    pub key: String,
    /// The value, a word at a time; without, the key is taken out.
    #[serde(default)]
    pub words: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    pub file: Bytes,
    pub changed: bool,
    /// What the user should know: when it counts, what wins over it, what waits for consent.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileParams {
    pub cwd: Bytes,
    #[serde(default)]
    pub scope: Scope,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileContent {
    pub file: Bytes,
    /// Absent when there is no such file.
    pub content: Option<Bytes>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WriteParams {
    pub cwd: Bytes,
    #[serde(default)]
    pub scope: Scope,
    /// What the writer began from; a file that has changed since is left alone.
    pub before: Option<Bytes>,
    pub content: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tasks_own_variables_are_no_settings() {
        for name in ["AGENCY_PROMPT", "AGENCY_SOCKET", "PATH", "agency_max_agents"] {
            assert!(!is_setting(name), "{name}");
        }
        assert!(is_setting("AGENCY_MAX_AGENTS") && is_setting("AGENCY_MAX_AGENT"));
    }
}

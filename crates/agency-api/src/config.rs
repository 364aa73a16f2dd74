//! The configuration in the API: overrides of a single call, the effective values, and changes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;

/// Variables that Agency sets or reads itself. They are not part of the configuration.
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

/// Configuration that applies to one call only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Overrides {
    /// The `AGENCY_…` variables in the caller's environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<(String, String)>,
    /// `KEY=VALUE` options on the caller's command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

impl Overrides {
    /// The overrides of this process: its environment, and these options.
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

/// A configuration file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The user's `config.toml`.
    #[default]
    User,
    /// `.agency/config.toml` of the project.
    Project,
}

/// Which configuration to show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShowParams {
    /// The caller's directory. It selects the project.
    pub cwd: Bytes,
    /// Show this key only.
    #[serde(default)]
    pub key: Option<String>,
    /// Configuration of this call.
    #[serde(default)]
    pub overrides: Overrides,
}

/// The effective configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shown {
    /// The configuration files.
    pub files: Files,
    /// The keys and their values.
    pub settings: Vec<Entry>,
    /// Problems in the files.
    pub warnings: Vec<String>,
}

/// The two configuration files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Files {
    /// The user's file. Absent if there is no home directory.
    pub user: Option<FileState>,
    /// The project's file. Absent outside a project.
    pub project: Option<FileState>,
}

/// A configuration file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileState {
    /// The path of the file.
    pub path: Bytes,
    /// Whether the file exists.
    pub exists: bool,
}

/// One key and its effective value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// The key, for example `workspace.setup`.
    pub key: String,
    /// The value. Null if the key has no value and no default.
    pub value: serde_json::Value,
    /// The value in the syntax of `config.toml`. Empty for null.
    pub toml: String,
    /// Where the value comes from.
    pub origin: Origin,
    /// When a change of the key takes effect.
    pub applies: String,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    /// The default of Agency.
    Default,
    /// The user's file.
    User {
        /// The path of the file.
        file: Bytes,
        /// The line in the file, counted from 1.
        line: u64,
    },
    /// The project's file.
    Project {
        /// The path of the file.
        file: Bytes,
        /// The line in the file, counted from 1.
        line: u64,
    },
    /// An environment variable.
    Environment {
        /// The name of the variable.
        variable: String,
    },
    /// An option on the command line.
    Option,
}

/// A change of one key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SetParams {
    /// The caller's directory. It selects the project.
    pub cwd: Bytes,
    /// The file to change.
    #[serde(default)]
    pub scope: Scope,
    /// The key to change.
    pub key: String,
    /// The words of the new value. Absent: remove the key.
    #[serde(default)]
    pub words: Option<Vec<String>>,
}

/// The result of a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// The path of the file.
    pub file: Bytes,
    /// Whether the file is different now.
    pub changed: bool,
    /// Remarks for the user: when the change takes effect, which value overrides it, what needs consent.
    pub notes: Vec<String>,
}

/// Which configuration file to read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileParams {
    /// The caller's directory. It selects the project.
    pub cwd: Bytes,
    /// The file to read.
    #[serde(default)]
    pub scope: Scope,
}

/// The content of a configuration file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileContent {
    /// The path of the file.
    pub file: Bytes,
    /// The content. Absent if the file does not exist.
    pub content: Option<Bytes>,
}

/// Replaces a configuration file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WriteParams {
    /// The caller's directory. It selects the project.
    pub cwd: Bytes,
    /// The file to replace.
    #[serde(default)]
    pub scope: Scope,
    /// The content that the caller edited. The daemon refuses if the file has another content now.
    pub before: Option<Bytes>,
    /// The new content.
    pub content: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_a_task_are_not_configuration() {
        for name in ["AGENCY_PROMPT", "AGENCY_SOCKET", "PATH", "agency_max_agents"] {
            assert!(!is_setting(name), "{name}");
        }
        assert!(is_setting("AGENCY_MAX_AGENTS") && is_setting("AGENCY_MAX_AGENT"));
    }
}

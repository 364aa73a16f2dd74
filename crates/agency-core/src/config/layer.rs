//! One `config.toml` after it was read and checked.
//!
//! Knows nothing of the files that it will be merged with.

use std::collections::BTreeMap;

use super::key::{Key, UnknownName};
use super::schema::InProject;
use super::value::Value;
use crate::agent::{built_ins, canonical_name};
use crate::spelling::did_you_mean;

/// The settings of one file, or the variables and options of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Every key that is set.
    pub settings: BTreeMap<Key, Setting>,
    /// Keys that do not exist.
    pub unknown_keys: Vec<UnknownKey>,
}

/// A value and where it was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The value.
    pub value: Value,
    /// Where it was set.
    pub origin: Origin,
}

/// Where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The default.
    BuiltIn,
    /// A line of a file.
    File {
        /// The file as messages name it.
        file: String,
        /// Counted from 1.
        line: usize,
    },
    /// An environment variable, by name.
    Variable(String),
    /// `--config`, on the command line.
    Option,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::BuiltIn => f.write_str("built in"),
            Origin::File { file, line } => write!(f, "{file}:{line}"),
            Origin::Variable(name) => write!(f, "${name}"),
            Origin::Option => f.write_str("--config"),
        }
    }
}

/// The settings of a project's file, split by how far Agency trusts the project with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitLayer {
    /// Used without consent.
    pub free: Layer,
    /// Used once the user agreed to the file.
    pub waiting: BTreeMap<Key, Setting>,
    /// Never used: a project may not set them.
    pub ignored: Vec<Key>,
}

impl Layer {
    /// Splits a project's file. `user` is the user's file: a project may not choose an agent that the user configured.
    pub fn split_by_trust(self, user: Option<&Layer>) -> SplitLayer {
        let Layer { settings, unknown_keys } = self;
        let mut split = SplitLayer {
            free: Layer { settings: BTreeMap::new(), unknown_keys },
            waiting: BTreeMap::new(),
            ignored: Vec::new(),
        };
        for (key, setting) in settings {
            let free = match key.info().in_project {
                InProject::Free => true,
                InProject::BuiltInAgents => names_unchanged_agent(&setting.value, user),
                InProject::Consent => false,
                InProject::Never => {
                    split.ignored.push(key);
                    continue;
                }
            };
            let target = if free { &mut split.free.settings } else { &mut split.waiting };
            target.insert(key, setting);
        }
        split
    }
}

fn names_unchanged_agent(value: &Value, user: Option<&Layer>) -> bool {
    let Value::Text(name) = value else { return false };
    let name = canonical_name(name);
    let changed = |key: &Key| match key {
        Key::Config(_) | Key::Rule { .. } => false,
        Key::Agent { agent, .. } | Key::Env { agent, .. } => agent == name,
    };
    built_ins().iter().any(|agent| agent.name == name)
        && !user.is_some_and(|layer| layer.settings.keys().any(changed))
}

/// A position in a file as editors use it: both numbers count from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The file as messages name it.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A key that Agency does not know. It is worth a warning, because it is usually a typing error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{position}: unknown key `{key}`")]
pub struct UnknownKey {
    /// Where the key is.
    pub position: Position,
    /// The whole path of the key.
    pub key: String,
    /// Keys that the user may have meant.
    pub nearest: Vec<String>,
}

impl UnknownKey {
    /// A hint for the user.
    pub fn hint(&self) -> Option<String> {
        did_you_mean(&self.nearest)
    }
}

/// Why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{position}: {problem}")]
pub struct ConfigError {
    /// Where the problem is.
    pub position: Position,
    /// The problem.
    pub problem: ConfigProblem,
    /// The line, and below it a mark under the position.
    pub excerpt: Box<str>,
}

impl ConfigError {
    /// A hint for the user.
    pub fn hint(&self) -> String {
        self.problem
            .hint()
            .unwrap_or_else(|| format!("correct line {} of {}", self.position.line, self.position.file))
    }
}

/// A problem with a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigProblem {
    /// The text is not TOML.
    #[error("{0}")]
    Syntax(String),
    /// The key takes another kind of value.
    #[error("`{key}` must be {expected}, not {got}")]
    WrongType {
        /// The key.
        key: String,
        /// The kind of value that the key takes.
        expected: &'static str,
        /// The value in the file, in words.
        got: String,
    },
    /// The text is not a time.
    #[error("`{key}`: {source}")]
    Time {
        /// The key.
        key: String,
        /// The problem with the time.
        source: super::TimeSpanError,
    },
    /// The text contains a NUL character.
    #[error("`{key}` contains a NUL character, which cannot be passed to a program")]
    Nul {
        /// The key.
        key: String,
    },
    /// The command is empty.
    #[error("`{key}` names no program")]
    NoProgram {
        /// The key.
        key: String,
    },
    /// There is no such key.
    #[error("{0}")]
    Unknown(UnknownName),
    /// An option has no `=`.
    #[error("`{}` is not KEY=VALUE", .0.escape_debug())]
    NoValue(String),
    /// The text cannot name an agent.
    #[error("`{}` cannot be the name of an agent", .0.escape_debug())]
    AgentName(String),
    /// The text cannot name a variable.
    #[error("`{}` cannot be the name of a variable", .0.escape_debug())]
    VariableName(String),
    /// A rule has no tool or no decision.
    #[error("`{rule}` has no `{key}`")]
    RuleLacks {
        /// The rule: `approve[2]`.
        rule: String,
        /// The key that is missing.
        key: &'static str,
    },
    /// A rule has a key that does not exist.
    #[error("unknown key `{key}`, so the meaning of the rule is not clear")]
    RuleKey {
        /// The whole path of the key.
        key: String,
        /// Keys that the user may have meant.
        nearest: Vec<String>,
    },
    /// Only an editor can change this key.
    #[error("`{key}` can only be changed in its file")]
    ByHand {
        /// The key.
        key: String,
    },
}

impl ConfigProblem {
    pub(super) fn wrong_type(key: &Key, got: String) -> ConfigProblem {
        ConfigProblem::WrongType { key: key.to_string(), expected: key.kind().expected(), got }
    }

    /// A hint for the user, if there is more to say than the message does.
    pub fn hint(&self) -> Option<String> {
        match self {
            ConfigProblem::Time { source, .. } => Some(source.hint()),
            ConfigProblem::NoProgram { key } => {
                Some(format!("put the program first, as in {key} = [\"sh\"], or write [] for none"))
            }
            ConfigProblem::AgentName(_) => {
                Some("use letters, digits, `-`, `_` and `.`, starting with a letter or digit".to_owned())
            }
            ConfigProblem::VariableName(_) => Some("a variable has a name, without `=`".to_owned()),
            ConfigProblem::Unknown(unknown) => Some(unknown.hint()),
            ConfigProblem::NoValue(_) => Some("write it as in --config max_agents=3".to_owned()),
            ConfigProblem::RuleLacks { key: "tool", .. } => {
                Some("write tool = \"Bash\", or tool = \"*\" for every tool".to_owned())
            }
            ConfigProblem::RuleLacks { .. } => {
                Some("write decision = \"allow\", \"deny\" or \"ask\"".to_owned())
            }
            ConfigProblem::RuleKey { nearest, .. } => did_you_mean(nearest)
                .or_else(|| Some("a rule has tool, match, agent, decision and why".to_owned())),
            ConfigProblem::ByHand { .. } => Some("agency config edit".to_owned()),
            ConfigProblem::Syntax(_) | ConfigProblem::WrongType { .. } | ConfigProblem::Nul { .. } => None,
        }
    }
}

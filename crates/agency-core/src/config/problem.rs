//! Problems of a configuration: what is wrong, where, and a hint.

use super::key::{Key, UnknownName};
use super::time_span::TimeSpanError;
use crate::spelling::did_you_mean;

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
        source: TimeSpanError,
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

impl From<UnknownName> for ConfigProblem {
    fn from(unknown: UnknownName) -> ConfigProblem {
        ConfigProblem::Unknown(unknown)
    }
}

//! One `config.toml`, read and checked.
//!
//! Knows nothing of the other files it will be merged with.

use std::collections::BTreeMap;

use super::schema::{Key, Value};
use crate::spelling::did_you_mean;

/// What one file sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// As messages name it.
    pub file: String,
    pub settings: BTreeMap<Key, Setting>,
    pub unknown_keys: Vec<UnknownKey>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub value: Value,
    pub line: usize,
}

impl Layer {
    /// Does anything in this file make Agency run a program? Then a project's file waits for consent to its
    /// exact text.
    pub fn runs_commands(&self) -> bool {
        self.settings.keys().any(Key::runs_commands)
    }

    /// The part that may be used without consent, and the keys that wait for it.
    pub fn without_commands(mut self) -> (Layer, Vec<Key>) {
        let waiting = self.settings.keys().filter(|key| key.runs_commands()).cloned().collect();
        self.settings.retain(|key, _| !key.runs_commands());
        (self, waiting)
    }
}

/// A place in a file, as editors jump to it: both numbers count from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub file: String,
    pub line: usize,
    pub column: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A key that means nothing to us: worth a warning, since it is mostly a slip of the finger.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: unknown key `{key}`")]
pub struct UnknownKey {
    pub place: Place,
    pub key: String,
    pub nearest: Vec<String>,
}

impl UnknownKey {
    pub fn hint(&self) -> Option<String> {
        did_you_mean(&self.nearest)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct ConfigError {
    pub place: Place,
    pub problem: ConfigProblem,
}

impl ConfigError {
    pub fn hint(&self) -> String {
        self.problem
            .hint()
            .unwrap_or_else(|| format!("correct line {} of {}", self.place.line, self.place.file))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigProblem {
    #[error("{0}")]
    Syntax(String),
    #[error("`{key}` must be {expected}, not {got}")]
    WrongType { key: String, expected: &'static str, got: String },
    #[error("`{key}`: {source}")]
    Time { key: String, source: super::TimeSpanError },
    #[error("`{key}` contains a NUL character, which no program can be given")]
    Nul { key: String },
    #[error("`{key}` names no program")]
    NoProgram { key: String },
    #[error("`{}` cannot be the name of an agent", .0.escape_debug())]
    AgentName(String),
    #[error("`{}` cannot be the name of a variable", .0.escape_debug())]
    VariableName(String),
}

impl ConfigProblem {
    fn hint(&self) -> Option<String> {
        match self {
            ConfigProblem::Time { source, .. } => Some(source.hint()),
            ConfigProblem::NoProgram { key } => {
                Some(format!("put the program first, as in {key} = [\"sh\"], or write [] for none"))
            }
            ConfigProblem::AgentName(_) => {
                Some("use letters, digits, `-`, `_` and `.`, starting with a letter or digit".to_owned())
            }
            ConfigProblem::VariableName(_) => Some("a variable has a name, without `=`".to_owned()),
            ConfigProblem::Syntax(_) | ConfigProblem::WrongType { .. } | ConfigProblem::Nul { .. } => None,
        }
    }
}

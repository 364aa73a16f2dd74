//! One `config.toml`, read and checked.
//!
//! Knows nothing of the other files it will be merged with.

use std::collections::BTreeMap;

use super::key::{Key, UnknownName};
use super::schema::InProject;
use super::value::Value;
use crate::agent::{built_ins, canonical_name};
use crate::spelling::did_you_mean;

/// What one file sets, or the variables and options of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    pub settings: BTreeMap<Key, Setting>,
    pub unknown_keys: Vec<UnknownKey>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub value: Value,
    pub origin: Origin,
}

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    BuiltIn,
    File {
        file: String,
        line: usize,
    },
    /// A variable of the environment, by name.
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

/// A project's file, split by how far it is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sifted {
    /// Used whether or not anybody agreed.
    pub free: Layer,
    /// Used once somebody agreed.
    pub waiting: BTreeMap<Key, Setting>,
    /// Not for a project to say.
    pub ignored: Vec<Key>,
}

impl Layer {
    /// Splits a project's file. `user` is the user's own, whose agents a stranger does not choose from.
    pub fn sifted(self, user: Option<&Layer>) -> Sifted {
        let Layer { settings, unknown_keys } = self;
        let mut sifted = Sifted {
            free: Layer { settings: BTreeMap::new(), unknown_keys },
            waiting: BTreeMap::new(),
            ignored: Vec::new(),
        };
        for (key, setting) in settings {
            let free = match key.info().in_project {
                InProject::Free => true,
                InProject::BuiltInAgents => names_untouched_agent(&setting.value, user),
                InProject::Consent => false,
                InProject::Never => {
                    sifted.ignored.push(key);
                    continue;
                }
            };
            let into = if free { &mut sifted.free.settings } else { &mut sifted.waiting };
            into.insert(key, setting);
        }
        sifted
    }
}

fn names_untouched_agent(value: &Value, user: Option<&Layer>) -> bool {
    let Value::Text(name) = value else { return false };
    let name = canonical_name(name);
    let changed = |key: &Key| match key {
        Key::Config(_) | Key::Rule { .. } => false,
        Key::Agent { agent, .. } | Key::Env { agent, .. } => agent == name,
    };
    built_ins().iter().any(|agent| agent.name == name)
        && !user.is_some_and(|layer| layer.settings.keys().any(changed))
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
    /// The line, and below it a mark under the place.
    pub excerpt: Box<str>,
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
    #[error("{0}")]
    Unknown(UnknownName),
    #[error("`{}` is not KEY=VALUE", .0.escape_debug())]
    NoValue(String),
    #[error("`{}` cannot be the name of an agent", .0.escape_debug())]
    AgentName(String),
    #[error("`{}` cannot be the name of a variable", .0.escape_debug())]
    VariableName(String),
    #[error("`{rule}` has no `{key}`")]
    RuleLacks { rule: String, key: &'static str },
    #[error("unknown key `{key}`, so what the rule means is not clear")]
    RuleKey { key: String, nearest: Vec<String> },
    #[error("`{key}` stands in a file and is changed there")]
    ByHand { key: String },
}

impl ConfigProblem {
    pub(super) fn wrong_type(key: &Key, got: String) -> ConfigProblem {
        ConfigProblem::WrongType { key: key.to_string(), expected: key.kind().expected(), got }
    }

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

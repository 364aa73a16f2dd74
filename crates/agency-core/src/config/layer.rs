//! One `config.toml` after it was read and checked.
//!
//! Knows nothing of the files that it will be merged with.

use std::collections::BTreeMap;

use super::key::Key;
use super::problem::UnknownKey;
use super::schema::InProject;
use super::value::Value;
use crate::agent::{built_ins, canonical_name};

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

//! The name of one key of `config.toml`: read, written and compared.
//!
//! Not here: which keys exist and what they take (`schema`).

use std::fmt;

use super::schema::{
    AGENT_KEYS, APPROVE, ConfigKey, ENV, FieldKey, GENERAL, KeyInfo, TABLES, config_key, find, named_tables,
};
use super::value::ValueKind;
use crate::agent::{Agent, canonical_name};
use crate::spelling::{did_you_mean, nearest};

/// One key of `config.toml`, with the tables that it is in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A key whose whole path is fixed: `max_agents`, `notify.command`.
    Config(ConfigKey),
    /// A key of `[agents.NAME]`.
    Agent {
        /// The name of the agent, never an alias.
        agent: String,
        /// The key inside the agent's table.
        key: &'static FieldKey<Agent>,
    },
    /// A variable of `[agents.NAME.env]`.
    Env {
        /// The name of the agent, never an alias.
        agent: String,
        /// The name of the variable.
        variable: String,
    },
    /// One table of `[[approve]]`.
    Rule {
        /// Its place among the rules, counted from 1.
        number: usize,
    },
}

impl Key {
    /// `default_agent`
    pub const DEFAULT_AGENT: Key = Key::Config(config_key("", "default_agent"));
    /// `detach_keys`
    pub const DETACH_KEYS: Key = Key::Config(config_key("", "detach_keys"));
    /// `max_agents`
    pub const MAX_AGENTS: Key = Key::Config(config_key("", "max_agents"));
    /// `stale_timeout`
    pub const STALE_TIMEOUT: Key = Key::Config(config_key("", "stale_timeout"));
    /// `workspace.setup`
    pub const WORKSPACE_SETUP: Key = Key::Config(config_key("workspace", "setup"));

    /// Every key whose path is fixed, in the order of the reference.
    pub fn all_fixed() -> impl Iterator<Item = Key> {
        TABLES
            .iter()
            .flat_map(|table| table.keys.iter().map(|key| Key::Config(ConfigKey { table: table.name, key })))
    }

    /// Reads `max_agents`, `notify.command`, `agents.NAME.start`, `agents.NAME.env.VARIABLE`; quotes as in TOML.
    pub fn parse(text: &str) -> Result<Key, UnknownName> {
        let unknown = |nearest: Vec<String>| UnknownName { name: text.to_owned(), nearest };
        if let Some(number) = text.strip_prefix(APPROVE.name).map(rule_number) {
            return number
                .map(|number| Key::Rule { number })
                .ok_or_else(|| unknown(vec!["approve[1]".to_owned()]));
        }
        let path = toml_edit::Key::parse(text).map_err(|_| unknown(Vec::new()))?;
        let path: Vec<&str> = path.iter().map(toml_edit::Key::get).collect();
        match path.as_slice() {
            ["agents", agent, name] if is_agent_name(agent) => match find(&AGENT_KEYS, name) {
                Some(key) if key.info.kind == ValueKind::Env => {
                    Err(unknown(vec![format!("{text}.VARIABLE")]))
                }
                Some(key) => Ok(Key::Agent { agent: canonical_name(agent).to_owned(), key }),
                None => Err(unknown(near(name, &AGENT_KEYS, &format!("agents.{}.", quoted(agent))))),
            },
            ["agents", agent, "env", variable] if is_agent_name(agent) && is_variable(variable) => {
                let (agent, variable) = (canonical_name(agent).to_owned(), (*variable).to_owned());
                Ok(Key::Env { agent, variable })
            }
            [name] => {
                GENERAL.find(name).map(Key::Config).ok_or_else(|| unknown(near(name, GENERAL.keys, "")))
            }
            [table, name] => match named_tables().find(|known| known.name == *table) {
                Some(table) => {
                    let missing = || unknown(near(name, table.keys, &format!("{}.", table.name)));
                    table.find(name).map(Key::Config).ok_or_else(missing)
                }
                None => Err(unknown(Vec::new())),
            },
            _ => Err(unknown(Vec::new())),
        }
    }

    /// The row of this key in the table of keys.
    pub fn info(&self) -> &'static KeyInfo {
        match self {
            Key::Config(config) => &config.key.info,
            Key::Agent { key, .. } => &key.info,
            Key::Env { .. } => &ENV.info,
            Key::Rule { .. } => &APPROVE,
        }
    }

    /// The kind of value that this key takes. A variable takes text, although `env` itself is a table.
    pub fn kind(&self) -> ValueKind {
        match self {
            Key::Config(_) | Key::Agent { .. } | Key::Rule { .. } => self.info().kind,
            Key::Env { .. } => ValueKind::Text,
        }
    }

    /// Whether a value of this key makes Agency run a program, or changes how a program runs.
    pub fn runs_commands(&self) -> bool {
        match self {
            Key::Config(_) | Key::Agent { .. } => {
                matches!(self.kind(), ValueKind::Command | ValueKind::Commands)
            }
            Key::Env { .. } => true,
            // A rule lets agents run something, but the agent chooses what.
            Key::Rule { .. } => false,
        }
    }

    /// The tables and the name, as TOML nests them.
    pub fn path(&self) -> Vec<&str> {
        match self {
            Key::Config(ConfigKey { table: "", key }) => vec![key.info.name],
            Key::Config(ConfigKey { table, key }) => vec![table, key.info.name],
            Key::Agent { agent, key } => vec!["agents", agent, key.info.name],
            Key::Env { agent, variable } => vec!["agents", agent, "env", variable],
            Key::Rule { .. } => vec![APPROVE.name],
        }
    }
}

/// Reads `[2]`.
fn rule_number(text: &str) -> Option<usize> {
    text.strip_prefix('[')?.strip_suffix(']')?.parse().ok().filter(|number| *number > 0)
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.path().into_iter().map(quoted).collect();
        f.write_str(&words.join("."))?;
        match self {
            Key::Rule { number } => write!(f, "[{number}]"),
            Key::Config(_) | Key::Agent { .. } | Key::Env { .. } => Ok(()),
        }
    }
}

fn quoted(word: &str) -> String {
    toml_edit::Key::new(word).display_repr().into_owned()
}

fn near<S>(name: &str, keys: &'static [FieldKey<S>], prefix: &str) -> Vec<String> {
    let found = nearest(name, keys.iter().map(|key| key.info.name));
    found.into_iter().map(|name| format!("{prefix}{name}")).collect()
}

pub(super) fn is_agent_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

pub(super) fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// The user named a key that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no key `{}`", .name.escape_debug())]
pub struct UnknownName {
    /// The name as the user wrote it.
    pub name: String,
    /// Keys that the user may have meant.
    pub nearest: Vec<String>,
}

impl UnknownName {
    /// A hint for the user.
    pub fn hint(&self) -> String {
        let near = did_you_mean(&self.nearest);
        near.unwrap_or_else(|| "`agency config` lists all keys".to_owned())
    }
}

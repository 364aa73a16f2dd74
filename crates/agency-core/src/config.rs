//! The effective configuration: defaults, then the user's file, the project's file, variables, options; key by key.
//!
//! Reads no files and asks for no consent: the caller passes the texts and learns which settings would run programs.

mod clipboard;
mod edit;
mod excerpt;
mod field;
mod key;
mod layer;
mod listing;
mod mcp;
mod notify;
mod overrides;
mod problem;
mod reader;
mod reference;
mod schema;
mod time_span;
mod ui;
mod value;
mod value_text;
mod workspace;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::agent::{Agent, AgentError, Agents};
use crate::approval::NamedRule;

pub use clipboard::{Clipboard, UnknownClipboard};
pub use edit::{EditError, set, unset};
pub use key::{Key, UnknownName};
pub use layer::{Layer, Origin, Setting, SplitLayer};
pub use mcp::{Mcp, TOOLS};
pub use notify::{Notify, OCCASIONS, TerminalNotice, UnknownTerminalNotice};
pub use overrides::{OverrideError, from_options, from_variables, variable_of};
pub use problem::{ConfigError, ConfigProblem, Position, UnknownKey};
pub use reader::parse;
pub use reference::{json_schema, reference};
pub use schema::{Applies, ConfigKey, FieldKey, InProject, KeyInfo};
pub use time_span::{TimeSpanError, parse_time_span};
pub use ui::{MarkStyle, Ui, UnknownMarkStyle};
pub use value::{Value, ValueKind};
pub use workspace::WorkspaceConfig;

/// The settings that are in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The agent of a task that names none.
    pub default_agent: Option<String>,
    /// Live terminal and stream-json runs of all projects together; 0 means no limit.
    pub max_agents: u32,
    /// Silence after which an agent counts as waiting.
    pub needs_input_timeout: Duration,
    /// Waiting after which an agent counts as stale.
    pub stale_timeout: Duration,
    /// How long agents may take to exit when the daemon stops them all.
    pub shutdown_timeout: Duration,
    /// As written; the client interprets it.
    pub detach_keys: String,
    /// Lines that a terminal keeps above the screen.
    pub scrollback: u32,
    /// Whether agents may write to the clipboard.
    pub clipboard: Clipboard,
    /// `[ui]`
    pub ui: Ui,
    /// `[notify]`
    pub notify: Notify,
    /// `[workspace]`
    pub workspace: WorkspaceConfig,
    /// `[mcp]`
    pub mcp: Mcp,
    /// Built-in and configured agents.
    pub agents: Agents,
    /// The rules, those of the user first.
    pub approve: Vec<NamedRule>,
    origins: BTreeMap<Key, Origin>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            default_agent: None,
            max_agents: 10,
            needs_input_timeout: Duration::from_secs(5),
            stale_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(30),
            detach_keys: "ctrl-q".to_owned(),
            scrollback: 10_000,
            clipboard: Clipboard::Deny,
            ui: Ui::default(),
            notify: Notify::default(),
            workspace: WorkspaceConfig::default(),
            mcp: Mcp::default(),
            agents: Agents::built_in(),
            approve: Vec::new(),
            origins: BTreeMap::new(),
        }
    }
}

impl Config {
    /// Merges layers. Later layers win, key by key, also inside agents and their environment. All rules are kept: the rules
    /// of a later layer come after those of earlier layers.
    pub fn merged<'a>(layers: impl IntoIterator<Item = &'a Layer>) -> Config {
        let mut config = Config::default();
        for layer in layers {
            for (key, setting) in &layer.settings {
                config.apply(key, setting.clone());
                config.origins.insert(config.own_key(key), setting.origin.clone());
            }
        }
        config
    }

    /// Where the value of a key was set.
    pub fn origin(&self, key: &Key) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::BuiltIn)
    }

    /// Every key that a layer sets, with its origin.
    pub fn origins(&self) -> impl Iterator<Item = (&Key, &Origin)> {
        self.origins.iter()
    }

    /// The agent of a task that names none.
    pub fn choose_default_agent(&self, installed: impl Fn(&str) -> bool) -> Result<&Agent, AgentError> {
        self.agents.choose_default(self.default_agent.as_deref(), installed)
    }

    /// Silence after which this agent counts as waiting.
    pub fn needs_input_timeout(&self, agent: &Agent) -> Duration {
        agent.needs_input_timeout.unwrap_or(self.needs_input_timeout)
    }

    /// Waiting after which this agent counts as stale.
    pub fn stale_timeout(&self, agent: &Agent) -> Duration {
        agent.stale_timeout.unwrap_or(self.stale_timeout)
    }

    /// The key under which the merged configuration lists a setting that it just applied: rules are counted among all
    /// rules, not within their file.
    fn own_key(&self, key: &Key) -> Key {
        match key {
            Key::Rule { .. } => Key::Rule { number: self.approve.len() },
            Key::Config(_) | Key::Agent { .. } | Key::Env { .. } => key.clone(),
        }
    }

    /// Sets the field of a key. The reader gives each key a value of its kind; another value changes nothing.
    fn apply(&mut self, key: &Key, setting: Setting) {
        let Setting { value, origin } = setting;
        match key {
            Key::Config(config) => (config.key.set)(self, value),
            Key::Agent { agent, key } => (key.set)(self.agents.entry(agent), value),
            Key::Env { agent, variable } => {
                let env = &mut self.agents.entry(agent).env;
                env.extend(value.text().map(|text| (variable.clone(), text)));
            }
            Key::Rule { number } => {
                let file = match origin {
                    Origin::File { file, .. } => file,
                    other => other.to_string(),
                };
                let name = format!("rule {number} of {file}");
                self.approve.extend(value.rule().map(|rule| NamedRule { name, rule }));
            }
        }
    }
}

#[cfg(test)]
mod tests;

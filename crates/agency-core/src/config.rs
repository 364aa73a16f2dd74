//! The effective configuration: defaults, then the user's file, the project's, variables, options; key by key.
//!
//! Reads no files and asks for no consent: it is given texts, and says which of them would run programs.

mod clipboard;
mod edit;
mod excerpt;
mod layer;
mod listing;
mod mcp;
mod notify;
mod overrides;
mod reader;
mod reference;
mod schema;
mod time_span;
mod value;
mod workspace;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::agent::{Agent, AgentError, Agents};
use crate::approval::NamedRule;

pub use clipboard::{Clipboard, UnknownClipboard};
pub use edit::{EditError, set, unset};
pub use layer::{ConfigError, ConfigProblem, Layer, Origin, Place, Setting, Sifted, UnknownKey};
pub use mcp::{Mcp, TOOLS};
pub use notify::{Notify, OCCASIONS, TerminalNotice, UnknownTerminalNotice};
pub use overrides::{OverrideError, from_options, from_variables, variable_of};
pub use reader::parse;
pub use reference::{json_schema, reference};
pub use schema::{
    AGENT_KEYS, APPROVE, Applies, GENERAL_KEYS, InProject, Key, KeyInfo, NAMED_TABLES, NamedTable, RULE_KEYS,
    UnknownName,
};
pub use time_span::{TimeSpanError, parse_time_span};
pub use value::{Kind, Value};
pub use workspace::WorkspaceConfig;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub default_agent: Option<String>,
    /// Live terminal and stream-json runs of all projects together; 0 is no limit.
    pub max_agents: u32,
    pub needs_input_timeout: Duration,
    pub stale_timeout: Duration,
    pub shutdown_timeout: Duration,
    /// As written; what it means is the client's business.
    pub detach_keys: String,
    /// Lines kept above the screen.
    pub scrollback: u32,
    pub clipboard: Clipboard,
    pub notify: Notify,
    pub workspace: WorkspaceConfig,
    pub mcp: Mcp,
    pub agents: Agents,
    /// The user's own first.
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
    /// Later layers win, key by key, inside agents and their environment too. Rules are all kept: those of a later
    /// layer are asked after those of the layers before.
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

    pub fn origin(&self, key: &Key) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::BuiltIn)
    }

    /// Every key that is set somewhere, and where.
    pub fn origins(&self) -> impl Iterator<Item = (&Key, &Origin)> {
        self.origins.iter()
    }

    /// The agent of a task that names none.
    pub fn choose_default_agent(&self, installed: impl Fn(&str) -> bool) -> Result<&Agent, AgentError> {
        self.agents.choose_default(self.default_agent.as_deref(), installed)
    }

    /// Silence after which this agent is taken to wait.
    pub fn needs_input_timeout(&self, agent: &Agent) -> Duration {
        agent.needs_input_timeout.unwrap_or(self.needs_input_timeout)
    }

    pub fn stale_timeout(&self, agent: &Agent) -> Duration {
        agent.stale_timeout.unwrap_or(self.stale_timeout)
    }

    /// The number of a rule in its file is another one than among all.
    fn own_key(&self, key: &Key) -> Key {
        match key {
            Key::Rule { .. } => Key::Rule { number: self.approve.len() },
            Key::General(_) | Key::Named { .. } | Key::Agent { .. } | Key::Env { .. } => key.clone(),
        }
    }

    fn apply(&mut self, key: &Key, setting: Setting) {
        let Setting { value, origin } = setting;
        match key {
            Key::Rule { number } => {
                let file = match origin {
                    Origin::File { file, .. } => file,
                    other => other.to_string(),
                };
                let Value::Rule(rule) = value else { unreachable!("a rule is no {value:?}") };
                self.approve.push(NamedRule { name: format!("rule {number} of {file}"), rule: *rule });
            }
            Key::General(name) => self.apply_general(name, value),
            Key::Named { table: "workspace", name } => self.workspace.apply(name, value),
            Key::Named { table: "mcp", name } => apply_to_mcp(&mut self.mcp, name, value),
            Key::Named { name, .. } => apply_to_notify(&mut self.notify, name, value),
            Key::Agent { agent, name } => apply_to_agent(self.agents.entry(agent), name, value),
            Key::Env { agent, variable } => {
                let env = &mut self.agents.entry(agent).env;
                env.extend(value.text().map(|text| (variable.clone(), text)));
            }
        }
    }

    fn apply_general(&mut self, name: &str, value: Value) {
        match (name, value) {
            ("default_agent", Value::Text(text)) => self.default_agent = Some(text),
            ("max_agents", Value::Count(count)) => self.max_agents = count,
            ("needs_input_timeout", Value::Time(time)) => self.needs_input_timeout = time,
            ("stale_timeout", Value::Time(time)) => self.stale_timeout = time,
            ("shutdown_timeout", Value::Time(time)) => self.shutdown_timeout = time,
            ("detach_keys", Value::Text(text)) => self.detach_keys = text,
            ("scrollback", Value::Count(count)) => self.scrollback = count,
            ("clipboard", Value::Clipboard(clipboard)) => self.clipboard = clipboard,
            (name, value) => unreachable!("the schema has no {name} = {value:?}"),
        }
    }
}

fn apply_to_notify(notify: &mut Notify, name: &str, value: Value) {
    match (name, value) {
        ("desktop", Value::Truth(truth)) => notify.desktop = Some(truth),
        ("terminal", Value::TerminalNotice(how)) => notify.terminal = how,
        ("command", Value::Words(words)) => notify.command = command(words),
        ("webhook", Value::Text(address)) => notify.webhook = Some(address),
        ("on", Value::Words(words)) => notify.on = words,
        (name, value) => unreachable!("the schema has no notify.{name} = {value:?}"),
    }
}

fn apply_to_mcp(mcp: &mut Mcp, name: &str, value: Value) {
    match (name, value) {
        ("allow", Value::Words(words)) => mcp.allow = words,
        ("depth", Value::Count(count)) => mcp.depth = count,
        ("max_tasks", Value::Count(count)) => mcp.max_tasks = count,
        ("offer", Value::Truth(offer)) => mcp.offer = offer,
        (name, value) => unreachable!("the schema has no mcp.{name} = {value:?}"),
    }
}

fn apply_to_agent(agent: &mut Agent, name: &str, value: Value) {
    match (name, value) {
        ("display_name", Value::Text(text)) => agent.display_name = text,
        ("start", Value::Words(words)) => agent.start = command(words),
        ("resume", Value::Words(words)) => agent.resume = command(words),
        ("run", Value::Words(words)) => agent.run = command(words),
        ("stream", Value::Words(words)) => agent.stream = command(words),
        ("acp", Value::Words(words)) => {
            agent.acp = command(words);
            agent.acp_before_rename = None;
        }
        ("mode", Value::Text(mode)) => agent.mode = Some(mode),
        ("per_workspace", Value::Truth(own)) => agent.per_workspace = own,
        ("driver", Value::Driver(driver)) => agent.driver = driver,
        ("restart", Value::Restart(restart)) => agent.restart = Some(restart),
        ("max_restarts", Value::Count(count)) => agent.max_restarts = Some(count),
        ("stop_grace", Value::Time(time)) => agent.stop_grace = Some(time),
        ("spare", Value::Words(words)) => agent.spare = words,
        ("needs_input_timeout", Value::Time(time)) => agent.needs_input_timeout = Some(time),
        ("stale_timeout", Value::Time(time)) => agent.stale_timeout = Some(time),
        (name, value) => unreachable!("the schema has no agents.*.{name} = {value:?}"),
    }
}

/// `[]` takes a command away.
fn command(words: Vec<String>) -> Option<Vec<String>> {
    (!words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests;

//! How a fresh workspace is made ready to run: `[workspace]`.
//!
//! Not here: the copying, running and counting itself.

use std::time::Duration;

use super::value::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceConfig {
    /// Ignored files that a fresh workspace gets a copy of, as `.gitignore` writes them.
    pub copy: Vec<String>,
    /// One after another, each a program and its arguments.
    pub setup: Vec<Vec<String>>,
    pub teardown: Vec<Vec<String>>,
    /// For all commands of a setup or teardown together; zero is no limit.
    pub setup_timeout: Duration,
    /// How many each workspace gets; 0 is none.
    pub ports: u32,
    pub port_base: u32,
    pub opener: Option<Vec<String>>,
    /// The trash gets ignored files too.
    pub keep_ignored: bool,
}

impl Default for WorkspaceConfig {
    fn default() -> WorkspaceConfig {
        WorkspaceConfig {
            copy: Vec::new(),
            setup: Vec::new(),
            teardown: Vec::new(),
            setup_timeout: Duration::from_secs(30 * 60),
            ports: 10,
            port_base: 20_000,
            opener: None,
            keep_ignored: false,
        }
    }
}

impl WorkspaceConfig {
    pub(super) fn apply(&mut self, name: &str, value: Value) {
        match (name, value) {
            ("copy", Value::Words(words)) => self.copy = words,
            ("setup", Value::Commands(commands)) => self.setup = commands,
            ("teardown", Value::Commands(commands)) => self.teardown = commands,
            ("setup_timeout", Value::Time(time)) => self.setup_timeout = time,
            ("ports", Value::Count(count)) => self.ports = count,
            ("port_base", Value::Count(count)) => self.port_base = count,
            ("opener", Value::Words(words)) => self.opener = super::command(words),
            ("keep_ignored", Value::Truth(truth)) => self.keep_ignored = truth,
            (name, value) => unreachable!("the schema has no workspace.{name} = {value:?}"),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<Value> {
        Some(match name {
            "copy" => Value::Words(self.copy.clone()),
            "setup" => Value::Commands(self.setup.clone()),
            "teardown" => Value::Commands(self.teardown.clone()),
            "setup_timeout" => Value::Time(self.setup_timeout),
            "ports" => Value::Count(self.ports),
            "port_base" => Value::Count(self.port_base),
            "opener" => Value::Words(self.opener.clone()?),
            "keep_ignored" => Value::Truth(self.keep_ignored),
            other => unreachable!("the schema has no workspace.{other}"),
        })
    }
}

//! The effective configuration as a list: every key with its value.

use super::Config;
use super::schema::{AGENT_KEYS, GENERAL_KEYS, Key, NAMED_TABLES};
use super::value::{Kind, Value};
use crate::agent::Agent;

impl Config {
    /// Every key that has a value, in the order of the reference.
    pub fn entries(&self) -> Vec<(Key, Value)> {
        let general = GENERAL_KEYS.iter().map(|info| Key::General(info.name));
        let named = NAMED_TABLES.iter().flat_map(|table| {
            table.keys.iter().map(|info| Key::Named { table: table.name, name: info.name })
        });
        let agents = self.agents.iter().flat_map(agent_keys);
        let rules = (1..=self.approve.len()).map(|number| Key::Rule { number });
        general
            .chain(named)
            .chain(agents)
            .chain(rules)
            .filter_map(|key| self.get(&key).map(|value| (key, value)))
            .collect()
    }

    pub fn get(&self, key: &Key) -> Option<Value> {
        match key {
            Key::General(name) => self.general(name),
            Key::Named { table: "workspace", name } => self.workspace.get(name),
            Key::Named { table: "mcp", name } => Some(self.of_mcp(name)),
            Key::Named { name, .. } => self.of_notify(name),
            Key::Rule { number } => {
                let named = self.approve.get(number.checked_sub(1)?)?;
                Some(Value::Rule(Box::new(named.rule.clone())))
            }
            Key::Agent { agent, name } => of_agent(self.agents.find(agent).ok()?, name),
            Key::Env { agent, variable } => {
                self.agents.find(agent).ok()?.env.get(variable).cloned().map(Value::Text)
            }
        }
    }

    fn general(&self, name: &str) -> Option<Value> {
        Some(match name {
            "default_agent" => Value::Text(self.default_agent.clone()?),
            "max_agents" => Value::Count(self.max_agents),
            "needs_input_timeout" => Value::Time(self.needs_input_timeout),
            "stale_timeout" => Value::Time(self.stale_timeout),
            "shutdown_timeout" => Value::Time(self.shutdown_timeout),
            "detach_keys" => Value::Text(self.detach_keys.clone()),
            "scrollback" => Value::Count(self.scrollback),
            "clipboard" => Value::Clipboard(self.clipboard),
            other => unreachable!("the schema has no {other}"),
        })
    }

    fn of_mcp(&self, name: &str) -> Value {
        match name {
            "allow" => Value::Words(self.mcp.allow.clone()),
            "depth" => Value::Count(self.mcp.depth),
            "max_tasks" => Value::Count(self.mcp.max_tasks),
            "offer" => Value::Truth(self.mcp.offer),
            other => unreachable!("the schema has no mcp.{other}"),
        }
    }

    fn of_notify(&self, name: &str) -> Option<Value> {
        let notify = &self.notify;
        match name {
            "desktop" => notify.desktop.map(Value::Truth),
            "terminal" => Some(Value::TerminalNotice(notify.terminal)),
            "command" => notify.command.clone().map(Value::Words),
            "webhook" => notify.webhook.clone().map(Value::Text),
            "on" => Some(Value::Words(notify.on.clone())),
            other => unreachable!("the schema has no notify.{other}"),
        }
    }
}

fn agent_keys(agent: &Agent) -> Vec<Key> {
    let name = agent.name.clone();
    let keys = AGENT_KEYS.iter().flat_map(|info| match info.kind {
        Kind::Env => agent
            .env
            .keys()
            .map(|variable| Key::Env { agent: name.clone(), variable: variable.clone() })
            .collect(),
        _ => vec![Key::Agent { agent: name.clone(), name: info.name }],
    });
    keys.collect()
}

fn of_agent(agent: &Agent, name: &str) -> Option<Value> {
    match name {
        "display_name" => Some(Value::Text(agent.display_name.clone())),
        "start" => agent.start.clone().map(Value::Words),
        "resume" => agent.resume.clone().map(Value::Words),
        "run" => agent.run.clone().map(Value::Words),
        "stream" => agent.stream.clone().map(Value::Words),
        "acp" => agent.acp.clone().map(Value::Words),
        "mode" => agent.mode.clone().map(Value::Text),
        "per_workspace" => Some(Value::Truth(agent.per_workspace)),
        "driver" => Some(Value::Driver(agent.driver)),
        "restart" => agent.restart.map(Value::Restart),
        "max_restarts" => agent.max_restarts.map(Value::Count),
        "stop_grace" => agent.stop_grace.map(Value::Time),
        "spare" => Some(Value::Words(agent.spare.clone())),
        "needs_input_timeout" => agent.needs_input_timeout.map(Value::Time),
        "stale_timeout" => agent.stale_timeout.map(Value::Time),
        other => unreachable!("the schema has no agents.*.{other}"),
    }
}

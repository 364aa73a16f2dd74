//! The effective configuration as a list: every key with its value.

use super::Config;
use super::key::Key;
use super::schema::AGENT_KEYS;
use super::value::{Value, ValueKind};
use crate::agent::Agent;

impl Config {
    /// Every key that has a value, in the order of the reference.
    pub fn entries(&self) -> Vec<(Key, Value)> {
        let agents = self.agents.iter().flat_map(agent_keys);
        let rules = (1..=self.approve.len()).map(|number| Key::Rule { number });
        Key::all_fixed()
            .chain(agents)
            .chain(rules)
            .filter_map(|key| self.get(&key).map(|value| (key, value)))
            .collect()
    }

    /// The value that is in force, if there is one.
    pub fn get(&self, key: &Key) -> Option<Value> {
        match key {
            Key::Config(config) => (config.key.get)(self),
            Key::Agent { agent, key } => (key.get)(self.agents.find(agent).ok()?),
            Key::Env { agent, variable } => {
                self.agents.find(agent).ok()?.env.get(variable).cloned().map(Value::Text)
            }
            Key::Rule { number } => {
                let named = self.approve.get(number.checked_sub(1)?)?;
                Some(Value::Rule(Box::new(named.rule.clone())))
            }
        }
    }
}

fn agent_keys(agent: &Agent) -> Vec<Key> {
    let name = &agent.name;
    let keys = AGENT_KEYS.iter().flat_map(|key| match key.info.kind {
        ValueKind::Env => agent
            .env
            .keys()
            .map(|variable| Key::Env { agent: name.clone(), variable: variable.clone() })
            .collect(),
        _ => vec![Key::Agent { agent: name.clone(), key }],
    });
    keys.collect()
}

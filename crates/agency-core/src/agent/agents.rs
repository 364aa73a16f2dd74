//! All agents, built in and configured, and the choice of a default.

use std::collections::BTreeMap;

use super::built_in::{FALLBACK, PREFERRED, built_ins, canonical_name};
use super::{Agent, AgentError};
use crate::spelling::nearest;

/// All agents by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agents(BTreeMap<String, Agent>);

impl Agents {
    /// The agents that need no configuration.
    pub fn built_in() -> Agents {
        Agents(built_ins().into_iter().map(|agent| (agent.name.clone(), agent)).collect())
    }

    /// Finds an agent by its name or alias. The program of a built-in agent is an alias: `claude` means `claude-code`,
    /// unless the user has configured an agent of that name.
    pub fn find(&self, name: &str) -> Result<&Agent, AgentError> {
        let by_name = self.0.get(canonical_name(name));
        by_name.or_else(|| self.built_in_with_program(name)).ok_or_else(|| self.unknown(name))
    }

    fn built_in_with_program(&self, program: &str) -> Option<&Agent> {
        let agent = built_ins().into_iter().find(|agent| agent.program() == Some(program))?;
        self.0.get(&agent.name)
    }

    /// All agents, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = &Agent> {
        self.0.values()
    }

    pub(crate) fn entry(&mut self, name: &str) -> &mut Agent {
        let name = canonical_name(name);
        self.0.entry(name.to_owned()).or_insert_with(|| Agent::named(name))
    }

    /// The agent of a task that names none: the configured one, or the first that is installed.
    pub fn choose_default(
        &self,
        configured: Option<&str>,
        installed: impl Fn(&str) -> bool,
    ) -> Result<&Agent, AgentError> {
        if let Some(name) = configured {
            return self.find(name);
        }
        let preferred = PREFERRED.iter().filter_map(|name| self.0.get(*name));
        let usable = |agent: &&Agent| agent.program().is_some_and(&installed);
        match preferred.into_iter().find(usable) {
            Some(agent) => Ok(agent),
            None => self.find(FALLBACK),
        }
    }

    fn unknown(&self, name: &str) -> AgentError {
        let names: Vec<String> = self.0.keys().cloned().collect();
        let near = nearest(name, names.iter().map(String::as_str));
        let near = near.into_iter().map(str::to_owned).collect();
        AgentError::Unknown { name: name.to_owned(), nearest: near, known: names }
    }
}

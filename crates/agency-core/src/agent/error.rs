//! Why an agent cannot be used, said before anything is made.

use super::Driver;
use crate::spelling::did_you_mean;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    #[error("no agent is called `{}`", .name.escape_debug())]
    Unknown { name: String, nearest: Vec<String>, known: Vec<String> },
    #[error("agent {agent} has no command for the {driver} driver")]
    NoCommand { agent: String, driver: Driver, possible: Vec<Driver> },
    #[error("agent {agent} cannot go on with a session with the {driver} driver")]
    CannotResume { agent: String, driver: Driver },
    #[error("agent {agent} has no `run` command")]
    CannotRun { agent: String },
    #[error("agent {agent} is not installed: `{program}` was not found")]
    NotInstalled { agent: String, program: String },
}

impl AgentError {
    pub fn hint(&self) -> String {
        match self {
            AgentError::Unknown { nearest, known, name } => match did_you_mean(nearest) {
                Some(question) => format!("{question} known agents: {}", known.join(", ")),
                None => format!("known agents: {}; or add [agents.{name}] to config.toml", known.join(", ")),
            },
            AgentError::NoCommand { agent, driver, possible } => {
                let key = match driver {
                    Driver::Terminal => "start",
                    Driver::StreamJson => "stream",
                    Driver::Acp => "acp",
                };
                let set = format!("set `{key}` under [agents.{agent}] in config.toml");
                match possible.as_slice() {
                    [] => set,
                    [first, ..] => format!("{set}, or pass --driver {first}"),
                }
            }
            AgentError::CannotResume { agent, driver: Driver::StreamJson } => {
                format!(
                    "name $AGENCY_SESSION_ID in `stream` under [agents.{agent}] in config.toml, or pass --fresh"
                )
            }
            AgentError::CannotResume { agent, .. } => {
                format!(
                    "set `resume` under [agents.{agent}] in config.toml, or pass --fresh to begin a new one"
                )
            }
            AgentError::CannotRun { agent } => format!("set `run` under [agents.{agent}] in config.toml"),
            AgentError::NotInstalled { program, .. } => {
                format!("install `{program}`, or choose another agent with --agent")
            }
        }
    }
}

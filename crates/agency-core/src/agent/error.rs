//! Reasons why an agent cannot be used. Agency checks them before it creates anything.

use super::Driver;
use crate::spelling::did_you_mean;

/// Why an agent cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// No agent has this name.
    #[error("no agent is called `{}`", .name.escape_debug())]
    Unknown {
        /// The name that the user gave.
        name: String,
        /// Names that look similar.
        nearest: Vec<String>,
        /// All names.
        known: Vec<String>,
    },
    /// The agent has no command for this driver.
    #[error("agent {agent} has no command for the {driver} driver")]
    NoCommand {
        /// The agent's name.
        agent: String,
        /// The driver that was chosen.
        driver: Driver,
        /// The drivers that the agent has a command for.
        possible: Vec<Driver>,
    },
    /// The agent cannot resume a session with this driver.
    #[error("agent {agent} cannot resume a session with the {driver} driver")]
    CannotResume {
        /// The agent's name.
        agent: String,
        /// The driver that was chosen.
        driver: Driver,
    },
    /// The agent has no `run` command.
    #[error("agent {agent} has no `run` command")]
    CannotRun {
        /// The agent's name.
        agent: String,
    },
    /// The program of the agent is there, but it is not executable.
    #[error("agent {agent} cannot be started: `{path}` is not executable")]
    NotExecutable {
        /// The agent's name.
        agent: String,
        /// The file.
        path: String,
    },
    /// The program of the agent is not on the PATH.
    #[error("agent {agent} is not installed: `{program}` was not found")]
    NotInstalled {
        /// The agent's name.
        agent: String,
        /// The program that is missing.
        program: String,
    },
}

impl AgentError {
    /// A hint for the user.
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
                    "set `resume` under [agents.{agent}] in config.toml, or pass --fresh to begin a new session"
                )
            }
            AgentError::CannotRun { agent } => format!("set `run` under [agents.{agent}] in config.toml"),
            AgentError::NotExecutable { path, .. } => {
                format!("chmod +x {path}, or choose another agent with --agent")
            }
            AgentError::NotInstalled { program, .. } => {
                format!("install `{program}`, or choose another agent with --agent")
            }
        }
    }
}

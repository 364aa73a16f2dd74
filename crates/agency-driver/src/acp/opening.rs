//! How a run opens its session on a connection: the methods of the protocol, the agent's capabilities, the stages.

use std::collections::BTreeMap;
use std::time::Duration;

use agent_client_protocol_schema::v1::{AuthMethod, InitializeResponse};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Agents that start slowly open a session within seconds. An agent that has not answered by then never will.
pub(super) const OPENED_WITHIN: Duration = Duration::from_secs(60);

/// A program that the agent starts for a session and uses over MCP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServer {
    /// The server's name for the agent.
    pub name: String,
    /// The program to start.
    pub command: String,
    /// The program's arguments.
    pub args: Vec<String>,
    /// The program's environment variables.
    pub env: BTreeMap<String, String>,
}

/// The capabilities of the agent, from its answer to `initialize`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The agent's name for people.
    pub name: Option<String>,
    /// The agent's version.
    pub version: Option<String>,
    /// It can resume a session without sending its history.
    pub resume: bool,
    /// It can load a session, and sends its history.
    pub load: bool,
    /// It can list its sessions.
    pub list: bool,
    /// It can close a session.
    pub close: bool,
    /// Its prompts may have images.
    pub image: bool,
    /// Ways to log in that need no terminal: id and name.
    pub logins: Vec<(String, String)>,
}

impl Capabilities {
    /// Reads the answer to `initialize`. A capability that the answer does not name is absent.
    pub(super) fn read(result: &Value) -> Capabilities {
        let Ok(answer) = InitializeResponse::deserialize(result) else { return Capabilities::default() };
        let can = &answer.agent_capabilities;
        let login = |method: &AuthMethod| match method {
            AuthMethod::Agent(method) => Some((method.id.to_string(), method.name.clone())),
            _ => None,
        };
        let info = answer.agent_info.as_ref();
        Capabilities {
            name: info.map(|info| info.title.clone().unwrap_or_else(|| info.name.clone())),
            version: info.map(|info| info.version.clone()),
            resume: can.session_capabilities.resume.is_some(),
            load: can.load_session,
            list: can.session_capabilities.list.is_some(),
            close: can.session_capabilities.close.is_some(),
            image: can.prompt_capabilities.image,
            logins: answer.auth_methods.iter().filter_map(login).collect(),
        }
    }
}

/// A method of the protocol that opens a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OpenMethod {
    New,
    /// The agent continues the session and sends no history.
    Resume(String),
    /// The agent continues the session and sends its history first.
    Load(String),
}

impl OpenMethod {
    /// The best method for a session. `None` if the agent can neither resume nor load it.
    pub(super) fn best(session: Option<&str>, can: &Capabilities) -> Option<OpenMethod> {
        match session {
            None => Some(OpenMethod::New),
            Some(session) if can.resume => Some(OpenMethod::Resume(session.to_owned())),
            Some(session) if can.load => Some(OpenMethod::Load(session.to_owned())),
            Some(_) => None,
        }
    }

    /// The method to try after this one failed.
    pub(super) fn next(&self, can: &Capabilities) -> Option<OpenMethod> {
        match self {
            OpenMethod::Resume(session) if can.load => Some(OpenMethod::Load(session.clone())),
            OpenMethod::Resume(_) | OpenMethod::Load(_) => Some(OpenMethod::New),
            OpenMethod::New => None,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            OpenMethod::New => "session/new",
            OpenMethod::Resume(_) => "session/resume",
            OpenMethod::Load(_) => "session/load",
        }
    }

    pub(super) fn params(&self, cwd: &str, servers: &[McpServer]) -> Value {
        let servers: Vec<Value> = servers.iter().map(server_params).collect();
        match self {
            OpenMethod::New => json!({ "cwd": cwd, "mcpServers": servers }),
            OpenMethod::Resume(session) | OpenMethod::Load(session) => {
                json!({ "sessionId": session, "cwd": cwd, "mcpServers": servers })
            }
        }
    }
}

/// A server that speaks over its standard input and output, as the protocol describes it.
fn server_params(server: &McpServer) -> Value {
    let variable = |(name, value): (&String, &String)| json!({ "name": name, "value": value });
    let env: Vec<Value> = server.env.iter().map(variable).collect();
    json!({ "name": server.name, "command": server.command, "args": server.args, "env": env })
}

/// How far a session has come.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
    /// No connection.
    Down,
    /// Connected. The agent has not introduced itself.
    Greeting,
    /// The request that opens the session is owed, or sent, under this id.
    Opening {
        method: OpenMethod,
        id: String,
        is_sent: bool,
    },
    /// The user must log in first.
    Locked {
        method: OpenMethod,
    },
    /// Open. The mode or the model that the user wants is still being set.
    Settling,
    Ready,
    Failed {
        why: String,
    },
    /// Agency closed the session.
    Closed,
}

/// A run's attempts to open its session.
#[derive(Debug, Default)]
pub(super) struct SessionOpening {
    /// The session that the run is in, or wants to be in.
    pub(super) target: Option<String>,
    pub(super) attempts: u64,
    /// The agent is sending the history of a loaded session.
    pub(super) replay: Option<Replay>,
    /// The agent must have answered by then.
    pub(super) due: Option<Duration>,
}

/// Whether the conversation keeps the history that an agent sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replay {
    Kept,
    /// The conversation has the history already.
    Dropped,
}

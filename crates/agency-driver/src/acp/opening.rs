//! How a session gets onto a connection: begun, resumed or loaded, as far as the agent can, and one after the other.

use agent_client_protocol_schema::v1::{AuthMethod, InitializeResponse};
use serde::Deserialize;
use serde_json::{Value, json};

use super::session::McpServer;

/// What the agent said when it was greeted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    pub name: Option<String>,
    pub version: Option<String>,
    pub resume: bool,
    pub load: bool,
    pub list: bool,
    pub close: bool,
    /// Ways to log in that need no terminal: id and name.
    pub logins: Vec<(String, String)>,
}

impl Capabilities {
    /// From the answer to `initialize`. An agent that says less can do less.
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
            logins: answer.auth_methods.iter().filter_map(login).collect(),
        }
    }
}

/// A way to get the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    New,
    /// The session stays what it was, and nothing is told again.
    Resume(String),
    /// The agent tells all of it again.
    Load(String),
}

impl Way {
    /// The best way to a session, if there is one.
    pub(super) fn to(session: Option<&str>, can: &Capabilities) -> Option<Way> {
        match session {
            None => Some(Way::New),
            Some(session) if can.resume => Some(Way::Resume(session.to_owned())),
            Some(session) if can.load => Some(Way::Load(session.to_owned())),
            Some(_) => None,
        }
    }

    /// What is left to try.
    pub(super) fn next(&self, can: &Capabilities) -> Option<Way> {
        match self {
            Way::Resume(session) if can.load => Some(Way::Load(session.clone())),
            Way::Resume(_) | Way::Load(_) => Some(Way::New),
            Way::New => None,
        }
    }

    pub(super) fn method(&self) -> &'static str {
        match self {
            Way::New => "session/new",
            Way::Resume(_) => "session/resume",
            Way::Load(_) => "session/load",
        }
    }

    pub(super) fn params(&self, cwd: &str, servers: &[McpServer]) -> Value {
        let servers: Vec<Value> = servers.iter().map(server).collect();
        match self {
            Way::New => json!({ "cwd": cwd, "mcpServers": servers }),
            Way::Resume(session) | Way::Load(session) => {
                json!({ "sessionId": session, "cwd": cwd, "mcpServers": servers })
            }
        }
    }
}

/// As the protocol has one that is spoken to over its standard input and output.
fn server(server: &McpServer) -> Value {
    let variable = |(name, value): (&String, &String)| json!({ "name": name, "value": value });
    let env: Vec<Value> = server.env.iter().map(variable).collect();
    json!({ "name": server.name, "command": server.command, "args": server.args, "env": env })
}

/// How far a session has come.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
    /// No connection.
    Down,
    /// Connected; the agent has not been introduced.
    Greeting,
    /// The line that opens it is owed, or on its way, under this id.
    Opening {
        way: Way,
        id: String,
        is_sent: bool,
    },
    /// Somebody has to log in first.
    Locked {
        way: Way,
    },
    /// There; the mode or the model that was asked for is still being set.
    Settling,
    Ready,
    Failed {
        why: String,
    },
    /// Closed because somebody asked for it.
    Closed,
}

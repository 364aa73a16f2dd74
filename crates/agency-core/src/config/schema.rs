//! Which keys there are and what each one takes.
//!
//! Not the defaults (`Config`, the built-in agents) and not the reading (`layer`).

use std::fmt;
use std::time::Duration;

use crate::agent::{Driver, Restart};

/// One key of `config.toml`, with the tables it is in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    General(&'static str),
    Agent { agent: String, name: &'static str },
    Env { agent: String, variable: String },
}

impl Key {
    /// Would this value make Agency run a program, or change which one runs?
    pub fn runs_commands(&self) -> bool {
        match self {
            Key::General(_) => false,
            Key::Agent { name, .. } => matches!(*name, "start" | "resume" | "run" | "stream" | "acp"),
            Key::Env { .. } => true,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::General(name) => f.write_str(name),
            Key::Agent { agent, name } => write!(f, "agents.{agent}.{name}"),
            Key::Env { agent, variable } => write!(f, "agents.{agent}.env.{variable}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Count(u32),
    Time(Duration),
    Words(Vec<String>),
    Driver(Driver),
    Restart(Restart),
}

impl Value {
    pub(super) fn text(self) -> Option<String> {
        match self {
            Value::Text(text) => Some(text),
            Value::Count(_) | Value::Time(_) | Value::Words(_) | Value::Driver(_) | Value::Restart(_) => None,
        }
    }
}

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Count,
    Time,
    /// A program and its arguments.
    Command,
    Words,
    Driver,
    Restart,
    /// A table of variables.
    Env,
}

impl Kind {
    /// For messages: `stale_timeout must be …`.
    pub fn expected(self) -> &'static str {
        match self {
            Kind::Text => "a string",
            Kind::Count => "a whole number, 0 or more",
            Kind::Time => "a time such as \"500ms\", \"5s\", \"2m\" or \"1h\"",
            Kind::Command => "an array of strings, the program first",
            Kind::Words => "an array of strings",
            Kind::Driver => "\"terminal\", \"stream-json\" or \"acp\"",
            Kind::Restart => "\"never\" or \"on-crash\"",
            Kind::Env => "a table of strings",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    pub name: &'static str,
    pub kind: Kind,
    pub about: &'static str,
}

const fn key(name: &'static str, kind: Kind, about: &'static str) -> KeyInfo {
    KeyInfo { name, kind, about }
}

/// Keys outside any table.
pub const GENERAL_KEYS: [KeyInfo; 7] = [
    key(
        "default_agent",
        Kind::Text,
        "the agent of a task that names none; unset: the first that is installed",
    ),
    key("max_agents", Kind::Count, "live agents of all projects together; 0 is no limit"),
    key("needs_input_timeout", Kind::Time, "silence after which an agent is taken to wait for you"),
    key("stale_timeout", Kind::Time, "waiting after which an agent counts as stale"),
    key("shutdown_timeout", Kind::Time, "how long agents may take to end when the daemon is told to"),
    key("detach_keys", Kind::Text, "leaves an attached task; a comma list is a sequence"),
    key("scrollback", Kind::Count, "lines kept above the screen"),
];

/// Keys of `[agents.NAME]`.
pub const AGENT_KEYS: [KeyInfo; 14] = [
    key("display_name", Kind::Text, "the name people see"),
    key("start", Kind::Command, "begins a run in a terminal"),
    key("resume", Kind::Command, "begins a run when the task's session is known"),
    key("run", Kind::Command, "answers one message and ends"),
    key("stream", Kind::Command, "begins a stream-json run"),
    key("acp", Kind::Command, "begins an ACP connection"),
    key("driver", Kind::Driver, "the driver of a task that names none"),
    key("restart", Kind::Restart, "what follows an exit that nobody asked for"),
    key("max_restarts", Kind::Count, "restarts in a row before giving up"),
    key("stop_grace", Kind::Time, "time to end after being asked, before SIGKILL"),
    key("spare", Kind::Words, "programs that stopping this agent leaves alone"),
    key("env", Kind::Env, "variables for this agent"),
    key("needs_input_timeout", Kind::Time, "as above, for this agent"),
    key("stale_timeout", Kind::Time, "as above, for this agent"),
];

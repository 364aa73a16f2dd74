//! Which keys there are, what each one takes, when a change counts, and how far a repository is trusted with it.
//!
//! Not the defaults (`Config`, the built-in agents) and not the reading (`reader`).

use std::fmt;

use super::layer::ConfigProblem;
use super::value::Kind;
use crate::agent::canonical_name;
use crate::spelling::nearest;

/// One key of `config.toml`, with the tables it is in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    General(&'static str),
    /// In a table whose name is fixed.
    Named {
        table: &'static str,
        name: &'static str,
    },
    Agent {
        agent: String,
        name: &'static str,
    },
    Env {
        agent: String,
        variable: String,
    },
    /// One table of `[[approve]]`; counts from 1.
    Rule {
        number: usize,
    },
}

impl Key {
    /// Reads `max_agents`, `notify.command`, `agents.NAME.start`, `agents.NAME.env.VARIABLE`; quotes as in TOML.
    pub fn parse(text: &str) -> Result<Key, UnknownName> {
        let unknown = |nearest: Vec<String>| UnknownName { name: text.to_owned(), nearest };
        if let Some(number) = text.strip_prefix(APPROVE.name).map(rule_number) {
            return number
                .map(|number| Key::Rule { number })
                .ok_or_else(|| unknown(vec!["approve[1]".to_owned()]));
        }
        let path = toml_edit::Key::parse(text).map_err(|_| unknown(Vec::new()))?;
        let path: Vec<&str> = path.iter().map(toml_edit::Key::get).collect();
        match path.as_slice() {
            ["agents", agent, name] if is_agent_name(agent) => match info(&AGENT_KEYS, name) {
                Some(info) if info.kind == Kind::Env => Err(unknown(vec![format!("{text}.VARIABLE")])),
                Some(info) => Ok(Key::Agent { agent: canonical_name(agent).to_owned(), name: info.name }),
                None => Err(unknown(near(name, &AGENT_KEYS, &format!("agents.{}.", quoted(agent))))),
            },
            ["agents", agent, "env", variable] if is_agent_name(agent) && is_variable(variable) => {
                let (agent, variable) = (canonical_name(agent).to_owned(), (*variable).to_owned());
                Ok(Key::Env { agent, variable })
            }
            [table, name] if named_table(table).is_some() => {
                let table = named_table(table).unwrap_or_else(|| unreachable!("just found"));
                match info(table.keys, name) {
                    Some(info) => Ok(Key::Named { table: table.name, name: info.name }),
                    None => Err(unknown(near(name, table.keys, &format!("{}.", table.name)))),
                }
            }
            [name] => match info(&GENERAL_KEYS, name) {
                Some(info) => Ok(Key::General(info.name)),
                None => Err(unknown(near(name, &GENERAL_KEYS, ""))),
            },
            _ => Err(unknown(Vec::new())),
        }
    }

    pub fn info(&self) -> &'static KeyInfo {
        let (keys, name): (&'static [KeyInfo], _) = match self {
            Key::General(name) => (&GENERAL_KEYS, *name),
            Key::Named { table, name } => (named_table(table).map_or(&[], |table| table.keys), *name),
            Key::Agent { name, .. } => (&AGENT_KEYS, *name),
            Key::Env { .. } => (&AGENT_KEYS, "env"),
            Key::Rule { .. } => return &APPROVE,
        };
        info(keys, name).unwrap_or_else(|| unreachable!("every key is in a table, {name} too"))
    }

    /// What its value must be. A variable is a text, though `env` is a table.
    pub fn kind(&self) -> Kind {
        match self {
            Key::General(_) | Key::Named { .. } | Key::Agent { .. } | Key::Rule { .. } => self.info().kind,
            Key::Env { .. } => Kind::Text,
        }
    }

    /// Would this value make Agency run a program, or change how one runs?
    pub fn runs_commands(&self) -> bool {
        match self {
            Key::General(_) => false,
            Key::Named { name, .. } => matches!(*name, "command" | "setup" | "teardown" | "opener"),
            Key::Agent { name, .. } => matches!(*name, "start" | "resume" | "run" | "stream" | "acp"),
            Key::Env { .. } => true,
            // It lets agents run something; what, they say when they ask.
            Key::Rule { .. } => false,
        }
    }

    /// The tables and the name, as TOML nests them.
    pub fn path(&self) -> Vec<&str> {
        match self {
            Key::General(name) => vec![name],
            Key::Named { table, name } => vec![table, name],
            Key::Agent { agent, name } => vec!["agents", agent, name],
            Key::Env { agent, variable } => vec!["agents", agent, "env", variable],
            Key::Rule { .. } => vec![APPROVE.name],
        }
    }
}

/// `[2]`
fn rule_number(text: &str) -> Option<usize> {
    text.strip_prefix('[')?.strip_suffix(']')?.parse().ok().filter(|number| *number > 0)
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.path().into_iter().map(quoted).collect();
        f.write_str(&words.join("."))?;
        match self {
            Key::Rule { number } => write!(f, "[{number}]"),
            Key::General(_) | Key::Named { .. } | Key::Agent { .. } | Key::Env { .. } => Ok(()),
        }
    }
}

fn quoted(word: &str) -> String {
    toml_edit::Key::new(word).display_repr().into_owned()
}

fn near(name: &str, keys: &'static [KeyInfo], prefix: &str) -> Vec<String> {
    let found = nearest(name, keys.iter().map(|info| info.name));
    found.into_iter().map(|name| format!("{prefix}{name}")).collect()
}

pub(super) fn info(keys: &'static [KeyInfo], name: &str) -> Option<&'static KeyInfo> {
    keys.iter().find(|info| info.name == name)
}

/// A table whose name is fixed, as `[notify]` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedTable {
    pub name: &'static str,
    pub about: &'static str,
    pub keys: &'static [KeyInfo],
}

pub(super) fn named_table(name: &str) -> Option<&'static NamedTable> {
    NAMED_TABLES.iter().find(|table| table.name == name)
}

pub(super) fn is_agent_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

pub(super) fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no key `{}`", .name.escape_debug())]
pub struct UnknownName {
    pub name: String,
    pub nearest: Vec<String>,
}

impl UnknownName {
    pub fn hint(&self) -> String {
        let near = crate::spelling::did_you_mean(&self.nearest);
        near.unwrap_or_else(|| "`agency config` lists the keys there are".to_owned())
    }
}

impl From<UnknownName> for ConfigProblem {
    fn from(unknown: UnknownName) -> ConfigProblem {
        ConfigProblem::Unknown(unknown)
    }
}

/// From when on a change counts. None needs the daemon to be restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applies {
    AtOnce,
    NextTask,
    NextAttach,
    NextStart,
}

impl Applies {
    /// `it counts …`
    pub fn when(self) -> &'static str {
        match self {
            Applies::AtOnce => "at once",
            Applies::NextTask => "for the next task",
            Applies::NextAttach => "at the next attach",
            Applies::NextStart => "when an agent starts the next time",
        }
    }
}

/// What becomes of a key that stands in a project's own file, which may come from anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InProject {
    /// Nothing bad can be done with it.
    Free,
    /// As far as it names an agent that is built in and not changed by the user.
    BuiltInAgents,
    /// After the user agreed to the file's exact content.
    Consent,
    /// It is for all projects together, so only the user's own file counts.
    Never,
}

impl InProject {
    /// `in a project's file: …`
    pub fn rule(self) -> &'static str {
        match self {
            InProject::Free => "counts",
            InProject::BuiltInAgents => "counts for built-in agents, others after `agency trust`",
            InProject::Consent => "counts after `agency trust`",
            InProject::Never => "does not count",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    pub name: &'static str,
    pub kind: Kind,
    /// As written in TOML; a word in parentheses where there is no value.
    pub default: &'static str,
    pub applies: Applies,
    pub in_project: InProject,
    pub about: &'static str,
}

const fn key(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    applies: Applies,
    in_project: InProject,
    about: &'static str,
) -> KeyInfo {
    KeyInfo { name, kind, default, applies, in_project, about }
}

use Applies::{AtOnce, NextAttach, NextStart, NextTask};
use InProject::{BuiltInAgents, Consent, Free, Never};

/// Keys outside any table.
#[rustfmt::skip]
pub const GENERAL_KEYS: [KeyInfo; 8] = [
    key("default_agent", Kind::Text, "(the first installed of claude-code, codex, opencode, else fake)", NextTask, BuiltInAgents,
        "the agent of a task that names none"),
    key("max_agents", Kind::Count, "10", AtOnce, Consent,
        "live agents of all projects together; 0 is no limit"),
    key("needs_input_timeout", Kind::Time, "\"5s\"", NextStart, Free,
        "silence after which an agent is taken to wait for you"),
    key("stale_timeout", Kind::Time, "\"60s\"", NextStart, Free,
        "waiting after which an agent counts as stale"),
    key("shutdown_timeout", Kind::Time, "\"30s\"", AtOnce, Never,
        "how long agents may take to end when the daemon is told to end them"),
    key("detach_keys", Kind::Text, "\"ctrl-q\"", NextAttach, Consent,
        "leaves an attached task; a comma list is a sequence, `none` turns it off"),
    key("scrollback", Kind::Count, "10000", NextStart, Consent,
        "lines kept above the screen"),
    key("clipboard", Kind::Clipboard, "\"deny\"", NextAttach, Never,
        "whether agents may write to the clipboard of whoever is attached and types; none can read it"),
];

pub const NAMED_TABLES: [NamedTable; 3] = [
    NamedTable { name: "notify", about: "how you are told that an agent needs you", keys: &NOTIFY_KEYS },
    NamedTable {
        name: "workspace",
        about: "how a fresh workspace is made ready to run",
        keys: &WORKSPACE_KEYS,
    },
    NamedTable { name: "mcp", about: "what agents may do to other tasks: `agency mcp`", keys: &MCP_KEYS },
];

/// Keys of `[notify]`. A repository must not make us run or call anything, so only the user's own file counts.
#[rustfmt::skip]
const NOTIFY_KEYS: [KeyInfo; 5] = [
    key("desktop", Kind::Truth, "(true where a desktop is there)", AtOnce, Never,
        "a notification of the desktop"),
    key("terminal", Kind::TerminalNotice, "\"auto\"", AtOnce, Never,
        "how the terminal tells whoever is attached to another task; `auto` is what it is known to understand, else the bell"),
    key("command", Kind::Command, "(none)", AtOnce, Never,
        "a program that is run with the event as JSON on its standard input"),
    key("webhook", Kind::Address, "(none)", AtOnce, Never,
        "an address that the event is posted to as JSON"),
    key("on", Kind::Occasions, "[\"prompt\", \"permission\", \"question\", \"finished\", \"error\", \"unknown\", \"exited\"]", AtOnce, Never,
        "what you want to be told of"),
];

/// The rules of a file, as one table after the other.
pub const APPROVE: KeyInfo =
    key("approve", Kind::Rule, "(none)", AtOnce, Consent, "answers what agents ask for");

/// Keys of `[[approve]]`.
#[rustfmt::skip]
pub const RULE_KEYS: [KeyInfo; 5] = [
    key("tool", Kind::Text, "(must be given)", AtOnce, Consent,
        "the tool's name (`Bash`), or its kind: `execute`, `edit`, `read`, `fetch`; `*` stands for any text"),
    key("match", Kind::Text, "(everything)", AtOnce, Consent,
        "what it would do: the command, the file, the address"),
    key("agent", Kind::Text, "(every agent)", AtOnce, Consent, "only if this agent asks"),
    key("decision", Kind::Decision, "(must be given)", AtOnce, Consent, "what is answered; `ask` leaves it to you"),
    key("why", Kind::Text, "(none)", AtOnce, Consent, "the reason, kept with the decision; a denied agent is told"),
];

/// Keys of `[workspace]`.
#[rustfmt::skip]
const WORKSPACE_KEYS: [KeyInfo; 8] = [
    key("copy", Kind::Words, "[]", NextTask, Free,
        "ignored files that a fresh workspace gets a copy of, written as in `.gitignore`; `.worktreeinclude` in the project adds to them"),
    key("setup", Kind::Commands, "[]", NextTask, Consent,
        "run in a fresh workspace before its agent starts"),
    key("teardown", Kind::Commands, "[]", AtOnce, Consent,
        "run in a workspace before `agency rm` removes it"),
    key("setup_timeout", Kind::Time, "\"30m\"", AtOnce, Free,
        "how long a setup or a teardown may take; `0s` is no limit"),
    key("ports", Kind::Count, "10", NextTask, Consent,
        "ports for each workspace: `$AGENCY_PORT`, `$AGENCY_PORT_1` and so on; 0 is none"),
    key("port_base", Kind::Count, "20000", NextTask, Never,
        "where the ports of all workspaces begin; those that the system gives out by itself are left out"),
    key("opener", Kind::Command, "(`$VISUAL` or `$EDITOR`)", AtOnce, Never,
        "what `agency open` runs in a workspace"),
    key("keep_ignored", Kind::Truth, "false", AtOnce, Free,
        "keep ignored files too when a workspace is removed, so that `agency undo` brings them back; they may be many"),
];

/// Keys of `[mcp]`. What an agent may do is not for a repository to say.
#[rustfmt::skip]
const MCP_KEYS: [KeyInfo; 4] = [
    key("allow", Kind::Tools, "[\"list_tasks\", \"task_state\", \"read_task\", \"search\", \"wait_for_task\", \"list_approvals\", \"start_task\", \"send_message\", \"interrupt_task\", \"stop_task\"]", AtOnce, Consent,
        "the tools that agents have; `answer_approval` is the one that is not there by itself"),
    key("depth", Kind::Count, "1", AtOnce, Consent,
        "how deep agents may start agents: with 1 those that you started may, and theirs may not; 0 is none"),
    key("max_tasks", Kind::Count, "5", AtOnce, Consent,
        "live tasks that one agent may have started; 0 is no limit"),
    key("offer", Kind::Truth, "false", NextStart, Consent,
        "give the tools to every ACP session; agents driven otherwise have them if you add the server to them"),
];

/// Keys of `[agents.NAME]`.
#[rustfmt::skip]
pub const AGENT_KEYS: [KeyInfo; 16] = [
    key("display_name", Kind::Text, "(NAME)", AtOnce, Consent, "the name people see"),
    key("start", Kind::Command, "(none)", NextStart, Consent, "begins a run in a terminal"),
    key("resume", Kind::Command, "(none)", NextStart, Consent, "begins a run when the task's session is known"),
    key("run", Kind::Command, "(none)", AtOnce, Consent, "answers one message and ends: `agency run`"),
    key("stream", Kind::Command, "(none)", NextStart, Consent, "begins a stream-json run"),
    key("acp", Kind::Command, "(none)", NextStart, Consent, "begins an ACP connection"),
    key("mode", Kind::Text, "(the one in which it asks)", NextStart, Consent, "permission mode of an ACP session"),
    key("per_workspace", Kind::Truth, "false", NextStart, Consent,
        "an ACP process for each workspace, with its environment, instead of one for all"),
    key("driver", Kind::Driver, "\"terminal\"", NextTask, Consent, "the driver of a task that names none"),
    key("restart", Kind::Restart, "(the driver's: \"never\" in a terminal)", NextStart, Consent,
        "what follows an exit that nobody asked for"),
    key("max_restarts", Kind::Count, "3", NextStart, Consent, "restarts in a row before giving up"),
    key("stop_grace", Kind::Time, "(the driver's: \"2s\" in a terminal)", NextStart, Consent,
        "time to end after being asked, before SIGKILL"),
    key("spare", Kind::Words, "[\"gpg-agent\", \"sccache\"]", NextStart, Consent,
        "programs that stopping this agent leaves alone"),
    key("env", Kind::Env, "{}", NextStart, Consent, "variables for this agent"),
    key("needs_input_timeout", Kind::Time, "(the general one)", NextStart, Free,
        "silence after which this agent is taken to wait for you"),
    key("stale_timeout", Kind::Time, "(the general one)", NextStart, Free,
        "waiting after which this agent counts as stale"),
];

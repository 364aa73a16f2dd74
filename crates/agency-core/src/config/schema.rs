//! Which keys there are, what each one takes, which field it sets, when a change applies, and how far Agency trusts a
//! project with it.
//!
//! This is the only place besides the field where a key is written. Not here: the defaults (`Config`, the built-in
//! agents) and the reading (`reader`).

use std::fmt;

use super::Config;
use super::field::{Field, checked};
use super::value::{Kind, Value};
use crate::agent::{Agent, canonical_name};
use crate::approval::Rule;

/// A key that sets one field of `S`.
pub struct FieldKey<S: 'static> {
    /// What people and editors need to know about the key.
    pub info: KeyInfo,
    /// The value of the field, if one is set.
    pub(super) get: fn(&S) -> Option<Value>,
    /// Sets the field. A value of another kind than the key's changes nothing.
    pub(super) set: fn(&mut S, Value),
}

/// The name decides: each key stands once in its table.
impl<S> PartialEq for FieldKey<S> {
    fn eq(&self, other: &FieldKey<S>) -> bool {
        self.info.name == other.info.name
    }
}

impl<S> Eq for FieldKey<S> {}

impl<S> PartialOrd for FieldKey<S> {
    fn partial_cmp(&self, other: &FieldKey<S>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<S> Ord for FieldKey<S> {
    fn cmp(&self, other: &FieldKey<S>) -> std::cmp::Ordering {
        self.info.name.cmp(other.info.name)
    }
}

impl<S> fmt::Debug for FieldKey<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info.name)
    }
}

pub(super) fn find<S>(keys: &'static [FieldKey<S>], name: &str) -> Option<&'static FieldKey<S>> {
    keys.iter().find(|key| key.info.name == name)
}

/// A table of `config.toml` whose name is fixed, as `[notify]` is. The general keys are in the table without a name.
pub(super) struct ConfigTable {
    pub name: &'static str,
    pub about: &'static str,
    pub keys: &'static [FieldKey<Config>],
}

impl ConfigTable {
    pub(super) fn find(&self, name: &str) -> Option<ConfigKey> {
        find(self.keys, name).map(|key| ConfigKey { table: self.name, key })
    }
}

/// A key of one of the tables whose name is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigKey {
    pub(super) table: &'static str,
    pub(super) key: &'static FieldKey<Config>,
}

/// For constants: a name that is in no table does not compile.
pub(super) const fn config_key(table: &str, name: &str) -> ConfigKey {
    let mut index = 0;
    while index < TABLES.len() {
        let known = TABLES[index];
        if is_same(known.name, table) {
            return ConfigKey { table: known.name, key: row(known.keys, name) };
        }
        index += 1;
    }
    panic!("there is no such table")
}

const fn row<S>(keys: &'static [FieldKey<S>], name: &str) -> &'static FieldKey<S> {
    let mut index = 0;
    while index < keys.len() {
        if is_same(keys[index].info.name, name) {
            return &keys[index];
        }
        index += 1;
    }
    panic!("there is no such key")
}

/// `==` for constants.
const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut index = 0;
    while index < one.len() && index < other.len() && one[index] == other[index] {
        index += 1;
    }
    index == one.len() && index == other.len()
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

/// One row: the field, the kind, the default, when a change applies, trust in a project's file, the meaning. The name of
/// the key is that of its field unless `as` says otherwise; `then` runs after the field was set.
macro_rules! key {
    ($owner:ty, $table:ident . $field:ident, $($rest:tt)*) => {
        key!(@row $owner, stringify!($field), [$table.$field], $($rest)*)
    };
    ($owner:ty, $field:ident as $name:literal, $($rest:tt)*) => {
        key!(@row $owner, $name, [$field], $($rest)*)
    };
    ($owner:ty, $field:ident, $($rest:tt)*) => {
        key!(@row $owner, stringify!($field), [$field], $($rest)*)
    };
    (@row $owner:ty, $name:expr, [$($path:tt)+], $kind:expr, $default:expr, $applies:expr, $in_project:expr, $about:expr
        $(, then $then:expr)?) => {
        FieldKey {
            info: KeyInfo {
                name: $name,
                kind: checked($kind, |owner: &$owner| &owner.$($path)+),
                default: $default,
                applies: $applies,
                in_project: $in_project,
                about: $about,
            },
            get: |owner: &$owner| owner.$($path)+.to_value(),
            set: |owner: &mut $owner, value| {
                if let Some(content) = Field::from_value(value) {
                    owner.$($path)+ = content;
                    $(let then: fn(&mut $owner) = $then; then(owner);)?
                }
            },
        }
    };
}

use Applies::{AtOnce, NextAttach, NextStart, NextTask};
use InProject::{BuiltInAgents, Consent, Free, Never};

/// Keys outside any table.
#[rustfmt::skip]
static GENERAL_KEYS: [FieldKey<Config>; 8] = [
    key!(Config, default_agent, Kind::Text, "(the first installed of claude-code, codex, opencode, else fake)", NextTask, BuiltInAgents,
        "the agent of a task that names none"),
    key!(Config, max_agents, Kind::Count, "10", AtOnce, Consent,
        "live agents of all projects together; 0 is no limit"),
    key!(Config, needs_input_timeout, Kind::Time, "\"5s\"", NextStart, Free,
        "silence after which an agent is taken to wait for you"),
    key!(Config, stale_timeout, Kind::Time, "\"60s\"", NextStart, Free,
        "waiting after which an agent counts as stale"),
    key!(Config, shutdown_timeout, Kind::Time, "\"30s\"", AtOnce, Never,
        "how long agents may take to end when the daemon is told to end them"),
    key!(Config, detach_keys, Kind::Text, "\"ctrl-q\"", NextAttach, Consent,
        "leaves an attached task; a comma list is a sequence, `none` turns it off"),
    key!(Config, scrollback, Kind::Count, "10000", NextStart, Consent,
        "lines kept above the screen"),
    key!(Config, clipboard, Kind::Clipboard, "\"deny\"", NextAttach, Never,
        "whether agents may write to the clipboard of whoever is attached and types; none can read it"),
];

/// The keys outside any table.
pub(super) static GENERAL: ConfigTable = ConfigTable { name: "", about: "", keys: &GENERAL_KEYS };

/// Every table whose name is fixed, in the order of the reference.
pub(super) static TABLES: [&ConfigTable; 4] = [
    &GENERAL,
    &ConfigTable { name: "notify", about: "how you are told that an agent needs you", keys: &NOTIFY_KEYS },
    &ConfigTable {
        name: "workspace",
        about: "how a fresh workspace is made ready to run",
        keys: &WORKSPACE_KEYS,
    },
    &ConfigTable { name: "mcp", about: "what agents may do to other tasks: `agency mcp`", keys: &MCP_KEYS },
];

/// The tables that have a name.
pub(super) fn named_tables() -> impl Iterator<Item = &'static ConfigTable> {
    TABLES.iter().copied().filter(|table| !table.name.is_empty())
}

/// Keys of `[notify]`. A repository must not make us run or call anything, so only the user's own file counts.
#[rustfmt::skip]
static NOTIFY_KEYS: [FieldKey<Config>; 5] = [
    key!(Config, notify.desktop, Kind::Truth, "(true where a desktop is there)", AtOnce, Never,
        "a notification of the desktop"),
    key!(Config, notify.terminal, Kind::TerminalNotice, "\"auto\"", AtOnce, Never,
        "how the terminal tells whoever is attached to another task; `auto` is what it is known to understand, else the bell"),
    key!(Config, notify.command, Kind::Command, "(none)", AtOnce, Never,
        "a program that is run with the event as JSON on its standard input"),
    key!(Config, notify.webhook, Kind::Address, "(none)", AtOnce, Never,
        "an address that the event is posted to as JSON"),
    key!(Config, notify.on, Kind::Occasions, "[\"prompt\", \"permission\", \"question\", \"finished\", \"error\", \"unknown\", \"exited\"]", AtOnce, Never,
        "what you want to be told of"),
];

/// The rules of a file, one table after another.
pub(super) static APPROVE: KeyInfo = KeyInfo {
    name: "approve",
    kind: Kind::Rule,
    default: "(none)",
    applies: AtOnce,
    in_project: Consent,
    about: "answers what agents ask for",
};

/// The default of a key that every rule must have.
pub(super) const REQUIRED: &str = "(must be given)";

/// Keys of `[[approve]]`.
#[rustfmt::skip]
pub(super) static RULE_KEYS: [FieldKey<Rule>; 5] = [
    key!(Rule, tool, Kind::Text, REQUIRED, AtOnce, Consent,
        "the tool's name (`Bash`), or its kind: `execute`, `edit`, `read`, `fetch`; `*` stands for any text"),
    key!(Rule, pattern as "match", Kind::Text, "(everything)", AtOnce, Consent,
        "what it would do: the command, the file, the address"),
    key!(Rule, agent, Kind::Text, "(every agent)", AtOnce, Consent, "only if this agent asks",
        then |rule| rule.agent = rule.agent.take().map(|agent| canonical_name(&agent).to_owned())),
    key!(Rule, decision, Kind::Decision, REQUIRED, AtOnce, Consent, "what is answered; `ask` leaves it to you"),
    key!(Rule, why, Kind::Text, "(none)", AtOnce, Consent, "the reason, kept with the decision; a denied agent is told"),
];

/// Keys of `[workspace]`.
#[rustfmt::skip]
static WORKSPACE_KEYS: [FieldKey<Config>; 8] = [
    key!(Config, workspace.copy, Kind::Words, "[]", NextTask, Free,
        "ignored files that a fresh workspace gets a copy of, written as in `.gitignore`; `.worktreeinclude` in the project adds to them"),
    key!(Config, workspace.setup, Kind::Commands, "[]", NextTask, Consent,
        "run in a fresh workspace before its agent starts"),
    key!(Config, workspace.teardown, Kind::Commands, "[]", AtOnce, Consent,
        "run in a workspace before `agency rm` removes it"),
    key!(Config, workspace.setup_timeout, Kind::Time, "\"30m\"", AtOnce, Free,
        "how long a setup or a teardown may take; `0s` is no limit"),
    key!(Config, workspace.ports, Kind::Count, "10", NextTask, Consent,
        "ports for each workspace: `$AGENCY_PORT`, `$AGENCY_PORT_1` and so on; 0 is none"),
    key!(Config, workspace.port_base, Kind::Count, "20000", NextTask, Never,
        "where the ports of all workspaces begin; those that the system gives out by itself are left out"),
    key!(Config, workspace.opener, Kind::Command, "(`$VISUAL` or `$EDITOR`)", AtOnce, Never,
        "what `agency open` runs in a workspace"),
    key!(Config, workspace.keep_ignored, Kind::Truth, "false", AtOnce, Free,
        "keep ignored files too when a workspace is removed, so that `agency undo` brings them back; they may be many"),
];

/// Keys of `[mcp]`. What an agent may do is not for a repository to say.
#[rustfmt::skip]
static MCP_KEYS: [FieldKey<Config>; 4] = [
    key!(Config, mcp.allow, Kind::Tools, "[\"list_tasks\", \"task_state\", \"read_task\", \"search\", \"wait_for_task\", \"list_approvals\", \"start_task\", \"send_message\", \"interrupt_task\", \"stop_task\"]", AtOnce, Consent,
        "the tools that agents have; `answer_approval` is the one that is not there by itself"),
    key!(Config, mcp.depth, Kind::Count, "1", AtOnce, Consent,
        "how deep agents may start agents: with 1 those that you started may, and theirs may not; 0 is none"),
    key!(Config, mcp.max_tasks, Kind::Count, "5", AtOnce, Consent,
        "live tasks that one agent may have started; 0 is no limit"),
    key!(Config, mcp.offer, Kind::Truth, "false", NextStart, Consent,
        "give the tools to every ACP session; agents driven otherwise have them if you add the server to them"),
];

/// Keys of `[agents.NAME]`.
#[rustfmt::skip]
pub(super) static AGENT_KEYS: [FieldKey<Agent>; 16] = [
    key!(Agent, display_name, Kind::Text, "(NAME)", AtOnce, Consent, "the name people see"),
    key!(Agent, start, Kind::Command, "(none)", NextStart, Consent, "begins a run in a terminal"),
    key!(Agent, resume, Kind::Command, "(none)", NextStart, Consent, "begins a run when the task's session is known"),
    key!(Agent, run, Kind::Command, "(none)", AtOnce, Consent, "answers one message and ends: `agency run`"),
    key!(Agent, stream, Kind::Command, "(none)", NextStart, Consent, "begins a stream-json run"),
    key!(Agent, acp, Kind::Command, "(none)", NextStart, Consent, "begins an ACP connection",
        then |agent| agent.acp_before_rename = None),
    key!(Agent, mode, Kind::Text, "(the one in which it asks)", NextStart, Consent, "permission mode of an ACP session"),
    key!(Agent, per_workspace, Kind::Truth, "false", NextStart, Consent,
        "an ACP process for each workspace, with its environment, instead of one for all"),
    key!(Agent, driver, Kind::Driver, "\"terminal\"", NextTask, Consent, "the driver of a task that names none"),
    key!(Agent, restart, Kind::Restart, "(the driver's: \"never\" in a terminal)", NextStart, Consent,
        "what follows an exit that nobody asked for"),
    key!(Agent, max_restarts, Kind::Count, "3", NextStart, Consent, "restarts in a row before giving up"),
    key!(Agent, stop_grace, Kind::Time, "(the driver's: \"2s\" in a terminal)", NextStart, Consent,
        "time to end after being asked, before SIGKILL"),
    key!(Agent, spare, Kind::Words, "[\"gpg-agent\", \"sccache\"]", NextStart, Consent,
        "programs that stopping this agent leaves alone"),
    key!(Agent, env, Kind::Env, "{}", NextStart, Consent, "variables for this agent"),
    key!(Agent, needs_input_timeout, Kind::Time, "(the general one)", NextStart, Free,
        "silence after which this agent is taken to wait for you"),
    key!(Agent, stale_timeout, Kind::Time, "(the general one)", NextStart, Free,
        "waiting after which this agent counts as stale"),
];

/// The table of variables, whose keys the user chooses.
pub(super) const ENV: &FieldKey<Agent> = row(&AGENT_KEYS, "env");

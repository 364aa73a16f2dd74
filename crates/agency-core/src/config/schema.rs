//! Which keys there are, what each one takes, which field it sets, when a change applies, and how far Agency trusts a
//! project with it.
//!
//! A key is written only here and as its field. Not here: the defaults (`Config`, the built-in
//! agents) and the reading (`reader`).

use std::fmt;

use super::Config;
use super::field::{Field, checked};
use super::value::{Value, ValueKind};
use crate::agent::{Agent, canonical_name};
use crate::approval::Rule;

/// A key that sets one field of `S`.
pub struct FieldKey<S: 'static> {
    /// The row for people and editors.
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

/// When a change takes effect. No change needs a restart of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applies {
    /// Immediately.
    AtOnce,
    /// For tasks that are created later.
    NextTask,
    /// For clients that attach later.
    NextAttach,
    /// For runs that start later.
    NextStart,
}

impl Applies {
    /// Completes the sentence `a change takes effect …`.
    pub fn when(self) -> &'static str {
        match self {
            Applies::AtOnce => "now",
            Applies::NextTask => "for new tasks",
            Applies::NextAttach => "at the next attach",
            Applies::NextStart => "at the next start of the agent",
        }
    }
}

/// How far Agency trusts a project's own file with a key. Anyone may have written that file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InProject {
    /// A stranger can do no harm with it.
    Free,
    /// Free if it names a built-in agent that the user has not changed; otherwise it needs consent.
    BuiltInAgents,
    /// Used only after the user agreed to the exact content of the file.
    Consent,
    /// Never used: the key is about all projects together, so only the user's own file sets it.
    Never,
}

impl InProject {
    /// Completes the sentence `a key in a project's file …`.
    pub fn rule(self) -> &'static str {
        match self {
            InProject::Free => "applies",
            InProject::BuiltInAgents => "applies for built-in agents; others after `agency trust`",
            InProject::Consent => "applies after `agency trust`",
            InProject::Never => "is ignored",
        }
    }
}

/// One row of the table of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// The key without its table.
    pub name: &'static str,
    /// The kind of value that it takes.
    pub kind: ValueKind,
    /// The default as TOML writes it, or words in parentheses if there is no value.
    pub default: &'static str,
    /// When a change takes effect.
    pub applies: Applies,
    /// How far Agency trusts a project with it.
    pub in_project: InProject,
    /// The meaning, for the reference.
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
    key!(Config, default_agent, ValueKind::Text, "(the first installed of claude-code, codex, opencode, else shell)", NextTask, BuiltInAgents,
        "the agent of a task that names none"),
    key!(Config, max_agents, ValueKind::Count, "10", AtOnce, Consent,
        "live agents of all projects together; 0 means no limit"),
    key!(Config, needs_input_timeout, ValueKind::Time, "\"5s\"", NextStart, Free,
        "silence after which an agent counts as waiting for you"),
    key!(Config, stale_timeout, ValueKind::Time, "\"60s\"", NextStart, Free,
        "waiting after which an agent counts as stale"),
    key!(Config, shutdown_timeout, ValueKind::Time, "\"30s\"", AtOnce, Never,
        "how long agents may take to exit when the daemon stops them all"),
    key!(Config, detach_keys, ValueKind::Text, "\"ctrl-q\"", NextAttach, Consent,
        "the key that leaves an attached task; a list with commas is a sequence of keys, `none` turns it off"),
    key!(Config, scrollback, ValueKind::Count, "10000", NextStart, Consent,
        "lines kept above the screen"),
    key!(Config, clipboard, ValueKind::Clipboard, "\"deny\"", NextAttach, Never,
        "whether agents may write to the clipboard of the user who is attached and types; no agent can read it"),
];

/// The keys outside any table.
pub(super) static GENERAL: ConfigTable = ConfigTable { name: "", about: "", keys: &GENERAL_KEYS };

/// Every table whose name is fixed, in the order of the reference.
pub(super) static TABLES: [&ConfigTable; 5] = [
    &GENERAL,
    &ConfigTable { name: "ui", about: "how lists look on your terminal", keys: &UI_KEYS },
    &ConfigTable {
        name: "notify",
        about: "how Agency notifies you that an agent needs you",
        keys: &NOTIFY_KEYS,
    },
    &ConfigTable { name: "workspace", about: "how Agency prepares a fresh workspace", keys: &WORKSPACE_KEYS },
    &ConfigTable {
        name: "mcp",
        about: "the tools that agents may use on other tasks: `agency mcp`",
        keys: &MCP_KEYS,
    },
];

/// The tables that have a name.
pub(super) fn named_tables() -> impl Iterator<Item = &'static ConfigTable> {
    TABLES.iter().copied().filter(|table| !table.name.is_empty())
}

/// Keys of `[ui]`. A repository does not know the user's terminal.
#[rustfmt::skip]
static UI_KEYS: [FieldKey<Config>; 1] = [
    key!(Config, ui.marks, ValueKind::MarkStyle, "\"auto\"", AtOnce, Never,
        "the signs in lists; `auto` uses emoji unless the terminal or the locale (`LANG=C`) shows only ASCII"),
];

/// Keys of `[notify]`. A repository must not make Agency run or call anything, so only the user's own file sets them.
#[rustfmt::skip]
static NOTIFY_KEYS: [FieldKey<Config>; 5] = [
    key!(Config, notify.desktop, ValueKind::Truth, "(true if a desktop is present)", AtOnce, Never,
        "send desktop notifications"),
    key!(Config, notify.terminal, ValueKind::TerminalNotice, "\"auto\"", AtOnce, Never,
        "how to notify a user who is attached to another task, through that terminal; `auto` uses the sequence that the terminal is known to understand, otherwise the bell"),
    key!(Config, notify.command, ValueKind::Command, "(none)", AtOnce, Never,
        "a program that Agency runs with the event as JSON on its standard input"),
    key!(Config, notify.webhook, ValueKind::Address, "(none)", AtOnce, Never,
        "an address to which Agency posts the event as JSON"),
    key!(Config, notify.on, ValueKind::Occasions, "[\"prompt\", \"permission\", \"question\", \"finished\", \"error\", \"unknown\", \"exited\"]", AtOnce, Never,
        "the reasons for which you want a notification"),
];

/// The rules of a file, one table after another.
pub(super) static APPROVE: KeyInfo = KeyInfo {
    name: "approve",
    kind: ValueKind::Rule,
    default: "(none)",
    applies: AtOnce,
    in_project: Consent,
    about: "rules that answer approvals",
};

/// The default of a key that every rule must have.
pub(super) const REQUIRED: &str = "(must be given)";

/// Keys of `[[approve]]`.
#[rustfmt::skip]
pub(super) static RULE_KEYS: [FieldKey<Rule>; 5] = [
    key!(Rule, tool, ValueKind::Text, REQUIRED, AtOnce, Consent,
        "the tool's name (`Bash`), or its kind: `execute`, `edit`, `read`, `fetch`; `*` matches any text"),
    key!(Rule, pattern as "match", ValueKind::Text, "(everything)", AtOnce, Consent,
        "a pattern for what the tool would do: the command, the file, the address"),
    key!(Rule, agent, ValueKind::Text, "(every agent)", AtOnce, Consent, "only if this agent asks",
        then |rule| rule.agent = rule.agent.take().map(|agent| canonical_name(&agent).to_owned())),
    key!(Rule, decision, ValueKind::Decision, REQUIRED, AtOnce, Consent, "the answer; `ask` leaves it to you"),
    key!(Rule, why, ValueKind::Text, "(none)", AtOnce, Consent, "the reason, which Agency records with the decision and sends to an agent that is denied"),
];

/// Keys of `[workspace]`.
#[rustfmt::skip]
static WORKSPACE_KEYS: [FieldKey<Config>; 8] = [
    key!(Config, workspace.copy, ValueKind::Words, "[]", NextTask, Free,
        "patterns, written as in `.gitignore`, of ignored files that Agency copies into a fresh workspace; `.worktreeinclude` in the project adds more"),
    key!(Config, workspace.setup, ValueKind::Commands, "[]", NextTask, Consent,
        "commands that run in a fresh workspace before its agent starts"),
    key!(Config, workspace.teardown, ValueKind::Commands, "[]", AtOnce, Consent,
        "commands that run in a workspace before `agency rm` removes it"),
    key!(Config, workspace.setup_timeout, ValueKind::Time, "\"30m\"", AtOnce, Free,
        "how long a setup or a teardown may take; `0s` means no limit"),
    key!(Config, workspace.ports, ValueKind::Count, "10", NextTask, Consent,
        "number of ports for each workspace: `$AGENCY_PORT`, `$AGENCY_PORT_1` and so on; 0 means none"),
    key!(Config, workspace.port_base, ValueKind::Count, "20000", NextTask, Never,
        "the first port for workspaces; Agency leaves out ports that the system gives out itself"),
    key!(Config, workspace.opener, ValueKind::Command, "(`$VISUAL` or `$EDITOR`)", AtOnce, Never,
        "the command that `agency open` runs in a workspace"),
    key!(Config, workspace.keep_ignored, ValueKind::Truth, "false", AtOnce, Free,
        "whether a removed workspace keeps its ignored files too, so that `agency undo` restores them; there may be many"),
];

/// Keys of `[mcp]`. A repository may not decide alone what agents may do.
#[rustfmt::skip]
static MCP_KEYS: [FieldKey<Config>; 4] = [
    key!(Config, mcp.allow, ValueKind::Tools, "[\"list_tasks\", \"task_state\", \"read_task\", \"search\", \"wait_for_task\", \"list_approvals\", \"start_task\", \"send_message\", \"interrupt_task\", \"stop_task\"]", AtOnce, Consent,
        "the tools that agents may call; only `answer_approval` is not in the default"),
    key!(Config, mcp.depth, ValueKind::Count, "1", AtOnce, Consent,
        "how many levels of agents may start tasks: with 1, agents that you started may, and theirs may not; 0 means none"),
    key!(Config, mcp.max_tasks, ValueKind::Count, "5", AtOnce, Consent,
        "live tasks that one agent may have started; 0 means no limit"),
    key!(Config, mcp.offer, ValueKind::Truth, "false", NextStart, Consent,
        "whether every ACP session gets the tools; with other drivers, add the server to the agent's own configuration"),
];

/// Keys of `[agents.NAME]`.
#[rustfmt::skip]
pub(super) static AGENT_KEYS: [FieldKey<Agent>; 16] = [
    key!(Agent, display_name, ValueKind::Text, "(NAME)", AtOnce, Consent, "the name that people see"),
    key!(Agent, start, ValueKind::Command, "(none)", NextStart, Consent, "begins a run in a terminal"),
    key!(Agent, resume, ValueKind::Command, "(none)", NextStart, Consent, "begins a run that resumes the task's session"),
    key!(Agent, run, ValueKind::Command, "(none)", AtOnce, Consent, "answers one message and exits: `agency run`"),
    key!(Agent, stream, ValueKind::Command, "(none)", NextStart, Consent, "begins a stream-json run"),
    key!(Agent, acp, ValueKind::Command, "(none)", NextStart, Consent, "begins an ACP connection",
        then |agent| agent.acp_before_rename = None),
    key!(Agent, mode, ValueKind::Text, "(the mode in which it asks)", NextStart, Consent, "the permission mode of an ACP session"),
    key!(Agent, per_workspace, ValueKind::Truth, "false", NextStart, Consent,
        "whether each workspace gets an ACP process of its own, with its environment, instead of one for all"),
    key!(Agent, driver, ValueKind::Driver, "\"terminal\"", NextTask, Consent, "the driver of a task that names none"),
    key!(Agent, restart, ValueKind::Restart, "(the driver's: \"never\" in a terminal)", NextStart, Consent,
        "whether Agency starts the agent again after a crash"),
    key!(Agent, max_restarts, ValueKind::Count, "3", NextStart, Consent, "restarts in a row before Agency gives up"),
    key!(Agent, stop_grace, ValueKind::Time, "(the driver's: \"2s\" in a terminal)", NextStart, Consent,
        "time to exit after SIGTERM, before SIGKILL"),
    key!(Agent, spare, ValueKind::Words, "[\"gpg-agent\", \"sccache\"]", NextStart, Consent,
        "programs that stay alive when this agent is stopped"),
    key!(Agent, env, ValueKind::Env, "{}", NextStart, Consent, "variables for this agent"),
    key!(Agent, needs_input_timeout, ValueKind::Time, "(the general one)", NextStart, Free,
        "silence after which this agent counts as waiting for you"),
    key!(Agent, stale_timeout, ValueKind::Time, "(the general one)", NextStart, Free,
        "waiting after which this agent counts as stale"),
];

/// The table of variables, whose keys the user chooses.
pub(super) const ENV: &FieldKey<Agent> = row(&AGENT_KEYS, "env");

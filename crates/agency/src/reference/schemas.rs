//! `docs/schema/*.json` and `docs/json.md`: the documents that `--json` prints.

use agency_api::FailureCode;
use agency_api::chat::{AgentOptions, Approvals, Decisions, Entry, Setting, Suggestions};
use agency_api::config::Shown;
use agency_api::connection::{Connections, Sessions};
use agency_api::event::{Event, EventData, KINDS};
use agency_api::file::{FileContent, FileListing, FileWritten};
use agency_api::method::{Orphans, Queue, Receipt, Started, Stopped, TaskListing, Trust, TrustedProjects};
use agency_api::notify::Notice;
use agency_api::project::Projects;
use agency_api::recent::Recent;
use agency_api::remark::Remarks;
use agency_api::search::Found;
use agency_api::shell::Shells;
use agency_api::timeline::Timeline;
use agency_api::trash::{Expired, Restored, Trash, TurnRestored, Turns};
use agency_api::{view, work};
use clap::{Command, CommandFactory};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::api::{alternatives, definition, table_cell};
use super::check;
use crate::cli::Cli;
use crate::command::{agents, compare, config, cost, doctor, gc, notify, screen, send, uninstall, wait};
use crate::output::{FailureDocument, SCHEMA_VERSION};

/// The page. Below the list of schemas: failures and their codes, then events, kind by kind.
const HEAD: &str = "\
# JSON for programs

With `--json`, a command prints one JSON document on standard output and nothing else there. `agency events`, `agency
chat` and `agency replay --states` print many documents, one per line. Notes and warnings go to standard error.

Every document has a `schema_version`. Agency may add keys without changing it, so ignore keys that you do not know.
The number changes when a key is removed or changes its meaning. The notices that `[notify]` sends
([configuration.md](configuration.md)) follow the same rule. Paths and texts that are not UTF-8 are arrays of bytes
instead of strings.

| command | schema |
|---|---|
";

fn documents() -> Vec<(&'static str, &'static str, Schema)> {
    vec![
        ("agency approvals --json", "approvals", of::<Approvals>()),
        ("agency approvals --log --json", "approvals-log", of::<Decisions>()),
        ("agency chat TASK --json", "chat", of::<Entry>()),
        ("agency connections --json", "connections", of::<Connections>()),
        ("agency connections --sessions CONNECTION --json", "connection-sessions", of::<Sessions>()),
        ("agency cost --json", "cost", of::<cost::Costs>()),
        ("agency agents --json", "agents", of::<agents::Listing>()),
        ("agency config --json", "config-show", of::<Shown>()),
        ("agency config get KEY --json", "config-get", of::<config::Got>()),
        ("agency daemon status --json", "daemon-status", of::<view::Daemon>()),
        ("agency conflicts --json", "conflicts", of::<work::Conflicts>()),
        ("agency diff TASK --json", "diff", of::<work::Diff>()),
        ("agency doctor --json", "doctor", of::<doctor::Report>()),
        ("agency events --json", "events", of::<Event>()),
        ("agency explain TASK --json", "explain", of::<view::Explanation>()),
        ("agency explain TASK --wrong STATE --json", "explain-wrong", of::<view::Contradiction>()),
        ("agency explain TASK --forget --json", "explain-forget", of::<view::Corrections>()),
        ("agency gc --json", "gc", of::<gc::Collected>()),
        ("agency cat TASK PATH --json", "cat", of::<FileContent>()),
        ("agency files TASK --json", "files", of::<FileListing>()),
        ("agency write TASK PATH --json", "write", of::<FileWritten>()),
        ("agency gc --trash --json", "gc-trash", of::<Expired>()),
        ("agency ls --json", "ls", of::<TaskListing>()),
        ("agency merge TASK --json", "merge", of::<work::Merged>()),
        ("agency mode TASK --json", "mode", of::<Setting>()),
        ("agency model TASK --json", "model", of::<Setting>()),
        ("agency option TASK --json", "option", of::<AgentOptions>()),
        ("agency new SLUG --json", "new", of::<Started>()),
        ("agency notify test --json", "notify-test", of::<notify::Report>()),
        ("agency orphans --json", "orphans", of::<Orphans>()),
        ("agency projects --json", "projects", of::<Projects>()),
        ("agency queue --json", "queue", of::<Queue>()),
        ("agency replay FILE --states --json", "replay-states", of::<view::StateChange>()),
        ("agency screen TASK --json", "screen", of::<screen::Described>()),
        ("agency search WORDS --json", "search", of::<Found>()),
        ("agency send TASK MESSAGE --json", "send", of::<Receipt>()),
        ("agency start TASK --json", "start", of::<Started>()),
        ("agency remarks TASK --json", "remarks", of::<Remarks>()),
        ("agency stop TASK --json", "stop", of::<Stopped>()),
        ("agency wait TASK --json", "wait", of::<wait::Waited>()),
        ("agency shells --json", "shells", of::<Shells>()),
        ("agency since --json", "since", of::<Recent>()),
        ("agency sync TASK --json", "sync", of::<work::Synced>()),
        ("agency trust --json", "trust", of::<Trust>()),
        ("agency trust --list --json", "trust-list", of::<TrustedProjects>()),
        ("agency compare GROUP --json", "compare", of::<compare::Comparison>()),
        ("agency send --to FILTER --json", "send-to", of::<send::broadcast::Broadcast>()),
        ("agency approvals --suggest --json", "approval-suggestions", of::<Suggestions>()),
        ("agency timeline TASK --json", "timeline", of::<Timeline>()),
        ("agency turns TASK --json", "turns", of::<Turns>()),
        ("agency undo --json", "undo", of::<Restored>()),
        ("agency undo --list --json", "undo-list", of::<Trash>()),
        ("agency undo --turn TASK --json", "undo-turn", of::<TurnRestored>()),
        ("agency uninstall --dry-run --json", "uninstall", of::<uninstall::Inventory>()),
        ("every command with --json that fails", FAILURE, of::<FailureDocument>()),
        ("[notify] command and webhook", "notice", of::<Notice>()),
    ]
}

const FAILURE: &str = "failure";

fn of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

#[test]
fn the_schemas_are_true() {
    assert_eq!(agency_api::notify::SCHEMA_VERSION, SCHEMA_VERSION);
    let mut page = HEAD.to_owned();
    for (command, name, schema) in documents() {
        let text = serde_json::to_string_pretty(&versioned(command, schema)).expect("a schema is JSON");
        check(&format!("schema/{name}.json"), &format!("{text}\n"));
        let label = if name == FAILURE { command.to_owned() } else { format!("`{command}`") };
        page.push_str(&format!("| {label} | [schema/{name}.json](schema/{name}.json) |\n"));
    }
    page.push_str(&failures());
    page.push_str(&events());
    check("json.md", &page);
}

#[test]
fn every_command_with_json_has_a_schema() {
    fn walk(command: &Command, above: &str, found: &mut Vec<String>) {
        let name = format!("{above}{}", command.get_name());
        if command.get_arguments().any(|arg| arg.get_long() == Some("json")) {
            found.push(name.clone());
        }
        command.get_subcommands().for_each(|below| walk(below, &format!("{name} "), found));
    }
    let mut commands = Vec::new();
    walk(&Cli::command(), "", &mut commands);
    let documents = documents();
    for command in &commands {
        let is_listed = documents
            .iter()
            .any(|(line, ..)| line.starts_with(&format!("{command} ")) && line.contains("--json"));
        assert!(is_listed, "{command} --json has no schema");
    }
}

const FAILURES: &str = r#"
## Failures

A command that fails with `--json` prints its failure as a document on standard output ([schema/failure.json](schema/failure.json)),
and as text on standard error. The exit code is the same as without `--json`: 1 if the command was refused or failed, 2
if the command line is wrong. After `--json`, a wrong command line is reported in this way for every command.

```console
$ agency config get workspace.opener --json 2>/dev/null
{"schema_version":1,"error":{"code":"config_not_set","message":"`workspace.opener` is not set","causes":[],"hint":"agency config set workspace.opener VALUE"}}
$ echo $?
1
```

The key `error` is in no other document. `code` is for programs and stays the same; `message`, `causes` (the nearest
first) and `hint` are for people and may change. Commands that print many documents print the failure last. The error
data of the [API](api.md) has the same codes.

Four commands can exit with 1 after they have printed their own document, because it says what went wrong: `doctor`
(something is broken), `gc` (a task was not removed), `notify test` (a channel does not work) and `send` (the receipt is
`refused`).

| code | meaning |
|---|---|
"#;

fn failures() -> String {
    let row = |code: &FailureCode| format!("| `{code}` | {} |\n", table_cell(code.description()));
    format!("{FAILURES}{}", FailureCode::ALL.iter().map(row).collect::<String>())
}

const EVENTS: &str = "
## Events

`agency events --json` prints one event per line, the newest last. `event.subscribe` of the API sends the same events.
Each has `seq`, `time`, `project`, `task`, `agent`, `run`, its `type` and its `data`. `seq` increases, also when another
daemon takes over. It is 0 for events that the daemon sends but does not store. Ignore types that you do not know: a
later version may have more.

";

fn events() -> String {
    let mut types = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let kinds = types.subschema_for::<EventData>().to_value();
    let name =
        |reference: &Value| reference.as_str().and_then(|path| path.rsplit('/').next()).map(str::to_owned);
    let definitions = Value::Object(types.definitions().clone());
    let kinds = &definitions[name(&kinds["$ref"]).expect("a definition")];
    let mut page = EVENTS.to_owned();
    let mut listed = Vec::new();
    for kind in alternatives(kinds).expect("a list of kinds") {
        let word = kind["properties"]["type"]["const"].as_str().expect("a word");
        let about = table_cell(kind["description"].as_str().expect("a description"));
        let data = name(&kind["properties"]["data"]["$ref"]).expect("a type of its own");
        let mut fields = definitions[&data].clone();
        fields["description"] = Value::Null;
        page.push_str(&format!("### `{word}`\n\n{about}\n\n{}\n", definition(&fields)));
        listed.push(word);
    }
    assert_eq!(listed, KINDS, "every kind of event is documented");
    // `api.md` describes the types.
    page.replace("](#", "](api.md#")
}

/// Adds `schema_version`, which every printed document has.
fn versioned(command: &str, schema: Schema) -> Value {
    let mut schema = schema.to_value();
    schema["title"] = command.into();
    schema["properties"]["schema_version"] = json!({ "const": SCHEMA_VERSION });
    match schema["required"].as_array_mut() {
        Some(required) => required.insert(0, "schema_version".into()),
        None => schema["required"] = json!(["schema_version"]),
    }
    schema.sort_all_objects();
    schema
}

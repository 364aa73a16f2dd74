//! `docs/schema/*.json`: the shape of everything that `--json` prints.

use agency_api::chat::{Approvals, Decisions, Entry, Setting};
use agency_api::config::Shown;
use agency_api::connection::{Connections, Sessions};
use agency_api::event::{Event, EventData, KINDS};
use agency_api::method::{Orphans, TaskListing, Trust, TrustedProjects};
use agency_api::notify::Notice;
use agency_api::search::Found;
use agency_api::trash::{Expired, Restored, Trash, TurnRestored, Turns};
use agency_api::{view, work};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::api::{alternatives, definition, one_line};
use super::check;
use crate::command::{agents, config, cost, doctor, gc, notify, screen, uninstall};
use crate::output::SCHEMA_VERSION;

/// The page. Below the list of schemas: events, kind by kind.
const HEAD: &str = "\
# JSON for programs

`--json` prints one document (`agency events --json` and `agency chat --json` one a line). Its shape is versioned: `schema_version` is in every
document. Keys may be added without a new number, so readers should pass over those they do not know; a key that goes or
changes its meaning brings a new number. Notices (`[notify]` in [configuration.md](configuration.md)) are versioned in the same way. Paths and texts that are not UTF-8 are arrays of bytes instead of strings.

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
        ("agency gc --json", "gc", of::<gc::Collected>()),
        ("agency gc --trash --json", "gc-trash", of::<Expired>()),
        ("agency ls --json", "ls", of::<TaskListing>()),
        ("agency merge TASK --json", "merge", of::<work::Merged>()),
        ("agency model TASK --json", "setting", of::<Setting>()),
        ("agency notify test --json", "notify-test", of::<notify::Report>()),
        ("agency orphans --json", "orphans", of::<Orphans>()),
        ("agency screen TASK --json", "screen", of::<screen::Described>()),
        ("agency search WORDS --json", "search", of::<Found>()),
        ("agency sync TASK --json", "sync", of::<work::Synced>()),
        ("agency trust --json", "trust", of::<Trust>()),
        ("agency trust --list --json", "trust-list", of::<TrustedProjects>()),
        ("agency turns TASK --json", "turns", of::<Turns>()),
        ("agency undo --json", "undo", of::<Restored>()),
        ("agency undo --list --json", "undo-list", of::<Trash>()),
        ("agency undo --turn TASK --json", "undo-turn", of::<TurnRestored>()),
        ("agency uninstall --dry-run --json", "uninstall", of::<uninstall::Inventory>()),
        ("[notify] command and webhook", "notice", of::<Notice>()),
    ]
}

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
        page.push_str(&format!("| `{command}` | [schema/{name}.json](schema/{name}.json) |\n"));
    }
    page.push_str(&events());
    check("json.md", &page);
}

const EVENTS: &str = "
## Events

`agency events --json` prints one event a line, the newest last; `event.subscribe` of the API sends the same. Each has
`seq`, `time`, `project`, `task`, `agent`, `run`, its `type` and its `data`. `seq` counts up, also across daemons, and is
0 for events that are sent but not kept. Pass over types that you do not know: a later version may have more.

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
        let about = one_line(kind["description"].as_str().expect("a description"));
        let data = name(&kind["properties"]["data"]["$ref"]).expect("a type of its own");
        let mut fields = definitions[&data].clone();
        fields["description"] = Value::Null;
        page.push_str(&format!("### `{word}`\n\n{about}\n\n{}\n", definition(&fields)));
        listed.push(word);
    }
    assert_eq!(listed, KINDS, "every kind of event is documented");
    // The types are described there.
    page.replace("](#", "](api.md#")
}

/// As it is printed: with the version beside the keys of its type.
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

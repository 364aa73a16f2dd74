//! `docs/api.md`: the methods of the API and their types.

use agency_api::method;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::check;

const HEAD: &str = "\
# The API

The API is JSON-RPC 2.0 in text messages of a WebSocket at `/rpc`, on the daemon's Unix socket: `d-{host}.sock` in the
state directory (`agency daemon status` prints its path). Only its owner may connect. The command line uses these methods
for everything it does.

If a method fails, the answer is an error with code 1. `message` says what failed, `data.causes` why, `data.hint` what to
do, and `data.code` is a stable word that programs can match ([json.md](json.md#failures) lists the words). The codes of
JSON-RPC itself mean that the daemon did not understand the request. After `event.subscribe` the daemon also sends
notifications `event` with an [Event](#event).

A surface that shows tasks reads the whole desk once with `desk.read` and then follows it: `desk.subscribe` with `since` set to
the `seq` of that desk answers with the changes since then, and the daemon sends every later change as a notification
`desk` with a [DeskUpdate](#deskupdate). Updates count up by one. If `gap` is set in the answer, if an update has the type
`Gap`, or if a number is missing, the client reads the desk again and goes on with the updates that have higher numbers. Ages
in a desk (`for_seconds`, `age_seconds`, `ended_seconds`) are those of the moment of reading; the daemon sends nothing
only because time goes by. Streams are binary WebSocket messages at `/stream/{token}`; a token works
once.

A viewer of `pty.attach` types with binary messages, and sends JSON in text messages: `{\"type\":\"resize\",\"size\":{\"cols\":80,\"rows\":24}}`,
and, if it attached with `acknowledges`, `{\"type\":\"processed\",\"bytes\":N}` with the number of bytes that it has drawn since
the stream began. The daemon then sends at most 512 KiB more than that. Further output waits in the daemon, and if that
becomes too much, the viewer gets a fresh screen instead. So the hidden queue of a browser never grows. Without
`acknowledges`, only the socket slows the daemon down.

In the tables, `?` marks keys that may be left out.

## Methods
";

#[test]
fn the_page_of_the_api_is_true() {
    let mut types = SchemaSettings::draft2020_12().into_generator();
    let methods = method::describe_all(&mut types);
    // No method returns it; the daemon sends it.
    drop(types.subschema_for::<agency_api::event::Event>());
    let mut page = HEAD.to_owned();
    for method in &methods {
        assert!(!method.about.is_empty(), "{} has no description", method.name);
        page.push_str(&format!("\n### {}\n\n{}\n\n", method.name, method.about.trim()));
        page.push_str(&format!("Parameters: {}. Answer: {}.\n", kind(&method.params), kind(&method.result)));
    }
    page.push_str("\n## Types\n");
    let mut definitions = Value::Object(types.definitions().clone());
    definitions.sort_all_objects();
    for (name, schema) in definitions.as_object().into_iter().flatten() {
        page.push_str(&format!("\n### {name}\n\n{}", definition(schema)));
    }
    check("api.md", &page);
}

pub(super) fn definition(schema: &Value) -> String {
    let about =
        schema["description"].as_str().map(|about| format!("{}\n\n", table_cell(about))).unwrap_or_default();
    let body = match (schema["properties"].as_object(), alternatives(schema)) {
        (Some(fields), Some(alternatives)) if !fields.is_empty() => {
            format!(
                "{}\nand the keys of one of:\n\n{}",
                table(fields, &schema["required"]),
                list(alternatives)
            )
        }
        (Some(fields), _) if !fields.is_empty() => table(fields, &schema["required"]),
        (_, Some(alternatives)) => list(alternatives),
        _ if schema["enum"].is_array() => format!("One of {}.\n", kind(schema)),
        _ if schema["type"] == "object" => "No keys.\n".to_owned(),
        _ => format!("{}\n", kind(schema)),
    };
    format!("{about}{body}")
}

fn table(fields: &Map<String, Value>, required: &Value) -> String {
    let needed =
        |name: &str| required.as_array().is_some_and(|names| names.iter().any(|known| known == name));
    let row = |(name, schema): (&String, &Value)| {
        let mark = if needed(name) { "" } else { "?" };
        let about = table_cell(schema["description"].as_str().unwrap_or_default());
        format!("| `{name}`{mark} | {} | {about} |\n", kind(schema))
    };
    format!("| key | type | |\n|---|---|---|\n{}", fields.iter().map(row).collect::<String>())
}

pub(super) fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    schema["oneOf"].as_array().or(schema["anyOf"].as_array())
}

fn list(alternatives: &[Value]) -> String {
    let item = |one: &Value| {
        let about =
            one["description"].as_str().map(|about| format!(": {}", table_cell(about))).unwrap_or_default();
        format!("- {}{about}\n", kind(one))
    };
    alternatives.iter().map(item).collect()
}

/// The type of a value, in a few words.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(constant) = schema.get("const") {
        return format!("`{constant}`");
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    }
    if let Some(alternatives) = alternatives(schema) {
        return alternatives.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => list_of(schema),
        Value::String(name) if name == "object" && schema["properties"].is_object() => keys(schema),
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            let one = |name: &Value| match name.as_str() {
                Some("array") => list_of(schema),
                other => other.unwrap_or("anything").to_owned(),
            };
            names.iter().map(one).collect::<Vec<_>>().join(" or ")
        }
        _ => "anything".to_owned(),
    }
}

fn list_of(schema: &Value) -> String {
    match schema["prefixItems"].as_array() {
        Some(items) => format!("[{}]", items.iter().map(kind).collect::<Vec<_>>().join(", ")),
        None => format!("list of {}", kind(&schema["items"])),
    }
}

fn keys(schema: &Value) -> String {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let fields: Vec<String> = fields.map(|(name, schema)| format!("`{name}`: {}", kind(schema))).collect();
    format!("{{ {} }}", fields.join(", "))
}

/// The text on one line, with the separator of table cells escaped.
pub(super) fn table_cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

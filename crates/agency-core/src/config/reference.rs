//! The reference for people (`docs/configuration.md`) and the schema for editors. Both come from the tables of keys.

use serde_json::{Map, Value as Json, json};

use super::mcp::TOOLS;
use super::notify::{OCCASIONS, TerminalNotice};
use super::overrides::variable_of;
use super::schema::{AGENT_KEYS, APPROVE, FieldKey, GENERAL, KeyInfo, REQUIRED, RULE_KEYS, named_tables};
use super::ui::MarkStyle;
use super::value::ValueKind;
use crate::approval::Decision;

/// The tables of `docs/configuration.md`, in Markdown.
pub fn reference() -> String {
    let general = table(GENERAL.keys, |info| format!(" `{}` |", variable_of(info.name)), " variable |");
    let named = named_tables().map(|named| {
        let keys = table(named.keys, |_| String::new(), "");
        format!("\n### Keys of `[{}]`\n\n{keys}", named.name)
    });
    let named: String = named.collect();
    let agents = table(&AGENT_KEYS, |_| String::new(), "");
    let rules = table(&RULE_KEYS, |_| String::new(), "");
    format!(
        "### General keys\n\n{general}{named}\n### Keys of `[agents.NAME]`\n\n{agents}\n### Keys of `[[approve]]`\n\n{rules}"
    )
}

fn table<S>(keys: &[FieldKey<S>], extra: impl Fn(&KeyInfo) -> String, title: &str) -> String {
    let rule = if title.is_empty() { "" } else { "---|" };
    let mut lines = format!(
        "| key | takes | default | meaning | takes effect | in a project's file |{title}\n|---|---|---|---|---|---|{rule}\n"
    );
    for FieldKey { info, .. } in keys {
        let default = match info.default.strip_prefix('(').and_then(|word| word.strip_suffix(')')) {
            Some(word) => word.to_owned(),
            None => format!("`{}`", info.default),
        };
        lines.push_str(&format!(
            "| `{}` | {} | {default} | {} | {} | {} |{}\n",
            info.name,
            info.kind.expected(),
            info.about,
            info.applies.when(),
            info.in_project.rule(),
            extra(info)
        ));
    }
    lines
}

/// The JSON Schema of `config.toml`. Editors use it to complete and check the file.
pub fn json_schema() -> Json {
    let mut properties = properties(GENERAL.keys);
    for named in named_tables() {
        let table = json!({
            "type": "object",
            "description": named.about,
            "properties": self::properties(named.keys),
            "additionalProperties": false,
        });
        properties.insert(named.name.to_owned(), table);
    }
    properties.insert(
        "agents".to_owned(),
        json!({
            "type": "object",
            "description": "agents by name; a built-in agent can be changed key by key",
            "propertyNames": { "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$" },
            "additionalProperties": { "$ref": "#/$defs/agent" },
        }),
    );
    let required = RULE_KEYS.iter().map(|key| &key.info).filter(|info| info.default == REQUIRED);
    let required: Vec<&str> = required.map(|info| info.name).collect();
    properties.insert(
        APPROVE.name.to_owned(),
        json!({
            "type": "array",
            "description": "rules that answer approvals; the first one that fits decides",
            "items": {
                "type": "object",
                "properties": self::properties(&RULE_KEYS),
                "required": required,
                "additionalProperties": false,
            },
        }),
    );
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Agency's config.toml",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "$defs": {
            "agent": {
                "type": "object",
                "properties": self::properties(&AGENT_KEYS),
                "additionalProperties": false,
            }
        }
    })
}

fn properties<S>(keys: &[FieldKey<S>]) -> Map<String, Json> {
    keys.iter().map(|FieldKey { info, .. }| (info.name.to_owned(), property(info))).collect()
}

fn property(info: &KeyInfo) -> Json {
    let mut property = shape(info.kind);
    let about = format!("{}. A change takes effect {}.", info.about, info.applies.when());
    property["description"] = json!(about);
    if let Some(default) = default_of(info) {
        property["default"] = default;
    }
    property
}

fn default_of(info: &KeyInfo) -> Option<Json> {
    // Numbers, strings and arrays of strings look the same in JSON.
    serde_json::from_str(info.default).ok()
}

fn shape(kind: ValueKind) -> Json {
    match kind {
        ValueKind::Text => json!({ "type": "string" }),
        ValueKind::Address => json!({ "type": "string", "pattern": "^https?://[^/\\s]+" }),
        ValueKind::Truth => json!({ "type": "boolean" }),
        ValueKind::Count => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
        ValueKind::Time => json!({ "type": "string", "pattern": "^[0-9]+(ms|s|m|h)$" }),
        ValueKind::Command | ValueKind::Words => json!({ "type": "array", "items": { "type": "string" } }),
        ValueKind::Commands => {
            let command = json!({ "type": "array", "items": { "type": "string" } });
            json!({ "anyOf": [command, { "type": "array", "items": command }] })
        }
        ValueKind::Occasions => json!({ "type": "array", "items": { "enum": OCCASIONS } }),
        ValueKind::Tools => json!({ "type": "array", "items": { "enum": TOOLS } }),
        ValueKind::Driver => json!({ "enum": ["terminal", "stream-json", "acp"] }),
        ValueKind::Restart => json!({ "enum": ["never", "on-crash"] }),
        ValueKind::Clipboard => json!({ "enum": ["deny", "allow"] }),
        ValueKind::MarkStyle => json!({ "enum": MarkStyle::ALL.map(MarkStyle::as_str) }),
        ValueKind::TerminalNotice => json!({ "enum": TerminalNotice::ALL.map(TerminalNotice::as_str) }),
        ValueKind::Decision => json!({ "enum": Decision::ALL.map(Decision::as_str) }),
        // `json_schema` describes the list of rules.
        ValueKind::Rule => json!({}),
        ValueKind::Env => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::find;
    use super::*;
    use crate::agent::Agent;
    use crate::config::{Config, Key};

    #[test]
    fn the_table_lists_the_real_defaults() {
        let config = Config::default();
        for key in Key::all_fixed() {
            assert_eq!(config.get(&key).map(|value| value.to_json()), default_of(key.info()), "{key}");
        }
        let agent = Agent::named("x");
        let default = |name| find(&AGENT_KEYS, name).and_then(|key| default_of(&key.info));
        let spare = default("spare");
        assert_eq!(spare, Some(json!(agent.spare)));
        for driver in crate::agent::Driver::ALL {
            let expected = default("max_restarts");
            let acp = driver == crate::agent::Driver::Acp;
            assert!(acp || Some(json!(agent.max_restarts(driver))) == expected, "{driver}");
        }
    }

    #[test]
    fn the_schema_accepts_every_word_that_the_reader_accepts() {
        let schema = json_schema();
        assert_eq!(
            schema["properties"].as_object().map(Map::len),
            Some(GENERAL.keys.len() + named_tables().count() + 2)
        );
        let drivers = crate::agent::Driver::ALL.map(|driver| driver.to_string());
        assert_eq!(schema["$defs"]["agent"]["properties"]["driver"]["enum"], json!(drivers));
        for word in schema["$defs"]["agent"]["properties"]["restart"]["enum"].as_array().expect("words") {
            assert!(word.as_str().expect("a word").parse::<crate::agent::Restart>().is_ok());
        }
    }
}

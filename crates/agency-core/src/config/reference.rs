//! The reference for people (`docs/configuration.md`) and the schema for editors, both from the tables of keys.

use serde_json::{Map, Value as Json, json};

use super::mcp::TOOLS;
use super::notify::{OCCASIONS, TerminalNotice};
use super::overrides::variable_of;
use super::schema::{AGENT_KEYS, APPROVE, GENERAL_KEYS, KeyInfo, NAMED_TABLES, RULE_KEYS};
use super::value::Kind;
use crate::approval::Decision;

/// The tables of `docs/configuration.md`, in Markdown.
pub fn reference() -> String {
    let general = table(&GENERAL_KEYS, |info| format!(" `{}` |", variable_of(info.name)), " variable |");
    let named = NAMED_TABLES.iter().map(|named| {
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

fn table(keys: &[KeyInfo], extra: impl Fn(&KeyInfo) -> String, title: &str) -> String {
    let rule = if title.is_empty() { "" } else { "---|" };
    let mut lines = format!(
        "| key | takes | default | meaning | a change counts | in a project's file it |{title}\n|---|---|---|---|---|---|{rule}\n"
    );
    for info in keys {
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

/// JSON Schema of `config.toml`, which editors complete and check with.
pub fn json_schema() -> Json {
    let mut properties = properties(&GENERAL_KEYS);
    for named in NAMED_TABLES {
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
            "description": "agents by name; a built-in one is changed key by key",
            "propertyNames": { "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$" },
            "additionalProperties": { "$ref": "#/$defs/agent" },
        }),
    );
    properties.insert(
        APPROVE.name.to_owned(),
        json!({
            "type": "array",
            "description": "rules that answer what agents ask for; the first one that fits decides",
            "items": {
                "type": "object",
                "properties": self::properties(&RULE_KEYS),
                "required": ["tool", "decision"],
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

fn properties(keys: &[KeyInfo]) -> Map<String, Json> {
    keys.iter().map(|info| (info.name.to_owned(), property(info))).collect()
}

fn property(info: &KeyInfo) -> Json {
    let mut property = shape(info.kind);
    let counts = format!("{}. A change counts {}.", info.about, info.applies.when());
    property["description"] = json!(counts);
    if let Some(default) = default_of(info) {
        property["default"] = default;
    }
    property
}

fn default_of(info: &KeyInfo) -> Option<Json> {
    // Numbers, strings and arrays of strings look the same in JSON.
    serde_json::from_str(info.default).ok()
}

fn shape(kind: Kind) -> Json {
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Address => json!({ "type": "string", "pattern": "^https?://[^/\\s]+" }),
        Kind::Truth => json!({ "type": "boolean" }),
        Kind::Count => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
        Kind::Time => json!({ "type": "string", "pattern": "^[0-9]+(ms|s|m|h)$" }),
        Kind::Command | Kind::Words => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Commands => {
            let command = json!({ "type": "array", "items": { "type": "string" } });
            json!({ "anyOf": [command, { "type": "array", "items": command }] })
        }
        Kind::Occasions => json!({ "type": "array", "items": { "enum": OCCASIONS } }),
        Kind::Tools => json!({ "type": "array", "items": { "enum": TOOLS } }),
        Kind::Driver => json!({ "enum": ["terminal", "stream-json", "acp"] }),
        Kind::Restart => json!({ "enum": ["never", "on-crash"] }),
        Kind::Clipboard => json!({ "enum": ["deny", "allow"] }),
        Kind::TerminalNotice => json!({ "enum": TerminalNotice::ALL.map(TerminalNotice::as_str) }),
        Kind::Decision => json!({ "enum": Decision::ALL.map(Decision::as_str) }),
        // Told where the list of them is.
        Kind::Rule => json!({}),
        Kind::Env => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Agent;
    use crate::config::{Config, Key};

    #[test]
    fn defaults_in_the_tables_are_those_in_force() {
        let config = Config::default();
        for info in GENERAL_KEYS {
            let value = config.get(&Key::General(info.name));
            assert_eq!(value.map(|value| value.to_json()), default_of(&info), "{}", info.name);
        }
        for table in NAMED_TABLES {
            for info in table.keys {
                let value = config.get(&Key::Named { table: table.name, name: info.name });
                assert_eq!(value.map(|value| value.to_json()), default_of(info), "{}", info.name);
            }
        }
        let agent = Agent::named("x");
        let spare = AGENT_KEYS.iter().find(|info| info.name == "spare").and_then(default_of);
        assert_eq!(spare, Some(json!(agent.spare)));
        for driver in crate::agent::Driver::ALL {
            let expected = AGENT_KEYS.iter().find(|info| info.name == "max_restarts").and_then(default_of);
            let acp = driver == crate::agent::Driver::Acp;
            assert!(acp || Some(json!(agent.max_restarts(driver))) == expected, "{driver}");
        }
    }

    #[test]
    fn the_schema_knows_every_word_that_is_read() {
        let schema = json_schema();
        assert_eq!(
            schema["properties"].as_object().map(Map::len),
            Some(GENERAL_KEYS.len() + NAMED_TABLES.len() + 2)
        );
        let drivers = crate::agent::Driver::ALL.map(|driver| driver.to_string());
        assert_eq!(schema["$defs"]["agent"]["properties"]["driver"]["enum"], json!(drivers));
        for word in schema["$defs"]["agent"]["properties"]["restart"]["enum"].as_array().expect("words") {
            assert!(word.as_str().expect("a word").parse::<crate::agent::Restart>().is_ok());
        }
    }
}

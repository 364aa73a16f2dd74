//! Values as text: read from the words of a command line, written as TOML and JSON.

use std::time::Duration;

use serde_json::json;
use toml_edit::{Array, InlineTable, Item, Value as TomlValue};

use super::key::Key;
use super::problem::ConfigProblem;
use super::reader;
use super::schema::RULE_KEYS;
use super::value::{Value, ValueKind};
use crate::approval::Rule;

impl Value {
    /// Reads a value as a person types it in a shell: `10`, `5s`, `codex`, `["sh", "-c"]` or the words one by one.
    pub fn from_words(key: &Key, words: &[String]) -> Result<Value, ConfigProblem> {
        let item = match (key.kind(), words) {
            (ValueKind::Rule, _) => return Err(ConfigProblem::ByHand { key: key.to_string() }),
            (kind, [one]) if kind.is_list() && one.trim_start().starts_with('[') => {
                Item::Value(one.parse().map_err(|_| ConfigProblem::wrong_type(key, format!("`{one}`")))?)
            }
            (kind, words) if kind.is_list() => Item::Value(words.iter().collect()),
            (kind, [one]) => read_word(kind, one),
            (_, words) => {
                return Err(ConfigProblem::wrong_type(key, format!("{} words", words.len())));
            }
        };
        reader::check_value(key, &item)
    }

    pub(super) fn to_toml(&self) -> TomlValue {
        match self {
            Value::Text(text) => text.as_str().into(),
            Value::Truth(truth) => (*truth).into(),
            Value::Count(count) => i64::from(*count).into(),
            Value::Time(time) => write_time(*time).into(),
            Value::Words(words) => words.iter().collect::<Array>().into(),
            // A single command is written as in keys that take one command.
            Value::Commands(commands) => match commands.as_slice() {
                [words] => words.iter().collect::<Array>().into(),
                _ => commands.iter().map(|words| words.iter().collect::<Array>()).collect::<Array>().into(),
            },
            Value::Driver(driver) => driver.as_str().into(),
            Value::Restart(restart) => restart.as_str().into(),
            Value::Clipboard(clipboard) => clipboard.as_str().into(),
            Value::MarkStyle(style) => style.as_str().into(),
            Value::TerminalNotice(how) => how.as_str().into(),
            Value::Rule(rule) => rule_entries(rule)
                .map(|(name, value)| (name, value.to_toml()))
                .collect::<InlineTable>()
                .into(),
        }
    }

    /// The value as JSON. Times and names are strings.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Text(text) => json!(text),
            Value::Truth(truth) => json!(truth),
            Value::Count(count) => json!(count),
            Value::Time(time) => json!(write_time(*time)),
            Value::Words(words) => json!(words),
            Value::Commands(commands) => match commands.as_slice() {
                [words] => json!(words),
                _ => json!(commands),
            },
            Value::Driver(driver) => json!(driver.as_str()),
            Value::Restart(restart) => json!(restart.as_str()),
            Value::Clipboard(clipboard) => json!(clipboard.as_str()),
            Value::MarkStyle(style) => json!(style.as_str()),
            Value::TerminalNotice(how) => json!(how.as_str()),
            Value::Rule(rule) => {
                rule_entries(rule).map(|(name, value)| (name.to_owned(), value.to_json())).collect()
            }
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.to_toml())
    }
}

/// The keys of a rule that are set, in the order of the reference.
fn rule_entries(rule: &Rule) -> impl Iterator<Item = (&'static str, Value)> {
    RULE_KEYS.iter().filter_map(|key| Some((key.info.name, (key.get)(rule)?)))
}

fn read_word(kind: ValueKind, word: &str) -> Item {
    let truth = word.parse::<bool>().ok().filter(|_| kind == ValueKind::Truth);
    let number = word.parse::<i64>().ok().filter(|_| kind == ValueKind::Count);
    // Quotes that the shell left in place are not part of the text.
    let quoted = word.parse::<TomlValue>().ok().filter(TomlValue::is_str).filter(|_| word.starts_with('"'));
    let plain = number.map(TomlValue::from).or(truth.map(TomlValue::from));
    Item::Value(plain.or(quoted).unwrap_or_else(|| word.into()))
}

/// Uses the largest unit that is exact.
fn write_time(time: Duration) -> String {
    let millis = time.as_millis();
    let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    // People write 60s, not 1m.
    let exact = units.iter().find(|(unit, _)| millis.is_multiple_of(*unit) && millis / unit > 1);
    match exact {
        Some((unit, name)) => format!("{}{name}", millis / unit),
        None if millis.is_multiple_of(1_000) => format!("{}s", millis / 1_000),
        None => format!("{millis}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_people_type_them() {
        for (key, words, written) in [
            ("max_agents", vec!["3"], "3"),
            ("stale_timeout", vec!["90s"], "\"90s\""),
            ("stale_timeout", vec!["\"2m\""], "\"2m\""),
            ("stale_timeout", vec!["1m"], "\"60s\""),
            ("stale_timeout", vec!["60000ms"], "\"60s\""),
            ("stale_timeout", vec!["2h"], "\"2h\""),
            ("stale_timeout", vec!["0ms"], "\"0s\""),
            ("default_agent", vec!["42"], "\"42\""),
            ("agents.x.start", vec!["my agent", "--fast"], "[\"my agent\", \"--fast\"]"),
            ("agents.x.start", vec!["[\"a\", 'b']"], "[\"a\", \"b\"]"),
            ("agents.x.start", vec!["a"], "[\"a\"]"),
            ("agents.x.env.A", vec!["1"], "\"1\""),
            ("notify.desktop", vec!["false"], "false"),
            ("notify.command", vec!["tell", "me"], "[\"tell\", \"me\"]"),
            ("notify.on", vec!["permission", "exited"], "[\"permission\", \"exited\"]"),
            ("notify.webhook", vec!["https://h/p"], "\"https://h/p\""),
            ("agents.x.restart", vec!["never"], "\"never\""),
            ("workspace.setup", vec!["npm", "ci"], "[\"npm\", \"ci\"]"),
            ("workspace.setup", vec!["[['npm', 'ci'], ['make']]"], "[[\"npm\", \"ci\"], [\"make\"]]"),
            ("workspace.setup", vec!["[]"], "[]"),
            ("workspace.copy", vec![".env", "*.local"], "[\".env\", \"*.local\"]"),
        ] {
            let key = Key::parse(key).expect("a key");
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            let value = Value::from_words(&key, &words).unwrap_or_else(|problem| panic!("{key}: {problem}"));
            assert_eq!(value.to_string(), written);
            assert_eq!(Value::from_words(&key, &[value.to_string()]), Ok(value));
        }
    }

    #[test]
    fn a_wrong_value_is_refused_with_the_name_of_its_key() {
        for (key, words, problem) in [
            (
                "max_agents",
                vec!["ten"],
                "`max_agents` must be a whole number, 0 or more, not the string \"ten\"",
            ),
            ("max_agents", vec!["1", "2"], "`max_agents` must be a whole number, 0 or more, not 2 words"),
            ("stale_timeout", vec!["60"], "`stale_timeout`: `60` has no unit"),
            (
                "agents.x.start",
                vec!["[1]"],
                "`agents.x.start` must be an array of strings, the program first, not one that holds the number 1",
            ),
            (
                "agents.x.start",
                vec!["[\"a"],
                "`agents.x.start` must be an array of strings, the program first, not `[\"a`",
            ),
            ("agents.x.start", vec![""], "`agents.x.start` names no program"),
            ("workspace.setup", vec!["[[]]"], "`workspace.setup` names no program"),
            (
                "workspace.setup",
                vec!["['a', ['b']]"],
                "`workspace.setup` must be an array of strings, the program first, or an array of such arrays, not one that holds an array",
            ),
        ] {
            let key = Key::parse(key).expect("a key");
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            let refused = Value::from_words(&key, &words).expect_err(problem);
            assert_eq!(refused.to_string(), problem);
        }
    }
}

//! Values of keys, and how they are written.

use std::time::Duration;

use serde_json::json;
use toml_edit::{Array, InlineTable, Item, Value as TomlValue};

use super::clipboard::Clipboard;
use super::key::Key;
use super::layer::ConfigProblem;
use super::notify::TerminalNotice;
use super::reader;
use super::schema::RULE_KEYS;
use crate::agent::{Driver, Restart};
use crate::approval::Rule;

/// A value that has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Any text, an address, or a decision.
    Text(String),
    /// true or false
    Truth(bool),
    /// A whole number.
    Count(u32),
    /// A span of time.
    Time(Duration),
    /// A command or a list of words.
    Words(Vec<String>),
    /// Several commands.
    Commands(Vec<Vec<String>>),
    /// The name of a driver.
    Driver(Driver),
    /// A restart rule.
    Restart(Restart),
    /// The setting `clipboard`.
    Clipboard(Clipboard),
    /// The setting `notify.terminal`.
    TerminalNotice(TerminalNotice),
    /// One table of `[[approve]]`.
    Rule(Box<Rule>),
}

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

    pub(super) fn text(self) -> Option<String> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    pub(super) fn rule(self) -> Option<Rule> {
        if let Value::Rule(rule) = self { Some(*rule) } else { None }
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

/// The kind of value that a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Any text.
    Text,
    /// An `http` or `https` address.
    Address,
    /// true or false
    Truth,
    /// A whole number, 0 or more.
    Count,
    /// A number and a unit: `5s`.
    Time,
    /// A program and its arguments.
    Command,
    /// One command, or several.
    Commands,
    /// A list of strings.
    Words,
    /// Words of [`OCCASIONS`](super::OCCASIONS).
    Occasions,
    /// Words of [`TOOLS`](super::TOOLS).
    Tools,
    /// The name of a driver.
    Driver,
    /// `never` or `on-crash`
    Restart,
    /// `deny` or `allow`
    Clipboard,
    /// A way to notify through a terminal.
    TerminalNotice,
    /// A table of variables.
    Env,
    /// The answer of a rule.
    Decision,
    /// A table of `[[approve]]`.
    Rule,
}

impl ValueKind {
    fn is_list(self) -> bool {
        matches!(
            self,
            ValueKind::Command
                | ValueKind::Commands
                | ValueKind::Words
                | ValueKind::Occasions
                | ValueKind::Tools
        )
    }

    /// For messages: `stale_timeout must be …`.
    pub fn expected(self) -> &'static str {
        match self {
            ValueKind::Text => "a string",
            ValueKind::Address => "an address that begins with http:// or https://",
            ValueKind::Truth => "true or false",
            ValueKind::Count => "a whole number, 0 or more",
            ValueKind::Time => "a time such as \"500ms\", \"5s\", \"2m\" or \"1h\"",
            ValueKind::Command => "an array of strings, the program first",
            ValueKind::Commands => "an array of strings, the program first, or an array of such arrays",
            ValueKind::Words => "an array of strings",
            ValueKind::Occasions => {
                "an array of \"prompt\", \"permission\", \"question\", \"finished\", \"error\", \"unknown\" and \"exited\""
            }
            ValueKind::Tools => "an array of names of tools (docs/configuration.md lists them)",
            ValueKind::Driver => "\"terminal\", \"stream-json\" or \"acp\"",
            ValueKind::Restart => "\"never\" or \"on-crash\"",
            ValueKind::Clipboard => "\"deny\" or \"allow\"",
            ValueKind::TerminalNotice => "\"auto\", \"osc9\", \"osc777\", \"bell\" or \"none\"",
            ValueKind::Env => "a table of strings",
            ValueKind::Decision => "\"allow\", \"deny\" or \"ask\"",
            ValueKind::Rule => "tables, as in [[approve]]",
        }
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

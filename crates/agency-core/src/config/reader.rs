//! Reads TOML text into a `Layer`. Checks every value against the schema; every error has a position.

use std::collections::BTreeMap;
use std::ops::Range;

use toml_edit::{Document, Item, Key as TomlKey, TableLike, Value as TomlValue};

use super::excerpt::excerpt;
use super::key::{Key, is_agent_name, is_variable};
use super::layer::{Layer, Origin, Setting};
use super::mcp::TOOLS;
use super::notify::{OCCASIONS, is_address};
use super::problem::{ConfigError, ConfigProblem, Position, UnknownKey};
use super::schema::{AGENT_KEYS, APPROVE, ConfigTable, GENERAL, REQUIRED, RULE_KEYS, find, named_tables};
use super::time_span::{TimeSpanError, parse_time_span};
use super::value::{Value, ValueKind};
use crate::agent::canonical_name;
use crate::approval::{Decision, Rule};
use crate::spelling::nearest;

/// Reads one file. `file` is how messages name it.
pub fn parse(text: &str, file: &str) -> Result<Layer, ConfigError> {
    // Editors on Windows write a byte order mark, which is not part of the first key.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { file, text, settings: BTreeMap::new(), unknown_keys: Vec::new() };
    let document = Document::parse(text).map_err(|error| {
        let message = error.message().trim().replace('\n', ", ");
        reader.error(error.span(), ConfigProblem::Syntax(message))
    })?;
    reader.general(document.as_table())?;
    Ok(Layer { settings: reader.settings, unknown_keys: reader.unknown_keys })
}

/// Checks one value against its key.
pub(super) fn check_value(key: &Key, item: &Item) -> Result<Value, ConfigProblem> {
    value(key.kind(), item).map_err(|refused| problem(key, item, refused).1)
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    settings: BTreeMap<Key, Setting>,
    unknown_keys: Vec<UnknownKey>,
}

impl Reader<'_> {
    fn general(&mut self, table: &dyn TableLike) -> Result<(), ConfigError> {
        for (key, item) in entries(table) {
            match (GENERAL.find(key.get()), key.get()) {
                (Some(config), _) => self.setting(Key::Config(config), key, item)?,
                (None, "agents") => self.agents(key, item)?,
                (None, name) if name == APPROVE.name => self.rules(key, item)?,
                (None, name) => match named_tables().find(|table| table.name == name) {
                    Some(table) => self.config_table(table, key, item)?,
                    None => self.unknown(key, "", top_level_names()),
                },
            }
        }
        Ok(())
    }

    fn config_table(&mut self, table: &ConfigTable, key: &TomlKey, item: &Item) -> Result<(), ConfigError> {
        for (key, item) in entries(self.table(table.name, key, item)?) {
            match table.find(key.get()) {
                Some(config) => self.setting(Key::Config(config), key, item)?,
                None => {
                    let known = table.keys.iter().map(|key| key.info.name);
                    self.unknown(key, &format!("{}.", table.name), known);
                }
            }
        }
        Ok(())
    }

    fn agents(&mut self, key: &TomlKey, item: &Item) -> Result<(), ConfigError> {
        for (name, item) in entries(self.table("agents", key, item)?) {
            if !is_agent_name(name.get()) {
                return Err(self.error(name.span(), ConfigProblem::AgentName(name.get().to_owned())));
            }
            self.agent(name, item)?;
        }
        Ok(())
    }

    fn agent(&mut self, name: &TomlKey, item: &Item) -> Result<(), ConfigError> {
        let agent = canonical_name(name.get());
        let path = format!("agents.{}", name.get());
        for (key, item) in entries(self.table(&path, name, item)?) {
            match find(&AGENT_KEYS, key.get()) {
                Some(known) if known.info.kind == ValueKind::Env => self.env(agent, key, item)?,
                Some(known) => {
                    let path = Key::Agent { agent: agent.to_owned(), key: known };
                    self.setting(path, key, item)?;
                }
                None => self.unknown(key, &format!("{path}."), AGENT_KEYS.iter().map(|key| key.info.name)),
            }
        }
        Ok(())
    }

    fn env(&mut self, agent: &str, key: &TomlKey, item: &Item) -> Result<(), ConfigError> {
        for (variable, item) in entries(self.table(&format!("agents.{agent}.env"), key, item)?) {
            let name = variable.get();
            if !is_variable(name) {
                return Err(self.error(variable.span(), ConfigProblem::VariableName(name.to_owned())));
            }
            let path = Key::Env { agent: agent.to_owned(), variable: name.to_owned() };
            self.setting(path, variable, item)?;
        }
        Ok(())
    }

    fn rules(&mut self, key: &TomlKey, item: &Item) -> Result<(), ConfigError> {
        let tables: Option<Vec<&dyn TableLike>> = match item {
            Item::ArrayOfTables(tables) => Some(tables.iter().map(|table| table as &dyn TableLike).collect()),
            Item::Value(TomlValue::Array(values)) => {
                values.iter().map(|value| Some(value.as_inline_table()? as &dyn TableLike)).collect()
            }
            _ => None,
        };
        let tables = tables.ok_or_else(|| {
            let problem = ConfigProblem::wrong_type(&Key::Rule { number: 1 }, describe(item));
            self.error(item.span().or(key.span()), problem)
        })?;
        for (index, table) in tables.into_iter().enumerate() {
            let first = entries(table).next().and_then(|(key, _)| key.span()).or(key.span());
            let line = self.position(first.clone()).line;
            let path = Key::Rule { number: index + 1 };
            let value = Value::Rule(Box::new(self.rule(&path.to_string(), table, first)?));
            let origin = Origin::File { file: self.file.to_owned(), line };
            self.settings.insert(path, Setting { value, origin });
        }
        Ok(())
    }

    /// Reads one rule. Any unknown key is an error, because a rule without it could allow more than the user meant.
    fn rule(
        &self,
        path: &str,
        table: &dyn TableLike,
        span: Option<Range<usize>>,
    ) -> Result<Rule, ConfigError> {
        let mut rule =
            Rule { tool: String::new(), pattern: None, agent: None, decision: Decision::Ask, why: None };
        for (key, item) in entries(table) {
            let Some(known) = find(&RULE_KEYS, key.get()) else {
                let nearest = nearest(key.get(), RULE_KEYS.iter().map(|key| key.info.name));
                let nearest = nearest.into_iter().map(str::to_owned).collect();
                let unknown = format!("{path}.{}", key.get());
                return Err(self.error(key.span(), ConfigProblem::RuleKey { key: unknown, nearest }));
            };
            let value = value(known.info.kind, item).map_err(|_| {
                let (key, expected) = (format!("{path}.{}", known.info.name), known.info.kind.expected());
                let problem = ConfigProblem::WrongType { key, expected, got: describe(item) };
                self.error(item.span(), problem)
            })?;
            (known.set)(&mut rule, value);
        }
        let mut required = RULE_KEYS.iter().map(|key| &key.info).filter(|info| info.default == REQUIRED);
        match required.find(|info| table.get(info.name).is_none()) {
            Some(info) => {
                let problem = ConfigProblem::RuleLacks { rule: path.to_owned(), key: info.name };
                Err(self.error(span, problem))
            }
            None => Ok(rule),
        }
    }

    fn setting(&mut self, path: Key, key: &TomlKey, item: &Item) -> Result<(), ConfigError> {
        let value = value(path.kind(), item).map_err(|refused| {
            let (span, problem) = problem(&path, item, refused);
            self.error(span, problem)
        })?;
        let line = self.position(key.span()).line;
        self.settings
            .insert(path, Setting { value, origin: Origin::File { file: self.file.to_owned(), line } });
        Ok(())
    }

    fn table<'t>(&self, path: &str, key: &TomlKey, item: &'t Item) -> Result<&'t dyn TableLike, ConfigError> {
        item.as_table_like().ok_or_else(|| {
            let (key_name, got) = (path.to_owned(), describe(item));
            let problem = ConfigProblem::WrongType { key: key_name, expected: "a table", got };
            self.error(item.span().or(key.span()), problem)
        })
    }

    fn unknown(&mut self, key: &TomlKey, table: &str, known: impl Iterator<Item = &'static str>) {
        let position = self.position(key.span());
        let nearest = nearest(key.get(), known).into_iter().map(str::to_owned).collect();
        self.unknown_keys.push(UnknownKey { position, key: format!("{table}{}", key.get()), nearest });
    }

    fn error(&self, span: Option<Range<usize>>, problem: ConfigProblem) -> ConfigError {
        let position = self.position(span.clone());
        let excerpt = excerpt(self.text, &position, span.unwrap_or_default()).into_boxed_str();
        ConfigError { position, problem, excerpt }
    }

    fn position(&self, span: Option<Range<usize>>) -> Position {
        let offset = span.map_or(0, |span| self.text.floor_char_boundary(span.start));
        let before = &self.text[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Position {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// The names that can stand at the top of a file.
fn top_level_names() -> impl Iterator<Item = &'static str> {
    let tables = named_tables().map(|table| table.name);
    GENERAL.keys.iter().map(|key| key.info.name).chain(tables).chain(["agents", APPROVE.name])
}

fn entries(table: &dyn TableLike) -> impl Iterator<Item = (&TomlKey, &Item)> {
    table.iter().filter_map(|(name, _)| table.get_key_value(name))
}

enum Refused {
    Type,
    Element(Box<TomlValue>),
    Time(TimeSpanError),
    Nul,
    NoProgram,
}

fn problem(path: &Key, item: &Item, refused: Refused) -> (Option<Range<usize>>, ConfigProblem) {
    let key = path.to_string();
    match refused {
        Refused::Type => (item.span(), ConfigProblem::wrong_type(path, describe(item))),
        Refused::Element(element) => {
            let got = format!("one that holds {}", describe_value(&element));
            (element.span(), ConfigProblem::wrong_type(path, got))
        }
        Refused::Time(source) => (item.span(), ConfigProblem::Time { key, source }),
        Refused::Nul => (item.span(), ConfigProblem::Nul { key }),
        Refused::NoProgram => (item.span(), ConfigProblem::NoProgram { key }),
    }
}

fn value(kind: ValueKind, item: &Item) -> Result<Value, Refused> {
    match kind {
        ValueKind::Text => Ok(Value::Text(text(item)?.to_owned())),
        ValueKind::Address => {
            let address = text(item)?;
            is_address(address).then(|| Value::Text(address.to_owned())).ok_or(Refused::Type)
        }
        ValueKind::Truth => Ok(Value::Truth(item.as_bool().ok_or(Refused::Type)?)),
        ValueKind::Count => {
            let count = item.as_integer().and_then(|number| u32::try_from(number).ok());
            Ok(Value::Count(count.ok_or(Refused::Type)?))
        }
        ValueKind::Time => Ok(Value::Time(parse_time_span(text(item)?).map_err(Refused::Time)?)),
        ValueKind::Words => Ok(Value::Words(words(item)?)),
        ValueKind::Occasions => Ok(Value::Words(words_of(&OCCASIONS, item)?)),
        ValueKind::Tools => Ok(Value::Words(words_of(&TOOLS, item)?)),
        ValueKind::Commands => Ok(Value::Commands(commands(item)?)),
        ValueKind::Command => {
            let words = words(item)?;
            if words.first().is_some_and(String::is_empty) {
                return Err(Refused::NoProgram);
            }
            Ok(Value::Words(words))
        }
        ValueKind::Driver => Ok(Value::Driver(text(item)?.parse().map_err(|_| Refused::Type)?)),
        ValueKind::Restart => Ok(Value::Restart(text(item)?.parse().map_err(|_| Refused::Type)?)),
        ValueKind::Clipboard => Ok(Value::Clipboard(text(item)?.parse().map_err(|_| Refused::Type)?)),
        ValueKind::MarkStyle => Ok(Value::MarkStyle(text(item)?.parse().map_err(|_| Refused::Type)?)),
        ValueKind::TerminalNotice => {
            Ok(Value::TerminalNotice(text(item)?.parse().map_err(|_| Refused::Type)?))
        }
        ValueKind::Decision => {
            let word = text(item)?;
            word.parse::<Decision>().map_err(|_| Refused::Type)?;
            Ok(Value::Text(word.to_owned()))
        }
        // A table has no value of its own; the reader reads its keys one by one.
        ValueKind::Env | ValueKind::Rule => Err(Refused::Type),
    }
}

fn text(item: &Item) -> Result<&str, Refused> {
    without_nul(item.as_str().ok_or(Refused::Type)?)
}

fn words(item: &Item) -> Result<Vec<String>, Refused> {
    let word = |value: &TomlValue| {
        let text = value.as_str().ok_or_else(|| Refused::Element(Box::new(value.clone())))?;
        Ok(without_nul(text)?.to_owned())
    };
    item.as_array().ok_or(Refused::Type)?.iter().map(word).collect()
}

/// One command, as other keys take it, or an array of commands.
fn commands(item: &Item) -> Result<Vec<Vec<String>>, Refused> {
    let array = item.as_array().ok_or(Refused::Type)?;
    let is_many = array.iter().next().is_some_and(TomlValue::is_array);
    let commands = match is_many {
        true => array.iter().map(inner_words).collect::<Result<Vec<_>, _>>()?,
        false => Some(words(item)?).into_iter().filter(|words| !words.is_empty()).collect(),
    };
    match commands.iter().all(|words| words.first().is_some_and(|program| !program.is_empty())) {
        true => Ok(commands),
        false => Err(Refused::NoProgram),
    }
}

fn inner_words(value: &TomlValue) -> Result<Vec<String>, Refused> {
    match value.is_array() {
        true => words(&Item::Value(value.clone())),
        false => Err(Refused::Element(Box::new(value.clone()))),
    }
}

fn words_of(known: &[&str], item: &Item) -> Result<Vec<String>, Refused> {
    let words = words(item)?;
    match words.iter().position(|word| !known.contains(&word.as_str())) {
        Some(index) => {
            let element = item.as_array().and_then(|array| array.get(index)).cloned();
            Err(element.map_or(Refused::Type, |element| Refused::Element(Box::new(element))))
        }
        None => Ok(words),
    }
}

fn without_nul(text: &str) -> Result<&str, Refused> {
    if text.contains('\0') { Err(Refused::Nul) } else { Ok(text) }
}

/// `the integer 5`, `the string "x"`, `a table`.
fn describe(item: &Item) -> String {
    match item {
        Item::Value(value) => describe_value(value),
        Item::Table(_) => "a table".to_owned(),
        Item::ArrayOfTables(_) => "an array of tables".to_owned(),
        Item::None => "nothing".to_owned(),
    }
}

fn describe_value(value: &TomlValue) -> String {
    match value {
        TomlValue::String(text) => format!("the string {:?}", shorten(text.value())),
        TomlValue::Integer(number) => format!("the number {}", number.value()),
        TomlValue::Float(number) => format!("the number {}", number.value()),
        TomlValue::Boolean(truth) => format!("{}", truth.value()),
        TomlValue::Datetime(date) => format!("the date {}", date.value()),
        TomlValue::Array(_) => "an array".to_owned(),
        TomlValue::InlineTable(_) => "a table".to_owned(),
    }
}

/// Keeps enough of the text to recognize it.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

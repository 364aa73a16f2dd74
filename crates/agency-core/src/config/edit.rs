//! Changes one key of a `config.toml` and nothing else: comments, order and spacing stay.
//!
//! Invariant: the result parses, and every other key has the value that it had before.

use std::collections::BTreeMap;
use std::ops::Range;

use toml_edit::{Document, DocumentMut, InlineTable, Item, Table, TableLike};

use super::key::Key;
use super::layer::Layer;
use super::problem::ConfigError;
use super::reader::parse;
use super::value::Value;
use crate::agent::canonical_name;

/// Why a file cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The file cannot be read as it is.
    #[error(transparent)]
    Broken(#[from] ConfigError),
    /// The key shares its text with another key, for example in a dotted table.
    #[error("`{0}` cannot be changed without changing something else")]
    Entangled(String),
}

/// Returns the text with the key set to the value.
pub fn set(text: &str, file: &str, key: &Key, value: &Value) -> Result<String, EditError> {
    let (mark, body) = split_mark(text);
    let document = read(body, file)?;
    let path = path_in(&document, key);
    let after = match find(&document, &path) {
        Some(Found { value: span, .. }) => splice(body, span, &value.to_string()),
        None => insert_key(body, &document, &path, value),
    };
    let after = format!("{mark}{}", with_line_ends_of(body, after));
    let mut wanted = values(&parse(text, file)?);
    wanted.insert(key.clone(), value.clone());
    verify(after, file, key, &wanted)
}

/// Returns the text without the key, or `None` if the text does not set it.
pub fn unset(text: &str, file: &str, key: &Key) -> Result<Option<String>, EditError> {
    let (mark, body) = split_mark(text);
    let mut wanted = values(&parse(text, file)?);
    if wanted.remove(key).is_none() {
        return Ok(None);
    }
    let mut after = body.to_owned();
    // A file can set an agent twice, under its name and under its alias.
    loop {
        let document = read(&after, file)?;
        let path = path_in(&document, key);
        let Some(found) = find(&document, &path) else { break };
        let ends = after.clone();
        after = with_line_ends_of(&ends, remove_key(&after, &found, &path));
    }
    verify(format!("{mark}{after}"), file, key, &wanted).map(Some)
}

struct Found {
    value: Range<usize>,
    key: Range<usize>,
    /// The key is inside an inline table, next to others on its line.
    inline: bool,
}

/// Splits off the byte order mark and directives for editors, which must stay the first thing in the file.
fn split_mark(text: &str) -> (&str, &str) {
    let mut end = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    while text[end..].starts_with("#:") {
        end += text[end..].find('\n').map_or(text.len() - end, |newline| newline + 1);
    }
    // A directive without a line end would swallow the text after it.
    if text[..end].ends_with('\n') || text[..end].chars().all(|c| c == '\u{feff}') {
        text.split_at(end)
    } else {
        ("", text)
    }
}

fn read<'a>(body: &'a str, file: &str) -> Result<Document<&'a str>, EditError> {
    let body = body.strip_prefix('\u{feff}').unwrap_or(body);
    Document::parse(body).map_err(|_| match parse(body, file) {
        Err(error) => EditError::Broken(error),
        Ok(_) => EditError::Entangled(file.to_owned()),
    })
}

/// The key's path, with the name or alias that this file uses for the agent.
fn path_in(document: &Document<&str>, key: &Key) -> Vec<String> {
    let mut path: Vec<String> = key.path().into_iter().map(str::to_owned).collect();
    if path[0] != "agents" {
        return path;
    }
    let agents = document.as_table().get("agents").and_then(Item::as_table_like);
    let (Some(agents), Some(agent)) = (agents, path.get(1).cloned()) else { return path };
    for (name, item) in agents.iter().filter(|(name, _)| canonical_name(name) == agent) {
        let leaf = path[2..].iter().try_fold(item, |item, word| item.as_table_like()?.get(word));
        // If several tables set the key, the last one counts.
        if leaf.is_some() || path[1] == agent && agents.get(&agent).is_none() {
            path[1] = name.to_owned();
        }
    }
    path
}

fn find(document: &Document<&str>, path: &[String]) -> Option<Found> {
    let (leaf, tables) = path.split_last()?;
    let mut table: &dyn TableLike = document.as_table();
    let mut inline = false;
    for name in tables {
        let item = table.get(name)?;
        inline |= item.is_value();
        table = item.as_table_like()?;
    }
    let (key, item) = table.get_key_value(leaf)?;
    Some(Found { value: item.span()?, key: key.span()?, inline })
}

fn splice(text: &str, span: Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..span.start], &text[span.end..])
}

fn insert_key(body: &str, document: &Document<&str>, path: &[String], value: &Value) -> String {
    let mut fresh: DocumentMut = match document.as_table().is_empty() {
        // The file has only comments or nothing. The comments stay above the new key.
        true => DocumentMut::new(),
        false => body.parse().unwrap_or_default(),
    };
    put(fresh.as_table_mut(), path, value, false);
    match document.as_table().is_empty() && !body.is_empty() {
        true => format!("{}\n{}{}", body.trim_end(), blank_line(path), fresh),
        false => fresh.to_string(),
    }
}

fn blank_line(path: &[String]) -> &'static str {
    if path.len() > 1 { "\n" } else { "" }
}

fn put(table: &mut dyn TableLike, path: &[String], value: &Value, inline: bool) {
    match path {
        [] => {}
        [leaf] => drop(table.insert(leaf, Item::Value(value.to_toml()))),
        [name, rest @ ..] => {
            if !table.contains_key(name) {
                table.insert(name, new_table(name, inline));
            }
            let Some(item) = table.get_mut(name) else { return };
            let inline = inline || item.is_value();
            if let Some(below) = item.as_table_like_mut() {
                put(below, rest, value, inline);
            }
        }
    }
}

fn new_table(name: &str, inline: bool) -> Item {
    if inline {
        return Item::Value(InlineTable::new().into());
    }
    let mut table = Table::new();
    table.set_implicit(name == "agents");
    Item::Table(table)
}

fn remove_key(body: &str, found: &Found, path: &[String]) -> String {
    if found.inline {
        let mut document: DocumentMut = body.parse().unwrap_or_default();
        take(document.as_table_mut(), path);
        return document.to_string();
    }
    // Remove the lines of the key. A comment above them belongs to the user and stays.
    let begins = body[..found.key.start].rfind('\n').map_or(0, |newline| newline + 1);
    let ends = body[found.value.end..].find('\n').map_or(body.len(), |newline| found.value.end + newline + 1);
    splice(body, begins..ends, "")
}

fn take(table: &mut dyn TableLike, path: &[String]) {
    match path {
        [] => {}
        [leaf] => drop(table.remove(leaf)),
        [name, rest @ ..] => {
            if let Some(below) = table.get_mut(name).and_then(Item::as_table_like_mut) {
                take(below, rest);
            }
        }
    }
}

/// The TOML writer uses `\n`; a file with `\r\n` keeps it.
fn with_line_ends_of(before: &str, after: String) -> String {
    match before.contains("\r\n") {
        true => after.replace("\r\n", "\n").replace('\n', "\r\n"),
        false => after,
    }
}

fn values(layer: &Layer) -> BTreeMap<Key, Value> {
    layer.settings.iter().map(|(key, setting)| (key.clone(), setting.value.clone())).collect()
}

fn verify(after: String, file: &str, key: &Key, wanted: &BTreeMap<Key, Value>) -> Result<String, EditError> {
    match parse(&after, file) {
        Ok(layer) if values(&layer) == *wanted => Ok(after),
        _ => Err(EditError::Entangled(key.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn typed(key: &str, value: &str) -> (Key, Value) {
        let key = Key::parse(key).expect("a key");
        let value = Value::from_words(&key, &[value.to_owned()]).expect("a value");
        (key, value)
    }

    #[track_caller]
    fn check_set(before: &str, key: &str, value: &str, after: &str) {
        let (key, value) = typed(key, value);
        assert_eq!(set(before, "c.toml", &key, &value).as_deref(), Ok(after));
    }

    #[track_caller]
    fn check_unset(before: &str, key: &str, after: Option<&str>) {
        let key = Key::parse(key).expect("a key");
        assert_eq!(unset(before, "c.toml", &key).expect("edited").as_deref(), after);
    }

    #[test]
    fn a_value_is_replaced_in_its_place() {
        check_set(
            "# mine\nmax_agents   =   3   # not more\n\n[agents.x]\n",
            "max_agents",
            "5",
            "# mine\nmax_agents   =   5   # not more\n\n[agents.x]\n",
        );
        check_set(
            "agents = { x = { start = ['a', # b\n 'c'] , env = {A='1'} } }\n",
            "agents.x.start",
            "d",
            "agents = { x = { start = [\"d\"] , env = {A='1'} } }\n",
        );
        check_set(
            "\u{feff}max_agents = 3\r\nscrollback = 1\r\n",
            "scrollback",
            "2",
            "\u{feff}max_agents = 3\r\nscrollback = 2\r\n",
        );
        check_set(
            "[agents.fake]\nstart=['sh']",
            "agents.shell.start",
            "zsh",
            "[agents.fake]\nstart=[\"zsh\"]",
        );
    }

    #[test]
    fn a_new_key_finds_its_place() {
        check_set("", "max_agents", "3", "max_agents = 3\n");
        check_set("", "notify.webhook", "http://h", "[notify]\nwebhook = \"http://h\"\n");
        check_set(
            "[agents.command]\nstart = ['a']\n",
            "notify.command",
            "b",
            "[agents.command]\nstart = ['a']\n\n[notify]\ncommand = [\"b\"]\n",
        );
        check_set("", "agents.x.start", "a", "[agents.x]\nstart = [\"a\"]\n");
        check_set("# only words", "max_agents", "3", "# only words\nmax_agents = 3\n");
        check_set("#:schema x\n", "max_agents", "3", "#:schema x\nmax_agents = 3\n");
        check_set(
            "#:schema x\n# of x\n[agents.x]\n",
            "max_agents",
            "3",
            "#:schema x\nmax_agents = 3\n# of x\n[agents.x]\n",
        );
        check_set(
            "max_agents = 3 # three\n\n# of x\n[agents.x]\nstart = ['a']\n\n# of y\n[agents.y]\nacp = ['b']\n",
            "agents.x.stop_grace",
            "2s",
            "max_agents = 3 # three\n\n# of x\n[agents.x]\nstart = ['a']\nstop_grace = \"2s\"\n\n# of y\n[agents.y]\nacp = ['b']\n",
        );
        check_set("scrollback = 1", "max_agents", "3", "scrollback = 1\nmax_agents = 3\n");
        check_set("scrollback = 1\r\n", "max_agents", "3", "scrollback = 1\r\nmax_agents = 3\r\n");
        check_set(
            "[agents.x]\nstart = ['a']\nenv = { A = '1' } # of x\n",
            "agents.x.env.B",
            "2",
            "[agents.x]\nstart = ['a']\nenv = { A = '1' , B = \"2\" } # of x\n",
        );
        check_set(
            "agents.x.start = ['a']\n",
            "agents.x.run",
            "b",
            "agents.x.start = ['a']\nagents.x.run = [\"b\"]\n",
        );
        check_set("[agents.shell]\n", "agents.shell.run", "b", "[agents.shell]\nrun = [\"b\"]\n");
    }

    #[test]
    fn removing_a_key_leaves_the_rest_alone() {
        check_unset("max_agents = 3\n", "scrollback", None);
        check_unset("[notify]\ndesktop = true\n", "notify.desktop", Some("[notify]\n"));
        check_unset(
            "# why\nmax_agents = 3 # three\nscrollback = 1\n",
            "max_agents",
            Some("# why\nscrollback = 1\n"),
        );
        check_unset(
            "[agents.x]\nstart = [\n  'a',\n] # end\nrun = ['b']\n",
            "agents.x.start",
            Some("[agents.x]\nrun = ['b']\n"),
        );
        check_unset(
            "[agents.x]\nenv = { A = '1', B = '2' }\n",
            "agents.x.env.A",
            Some("[agents.x]\nenv = { B = '2' }\n"),
        );
        check_unset(
            "[agents.shell]\nstart = ['a']\n[agents.fake]\nstart = ['b']\n",
            "agents.fake.start",
            Some("[agents.shell]\n[agents.fake]\n"),
        );
    }

    #[test]
    fn a_broken_file_is_not_touched() {
        let (key, value) = typed("max_agents", "3");
        for broken in ["max_agents = ", "scrollback = 'x'", "[agents.x]\nstart = 3"] {
            assert!(matches!(set(broken, "c.toml", &key, &value), Err(EditError::Broken(_))), "{broken}");
            assert!(matches!(unset(broken, "c.toml", &key), Err(EditError::Broken(_))), "{broken}");
        }
    }

    const LINES: [&str; 12] = [
        "# a comment",
        "max_agents = 1 # one",
        "scrollback = 2",
        "",
        "unknown = { a = 1 }",
        "[agents.x]",
        "start = ['a']",
        "env = { A = '1' }",
        "[agents.shell]",
        "[agents.x.env]",
        "agents.y.run = ['r']",
        "[other]",
    ];

    proptest! {
        /// `set` itself checks that every other key stays. This checks that no comment of the user is lost.
        #[test]
        fn other_lines_survive(
            picked in proptest::collection::vec(0usize..LINES.len(), 0..8),
            key in prop_oneof![
                Just("max_agents=7"), Just("agents.x.start=z"), Just("agents.x.env.A=z"),
                Just("agents.fake.start=z"), Just("agents.y.run=z"), Just("agents.new.acp=z"),
            ],
            crlf in any::<bool>(),
        ) {
            let end = if crlf { "\r\n" } else { "\n" };
            let text: String = picked.iter().map(|line| format!("{}{end}", LINES[*line])).collect();
            if parse(&text, "c.toml").is_err() {
                return Ok(());
            }
            let (key, value) = key.split_once('=').map(|(key, value)| typed(key, value)).expect("two");
            let after = set(&text, "c.toml", &key, &value).expect("set");
            let comments = |text: &str| text.matches('#').count();
            prop_assert_eq!(comments(&after), comments(&text));
            prop_assert!(!crlf || text.is_empty() || !after.replace("\r\n", "").contains('\n'));
            let gone = unset(&after, "c.toml", &key).expect("unset").expect("it was there");
            prop_assert!(unset(&gone, "c.toml", &key).expect("unset").is_none());
        }
    }
}

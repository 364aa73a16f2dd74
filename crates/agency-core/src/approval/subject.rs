//! The part of a tool call that a pattern can match: a command, files, an address.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::glob;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Command(String),
    /// Absolute paths without `..`, and the workspace.
    Files(Vec<PathBuf>, PathBuf),
    Address(String),
    /// Every text in the arguments of a tool that is of no kind.
    Arguments(Vec<String>),
    /// The request does not say what the tool would do.
    Unknown,
}

pub(super) const EXECUTE: &str = "execute";

/// Names of a tool if the agent names neither it nor its kind.
pub(super) const UNNAMED: [&str; 2] = ["tool", "other"];

/// Kinds of tools, and the names by which agents know them.
const KINDS: [(&str, &[&str]); 4] = [
    (EXECUTE, &["bash", "shell", "local_shell", "run_shell_command", "run_terminal_cmd", "exec_command"]),
    ("edit", &["write", "multiedit", "notebookedit", "write_file", "replace", "apply_patch"]),
    ("read", &["read_file"]),
    ("fetch", &["webfetch", "web_fetch"]),
];

/// Kinds that are about files and have no other name.
const MORE_FILES: [&str; 2] = ["delete", "move"];

/// The kind of a tool, by its name in lower case.
pub(super) fn kind_of(tool: &str) -> Option<&'static str> {
    let known = KINDS.iter().find(|(kind, tools)| *kind == tool || tools.contains(&tool));
    let more = || MORE_FILES.into_iter().find(|kind| *kind == tool);
    known.map(|(kind, _)| *kind).or_else(more)
}

/// The two places of a tool's arguments: some agents send them directly, others inside `rawInput`.
fn arguments(input: &Value) -> [&Value; 2] {
    [input, &input["rawInput"]]
}

impl Subject {
    pub(super) fn of(tool: &str, input: &Value, workspace: &Path) -> Subject {
        let found = match kind_of(&tool.to_lowercase()) {
            Some(EXECUTE) => arguments(input).into_iter().find_map(command).map(Subject::Command),
            Some("fetch") => text(input, &["url"]).map(Subject::Address),
            Some(_) => files(input, workspace).map(|files| Subject::Files(files, workspace.to_path_buf())),
            None => Some(texts(input)).filter(|texts| !texts.is_empty()).map(Subject::Arguments),
        };
        found.unwrap_or(Subject::Unknown)
    }

    /// Whether the pattern covers everything that the tool would do.
    pub(super) fn is_all(&self, pattern: &str) -> bool {
        match self {
            Subject::Command(command) => glob::fits(pattern, command, |c| !is_operator(c)),
            Subject::Files(files, workspace) => files.iter().all(|file| is_file(pattern, file, workspace)),
            Subject::Address(address) => is_address(pattern, address),
            Subject::Arguments(_) | Subject::Unknown => false,
        }
    }

    /// Whether the pattern fits anything that the tool would do. It also fits if the
    /// request does not say that: an agent must not get past a rule by saying less.
    pub(super) fn has_any(&self, pattern: &str) -> bool {
        let fits = |text: &str| glob::fits(pattern, text, |_| true);
        let fits_command =
            |command: &String| fits(command) || command.split(is_operator).any(|part| fits(part.trim()));
        match self {
            Subject::Command(command) => fits_command(command),
            Subject::Files(files, workspace) => {
                let anywhere = |file: &PathBuf| fits(&file.to_string_lossy());
                files.iter().any(|file| is_file(pattern, file, workspace) || anywhere(file))
            }
            Subject::Address(address) => fits(address) || is_address(pattern, address),
            Subject::Arguments(texts) => texts.iter().any(fits_command),
            Subject::Unknown => true,
        }
    }
}

/// Characters that turn one command into several or into another one. Quotes make no difference: if we read them in another
/// way than the shell, an agent could fool us.
fn is_operator(c: char) -> bool {
    matches!(c, ';' | '&' | '|' | '<' | '>' | '$' | '`' | '(' | ')' | '{' | '}' | '!')
        || c.is_control() && c != '\t'
}

/// The command, which agents send as a line or as a list of words.
fn command(arguments: &Value) -> Option<String> {
    let command = arguments.get("command").or_else(|| arguments.get("cmd"))?;
    if let Some(line) = command.as_str() {
        return Some(line.trim().to_owned());
    }
    let words: Option<Vec<&str>> = command.as_array()?.iter().map(Value::as_str).collect();
    match words?.as_slice() {
        [shell, "-c" | "-lc", line] if is_shell(shell) => Some(line.trim().to_owned()),
        words if words.iter().any(|word| word.is_empty() || word.contains(char::is_whitespace)) => None,
        words => Some(words.join(" ")),
    }
}

/// The command as people read it, also if no rule can match it.
pub(super) fn shown_command(input: &Value) -> Option<String> {
    let of_list = |arguments: &Value| {
        let words = arguments.get("command").or_else(|| arguments.get("cmd"))?.as_array()?;
        Some(
            words
                .iter()
                .map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned))
                .collect::<Vec<_>>()
                .join(" "),
        )
    };
    let found =
        arguments(input).into_iter().find_map(|arguments| command(arguments).or_else(|| of_list(arguments)));
    found.filter(|command| !command.is_empty())
}

fn is_shell(program: &str) -> bool {
    let name = Path::new(program).file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| matches!(name, "sh" | "bash" | "zsh" | "dash"))
}

pub(super) fn text(input: &Value, names: &[&str]) -> Option<String> {
    let found = arguments(input)
        .into_iter()
        .find_map(|arguments| names.iter().find_map(|name| arguments[*name].as_str()));
    found.map(str::to_owned)
}

/// Every text in the arguments, at any depth.
fn texts(input: &Value) -> Vec<String> {
    match input {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// The files of the call, as the agent names them.
pub(super) fn paths(input: &Value) -> Vec<String> {
    let one = text(input, &["file_path", "notebook_path", "path", "abs_path"]);
    let changed = arguments(input).into_iter().filter_map(|arguments| arguments["changes"].as_object());
    let changed = changed.flat_map(|changes| changes.keys().cloned());
    let places = input["locations"].as_array().into_iter().flatten();
    let places = places.filter_map(|place| place["path"].as_str()).map(str::to_owned);
    let mut all: Vec<String> = Vec::new();
    for path in one.into_iter().chain(changed).chain(places) {
        if !all.contains(&path) {
            all.push(path);
        }
    }
    all
}

/// All files of the call. `None` if there is none or one has no absolute path: it could be any file, so no rule may allow
/// it.
fn files(input: &Value, workspace: &Path) -> Option<Vec<PathBuf>> {
    let all: Option<Vec<PathBuf>> = paths(input).iter().map(|path| whole(path, workspace)).collect();
    all.filter(|files| !files.is_empty())
}

/// The path from the root, without `.` and `..`. Does not follow symbolic links, because this crate reads no files.
fn whole(path: &str, workspace: &Path) -> Option<PathBuf> {
    let mut whole = PathBuf::new();
    for part in workspace.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(whole.pop()),
            part => whole.push(part),
        }
    }
    whole.is_absolute().then_some(whole)
}

/// Whether a pattern fits a file. A relative pattern starts in the workspace.
fn is_file(pattern: &str, file: &Path, workspace: &Path) -> bool {
    let path = if pattern.starts_with('/') { Some(file) } else { file.strip_prefix(workspace).ok() };
    let path = path.and_then(Path::to_str);
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    path.is_some_and(|path| glob::fits(pattern, path, |_| true))
}

/// Splits an address after the host and its port.
fn split(address: &str) -> Option<(String, &str)> {
    let (scheme, rest) = address.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    Some((format!("{}://{}", scheme.to_lowercase(), rest[..end].to_lowercase()), &rest[end..]))
}

/// Whether a pattern such as `https://docs.rs/*`, or a host alone, fits an address. A wildcard in the host does not match
/// beyond the host; otherwise an agent could put another host before it.
fn is_address(pattern: &str, address: &str) -> bool {
    let is_plain =
        |host: &str| !host.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '@' | '\\'));
    let Some((place, path)) = split(address).filter(|(place, _)| is_plain(place)) else { return false };
    match split(pattern) {
        Some((host, "")) => glob::fits(&host, &place, |_| true) && matches!(path, "" | "/"),
        Some((host, rest)) => glob::fits(&host, &place, |_| true) && glob::fits(rest, path, |_| true),
        None => {
            let host = place.split_once("://").map_or("", |(_, host)| host);
            glob::fits(&pattern.to_lowercase(), host, |_| true)
        }
    }
}

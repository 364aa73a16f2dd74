//! The configuration files as users see and change them: every key with its value and origin, and edits that leave the
//! rest of a file as it is.
//!
//! Not here: which settings are in force (see `settings`).

use std::path::{Path, PathBuf};

use agency_api::config::{Entry, Origin as ShownOrigin};
use agency_api::paths::create_private;
use agency_api::{Failure, FailureCode};
use agency_core::config::{self, Config, EditError, Key, Layer, Origin, Value};

use crate::bounded_read::Links;
use crate::{atomic, settings};

/// Parses the name of a key.
pub fn parse_key(key: &str) -> Result<Key, Failure> {
    Key::parse(key).map_err(|unknown| {
        Failure::new(unknown.to_string()).code(FailureCode::InvalidConfig).hint(unknown.hint())
    })
}

/// The text of the file with a new value of one key, or without it. `None`: the file does not set the key.
pub fn edit(text: &str, path: &Path, key: &Key, value: Option<&Value>) -> Result<Option<String>, Failure> {
    let name = path.display().to_string();
    let after = match value {
        Some(value) => config::set(text, &name, key, value).map(Some),
        None => config::unset(text, &name, key),
    };
    after.map_err(|err| edit_failure(path, err))
}

fn edit_failure(path: &Path, error: EditError) -> Failure {
    match error {
        EditError::Broken(error) => settings::config_failure(&error),
        EditError::Entangled(_) => Failure::new(format!("cannot change {}", path.display()))
            .code(FailureCode::InvalidConfig)
            .because(error.to_string())
            .hint("change it by hand: agency config edit"),
    }
}

/// Users keep their files behind symbolic links: replaces the file that a link points to, not the link.
pub fn write(path: &Path, links: Links, content: &[u8]) -> std::io::Result<()> {
    let (path, mode) = match links {
        Links::Followed => (path.canonicalize().unwrap_or_else(|_| path.to_path_buf()), 0o600),
        Links::Refused => (path.to_path_buf(), 0o644),
    };
    if path.exists() {
        return atomic::write(&path, content);
    }
    match (path.parent(), links) {
        (Some(parent), Links::Followed) => create_private(parent)?,
        (Some(parent), Links::Refused) => std::fs::create_dir_all(parent)?,
        (None, _) => {}
    }
    atomic::write_with_mode(&path, content, mode)
}

/// Every key, with its value and where the value comes from. `user` is the path of the user's own file.
pub fn entries(config: &Config, user: Option<&Path>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = config
        .entries()
        .into_iter()
        .map(|(key, value)| Entry {
            value: value.to_json(),
            toml: value.to_string(),
            ..unset_entry(&key, convert_origin(config.origin(&key), user))
        })
        .collect();
    // Keys without a value are listed, too.
    for (place, key) in Key::all_fixed().enumerate() {
        if entries.get(place).is_none_or(|entry| entry.key != key.to_string()) {
            entries.insert(place, unset_entry(&key, ShownOrigin::Default));
        }
    }
    entries
}

fn unset_entry(key: &Key, origin: ShownOrigin) -> Entry {
    Entry {
        key: key.to_string(),
        value: serde_json::Value::Null,
        toml: String::new(),
        origin,
        applies: key.info().applies.when().to_owned(),
    }
}

fn convert_origin(origin: Origin, user: Option<&Path>) -> ShownOrigin {
    match origin {
        Origin::BuiltIn => ShownOrigin::Default,
        Origin::File { file, line } => {
            let (users, line) = (user.is_some_and(|user| user.display().to_string() == file), line as u64);
            let file = PathBuf::from(file).into();
            if users { ShownOrigin::User { file, line } } else { ShownOrigin::Project { file, line } }
        }
        Origin::Variable(variable) => ShownOrigin::Environment { variable },
        Origin::Option => ShownOrigin::Option,
    }
}

/// Notes that say when the keys that differ take effect.
pub fn effects_of(before: Option<&Layer>, after: &Layer) -> Vec<String> {
    let value = |layer: Option<&Layer>, key: &Key| Some(layer?.settings.get(key)?.value.clone());
    let keys = before.into_iter().chain([after]).flat_map(|layer| layer.settings.keys());
    let mut differ: Vec<&Key> = keys.filter(|key| value(before, key) != value(Some(after), key)).collect();
    differ.sort();
    differ.dedup();
    differ.into_iter().map(|key| format!("{key} takes effect {}", key.info().applies.when())).collect()
}

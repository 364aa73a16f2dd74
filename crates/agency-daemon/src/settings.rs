//! The configuration in force for a project: the user's file, and the project's as far as it is trusted.

use std::io;
use std::path::{Path, PathBuf};

use agency_api::Failure;
use agency_core::config::{self, Config, ConfigError, Key, Layer, Value};
use agency_core::ids::ProjectId;

use crate::trust::{TrustBook, digest};

pub struct Settings {
    pub config: Config,
    /// Worth saying to whoever asked: unknown keys, commands that wait for consent.
    pub warnings: Vec<String>,
    /// Commands of the project's own file wait for consent.
    pub untrusted: bool,
}

impl Settings {
    /// What cannot be found may stand in the part of the project's file that is not used yet.
    pub fn about_trust(&self, failure: Failure) -> Failure {
        match self.untrusted {
            true => failure
                .because("the project's own configuration is not trusted yet, so its agents are left out")
                .hint("`agency trust` shows and allows what this repository wants to run"),
            false => failure,
        }
    }
}

/// The project's own file, as far as consent goes.
pub struct ProjectFile {
    pub path: PathBuf,
    pub content: Option<Vec<u8>>,
    pub digest: Option<String>,
    /// What it would run, one a line.
    pub commands: Vec<String>,
}

pub fn load(root: Option<(&ProjectId, &Path)>, trust: &TrustBook) -> Result<Settings, Failure> {
    let mut layers = Vec::new();
    let mut warnings = Vec::new();
    if let Some(path) = agency_api::paths::global_config() {
        layers.extend(read_layer(&path)?);
    }
    if let Some((id, root)) = root {
        layers.extend(project_layer(id, root, trust, &mut warnings)?);
    }
    let untrusted = !warnings.is_empty();
    for unknown in layers.iter().flat_map(|layer: &Layer| &layer.unknown_keys) {
        let hint = unknown.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        warnings.push(format!("{unknown}{hint}"));
    }
    Ok(Settings { config: Config::merged(&layers), warnings, untrusted })
}

fn project_layer(
    id: &ProjectId,
    root: &Path,
    trust: &TrustBook,
    warnings: &mut Vec<String>,
) -> Result<Option<Layer>, Failure> {
    let file = project_file(root)?;
    let Some(layer) = read_layer(&file.path)? else { return Ok(None) };
    let agreed = file.digest.is_some_and(|digest| trust.trusts(id, &digest));
    if agreed || !layer.runs_commands() {
        return Ok(Some(layer));
    }
    let (harmless, waiting) = layer.without_commands();
    let keys: Vec<String> = waiting.iter().map(Key::to_string).collect();
    warnings.push(format!(
        "{} is not trusted, so {} {} left out; `agency trust` shows and allows it",
        file.path.display(),
        keys.join(", "),
        if keys.len() == 1 { "is" } else { "are" },
    ));
    Ok(Some(harmless))
}

pub fn project_file(root: &Path) -> Result<ProjectFile, Failure> {
    let path = root.join(".agency/config.toml");
    let content = read(&path)?;
    let commands = match read_layer(&path)? {
        Some(layer) => {
            layer.settings.iter().filter_map(|(key, setting)| described(key, &setting.value)).collect()
        }
        None => Vec::new(),
    };
    let digest = content.as_deref().map(digest);
    Ok(ProjectFile { path, content, digest, commands })
}

fn described(key: &Key, value: &Value) -> Option<String> {
    if !key.runs_commands() {
        return None;
    }
    Some(match value {
        Value::Words(words) => format!("{key} = {words:?}"),
        other => format!("{key} = {other:?}"),
    })
}

fn read_layer(path: &Path) -> Result<Option<Layer>, Failure> {
    let Some(bytes) = read(path)? else { return Ok(None) };
    let text = String::from_utf8(bytes).map_err(|err| cannot_read(path).caused_by(&err))?;
    config::parse(&text, &path.display().to_string()).map(Some).map_err(|err: ConfigError| {
        Failure::new("the configuration cannot be used").because(err.to_string()).hint(err.hint())
    })
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(err) => Err(cannot_read(path).caused_by(&err)),
    }
}

fn cannot_read(path: &Path) -> Failure {
    Failure::new(format!("cannot read {}", path.display()))
}

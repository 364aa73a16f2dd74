//! The configuration in force for a project: the user's file, and the project's as far as it is trusted.

use std::io;
use std::path::{Path, PathBuf};

use agency_api::Failure;
use agency_core::config::{self, Config, ConfigError, Key, Layer, Value};
use agency_core::ids::ProjectId;

use crate::read_small::{Links, read_small};
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

/// The project's own file, as far as consent goes. Digest and layer are of that very content.
pub struct ProjectFile {
    pub path: PathBuf,
    pub content: Option<Vec<u8>>,
    pub digest: Option<String>,
    pub layer: Option<Layer>,
}

impl ProjectFile {
    /// What it would run, one a line.
    pub fn commands(&self) -> Vec<String> {
        let settings = self.layer.iter().flat_map(|layer| &layer.settings);
        settings.filter_map(|(key, setting)| described(key, &setting.value)).collect()
    }
}

pub fn load(root: Option<(&ProjectId, &Path)>, trust: &TrustBook) -> Result<Settings, Failure> {
    let mut layers = Vec::new();
    let mut warnings = Vec::new();
    if let Some(path) = agency_api::paths::global_config() {
        let content = read(&path, Links::Followed)?;
        layers.extend(content.map(|content| parse(&path, &content)).transpose()?);
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
    let Some(layer) = file.layer else { return Ok(None) };
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
    let content = read(&path, Links::Refused)?;
    let layer = content.as_ref().map(|content| parse(&path, content)).transpose()?;
    let digest = content.as_deref().map(digest);
    Ok(ProjectFile { path, content, digest, layer })
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

fn parse(path: &Path, content: &[u8]) -> Result<Layer, Failure> {
    let text = std::str::from_utf8(content).map_err(|err| cannot_read(path).caused_by(&err))?;
    config::parse(text, &path.display().to_string()).map_err(|err: ConfigError| {
        Failure::new("the configuration cannot be used").because(err.to_string()).hint(err.hint())
    })
}

fn read(path: &Path, links: Links) -> Result<Option<Vec<u8>>, Failure> {
    match read_small(path, links) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(err) => Err(cannot_read(path).caused_by(&err)),
    }
}

fn cannot_read(path: &Path) -> Failure {
    Failure::new(format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn project(config: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(".agency")).unwrap();
        std::fs::write(dir.path().join(".agency/config.toml"), config).unwrap();
        dir
    }

    #[test]
    fn what_is_agreed_to_and_what_is_used_are_one_content() {
        let dir = project("max_agents = 2\n[agents.mine]\nstart = [\"tool\", \"--fast\"]\n");
        let file = project_file(dir.path()).unwrap();
        std::fs::write(&file.path, "[agents.mine]\nstart = [\"other\"]\n").unwrap();
        assert_eq!(file.digest, file.content.as_deref().map(digest));
        assert_eq!(file.commands(), [r#"agents.mine.start = ["tool", "--fast"]"#]);
        assert_eq!(file.layer.map(|layer| layer.settings.len()), Some(2));
    }

    #[test]
    fn a_project_without_a_file_has_nothing_to_agree_to() {
        let file = project_file(tempfile::tempdir().unwrap().path()).unwrap();
        assert!(file.content.is_none() && file.digest.is_none() && file.layer.is_none());
        assert!(file.commands().is_empty());
    }

    #[test]
    fn a_projects_file_that_is_a_link_is_refused() {
        let dir = project("");
        let path = dir.path().join(".agency/config.toml");
        std::fs::remove_file(&path).unwrap();
        symlink("/dev/zero", &path).unwrap();
        let failure = project_file(dir.path()).err().expect("refused");
        assert_eq!(failure.causes, ["it is a symbolic link, which is not followed"]);
    }
}

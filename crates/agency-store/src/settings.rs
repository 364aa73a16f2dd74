//! The configuration in force: the user's file, the trusted part of the project's file, and the options of one call.
//!
//! A file is read again only when it has changed, so every view can ask for the settings.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use agency_api::config::Overrides;
use agency_api::{Failure, FailureCode};
use agency_core::config::{self, Config, ConfigError, Key, Layer, OverrideError, SplitLayer};
use agency_core::ids::ProjectId;

use crate::bounded_read::{Links, read_bounded};
use crate::trust::{TrustBook, digest};

const TRUST_HINT: &str = "`agency trust` shows and allows what this repository wants to run";

pub struct Settings {
    pub config: Config,
    /// Warnings for the caller: unknown keys, commands that wait for consent.
    pub warnings: Vec<String>,
    /// Keys of the project's file that wait for consent.
    pub waiting: Vec<Key>,
}

impl Settings {
    /// Adds a hint to a failure: the missing agent may be in the part of the project's file that is not trusted yet.
    pub fn add_trust_hint(&self, failure: Failure) -> Failure {
        match self.waiting.is_empty() {
            true => failure,
            false => failure
                .because("the project's configuration is not trusted; its agents are ignored")
                .hint(TRUST_HINT),
        }
    }

    /// Refuses if the project's choice of agent is not trusted yet: neither the user nor the project chose another one.
    pub fn check_agent_choice(&self) -> Result<(), Failure> {
        if !self.waiting.contains(&Key::DEFAULT_AGENT) {
            return Ok(());
        }
        Err(Failure::new("you have not trusted this project's choice of agent")
            .code(FailureCode::NotTrusted)
            .because("the project's configuration is not trusted; its default_agent is ignored")
            .hint(format!("{TRUST_HINT}; --agent NAME chooses one of yours")))
    }
}

/// One `config.toml`. Digest and layer belong to exactly this content.
pub struct ConfigFile {
    pub path: PathBuf,
    pub content: Option<Vec<u8>>,
    pub digest: Option<String>,
    pub layer: Option<Layer>,
}

/// The configuration files, as last read.
#[derive(Default)]
pub struct SettingsFiles {
    read: RefCell<BTreeMap<PathBuf, ReadFile>>,
}

struct ReadFile {
    stamp: Stamp,
    file: Result<Arc<ConfigFile>, Failure>,
}

/// Metadata that changes when the file does.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The clocks of file systems are coarse: a file that is written twice within this time may keep its stamp.
const RELIABLE_AFTER: Duration = Duration::from_secs(2);

impl Stamp {
    fn of(meta: &Metadata) -> Stamp {
        Stamp {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// Whether a later change must change the stamp.
    fn is_reliable(&self, now: SystemTime) -> bool {
        let last = self.modified.max(self.changed).0.try_into().unwrap_or(0);
        now.duration_since(SystemTime::UNIX_EPOCH + Duration::from_secs(last))
            .is_ok_and(|age| age > RELIABLE_AFTER)
    }
}

impl SettingsFiles {
    /// Returns the settings for a project, with the options of the call on top.
    pub fn load(
        &self,
        project: Option<(&ProjectId, &Path)>,
        trust: &TrustBook,
        overrides: &Overrides,
    ) -> Result<Settings, Failure> {
        let user = self.user()?;

        let mut warnings = Vec::new();
        let mut layers: Vec<Layer> = user.iter().filter_map(|file| file.layer.clone()).collect();
        let mut waiting = Vec::new();
        if let Some((id, root)) = project {
            let file = self.project(root)?;
            let (used, waits) = project_layer(id, &file, layers.first(), trust, &mut warnings);
            layers.extend(used);
            waiting = waits;
        }
        for unknown in layers.iter().flat_map(|layer: &Layer| &layer.unknown_keys) {
            let hint = unknown.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
            warnings.push(format!("{unknown}{hint}"));
        }
        layers.extend(override_layers(overrides, &mut warnings)?);
        Ok(Settings { config: Config::merged(&layers), warnings, waiting })
    }

    /// Returns the settings without any file: defaults and the options of the call.
    pub fn without_files(overrides: &Overrides) -> Result<Settings, Failure> {
        let mut warnings = Vec::new();
        let layers = override_layers(overrides, &mut warnings)?;
        Ok(Settings { config: Config::merged(&layers), warnings, waiting: Vec::new() })
    }

    /// Returns the user's own file; none if there is no home directory.
    pub fn user(&self) -> Result<Option<Arc<ConfigFile>>, Failure> {
        let path = agency_api::paths::global_config();
        path.map(|path| self.file(&path, Links::Followed)).transpose()
    }

    pub fn project(&self, root: &Path) -> Result<Arc<ConfigFile>, Failure> {
        self.file(&project_path(root), Links::Refused)
    }

    fn file(&self, path: &Path, links: Links) -> Result<Arc<ConfigFile>, Failure> {
        let meta = match links {
            Links::Followed => path.metadata(),
            Links::Refused => path.symlink_metadata(),
        };
        // Take the stamp before reading, so that the content is never older than its stamp.
        let stamp = meta.ok().map(|meta| Stamp::of(&meta));
        let mut read = self.read.borrow_mut();
        match read.get(path) {
            Some(known) if Some(&known.stamp) == stamp.as_ref() => return known.file.clone(),
            _ => drop(read.remove(path)),
        }
        let file = read_file(path, links).map(Arc::new);
        if let Some(stamp) = stamp.filter(|stamp| stamp.is_reliable(SystemTime::now())) {
            read.insert(path.to_path_buf(), ReadFile { stamp, file: file.clone() });
        }
        file
    }
}

pub fn project_path(root: &Path) -> PathBuf {
    root.join(".agency/config.toml")
}

/// Returns the part of a project's file that is used, and the keys that wait for consent.
fn project_layer(
    id: &ProjectId,
    file: &ConfigFile,
    user: Option<&Layer>,
    trust: &TrustBook,
    warnings: &mut Vec<String>,
) -> (Option<Layer>, Vec<Key>) {
    let Some(layer) = &file.layer else { return (None, Vec::new()) };
    let SplitLayer { mut free, waiting, ignored } = layer.clone().split_by_trust(user);
    let path = file.path.display();
    if !ignored.is_empty() {
        let keys = join_keys(ignored.iter());
        warnings.push(format!("{path}: {keys} is ignored here, because only your own file can set it"));
    }
    let agreed = file.digest.as_ref().is_some_and(|digest| trust.trusts(id, digest));
    if agreed || waiting.is_empty() {
        free.settings.extend(waiting);
        return (Some(free), Vec::new());
    }
    warnings.push(format!(
        "{path} is not trusted; ignored: {}; `agency trust` shows and allows it",
        join_keys(waiting.keys()),
    ));
    (Some(free), waiting.into_keys().collect())
}

fn join_keys<'a>(keys: impl Iterator<Item = &'a Key>) -> String {
    keys.map(Key::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the layers of one call: environment variables and options.
fn override_layers(overrides: &Overrides, warnings: &mut Vec<String>) -> Result<[Layer; 2], Failure> {
    let variables = overrides.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let (variables, mistyped) = config::from_variables(variables).map_err(override_failure)?;
    warnings.extend(mistyped);
    let options = config::from_options(overrides.options.iter().map(String::as_str));
    Ok([variables, options.map_err(override_failure)?])
}

fn override_failure(error: OverrideError) -> Failure {
    let failure = Failure::new("the configuration cannot be used")
        .code(FailureCode::InvalidConfig)
        .because(error.to_string());
    error.problem.hint().into_iter().fold(failure, Failure::hint)
}

fn read_file(path: &Path, links: Links) -> Result<ConfigFile, Failure> {
    let content = read(path, links)?;
    let layer = content.as_ref().map(|content| parse(path, content)).transpose()?;
    let digest = content.as_deref().map(digest);
    Ok(ConfigFile { path: path.to_path_buf(), content, digest, layer })
}

pub fn parse(path: &Path, content: &[u8]) -> Result<Layer, Failure> {
    let text = std::str::from_utf8(content)
        .map_err(|err| cannot_read(path).code(FailureCode::InvalidConfig).caused_by(&err))?;
    config::parse(text, &path.display().to_string()).map_err(|err| config_failure(&err))
}

pub fn config_failure(error: &ConfigError) -> Failure {
    Failure::new("the configuration cannot be used")
        .code(FailureCode::InvalidConfig)
        .because(format!("{error}\n{}", error.excerpt))
        .hint(error.hint())
}

pub fn read(path: &Path, links: Links) -> Result<Option<Vec<u8>>, Failure> {
    match read_bounded(path, links) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(err) => Err(cannot_read(path).caused_by(&err)),
    }
}

fn cannot_read(path: &Path) -> Failure {
    Failure::new(format!("cannot read {}", path.display())).code(FailureCode::IoError)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn project(config: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(".agency")).unwrap();
        std::fs::write(project_path(dir.path()), config).unwrap();
        dir
    }

    /// Sets the modification time to a minute ago.
    fn age(path: &Path) {
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    }

    fn max_agents(file: &ConfigFile) -> Option<String> {
        let layer = file.layer.as_ref()?;
        Some(layer.settings.get(&Key::MAX_AGENTS)?.value.to_string())
    }

    #[test]
    fn digest_and_settings_come_from_the_same_content() {
        let dir = project("max_agents = 2\n[agents.mine]\nstart = [\"tool\", \"--fast\"]\n");
        let file = SettingsFiles::default().project(dir.path()).unwrap();
        std::fs::write(&file.path, "[agents.mine]\nstart = [\"other\"]\n").unwrap();
        assert_eq!(file.digest, file.content.as_deref().map(digest));
        assert_eq!(max_agents(&file).as_deref(), Some("2"));
    }

    #[test]
    fn a_file_is_read_again_when_it_has_changed_and_only_then() {
        let dir = project("max_agents = 2\n");
        let (files, path) = (SettingsFiles::default(), project_path(dir.path()));
        let remember = |files: &SettingsFiles| {
            // Insert it directly: a file that was just written has no reliable stamp.
            let stamp = Stamp::of(&path.symlink_metadata().unwrap());
            let file = read_file(&path, Links::Refused).map(Arc::new);
            files.read.borrow_mut().insert(path.clone(), ReadFile { stamp, file });
        };
        remember(&files);
        let first = files.project(dir.path()).unwrap();
        assert!(Arc::ptr_eq(&first, &files.project(dir.path()).unwrap()), "it was not read again");
        // Same length and same modification time: only inode and change time differ.
        let modified = path.metadata().unwrap().modified().unwrap();
        let other = dir.path().join("other");
        std::fs::write(&other, "max_agents = 3\n").unwrap();
        std::fs::File::options().write(true).open(&other).unwrap().set_modified(modified).unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(max_agents(&files.project(dir.path()).unwrap()).as_deref(), Some("3"));
        remember(&files);
        std::fs::remove_file(&path).unwrap();
        assert!(files.project(dir.path()).unwrap().layer.is_none());
        std::fs::write(&path, "max_agents = x\n").unwrap();
        let failure = files.project(dir.path()).err().expect("no TOML");
        assert!(
            failure.causes[0].contains("config.toml:1:14: ") && failure.causes[0].ends_with('^'),
            "{failure}"
        );
    }

    #[test]
    fn the_stamp_of_a_file_that_was_just_written_is_not_reliable() {
        let dir = project("");
        let path = project_path(dir.path());
        let stamp = Stamp::of(&path.metadata().unwrap());
        let now = SystemTime::now();
        assert!(!stamp.is_reliable(now));
        assert!(stamp.is_reliable(now + Duration::from_secs(10)));
        assert!(!stamp.is_reliable(now - Duration::from_secs(3600)), "the clock went back");
        age(&path);
        assert!(
            !Stamp::of(&path.metadata().unwrap()).is_reliable(now),
            "a program can set an old modification time"
        );
    }

    #[test]
    fn a_project_without_a_file_has_nothing_to_agree_to() {
        let file = SettingsFiles::default().project(tempfile::tempdir().unwrap().path()).unwrap();
        assert!(file.content.is_none() && file.digest.is_none() && file.layer.is_none());
    }

    #[test]
    fn a_projects_file_that_is_a_link_is_refused() {
        let dir = project("");
        let path = project_path(dir.path());
        std::fs::remove_file(&path).unwrap();
        symlink("/dev/zero", &path).unwrap();
        let failure = SettingsFiles::default().project(dir.path()).err().expect("refused");
        assert_eq!(failure.causes, ["it is a symbolic link, which is not followed"]);
    }
}

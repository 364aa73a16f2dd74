//! Shows the configuration to the user, and changes its files.

use std::path::{Path, PathBuf};

use agency_api::config::{
    Changed, FileContent, FileParams, FileState, Files, Scope, SetParams, ShowParams, Shown, WriteParams,
};
use agency_api::paths::project_id;
use agency_api::{Bytes, Failure, FailureCode, method};
use agency_core::config::{Config, Key, Value};
use agency_core::ids::ProjectId;
use agency_server::Argument;
use agency_store::bounded_read::Links;
use agency_store::settings::{self, Settings};
use agency_store::{config_files, trust};
use agency_terminal::keys::DetachKeys;

use super::World;
use super::argument::open_project;
use super::consent::cannot_remember;
use super::loop_event::OpenedProject;
use super::router::Router;

pub(super) fn register(router: &mut Router) {
    router.on(method::ConfigShow, World::config_show);
    router.on(method::ConfigSet, World::config_set);
    router.on(method::ConfigRead, World::config_read);
    router.on(method::ConfigWrite, World::config_write);
}

/// Parameters of a method about configuration files.
trait ConfigParams {
    fn cwd(&self) -> &Bytes;
    fn scope(&self) -> Scope;
}

impl ConfigParams for ShowParams {
    fn cwd(&self) -> &Bytes {
        &self.cwd
    }

    /// Outside a project the user's own configuration is shown.
    fn scope(&self) -> Scope {
        Scope::User
    }
}

macro_rules! config_params {
    ($($params:ty),*) => {
        $(impl ConfigParams for $params {
            fn cwd(&self) -> &Bytes {
                &self.cwd
            }

            fn scope(&self) -> Scope {
                self.scope
            }
        })*
    };
}

config_params!(SetParams, FileParams, WriteParams);

/// The project around the caller. `None` outside a project, if the user's own configuration is meant.
impl<P: ConfigParams + Send + 'static> Argument<World, P> for (Option<OpenedProject>, P) {
    type Prepared = (Option<OpenedProject>, P);

    async fn prepare(params: P) -> Result<(Option<OpenedProject>, P), Failure> {
        match (open_project(params.cwd().clone()).await, params.scope()) {
            (Ok(project), _) => Ok((Some(project), params)),
            (Err(_), Scope::User) => Ok((None, params)),
            (Err(failure), Scope::Project) => Err(failure),
        }
    }

    fn resolve(_world: &mut World, prepared: Self::Prepared) -> Result<Self::Prepared, Failure> {
        Ok(prepared)
    }
}

/// A file that is about to be changed.
struct Target {
    path: PathBuf,
    links: Links,
    before: Option<Vec<u8>>,
    /// The project whose consent the file needs.
    project: Option<ProjectId>,
}

impl World {
    fn config_show(
        &mut self,
        (project, params): (Option<OpenedProject>, ShowParams),
    ) -> Result<Shown, Failure> {
        let key = params.key.as_deref().map(config_files::parse_key).transpose()?;
        let project = project
            .as_ref()
            .map(|opened| opened.project.root())
            .map(|root| (ProjectId(project_id(root)), root));
        let place = project.as_ref().map(|(id, root)| (id, *root));
        let Settings { config, mut warnings, .. } =
            self.configuration.files.load(place, &self.configuration.trust, &params.overrides)?;
        warnings.extend(config_warnings(&config));
        let user = self.configuration.files.user()?;
        let user_path = user.as_ref().map(|file| file.path.clone());
        let project_file = place.map(|(_, root)| self.configuration.files.project(root)).transpose()?;
        let state = |path: &Path, content: &Option<Vec<u8>>| FileState {
            path: path.into(),
            exists: content.is_some(),
        };
        let files = Files {
            user: user.map(|file| state(&file.path, &file.content)),
            project: project_file.map(|file| state(&file.path, &file.content)),
        };
        let mut settings = config_files::entries(&config, user_path.as_deref());
        settings.retain(|entry| key.as_ref().is_none_or(|key| entry.key == key.to_string()));
        Ok(Shown { files, settings, warnings })
    }

    fn config_read(
        &mut self,
        (project, params): (Option<OpenedProject>, FileParams),
    ) -> Result<FileContent, Failure> {
        let target = self.target(project, params.scope)?;
        Ok(FileContent { file: target.path.into(), content: target.before.map(Bytes) })
    }

    fn config_set(
        &mut self,
        (project, params): (Option<OpenedProject>, SetParams),
    ) -> Result<Changed, Failure> {
        let key = config_files::parse_key(&params.key)?;
        let value = params.words.as_ref().map(|words| self.parse_value(&key, words)).transpose()?;
        let target = self.target(project, params.scope)?;
        let text = String::from_utf8(target.before.clone().unwrap_or_default()).map_err(|err| {
            Failure::new(format!("cannot read {}", target.path.display()))
                .code(FailureCode::InvalidConfig)
                .caused_by(&err)
        })?;
        let file = target.path.clone().into();
        let Some(after) = config_files::edit(&text, &target.path, &key, value.as_ref())? else {
            let notes = vec![format!("{} does not set {key}", target.path.display())];
            return Ok(Changed { file, changed: false, notes });
        };
        let changed = target.before.is_none() || after != text;
        let mut notes = vec![format!("{key} takes effect {}", key.info().applies.when())];
        notes.extend(self.write_file(target, after.into_bytes())?);
        Ok(Changed { file, changed, notes })
    }

    fn config_write(
        &mut self,
        (project, params): (Option<OpenedProject>, WriteParams),
    ) -> Result<Changed, Failure> {
        let target = self.target(project, params.scope)?;
        if target.before != params.before.map(|before| before.0) {
            return Err(Failure::new(format!("{} has changed meanwhile", target.path.display()))
                .code(FailureCode::ChangedMeanwhile)
                .hint("begin again: agency config edit"));
        }
        let file = target.path.clone().into();
        if target.before.as_ref() == Some(&params.content.0) {
            return Ok(Changed { file, changed: false, notes: Vec::new() });
        }
        let layer = settings::parse(&target.path, &params.content.0)?;
        let before = target.before.as_ref().and_then(|before| settings::parse(&target.path, before).ok());
        let mut notes = config_files::effects_of(before.as_ref(), &layer);
        notes.extend(layer.unknown_keys.iter().map(|unknown| match unknown.hint() {
            Some(hint) => format!("{unknown} ({hint})"),
            None => unknown.to_string(),
        }));
        notes.extend(self.write_file(target, params.content.0)?);
        Ok(Changed { file, changed: true, notes })
    }

    /// Parses a value, and checks more than its type before it is written to a file.
    fn parse_value(&self, key: &Key, words: &[String]) -> Result<Value, Failure> {
        let refused = |cause: String| {
            Failure::new(format!("cannot set `{key}` to `{}`", words.join(" ")))
                .code(FailureCode::InvalidConfig)
                .because(cause)
        };
        let value = Value::from_words(key, words).map_err(|problem| {
            let failure = refused(problem.to_string());
            problem.hint().into_iter().fold(failure, Failure::hint)
        })?;
        if *key == Key::DETACH_KEYS
            && let Value::Text(keys) = &value
        {
            DetachKeys::parse(keys).map_err(|err| refused(err.to_string()))?;
        }
        Ok(value)
    }

    fn target(&mut self, project: Option<OpenedProject>, scope: Scope) -> Result<Target, Failure> {
        let no_home = || {
            Failure::new("cannot find your configuration directory")
                .code(FailureCode::NotFound)
                .because("HOME is not set")
                .hint("set HOME")
        };
        let (path, links, project) = match (scope, project) {
            (Scope::User, _) => {
                (agency_api::paths::global_config().ok_or_else(no_home)?, Links::Followed, None)
            }
            (Scope::Project, Some(project)) => {
                let path = settings::project_path(project.project.root());
                (path, Links::Refused, Some(self.open_project(project)?))
            }
            (Scope::Project, None) => {
                return Err(Failure::new("there is no project here").code(FailureCode::NotAProject));
            }
        };
        let before = settings::read(&path, links)?;
        Ok(Target { path, links, before, project })
    }

    /// Writes the file. Returns a note for the user.
    fn write_file(&mut self, target: Target, content: Vec<u8>) -> Result<Option<String>, Failure> {
        let agreed = target.project.map(|id| (self.has_agreed_to_all(&id, target.before.as_deref()), id));
        config_files::write(&target.path, target.links, &content).map_err(|err| {
            Failure::new(format!("cannot write {}", target.path.display()))
                .code(FailureCode::IoError)
                .caused_by(&err)
        })?;
        let Some((agreed, id)) = agreed else { return Ok(None) };
        if agreed {
            // The user has just made this change, and had agreed to the rest of the file before.
            self.agree_to_file(&id, &content).map_err(|err| cannot_remember(&err))?;
            return Ok(None);
        }
        Ok(Some("you have not trusted the file: agency trust".to_owned()))
    }

    /// Whether the user has agreed to everything in the file that needs consent.
    fn has_agreed_to_all(&self, id: &ProjectId, content: Option<&[u8]>) -> bool {
        let Some(content) = content else { return true };
        let root = self.store.project(id).map(|known| known.root().to_path_buf()).unwrap_or_default();
        let user = self.configuration.files.user().ok().flatten();
        let layer = settings::parse(&settings::project_path(&root), content).ok();
        // The user cannot have agreed to a file that cannot be read.
        let waits = layer.is_none_or(|layer| {
            !layer.split_by_trust(user.as_ref().and_then(|file| file.layer.as_ref())).waiting.is_empty()
        });
        !waits || self.configuration.trust.trusts(id, &trust::digest(content))
    }
}

/// Warnings about values that can be parsed but cannot work.
fn config_warnings(config: &Config) -> Vec<String> {
    let mut config_warnings = Vec::new();
    if let Err(err) = DetachKeys::parse(&config.detach_keys) {
        config_warnings.push(format!("{}: `detach_keys`: {err}", config.origin(&Key::DETACH_KEYS)));
    }
    for (index, named) in config.approve.iter().enumerate() {
        let agent = named.rule.agent.as_deref().map(|name| config.agents.find(name));
        if let Some(Err(err)) = agent {
            let key = Key::Rule { number: index + 1 };
            config_warnings.push(format!("{}: `{key}.agent`: {err} ({})", config.origin(&key), err.hint()));
        }
    }
    if let Some(Err(err)) = config.default_agent.as_deref().map(|name| config.agents.find(name)) {
        let origin = config.origin(&Key::DEFAULT_AGENT);
        config_warnings.push(format!("{origin}: `default_agent`: {err} ({})", err.hint()));
    }
    config_warnings
}

//! Consent: the commands and settings in a repository's own files, and whether the user agrees to them.

use std::path::PathBuf;

use agency_api::method::{self, Changes, Nothing, Trust, TrustAgreeParams, TrustedProject, TrustedProjects};
use agency_api::{Bytes, Failure, FailureCode};
use agency_core::config::{Key, Layer};
use agency_core::ids::{ProjectId, TaskId};
use agency_store::settings::{self, ConfigFile};
use agency_store::trust;

use super::World;
use super::router::Router;

pub(super) fn register(router: &mut Router) {
    router.on(method::TrustShow, World::trust_view);
    router.on(method::TrustList, World::trust_list);
    router.on(method::TrustAgree, World::agree);
}

/// Everything that needs consent. It is read once, so that the user agrees to exactly the shown content.
struct ConsentRequest {
    view: Trust,
    digests: Vec<String>,
    /// The lines of the configuration.
    shown: Vec<String>,
}

impl World {
    fn trust_view(&mut self, id: ProjectId) -> Result<Trust, Failure> {
        Ok(self.consent_request(&id)?.view)
    }

    fn trust_list(&mut self, _: Nothing) -> TrustedProjects {
        let projects = self.configuration.trust.agreements().map(|(id, agreed)| TrustedProject {
            root: agreed.root.clone().unwrap_or_else(|| self.root_of(id).into()),
            agreed_at: agreed.agreed_at.clone(),
            lines: agreed.shown.clone(),
            agreements: agreed.digests.len() as u64,
        });
        TrustedProjects { projects: projects.collect() }
    }

    fn agree(&mut self, (id, params): (ProjectId, TrustAgreeParams)) -> Result<Trust, Failure> {
        if params.revoke {
            self.configuration.trust.revoke(&self.context.state, &id).map_err(|err| cannot_remember(&err))?;
            return Ok(self.consent_request(&id)?.view);
        }
        let ConsentRequest { view, digests, shown } = self.consent_request(&id)?;
        if view.digest != params.digest {
            return Err(Failure::new("what this repository wants to run has changed since it was shown")
                .code(FailureCode::ChangedMeanwhile)
                .hint("look again: agency trust"));
        }
        let root = self.root_of(&id);
        for digest in digests {
            self.configuration
                .trust
                .agree(&self.context.state, &id, &root, digest)
                .map_err(|err| cannot_remember(&err))?;
        }
        self.configuration
            .trust
            .remember_shown(&self.context.state, &id, shown)
            .map_err(|err| cannot_remember(&err))?;
        Ok(self.consent_request(&id)?.view)
    }

    /// Records consent to a project's configuration that the user has just changed through the daemon.
    pub(super) fn agree_to_file(&mut self, id: &ProjectId, content: &[u8]) -> std::io::Result<()> {
        let root = self.root_of(id);
        self.configuration.trust.agree(&self.context.state, id, &root, trust::digest(content))?;
        let layer = settings::parse(&settings::project_path(&root), content).ok();
        let lines = layer.map(|layer| self.waiting(layer)).unwrap_or_default();
        let shown = lines.into_iter().map(|(_, line)| line).collect();
        self.configuration.trust.remember_shown(&self.context.state, id, shown)
    }

    fn root_of(&self, id: &ProjectId) -> PathBuf {
        self.store.project(id).map(|known| known.root().to_path_buf()).unwrap_or_default()
    }

    /// The settings of a project's file that need consent, one line for each.
    fn waiting(&self, layer: Layer) -> Vec<(Key, String)> {
        let user = self.configuration.files.user().ok().flatten();
        let sifted = layer.split_by_trust(user.as_ref().and_then(|file| file.layer.as_ref()));
        let line = |(key, setting): (Key, agency_core::config::Setting)| {
            let line = format!("{key} = {}", setting.value);
            (key, line)
        };
        sifted.waiting.into_iter().map(line).collect()
    }

    fn consent_request(&self, id: &ProjectId) -> Result<ConsentRequest, Failure> {
        let file = self.configuration.files.project(&self.root_of(id))?;
        let strange = self.strange_commands(id);
        let lines = file.layer.clone().map(|layer| self.waiting(layer)).unwrap_or_default();
        let agreed = file.digest.as_ref().is_some_and(|digest| self.configuration.trust.trusts(id, digest));
        let trusted = (lines.is_empty() || agreed) && strange.is_empty();
        let shown: Vec<String> = lines.iter().map(|(_, line)| line.clone()).collect();
        let (runs, changes): (Vec<_>, Vec<_>) = lines.into_iter().partition(|(key, _)| key.runs_commands());
        let text = |lines: Vec<(Key, String)>| lines.into_iter().map(|(_, line)| line);
        let tasks = strange.iter().map(|(task, command)| format!("task {task} runs {command:?}"));
        let view = Trust {
            file: file.path.clone().into(),
            content: file.content.clone().map(Bytes),
            digest: None,
            commands: text(runs).chain(tasks).collect(),
            settings: text(changes).collect(),
            trusted,
            changes: self
                .configuration
                .trust
                .shown(id)
                .filter(|_| !trusted)
                .map(|before| compare_lines(before, &shown)),
        };
        let task_digests = strange.iter().map(|(_, command)| trust::command_digest(command));
        let digests = file.digest.iter().cloned().chain(task_digests).collect();
        let digest = digest_of(&file, &view);
        Ok(ConsentRequest { view: Trust { digest, ..view }, digests, shown })
    }

    /// Commands in task files that no user typed on this machine.
    fn strange_commands(&self, id: &ProjectId) -> Vec<(TaskId, Vec<String>)> {
        let tasks = self.store.project(id).into_iter().flat_map(|known| &known.tasks);
        let commands = tasks.filter_map(|(task, stored)| {
            let command = stored.content.as_ref().ok()?.fields().command.clone()?;
            (!self.configuration.trust.trusts(id, &trust::command_digest(&command)))
                .then_some((*task, command))
        });
        commands.collect()
    }
}

/// One digest over everything that was shown, so that the user agrees to exactly that.
fn digest_of(file: &ConfigFile, view: &Trust) -> Option<String> {
    if view.commands.is_empty() && view.settings.is_empty() {
        return None;
    }
    let shown = format!("{:?}{:?}{:?}", file.digest, view.commands, view.settings);
    Some(trust::digest(shown.as_bytes()))
}

fn compare_lines(before: &[String], now: &[String]) -> Changes {
    let without = |lines: &[String], others: &[String]| {
        lines.iter().filter(|line| !others.contains(line)).cloned().collect()
    };
    Changes { added: without(now, before), removed: without(before, now) }
}

pub(super) fn cannot_remember(error: &std::io::Error) -> Failure {
    Failure::new("cannot remember what was agreed to").code(FailureCode::IoError).caused_by(error)
}

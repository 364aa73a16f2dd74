//! Consent of the user to the commands and settings in a repository's own files.
//!
//! Not here: which of them need consent (see `agency_store::consent`).

use std::path::PathBuf;

use agency_api::method::{self, Nothing, Trust, TrustAgreeParams, TrustedProject, TrustedProjects};
use agency_api::{Failure, FailureCode};
use agency_core::ids::{ProjectId, TaskId};
use agency_store::consent::{self, ConsentRequest};
use agency_store::trust;

use super::router::Router;
use super::{Configuration, World};

pub(super) fn register(router: &mut Router) {
    router.on(method::TrustShow, World::trust_view);
    router.on(method::TrustList, World::trust_list);
    router.on(method::TrustAgree, World::agree);
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
            return Err(Failure::new("the commands of this repository changed after you saw them")
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
        let shown = consent::lines_of(&self.configuration.files, &root, content);
        self.configuration.trust.remember_shown(&self.context.state, id, shown)
    }

    fn root_of(&self, id: &ProjectId) -> PathBuf {
        self.store.project(id).map(|known| known.root().to_path_buf()).unwrap_or_default()
    }

    fn consent_request(&self, id: &ProjectId) -> Result<ConsentRequest, Failure> {
        let Configuration { files, trust, .. } = &self.configuration;
        ConsentRequest::read(id, &self.root_of(id), files, trust, &self.strange_commands(id))
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

pub(super) fn cannot_remember(error: &std::io::Error) -> Failure {
    Failure::new("cannot remember what was agreed to").code(FailureCode::IoError).caused_by(error)
}

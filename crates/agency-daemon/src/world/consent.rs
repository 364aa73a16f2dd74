//! What a repository's own files would run, and the user's word on it.

use agency_api::method::Trust;
use agency_api::{Bytes, Failure};
use agency_core::ids::{ProjectId, TaskId};
use agency_workspace::Project;

use super::World;
use crate::{settings, trust};

/// All that waits for consent, read once: what is shown is what is agreed to.
struct Wanted {
    view: Trust,
    digests: Vec<String>,
}

impl World {
    pub(super) fn trust_view(&mut self, project: Project) -> Result<Trust, Failure> {
        let id = self.open_project(project)?;
        Ok(self.wanted(&id)?.view)
    }

    pub(super) fn agree(
        &mut self,
        project: Project,
        digest: Option<String>,
        revoke: bool,
    ) -> Result<Trust, Failure> {
        let id = self.open_project(project)?;
        if revoke {
            self.trust.revoke(&self.ground.state, &id).map_err(|err| cannot_remember(&err))?;
            return Ok(self.wanted(&id)?.view);
        }
        let Wanted { view, digests } = self.wanted(&id)?;
        if view.digest != digest {
            return Err(Failure::new("what this repository wants to run has changed since it was shown")
                .hint("look again: agency trust"));
        }
        for digest in digests {
            self.trust.agree(&self.ground.state, &id, digest).map_err(|err| cannot_remember(&err))?;
        }
        Ok(self.wanted(&id)?.view)
    }

    fn wanted(&self, id: &ProjectId) -> Result<Wanted, Failure> {
        let root = self.store.project(id).map(|known| known.root().to_path_buf()).unwrap_or_default();
        let file = settings::project_file(&root)?;
        let strange = self.strange_commands(id);
        let mut commands = file.commands();
        let config_trusted =
            commands.is_empty() || file.digest.as_ref().is_some_and(|digest| self.trust.trusts(id, digest));
        commands.extend(strange.iter().map(|(task, command)| format!("task {task} runs {command:?}")));
        let task_digests = strange.iter().map(|(_, command)| trust::command_digest(command));
        let digests = file.digest.iter().cloned().chain(task_digests).collect();
        // One digest over all that was shown, so that agreeing means exactly that.
        let shown = format!("{:?}{:?}", file.digest, commands);
        let view = Trust {
            file: file.path.into(),
            content: file.content.map(Bytes),
            digest: (!commands.is_empty()).then(|| trust::digest(shown.as_bytes())),
            trusted: config_trusted && strange.is_empty(),
            commands,
        };
        Ok(Wanted { view, digests })
    }

    /// Commands in task files that were never typed here.
    fn strange_commands(&self, id: &ProjectId) -> Vec<(TaskId, Vec<String>)> {
        let tasks = self.store.project(id).into_iter().flat_map(|known| &known.tasks);
        let commands = tasks.filter_map(|(task, stored)| {
            let command = stored.content.as_ref().ok()?.fields().command.clone()?;
            (!self.trust.trusts(id, &trust::command_digest(&command))).then_some((*task, command))
        });
        commands.collect()
    }
}

pub(super) fn cannot_remember(error: &std::io::Error) -> Failure {
    Failure::new("cannot remember what was agreed to").caused_by(error)
}

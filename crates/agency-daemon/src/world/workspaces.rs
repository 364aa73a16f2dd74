//! Making the workspace of a start, and removing it again when the start fails.
//!
//! Not here: its setup (see `setups`), and its removal (see `removals`).

use std::path::PathBuf;

use agency_api::{Failure, FailureCode};
use agency_core::config::Key;
use agency_core::ids::{Epoch, TaskKey};
use agency_core::supervisor::{Event, MadeBy};
use agency_run::blocking::blocking;
use agency_run::run_meta;
use agency_store::workspace_record::SetupProgress;
use agency_work::workspace;
use agency_workspace::{Vcs, Workspace};

use super::World;
use super::loop_event::LoopEvent;

/// In a project's own file this key has no effect before the user consents.
const SETUP_KEY: Key = Key::WORKSPACE_SETUP;

impl World {
    pub(super) fn make_workspace(&mut self, key: TaskKey, epoch: Epoch) {
        self.expect_workspace(&key);
        let reporter = self.context.reporter.clone();
        let planned = self.workspace_of(&key).map(|(project, name)| {
            let base = self.store.file(&key).ok().and_then(|file| file.fields().base_branch.clone());
            (project, name, base)
        });
        tokio::spawn(async move {
            let made = match planned {
                Ok((project, name, base)) => {
                    blocking(move || workspace::make(&project, &name, base.as_deref())).await
                }
                Err(failure) => Err(failure),
            };
            reporter.report(LoopEvent::WorkspaceMade { key, epoch, made }).await;
        });
    }

    /// Before the workspace is made, records that it will have to be set up: the next daemon must know that too.
    fn expect_workspace(&mut self, key: &TaskKey) {
        self.reserve_ports(key);
        let Ok((project, name)) = self.workspace_of(key) else { return };
        let is_there = agency_workspace::workspace_path(&project, &name).is_dir();
        if project.vcs() == Vcs::Plain || is_there {
            return;
        }
        let Ok(settings) = self.settings_of_setup(key) else { return };
        if settings.waiting.contains(&SETUP_KEY) {
            let words = "the setup of this project is not trusted and did not run: `agency trust`, then `agency setup";
            self.add_notes(key, vec![format!("{words} {}`", key.task)]);
        }
        let config = settings.config.workspace;
        let is_owed = !config.setup.is_empty() || agency_workspace::includes_files(&project, &config.copy);
        self.mark_setup(key, if is_owed { SetupProgress::Pending } else { SetupProgress::None });
    }

    /// No workspace was made, or it was removed again.
    pub(super) fn expect_no_workspace(&mut self, key: &TaskKey) {
        if self.workspace_to_enter(key).is_err() {
            self.mark_setup(key, SetupProgress::None);
        }
    }

    pub(super) fn on_workspace_made(
        &mut self,
        key: TaskKey,
        epoch: Epoch,
        made: Result<Option<Workspace>, Failure>,
    ) {
        match made {
            Ok(workspace) => {
                self.record_presence(&key);
                self.mark_cut_off(&key, None);
                let made_by = match workspace {
                    Some(workspace) => {
                        self.add_notes(&key, workspace.warnings.clone());
                        self.starts.made.insert(key.clone(), workspace);
                        MadeBy::ThisStart
                    }
                    None => MadeBy::Earlier,
                };
                let readiness = self.readiness(&key);
                self.decide(Event::WorkspaceMade { key, epoch, made_by, readiness });
            }
            Err(failure) => {
                self.expect_no_workspace(&key);
                let error = failure.message.clone();
                self.starts.failures.insert(key.clone(), failure);
                self.decide(Event::WorkspaceFailed { key, epoch, error });
            }
        }
    }

    pub(super) fn undo_workspace(&mut self, key: TaskKey, epoch: Epoch) {
        let reporter = self.context.reporter.clone();
        let made = self.starts.made.remove(&key);
        let project = self.workspace_of(&key).map(|(project, _)| project);
        tokio::spawn(async move {
            if let (Ok(project), Some(made)) = (project, made) {
                let undone = blocking(move || workspace::undo(&project, &made));
                if let Err(left) = undone.await {
                    tracing::warn!(task = %key, %left, "the workspace of a failed start stays behind");
                }
            }
            reporter.report(LoopEvent::WorkspaceUndone { key, epoch }).await;
        });
    }

    /// The directory of a workspace that has been made.
    pub(super) fn workspace_to_enter(&self, key: &TaskKey) -> Result<PathBuf, Failure> {
        let (project, workspace) = self.workspace_of(key)?;
        let path = agency_workspace::workspace_path(&project, &workspace);
        match path.is_dir() {
            true => Ok(path),
            false => Err(Failure::new(format!("task {workspace} has no workspace yet"))
                .code(FailureCode::WorkspaceMissing)
                .because(format!("{} is not there", path.display()))
                .hint(format!("agency start {} makes it", key.task))),
        }
    }

    /// The `AGENCY_RUN_ID` of every process that the daemon starts in the workspace. By it the daemon finds them again.
    pub(super) fn workspace_run(&self, key: &TaskKey) -> Result<String, Failure> {
        if let Some(run) = self.workspaces.records.get(key).run {
            return Ok(run);
        }
        let made = run_meta::new_run_id()
            .map_err(|err| Failure::new("no random numbers").code(FailureCode::IoError).caused_by(&err))?;
        Ok(made.0)
    }

    /// Records that no command of the daemon's runs in the workspace any more.
    pub(super) fn record_no_commands(&mut self, key: &TaskKey) {
        if let Err(cause) = self.workspaces.records.change(key, |record| record.at_work = false) {
            tracing::warn!(task = %key, %cause, "cannot record that no command runs in a workspace");
        }
    }

    /// Frees the ports of tasks that no longer exist.
    pub(super) fn forget_lost_workspaces(&mut self) {
        let is_lost = |key: &TaskKey| {
            let has_project = self.store.project(&key.project).is_some();
            has_project && self.store.task(key).is_none() && !self.supervisor.occupation(key).is_removal()
        };
        let lost: Vec<TaskKey> =
            self.workspaces.records.all().map(|(key, _)| key.clone()).filter(is_lost).collect();
        lost.iter().for_each(|key| self.workspaces.records.forget(key));
    }
}

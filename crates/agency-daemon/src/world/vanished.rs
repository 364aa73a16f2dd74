//! Agents whose workspace disappears under them: they are stopped, and people are told.

use agency_api::event::ErrorEvent;
use agency_core::ids::{RunId, TaskKey};
use agency_core::supervisor::{Event, Outcome, Refusal};
use agency_store::clock;
use agency_workspace::Vcs;

use super::{Pending, World};

impl World {
    /// From here on a deletion beside the workspace is heard of.
    pub(super) fn watch_workspace(&self, key: &TaskKey) {
        let Ok((project, name)) = self.workspace_of(key) else { return };
        let path = agency_workspace::workspace_path(&project, &name);
        if let Some(parent) = path.parent().filter(|_| project.vcs() != Vcs::Plain) {
            self.watch.add(parent);
        }
    }

    pub(super) fn look_for_vanished(&mut self) {
        let live: Vec<(TaskKey, RunId)> =
            self.supervisor.live_runs().map(|(key, run)| (key.clone(), run.clone())).collect();
        live.iter().for_each(|(key, run)| self.heed_vanished(key, run));
    }

    /// One look at the file system.
    pub(super) fn heed_vanished(&mut self, key: &TaskKey, run: &RunId) {
        let is_gone =
            self.workspace_of(key).is_ok_and(|(project, name)| agency_workspace::is_gone(&project, &name));
        if !is_gone || self.supervisor.live_run(key) != Some(run) || self.supervisor.occupation(key).is_busy()
        {
            return;
        }
        tracing::error!(task = %key, %run, "the workspace is gone; its agent is stopped");
        let now = clock::timestamp();
        if let Err(cause) = self.workspaces.change(key, |record| record.vanished = Some(now)) {
            tracing::warn!(task = %key, %cause, "that a workspace is gone is not kept");
        }
        let error =
            ErrorEvent::new("the workspace is gone", "its directory disappeared; the agent is stopped");
        self.announce(Some(key), Some(run), error);
        let ticket = self.ticket(Pending::Vanished { key: key.clone() });
        self.decide(Event::Stop { key: key.clone(), ticket });
    }

    pub(super) fn answer_vanished(&mut self, key: &TaskKey, outcome: Result<Outcome, Refusal>) {
        match outcome {
            Ok(_) => self.ended_unasked(key, None, "its workspace is gone, and it was stopped".to_owned()),
            Err(cause) => tracing::error!(task = %key, %cause, "an agent without a workspace is not stopped"),
        }
    }

    /// The directory is there again.
    pub(super) fn is_back(&mut self, key: &TaskKey) {
        if let Err(cause) = self.workspaces.change(key, |record| record.vanished = None) {
            tracing::warn!(task = %key, %cause, "that a workspace is back is not kept");
        }
    }
}

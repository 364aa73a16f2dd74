//! Workspaces that disappear while their agent lives: the daemon stops the agent and notifies the user.

use agency_api::event::ErrorEvent;
use agency_core::ids::TaskKey;
use agency_core::supervisor::{Event, Outcome, Refusal};
use agency_store::clock;
use agency_workspace::Vcs;

use super::{Pending, World};

impl World {
    /// From now on the daemon learns of deletions in the directory that holds the workspace.
    pub(super) fn watch_workspace(&self, key: &TaskKey) {
        let Ok((project, name)) = self.workspace_of(key) else { return };
        let path = agency_workspace::workspace_path(&project, &name);
        if let Some(parent) = path.parent().filter(|_| project.vcs() != Vcs::Plain) {
            self.workspaces.watch.add(parent);
        }
    }

    pub(super) fn check_workspaces(&mut self) {
        let live: Vec<TaskKey> = self.supervisor.live_runs().map(|(key, _)| key.clone()).collect();
        live.iter().for_each(|key| self.check_workspace(key));
    }

    /// Stops the agent if its workspace is gone. Looks only if an agent lives and nothing else is under way.
    pub(super) fn check_workspace(&mut self, key: &TaskKey) {
        let Some(run) = self.supervisor.live_run(key).cloned() else { return };
        let is_gone =
            self.workspace_of(key).is_ok_and(|(project, name)| agency_workspace::is_gone(&project, &name));
        if !is_gone || self.supervisor.occupation(key).is_busy() {
            return;
        }
        tracing::error!(task = %key, %run, "the workspace is gone; its agent is stopped");
        let now = clock::timestamp();
        if let Err(cause) = self.workspaces.records.change(key, |record| record.vanished = Some(now)) {
            tracing::warn!(task = %key, %cause, "cannot record that a workspace is gone");
        }
        let error =
            ErrorEvent::new("the workspace is gone", "its directory disappeared; the agent is stopped");
        self.announce(Some(key), Some(&run), error);
        let ticket = self.ticket(Pending::StopWithoutWorkspace { key: key.clone() });
        self.decide(Event::Stop { key: key.clone(), ticket });
    }

    pub(super) fn answer_stop_without_workspace(&mut self, key: &TaskKey, outcome: Result<Outcome, Refusal>) {
        match outcome {
            Ok(_) => {
                self.record_unexpected_end(key, None, "its workspace is gone, and it was stopped".to_owned())
            }
            Err(cause) => tracing::error!(task = %key, %cause, "an agent without a workspace is not stopped"),
        }
    }

    /// Records that the directory is there again.
    pub(super) fn record_presence(&mut self, key: &TaskKey) {
        if let Err(cause) = self.workspaces.records.change(key, |record| record.vanished = None) {
            tracing::warn!(task = %key, %cause, "cannot record that a workspace is there again");
        }
    }
}

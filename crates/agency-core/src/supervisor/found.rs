//! Tasks that the daemon finds: at boot, and whenever a task file appears or the user edits one.
//!
//! Not here: how the daemon looks for files and keepers. Boot spawns nothing; it only corrects what is untrue.

use super::Supervisor;
use super::effect::{Effect, Notice};
use super::event::{FoundRun, FoundTask};
use super::event_handling::{EventHandling, ShutdownPhase};
use super::occupation::Occupation;
use super::task::{Life, Run, Task, Then};
use crate::Time;
use crate::ids::TaskKey;

impl Supervisor {
    pub(super) fn on_booted(&mut self, now: Time, mut tasks: Vec<FoundTask>) -> Vec<Effect> {
        tasks.retain(|found| !self.is_leaving(&found.key));
        let count = |kind: fn(&FoundTask) -> bool| tasks.iter().filter(|found| kind(found)).count();
        let marked_stopped = count(claims_what_is_not_there);
        let adopted = count(|found| matches!(found.run, FoundRun::Live { .. }));
        let elsewhere = count(|found| matches!(found.run, FoundRun::Elsewhere));
        let mut effects: Vec<Effect> =
            tasks.into_iter().flat_map(|found| self.on_task_seen(now, found)).collect();
        if marked_stopped > 0 {
            let notice = Notice::DaemonResumeMarkStopped { marked_stopped, adopted, elsewhere };
            effects.push(Effect::Report(notice));
        }
        effects
    }

    pub(super) fn on_task_seen(&mut self, now: Time, found: FoundTask) -> Vec<Effect> {
        let key = found.key.clone();
        if self.is_leaving(&key) {
            return Vec::new();
        }
        self.tasks.entry(key.clone()).or_insert_with(|| Task::resting(key.clone(), found.status));
        self.with_task(now, &key, |task, handling| task.on_seen(handling, found))
    }

    /// The file of a task that is being removed no longer counts.
    fn is_leaving(&self, key: &TaskKey) -> bool {
        self.works.of(key).is_some_and(Occupation::is_removal)
    }
}

fn claims_what_is_not_there(found: &FoundTask) -> bool {
    found.status.claims_a_process() && matches!(found.run, FoundRun::None | FoundRun::Ended { .. })
}

impl Task {
    /// The file decides about the status, but not about a process that the supervisor knows.
    pub(super) fn on_seen(&mut self, handling: &mut EventHandling<'_>, found: FoundTask) {
        self.status = found.status;
        match &self.life {
            Life::Elsewhere | Life::Resting => self.take_in(handling, found.run),
            Life::MakingWorkspace { .. }
            | Life::SettingUp { .. }
            | Life::StartingKeeper(_)
            | Life::RestartHeld(_)
            | Life::Live(_)
            | Life::Stopping(_)
            | Life::CancellingWorkspace { .. }
            | Life::CancellingSetup { .. }
            | Life::CancellingKeeper { .. }
            | Life::UndoingWorkspace { .. }
            | Life::UndoingTask { .. } => {}
        }
    }

    fn take_in(&mut self, handling: &mut EventHandling<'_>, found: FoundRun) {
        self.life = match found {
            FoundRun::None => {
                self.settle(handling);
                Life::Resting
            }
            FoundRun::Live { run, terms } => {
                self.take_in_live(handling, Run::begun(run, terms, handling.now))
            }
            FoundRun::Ended { run, exit } => self.ended_unseen(handling, run, exit),
            FoundRun::Elsewhere => Life::Elsewhere,
        }
    }

    /// A run that is found during a shutdown ends like the others.
    fn take_in_live(&mut self, handling: &mut EventHandling<'_>, run: Run) -> Life {
        match handling.shutdown_phase {
            ShutdownPhase::NotShuttingDown => Life::Live(run),
            ShutdownPhase::Stopping | ShutdownPhase::Killing => {
                self.stop_run(handling, run, Vec::new(), Then::Rest)
            }
        }
    }
}

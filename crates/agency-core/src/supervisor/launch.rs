//! From a granted start to a live run: the workspace, its setup, the keeper, and the way back when one of them fails.
//!
//! Not here: whether a start is granted (see `requests`).

use super::effect::{Effect, Notice, Outcome, StartCause};
use super::event::{MadeBy, Origin, Readiness};
use super::event_handling::{Answer, EventHandling, Leaving};
use super::refusal::Refusal;
use super::task::{Aim, Launch, Life, Run, Start, Task, Then};
use crate::ids::{Epoch, RunId, Ticket};
use crate::task_status::TaskStatus;

impl Task {
    /// The daemon makes the workspace, or finds that it exists.
    pub(super) fn begin(&mut self, handling: &mut EventHandling<'_>, start: Start) -> Life {
        let epoch = handling.next_epoch();
        handling.push(Effect::MakeWorkspace { key: self.key.clone(), epoch });
        Life::MakingWorkspace { epoch, start }
    }

    /// After a crash. The agent has just lived in its workspace, so nothing is made or set up.
    pub(super) fn restart(&mut self, handling: &mut EventHandling<'_>, start: Start) -> Life {
        match handling.are_files_changing {
            true => Life::RestartHeld(start),
            false => self.start_keeper(handling, start, MadeBy::Earlier),
        }
    }

    /// The daemon has finished an operation on the task's files.
    pub(super) fn on_files_settled(&mut self, handling: &mut EventHandling<'_>) {
        self.life = match self.take_life() {
            Life::RestartHeld(start) => self.restart(handling, start),
            life => life,
        }
    }

    /// The workspace is ready: start the agent, if one is wanted.
    fn use_workspace(&mut self, handling: &mut EventHandling<'_>, start: Start, workspace: MadeBy) -> Life {
        match start.aim {
            Aim::Agent => self.start_keeper(handling, start, workspace),
            Aim::Workspace => self.proceed(handling, Then::Rest, start.answers(&Ok(Outcome::SetUp))),
        }
    }

    fn start_keeper(&mut self, handling: &mut EventHandling<'_>, start: Start, workspace: MadeBy) -> Life {
        let epoch = handling.next_epoch();
        handling.push(Effect::StartKeeper { key: self.key.clone(), epoch, cause: start.cause });
        Life::StartingKeeper(Launch { epoch, start, workspace, early_exits: Vec::new() })
    }

    pub(super) fn on_workspace_made(
        &mut self,
        handling: &mut EventHandling<'_>,
        answered: Epoch,
        made_by: MadeBy,
        readiness: Readiness,
    ) {
        self.life = match self.take_life() {
            Life::MakingWorkspace { epoch, start } if epoch == answered => {
                self.prepare_workspace(handling, start, made_by, readiness)
            }
            Life::CancellingWorkspace { epoch, waiting, then } if epoch == answered => {
                self.drop_workspace(handling, waiting, then, made_by, readiness)
            }
            // This request is no longer open.
            life => life,
        }
    }

    fn prepare_workspace(
        &mut self,
        handling: &mut EventHandling<'_>,
        start: Start,
        made_by: MadeBy,
        readiness: Readiness,
    ) -> Life {
        match readiness {
            Readiness::Ready => self.use_workspace(handling, start, made_by),
            Readiness::Raw => self.set_up(handling, start),
        }
    }

    /// From here on a failed start leaves the workspace: commands of the user have changed it.
    fn set_up(&mut self, handling: &mut EventHandling<'_>, mut start: Start) -> Life {
        start.plan.task = Origin::Existing;
        let epoch = handling.next_epoch();
        handling.push(Effect::SetUp { key: self.key.clone(), epoch });
        Life::SettingUp { epoch, start }
    }

    pub(super) fn end_setup(
        &mut self,
        handling: &mut EventHandling<'_>,
        epoch: Epoch,
        waiting: Vec<Ticket>,
        then: Then,
    ) -> Life {
        handling.push(Effect::EndSetup { key: self.key.clone(), epoch });
        Life::CancellingSetup { epoch, waiting, then }
    }

    pub(super) fn on_setup_done(&mut self, handling: &mut EventHandling<'_>, answered: Epoch) {
        self.life = match self.take_life() {
            Life::SettingUp { epoch, start } if epoch == answered => {
                self.use_workspace(handling, start, MadeBy::Earlier)
            }
            life => self.setup_over(handling, life, answered),
        }
    }

    pub(super) fn on_setup_failed(
        &mut self,
        handling: &mut EventHandling<'_>,
        answered: Epoch,
        error: String,
    ) {
        self.life = match self.take_life() {
            Life::SettingUp { epoch, start } if epoch == answered => {
                let refusal = Refusal::SetupFailed { key: self.key.clone(), error };
                self.proceed(handling, Then::Rest, start.answers(&Err(refusal)))
            }
            life => self.setup_over(handling, life, answered),
        }
    }

    /// A cancelled setup has ended. If another start came meanwhile, it sets the same workspace up again.
    fn setup_over(&mut self, handling: &mut EventHandling<'_>, life: Life, answered: Epoch) -> Life {
        match life {
            Life::CancellingSetup { epoch, waiting, then } if epoch == answered => {
                let answers = cancelled_starts(waiting);
                match then {
                    Then::Start(start) => {
                        handling.answer_all(answers);
                        self.set_up(handling, start)
                    }
                    Then::Rest | Then::Remove(_) => self.proceed(handling, then, answers),
                }
            }
            // This request is no longer open.
            life => life,
        }
    }

    /// The start that asked for the workspace was cancelled. If another start came meanwhile, it uses the workspace.
    fn drop_workspace(
        &mut self,
        handling: &mut EventHandling<'_>,
        waiting: Vec<Ticket>,
        then: Then,
        made_by: MadeBy,
        readiness: Readiness,
    ) -> Life {
        let answers = cancelled_starts(waiting);
        match (then, made_by) {
            (Then::Start(start), _) => {
                handling.answer_all(answers);
                self.prepare_workspace(handling, start, made_by, readiness)
            }
            (then, MadeBy::ThisStart) => self.undo_workspace(handling, answers, then),
            (then, MadeBy::Earlier) => self.proceed(handling, then, answers),
        }
    }

    pub(super) fn on_workspace_failed(
        &mut self,
        handling: &mut EventHandling<'_>,
        answered: Epoch,
        error: String,
    ) {
        self.life = match self.take_life() {
            Life::MakingWorkspace { epoch, start } if epoch == answered => {
                let refusal = Refusal::WorkspaceFailed { key: self.key.clone(), error };
                self.failed(handling, start, MadeBy::Earlier, refusal)
            }
            Life::CancellingWorkspace { epoch, waiting, then } if epoch == answered => {
                self.proceed(handling, then, cancelled_starts(waiting))
            }
            // This request is no longer open.
            life => life,
        }
    }

    pub(super) fn on_keeper_ready(&mut self, handling: &mut EventHandling<'_>, answered: Epoch, run: RunId) {
        self.life = match self.take_life() {
            Life::StartingKeeper(launch) if launch.epoch == answered => {
                self.came_alive(handling, launch, run)
            }
            Life::CancellingKeeper { launch, waiting, then } if launch.epoch == answered => {
                self.came_unwanted(handling, launch, run, waiting, then)
            }
            life => {
                self.life = life;
                return self.stop_stranger(handling, run);
            }
        }
    }

    fn came_alive(&mut self, handling: &mut EventHandling<'_>, launch: Launch, id: RunId) -> Life {
        let Launch { start, early_exits, .. } = launch;
        let run = Run {
            id: id.clone(),
            terms: start.plan.terms,
            since: handling.now,
            history: start.history.clone(),
        };
        self.now_running(handling, start.cause);
        start.answer(handling, &Ok(Outcome::Started { run: id }));
        self.life = Life::Live(run);
        for (run, exit) in early_exits {
            self.on_run_exited(handling, run, exit);
        }
        self.take_life()
    }

    /// After a crash only the process comes back. The status stays: the user may have paused the task.
    fn now_running(&mut self, handling: &mut EventHandling<'_>, cause: StartCause) {
        match cause {
            StartCause::Asked | StartCause::Restarted => {
                // Refused only if the user has edited the task file meanwhile. Then the file is right.
                if let Ok(running) = self.status.to(TaskStatus::Running) {
                    self.enter(handling, running);
                }
            }
            StartCause::Crash => {}
        }
    }

    /// The start was cancelled, but the agent lives: end it like any other run. Its workspace stays, because an agent has
    /// been in it.
    fn came_unwanted(
        &mut self,
        handling: &mut EventHandling<'_>,
        launch: Launch,
        id: RunId,
        waiting: Vec<Ticket>,
        then: Then,
    ) -> Life {
        let run = Run::begun(id, launch.start.plan.terms, handling.now);
        self.life = self.stop_run(handling, run, waiting, then);
        for (run, exit) in launch.early_exits {
            self.on_run_exited(handling, run, exit);
        }
        self.take_life()
    }

    pub(super) fn on_keeper_failed(
        &mut self,
        handling: &mut EventHandling<'_>,
        answered: Epoch,
        error: String,
    ) {
        self.life = match self.take_life() {
            Life::StartingKeeper(launch) if launch.epoch == answered => {
                self.dismiss_all(handling, launch.early_exits);
                let refusal = Refusal::KeeperFailed { key: self.key.clone(), error };
                self.failed(handling, launch.start, launch.workspace, refusal)
            }
            Life::CancellingKeeper { launch, waiting, then } if launch.epoch == answered => {
                self.dismiss_all(handling, launch.early_exits);
                self.drop_workspace(handling, waiting, then, launch.workspace, Readiness::Ready)
            }
            // This request is no longer open.
            life => life,
        }
    }

    /// Takes back what this start made, and nothing else, before it answers the callers.
    fn failed(
        &mut self,
        handling: &mut EventHandling<'_>,
        start: Start,
        made: MadeBy,
        refusal: Refusal,
    ) -> Life {
        if start.cause == StartCause::Crash {
            handling.report(Notice::RestartFailed { key: self.key.clone(), error: refusal.to_string() });
        }
        let origin = start.plan.task;
        let answers = start.answers(&Err(refusal));
        match (made, origin) {
            (MadeBy::ThisStart, Origin::Existing) => self.undo_workspace(handling, answers, Then::Rest),
            (MadeBy::ThisStart, Origin::MadeByThisCall) => {
                let epoch = self.push_undo(handling);
                Life::UndoingTask { epoch, answers }
            }
            (MadeBy::Earlier, Origin::Existing) => self.proceed(handling, Then::Rest, answers),
            (MadeBy::Earlier, Origin::MadeByThisCall) => self.undo_task(handling, answers),
        }
    }

    fn undo_workspace(
        &mut self,
        handling: &mut EventHandling<'_>,
        answers: Vec<(Ticket, Answer)>,
        then: Then,
    ) -> Life {
        self.settle(handling);
        let epoch = self.push_undo(handling);
        Life::UndoingWorkspace { epoch, answers, then }
    }

    fn push_undo(&mut self, handling: &mut EventHandling<'_>) -> Epoch {
        let epoch = handling.next_epoch();
        handling.push(Effect::UndoWorkspace { key: self.key.clone(), epoch });
        epoch
    }

    pub(super) fn undo_task(
        &mut self,
        handling: &mut EventHandling<'_>,
        answers: Vec<(Ticket, Answer)>,
    ) -> Life {
        handling.push(Effect::UndoTask { key: self.key.clone() });
        handling.answer_all(answers);
        handling.leave(Leaving::Forgotten);
        Life::Resting
    }

    pub(super) fn on_workspace_undone(&mut self, handling: &mut EventHandling<'_>, answered: Epoch) {
        self.life = match self.take_life() {
            Life::UndoingWorkspace { epoch, answers, then } if epoch == answered => {
                self.proceed(handling, then, answers)
            }
            Life::UndoingTask { epoch, answers } if epoch == answered => self.undo_task(handling, answers),
            // This request is no longer open.
            life => life,
        }
    }
}

fn cancelled_starts(waiting: Vec<Ticket>) -> Vec<(Ticket, Answer)> {
    waiting.into_iter().map(|ticket| (ticket, Ok(Outcome::StartCancelled))).collect()
}

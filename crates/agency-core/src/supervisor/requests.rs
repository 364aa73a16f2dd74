//! Requests for one task, and whether they are granted.
//!
//! Not here: the limit over all tasks, and the table of operations. The supervisor checks both first.

use super::effect::{Outcome, StartCause};
use super::event::{Origin, RunTerms, Verdict};
use super::event_handling::EventHandling;
use super::refusal::Refusal;
use super::task::{Life, Run, Start, Stop, Task, Then};
use crate::ids::{RunId, Ticket};
use crate::task_status::{TaskStatus, TransitionRefused};

impl Task {
    /// A start never makes a second process. A restart makes sure that the process is a new one.
    pub(super) fn on_start(
        &mut self,
        handling: &mut EventHandling<'_>,
        start: Start,
        room: Result<(), Refusal>,
    ) {
        if let Err(refusal) = self.may_run().and(room) {
            return self.refuse_start(handling, start, refusal);
        }
        self.life = match self.take_life() {
            Life::Resting => self.begin(handling, start),
            Life::MakingWorkspace { epoch, start: mut first } => {
                first.join(start);
                Life::MakingWorkspace { epoch, start: first }
            }
            Life::SettingUp { epoch, start: mut first } => {
                first.join(start);
                Life::SettingUp { epoch, start: first }
            }
            Life::StartingKeeper(mut launch) => {
                launch.start.join(start);
                Life::StartingKeeper(launch)
            }
            Life::RestartHeld(mut held) => {
                held.join(start);
                Life::RestartHeld(held)
            }
            Life::Live(run) => self.start_live(handling, run, start),
            life @ (Life::Stopping(_)
            | Life::CancellingWorkspace { .. }
            | Life::CancellingSetup { .. }
            | Life::CancellingKeeper { .. }
            | Life::UndoingWorkspace { .. }) => {
                life.and_then(|then| then.and_start(handling, &self.key, start))
            }
            // The table has refused these already.
            life @ (Life::Elsewhere | Life::UndoingTask { .. }) => {
                start.answer(handling, &Err(self.busy()));
                life
            }
        }
    }

    fn may_run(&self) -> Result<(), Refusal> {
        if matches!(self.life, Life::Elsewhere) {
            return Err(Refusal::Elsewhere { key: self.key.clone() });
        }
        match self.status {
            TaskStatus::Running => Ok(()),
            status => self.step(status, TaskStatus::Running).map(drop),
        }
    }

    fn step(&self, from: TaskStatus, to: TaskStatus) -> Result<TaskStatus, Refusal> {
        from.to(to).map_err(|refused| Refusal::Transition { key: self.key.clone(), refused })
    }

    fn refuse_start(&mut self, handling: &mut EventHandling<'_>, start: Start, refusal: Refusal) {
        match (start.plan.task, &self.life) {
            (Origin::MadeByThisCall, Life::Resting) => {
                self.life = self.undo_task(handling, start.answers(&Err(refusal)));
            }
            (Origin::MadeByThisCall | Origin::Existing, _) => start.answer(handling, &Err(refusal)),
        }
    }

    fn start_live(&mut self, handling: &mut EventHandling<'_>, run: Run, start: Start) -> Life {
        if start.cause == StartCause::Restarted {
            return self.stop_run(handling, run, Vec::new(), Then::Start(start));
        }
        let id = run.id.clone();
        if self.status == TaskStatus::Running {
            start.answer(handling, &Ok(Outcome::AlreadyRunning { run: id }));
        } else {
            self.enter(handling, TaskStatus::Running);
            start.answer(handling, &Ok(Outcome::Resumed { run: id }));
        }
        Life::Live(run)
    }

    pub(super) fn on_stop(&mut self, handling: &mut EventHandling<'_>, ticket: Ticket) {
        self.life = match self.take_life() {
            life @ (Life::Elsewhere | Life::Resting | Life::UndoingTask { .. }) => {
                handling.refuse(ticket, self.not_running());
                life
            }
            Life::MakingWorkspace { epoch, start } => {
                start.answer(handling, &Err(self.cancelled()));
                Life::CancellingWorkspace { epoch, waiting: vec![ticket], then: Then::Rest }
            }
            Life::SettingUp { epoch, start } => {
                start.answer(handling, &Err(self.cancelled()));
                self.end_setup(handling, epoch, vec![ticket], Then::Rest)
            }
            Life::StartingKeeper(launch) => {
                let launch = launch.unwanted(handling, &self.cancelled());
                Life::CancellingKeeper { launch, waiting: vec![ticket], then: Then::Rest }
            }
            Life::RestartHeld(start) => {
                start.answer(handling, &Err(self.cancelled()));
                self.proceed(handling, Then::Rest, vec![(ticket, Ok(Outcome::StartCancelled))])
            }
            Life::Live(run) => self.stop_run(handling, run, vec![ticket], Then::Rest),
            Life::Stopping(stop) => {
                let then = stop.then.but_no_start(handling, &self.key);
                Life::Stopping(Stop { waiting: with(stop.waiting, ticket), then, ..stop })
            }
            Life::CancellingWorkspace { epoch, waiting, then } => {
                let then = then.but_no_start(handling, &self.key);
                Life::CancellingWorkspace { epoch, waiting: with(waiting, ticket), then }
            }
            Life::CancellingSetup { epoch, waiting, then } => {
                let then = then.but_no_start(handling, &self.key);
                Life::CancellingSetup { epoch, waiting: with(waiting, ticket), then }
            }
            Life::CancellingKeeper { launch, waiting, then } => {
                let then = then.but_no_start(handling, &self.key);
                Life::CancellingKeeper { launch, waiting: with(waiting, ticket), then }
            }
            Life::UndoingWorkspace { epoch, mut answers, then: Then::Start(start) } => {
                start.answer(handling, &Err(self.cancelled()));
                answers.push((ticket, Ok(Outcome::StartCancelled)));
                Life::UndoingWorkspace { epoch, answers, then: Then::Rest }
            }
            life @ Life::UndoingWorkspace { then: Then::Rest | Then::Remove(_), .. } => {
                handling.refuse(ticket, self.not_running());
                life
            }
        }
    }

    fn not_running(&self) -> Refusal {
        Refusal::NotRunning { key: self.key.clone(), status: self.status }
    }

    pub(super) fn on_remove(&mut self, handling: &mut EventHandling<'_>, ticket: Ticket) {
        self.life = match self.take_life() {
            Life::Resting => self.proceed(handling, Then::Remove(ticket), Vec::new()),
            Life::MakingWorkspace { epoch, start } => {
                start.answer(handling, &Err(self.cancelled()));
                Life::CancellingWorkspace { epoch, waiting: Vec::new(), then: Then::Remove(ticket) }
            }
            Life::SettingUp { epoch, start } => {
                start.answer(handling, &Err(self.cancelled()));
                self.end_setup(handling, epoch, Vec::new(), Then::Remove(ticket))
            }
            Life::StartingKeeper(launch) => {
                let launch = launch.unwanted(handling, &self.cancelled());
                Life::CancellingKeeper { launch, waiting: Vec::new(), then: Then::Remove(ticket) }
            }
            Life::RestartHeld(start) => {
                start.answer(handling, &Err(self.cancelled()));
                self.proceed(handling, Then::Remove(ticket), Vec::new())
            }
            Life::Live(run) => self.stop_run(handling, run, Vec::new(), Then::Remove(ticket)),
            life @ (Life::Stopping(_)
            | Life::CancellingWorkspace { .. }
            | Life::CancellingSetup { .. }
            | Life::CancellingKeeper { .. }
            | Life::UndoingWorkspace { .. }) => {
                life.and_then(|then| then.and_remove(handling, &self.key, ticket))
            }
            // The table has refused these already.
            life @ (Life::Elsewhere | Life::UndoingTask { .. }) => {
                handling.refuse(ticket, self.busy());
                life
            }
        }
    }

    pub(super) fn on_idle(
        &mut self,
        handling: &mut EventHandling<'_>,
        ticket: Ticket,
        room: Result<(), Refusal>,
    ) {
        match self.may_become(TaskStatus::Idle, room) {
            Ok(idle) => {
                self.enter(handling, idle);
                handling.grant(ticket, Outcome::Idle);
            }
            Err(refusal) => handling.refuse(ticket, refusal),
        }
    }

    /// A verdict leaves a live run alone.
    pub(super) fn on_mark(
        &mut self,
        handling: &mut EventHandling<'_>,
        ticket: Ticket,
        verdict: Verdict,
        room: Result<(), Refusal>,
    ) {
        match self.steps_of(verdict, room) {
            Ok(steps) => {
                for status in steps {
                    self.enter(handling, status);
                }
                handling.grant(ticket, Outcome::Marked(self.status));
            }
            Err(refusal) => handling.refuse(ticket, refusal),
        }
    }

    /// The statuses that the task goes through: a merge also marks work as completed.
    fn steps_of(&self, verdict: Verdict, room: Result<(), Refusal>) -> Result<Vec<TaskStatus>, Refusal> {
        match (verdict, self.status) {
            // No user may lead a task out of `merged` by a word. The repository says so.
            (Verdict::MergeTakenBack, TaskStatus::Merged) => room.map(|()| vec![verdict.into()]),
            (Verdict::MergeTakenBack, from) => {
                let refused = TransitionRefused { from, to: verdict.into() };
                Err(Refusal::Transition { key: self.key.clone(), refused })
            }
            (Verdict::Merged, from) if !matches!(self.life, Life::Elsewhere) => {
                let steps = from.steps_to_merged();
                let refused = |refused| Refusal::Transition { key: self.key.clone(), refused };
                steps.map_err(refused).and_then(|steps| room.map(|()| steps.to_vec()))
            }
            (verdict, _) => self.may_become(verdict.into(), room).map(|status| vec![status]),
        }
    }

    /// If both refuse, names the status: trying again would not help.
    fn may_become(&self, next: TaskStatus, room: Result<(), Refusal>) -> Result<TaskStatus, Refusal> {
        if matches!(self.life, Life::Elsewhere) {
            return room.and(Err(self.busy()));
        }
        let status = self.step(self.status, next)?;
        room.map(|()| status)
    }

    pub(super) fn on_adopt(
        &mut self,
        handling: &mut EventHandling<'_>,
        ticket: Ticket,
        run: RunId,
        terms: RunTerms,
    ) {
        match self.live_run() {
            Some(other) if *other != run => {
                let refusal = Refusal::HasARun { key: self.key.clone(), run: other.clone() };
                return handling.refuse(ticket, refusal);
            }
            Some(_) => {}
            None => self.life = Life::Live(Run::begun(run.clone(), terms, handling.now)),
        }
        match self.status {
            TaskStatus::Draft | TaskStatus::Stopped => self.enter(handling, TaskStatus::Running),
            TaskStatus::Running
            | TaskStatus::Idle
            | TaskStatus::Completed
            | TaskStatus::Failed
            | TaskStatus::Reviewed
            | TaskStatus::Merged => {}
        }
        handling.grant(ticket, Outcome::Adopted { run });
    }
}

fn with(mut waiting: Vec<Ticket>, ticket: Ticket) -> Vec<Ticket> {
    waiting.push(ticket);
    waiting
}

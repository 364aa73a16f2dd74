//! The end of a run, by request or by itself, and what follows.
//!
//! Not here: the requests (see `requests`).

use std::time::Duration;

use super::effect::{Effect, Notice, Outcome};
use super::event_handling::{Answer, EventHandling, Leaving, ShutdownPhase};
use super::refusal::Refusal;
use super::task::{Life, Pressure, Run, Start, Stop, Task, Then};
use crate::exit::RunExit;
use crate::ids::{RunId, Ticket};
use crate::restart::AfterCrash;
use crate::task_status::TaskStatus;

/// The keeper kills by itself when the grace is over. After this time more, the daemon does it.
pub(super) const KILL_BACKSTOP: Duration = Duration::from_secs(5);

/// SIGKILL works at once, unless the kernel holds the process. Callers should not wait for that.
pub(super) const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// For a run that no task expects. Its own terms are unknown.
pub(super) const STRANGERS_GRACE: Duration = Duration::from_secs(2);

impl Task {
    pub(super) fn stop_run(
        &mut self,
        handling: &mut EventHandling<'_>,
        run: Run,
        waiting: Vec<Ticket>,
        then: Then,
    ) -> Life {
        let pressure = match handling.shutdown_phase {
            ShutdownPhase::NotShuttingDown | ShutdownPhase::Stopping => self.ask_to_end(handling, &run),
            ShutdownPhase::Killing => self.kill(handling, &run),
        };
        Life::Stopping(Stop { run, pressure, waiting, then })
    }

    fn ask_to_end(&self, handling: &mut EventHandling<'_>, run: &Run) -> Pressure {
        let grace = run.terms.stop_grace;
        handling.push(Effect::StopRun { key: self.key.clone(), run: run.id.clone(), grace });
        Pressure::Asked { kill_at: handling.now.saturating_add(grace).saturating_add(KILL_BACKSTOP) }
    }

    fn kill(&self, handling: &mut EventHandling<'_>, run: &Run) -> Pressure {
        handling.push(Effect::KillRun { key: self.key.clone(), run: run.id.clone() });
        Pressure::Killed { give_up_at: handling.now.saturating_add(KILL_PATIENCE) }
    }

    pub(super) fn on_tick(&mut self, handling: &mut EventHandling<'_>) {
        self.life = match self.take_life() {
            Life::Stopping(stop) => self.press_harder(handling, stop),
            life => life,
        }
    }

    fn press_harder(&mut self, handling: &mut EventHandling<'_>, mut stop: Stop) -> Life {
        match stop.pressure {
            Pressure::Asked { kill_at }
                if handling.now >= kill_at || handling.shutdown_phase == ShutdownPhase::Killing =>
            {
                stop.pressure = self.kill(handling, &stop.run);
                Life::Stopping(stop)
            }
            Pressure::Killed { give_up_at }
                if handling.now >= give_up_at
                    && handling.shutdown_phase == ShutdownPhase::NotShuttingDown =>
            {
                self.give_up(handling, stop)
            }
            Pressure::Asked { .. } | Pressure::Killed { .. } => Life::Stopping(stop),
        }
    }

    /// The process survived SIGKILL. Marks the run live again and fails every pending stop, so that callers can retry.
    pub(super) fn give_up(&mut self, handling: &mut EventHandling<'_>, stop: Stop) -> Life {
        let Stop { run, waiting, then, .. } = stop;
        handling.report(Notice::WontDie { key: self.key.clone(), run: run.id.clone() });
        let refusal = Refusal::WontDie { key: self.key.clone(), run: run.id.clone() };
        then.dropped(handling, &refusal);
        for ticket in waiting {
            handling.refuse(ticket, refusal.clone());
        }
        Life::Live(run)
    }

    pub(super) fn on_run_exited(&mut self, handling: &mut EventHandling<'_>, ended: RunId, exit: RunExit) {
        self.life = match self.take_life() {
            Life::Live(run) if run.id == ended => self.live_ended(handling, run, exit),
            Life::Stopping(stop) if stop.run.id == ended => self.stopped(handling, stop, exit),
            Life::StartingKeeper(mut launch) => {
                launch.early_exits.push((ended, exit));
                Life::StartingKeeper(launch)
            }
            Life::CancellingKeeper { mut launch, waiting, then } => {
                launch.early_exits.push((ended, exit));
                Life::CancellingKeeper { launch, waiting, then }
            }
            life => {
                self.dismiss(handling, ended);
                life
            }
        }
    }

    fn live_ended(&mut self, handling: &mut EventHandling<'_>, mut run: Run, exit: RunExit) -> Life {
        self.write_down(handling, &run.id, exit);
        if !exit.is_crash() {
            return self.proceed(handling, Then::Rest, Vec::new());
        }
        match self.after_crash(handling, &mut run) {
            AfterCrash::StayDown => self.proceed(handling, Then::Rest, Vec::new()),
            AfterCrash::Restart { attempt } => {
                handling.report(Notice::Restarting { key: self.key.clone(), attempt });
                self.restart(handling, Start::after_crash(run))
            }
            AfterCrash::GiveUp(why) => {
                handling.report(Notice::RestartGivenUp { key: self.key.clone(), why });
                self.proceed(handling, Then::Rest, Vec::new())
            }
        }
    }

    /// The run ended while no daemon was running. It is not restarted: boot spawns nothing.
    pub(super) fn ended_unseen(
        &mut self,
        handling: &mut EventHandling<'_>,
        run: RunId,
        exit: RunExit,
    ) -> Life {
        self.write_down(handling, &run, exit);
        self.proceed(handling, Then::Rest, Vec::new())
    }

    fn after_crash(&self, handling: &EventHandling<'_>, run: &mut Run) -> AfterCrash {
        // A user has called the work completed, failed or reviewed, so its agent is not needed.
        if !self.status.claims_a_process() {
            return AfterCrash::StayDown;
        }
        let lived = handling.now.saturating_sub(run.since);
        run.history.after_crash(run.terms.restart, lived, handling.now)
    }

    fn stopped(&mut self, handling: &mut EventHandling<'_>, stop: Stop, exit: RunExit) -> Life {
        let exit = exit.as_requested();
        self.write_down(handling, &stop.run.id, exit);
        let told = |ticket| (ticket, Ok(Outcome::Stopped { exit }));
        self.proceed(handling, stop.then, stop.waiting.into_iter().map(told).collect())
    }

    /// The exit first: a keeper that is dismissed can be asked no more.
    fn write_down(&self, handling: &mut EventHandling<'_>, run: &RunId, exit: RunExit) {
        handling.push(Effect::WriteExit { key: self.key.clone(), run: run.clone(), exit });
        self.dismiss(handling, run.clone());
        if exit.is_crash() {
            handling.report(Notice::Crashed { key: self.key.clone(), run: run.clone(), exit });
        }
    }

    fn dismiss(&self, handling: &mut EventHandling<'_>, run: RunId) {
        handling.push(Effect::DismissRun { key: self.key.clone(), run });
    }

    pub(super) fn dismiss_all(&self, handling: &mut EventHandling<'_>, exits: Vec<(RunId, RunExit)>) {
        for (run, _) in exits {
            self.dismiss(handling, run);
        }
    }

    /// No start waits for this keeper, so it is stopped, unless its run is the task's own and the report came twice.
    pub(super) fn stop_stranger(&self, handling: &mut EventHandling<'_>, run: RunId) {
        if self.live_run() == Some(&run) {
            return;
        }
        let key = self.key.clone();
        handling.push(match handling.shutdown_phase {
            ShutdownPhase::NotShuttingDown | ShutdownPhase::Stopping => {
                Effect::StopRun { key, run, grace: STRANGERS_GRACE }
            }
            ShutdownPhase::Killing => Effect::KillRun { key, run },
        });
    }

    /// No process lives and none may start: takes the next step.
    pub(super) fn proceed(
        &mut self,
        handling: &mut EventHandling<'_>,
        then: Then,
        answers: Vec<(Ticket, Answer)>,
    ) -> Life {
        match then {
            Then::Rest => {
                self.settle(handling);
                handling.answer_all(answers);
                Life::Resting
            }
            Then::Start(start) => {
                handling.answer_all(answers);
                self.begin(handling, start)
            }
            Then::Remove(ticket) => {
                self.settle(handling);
                handling.answer_all(answers);
                handling.grant(ticket, Outcome::ReadyToRemove);
                handling.leave(Leaving::Removed);
                Life::Resting
            }
        }
    }

    /// Without a process a task may not claim one.
    pub(super) fn settle(&mut self, handling: &mut EventHandling<'_>) {
        if self.status.claims_a_process() {
            self.enter(handling, TaskStatus::Stopped);
        }
    }

    pub(super) fn enter(&mut self, handling: &mut EventHandling<'_>, status: TaskStatus) {
        self.status = status;
        handling.write_status(&self.key, status);
    }
}

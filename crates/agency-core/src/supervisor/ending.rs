//! The end of a run, by request or by itself, and what follows.
//!
//! Not here: the requests (see `requests`).

use std::time::Duration;

use super::effect::{Effect, Notice, Outcome};
use super::refusal::Refusal;
use super::task::{Life, Pressure, Run, Start, Stop, Task, Then};
use super::turn::{Answer, Hours, Leaving, Turn};
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
        turn: &mut Turn<'_>,
        run: Run,
        waiting: Vec<Ticket>,
        then: Then,
    ) -> Life {
        let pressure = match turn.hours {
            Hours::Open | Hours::Closing => self.ask_to_end(turn, &run),
            Hours::Overtime => self.kill(turn, &run),
        };
        Life::Stopping(Stop { run, pressure, waiting, then })
    }

    fn ask_to_end(&self, turn: &mut Turn<'_>, run: &Run) -> Pressure {
        let grace = run.terms.stop_grace;
        turn.push(Effect::StopRun { key: self.key.clone(), run: run.id.clone(), grace });
        Pressure::Asked { kill_at: turn.now.saturating_add(grace).saturating_add(KILL_BACKSTOP) }
    }

    fn kill(&self, turn: &mut Turn<'_>, run: &Run) -> Pressure {
        turn.push(Effect::KillRun { key: self.key.clone(), run: run.id.clone() });
        Pressure::Killed { give_up_at: turn.now.saturating_add(KILL_PATIENCE) }
    }

    pub(super) fn on_tick(&mut self, turn: &mut Turn<'_>) {
        self.life = match self.take_life() {
            Life::Stopping(stop) => self.press_harder(turn, stop),
            life => life,
        }
    }

    fn press_harder(&mut self, turn: &mut Turn<'_>, mut stop: Stop) -> Life {
        match stop.pressure {
            Pressure::Asked { kill_at } if turn.now >= kill_at || turn.hours == Hours::Overtime => {
                stop.pressure = self.kill(turn, &stop.run);
                Life::Stopping(stop)
            }
            Pressure::Killed { give_up_at } if turn.now >= give_up_at && turn.hours == Hours::Open => {
                self.give_up(turn, stop)
            }
            Pressure::Asked { .. } | Pressure::Killed { .. } => Life::Stopping(stop),
        }
    }

    /// The process survived SIGKILL. Marks the run live again and fails every pending stop, so that callers can retry.
    pub(super) fn give_up(&mut self, turn: &mut Turn<'_>, stop: Stop) -> Life {
        let Stop { run, waiting, then, .. } = stop;
        turn.report(Notice::WontDie { key: self.key.clone(), run: run.id.clone() });
        let refusal = Refusal::WontDie { key: self.key.clone(), run: run.id.clone() };
        then.dropped(turn, &refusal);
        for ticket in waiting {
            turn.refuse(ticket, refusal.clone());
        }
        Life::Live(run)
    }

    pub(super) fn on_run_exited(&mut self, turn: &mut Turn<'_>, ended: RunId, exit: RunExit) {
        self.life = match self.take_life() {
            Life::Live(run) if run.id == ended => self.live_ended(turn, run, exit),
            Life::Stopping(stop) if stop.run.id == ended => self.stopped(turn, stop, exit),
            Life::StartingKeeper(mut launch) => {
                launch.early_exits.push((ended, exit));
                Life::StartingKeeper(launch)
            }
            Life::CancellingKeeper { mut launch, waiting, then } => {
                launch.early_exits.push((ended, exit));
                Life::CancellingKeeper { launch, waiting, then }
            }
            life => {
                self.dismiss(turn, ended);
                life
            }
        }
    }

    fn live_ended(&mut self, turn: &mut Turn<'_>, mut run: Run, exit: RunExit) -> Life {
        self.write_down(turn, &run.id, exit);
        if !exit.is_crash() {
            return self.proceed(turn, Then::Rest, Vec::new());
        }
        match self.after_crash(turn, &mut run) {
            AfterCrash::StayDown => self.proceed(turn, Then::Rest, Vec::new()),
            AfterCrash::Restart { attempt } => {
                turn.report(Notice::Restarting { key: self.key.clone(), attempt });
                self.restart(turn, Start::after_crash(run))
            }
            AfterCrash::GiveUp(why) => {
                turn.report(Notice::RestartGivenUp { key: self.key.clone(), why });
                self.proceed(turn, Then::Rest, Vec::new())
            }
        }
    }

    /// The run ended while no daemon was running. It is not restarted: boot spawns nothing.
    pub(super) fn ended_unseen(&mut self, turn: &mut Turn<'_>, run: RunId, exit: RunExit) -> Life {
        self.write_down(turn, &run, exit);
        self.proceed(turn, Then::Rest, Vec::new())
    }

    fn after_crash(&self, turn: &Turn<'_>, run: &mut Run) -> AfterCrash {
        // A user has called the work completed, failed or reviewed, so its agent is not needed.
        if !self.status.claims_a_process() {
            return AfterCrash::StayDown;
        }
        let lived = turn.now.saturating_sub(run.since);
        run.history.after_crash(run.terms.restart, lived, turn.now)
    }

    fn stopped(&mut self, turn: &mut Turn<'_>, stop: Stop, exit: RunExit) -> Life {
        let exit = exit.as_requested();
        self.write_down(turn, &stop.run.id, exit);
        let told = |ticket| (ticket, Ok(Outcome::Stopped { exit }));
        self.proceed(turn, stop.then, stop.waiting.into_iter().map(told).collect())
    }

    /// The exit first: a keeper that is dismissed can be asked no more.
    fn write_down(&self, turn: &mut Turn<'_>, run: &RunId, exit: RunExit) {
        turn.push(Effect::WriteExit { key: self.key.clone(), run: run.clone(), exit });
        self.dismiss(turn, run.clone());
        if exit.is_crash() {
            turn.report(Notice::Crashed { key: self.key.clone(), run: run.clone(), exit });
        }
    }

    fn dismiss(&self, turn: &mut Turn<'_>, run: RunId) {
        turn.push(Effect::DismissRun { key: self.key.clone(), run });
    }

    pub(super) fn dismiss_all(&self, turn: &mut Turn<'_>, exits: Vec<(RunId, RunExit)>) {
        for (run, _) in exits {
            self.dismiss(turn, run);
        }
    }

    /// No start waits for this keeper, so it is stopped, unless its run is the task's own and the report came twice.
    pub(super) fn stop_stranger(&self, turn: &mut Turn<'_>, run: RunId) {
        if self.live_run() == Some(&run) {
            return;
        }
        let key = self.key.clone();
        turn.push(match turn.hours {
            Hours::Open | Hours::Closing => Effect::StopRun { key, run, grace: STRANGERS_GRACE },
            Hours::Overtime => Effect::KillRun { key, run },
        });
    }

    /// No process lives and none may start: takes the next step.
    pub(super) fn proceed(
        &mut self,
        turn: &mut Turn<'_>,
        then: Then,
        answers: Vec<(Ticket, Answer)>,
    ) -> Life {
        match then {
            Then::Rest => {
                self.settle(turn);
                turn.answer_all(answers);
                Life::Resting
            }
            Then::Start(start) => {
                turn.answer_all(answers);
                self.begin(turn, start)
            }
            Then::Remove(ticket) => {
                self.settle(turn);
                turn.answer_all(answers);
                turn.grant(ticket, Outcome::ReadyToRemove);
                turn.leave(Leaving::Removed);
                Life::Resting
            }
        }
    }

    /// Without a process a task may not claim one.
    pub(super) fn settle(&mut self, turn: &mut Turn<'_>) {
        if self.status.claims_a_process() {
            self.enter(turn, TaskStatus::Stopped);
        }
    }

    pub(super) fn enter(&mut self, turn: &mut Turn<'_>, status: TaskStatus) {
        self.status = status;
        turn.write_status(&self.key, status);
    }
}

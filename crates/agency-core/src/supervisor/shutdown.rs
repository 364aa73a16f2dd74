//! The end of the daemon together with its agents: all in parallel, each with its grace, and one limit for all.
//!
//! Not here: an end of the daemon that leaves the agents running. It needs no decision.

use super::effect::{Effect, Outcome};
use super::ending::KILL_PATIENCE;
use super::event_handling::{EventHandling, ShutdownPhase};
use super::refusal::Refusal;
use super::task::{Launch, Life, Pressure, Stop, Task, Then};
use super::{Phase, Supervisor};
use crate::Time;
use crate::ids::Ticket;

/// A shutdown under way.
#[derive(Debug)]
pub(super) struct Closing {
    tickets: Vec<Ticket>,
    limit: Limit,
}

#[derive(Debug)]
enum Limit {
    Grace {
        until: Time,
    },
    /// Everything was killed. The next daemon finds what has not ended by this time.
    Kill {
        until: Time,
    },
}

impl Closing {
    pub(super) fn shutdown_phase(&self) -> ShutdownPhase {
        match self.limit {
            Limit::Grace { .. } => ShutdownPhase::Stopping,
            Limit::Kill { .. } => ShutdownPhase::Killing,
        }
    }
}

impl Supervisor {
    pub(super) fn on_shutdown(&mut self, now: Time, ticket: Ticket) -> Vec<Effect> {
        match &mut self.phase {
            Phase::Open => {
                let until = now.saturating_add(self.limits.shutdown_timeout);
                self.phase = Phase::Closing(Closing { tickets: vec![ticket], limit: Limit::Grace { until } });
                self.each_task(now, Task::on_shutdown)
            }
            Phase::Closing(closing) => {
                closing.tickets.push(ticket);
                Vec::new()
            }
            Phase::Closed => {
                vec![Effect::Reply { ticket, outcome: Ok(Outcome::ShutDown { still_alive: Vec::new() }) }]
            }
        }
    }

    /// Kills everything when the limit for all is reached.
    pub(super) fn press_on(&mut self, now: Time) {
        if let Phase::Closing(closing) = &mut self.phase
            && let Limit::Grace { until } = closing.limit
            && now >= until
        {
            closing.limit = Limit::Kill { until: now.saturating_add(KILL_PATIENCE) };
        }
    }

    /// When a shutdown needs a tick: at the limit for all, and when the daemon may leave the last process behind.
    pub(super) fn closing_deadline(&self, closing: &Closing) -> Option<Time> {
        match closing.limit {
            Limit::Grace { until } => Some(until),
            Limit::Kill { until } => self.tasks.values().filter_map(|task| task.left_at(until)).max(),
        }
    }

    pub(super) fn close_when_quiet(&mut self, now: Time) -> Vec<Effect> {
        let Phase::Closing(closing) = &self.phase else {
            return Vec::new();
        };
        let may_close = match closing.limit {
            Limit::Grace { .. } => self.tasks.values().all(Task::is_quiet),
            Limit::Kill { .. } => self.closing_deadline(closing).is_none_or(|left_at| now >= left_at),
        };
        if may_close { self.close(now) } else { Vec::new() }
    }

    fn close(&mut self, now: Time) -> Vec<Effect> {
        let still_alive: Vec<_> = self.live_runs().map(|(key, _)| key.clone()).collect();
        let mut effects = self.each_task(now, Task::abandon);
        if let Phase::Closing(closing) = std::mem::replace(&mut self.phase, Phase::Closed) {
            let outcome = Ok(Outcome::ShutDown { still_alive });
            effects.extend(
                closing.tickets.into_iter().map(|ticket| Effect::Reply { ticket, outcome: outcome.clone() }),
            );
        }
        effects.push(Effect::Quit);
        effects
    }
}

impl Task {
    /// Ends all agents at once, each with its own grace.
    pub(super) fn on_shutdown(&mut self, handling: &mut EventHandling<'_>) {
        let closing = Refusal::ShuttingDown;
        self.life = match self.take_life() {
            Life::Elsewhere => Life::Elsewhere,
            Life::Resting => Life::Resting,
            Life::MakingWorkspace { epoch, start } => {
                start.answer(handling, &Err(closing));
                Life::CancellingWorkspace { epoch, waiting: Vec::new(), then: Then::Rest }
            }
            Life::SettingUp { epoch, start } => {
                start.answer(handling, &Err(closing));
                self.end_setup(handling, epoch, Vec::new(), Then::Rest)
            }
            Life::StartingKeeper(launch) => {
                let launch = launch.unwanted(handling, &closing);
                Life::CancellingKeeper { launch, waiting: Vec::new(), then: Then::Rest }
            }
            Life::RestartHeld(start) => self.proceed(handling, Then::Rest, start.answers(&Err(closing))),
            Life::Live(run) => self.stop_run(handling, run, Vec::new(), Then::Rest),
            life @ (Life::Stopping(_)
            | Life::CancellingWorkspace { .. }
            | Life::CancellingSetup { .. }
            | Life::CancellingKeeper { .. }
            | Life::UndoingWorkspace { .. }) => life.and_then(|then| then.dropped(handling, &closing)),
            Life::UndoingTask { epoch, answers } => Life::UndoingTask { epoch, answers },
        }
    }

    /// When everything was killed: how long the daemon waits for this task. A process that was killed late has its time too.
    fn left_at(&self, until: Time) -> Option<Time> {
        match &self.life {
            Life::Elsewhere | Life::Resting => None,
            Life::Stopping(Stop { pressure: Pressure::Killed { give_up_at }, .. }) => Some(*give_up_at),
            Life::Stopping(_)
            | Life::MakingWorkspace { .. }
            | Life::SettingUp { .. }
            | Life::StartingKeeper(_)
            | Life::RestartHeld(_)
            | Life::Live(_)
            | Life::CancellingWorkspace { .. }
            | Life::CancellingSetup { .. }
            | Life::CancellingKeeper { .. }
            | Life::UndoingWorkspace { .. }
            | Life::UndoingTask { .. } => Some(until),
        }
    }

    /// The daemon ends now. Every caller gets an answer. The next daemon finds the processes that still live.
    pub(super) fn abandon(&mut self, handling: &mut EventHandling<'_>) {
        match self.take_life() {
            Life::Elsewhere | Life::Resting | Life::Live(_) => {}
            Life::MakingWorkspace { start, .. }
            | Life::SettingUp { start, .. }
            | Life::StartingKeeper(Launch { start, .. })
            | Life::RestartHeld(start) => {
                start.answer(handling, &Err(Refusal::ShuttingDown));
            }
            Life::Stopping(stop) => drop(self.give_up(handling, stop)),
            Life::CancellingWorkspace { waiting, then, .. }
            | Life::CancellingSetup { waiting, then, .. }
            | Life::CancellingKeeper { waiting, then, .. } => {
                then.dropped(handling, &Refusal::ShuttingDown);
                for ticket in waiting {
                    handling.refuse(ticket, Refusal::ShuttingDown);
                }
            }
            Life::UndoingWorkspace { answers, then, .. } => {
                then.dropped(handling, &Refusal::ShuttingDown);
                handling.answer_all(answers);
            }
            Life::UndoingTask { answers, .. } => handling.answer_all(answers),
        }
    }
}

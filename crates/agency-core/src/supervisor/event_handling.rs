//! The handling of one event: its time, and the effects that it leads to.
//!
//! Not here: decisions. This file only collects them.

use super::effect::{Effect, Notice, Outcome};
use super::refusal::Refusal;
use crate::Time;
use crate::ids::{Epoch, TaskKey, Ticket};
use crate::task_status::TaskStatus;

pub(super) type Answer = Result<Outcome, Refusal>;

/// How far the end of the daemon with all its agents is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShutdownPhase {
    NotShuttingDown,
    /// Nothing new begins, and every agent has its grace.
    Stopping,
    /// The time for graces is over: the daemon kills every process that is left.
    Killing,
}

/// The handling of one event.
pub(super) struct EventHandling<'a> {
    pub(super) now: Time,
    pub(super) shutdown_phase: ShutdownPhase,
    /// The daemon carries out an operation on the task's files.
    pub(super) are_files_changing: bool,
    last_epoch: &'a mut Epoch,
    effects: Vec<Effect>,
    leaving: Leaving,
}

/// Whether the task stays in the supervisor's memory after the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    Stays,
    /// Its file goes at once.
    Forgotten,
    /// The daemon removes its workspace and its file.
    Removed,
}

impl<'a> EventHandling<'a> {
    pub(super) fn new(
        now: Time,
        shutdown_phase: ShutdownPhase,
        are_files_changing: bool,
        last_epoch: &'a mut Epoch,
    ) -> Self {
        EventHandling {
            now,
            shutdown_phase,
            are_files_changing,
            last_epoch,
            effects: Vec::new(),
            leaving: Leaving::Stays,
        }
    }

    pub(super) fn next_epoch(&mut self) -> Epoch {
        self.last_epoch.0 += 1;
        *self.last_epoch
    }

    pub(super) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub(super) fn report(&mut self, notice: Notice) {
        self.push(Effect::Report(notice));
    }

    pub(super) fn write_status(&mut self, key: &TaskKey, status: TaskStatus) {
        self.push(Effect::WriteStatus { key: key.clone(), status });
    }

    pub(super) fn answer(&mut self, ticket: Ticket, outcome: Answer) {
        self.push(Effect::Reply { ticket, outcome });
    }

    pub(super) fn grant(&mut self, ticket: Ticket, outcome: Outcome) {
        self.answer(ticket, Ok(outcome));
    }

    pub(super) fn refuse(&mut self, ticket: Ticket, refusal: Refusal) {
        self.answer(ticket, Err(refusal));
    }

    pub(super) fn answer_all(&mut self, answers: Vec<(Ticket, Answer)>) {
        for (ticket, outcome) in answers {
            self.answer(ticket, outcome);
        }
    }

    pub(super) fn leave(&mut self, leaving: Leaving) {
        self.leaving = leaving;
    }

    /// The effects, and what becomes of the task.
    pub(super) fn finish(self) -> (Vec<Effect>, Leaving) {
        (self.effects, self.leaving)
    }
}

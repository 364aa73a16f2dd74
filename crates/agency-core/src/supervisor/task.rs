//! One task in the supervisor's memory: its status, and the life of its agent's process.
//!
//! Not here: the events that change it (see `requests`, `launch`, `ending`).
//!
//! Invariant: a task has at most one process, live or about to start. The supervisor waits for everything that may still
//! start one, even after the start was cancelled.

use super::effect::StartCause;
use super::event::{MadeBy, Origin, RunTerms, StartPlan};
use super::event_handling::{Answer, EventHandling};
use super::occupation::Occupation;
use super::refusal::Refusal;
use crate::Time;
use crate::exit::RunExit;
use crate::ids::{Epoch, RunId, TaskKey, Ticket};
use crate::restart::RestartHistory;
use crate::task_status::TaskStatus;

#[derive(Debug)]
pub(super) struct Task {
    pub(super) key: TaskKey,
    pub(super) status: TaskStatus,
    pub(super) life: Life,
}

#[derive(Debug)]
pub(super) enum Life {
    /// Another host holds it. Agency only shows it here.
    Elsewhere,
    Resting,
    MakingWorkspace {
        epoch: Epoch,
        start: Start,
    },
    /// Commands of the user run in the workspace.
    SettingUp {
        epoch: Epoch,
        start: Start,
    },
    StartingKeeper(Launch),
    /// The agent crashed while the daemon changed its files. It starts again when they have settled.
    RestartHeld(Start),
    Live(Run),
    Stopping(Stop),
    /// The start was cancelled while its workspace is being made.
    CancellingWorkspace {
        epoch: Epoch,
        waiting: Vec<Ticket>,
        then: Then,
    },
    /// The start was cancelled, and its setup is being ended.
    CancellingSetup {
        epoch: Epoch,
        waiting: Vec<Ticket>,
        then: Then,
    },
    /// The start was cancelled while its keeper is being started.
    CancellingKeeper {
        launch: Launch,
        waiting: Vec<Ticket>,
        then: Then,
    },
    /// A start failed, and its workspace is being removed again.
    UndoingWorkspace {
        epoch: Epoch,
        answers: Vec<(Ticket, Answer)>,
        then: Then,
    },
    /// The same, and its task file goes too.
    UndoingTask {
        epoch: Epoch,
        answers: Vec<(Ticket, Answer)>,
    },
}

/// A start that a caller waits for, or that follows a crash.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) tickets: Vec<Ticket>,
    pub(super) plan: StartPlan,
    pub(super) cause: StartCause,
    pub(super) aim: Aim,
    pub(super) history: RestartHistory,
}

/// How far a start is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    Agent,
    /// Only until the workspace is ready.
    Workspace,
}

#[derive(Debug)]
pub(super) struct Launch {
    pub(super) epoch: Epoch,
    pub(super) start: Start,
    pub(super) workspace: MadeBy,
    /// Exits that were reported before their keeper was ready: an agent may die within its first millisecond.
    pub(super) early_exits: Vec<(RunId, RunExit)>,
}

#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: RunId,
    pub(super) terms: RunTerms,
    pub(super) since: Time,
    pub(super) history: RestartHistory,
}

#[derive(Debug)]
pub(super) struct Stop {
    pub(super) run: Run,
    pub(super) pressure: Pressure,
    pub(super) waiting: Vec<Ticket>,
    pub(super) then: Then,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Pressure {
    Asked { kill_at: Time },
    Killed { give_up_at: Time },
}

/// The next step after the process, or the start of one, has ended.
#[derive(Debug)]
pub(super) enum Then {
    Rest,
    Start(Start),
    Remove(Ticket),
}

impl Task {
    pub(super) fn resting(key: TaskKey, status: TaskStatus) -> Self {
        Task { key, status, life: Life::Resting }
    }

    /// For handlers, which put the next life in its place.
    pub(super) fn take_life(&mut self) -> Life {
        std::mem::replace(&mut self.life, Life::Resting)
    }

    pub(super) fn live_run(&self) -> Option<&RunId> {
        match &self.life {
            Life::Live(run) | Life::Stopping(Stop { run, .. }) => Some(&run.id),
            Life::Elsewhere
            | Life::Resting
            | Life::MakingWorkspace { .. }
            | Life::SettingUp { .. }
            | Life::StartingKeeper(_)
            | Life::RestartHeld(_)
            | Life::CancellingWorkspace { .. }
            | Life::CancellingSetup { .. }
            | Life::CancellingKeeper { .. }
            | Life::UndoingWorkspace { .. }
            | Life::UndoingTask { .. } => None,
        }
    }

    /// A process lives or may start, so the task counts against the limit.
    pub(super) fn holds_slot(&self) -> bool {
        match &self.life {
            Life::MakingWorkspace { start, .. } | Life::SettingUp { start, .. } => start.takes_slot(),
            Life::StartingKeeper(Launch { start, .. }) | Life::RestartHeld(start) => start.takes_slot(),
            Life::Live(run) | Life::Stopping(Stop { run, then: Then::Rest | Then::Remove(_), .. }) => {
                run.terms.takes_slot
            }
            Life::Stopping(Stop { run, then: Then::Start(start), .. }) => {
                run.terms.takes_slot || start.takes_slot()
            }
            Life::CancellingKeeper { launch, then, .. } => launch.start.takes_slot() || then.takes_slot(),
            Life::CancellingWorkspace { then, .. }
            | Life::CancellingSetup { then, .. }
            | Life::UndoingWorkspace { then, .. } => then.takes_slot(),
            Life::Elsewhere | Life::Resting | Life::UndoingTask { .. } => false,
        }
    }

    /// Nothing is in flight and nothing lives here.
    pub(super) fn is_quiet(&self) -> bool {
        matches!(self.life, Life::Elsewhere | Life::Resting)
    }

    pub(super) fn occupation(&self) -> Occupation {
        match &self.life {
            Life::Elsewhere => Occupation::Elsewhere,
            Life::Resting => Occupation::Free,
            Life::Live(_) => Occupation::Live,
            Life::MakingWorkspace { start, .. }
            | Life::StartingKeeper(Launch { start, .. })
            | Life::RestartHeld(start) => start.occupation(),
            Life::SettingUp { .. } => Occupation::SettingUp,
            Life::Stopping(stop) => stop.then.occupation(Occupation::Stopping),
            Life::CancellingWorkspace { then, .. }
            | Life::CancellingSetup { then, .. }
            | Life::CancellingKeeper { then, .. } => then.occupation(Occupation::Cancelling),
            Life::UndoingWorkspace { then, .. } => then.occupation(Occupation::CleaningUp),
            Life::UndoingTask { .. } => Occupation::Removing,
        }
    }

    /// When this task needs a tick. During a shutdown another deadline applies to processes that survive SIGKILL.
    pub(super) fn deadline(&self, shutting_down: bool) -> Option<Time> {
        let Life::Stopping(stop) = &self.life else {
            return None;
        };
        match stop.pressure {
            Pressure::Asked { kill_at } => Some(kill_at),
            Pressure::Killed { .. } if shutting_down => None,
            Pressure::Killed { give_up_at } => Some(give_up_at),
        }
    }

    pub(super) fn busy(&self) -> Refusal {
        Refusal::Busy { key: self.key.clone(), doing: self.occupation() }
    }

    pub(super) fn cancelled(&self) -> Refusal {
        Refusal::Cancelled { key: self.key.clone() }
    }
}

impl Life {
    /// The same life with another next step, if it has one.
    pub(super) fn and_then(self, change: impl FnOnce(Then) -> Then) -> Life {
        match self {
            Life::Stopping(stop) => Life::Stopping(Stop { then: change(stop.then), ..stop }),
            Life::CancellingWorkspace { epoch, waiting, then } => {
                Life::CancellingWorkspace { epoch, waiting, then: change(then) }
            }
            Life::CancellingSetup { epoch, waiting, then } => {
                Life::CancellingSetup { epoch, waiting, then: change(then) }
            }
            Life::CancellingKeeper { launch, waiting, then } => {
                Life::CancellingKeeper { launch, waiting, then: change(then) }
            }
            Life::UndoingWorkspace { epoch, answers, then } => {
                Life::UndoingWorkspace { epoch, answers, then: change(then) }
            }
            Life::Elsewhere
            | Life::Resting
            | Life::MakingWorkspace { .. }
            | Life::SettingUp { .. }
            | Life::StartingKeeper(_)
            | Life::RestartHeld(_)
            | Life::Live(_)
            | Life::UndoingTask { .. } => self,
        }
    }
}

impl Launch {
    /// Refuses the callers of the start at once. The supervisor still waits for the keeper.
    pub(super) fn unwanted(mut self, handling: &mut EventHandling<'_>, refusal: &Refusal) -> Self {
        for ticket in std::mem::take(&mut self.start.tickets) {
            handling.refuse(ticket, refusal.clone());
        }
        self
    }
}

impl Start {
    pub(super) fn requested(ticket: Ticket, plan: StartPlan, cause: StartCause) -> Self {
        Start { tickets: vec![ticket], plan, cause, aim: Aim::Agent, history: RestartHistory::default() }
    }

    pub(super) fn only_of_workspace(ticket: Ticket, plan: StartPlan) -> Self {
        Start { aim: Aim::Workspace, ..Start::requested(ticket, plan, StartCause::Asked) }
    }

    pub(super) fn after_crash(run: Run) -> Self {
        let plan = StartPlan { task: Origin::Existing, terms: run.terms };
        let (cause, aim) = (StartCause::Crash, Aim::Agent);
        Start { tickets: Vec::new(), plan, cause, aim, history: run.history }
    }

    /// Another caller waits for the same start. From now on it counts as requested, even if a crash caused it.
    pub(super) fn join(&mut self, other: Start) {
        self.tickets.extend(other.tickets);
        self.history = other.history;
        if (self.aim, other.aim) == (Aim::Workspace, Aim::Agent) {
            (self.aim, self.plan.terms) = (other.aim, other.plan.terms);
        }
        match self.cause {
            StartCause::Asked | StartCause::Restarted => {}
            StartCause::Crash => self.cause = other.cause,
        }
    }

    pub(super) fn answer(self, handling: &mut EventHandling<'_>, outcome: &Answer) {
        for ticket in self.tickets {
            handling.answer(ticket, outcome.clone());
        }
    }

    pub(super) fn answers(self, outcome: &Answer) -> Vec<(Ticket, Answer)> {
        self.tickets.into_iter().map(|ticket| (ticket, outcome.clone())).collect()
    }

    /// Whether the agent of this start will count against the limit.
    pub(super) fn takes_slot(&self) -> bool {
        self.aim == Aim::Agent && self.plan.terms.takes_slot
    }

    fn occupation(&self) -> Occupation {
        match self.cause {
            StartCause::Asked => Occupation::Starting,
            StartCause::Restarted | StartCause::Crash => Occupation::Restarting,
        }
    }
}

impl Run {
    pub(super) fn begun(id: RunId, terms: RunTerms, now: Time) -> Self {
        Run { id, terms, since: now, history: RestartHistory::default() }
    }
}

impl Then {
    fn takes_slot(&self) -> bool {
        match self {
            Then::Start(start) => start.takes_slot(),
            Then::Rest | Then::Remove(_) => false,
        }
    }

    fn occupation(&self, otherwise: Occupation) -> Occupation {
        match self {
            Then::Rest => otherwise,
            Then::Start(start) => start.occupation(),
            Then::Remove(_) => Occupation::Removing,
        }
    }

    /// Adds a start. It joins a start that is planned already, and is refused before a removal.
    pub(super) fn and_start(self, handling: &mut EventHandling<'_>, key: &TaskKey, wanted: Start) -> Then {
        match self {
            Then::Rest => Then::Start(wanted),
            Then::Start(mut start) => {
                start.join(wanted);
                Then::Start(start)
            }
            Then::Remove(ticket) => {
                let refusal = Refusal::Busy { key: key.clone(), doing: Occupation::Removing };
                wanted.answer(handling, &Err(refusal));
                Then::Remove(ticket)
            }
        }
    }

    /// Adds a removal. There can be only one.
    pub(super) fn and_remove(self, handling: &mut EventHandling<'_>, key: &TaskKey, ticket: Ticket) -> Then {
        match self {
            Then::Rest => Then::Remove(ticket),
            Then::Start(start) => {
                start.answer(handling, &Err(Refusal::Cancelled { key: key.clone() }));
                Then::Remove(ticket)
            }
            Then::Remove(first) => {
                handling.refuse(ticket, Refusal::Busy { key: key.clone(), doing: Occupation::Removing });
                Then::Remove(first)
            }
        }
    }

    /// After a stop no start may follow.
    pub(super) fn but_no_start(self, handling: &mut EventHandling<'_>, key: &TaskKey) -> Then {
        match self {
            Then::Start(start) => {
                start.answer(handling, &Err(Refusal::Cancelled { key: key.clone() }));
                Then::Rest
            }
            Then::Rest | Then::Remove(_) => self,
        }
    }

    /// Nothing may follow.
    pub(super) fn dropped(self, handling: &mut EventHandling<'_>, refusal: &Refusal) -> Then {
        match self {
            Then::Rest => {}
            Then::Start(start) => start.answer(handling, &Err(refusal.clone())),
            Then::Remove(ticket) => handling.refuse(ticket, refusal.clone()),
        }
        Then::Rest
    }
}

//! The lifecycle of every task. Events go in: requests, reports of the daemon, and time. Effects come out.
//!
//! Not here: carrying out the effects. The daemon does that, and reports the results as events.
//!
//! Invariants: a task never has two processes; a status is written after its effect; every ticket is answered
//! exactly once; a late answer to a request that is no longer open changes nothing.

mod effect;
mod ending;
mod event;
mod event_handling;
mod exclusion;
mod found;
mod launch;
mod occupation;
mod refusal;
mod requests;
mod shutdown;
mod task;

use std::collections::BTreeMap;
use std::time::Duration;

pub use effect::{Effect, Notice, Outcome, StartCause};
pub use event::{Event, FoundRun, FoundTask, MadeBy, Origin, Readiness, RunTerms, StartPlan, Verdict};
pub use exclusion::AgentActivity;
pub use occupation::{Occupation, Operation, Permit};
pub use refusal::{Refusal, way_to_agent};

use crate::Time;
use crate::ids::{Epoch, RunId, TaskKey, Ticket};
use crate::task_status::TaskStatus;
use ending::STRANGERS_GRACE;
use event_handling::{EventHandling, Leaving, ShutdownPhase};
use exclusion::Works;
use shutdown::Closing;
use task::{Aim, Launch, Life, Start, Task};

/// Limits over all tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Live runs of all projects together; 0 means no limit.
    pub max_agents: u32,
    /// The time for all graces together. Then SIGKILL follows.
    pub shutdown_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_agents: 10, shutdown_timeout: Duration::from_secs(30) }
    }
}

/// The state of the process of a task that speaks stream-json.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamState {
    /// No process was started.
    Idle,
    /// The process lives.
    Running,
    /// The process crashed, and a restart is due.
    Error,
    /// The process ended: by request, by itself, or after too many crashes.
    Stopped,
}

/// The state of every task, and the decisions about it.
#[derive(Debug)]
pub struct Supervisor {
    limits: Limits,
    tasks: BTreeMap<TaskKey, Task>,
    /// Operations that the daemon carries out.
    works: Works,
    last_epoch: Epoch,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Open,
    Closing(Closing),
    Closed,
}

impl Supervisor {
    /// A supervisor that knows no task.
    pub fn new(limits: Limits) -> Self {
        Supervisor {
            limits,
            tasks: BTreeMap::new(),
            works: Works::default(),
            last_epoch: Epoch(0),
            phase: Phase::Open,
        }
    }

    /// A lower limit ends no run that lives already.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Handles one event and returns the orders that follow, in order.
    pub fn handle(&mut self, now: Time, event: Event) -> Vec<Effect> {
        let mut effects = self.route(now, event);
        effects.extend(self.close_when_quiet(now));
        effects
    }

    fn route(&mut self, now: Time, event: Event) -> Vec<Effect> {
        match event {
            Event::Booted { tasks } => self.on_booted(now, tasks),
            Event::TaskSeen(found) => self.on_task_seen(now, found),
            Event::Start { key, ticket, plan } => {
                self.on_start(now, key, Start::requested(ticket, plan, StartCause::Asked))
            }
            Event::Restart { key, ticket, plan } => {
                self.on_start(now, key, Start::requested(ticket, plan, StartCause::Restarted))
            }
            Event::SetUp { key, ticket, plan } => {
                self.on_start(now, key, Start::only_of_workspace(ticket, plan))
            }
            Event::Stop { key, ticket } => {
                self.request(now, key, ticket, Operation::Stop, |task, handling| {
                    task.on_stop(handling, ticket)
                })
            }
            Event::Idle { key, ticket } => {
                let room = self.may_begin(&key, Operation::Pause, AgentActivity::AtWork);
                self.with_known(now, key, ticket, |task, handling| task.on_idle(handling, ticket, room))
            }
            Event::Mark { key, ticket, verdict } => {
                let room = self.may_begin(&key, Operation::Mark, AgentActivity::AtWork);
                self.with_known(now, key, ticket, |task, handling| {
                    task.on_mark(handling, ticket, verdict, room)
                })
            }
            Event::Remove { key, ticket, discard } => {
                let operation = if discard { Operation::Discard } else { Operation::Remove };
                self.request(now, key, ticket, operation, |task, handling| task.on_remove(handling, ticket))
            }
            Event::Adopt { key, ticket, run, terms } => {
                self.request(now, key, ticket, Operation::Adopt, |task, handling| {
                    task.on_adopt(handling, ticket, run, terms)
                })
            }
            Event::Shutdown { ticket } => self.on_shutdown(now, ticket),
            Event::WorkspaceMade { key, epoch, made_by, readiness } => {
                self.with_task(now, &key, |task, handling| {
                    task.on_workspace_made(handling, epoch, made_by, readiness)
                })
            }
            Event::WorkspaceFailed { key, epoch, error } => {
                self.with_task(now, &key, |task, handling| task.on_workspace_failed(handling, epoch, error))
            }
            Event::WorkspaceUndone { key, epoch } => {
                self.with_task(now, &key, |task, handling| task.on_workspace_undone(handling, epoch))
            }
            Event::SetupDone { key, epoch } => {
                self.with_task(now, &key, |task, handling| task.on_setup_done(handling, epoch))
            }
            Event::SetupFailed { key, epoch, error } => {
                self.with_task(now, &key, |task, handling| task.on_setup_failed(handling, epoch, error))
            }
            Event::KeeperReady { key, epoch, run } => self.on_keeper_ready(now, key, epoch, run),
            Event::KeeperFailed { key, epoch, error } => {
                self.with_task(now, &key, |task, handling| task.on_keeper_failed(handling, epoch, error))
            }
            Event::RunExited { key, run, .. } if !self.tasks.contains_key(&key) => {
                vec![Effect::DismissRun { key, run }]
            }
            Event::RunExited { key, run, exit } => {
                self.with_task(now, &key, |task, handling| task.on_run_exited(handling, run, exit))
            }
            Event::Finished { key, operation } => self.on_finished(now, &key, operation),
            Event::Tick => self.on_tick(now),
        }
    }

    /// When `Event::Tick` is needed next.
    pub fn deadline(&self) -> Option<Time> {
        let (closing, shutting_down) = match &self.phase {
            Phase::Open => (None, false),
            Phase::Closing(closing) => (self.closing_deadline(closing), true),
            Phase::Closed => return None,
        };
        let tasks = self.tasks.values().filter_map(|task| task.deadline(shutting_down));
        tasks.chain(closing).min()
    }

    /// Runs whose process lives, including those that are being stopped.
    pub fn live_runs(&self) -> impl Iterator<Item = (&TaskKey, &RunId)> {
        self.tasks.values().filter_map(|task| Some((&task.key, task.live_run()?)))
    }

    /// The run of a task whose process lives.
    pub fn live_run(&self, key: &TaskKey) -> Option<&RunId> {
        self.tasks.get(key)?.live_run()
    }

    /// The status of a task, if the supervisor knows it.
    pub fn status(&self, key: &TaskKey) -> Option<TaskStatus> {
        self.tasks.get(key).map(|task| task.status)
    }

    /// Whether the daemon starts an agent for a task that no caller wants any more.
    pub fn is_start_cancelled(&self, key: &TaskKey) -> bool {
        self.tasks.get(key).is_some_and(|task| matches!(task.life, Life::CancellingKeeper { .. }))
    }

    /// The state of a task's process if the driver speaks stream-json.
    pub fn stream_state(&self, key: &TaskKey, has_run: bool) -> StreamState {
        match self.tasks.get(key).map(|task| &task.life) {
            Some(Life::Live(_) | Life::Stopping(_)) => StreamState::Running,
            Some(Life::RestartHeld(start) | Life::StartingKeeper(Launch { start, .. }))
                if start.cause == StartCause::Crash =>
            {
                StreamState::Error
            }
            _ if has_run => StreamState::Stopped,
            _ => StreamState::Idle,
        }
    }

    fn shutdown_phase(&self) -> ShutdownPhase {
        match &self.phase {
            Phase::Open => ShutdownPhase::NotShuttingDown,
            Phase::Closing(closing) => closing.shutdown_phase(),
            Phase::Closed => ShutdownPhase::Killing,
        }
    }

    fn on_start(&mut self, now: Time, key: TaskKey, start: Start) -> Vec<Effect> {
        // The caller has just made this task, so no `TaskSeen` has come for it.
        if start.plan.task == Origin::MadeByThisCall {
            self.tasks.entry(key.clone()).or_insert_with(|| Task::resting(key.clone(), TaskStatus::Draft));
        }
        let (operation, room) = match (start.aim, start.cause) {
            (Aim::Workspace, _) if self.shutdown_phase() != ShutdownPhase::NotShuttingDown => {
                (Operation::SetUp, Err(Refusal::ShuttingDown))
            }
            (Aim::Workspace, _) => (Operation::SetUp, Ok(())),
            (Aim::Agent, StartCause::Restarted) => (Operation::Restart, self.room_for(&key, &start)),
            (Aim::Agent, StartCause::Asked | StartCause::Crash) => {
                (Operation::Start, self.room_for(&key, &start))
            }
        };
        let room = room.and_then(|()| self.may_begin(&key, operation, AgentActivity::AtWork));
        match self.tasks.contains_key(&key) {
            true => self.with_task(now, &key, |task, handling| task.on_start(handling, start, room)),
            false => refused(start.tickets, self.unknown(key)),
        }
    }

    /// A task that holds a slot needs no second one. A start that is under way holds one: otherwise two starts could
    /// both take the last slot.
    fn room_for(&self, key: &TaskKey, start: &Start) -> Result<(), Refusal> {
        if self.shutdown_phase() != ShutdownPhase::NotShuttingDown {
            return Err(Refusal::ShuttingDown);
        }
        let max = self.limits.max_agents;
        let holds_one = self.tasks.get(key).is_some_and(Task::holds_slot);
        let taken = self.tasks.values().filter(|task| task.holds_slot()).count();
        if max == 0 || holds_one || !start.takes_slot() || taken < max as usize {
            Ok(())
        } else {
            Err(Refusal::MaxAgentsReached { max })
        }
    }

    /// Whether so many more agents have a slot. Callers that start several at once ask before they make anything.
    pub fn check_slots(&self, wanted: u32) -> Result<(), Refusal> {
        let max = self.limits.max_agents;
        let taken = self.tasks.values().filter(|task| task.holds_slot()).count() as u32;
        let free = max.saturating_sub(taken);
        match max == 0 || wanted <= free {
            true => Ok(()),
            false => Err(Refusal::TooFewSlots { wanted, free, max }),
        }
    }

    /// Acts if the table permits it.
    fn request(
        &mut self,
        now: Time,
        key: TaskKey,
        ticket: Ticket,
        operation: Operation,
        act: impl FnOnce(&mut Task, &mut EventHandling<'_>),
    ) -> Vec<Effect> {
        let room = self.may_begin(&key, operation, AgentActivity::AtWork);
        self.with_known(now, key, ticket, |task, handling| match room {
            Ok(()) => act(task, handling),
            Err(refusal) => handling.refuse(ticket, refusal),
        })
    }

    fn with_known(
        &mut self,
        now: Time,
        key: TaskKey,
        ticket: Ticket,
        act: impl FnOnce(&mut Task, &mut EventHandling<'_>),
    ) -> Vec<Effect> {
        if self.shutdown_phase() != ShutdownPhase::NotShuttingDown {
            return refused(vec![ticket], Refusal::ShuttingDown);
        }
        match self.tasks.contains_key(&key) {
            true => self.with_task(now, &key, act),
            false => refused(vec![ticket], self.unknown(key)),
        }
    }

    /// The refusal of every request for a task that the supervisor does not hold.
    fn unknown(&self, key: TaskKey) -> Refusal {
        match self.works.of(&key) {
            Some(Occupation::Unsettled) => Refusal::Unsettled { key },
            Some(doing) => Refusal::Busy { key, doing },
            None => Refusal::UnknownTask { key },
        }
    }

    fn on_keeper_ready(&mut self, now: Time, key: TaskKey, epoch: Epoch, run: RunId) -> Vec<Effect> {
        match self.tasks.contains_key(&key) {
            true => self.with_task(now, &key, |task, handling| task.on_keeper_ready(handling, epoch, run)),
            false => vec![Effect::StopRun { key, run, grace: STRANGERS_GRACE }],
        }
    }

    fn on_tick(&mut self, now: Time) -> Vec<Effect> {
        self.press_on(now);
        self.each_task(now, Task::on_tick)
    }

    fn with_task(
        &mut self,
        now: Time,
        key: &TaskKey,
        act: impl FnOnce(&mut Task, &mut EventHandling<'_>),
    ) -> Vec<Effect> {
        let are_files_changing = self.works.of(key).is_some();
        let mut handling =
            EventHandling::new(now, self.shutdown_phase(), are_files_changing, &mut self.last_epoch);
        if let Some(task) = self.tasks.get_mut(key) {
            act(task, &mut handling);
        }
        let (effects, leaving) = handling.finish();
        match leaving {
            Leaving::Stays => {}
            Leaving::Forgotten => drop(self.tasks.remove(key)),
            Leaving::Removed => {
                self.tasks.remove(key);
                self.works.set(key.clone(), Occupation::Removing);
            }
        }
        effects
    }

    fn each_task(&mut self, now: Time, act: fn(&mut Task, &mut EventHandling<'_>)) -> Vec<Effect> {
        let keys: Vec<TaskKey> = self.tasks.keys().cloned().collect();
        keys.iter().flat_map(|key| self.with_task(now, key, act)).collect()
    }
}

fn refused(tickets: Vec<Ticket>, refusal: Refusal) -> Vec<Effect> {
    let reply = |ticket| Effect::Reply { ticket, outcome: Err(refusal.clone()) };
    tickets.into_iter().map(reply).collect()
}

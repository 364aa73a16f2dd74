//! Everything that can happen to the supervisor: requests, reports of the daemon, and time.
//!
//! Not here: what follows from an event.

use std::time::Duration;

use super::occupation::Operation;
use crate::exit::RunExit;
use crate::ids::{Epoch, RunId, TaskKey, Ticket};
use crate::restart::RestartPolicy;
use crate::task_status::TaskStatus;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Once, first: all tasks of all known projects.
    Booted {
        tasks: Vec<FoundTask>,
    },
    /// A task file was made, edited by the user, or came back. The daemon must have read it just now: an older reading
    /// would undo a status that was written since.
    TaskSeen(FoundTask),

    Start {
        key: TaskKey,
        ticket: Ticket,
        plan: StartPlan,
    },
    Stop {
        key: TaskKey,
        ticket: Ticket,
    },
    Restart {
        key: TaskKey,
        ticket: Ticket,
        plan: StartPlan,
    },
    /// Set the workspace up, and start nothing in it.
    SetUp {
        key: TaskKey,
        ticket: Ticket,
        plan: StartPlan,
    },
    Idle {
        key: TaskKey,
        ticket: Ticket,
    },
    Mark {
        key: TaskKey,
        ticket: Ticket,
        verdict: Verdict,
    },
    /// The answer says when nothing lives in the workspace any more. Then the caller removes files and workspace,
    /// and reports `Finished`. `discard`: an agent that lives is stopped first; without it the removal is refused.
    Remove {
        key: TaskKey,
        ticket: Ticket,
        discard: bool,
    },
    /// Take a live orphan into its task.
    Adopt {
        key: TaskKey,
        ticket: Ticket,
        run: RunId,
        terms: RunTerms,
    },
    /// End all agents, then the daemon.
    Shutdown {
        ticket: Ticket,
    },

    WorkspaceMade {
        key: TaskKey,
        epoch: Epoch,
        made_by: MadeBy,
        readiness: Readiness,
    },
    /// Nothing of it is left.
    WorkspaceFailed {
        key: TaskKey,
        epoch: Epoch,
        error: String,
    },
    /// Removed, or found impossible to remove and logged.
    WorkspaceUndone {
        key: TaskKey,
        epoch: Epoch,
    },
    SetupDone {
        key: TaskKey,
        epoch: Epoch,
    },
    /// No process of it is left; the workspace stays.
    SetupFailed {
        key: TaskKey,
        epoch: Epoch,
        error: String,
    },
    KeeperReady {
        key: TaskKey,
        epoch: Epoch,
        run: RunId,
    },
    /// No process is left of it.
    KeeperFailed {
        key: TaskKey,
        epoch: Epoch,
        error: String,
    },
    /// The whole tree is gone and its output drained.
    RunExited {
        key: TaskKey,
        run: RunId,
        exit: RunExit,
    },

    /// An operation that `Supervisor::begin` or the answer to `Remove` let the daemon begin is over.
    Finished {
        key: TaskKey,
        operation: Operation,
    },

    /// The time that `deadline` named has come.
    Tick,
}

/// A task as files and keepers show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundTask {
    pub key: TaskKey,
    pub status: TaskStatus,
    pub run: FoundRun,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundRun {
    /// No keeper lives. For a task seen again this says nothing about a run that the supervisor knows of.
    None,
    Live {
        run: RunId,
        terms: RunTerms,
    },
    /// The run ended while no daemon was there, and its keeper (or the journal) still tells how.
    Ended {
        run: RunId,
        exit: RunExit,
    },
    /// Another host that shares this home holds it.
    Elsewhere,
}

/// The terms of a start, and whether it may take its task back when it fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartPlan {
    pub task: Origin,
    pub terms: RunTerms,
}

/// The start that made a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadeBy {
    /// The start that asked for it: if that start fails, the workspace goes.
    ThisStart,
    /// An earlier start, or the user. It stays.
    Earlier,
}

/// Whether a workspace can be worked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// It has yet to be set up.
    Raw,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The task existed before. A start that fails must not remove it.
    Existing,
    /// The caller of this start has just made the task file.
    MadeByThisCall,
}

/// The terms on which a run is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTerms {
    /// Between SIGTERM and SIGKILL.
    pub stop_grace: Duration,
    pub restart: RestartPolicy,
}

/// A user's or an agent's word about the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Completed,
    Failed,
    Reviewed,
    /// The base has the work.
    Merged,
}

impl From<Verdict> for TaskStatus {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Completed => TaskStatus::Completed,
            Verdict::Failed => TaskStatus::Failed,
            Verdict::Reviewed => TaskStatus::Reviewed,
            Verdict::Merged => TaskStatus::Merged,
        }
    }
}

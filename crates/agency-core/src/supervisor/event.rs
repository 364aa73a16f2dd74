//! Everything that can happen to the supervisor: requests, reports of the daemon, and time.
//!
//! Not here: what follows from an event.

use std::time::Duration;

use super::occupation::Operation;
use crate::exit::RunExit;
use crate::ids::{Epoch, RunId, TaskKey, Ticket};
use crate::restart::RestartPolicy;
use crate::task_status::TaskStatus;

/// Something that happened: a request, a report of the daemon, or a deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Once, first: all tasks of all known projects.
    Booted {
        /// Every task.
        tasks: Vec<FoundTask>,
    },
    /// A task file was made, edited by the user, or came back. The daemon must have read it just now: an older reading
    /// would undo a status that was written since.
    TaskSeen(FoundTask),

    /// Start the agent of a task.
    Start {
        /// The task.
        key: TaskKey,
        /// The caller that waits for the answer.
        ticket: Ticket,
        /// The terms of the start.
        plan: StartPlan,
    },
    /// Stop the agent of a task.
    Stop {
        /// The task.
        key: TaskKey,
        /// The caller that waits for the answer.
        ticket: Ticket,
    },
    /// Stop the agent of a task and start it again.
    Restart {
        /// The task.
        key: TaskKey,
        /// The caller that waits for the answer.
        ticket: Ticket,
        /// The terms of the start.
        plan: StartPlan,
    },
    /// Set the workspace up, and start nothing in it.
    SetUp {
        /// The task.
        key: TaskKey,
        /// The caller that waits for the answer.
        ticket: Ticket,
        /// The terms of the start.
        plan: StartPlan,
    },
    /// Pause the task; its process lives.
    Idle {
        /// The task.
        key: TaskKey,
        /// The caller that waits for the answer.
        ticket: Ticket,
    },
    /// Give the task a status that a person or its agent chose.
    Mark {
        /// The task.
        key: TaskKey,
        /// The caller that waits for the answer.
        ticket: Ticket,
        /// The status.
        verdict: Verdict,
    },
    /// Prepare the removal of a task. The answer comes when nothing lives in the workspace. Then the caller removes files and
    /// workspace, and reports `Finished`.
    Remove {
        /// The task.
        key: TaskKey,
        /// The caller that waits for the answer.
        ticket: Ticket,
        /// Stop a live agent first. Without it, a live agent makes the supervisor refuse.
        discard: bool,
    },
    /// Take a live orphan into its task.
    Adopt {
        /// The task.
        key: TaskKey,
        /// The caller that waits for the answer.
        ticket: Ticket,
        /// The run.
        run: RunId,
        /// The terms of the run.
        terms: RunTerms,
    },
    /// End all agents, then the daemon.
    Shutdown {
        /// The caller that waits for the answer.
        ticket: Ticket,
    },

    /// The answer to `MakeWorkspace`: the workspace exists.
    WorkspaceMade {
        /// The task.
        key: TaskKey,
        /// The epoch of the order.
        epoch: Epoch,
        /// Whether this start made it.
        made_by: MadeBy,
        /// Whether it still needs its setup.
        readiness: Readiness,
    },
    /// The answer to `MakeWorkspace`: there is no workspace, and nothing of it is left.
    WorkspaceFailed {
        /// The task.
        key: TaskKey,
        /// The epoch of the order.
        epoch: Epoch,
        /// Why, in words.
        error: String,
    },
    /// The answer to `UndoWorkspace`: the workspace is removed, or the daemon could not remove it and logged why.
    WorkspaceUndone {
        /// The task.
        key: TaskKey,
        /// The epoch of the order.
        epoch: Epoch,
    },
    /// The answer to `SetUp`: every command succeeded.
    SetupDone {
        /// The task.
        key: TaskKey,
        /// The epoch of the order.
        epoch: Epoch,
    },
    /// The answer to `SetUp`: a command failed. None of its processes is left; the workspace stays.
    SetupFailed {
        /// The task.
        key: TaskKey,
        /// The epoch of the order.
        epoch: Epoch,
        /// Why, in words.
        error: String,
    },
    /// The answer to `StartKeeper`: the run lives.
    KeeperReady {
        /// The task.
        key: TaskKey,
        /// The epoch of the order.
        epoch: Epoch,
        /// The run.
        run: RunId,
    },
    /// The answer to `StartKeeper`: no process is left of it.
    KeeperFailed {
        /// The task.
        key: TaskKey,
        /// The epoch of the order.
        epoch: Epoch,
        /// Why, in words.
        error: String,
    },
    /// The whole process tree is gone, and the keeper has read all its output.
    RunExited {
        /// The task.
        key: TaskKey,
        /// The run.
        run: RunId,
        /// How the run ended.
        exit: RunExit,
    },

    /// An operation that `Supervisor::begin` or the answer to `Remove` let the daemon begin is over.
    Finished {
        /// The task.
        key: TaskKey,
        /// The operation.
        operation: Operation,
    },

    /// The time that `deadline` named has come.
    Tick,
}

/// A task as files and keepers show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundTask {
    /// The task.
    pub key: TaskKey,
    /// The status in its file.
    pub status: TaskStatus,
    /// Its newest run.
    pub run: FoundRun,
}

/// The newest run of a task, as the daemon found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundRun {
    /// No keeper lives. For a task seen again this says nothing about a run that the supervisor knows of.
    None,
    /// The run lives.
    Live {
        /// The run.
        run: RunId,
        /// The terms of the run.
        terms: RunTerms,
    },
    /// The run ended while no daemon was there, and its keeper or the journal says how.
    Ended {
        /// The run.
        run: RunId,
        /// How the run ended.
        exit: RunExit,
    },
    /// Another host that shares this home holds it.
    Elsewhere,
}

/// The terms of a start, and whether it may undo the creation of its task when it fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartPlan {
    /// Whether the task may go if the start fails.
    pub task: Origin,
    /// The terms of the new run.
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
    /// It is set up.
    Ready,
    /// It still needs its setup.
    Raw,
}

/// Whether a task existed before the call that starts it.
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
    /// Whether a crash is followed by a restart.
    pub restart: RestartPolicy,
    /// Whether the run counts against `max_agents`. A session on a shared process does not.
    pub takes_slot: bool,
}

/// A user's or an agent's word about the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The work is done.
    Completed,
    /// The work failed.
    Failed,
    /// A person has reviewed the work.
    Reviewed,
    /// The base has the work.
    Merged,
    /// The user undid the merge: the base no longer has the work.
    MergeTakenBack,
}

impl From<Verdict> for TaskStatus {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Completed => TaskStatus::Completed,
            Verdict::Failed => TaskStatus::Failed,
            Verdict::Reviewed => TaskStatus::Reviewed,
            Verdict::Merged => TaskStatus::Merged,
            Verdict::MergeTakenBack => TaskStatus::Completed,
        }
    }
}

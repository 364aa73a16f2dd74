//! Everything that the supervisor can order, and its answers and notices.
//!
//! Not here: how the daemon carries an order out.

use std::time::Duration;

use super::refusal::Refusal;
use crate::exit::RunExit;
use crate::ids::{Epoch, RunId, TaskKey, Ticket};
use crate::restart::GiveUp;
use crate::task_status::TaskStatus;

/// The daemon performs effects in order. Writes, `UndoTask`, replies and reports are done before the next effect begins.
/// The others answer with an event: `MakeWorkspace`, `UndoWorkspace`, `SetUp` and `StartKeeper` with their own epoch, and
/// every run that comes to life with `RunExited`. An answer may come late or twice, but it comes.
/// Stopping, killing or dismissing a run that is over does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    MakeWorkspace {
        key: TaskKey,
        epoch: Epoch,
    },
    /// Make the workspace ready to work in: copy files, run commands.
    SetUp {
        key: TaskKey,
        epoch: Epoch,
    },
    /// End the setup of that epoch and every process that it started. `SetUp` answers, as always.
    EndSetup {
        key: TaskKey,
        epoch: Epoch,
    },
    /// Remove the workspace that this task's last `MakeWorkspace` made. No process has lived in it.
    UndoWorkspace {
        key: TaskKey,
        epoch: Epoch,
    },
    StartKeeper {
        key: TaskKey,
        epoch: Epoch,
        cause: StartCause,
    },
    /// End the process tree: SIGTERM, and SIGKILL after the grace.
    StopRun {
        key: TaskKey,
        run: RunId,
        grace: Duration,
    },
    KillRun {
        key: TaskKey,
        run: RunId,
    },
    /// The run is over and its exit is written: its keeper may end.
    DismissRun {
        key: TaskKey,
        run: RunId,
    },
    WriteStatus {
        key: TaskKey,
        status: TaskStatus,
    },
    WriteExit {
        key: TaskKey,
        run: RunId,
        exit: RunExit,
    },
    /// Remove the task file that the call made before it failed.
    UndoTask {
        key: TaskKey,
    },
    Reply {
        ticket: Ticket,
        outcome: Result<Outcome, Refusal>,
    },
    Report(Notice),
    Quit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartCause {
    Asked,
    Restarted,
    Crash,
}

/// The result of a request that was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Started {
        run: RunId,
    },
    /// The process has lived all the time; the task's status is running again.
    Resumed {
        run: RunId,
    },
    AlreadyRunning {
        run: RunId,
    },
    Stopped {
        exit: RunExit,
    },
    /// The stop came before there was a run to stop.
    StartCancelled,
    SetUp,
    Idle,
    Marked(TaskStatus),
    Adopted {
        run: RunId,
    },
    /// Nothing lives there, and the supervisor has forgotten the task.
    ReadyToRemove,
    /// The daemon may end. `still_alive` survived SIGKILL; the next daemon will find them.
    ShutDown {
        still_alive: Vec<TaskKey>,
    },
}

/// News that no request asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    Crashed {
        key: TaskKey,
        run: RunId,
        exit: RunExit,
    },
    /// `attempt` counts from 1.
    Restarting {
        key: TaskKey,
        attempt: u32,
    },
    RestartGivenUp {
        key: TaskKey,
        why: GiveUp,
    },
    RestartFailed {
        key: TaskKey,
        error: String,
    },
    /// A run that SIGKILL did not end.
    WontDie {
        key: TaskKey,
        run: RunId,
    },
    /// After boot: the status of some tasks claimed a process that no longer exists.
    DaemonResumeMarkStopped {
        marked_stopped: usize,
        adopted: usize,
        elsewhere: usize,
    },
}

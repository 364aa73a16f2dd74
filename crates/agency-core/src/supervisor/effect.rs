//! All that the supervisor can ask the world to do, and what it tells those who asked it.
//!
//! Not here: how any of it is done.

use std::time::Duration;

use super::refusal::Refusal;
use crate::exit::RunExit;
use crate::ids::{Epoch, RunId, TaskKey, Ticket};
use crate::restart::GiveUp;
use crate::task_status::TaskStatus;

/// Effects are performed in order. Writes, undone tasks, replies and reports are done when the next one begins;
/// the others answer with an event: each `MakeWorkspace`, `UndoWorkspace`, `SetUp` and `StartKeeper` with exactly its epoch,
/// and each run that came to be with `RunExited`. An answer may come late or twice, but it comes.
/// Stopping, killing or dismissing a run that is already over does nothing.
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
    /// End the setup of that epoch and everything it started; the setup itself answers.
    EndSetup {
        key: TaskKey,
        epoch: Epoch,
    },
    /// Remove the workspace that this task's last `MakeWorkspace` made. No process has ever lived in it.
    UndoWorkspace {
        key: TaskKey,
        epoch: Epoch,
    },
    StartKeeper {
        key: TaskKey,
        epoch: Epoch,
        cause: StartCause,
    },
    /// End the tree: SIGTERM, and SIGKILL after the grace.
    StopRun {
        key: TaskKey,
        run: RunId,
        grace: Duration,
    },
    KillRun {
        key: TaskKey,
        run: RunId,
    },
    /// The run is over and written down; its keeper may go.
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
    /// Remove the task file that the failed call had made.
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

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Started {
        run: RunId,
    },
    /// The process was there all along; the task is running again.
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

/// What nobody asked about and somebody must be told.
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
    /// After boot: tasks that claimed a process which is no more.
    DaemonResumeMarkStopped {
        marked_stopped: usize,
        adopted: usize,
        elsewhere: usize,
    },
}

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
    /// Make the workspace if it does not exist.
    MakeWorkspace {
        /// The task.
        key: TaskKey,
        /// The answer carries the same epoch.
        epoch: Epoch,
    },
    /// Make the workspace ready to work in: copy files, run commands.
    SetUp {
        /// The task.
        key: TaskKey,
        /// The answer carries the same epoch.
        epoch: Epoch,
    },
    /// End the setup of that epoch and every process that it started. `SetUp` answers, as always.
    EndSetup {
        /// The task.
        key: TaskKey,
        /// The answer carries the same epoch.
        epoch: Epoch,
    },
    /// Remove the workspace that this task's last `MakeWorkspace` made. No process has lived in it.
    UndoWorkspace {
        /// The task.
        key: TaskKey,
        /// The answer carries the same epoch.
        epoch: Epoch,
    },
    /// Start a keeper and its agent.
    StartKeeper {
        /// The task.
        key: TaskKey,
        /// The answer carries the same epoch.
        epoch: Epoch,
        /// Why it starts.
        cause: StartCause,
    },
    /// End the process tree: SIGTERM, and SIGKILL after the grace.
    StopRun {
        /// The task.
        key: TaskKey,
        /// The run.
        run: RunId,
        /// Time between SIGTERM and SIGKILL.
        grace: Duration,
    },
    /// End the process tree with SIGKILL.
    KillRun {
        /// The task.
        key: TaskKey,
        /// The run.
        run: RunId,
    },
    /// The run is over and its exit is written: its keeper may end.
    DismissRun {
        /// The task.
        key: TaskKey,
        /// The run.
        run: RunId,
    },
    /// Write the status into the task file.
    WriteStatus {
        /// The task.
        key: TaskKey,
        /// The new status.
        status: TaskStatus,
    },
    /// Write the end of a run into the task file.
    WriteExit {
        /// The task.
        key: TaskKey,
        /// The run.
        run: RunId,
        /// How the run ended.
        exit: RunExit,
    },
    /// Remove the task file that the call made before it failed.
    UndoTask {
        /// The task.
        key: TaskKey,
    },
    /// Answer a request.
    Reply {
        /// The caller that waits for the answer.
        ticket: Ticket,
        /// The answer.
        outcome: Result<Outcome, Refusal>,
    },
    /// Announce news.
    Report(Notice),
    /// End the daemon.
    Quit,
}

/// Why a run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartCause {
    /// A caller requested it.
    Asked,
    /// A caller requested a restart.
    Restarted,
    /// The run before crashed.
    Crash,
}

/// The result of a request that was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A new run lives.
    Started {
        /// The run.
        run: RunId,
    },
    /// The process has lived all the time; the task's status is running again.
    Resumed {
        /// The run.
        run: RunId,
    },
    /// A run lived already; nothing changed.
    AlreadyRunning {
        /// The run.
        run: RunId,
    },
    /// The run ended.
    Stopped {
        /// How the run ended.
        exit: RunExit,
    },
    /// The stop came before there was a run to stop.
    StartCancelled,
    /// The workspace is set up.
    SetUp,
    /// The task is paused; its process lives.
    Idle,
    /// The task has this status now.
    Marked(TaskStatus),
    /// The orphan belongs to its task again.
    Adopted {
        /// The run.
        run: RunId,
    },
    /// Nothing lives there, and the supervisor has forgotten the task.
    ReadyToRemove,
    /// The daemon may end. `still_alive` survived SIGKILL; the next daemon will find them.
    ShutDown {
        /// Tasks whose run survived SIGKILL.
        still_alive: Vec<TaskKey>,
    },
}

/// News that no request asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A run ended without a request, and badly.
    Crashed {
        /// The task.
        key: TaskKey,
        /// The run.
        run: RunId,
        /// How the run ended.
        exit: RunExit,
    },
    /// A crashed run is restarted.
    Restarting {
        /// The task.
        key: TaskKey,
        /// The number of the restart, counted from 1.
        attempt: u32,
    },
    /// There were too many restarts.
    RestartGivenUp {
        /// The task.
        key: TaskKey,
        /// Which limit was reached.
        why: GiveUp,
    },
    /// A restart after a crash failed.
    RestartFailed {
        /// The task.
        key: TaskKey,
        /// Why, in words.
        error: String,
    },
    /// A run that did not end, although the daemon ordered its keeper to send SIGKILL.
    WontDie {
        /// The task.
        key: TaskKey,
        /// The run.
        run: RunId,
    },
    /// After boot: the status of some tasks claimed a process that no longer exists.
    DaemonResumeMarkStopped {
        /// Tasks that are stopped now.
        marked_stopped: usize,
        /// Tasks whose run lives.
        adopted: usize,
        /// Tasks that run on another host.
        elsewhere: usize,
    },
}

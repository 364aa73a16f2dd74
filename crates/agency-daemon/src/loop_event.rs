//! Everything that can happen to the daemon's loop, as one enum, and the sender that reports it.

use std::fmt;
use std::time::Duration;

use agency_api::method::{OrphanAdopted, Receipt, Started, Stopped, TaskNewParams};
use agency_api::trash::Discarded;
use agency_api::{Failure, FailureCode};
use agency_core::ids::{Epoch, ProjectId, RunId, TaskKey, Ticket};
use agency_run::report::{Report, ReportSink};
use agency_run::run::RunHandle;
use agency_run::run_meta::RunMeta;
use agency_run::switchboard::{BoardCommand, WirePlan, WireSpec};
use agency_workspace::{
    ConflictScanner, Merged, Project, Removed, Snapshot, Synced, Workspace, WorkspaceConflict,
};
use tokio::sync::{mpsc, oneshot};

use crate::discarded::{Back, CutOff, Entry};
use crate::removal::Removal;
use crate::reply::{Answer, Reply};
use crate::world::World;

/// Requests wait here while the loop is busy; every sender waits its turn.
const WAITING: usize = 1024;

#[derive(Debug)]
pub enum LoopEvent {
    /// A caller wants something.
    Request(LoopRequest),
    /// Git has said whether the workspace of a new task can be made.
    NewTaskChecked {
        new: Box<NewTask>,
        checked: Result<WorkspaceCheck, Failure>,
        reply: Reply<Started>,
    },
    WorkspaceMade {
        key: TaskKey,
        epoch: Epoch,
        /// `None`: it was there already.
        made: Result<Option<Workspace>, Failure>,
    },
    WorkspaceUndone {
        key: TaskKey,
        epoch: Epoch,
    },
    /// Whole lines of a setup or a teardown.
    SetupPrinted {
        key: TaskKey,
        text: String,
    },
    /// No process of it is left. On success, with what the user should know.
    SetupOver {
        key: TaskKey,
        epoch: Epoch,
        outcome: Result<Vec<String>, SetupTrouble>,
    },
    KeeperStarted {
        key: TaskKey,
        epoch: Epoch,
        started: Result<Box<StartedRun>, Failure>,
    },
    /// A start needs a connection.
    EnsureWire {
        plan: WirePlan,
        spec: Box<WireSpec>,
        answer: oneshot::Sender<Result<mpsc::Sender<BoardCommand>, Failure>>,
    },
    /// What a run or a connection reports.
    Reported(Report),
    /// What became of a text that was held.
    TextSent {
        key: TaskKey,
        id: u64,
        outcome: Result<Receipt, Failure>,
    },
    /// Somebody who looked at a conversation has seen it, or has left.
    Looked {
        key: TaskKey,
    },
    /// Whether the workspace may be removed.
    RemovalChecked {
        key: TaskKey,
        ticket: Ticket,
        verdict: Result<(), Failure>,
    },
    WorkspaceRemoved {
        key: TaskKey,
        answer: Answer,
        /// With the size of what is kept.
        removed: Result<(Removed, u64), Failure>,
        notes: Vec<String>,
    },
    /// A merge or a sync is over.
    Landed {
        key: TaskKey,
        answer: Answer,
        outcome: Result<Landed, Failure>,
    },
    CollisionsFound {
        project: ProjectId,
        radar: Box<ConflictScanner>,
        took: Duration,
        found: Result<Vec<WorkspaceConflict>, Failure>,
    },
    /// What a daemon before us had begun is over, after we began to answer. With whoever asked for another try.
    RemovalSettled {
        settled: CutOff,
        answer: Option<Answer>,
    },
    TrashExpired {
        project: ProjectId,
        answer: Answer,
        expired: Result<agency_api::trash::Expired, Failure>,
    },
    /// What is to be brought back.
    UndoChosen {
        project: ProjectId,
        answer: Answer,
        chosen: Result<Entry, Failure>,
    },
    /// The workspace of a removed task is back.
    TaskRestored {
        project: ProjectId,
        removal: Removal,
        answer: Answer,
        restored: Result<Back, Failure>,
    },
    FilesRestored {
        key: TaskKey,
        shown: Discarded,
        answer: Answer,
        restored: Result<Vec<String>, Failure>,
    },
    /// None: nothing had changed.
    TurnKept {
        key: TaskKey,
        kept: Result<Option<Snapshot>, Failure>,
    },
    /// The turn, and what its later files are called in the trash.
    TurnTakenBack {
        key: TaskKey,
        answer: Answer,
        back: Result<(u64, String), Failure>,
    },
    /// Something was deleted or moved away beside workspaces.
    DirectoriesChanged,
    OrphanFollowed {
        run: RunId,
        request: OrphanRequest,
        followed: Result<RunHandle, Failure>,
    },
    OrphanEnded {
        run: RunId,
        request: OrphanRequest,
        ended: usize,
    },
    /// SIGTERM or SIGINT: end the agents, then leave.
    EndAll,
    /// SIGHUP: leave, the agents stay.
    Leave,
}

/// Why a workspace is not set up.
#[derive(Debug)]
pub struct SetupTrouble {
    pub failure: Failure,
    /// Somebody asked for it.
    pub stopped: bool,
}

/// What has arrived.
#[derive(Debug)]
pub enum Landed {
    /// With the commit that was made first, if one was.
    Merged {
        merged: Merged,
        committed: Option<String>,
    },
    Synced(Synced),
}

#[derive(Debug)]
pub struct StartedRun {
    pub meta: RunMeta,
    pub handle: RunHandle,
    pub notes: Vec<String>,
}

/// What a caller wants to have done with an orphan.
#[derive(Debug)]
pub enum OrphanRequest {
    End(Reply<Stopped>),
    Adopt(Reply<OrphanAdopted>),
}

impl OrphanRequest {
    /// Answers with a failure.
    pub fn refuse(self, failure: Failure) {
        match self {
            OrphanRequest::End(reply) => reply.send(Err(failure)),
            OrphanRequest::Adopt(reply) => reply.send(Err(failure)),
        }
    }
}

#[derive(Debug)]
pub struct TaskCall {
    pub project: Project,
    pub name: String,
}

/// A task that a caller wants to make.
#[derive(Debug)]
pub struct NewTask {
    pub project: Project,
    pub params: TaskNewParams,
}

/// What git says about a workspace that could be made.
#[derive(Debug)]
pub struct WorkspaceCheck {
    /// What the workspace would start from; `None` for a plain directory.
    pub base: Option<String>,
    /// What the user should know about the workspace before it is made.
    pub warning: Option<String>,
}

/// A request of a caller, with the handler that answers it.
pub struct LoopRequest {
    method: &'static str,
    handle: Box<dyn FnOnce(&mut World) + Send>,
}

impl LoopRequest {
    /// Runs the handler.
    pub fn handle(self, world: &mut World) {
        (self.handle)(world);
    }
}

impl fmt::Debug for LoopRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoopRequest({})", self.method)
    }
}

#[derive(Debug, Clone)]
pub struct Reporter(mpsc::Sender<LoopEvent>);

pub fn channel() -> (Reporter, mpsc::Receiver<LoopEvent>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Reporter(sender), receiver)
}

impl Reporter {
    /// Waits while the loop is behind. Drops an event only after the loop has ended.
    pub async fn report(&self, event: LoopEvent) {
        if self.0.send(event).await.is_err() {
            tracing::debug!("the loop has ended; a report falls away");
        }
    }

    /// Where runs and connections report.
    pub fn sink(&self) -> ReportSink {
        let reporter = self.clone();
        ReportSink::new(move |report| {
            let reporter = reporter.clone();
            Box::pin(async move { reporter.report(LoopEvent::Reported(report)).await })
        })
    }

    /// Has `handle` run in the loop, and waits for its reply.
    pub async fn request<T>(
        &self,
        method: &'static str,
        handle: impl FnOnce(&mut World, Reply<T>) + Send + 'static,
    ) -> Result<T, Failure>
    where
        T: Send + 'static,
    {
        let (reply, outcome) = Reply::channel();
        let handle = Box::new(move |world: &mut World| handle(world, reply));
        self.report(LoopEvent::Request(LoopRequest { method, handle })).await;
        outcome
            .await
            .unwrap_or_else(|_| Err(Failure::new("the daemon is leaving").code(FailureCode::DaemonLost)))
    }
}

//! Everything that can happen to the daemon's loop, as one enum, and the sender that reports it.

use std::fmt;
use std::time::Duration;

use agency_api::method::{OrphanAdopted, Receipt, Removed, Started, Stopped, TaskNewParams};
use agency_api::shell::{ShellOpened, ShellsClosed};
use agency_api::trash::{Expired, Restored, TrashEntryView, TurnRestored};
use agency_api::{Failure, FailureCode, work};
use agency_core::ids::{Epoch, ProjectId, RunId, TaskKey, Ticket};
use agency_run::connection::{ConnectionCommand, ConnectionPlan, ConnectionSpec};
use agency_run::handle::RunHandle;
use agency_run::report::{Report, ReportSink};
use agency_run::start::{EnsureConnection, StartedRun};
use agency_server::{Reply, RequestLoop};
use agency_work::directory_watch;
use agency_work::setup::SetupFailure;
use agency_work::trash::{CutOff, Entry, Removal, RestoredWorkspace};
use agency_work::workspace::WorkspaceCheck;
use agency_workspace::{
    ConflictScanner, Merged, Project, Snapshot, Synced, TakenBack, UndoneMerge, Workspace, WorkspaceConflict,
};
use tokio::sync::{mpsc, oneshot};

use crate::world::World;

/// This many events wait while the loop is busy. Further senders wait.
const WAITING: usize = 1024;

/// Something that happened to the daemon.
#[derive(Debug)]
pub enum LoopEvent {
    /// A caller wants something.
    Request(LoopRequest),
    /// Git has said whether the workspace of a new task can be made.
    NewTaskChecked { new: Box<NewTask>, checked: Result<WorkspaceCheck, Failure>, reply: Reply<Started> },
    /// A start has its workspace, or cannot have it.
    WorkspaceMade {
        key: TaskKey,
        epoch: Epoch,
        /// `None`: it was there already.
        made: Result<Option<Workspace>, Failure>,
    },
    /// The workspace of a start that failed is removed again.
    WorkspaceUndone { key: TaskKey, epoch: Epoch },
    /// Whole lines of a setup or a teardown.
    SetupPrinted { key: TaskKey, text: String },
    /// A setup has ended, and no process of it is left. On success, with remarks for the user.
    SetupOver { key: TaskKey, epoch: Epoch, outcome: Result<Vec<String>, SetupFailure> },
    /// The keeper of a start runs, or could not be started.
    KeeperStarted { key: TaskKey, epoch: Epoch, started: Result<Box<StartedRun>, Failure> },
    /// A start needs a connection.
    EnsureConnection {
        /// The task of the start.
        key: TaskKey,
        plan: ConnectionPlan,
        spec: Box<ConnectionSpec>,
        answer: oneshot::Sender<Result<mpsc::Sender<ConnectionCommand>, Failure>>,
    },
    /// A run or a connection reports something.
    Reported(Report),
    /// A queued text was sent, or could not be sent.
    TextSent { key: TaskKey, id: u64, outcome: Result<Receipt, Failure> },
    /// A caller who watched a conversation has got its answer, or has disconnected.
    ReaderLeft { key: TaskKey },
    /// The check whether a workspace may be removed is over.
    RemovalChecked { key: TaskKey, ticket: Ticket, verdict: Result<agency_workspace::Lost, Failure> },
    /// The workspace of a task that is being removed is gone, or could not be removed.
    WorkspaceRemoved {
        key: TaskKey,
        reply: Reply<Removed>,
        /// With the size of the files in the trash.
        removed: Result<(agency_workspace::Removed, u64), Failure>,
        notes: Vec<String>,
    },
    /// Something happened to a merge or a sync.
    Integration(Box<IntegrationEvent>),
    /// A scan for conflicts between workspaces is over.
    ConflictsFound {
        project: ProjectId,
        scanner: Box<ConflictScanner>,
        took: Duration,
        taken_back: TakenBack,
        /// `None`: nothing has changed since the scan before.
        found: Result<Option<Vec<WorkspaceConflict>>, Failure>,
    },
    /// Something that an earlier daemon had begun is settled. `reply`: of the caller who asked for another try.
    RemovalSettled { settled: CutOff, reply: Option<Reply<Removed>> },
    /// The old entries of a trash are deleted.
    TrashExpired { project: ProjectId, reply: Reply<Expired>, expired: Result<Expired, Failure> },
    /// The trash entry that `agency undo` restores.
    UndoChosen { project: ProjectId, reply: Reply<Restored>, chosen: Result<Box<Entry>, Failure> },
    /// The workspace of a removed task is back.
    TaskRestored {
        key: TaskKey,
        removal: Removal,
        reply: Reply<Restored>,
        restored: Result<RestoredWorkspace, Failure>,
    },
    /// The files of a trash entry are back in their workspace.
    FilesRestored {
        key: TaskKey,
        entry: TrashEntryView,
        reply: Reply<Restored>,
        restored: Result<Vec<String>, Failure>,
    },
    /// The snapshot after a turn is taken.
    TurnKept {
        key: TaskKey,
        /// `None`: no file had changed.
        kept: Result<Option<Snapshot>, Failure>,
    },
    /// The files are as they were after this turn. With the trash entry that keeps the later files.
    TurnRestored { key: TaskKey, reply: Reply<TurnRestored>, restored: Result<(u64, String), Failure> },
    /// Something was deleted or moved in a directory that the daemon watches.
    DirectoriesChanged,
    /// The daemon follows the keeper of an orphan, or cannot reach it.
    OrphanFollowed { run: RunId, request: OrphanRequest, followed: Result<RunHandle, Failure> },
    /// The processes of an orphan without a keeper are ended.
    OrphanEnded { run: RunId, request: OrphanRequest, ended: usize },
    /// Something happened to terminals beside agents.
    Shell(ShellEvent),
    /// The daemon ends all agents, and all orphans are ended.
    OrphansEnded,
    /// SIGTERM or SIGINT: end the agents, then exit.
    EndAll,
    /// SIGHUP: exit, and leave the agents running.
    Leave,
}

/// Something that happened to a merge or a sync.
#[derive(Debug)]
pub enum IntegrationEvent {
    /// Git or jj has looked for obstacles to a merge.
    MergeInspected {
        key: TaskKey,
        params: work::MergeParams,
        requester: MergeRequester,
        inspected: Result<InspectedMerge, Failure>,
    },
    /// A merge is over.
    MergeOver { key: TaskKey, reply: Reply<work::Merged>, outcome: Result<FinishedMerge, Failure> },
    /// A sync is over.
    SyncOver { key: TaskKey, reply: Reply<work::Synced>, outcome: Result<Synced, Failure> },
    /// A merge is taken back, or stays.
    MergeUndone {
        key: TaskKey,
        entry: TrashEntryView,
        reply: Reply<Restored>,
        undone: Result<UndoneMerge, Failure>,
    },
}

/// Something that happened to terminals beside agents.
#[derive(Debug)]
pub enum ShellEvent {
    /// The keeper of a terminal runs, or could not be started.
    Started {
        key: TaskKey,
        name: String,
        started: Result<Box<StartedRun>, Failure>,
        reply: Reply<ShellOpened>,
    },
    /// Terminals are closed, or one could not be. With their names.
    Closed { after: AfterShells, closed: Result<Vec<String>, Failure> },
}

/// The next step after terminals are closed.
#[derive(Debug)]
pub enum AfterShells {
    /// Stop the agent of their task.
    Stop { key: TaskKey, reply: Reply<Stopped> },
    /// Nothing but the answer to the caller.
    Close { reply: Reply<ShellsClosed> },
    /// The daemon exits.
    Leave,
}

/// A merge that was done.
#[derive(Debug)]
pub struct FinishedMerge {
    pub merged: Merged,
    /// The commit that was made before the merge, if one was.
    pub committed: Option<String>,
    /// Whether the agent was stopped before the merge.
    pub stopped: bool,
}

/// The caller who waits for an inspection.
#[derive(Debug)]
pub enum MergeRequester {
    Plan(Reply<work::MergePlan>),
    Merge(Reply<work::Merged>),
}

impl MergeRequester {
    /// Answers with a failure.
    pub fn refuse(self, failure: Failure) {
        match self {
            MergeRequester::Plan(reply) => reply.send(Err(failure)),
            MergeRequester::Merge(reply) => reply.send(Err(failure)),
        }
    }
}

/// The obstacles that git or jj finds.
#[derive(Debug)]
pub struct InspectedMerge {
    pub into: Option<String>,
    pub obstacles: Vec<work::MergeObstacle>,
}

/// A request of a caller about an orphan.
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

/// A project that a caller's directory is in.
#[derive(Debug, Clone)]
pub struct OpenedProject {
    pub project: Project,
    /// The merges that the user has taken back.
    pub taken_back: TakenBack,
}

/// A task that a caller names.
#[derive(Debug)]
pub struct NamedTask {
    /// The project of the caller's directory, or why there is none.
    pub project: Result<OpenedProject, Failure>,
    pub name: String,
}

/// A task that a caller wants to make.
#[derive(Debug)]
pub struct NewTask {
    pub project: OpenedProject,
    pub params: TaskNewParams,
}

impl LoopEvent {
    /// Whether the desk only reads the world: it must not wake itself.
    pub fn is_desk_reading(&self) -> bool {
        matches!(self, LoopEvent::Request(request) if request.method().starts_with("desk."))
    }
}

/// A request of a caller, with the handler that answers it.
pub struct LoopRequest {
    method: &'static str,
    handle: Box<dyn FnOnce(&mut World) + Send>,
}

impl LoopRequest {
    /// A request that `handle` answers.
    pub fn new(method: &'static str, handle: impl FnOnce(&mut World) + Send + 'static) -> LoopRequest {
        LoopRequest { method, handle: Box::new(handle) }
    }

    /// The name of the method.
    pub fn method(&self) -> &'static str {
        self.method
    }

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

/// Sends events to the loop.
#[derive(Debug, Clone)]
pub struct Reporter(mpsc::Sender<LoopEvent>);

/// Where the loop reads events.
pub type Inbox = mpsc::Receiver<LoopEvent>;

/// The reporter, and the end that the loop reads.
pub fn channel() -> (Reporter, Inbox) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Reporter(sender), receiver)
}

impl Reporter {
    /// Waits while the loop is behind. Drops an event only after the loop has ended.
    pub async fn report(&self, event: LoopEvent) {
        if self.0.send(event).await.is_err() {
            tracing::debug!("the loop has ended; an event is dropped");
        }
    }

    /// Where a start gets its connection.
    pub fn connections(&self, key: TaskKey) -> EnsureConnection {
        let reporter = self.clone();
        Box::new(move |plan, spec| {
            Box::pin(async move {
                let (answer, ensured) = oneshot::channel();
                let spec = Box::new(spec);
                reporter.report(LoopEvent::EnsureConnection { key, plan, spec, answer }).await;
                ensured.await.unwrap_or_else(|_| Err(leaving()))
            })
        })
    }

    /// Where the watch of directories reports.
    pub fn directory_changes(&self) -> directory_watch::Report {
        let reporter = self.clone();
        Box::new(move || {
            let reporter = reporter.clone();
            Box::pin(async move { reporter.report(LoopEvent::DirectoriesChanged).await })
        })
    }

    /// Where runs and connections report.
    pub fn sink(&self) -> ReportSink {
        let reporter = self.clone();
        ReportSink::new(move |report| {
            let reporter = reporter.clone();
            Box::pin(async move { reporter.report(LoopEvent::Reported(report)).await })
        })
    }
}

impl RequestLoop for Reporter {
    type World = World;

    async fn request<T: Send + 'static>(
        &self,
        method: &'static str,
        handle: impl FnOnce(&mut World, Reply<T>) + Send + 'static,
    ) -> Result<T, Failure> {
        let (reply, outcome) = Reply::channel();
        let request = LoopRequest::new(method, move |world| handle(world, reply));
        self.report(LoopEvent::Request(request)).await;
        outcome.await.unwrap_or_else(|_| Err(leaving()))
    }
}

fn leaving() -> Failure {
    Failure::new("the daemon is leaving").code(FailureCode::DaemonLost)
}

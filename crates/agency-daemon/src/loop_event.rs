//! All that can happen to the daemon, as one enum, and the sender everything reports to.

use std::time::Duration;

use agency_api::chat::AnswerParams;
use agency_api::config::{self, Overrides};
use agency_api::mcp::PermitParams;
use agency_api::method::{Caller, LogForm, PtyAttachParams, Receipt, TaskNewParams, TaskSendParams};
use agency_api::notify::TestParams;
use agency_api::trash::{Discarded, TrashExpireParams};
use agency_api::work::{MergeParams, SyncParams};
use agency_api::{Bytes, Failure};
use agency_core::ids::{Epoch, ProjectId, RunId, TaskKey, Ticket};
use agency_core::supervisor::Verdict;
use agency_driver::conversation::AgentSetting;
use agency_run::plan::Wish;
use agency_run::report::{Report, ReportSink};
use agency_run::run::RunHandle;
use agency_run::run_meta::RunMeta;
use agency_run::switchboard::{BoardCommand, WirePlan, WireSpec};
use agency_run::talk::Wanted;
use agency_workspace::{Collision, Merged, Project, Radar, Removed, Snapshot, Synced, Workspace};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::discarded::{Back, CutOff, Entry};
use crate::removal::Removal;

/// Requests wait here while the loop is busy; every sender waits its turn.
const WAITING: usize = 1024;

#[derive(Debug)]
pub enum Happening {
    Called {
        call: Call,
        answer: Answer,
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
        radar: Box<Radar>,
        took: Duration,
        found: Result<Vec<Collision>, Failure>,
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
        intent: OrphanIntent,
        answer: Answer,
        followed: Result<RunHandle, Failure>,
    },
    OrphanEnded {
        run: RunId,
        intent: OrphanIntent,
        answer: Answer,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrphanIntent {
    End,
    Adopt,
}

#[derive(Debug)]
pub struct TaskCall {
    pub project: Project,
    pub name: String,
}

/// A task whose workspace has been found possible.
#[derive(Debug)]
pub struct NewTask {
    pub project: Project,
    pub params: TaskNewParams,
    /// What the workspace starts from; none for a plain directory.
    pub base: Option<String>,
    pub warning: Option<String>,
}

#[derive(Debug)]
pub enum Call {
    Status,
    Stop {
        agents: bool,
        overrides: Overrides,
    },
    /// Answered with the name the next task would have.
    NextName {
        project: Project,
        slug: String,
    },
    New(Box<NewTask>),
    Start {
        task: TaskCall,
        caller: Caller,
        wish: Wish,
    },
    Restart {
        task: TaskCall,
        caller: Caller,
        wish: Wish,
    },
    Setup {
        task: TaskCall,
        caller: Caller,
    },
    StopTask(TaskCall),
    Idle(TaskCall),
    Mark(TaskCall, Verdict),
    Diff {
        task: TaskCall,
        turn: Option<u64>,
        stat: bool,
    },
    Merge {
        task: TaskCall,
        params: Box<MergeParams>,
    },
    Sync {
        task: TaskCall,
        params: Box<SyncParams>,
    },
    Conflicts {
        project: Project,
    },
    Remove {
        task: TaskCall,
        discard: bool,
        reason: Option<String>,
        caller: Caller,
    },
    Spent {
        project: Project,
    },
    TrashList {
        project: Project,
    },
    TrashRestore {
        project: Project,
        id: Option<String>,
    },
    TrashExpire {
        project: Project,
        params: TrashExpireParams,
    },
    Turns(TaskCall),
    TurnRestore {
        task: TaskCall,
        turn: Option<u64>,
    },
    List {
        project: Option<Project>,
    },
    Get(TaskCall),
    Explain {
        task: TaskCall,
        at: Option<String>,
    },
    Send {
        task: TaskCall,
        params: Box<TaskSendParams>,
    },
    Chat {
        task: TaskCall,
        wanted: Wanted,
        wait: bool,
        looking: bool,
    },
    Search {
        task: Option<TaskCall>,
        project: Option<Project>,
        words: String,
        limit: Option<u64>,
    },
    Approvals {
        task: Option<TaskCall>,
    },
    Decisions {
        task: Option<TaskCall>,
    },
    AnswerApproval {
        task: TaskCall,
        params: Box<AnswerParams>,
    },
    Interrupt(TaskCall),
    Connections,
    Reconnect {
        name: String,
    },
    AgentSessions {
        name: String,
    },
    Tune {
        task: TaskCall,
        setting: AgentSetting,
        wanted: Option<String>,
    },
    QueueList {
        task: Option<TaskCall>,
    },
    QueueDrop {
        task: TaskCall,
        id: Option<u64>,
    },
    Plan {
        task: TaskCall,
        message: Option<Bytes>,
        overrides: Overrides,
    },
    Attach {
        task: TaskCall,
        params: PtyAttachParams,
    },
    Screen(TaskCall),
    Log {
        task: TaskCall,
        form: LogForm,
        follow: bool,
    },
    Orphans,
    OrphanKill {
        run: RunId,
    },
    OrphanAdopt {
        run: RunId,
    },
    ConfigShow {
        project: Option<Project>,
        params: config::ShowParams,
    },
    ConfigSet {
        project: Option<Project>,
        params: config::SetParams,
    },
    ConfigRead {
        project: Option<Project>,
        params: config::FileParams,
    },
    ConfigWrite {
        project: Option<Project>,
        params: config::WriteParams,
    },
    Agents {
        project: Option<Project>,
        path: Option<Bytes>,
    },
    /// What a look at the disk needs to know of every project.
    Known,
    TrustShow {
        project: Project,
    },
    McpTerms {
        project: Project,
        run: Option<String>,
    },
    McpPermit {
        project: Project,
        params: PermitParams,
    },
    NotifyTest(TestParams),
    NotifyWays,
    TrustList,
    TrustAgree {
        project: Project,
        digest: Option<String>,
        revoke: bool,
    },
}

/// Whoever called, waiting.
#[derive(Debug)]
pub struct Answer(pub oneshot::Sender<Result<Value, Failure>>);

impl Answer {
    pub fn give(self, outcome: Result<Value, Failure>) {
        // A caller that hung up meanwhile needs no answer.
        drop(self.0.send(outcome));
    }

    pub fn give_as<T: serde::Serialize>(self, outcome: Result<T, Failure>) {
        self.give(outcome.and_then(|value| {
            serde_json::to_value(value)
                .map_err(|err| Failure::new("an answer cannot be written").caused_by(&err))
        }));
    }
}

#[derive(Debug, Clone)]
pub struct Reporter(mpsc::Sender<Happening>);

pub fn channel() -> (Reporter, mpsc::Receiver<Happening>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Reporter(sender), receiver)
}

impl Reporter {
    /// Waits while the loop is behind. Nothing is ever dropped, except once the loop has ended.
    pub async fn report(&self, happening: Happening) {
        if self.0.send(happening).await.is_err() {
            tracing::debug!("the loop has ended; a report falls away");
        }
    }

    /// Where runs and connections report.
    pub fn sink(&self) -> ReportSink {
        let reporter = self.clone();
        ReportSink::new(move |report| {
            let reporter = reporter.clone();
            Box::pin(async move { reporter.report(Happening::Reported(report)).await })
        })
    }

    pub async fn call(&self, call: Call) -> Result<Value, Failure> {
        let (answer, outcome) = oneshot::channel();
        self.report(Happening::Called { call, answer: Answer(answer) }).await;
        outcome.await.unwrap_or_else(|_| Err(Failure::new("the daemon is leaving")))
    }
}

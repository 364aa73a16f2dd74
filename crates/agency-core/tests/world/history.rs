//! The record of one story: its seed and its steps. Any part of a record can be replayed.
//!
//! Not here: what a step does. A step names its random numbers by a seed of its own, so it is repeated exactly, even if
//! steps before it are left out.

use std::time::Duration;

use agency_core::Time;
use agency_core::connection::Event as ConnectionEvent;
use agency_core::ids::{ProjectId, RunId, TaskKey};
use agency_core::restart::RestartPolicy;
use agency_core::supervisor::{AgentActivity, Event, Operation, RunTerms, Verdict};
use agency_core::task_status::TaskStatus;

use crate::universe::WorldEvent;

/// One story, or a part of one.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) seed: u64,
    /// The tasks that are there before the first step.
    pub(crate) tasks: Vec<TaskKey>,
    pub(crate) steps: Vec<Step>,
    /// Delays are cut to whole seconds, so that the story is easier to read.
    pub(crate) has_whole_seconds: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Its place in the whole history. Runs that begin in this step are named after it.
    pub(crate) number: usize,
    pub(crate) at: Time,
    pub(crate) kind: StepKind,
    pub(crate) seed: u64,
    /// The daemon dies in this step, after it has performed this number of effects.
    pub(crate) dies_after: Option<u32>,
}

#[derive(Clone, Debug)]
pub(crate) enum StepKind {
    /// A user or an agent does something.
    Act(Act),
    /// Something happens that was planned earlier, by its label.
    Due(String),
    /// The time that the supervisor named has come.
    Tick,
    /// The story waits until nothing is under way, and shuts the last daemon down.
    End,
}

/// Everything that users and agents do.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// With terms, the task is started by the same call.
    MakeTask {
        key: TaskKey,
        terms: Option<RunTerms>,
    },
    Start {
        key: TaskKey,
        terms: RunTerms,
    },
    Restart {
        key: TaskKey,
        terms: RunTerms,
    },
    SetUp {
        key: TaskKey,
        terms: RunTerms,
    },
    Stop {
        key: TaskKey,
    },
    Pause {
        key: TaskKey,
    },
    Mark {
        key: TaskKey,
        verdict: Verdict,
    },
    Remove {
        key: TaskKey,
        discard: bool,
    },
    BeginWork {
        key: TaskKey,
        operation: Operation,
        agent: AgentActivity,
    },
    /// The user writes a status into the task file.
    Edit {
        key: TaskKey,
        status: TaskStatus,
    },
    /// A keeper from another life turns up for a task that has none.
    FindOrphan {
        key: TaskKey,
        terms: RunTerms,
    },
    /// The agent ends its turn.
    EndTurn {
        key: TaskKey,
    },
    EmptyTrash {
        project: ProjectId,
    },
    /// Takes an orphan into its task.
    AdoptOrphan {
        run: RunId,
    },
    KillOrphan {
        run: RunId,
    },
    /// The user uses Agency in a project that the daemon does not know.
    FindProject {
        project: ProjectId,
    },
    /// The user wants a new process for the connection.
    Reconnect,
    Spoil(SpoiledFile),
    ShutDown,
    KillDaemon,
}

/// A file that cannot be read any more.
#[derive(Clone, Debug)]
pub(crate) enum SpoiledFile {
    Task {
        key: TaskKey,
    },
    /// The file that says which task a run belongs to. Only the next daemon reads it.
    Run {
        run: RunId,
    },
    /// The file that says where a project is. Only the next daemon reads it.
    Project {
        project: ProjectId,
    },
    /// The file by which keepers know the newest daemon. Only the next daemon reads it.
    Epoch,
}

/// The terms that the stories use if they name none.
const PLAIN_TERMS: RunTerms =
    RunTerms { stop_grace: Duration::from_secs(2), restart: RestartPolicy::Never, takes_slot: true };

impl Act {
    /// The same act with plain terms, if it has others.
    pub(crate) fn with_plain_terms(&self) -> Option<Act> {
        let mut act = self.clone();
        let terms = match &mut act {
            Act::MakeTask { terms: Some(terms), .. }
            | Act::Start { terms, .. }
            | Act::Restart { terms, .. }
            | Act::SetUp { terms, .. }
            | Act::FindOrphan { terms, .. } => terms,
            _ => return None,
        };
        (std::mem::replace(terms, PLAIN_TERMS) != PLAIN_TERMS).then_some(act)
    }
}

impl WorldEvent {
    /// Names the event without numbers that depend on earlier steps: epochs, generations and tickets.
    pub(crate) fn label(&self) -> String {
        match self {
            WorldEvent::PersonActs => "a person acts".into(),
            WorldEvent::DaemonBoots => "the daemon boots".into(),
            WorldEvent::Reported { event, .. } => report_label(event),
            WorldEvent::GitIsDone { key, .. } => format!("git is done with {key}"),
            WorldEvent::SetupIsOver { key, done, .. } => format!("the setup of {key} is over, done: {done}"),
            WorldEvent::WorkIsOver { key, .. } => format!("an operation on {key} is over"),
            WorldEvent::KeeperSpawns { key, .. } => format!("the keeper of {key} starts"),
            WorldEvent::StopArrives { run, .. } => format!("SIGTERM reaches {run}"),
            WorldEvent::KillArrives { run } => format!("SIGKILL reaches {run}"),
            WorldEvent::GraceIsOver { run } => format!("the grace of {run} is over"),
            WorldEvent::Ends { run, .. } => format!("{run} ends"),
            WorldEvent::OrphanIsGone { run, .. } => format!("the daemon sees the end of orphan {run}"),
            WorldEvent::SnapshotIsTaken { key, .. } => format!("the snapshot of {key} is taken"),
            WorldEvent::TrashIsEmpty { project, .. } => format!("the trash of {project} is empty"),
            WorldEvent::EpochIsRaised { .. } => "the daemon has raised its epoch".into(),
            WorldEvent::ConnectionSpawns { .. } => "the shared process begins".into(),
            WorldEvent::ConnectionGreets { .. } => "the shared process answers the greeting".into(),
            WorldEvent::ConnectionEnds { .. } => "the shared process ends".into(),
            WorldEvent::ConnectionReported { event, .. } => connection_label(event).into(),
        }
    }
}

fn connection_label(event: &ConnectionEvent) -> &'static str {
    match event {
        ConnectionEvent::Initialized { .. } => "report: the connection is greeted",
        ConnectionEvent::HandshakeFailed { .. } => "report: the connection refuses the greeting",
        ConnectionEvent::Gone { .. } => "report: the connection is gone",
        other => panic!("nothing reports {other:?}"),
    }
}

fn report_label(event: &Event) -> String {
    match event {
        Event::WorkspaceMade { key, .. } => format!("report: the workspace of {key} is made"),
        Event::WorkspaceFailed { key, .. } => format!("report: the workspace of {key} failed"),
        Event::WorkspaceUndone { key, .. } => format!("report: the workspace of {key} is undone"),
        Event::SetupDone { key, .. } => format!("report: the setup of {key} is done"),
        Event::SetupFailed { key, .. } => format!("report: the setup of {key} failed"),
        Event::KeeperReady { run, .. } => format!("report: {run} is ready"),
        Event::KeeperFailed { key, .. } => format!("report: the keeper of {key} failed"),
        Event::RunExited { run, .. } => format!("report: {run} has ended"),
        other => panic!("nothing reports {other:?}"),
    }
}

//! Starts a run: its keeper, or its session on a connection.
//!
//! Not here: whether to start it, and with which words and environment (see `plan`).

use std::path::PathBuf;
use std::pin::Pin;
use std::time::{Duration, Instant};

use agency_api::keeper::Start;
use agency_api::paths::{RunDir, create_private};
use agency_api::{Failure, FailureCode};
use agency_core::slug::TaskName;
use agency_core::task_file::TaskFile;
use agency_core::tokens::Ports;
use agency_keeper::pidfile::PidFile;
use agency_keeper::platform;
use agency_store::clock;
use rustix::process::Signal;
use tokio::sync::mpsc;

use crate::blocking::blocking;
use crate::connection::{ConnectionCommand, ConnectionPlan, ConnectionSpec};
use crate::handle::RunHandle;
use crate::launch::{LaunchError, start_keeper};
use crate::plan::{LaunchContext, LaunchPlan};
use crate::report::{ReportSink, RunReporter};
use crate::run_context::RunContext;
use crate::run_meta::RunMeta;
use crate::view::screen_size;
use crate::{capacity, environment, fold, follow};

/// Gives a start its connection: the existing one, or a new one.
pub type EnsureConnection = Box<
    dyn FnOnce(
            ConnectionPlan,
            ConnectionSpec,
        )
            -> Pin<Box<dyn Future<Output = Result<mpsc::Sender<ConnectionCommand>, Failure>> + Send>>
        + Send,
>;

/// A run whose keeper is started.
#[derive(Debug)]
pub struct StartedRun {
    /// The file of the run on disk.
    pub meta: RunMeta,
    /// The way to the run.
    pub handle: RunHandle,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

/// Everything a run is started with.
#[derive(Debug)]
pub struct Launch {
    /// The command, environment and terms.
    pub plan: LaunchPlan,
    /// The connection, for a session on one.
    pub connection: Option<ConnectionPlan>,
    /// The file of the run on disk.
    pub meta: RunMeta,
    /// The terms under which the daemon follows the run.
    pub context: RunContext,
    /// The name of the task.
    pub name: TaskName,
    /// The file of the task.
    pub file: TaskFile,
    /// The directory of the workspace.
    pub worktree: PathBuf,
    /// The daemon's socket.
    pub socket: PathBuf,
    /// The journal of the last run in a terminal, whose scrollback the new one continues.
    pub last_journal: Option<PathBuf>,
    /// The ports of the workspace.
    pub ports: Option<Ports>,
}

impl Launch {
    /// Starts the run and follows it. A start that fails leaves no process and no directory.
    pub async fn run(self, sink: ReportSink, connections: EnsureConnection) -> Result<StartedRun, Failure> {
        match self.connection.clone() {
            Some(connection) => self.open_session(connection, sink, connections).await,
            None => self.start_and_follow(sink).await,
        }
    }

    /// Opens a session on a connection, and makes the connection first if there is none.
    async fn open_session(
        self,
        connection: ConnectionPlan,
        sink: ReportSink,
        connections: EnsureConnection,
    ) -> Result<StartedRun, Failure> {
        let (context, meta) = (self.context.clone(), self.meta.clone());
        let (run, dir) = (context.id.clone(), context.dir.clone());
        let opened = async {
            let (spec, notes) = blocking(move || self.connection_spec()).await?;
            let commands = connections(connection, spec).await?;
            let report = RunReporter { sink, run };
            Ok((follow::follow_session(&commands, context, report, false).await?, notes))
        };
        match opened.await {
            Ok((handle, notes)) => Ok(StartedRun { meta, handle, notes }),
            Err(failure) => {
                remove_run_dir(&dir);
                Err(failure)
            }
        }
    }

    /// Blocking. Makes the run's directory.
    fn connection_spec(&self) -> Result<(ConnectionSpec, Vec<String>), Failure> {
        self.prepare()?;
        if !self.plan.has_own_connection() {
            return Ok((self.plan.shared_connection_spec()?, Vec::new()));
        }
        let (spec, notes) = self.plan.spec(&self.file, &self.launch_context())?;
        let Start::Spawn { argv, env, cwd, .. } = spec.start else {
            return Err(Failure::new("the connection cannot be started").code(FailureCode::Internal));
        };
        let env = environment::from_wire(env);
        let cwd = cwd.as_os_str().into();
        Ok((ConnectionSpec { argv, env, cwd, spare: spec.spare, open_files: self.context.open_files }, notes))
    }

    async fn start_and_follow(self, sink: ReportSink) -> Result<StartedRun, Failure> {
        let (context, meta) = (self.context.clone(), self.meta.clone());
        start_and_follow(context, meta, sink, move || self.start()).await
    }

    /// Blocking.
    fn start(&self) -> Result<Vec<String>, Failure> {
        self.prepare()?;
        let (mut spec, notes) = self.plan.spec(&self.file, &self.launch_context())?;
        spec.open_files = self.context.open_files;
        spec.owner = self.context.owner.clone();
        let seed = self.seed();
        start_keeper(&self.context.keeper_binary, &spec, seed, None).map_err(|err| launch_failure(&err))?;
        Ok(notes)
    }

    fn prepare(&self) -> Result<(), Failure> {
        prepare_directory(&self.context.dir, &self.meta)
    }

    fn launch_context(&self) -> LaunchContext<'_> {
        LaunchContext {
            name: &self.name,
            root: &self.meta.root,
            worktree: &self.worktree,
            run: &self.context.id,
            run_dir: &self.context.dir,
            daemon_socket: &self.socket,
            keeper_binary: &self.context.keeper_binary,
            ports: self.ports,
        }
    }

    /// The screen and scrollback of the last run. If its journal cannot be read, the agent starts without them.
    fn seed(&self) -> Option<Vec<u8>> {
        let journal = self.last_journal.as_ref()?;
        match fold::seed(journal, screen_size(self.plan.size), self.context.settings(), clock::now()) {
            Ok(seed) => Some(seed),
            Err(cause) => {
                tracing::warn!(journal = %journal.display(), %cause, "cannot read the scrollback of the last run");
                None
            }
        }
    }
}

/// Starts a keeper with `start`, which returns remarks for the user, and follows it. Blocking work runs beside the loop. A
/// start that fails leaves no process and no directory.
pub(crate) async fn start_and_follow(
    context: RunContext,
    meta: RunMeta,
    sink: ReportSink,
    start: impl FnOnce() -> Result<Vec<String>, Failure> + Send + 'static,
) -> Result<StartedRun, Failure> {
    let dir = context.dir.clone();
    let notes = blocking(move || start().inspect_err(|_| remove_run_dir(&dir))).await?;
    let (run, dir) = (context.id.clone(), context.dir.clone());
    match follow::follow_run(context, RunReporter { sink, run }).await {
        Ok(handle) => Ok(StartedRun { meta, handle, notes }),
        Err(cause) => {
            blocking(move || end_keeper(&dir)).await?;
            Err(Failure::new("the keeper started, but cannot be reached")
                .code(FailureCode::StartFailed)
                .caused_by(&cause))
        }
    }
}

/// Blocking. Makes the directory of a run and writes down whose run it is.
pub(crate) fn prepare_directory(dir: &RunDir, meta: &RunMeta) -> Result<(), Failure> {
    let prepared = create_private(&dir.journal()).and_then(|()| meta.write(dir));
    prepared.map_err(|err| {
        Failure::new(format!("cannot write {}", dir.path().display()))
            .code(FailureCode::IoError)
            .caused_by(&err)
    })
}

pub(crate) fn launch_failure(error: &LaunchError) -> Failure {
    let hint = capacity::hint(error);
    let code = if hint.is_some() { FailureCode::OutOfCapacity } else { FailureCode::StartFailed };
    Failure::from_error(error, hint).code(code)
}

/// Blocking. Ends a keeper that cannot be reached, and its agent with it: a start that failed leaves no process.
fn end_keeper(dir: &RunDir) -> Result<(), Failure> {
    let Ok(Some(PidFile { keeper, .. })) = PidFile::read(&dir.pid_file()) else { return Ok(()) };
    let cannot = |cause: &std::io::Error| {
        Failure::new("a keeper cannot be ended").code(FailureCode::StopFailed).caused_by(cause)
    };
    platform::signal_if_same(&keeper, Signal::TERM).map_err(|err| cannot(&err))?;
    let deadline = Instant::now() + KEEPER_ENDS_WITHIN;
    while platform::is_alive(&keeper) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The keeper ends its process tree first, with a grace of two seconds.
const KEEPER_ENDS_WITHIN: Duration = Duration::from_secs(10);

/// Removes the directory of a start that failed. Nothing in it is worth keeping.
fn remove_run_dir(dir: &RunDir) {
    if let Err(left) = std::fs::remove_dir_all(dir.path()) {
        tracing::warn!(%left, "the directory of a failed start stays behind");
    }
}

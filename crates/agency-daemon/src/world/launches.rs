//! Starting an agent's keeper, or its session on a connection.
//!
//! Not here: whether to start one (the supervisor orders it), and with which words and environment (see `plan`).

use std::path::PathBuf;
use std::time::{Duration, Instant};

use agency_api::Failure;
use agency_api::keeper::Start;
use agency_api::paths::{RunDir, create_private};
use agency_core::agent::Driver;
use agency_core::ids::{Epoch, TaskKey};
use agency_core::slug::TaskName;
use agency_core::supervisor::StartCause;
use agency_core::task_file::TaskFile;
use agency_core::tokens::Ports;
use agency_keeper::pidfile::PidFile;
use agency_keeper::platform;
use agency_run::blocking::blocking;
use agency_run::capacity;
use agency_run::connection::{ConnectionPlan, ConnectionSpec};
use agency_run::environment;
use agency_run::fold;
use agency_run::follow;
use agency_run::launch::{LaunchError, start_keeper};
use agency_run::plan::{LaunchContext, LaunchPlan, StartOptions};
use agency_run::report::RunReporter;
use agency_run::run_context::RunContext;
use agency_run::run_meta::{self, AcpMeta, RunMeta};
use agency_run::view::screen_size;
use agency_store::clock;
use agency_work::turns;
use agency_workspace::{Project, Vcs, WorkspaceName};
use rustix::process::Signal;

use super::World;
use super::loop_event::{LoopEvent, Reporter, StartedRun};
use super::tasks::no_task;

impl World {
    pub(super) fn start_keeper(&mut self, key: TaskKey, epoch: Epoch, cause: StartCause) {
        let reporter = self.context.reporter.clone();
        match self.prepare_launch(&key, cause) {
            Ok(launch) => {
                tokio::spawn(async move {
                    let started = launch.run(reporter.clone()).await.map(Box::new);
                    reporter.report(LoopEvent::KeeperStarted { key, epoch, started }).await;
                });
            }
            Err(failure) => {
                tokio::spawn(async move {
                    reporter.report(LoopEvent::KeeperStarted { key, epoch, started: Err(failure) }).await;
                });
            }
        }
    }

    fn prepare_launch(&mut self, key: &TaskKey, cause: StartCause) -> Result<Launch, Failure> {
        if cause == StartCause::Crash {
            self.plan_again(key)?;
        }
        let plan =
            self.starts.plans.get(key).cloned().ok_or_else(|| Failure::new("the start was not planned"))?;
        let (project, workspace) = self.workspace_of(key)?;
        let task = self.store.task(key).ok_or_else(|| no_task(key))?;
        let file =
            self.store.file(key).map_err(|err| Failure::new("the task cannot be started").caused_by(&err))?;
        let run = run_meta::new_run_id().map_err(|err| Failure::new("no random numbers").caused_by(&err))?;
        let dir = self.context.state.run(&run.0);
        let ports = self.workspaces.records.get(key).ports();
        let worktree = agency_workspace::workspace_path(&project, &workspace);
        if !worktree.is_dir() {
            // Never start it in another directory: the agent would work on the wrong files.
            return Err(Failure::new(format!("the workspace {} is gone", worktree.display())));
        }
        let runs = self.runs.history.get(key).map(Vec::as_slice).unwrap_or_default();
        let before = runs.last();
        let is_in_terminal = |meta: &&RunMeta| meta.driver == Driver::Terminal.to_string();
        let last_journal = runs.iter().rfind(is_in_terminal).filter(|_| plan.driver == Driver::Terminal);
        let last_journal = last_journal.map(|meta| self.context.state.run(&meta.run.0).journal());
        let connection = (plan.driver == Driver::Acp).then(|| self.connection_for(key, &plan, &task.name));
        let meta = RunMeta {
            run: run.clone(),
            host: self.context.state.host().to_string(),
            host_name: run_meta::host_name(),
            root: project.root().to_path_buf(),
            vcs: project.vcs().to_string(),
            task: key.task.0,
            slug: task.name.slug.as_str().to_string(),
            agent: plan.agent.name.clone(),
            driver: plan.driver.to_string(),
            program: plan.fold.program.clone(),
            base_branch: file.fields().base_branch.clone(),
            acp: connection.as_ref().map(|connection| AcpMeta {
                connection: connection.name.clone(),
                cwd: worktree.clone(),
                session_id: file.fields().session_id.clone(),
                must_resume: before.is_some_and(|meta| meta.acp.is_none()),
                mode: plan.agent.mode.clone(),
                servers: self.mcp_server(key, &run, project.root()).into_iter().collect(),
            }),
            started_at: clock::timestamp(),
            order: before.map_or(1, |meta| meta.order + 1),
        };
        Ok(Launch {
            last_journal,
            context: RunContext {
                id: run,
                name: task.name.to_string(),
                driver: plan.driver,
                is_session: connection.is_some(),
                conversation: meta.conversation_terms(),
                before: self.conversations_before(runs, &meta),
                dir,
                epoch: self.context.epoch,
                keeper_binary: self.context.keeper_binary.clone(),
                open_files: plan.open_files.or(self.context.open_files),
                spare: plan.agent.spare.clone(),
                fold: plan.fold.clone(),
                rule_book: self.context.rule_book.clone(),
            },
            name: task.name.clone(),
            file: file.clone(),
            turns: (plan.driver != Driver::Terminal && project.vcs() != Vcs::Plain)
                .then_some((project, workspace)),
            worktree,
            socket: self.context.state.daemon_socket(),
            connection,
            plan,
            meta,
            ports,
        })
    }

    /// The connection that the task's session will use.
    fn connection_for(&self, key: &TaskKey, plan: &LaunchPlan, name: &TaskName) -> ConnectionPlan {
        let agent = &plan.agent;
        // A project that configures an agent in its own way must not share that connection with other projects.
        let usual = self
            .settings(None)
            .ok()
            .and_then(|settings| settings.config.agents.find(&agent.name).cloned().ok());
        let is_usual = usual.is_some_and(|usual| (&usual.acp, &usual.env) == (&agent.acp, &agent.env));
        let connection = match (plan.has_own_connection(), is_usual) {
            (true, _) => self.own_connection_name(key, &agent.name, &name.to_string()),
            (false, true) => agent.name.clone(),
            (false, false) => format!("{}@{}", agent.name, key.project),
        };
        ConnectionPlan {
            name: connection,
            agent: agent.name.clone(),
            display_name: agent.display_name.clone(),
            is_own: plan.has_own_connection(),
        }
    }

    /// A restart after a crash has no caller, so it uses the environment that the keeper held.
    fn plan_again(&mut self, key: &TaskKey) -> Result<(), Failure> {
        let environment = self.runs.environments.remove(key).unwrap_or_default();
        let mut caller = agency_api::method::Caller { env: environment, ..Default::default() };
        if let Some(plan) = self.starts.plans.get(key) {
            caller.size = Some(plan.size);
            caller.open_files = plan.open_files;
            caller.overrides = plan.overrides.clone();
        }
        let plan = self.plan_start(key, &caller, StartOptions::default())?;
        self.starts.plans.insert(key.clone(), plan);
        Ok(())
    }
}

fn launch_failure(error: &LaunchError) -> Failure {
    Failure::from_error(error, capacity::hint(error))
}

/// Blocking. Ends a keeper that cannot be reached, and its agent with it: a start that failed leaves no process.
fn end_keeper(dir: &RunDir) -> Result<(), Failure> {
    let Ok(Some(PidFile { keeper, .. })) = PidFile::read(&dir.pid_file()) else { return Ok(()) };
    let cannot = |cause: &std::io::Error| Failure::new("a keeper cannot be ended").caused_by(cause);
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

/// Takes a snapshot of the files before the first turn. If that fails, the agent still starts.
async fn snapshot_before_first_turn(project: Project, name: WorkspaceName) {
    if let Err(cause) = blocking(move || turns::keep_start(&project, &name)).await {
        tracing::warn!(%cause, "no snapshot was taken before the first turn");
    }
}

/// Everything a run is started with.
struct Launch {
    plan: LaunchPlan,
    /// The connection, for a session on one.
    connection: Option<ConnectionPlan>,
    meta: RunMeta,
    context: RunContext,
    name: TaskName,
    file: TaskFile,
    worktree: PathBuf,
    socket: PathBuf,
    last_journal: Option<PathBuf>,
    ports: Option<Ports>,
    /// The workspace, if the driver reports the turns of its agent.
    turns: Option<(Project, WorkspaceName)>,
}

impl Launch {
    async fn run(self, reporter: Reporter) -> Result<StartedRun, Failure> {
        if let Some((project, name)) = self.turns.clone() {
            snapshot_before_first_turn(project, name).await;
        }
        match self.connection.clone() {
            Some(connection) => self.open_session(connection, reporter).await,
            None => self.start_and_follow(reporter).await,
        }
    }

    /// Opens a session on a connection, and makes the connection first if there is none.
    async fn open_session(
        self,
        connection: ConnectionPlan,
        reporter: Reporter,
    ) -> Result<StartedRun, Failure> {
        let (context, meta) = (self.context.clone(), self.meta.clone());
        let (run, dir) = (context.id.clone(), context.dir.clone());
        let opened = async {
            let (spec, notes) = blocking(move || self.connection_spec()).await?;
            let (answer, ensured) = tokio::sync::oneshot::channel();
            reporter
                .report(LoopEvent::EnsureConnection { plan: connection, spec: Box::new(spec), answer })
                .await;
            let commands = ensured.await.unwrap_or_else(|_| Err(Failure::new("the daemon is leaving")))?;
            let report = RunReporter { sink: reporter.sink(), run };
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
            return Err(Failure::new("the connection cannot be started"));
        };
        let env = environment::from_wire(env);
        let cwd = cwd.as_os_str().into();
        Ok((ConnectionSpec { argv, env, cwd, spare: spec.spare, open_files: self.context.open_files }, notes))
    }

    async fn start_and_follow(self, reporter: Reporter) -> Result<StartedRun, Failure> {
        let (context, meta) = (self.context.clone(), self.meta.clone());
        let dir = context.dir.clone();
        let notes = blocking(move || {
            self.start().inspect_err(|_| {
                remove_run_dir(&dir);
            })
        })
        .await?;
        let run = context.id.clone();
        let dir = context.dir.clone();
        match follow::follow_run(context, RunReporter { sink: reporter.sink(), run }).await {
            Ok(handle) => Ok(StartedRun { meta, handle, notes }),
            Err(cause) => {
                blocking(move || end_keeper(&dir)).await?;
                Err(Failure::new("the keeper started, but cannot be reached").caused_by(&cause))
            }
        }
    }

    /// Blocking.
    fn start(&self) -> Result<Vec<String>, Failure> {
        self.prepare()?;
        let (mut spec, notes) = self.plan.spec(&self.file, &self.launch_context())?;
        spec.open_files = self.context.open_files;
        let seed = self.seed();
        start_keeper(&self.context.keeper_binary, &spec, seed, None).map_err(|err| launch_failure(&err))?;
        Ok(notes)
    }

    fn prepare(&self) -> Result<(), Failure> {
        let dir = &self.context.dir;
        let prepared = create_private(&dir.journal()).and_then(|()| self.meta.write(dir));
        prepared.map_err(|err| Failure::new(format!("cannot write {}", dir.path().display())).caused_by(&err))
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

//! One function per effect.

use std::time::{Duration, Instant};

use agency_api::Failure;
use agency_api::event::{ErrorEvent, StatusChangeEvent};
use agency_api::keeper::Start;
use agency_api::paths::{RunDir, create_private};
use agency_core::agent::Driver;
use agency_core::exit::RunExit;
use agency_core::ids::{Epoch, RunId, TaskKey, Ticket};
use agency_core::slug::TaskName;
use agency_core::supervisor::{Effect, Notice, Outcome, Refusal, StartCause};
use agency_core::task_file::{Field, LastExit};
use agency_core::task_status::TaskStatus;
use agency_keeper::pidfile::PidFile;
use agency_keeper::platform;
use agency_run::environment;
use agency_run::fold;
use agency_run::hold::{RunContext, screen_size};
use agency_run::launch::{LaunchError, start_keeper};
use agency_run::plan::{LaunchPlan, Place, Wish};
use agency_run::room;
use agency_run::run::{self, NewsDesk, RunCommand};
use agency_run::run_meta::{self, AcpMeta, RunMeta};
use agency_run::switchboard::{WirePlan, WireSpec};
use agency_store::clock;
use agency_workspace::{Presence, Project, Vcs, Workspace, WorkspaceName};
use rustix::process::Signal;

use super::notices::ended_with;
use super::{Pending, World};
use crate::happening::{Happening, Reporter, StartedRun};
use crate::rpc;

impl World {
    pub(super) fn perform(&mut self, effect: Effect, next: &[Effect]) {
        match effect {
            Effect::MakeWorkspace { key, epoch } => self.make_workspace(key, epoch),
            Effect::UndoWorkspace { key, epoch } => self.undo_workspace(key, epoch),
            Effect::SetUp { key, epoch } => self.set_up(key, epoch),
            Effect::EndSetup { key, .. } => self.end_setup(&key),
            Effect::StartKeeper { key, epoch, cause, .. } => self.start_keeper(key, epoch, cause),
            Effect::StopRun { run, grace, .. } => self.command(&run, RunCommand::Stop { grace }),
            Effect::KillRun { run, .. } => self.command(&run, RunCommand::Stop { grace: Duration::ZERO }),
            Effect::DismissRun { run, .. } => self.dismiss_run(&run),
            Effect::WriteStatus { key, status } => self.write_status(&key, status),
            Effect::WriteExit { key, exit, .. } => self.write_exit(&key, exit, status_in(next, &key)),
            Effect::UndoTask { key } => self.undo_task(&key),
            Effect::Reply { ticket, outcome } => self.reply(ticket, outcome),
            Effect::Report(notice) => self.report(notice),
            Effect::Quit => self.end_wires(),
        }
    }

    fn make_workspace(&mut self, key: TaskKey, epoch: Epoch) {
        self.expect_workspace(&key);
        let reporter = self.ground.reporter.clone();
        let planned = self.workspace_of(&key).map(|(project, name)| {
            let base = self.store.file(&key).ok().and_then(|file| file.fields().base_branch.clone());
            (project, name, base)
        });
        tokio::spawn(async move {
            let made = match planned {
                Ok((project, name, base)) => {
                    rpc::blocking(move || make(&project, &name, base.as_deref())).await
                }
                Err(failure) => Err(failure),
            };
            reporter.report(Happening::WorkspaceMade { key, epoch, made }).await;
        });
    }

    fn undo_workspace(&mut self, key: TaskKey, epoch: Epoch) {
        let reporter = self.ground.reporter.clone();
        let made = self.made.remove(&key);
        let project = self.workspace_of(&key).map(|(project, _)| project);
        tokio::spawn(async move {
            if let (Ok(project), Some(workspace)) = (project, made) {
                let undone = rpc::blocking(move || {
                    agency_workspace::undo_create(&project, &workspace)
                        .map_err(|err| Failure::from_error(&err, err.hint()))
                });
                if let Err(left) = undone.await {
                    tracing::warn!(task = %key, %left, "a workspace stays behind");
                }
            }
            reporter.report(Happening::WorkspaceUndone { key, epoch }).await;
        });
    }

    fn start_keeper(&mut self, key: TaskKey, epoch: Epoch, cause: StartCause) {
        let reporter = self.ground.reporter.clone();
        match self.prepare_launch(&key, cause) {
            Ok(launch) => {
                tokio::spawn(async move {
                    let started = launch.go(reporter.clone()).await.map(Box::new);
                    reporter.report(Happening::KeeperStarted { key, epoch, started }).await;
                });
            }
            Err(failure) => {
                tokio::spawn(async move {
                    reporter.report(Happening::KeeperStarted { key, epoch, started: Err(failure) }).await;
                });
            }
        }
    }

    fn prepare_launch(&mut self, key: &TaskKey, cause: StartCause) -> Result<Launch, Failure> {
        if cause == StartCause::Crash {
            self.plan_again(key)?;
        }
        let plan = self.plans.get(key).cloned().ok_or_else(|| Failure::new("the start was not planned"))?;
        let (project, workspace) = self.workspace_of(key)?;
        let task =
            self.store.task(key).ok_or_else(|| Failure::new(format!("there is no task {}", key.task)))?;
        let file =
            self.store.file(key).map_err(|err| Failure::new("the task cannot be started").caused_by(&err))?;
        let run = run_meta::new_run_id().map_err(|err| Failure::new("no random numbers").caused_by(&err))?;
        let dir = self.ground.state.run(&run.0);
        let ports = self.workspaces.get(key).ports();
        let worktree = agency_workspace::workspace_path(&project, &workspace);
        if !worktree.is_dir() {
            // Never go on elsewhere: an agent in the wrong directory works on the wrong files.
            return Err(Failure::new(format!("the workspace {} is gone", worktree.display())));
        }
        let runs = self.history.get(key).map(Vec::as_slice).unwrap_or_default();
        let before = runs.last();
        let is_in_terminal = |meta: &&RunMeta| meta.driver == Driver::Terminal.to_string();
        let last_journal = runs.iter().rfind(is_in_terminal).filter(|_| plan.driver == Driver::Terminal);
        let last_journal = last_journal.map(|meta| self.ground.state.run(&meta.run.0).journal());
        let wire = (plan.driver == Driver::Acp).then(|| self.wire_for(key, &plan, &task.name));
        let meta = RunMeta {
            run: run.clone(),
            host: self.ground.state.host().to_string(),
            host_name: run_meta::host_name(),
            root: project.root().to_path_buf(),
            vcs: project.vcs().to_string(),
            task: key.task.0,
            slug: task.name.slug.as_str().to_string(),
            agent: plan.agent.name.clone(),
            driver: plan.driver.to_string(),
            program: plan.fold.program.clone(),
            base_branch: file.fields().base_branch.clone(),
            acp: wire.as_ref().map(|wire| AcpMeta {
                wire: wire.name.clone(),
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
                is_seat: wire.is_some(),
                talk: meta.talk_terms(),
                before: self.talks_before(runs, &meta),
                dir,
                epoch: self.ground.epoch,
                keeper_binary: self.ground.keeper_binary.clone(),
                open_files: plan.open_files.or(self.ground.open_files),
                spare: plan.agent.spare.clone(),
                fold: plan.fold.clone(),
                rule_book: self.ground.rule_book.clone(),
            },
            name: task.name.clone(),
            file: file.clone(),
            turns: (plan.driver != Driver::Terminal && project.vcs() != Vcs::Plain)
                .then_some((project, workspace)),
            worktree,
            socket: self.ground.state.daemon_socket(),
            wire,
            plan,
            meta,
            ports,
        })
    }

    /// Which connection a task's session is to be on.
    fn wire_for(&self, key: &TaskKey, plan: &LaunchPlan, name: &TaskName) -> WirePlan {
        let agent = &plan.agent;
        // A project that has its own idea of an agent must not give it to others.
        let usual = self
            .settings(None)
            .ok()
            .and_then(|settings| settings.config.agents.find(&agent.name).cloned().ok());
        let is_usual = usual.is_some_and(|usual| (&usual.acp, &usual.env) == (&agent.acp, &agent.env));
        let wire = match (plan.has_own_wire(), is_usual) {
            (true, _) => self.own_wire_name(key, &agent.name, &name.to_string()),
            (false, true) => agent.name.clone(),
            (false, false) => format!("{}@{}", agent.name, key.project),
        };
        WirePlan {
            name: wire,
            agent: agent.name.clone(),
            display_name: agent.display_name.clone(),
            is_own: plan.has_own_wire(),
        }
    }

    /// A restart after a crash has no caller: its environment is what the keeper held.
    fn plan_again(&mut self, key: &TaskKey) -> Result<(), Failure> {
        let environment = self.environments.remove(key).unwrap_or_default();
        let mut caller = agency_api::method::Caller { env: environment, ..Default::default() };
        if let Some(plan) = self.plans.get(key) {
            caller.size = Some(plan.size);
            caller.open_files = plan.open_files;
            caller.overrides = plan.overrides.clone();
        }
        let plan = self.plan_start(key, &caller, Wish::default())?;
        self.plans.insert(key.clone(), plan);
        Ok(())
    }

    pub(super) fn command(&self, run: &RunId, command: RunCommand) {
        match self.runs.get(run) {
            Some(live) => live.handle.command(command),
            // Over already, which is what most commands want.
            None => tracing::debug!(%run, "no such run to command"),
        }
    }

    fn dismiss_run(&mut self, run: &RunId) {
        self.command(run, RunCommand::Dismiss);
        if let Some(live) = self.runs.remove(run) {
            self.environments.insert(live.key, live.handle.environment);
        }
    }

    pub(super) fn write_status(&mut self, key: &TaskKey, status: TaskStatus) {
        self.write(key, vec![Field::Status(status)]);
        self.announce(Some(key), None, StatusChangeEvent { status: agency_run::view::status(status) });
    }

    /// With the status that is about to be written anyway: the disk is asked once.
    pub(super) fn write_exit(&mut self, key: &TaskKey, exit: RunExit, status: Option<TaskStatus>) {
        let last = LastExit { code: exit.code, raw: exit.raw, at: Some(clock::timestamp()) };
        let status = status.map(Field::Status);
        self.write(key, [Field::LastExit(Some(last))].into_iter().chain(status).collect());
    }

    fn write(&mut self, key: &TaskKey, fields: Vec<Field>) {
        // What was edited by hand meanwhile is seen, not just written around.
        if let Ok(changed) = self.store.refresh(&key.project) {
            self.see_changes(&key.project, changed);
        }
        if let Err(cause) = self.store.set(key, fields) {
            tracing::error!(task = %key, %cause, "the task file cannot be written");
            self.failures.insert(key.clone(), super::tasks::store_failure_of(&cause));
            let error = ErrorEvent::new("the task file cannot be written", cause.to_string());
            self.announce(Some(key), None, error);
        }
    }

    fn undo_task(&mut self, key: &TaskKey) {
        if let Err(cause) = self.store.undo_create(key) {
            tracing::warn!(task = %key, %cause, "a task file stays behind");
        }
        self.plans.remove(key);
        self.workspaces.forget(key);
    }

    fn report(&mut self, notice: Notice) {
        match notice {
            Notice::Crashed { key, run, exit } => {
                tracing::warn!(task = %key, %run, code = %exit.code, "the agent crashed");
                let error = ErrorEvent::new("the agent crashed", ended_with(exit));
                self.announce(Some(&key), Some(&run), error);
                self.ended_unasked(&key, Some(&run), ended_with(exit));
            }
            Notice::Restarting { key, attempt } => {
                tracing::info!(task = %key, attempt, "restarting after a crash");
                self.notices.notifier.needs_nobody(&key);
            }
            Notice::RestartGivenUp { key, why } => {
                tracing::error!(task = %key, %why, "not restarted any more");
                let error = ErrorEvent::new("not restarted any more", why.to_string());
                self.announce(Some(&key), None, error);
                self.last_error(&key, "the agent is not restarted any more", &why.to_string());
                self.tell_unsent(&key);
                self.ended_unasked(&key, None, format!("not restarted any more: {why}"));
            }
            Notice::RestartFailed { key, error } => {
                tracing::error!(task = %key, cause = %error, "the restart failed");
                self.announce(Some(&key), None, ErrorEvent::new("the restart failed", error.clone()));
                self.last_error(&key, "the restart failed", &error);
                self.ended_unasked(&key, None, format!("the restart failed: {error}"));
            }
            Notice::WontDie { key, run } => {
                tracing::error!(task = %key, %run, "not even SIGKILL ended the run");
                let error = ErrorEvent::new("the run does not end", "SIGKILL did not help");
                self.announce(Some(&key), Some(&run), error);
            }
            Notice::DaemonResumeMarkStopped { marked_stopped, adopted, elsewhere } => {
                tracing::info!(marked_stopped, adopted, elsewhere, "daemon_resume_mark_stopped");
            }
        }
    }

    fn reply(&mut self, ticket: Ticket, outcome: Result<Outcome, Refusal>) {
        let Some(pending) = self.pending.remove(&ticket) else {
            return tracing::error!(%ticket, "an answer that nobody waits for");
        };
        match pending {
            Pending::Start { key, answer } => self.answer_start(&key, answer, outcome),
            Pending::Stop { key, answer } => self.answer_stop(&key, answer, outcome),
            Pending::Mark { key, answer } => {
                let unwritten = self.failures.remove(&key).map_or(Ok(()), Err);
                let view = outcome.map_err(refused).and(unwritten).and_then(|()| self.view(&key));
                answer.give_as(view);
            }
            Pending::Remove { key, wish, answer } => self.answer_remove(key, &wish, answer, outcome),
            Pending::Vanished { key } => self.answer_vanished(&key, outcome),
            Pending::Merge { key, merged, committed, answer } => {
                self.answer_merge(&key, merged, committed, answer, outcome)
            }
            Pending::Adopt { key, run, answer } => self.answer_adopt(&key, &run, answer, outcome),
            Pending::Shutdown { answer } => {
                if let Ok(Outcome::ShutDown { still_alive }) = &outcome {
                    for key in still_alive {
                        tracing::error!(task = %key, "still alive; the next daemon will find it");
                    }
                }
                if let Some(answer) = answer {
                    answer.give_as(outcome.map(|_| agency_api::method::Nothing {}).map_err(refused));
                }
            }
        }
    }
}

fn status_in(effects: &[Effect], wanted: &TaskKey) -> Option<TaskStatus> {
    effects.iter().find_map(|effect| match effect {
        Effect::WriteStatus { key, status } if key == wanted => Some(*status),
        _ => None,
    })
}

pub(super) fn refused(refusal: Refusal) -> Failure {
    let failure = Failure::new(refusal.to_string());
    match refusal.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn launch_failure(error: &LaunchError) -> Failure {
    Failure::from_error(error, room::hint(error))
}

/// The workspace of a task: made anew, or its directory brought back to a branch that is still there.
fn make(project: &Project, name: &WorkspaceName, base: Option<&str>) -> Result<Option<Workspace>, Failure> {
    let failed = |err: agency_workspace::CreateError| workspace_failure(&err);
    agency_workspace::exclude_agency_dir(project).map_err(|err| Failure::from_error(&err, err.hint()))?;
    let presence =
        agency_workspace::presence(project, name).map_err(|err| Failure::from_error(&err, err.hint()))?;
    match presence {
        Presence::Ready => Ok(None),
        Presence::DirectoryGone => {
            let mut workspace = agency_workspace::reattach(project, name).map_err(failed)?;
            workspace.warnings.push(format!(
                "the directory of {name} was gone and is made anew from its branch; \
                 if it was moved by hand, what was not committed is where it went"
            ));
            Ok(Some(workspace))
        }
        // What is in the way is for `create` to name.
        Presence::Absent | Presence::HalfMade | Presence::NotOurs => {
            agency_workspace::create(project, name, base).map(Some).map_err(failed)
        }
    }
}

pub fn workspace_failure(error: &agency_workspace::CreateError) -> Failure {
    Failure::from_error(error, error.hint())
}

/// Blocking. Ends a keeper that nobody can talk to, and its agent with it: a start that failed leaves no process.
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

/// It ends its tree first, with a grace of two seconds.
const KEEPER_ENDS_WITHIN: Duration = Duration::from_secs(10);

/// Made by a start that failed, and nothing in it is worth keeping.
fn remove_run_dir(dir: &RunDir) {
    if let Err(left) = std::fs::remove_dir_all(dir.path()) {
        tracing::warn!(%left, "the directory of a failed start stays behind");
    }
}

/// What there was before the first turn. An agent is not kept from its work for that.
async fn keep_beginning(project: Project, name: WorkspaceName) {
    let kept = rpc::blocking(move || {
        agency_workspace::snapshot_before_first_turn(&project, &name, "before the first turn")
            .map_err(|err| crate::discarded::operation_failure(&err))
    });
    if let Err(cause) = kept.await {
        tracing::warn!(%cause, "what was there before the first turn is not kept");
    }
}

/// Everything a run is started with.
struct Launch {
    plan: LaunchPlan,
    /// For a session on a connection.
    wire: Option<WirePlan>,
    meta: RunMeta,
    context: RunContext,
    name: agency_core::slug::TaskName,
    file: agency_core::task_file::TaskFile,
    worktree: std::path::PathBuf,
    socket: std::path::PathBuf,
    last_journal: Option<std::path::PathBuf>,
    ports: Option<agency_core::tokens::Ports>,
    /// The workspace of an agent whose turns are known.
    turns: Option<(Project, WorkspaceName)>,
}

impl Launch {
    async fn go(self, reporter: Reporter) -> Result<StartedRun, Failure> {
        if let Some((project, name)) = self.turns.clone() {
            keep_beginning(project, name).await;
        }
        match self.wire.clone() {
            Some(wire) => self.sit(wire, reporter).await,
            None => self.hold(reporter).await,
        }
    }

    /// A session on a connection, which is made first if it is not there.
    async fn sit(self, wire: WirePlan, reporter: Reporter) -> Result<StartedRun, Failure> {
        let (context, meta) = (self.context.clone(), self.meta.clone());
        let (run, dir) = (context.id.clone(), context.dir.clone());
        let seated = async {
            let (spec, notes) = rpc::blocking(move || self.wire_spec()).await?;
            let (answer, told) = tokio::sync::oneshot::channel();
            reporter.report(Happening::EnsureWire { plan: wire, spec: Box::new(spec), answer }).await;
            let board = told.await.unwrap_or_else(|_| Err(Failure::new("the daemon is leaving")))?;
            let news = NewsDesk { reporter: reporter.sink(), run };
            Ok((run::seated(&board, context, news, false).await?, notes))
        };
        match seated.await {
            Ok((handle, notes)) => Ok(StartedRun { meta, handle, notes }),
            Err(failure) => {
                remove_run_dir(&dir);
                Err(failure)
            }
        }
    }

    /// Blocking. Makes the run's directory.
    fn wire_spec(&self) -> Result<(WireSpec, Vec<String>), Failure> {
        self.prepare()?;
        if !self.plan.has_own_wire() {
            return Ok((self.plan.shared_wire()?, Vec::new()));
        }
        let (spec, notes) = self.plan.spec(&self.file, &self.place())?;
        let Start::Spawn { argv, env, cwd, .. } = spec.start else {
            return Err(Failure::new("the connection cannot be started"));
        };
        let env = environment::from_wire(env);
        let cwd = cwd.as_os_str().into();
        Ok((WireSpec { argv, env, cwd, spare: spec.spare, open_files: self.context.open_files }, notes))
    }

    async fn hold(self, reporter: Reporter) -> Result<StartedRun, Failure> {
        let (context, meta) = (self.context.clone(), self.meta.clone());
        let dir = context.dir.clone();
        let notes = rpc::blocking(move || {
            self.start().inspect_err(|_| {
                remove_run_dir(&dir);
            })
        })
        .await?;
        let run = context.id.clone();
        let dir = context.dir.clone();
        match run::follow(context, NewsDesk { reporter: reporter.sink(), run }).await {
            Ok(handle) => Ok(StartedRun { meta, handle, notes }),
            Err(cause) => {
                rpc::blocking(move || end_keeper(&dir)).await?;
                Err(Failure::new("the keeper started, but cannot be reached").caused_by(&cause))
            }
        }
    }

    /// Blocking.
    fn start(&self) -> Result<Vec<String>, Failure> {
        self.prepare()?;
        let (mut spec, notes) = self.plan.spec(&self.file, &self.place())?;
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

    fn place(&self) -> Place<'_> {
        Place {
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

    /// What earlier runs left on the screen. Lost history is a pity, not a reason to start nothing.
    fn seed(&self) -> Option<Vec<u8>> {
        let journal = self.last_journal.as_ref()?;
        match fold::seed(journal, screen_size(self.plan.size), self.context.settings(), clock::now()) {
            Ok(seed) => Some(seed),
            Err(cause) => {
                tracing::warn!(journal = %journal.display(), %cause, "the scrollback of the run before is lost");
                None
            }
        }
    }
}

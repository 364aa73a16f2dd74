//! Orphans: callers list the keepers and processes that belong to no task, end them, or give them back to a task.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agency_api::method::{self, Nothing, OrphanAdopted, OrphanRef, Orphans, Stopped};
use agency_api::{Failure, FailureCode, ProcessIdentity, view};
use agency_core::ids::{ProjectId, RunId, TaskId, TaskKey};
use agency_core::slug::{Slug, TaskName};
use agency_core::supervisor::{Event, FoundRun, FoundTask, Outcome, Refusal};
use agency_core::task_file::{Fields, TaskFile};
use agency_core::task_status::TaskStatus;
use agency_keeper::platform;
use agency_run::command::RunCommand;
use agency_run::follow;
use agency_run::handle::RunHandle;
use agency_run::process_tree::end_tree;
use agency_run::report::{RunReport, RunReporter};
use agency_run::run_meta::RunMeta;
use agency_server::Reply;
use agency_workspace::{Project, TakenBack, Vcs};
use rustix::process::Signal;

use super::loop_event::{LoopEvent, OpenedProject, OrphanRequest};
use super::router::Router;
use super::tasks::store_failure;
use super::{Pending, World};

/// A keeper ends its process tree first, with a grace of two seconds.
const KEEPER_ENDS_WITHIN: Duration = Duration::from_secs(10);

/// The time between SIGTERM and SIGKILL for an orphan.
const STOP_GRACE: Duration = Duration::from_secs(2);

pub(super) fn register(router: &mut Router) {
    router.on(method::OrphanList, World::orphan_list);
    router.on_reply(method::OrphanKill, World::kill_orphan);
    router.on_reply(method::OrphanAdopt, World::adopt_orphan);
}

pub struct OrphanRun {
    pub run: RunId,
    /// Whose run it is. `None` if nothing says it.
    pub meta: Option<RunMeta>,
    pub kind: view::OrphanKind,
    pub process: Option<ProcessIdentity>,
    /// Set while it is being ended: through which keeper, and for which caller.
    pub ending: Option<(RunHandle, Reply<Stopped>)>,
    /// The daemon is reaching its keeper, to give it back to its task.
    pub returning: bool,
}

impl OrphanRun {
    pub fn new(
        run: RunId,
        meta: Option<RunMeta>,
        kind: view::OrphanKind,
        process: Option<ProcessIdentity>,
    ) -> OrphanRun {
        OrphanRun { run, meta, kind, process, ending: None, returning: false }
    }

    /// Whether a process of the run may use this directory: it does, or the daemon cannot see what it uses.
    fn may_use(&self, directory: &Path) -> bool {
        let used = self.working_directories();
        used.is_empty() || used.iter().any(|at| at.as_ref().is_none_or(|at| at.starts_with(directory)))
    }

    /// Whether a process of the run certainly uses this directory.
    fn uses(&self, directory: &Path) -> bool {
        self.working_directories().iter().flatten().any(|at| at.starts_with(directory))
    }

    /// The working directory of each process of the run; `None` for one that the daemon cannot see.
    fn working_directories(&self) -> Vec<Option<PathBuf>> {
        let Some(process) = &self.process else { return Vec::new() };
        let mut members = platform::descendants(process.pid, &|_| true);
        if self.kind == view::OrphanKind::Process {
            members.extend(platform::process(process.pid));
        }
        members.iter().map(|member| platform::working_directory(member.pid)).collect()
    }
}

impl World {
    fn orphan_list(&mut self, _: Nothing) -> Orphans {
        Orphans { orphans: self.orphan_views() }
    }

    fn kill_orphan(&mut self, orphan: OrphanRef, reply: Reply<Stopped>) {
        self.handle_orphan(RunId(orphan.run), OrphanRequest::End(reply));
    }

    fn adopt_orphan(&mut self, orphan: OrphanRef, reply: Reply<OrphanAdopted>) {
        self.handle_orphan(RunId(orphan.run), OrphanRequest::Adopt(reply));
    }

    pub(super) fn orphan_views(&self) -> Vec<view::Orphan> {
        let seen = |orphan: &OrphanRun| {
            let meta = orphan.meta.as_ref();
            view::Orphan {
                run: orphan.run.0.clone(),
                kind: orphan.kind,
                project: meta.map(|meta| meta.root.as_path().into()),
                task: meta.map(|meta| meta.task),
                slug: meta.map(|meta| meta.slug.clone()),
                agent: meta.filter(|meta| meta.shell.is_none()).map(|meta| meta.agent.clone()),
                shell: meta.and_then(|meta| meta.shell.as_ref()).map(|shell| shell.name.clone()),
                pid: orphan.process.as_ref().map(|process| process.pid),
            }
        };
        self.runs.orphans.values().map(seen).collect()
    }

    fn orphan(&self, run: &RunId) -> Result<&OrphanRun, Failure> {
        let unknown = || {
            Failure::new(format!("no orphan is called {run}"))
                .code(FailureCode::NotFound)
                .hint("`agency orphans` lists them")
        };
        self.runs.orphans.get(run).ok_or_else(unknown)
    }

    /// The supervisor lets no agent start beside an orphan of the same task, unless that is only a terminal.
    pub(super) fn add_orphan(&mut self, orphan: OrphanRun) {
        if let Some(meta) = orphan.meta.as_ref().filter(|meta| meta.shell.is_none()) {
            self.supervisor.add_orphan(super::runs::key_of(meta), orphan.run.clone());
        }
        self.runs.orphans.insert(orphan.run.clone(), orphan);
    }

    /// Refuses a start while a run that nothing explains may use the same workspace, or while one of a project that is gone
    /// uses it: the user may have moved that project here.
    pub(super) fn refuse_unexplained(&self, key: &TaskKey) -> Result<(), Failure> {
        let worktree = self
            .workspace_of(key)
            .map(|(project, name)| agency_workspace::workspace_path(&project, &name))
            .ok()
            .and_then(|path| path.canonicalize().ok());
        // Without a workspace there is none to share.
        let Some(worktree) = worktree else { return Ok(()) };
        // The process of a session serves other tasks, too, so its working directory says nothing.
        let name = self.store.task(key).map(|task| &task.name);
        let is_session_of = |meta: &RunMeta| {
            let is_named = |name: &TaskName| name.id.0 == meta.task && name.slug.as_str() == meta.slug;
            meta.acp.is_some() && name.is_some_and(is_named)
        };
        let is_there = |orphan: &&OrphanRun| match &orphan.meta {
            None => orphan.may_use(&worktree),
            Some(meta) => !meta.root.is_dir() && (orphan.uses(&worktree) || is_session_of(meta)),
        };
        let Some(orphan) = self.runs.orphans.values().find(is_there) else { return Ok(()) };
        let run = &orphan.run;
        let process =
            orphan.process.as_ref().map_or_else(String::new, |process| format!(" (pid {})", process.pid));
        Err(Failure::new(format!("task {} may have a live agent already", key.task))
            .code(FailureCode::AgentRunning)
            .because(match &orphan.meta {
                None => format!("run {run}{process} is still running, and no record names its task"),
                Some(meta) => format!("run {run}{process} of {} is still running there", meta.root.display()),
            })
            .hint(format!("agency orphans kill {run}")))
    }

    /// Gives orphans back to tasks of the project that are known again.
    pub(super) fn return_orphans(&mut self, project: &ProjectId) {
        let is_wanted = |orphan: &&OrphanRun| {
            let Some(meta) = &orphan.meta else { return false };
            let key = super::runs::key_of(meta);
            key.project == *project
                && orphan.kind == view::OrphanKind::Keeper
                && orphan.ending.is_none()
                && !orphan.returning
                && self.store.task(&key).is_some_and(|task| task.name.slug.as_str() == meta.slug)
                && (meta.shell.is_some() || !self.runs.live.values().any(|live| live.key == key))
        };
        let wanted: Vec<RunId> =
            self.runs.orphans.values().filter(is_wanted).map(|orphan| orphan.run.clone()).collect();
        for run in wanted {
            tracing::info!(%run, "the task of an orphan is known again");
            if let Some(orphan) = self.runs.orphans.get_mut(&run) {
                orphan.returning = true;
            }
            self.follow_orphan(run, OrphanRequest::Adopt(Reply::without_caller()));
        }
    }

    /// Ends all orphans, because the user ends all agents. [`LoopEvent::OrphansEnded`] follows.
    pub(super) fn end_orphans(&mut self) {
        self.lifetime.ending_orphans = true;
        let orphans: Vec<(RunId, Option<ProcessIdentity>)> = self
            .runs
            .orphans
            .values()
            .map(|orphan| {
                let keeper = orphan.process.clone().filter(|_| orphan.kind == view::OrphanKind::Keeper);
                (orphan.run.clone(), keeper)
            })
            .collect();
        let reporter = self.context.reporter.clone();
        tokio::spawn(async move {
            let ends: Vec<_> = orphans
                .into_iter()
                .map(|(run, keeper)| tokio::task::spawn_blocking(move || end_run(&run.0, keeper.as_ref())))
                .collect();
            for end in ends {
                if let Err(cause) = end.await {
                    tracing::error!(%cause, "an orphan may be left");
                }
            }
            reporter.report(LoopEvent::OrphansEnded).await;
        });
    }

    fn remove_orphan(&mut self, run: &RunId) -> Option<OrphanRun> {
        self.supervisor.remove_orphan(run);
        self.runs.orphans.remove(run)
    }

    fn handle_orphan(&mut self, run: RunId, request: OrphanRequest) {
        match self.orphan(&run).map(|orphan| (orphan.kind, orphan.ending.is_some())) {
            Err(failure) => request.refuse(failure),
            Ok((_, true)) => {
                request.refuse(Failure::new(format!("{run} is being ended already")).code(FailureCode::Busy))
            }
            Ok((view::OrphanKind::Keeper, false)) => self.follow_orphan(run, request),
            // Its terminal is gone with its keeper, so no user can see it again: both requests end it.
            Ok((view::OrphanKind::Process, false)) => self.end_process(run, request),
        }
    }

    fn follow_orphan(&mut self, run: RunId, request: OrphanRequest) {
        let Some(orphan) = self.runs.orphans.get(&run) else { return };
        let reporter = self.context.reporter.clone();
        let Some(meta) = &orphan.meta else {
            let failure = unexplained(&run);
            return match request {
                OrphanRequest::End(_) => self.end_process(run, request),
                OrphanRequest::Adopt(_) => request.refuse(failure),
            };
        };
        let context = self.context_of(meta);
        let connection = self.commands_of_connection(meta);
        tokio::spawn(async move {
            let report = RunReporter { sink: reporter.sink(), run: run.clone() };
            let followed = match connection {
                Some(connection) => follow::follow_session(&connection, context, report, true).await,
                None => follow::follow_run(context, report).await.map_err(|err| {
                    Failure::new(format!("cannot reach the keeper of {run}"))
                        .code(FailureCode::IoError)
                        .caused_by(&err)
                }),
            };
            reporter.report(LoopEvent::OrphanFollowed { run, request, followed }).await;
        });
    }

    pub(super) fn on_orphan_followed(
        &mut self,
        run: RunId,
        request: OrphanRequest,
        followed: Result<RunHandle, Failure>,
    ) {
        if let Some(orphan) = self.runs.orphans.get_mut(&run) {
            orphan.returning = false;
        }
        let handle = match (followed, &request) {
            (Ok(handle), _) => handle,
            // Its keeper does not answer, so only signals are left.
            (Err(_), OrphanRequest::End(_)) => return self.end_process(run, request),
            (Err(failure), OrphanRequest::Adopt(_)) => return request.refuse(failure),
        };
        match request {
            OrphanRequest::End(reply) => {
                handle.command(RunCommand::Begin);
                handle.command(RunCommand::Stop { grace: STOP_GRACE });
                if let Some(orphan) = self.runs.orphans.get_mut(&run) {
                    orphan.ending = Some((handle, reply));
                }
            }
            OrphanRequest::Adopt(reply) => match self.task_for(&run) {
                Ok(key) => self.adopt_orphan_run(key, run, handle, reply),
                Err(failure) => reply.send(Err(failure)),
            },
        }
    }

    /// The task that an orphan was started for. Makes the task again if it is gone.
    fn task_for(&mut self, run: &RunId) -> Result<TaskKey, Failure> {
        let orphan = self.orphan(run)?;
        let meta = orphan.meta.clone().ok_or_else(|| unexplained(run))?;
        let vcs = meta.vcs.parse::<Vcs>().ok();
        let project = Project::open_with(&meta.root, vcs, agency_workspace::Environment::inherited())
            .map_err(|err| {
                Failure::new(format!("the project {} is gone", meta.root.display()))
                    .code(FailureCode::NotAProject)
                    .caused_by(&err)
            })?;
        let id = self.open_project(OpenedProject { project, taken_back: TakenBack::default() })?;
        let key = TaskKey { project: id.clone(), task: TaskId(meta.task) };
        if self.store.task(&key).is_some() {
            return Ok(key);
        }
        let slug =
            Slug::new(&meta.slug).map_err(|err| Failure::new(err.to_string()).code(FailureCode::Internal))?;
        let fields = Fields {
            base_branch: meta.base_branch.clone(),
            created_at: Some(meta.started_at.clone()),
            agent: Some(meta.agent.clone()),
            driver: meta.driver.parse().ok(),
            ..Fields::default()
        };
        let name = TaskName { id: key.task, slug };
        let file = TaskFile::create(fields, Vec::new());
        let key = self.store.create(&id, name, file).map_err(store_failure)?;
        let found = FoundTask { key: key.clone(), status: TaskStatus::Draft, run: FoundRun::None };
        self.decide(Event::TaskSeen(found));
        Ok(key)
    }

    fn adopt_orphan_run(&mut self, key: TaskKey, run: RunId, handle: RunHandle, reply: Reply<OrphanAdopted>) {
        let Some(meta) = self.remove_orphan(&run).and_then(|orphan| orphan.meta) else { return };
        if let Some(shell) = meta.shell.as_ref().map(|shell| shell.name.clone()) {
            self.register_shell(key.clone(), meta, handle);
            let task = self.view(&key);
            let adopted = |task| OrphanAdopted { task: Some(task), shell: Some(shell), notes: Vec::new() };
            return reply.send(task.map(adopted));
        }
        let terms = self.terms_of(&key, &meta);
        self.register(key.clone(), meta.clone(), handle);
        let history = self.runs.history.entry(key.clone()).or_default();
        if !history.contains(&meta) {
            history.push(meta);
        }
        let ticket = self.ticket(Pending::Adopt { key: key.clone(), run: run.clone(), reply });
        self.decide(Event::Adopt { key, ticket, run, terms });
    }

    pub(super) fn answer_adopt(
        &mut self,
        key: &TaskKey,
        run: &RunId,
        reply: Reply<OrphanAdopted>,
        outcome: Result<Outcome, Refusal>,
    ) {
        let refused_run = if outcome.is_err() { self.runs.live.remove(run) } else { None };
        if let Some(live) = refused_run {
            // The supervisor refused, so the run is an orphan again.
            let process = Some(live.handle.keeper);
            let run = live.meta.run.clone();
            self.add_orphan(OrphanRun::new(run, Some(live.meta), view::OrphanKind::Keeper, process));
        }
        reply.send(match outcome {
            Ok(_) => {
                self.view(key).map(|task| OrphanAdopted { task: Some(task), shell: None, notes: Vec::new() })
            }
            Err(refusal) => Err(self.refusal_failure(refusal)),
        });
    }

    /// Ends the processes of a run by signals: those without a keeper, because their terminal cannot be restored, and
    /// those whose keeper does not answer.
    fn end_process(&mut self, run: RunId, request: OrphanRequest) {
        let reporter = self.context.reporter.clone();
        let orphan = self.runs.orphans.get(&run).filter(|orphan| orphan.kind == view::OrphanKind::Keeper);
        let keeper = orphan.and_then(|orphan| orphan.process.clone());
        tokio::spawn(async move {
            let name = run.0.clone();
            let end = tokio::task::spawn_blocking(move || end_run(&name, keeper.as_ref()));
            let ended = end.await.unwrap_or(0);
            reporter.report(LoopEvent::OrphanEnded { run, request, ended }).await;
        });
    }

    pub(super) fn on_orphan_ended(&mut self, run: &RunId, request: OrphanRequest, ended: usize) {
        tracing::info!(%run, ended, "an orphaned process tree was ended");
        match request {
            OrphanRequest::End(reply) => {
                reply.send(Ok(Stopped { task: None, code: None, ended: Vec::new(), closed: Vec::new() }));
            }
            // Only the caller has an environment to start the task again with.
            OrphanRequest::Adopt(reply) => {
                let meta = self.runs.orphans.get(run).and_then(|orphan| orphan.meta.as_ref());
                let task = match meta.is_some_and(|meta| meta.shell.is_some()) {
                    true => Ok(None),
                    false => self.task_for(run).and_then(|key| self.view(&key)).map(Some),
                };
                let notes = vec!["only its process was left, and has been ended".to_string()];
                reply.send(task.map(|task| OrphanAdopted { task, shell: None, notes }));
            }
        }
        self.remove_orphan(run);
    }

    /// Handles the report of a run that belongs to no task.
    pub(super) fn on_orphan_report(&mut self, run: &RunId, report: RunReport) {
        let RunReport::Over { exit, ended } = report else { return };
        let Some(orphan) = self.remove_orphan(run) else { return };
        if let Some((handle, reply)) = orphan.ending {
            handle.command(RunCommand::Dismiss);
            self.runs.dismissed.push(handle.commands);
            reply.send(Ok(Stopped {
                task: None,
                code: Some(exit.code.to_string()),
                ended,
                closed: Vec::new(),
            }));
        }
    }
}

/// Blocking. Ends a run by signals: first its keeper, which ends the agent, then every process that carries the run id.
/// Returns how many processes it found.
fn end_run(run: &str, keeper: Option<&ProcessIdentity>) -> usize {
    let Some(keeper) = keeper else { return end_tree(run) };
    // A stopped keeper handles SIGTERM only after SIGCONT.
    for signal in [Signal::TERM, Signal::CONT] {
        if let Err(cause) = platform::signal_if_same(keeper, signal) {
            tracing::warn!(run, %cause, "cannot signal the keeper of an orphan");
        }
    }
    let deadline = Instant::now() + KEEPER_ENDS_WITHIN;
    while platform::is_alive(keeper) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    if let Ok(true) = platform::signal_if_same(keeper, Signal::KILL) {
        tracing::warn!(run, pid = keeper.pid, "the keeper of an orphan did not end by itself");
    }
    1 + end_tree(run)
}

fn unexplained(run: &RunId) -> Failure {
    Failure::new(format!("nothing says which task {run} belongs to"))
        .code(FailureCode::NotFound)
        .hint(format!("agency orphans kill {run}"))
}

//! Orphans: callers list the keepers and processes that belong to no task, end them, or give them back to a task.

use std::time::Duration;

use agency_api::method::{self, Nothing, OrphanAdopted, OrphanRef, Orphans, Stopped};
use agency_api::{Failure, FailureCode, ProcessIdentity, view};
use agency_core::ids::{RunId, TaskId, TaskKey};
use agency_core::slug::{Slug, TaskName};
use agency_core::supervisor::{Event, FoundRun, FoundTask, Outcome, Refusal};
use agency_core::task_file::{Fields, TaskFile};
use agency_core::task_status::TaskStatus;
use agency_run::command::RunCommand;
use agency_run::follow;
use agency_run::handle::RunHandle;
use agency_run::process_tree::end_tree;
use agency_run::report::{RunReport, RunReporter};
use agency_run::run_meta::RunMeta;
use agency_server::Reply;
use agency_workspace::{Project, Vcs};

use super::loop_event::{LoopEvent, OrphanRequest};
use super::router::Router;
use super::tasks::store_failure;
use super::{Pending, World};

/// The time between SIGTERM and SIGKILL for an orphan.
const STOP_GRACE: Duration = Duration::from_secs(2);

pub(super) fn register(router: &mut Router) {
    router.on(method::OrphanList, World::orphan_list);
    router.on_reply(method::OrphanKill, World::kill_orphan);
    router.on_reply(method::OrphanAdopt, World::adopt_orphan);
}

pub struct OrphanRun {
    pub meta: RunMeta,
    pub kind: view::OrphanKind,
    pub process: Option<ProcessIdentity>,
    /// Set while it is being ended: through which keeper, and for which caller.
    pub ending: Option<(RunHandle, Reply<Stopped>)>,
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
        let seen = |orphan: &OrphanRun| view::Orphan {
            run: orphan.meta.run.0.clone(),
            kind: orphan.kind,
            project: Some(orphan.meta.root.as_path().into()),
            task: Some(orphan.meta.task),
            slug: Some(orphan.meta.slug.clone()),
            agent: Some(orphan.meta.agent.clone()),
            pid: orphan.process.as_ref().map(|process| process.pid),
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

    /// The supervisor lets no agent start beside an orphan of the same task.
    pub(super) fn add_orphan(&mut self, orphan: OrphanRun) {
        self.supervisor.add_orphan(super::runs::key_of(&orphan.meta), orphan.meta.run.clone());
        self.runs.orphans.insert(orphan.meta.run.clone(), orphan);
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
        let context = self.context_of(&orphan.meta);
        let reporter = self.context.reporter.clone();
        tokio::spawn(async move {
            let report = RunReporter { sink: reporter.sink(), run: run.clone() };
            let followed = follow::follow_run(context, report).await.map_err(|err| {
                Failure::new(format!("cannot reach the keeper of {run}"))
                    .code(FailureCode::IoError)
                    .caused_by(&err)
            });
            reporter.report(LoopEvent::OrphanFollowed { run, request, followed }).await;
        });
    }

    pub(super) fn on_orphan_followed(
        &mut self,
        run: RunId,
        request: OrphanRequest,
        followed: Result<RunHandle, Failure>,
    ) {
        let handle = match followed {
            Ok(handle) => handle,
            Err(failure) => return request.refuse(failure),
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
        let meta = self.orphan(run)?.meta.clone();
        let vcs = meta.vcs.parse::<Vcs>().ok();
        let project = Project::open_with(&meta.root, vcs, agency_workspace::Environment::inherited())
            .map_err(|err| {
                Failure::new(format!("the project {} is gone", meta.root.display()))
                    .code(FailureCode::NotAProject)
                    .caused_by(&err)
            })?;
        let id = self.open_project(project)?;
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
        let Some(orphan) = self.remove_orphan(&run) else { return };
        let terms = self.terms_of(&key, &orphan.meta);
        self.register(key.clone(), orphan.meta.clone(), handle);
        let history = self.runs.history.entry(key.clone()).or_default();
        if !history.contains(&orphan.meta) {
            history.push(orphan.meta);
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
            let orphan = OrphanRun { meta: live.meta, kind: view::OrphanKind::Keeper, process, ending: None };
            self.add_orphan(orphan);
        }
        reply.send(match outcome {
            Ok(_) => self.view(key).map(|task| OrphanAdopted { task: Some(task), notes: Vec::new() }),
            Err(refusal) => Err(self.refusal_failure(refusal)),
        });
    }

    /// Ends a process without a keeper, because its terminal cannot be restored.
    fn end_process(&mut self, run: RunId, request: OrphanRequest) {
        let reporter = self.context.reporter.clone();
        tokio::spawn(async move {
            let name = run.0.clone();
            let ended = tokio::task::spawn_blocking(move || end_tree(&name)).await.unwrap_or(0);
            reporter.report(LoopEvent::OrphanEnded { run, request, ended }).await;
        });
    }

    pub(super) fn on_orphan_ended(&mut self, run: &RunId, request: OrphanRequest, ended: usize) {
        tracing::info!(%run, ended, "an orphaned process tree was ended");
        match request {
            OrphanRequest::End(reply) => {
                reply.send(Ok(Stopped { task: None, code: None, ended: Vec::new() }));
            }
            // Only the caller has an environment to start the task again with.
            OrphanRequest::Adopt(reply) => {
                let task = self.task_for(run).and_then(|key| self.view(&key));
                let notes = vec!["only its process was left, and has been ended".to_string()];
                reply.send(task.map(|task| OrphanAdopted { task: Some(task), notes }));
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
            reply.send(Ok(Stopped { task: None, code: Some(exit.code.to_string()), ended }));
        }
    }
}

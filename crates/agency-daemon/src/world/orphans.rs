//! Keepers and processes that no task owns: shown, ended, or taken back.

use std::time::Duration;

use agency_api::method::{OrphanAdopted, Stopped};
use agency_api::{Failure, ProcessIdentity, view};
use agency_core::ids::{RunId, TaskId, TaskKey};
use agency_core::slug::{Slug, TaskName};
use agency_core::supervisor::{Event, FoundRun, FoundTask, Outcome, Refusal};
use agency_core::task_file::{Fields, TaskFile};
use agency_core::task_status::TaskStatus;
use agency_run::run::{self, NewsDesk, RunCommand, RunHandle, RunNews};
use agency_run::run_meta::RunMeta;
use agency_workspace::{Project, Vcs};

use super::effects::refused;
use super::tasks::store_failure;
use super::{Pending, World};
use crate::happening::{Answer, Happening, OrphanIntent};

/// Between SIGTERM and SIGKILL for a run that no task owns.
const STOP_GRACE: Duration = Duration::from_secs(2);

pub struct OrphanRun {
    pub meta: RunMeta,
    pub kind: view::OrphanKind,
    pub process: Option<ProcessIdentity>,
    /// Being ended: who waits, and through what.
    pub ending: Option<(RunHandle, Answer)>,
}

impl World {
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
        self.orphans.values().map(seen).collect()
    }

    fn orphan(&self, run: &RunId) -> Result<&OrphanRun, Failure> {
        let unknown =
            || Failure::new(format!("no orphan is called {run}")).hint("`agency orphans` lists them");
        self.orphans.get(run).ok_or_else(unknown)
    }

    pub(super) fn see_to_orphan(&mut self, run: RunId, intent: OrphanIntent, answer: Answer) {
        match self.orphan(&run).map(|orphan| (orphan.kind, orphan.ending.is_some())) {
            Err(failure) => answer.give(Err(failure)),
            Ok((_, true)) => answer.give(Err(Failure::new(format!("{run} is being ended already")))),
            Ok((view::OrphanKind::Keeper, false)) => self.follow_orphan(run, intent, answer),
            // Its terminal is gone with its keeper, so nobody can look at it again: either way it ends.
            Ok((view::OrphanKind::Process, false)) => self.end_process(run, intent, answer),
        }
    }

    fn follow_orphan(&mut self, run: RunId, intent: OrphanIntent, answer: Answer) {
        let Some(orphan) = self.orphans.get(&run) else { return };
        let context = self.context_of(&orphan.meta);
        let reporter = self.ground.reporter.clone();
        tokio::spawn(async move {
            let news = NewsDesk { reporter: reporter.sink(), run: run.clone() };
            let followed = run::follow(context, news)
                .await
                .map_err(|err| Failure::new(format!("cannot reach the keeper of {run}")).caused_by(&err));
            reporter.report(Happening::OrphanFollowed { run, intent, answer, followed }).await;
        });
    }

    pub(super) fn on_orphan_followed(
        &mut self,
        run: RunId,
        intent: OrphanIntent,
        answer: Answer,
        followed: Result<RunHandle, Failure>,
    ) {
        let handle = match followed {
            Ok(handle) => handle,
            Err(failure) => return answer.give(Err(failure)),
        };
        match intent {
            OrphanIntent::End => {
                handle.command(RunCommand::Begin);
                handle.command(RunCommand::Stop { grace: STOP_GRACE });
                if let Some(orphan) = self.orphans.get_mut(&run) {
                    orphan.ending = Some((handle, answer));
                }
            }
            OrphanIntent::Adopt => match self.task_for(&run) {
                Ok(key) => self.take_in(key, run, handle, answer),
                Err(failure) => answer.give(Err(failure)),
            },
        }
    }

    /// The task an orphan was started for, remade if it is gone.
    fn task_for(&mut self, run: &RunId) -> Result<TaskKey, Failure> {
        let meta = self.orphan(run)?.meta.clone();
        let vcs = meta.vcs.parse::<Vcs>().ok();
        let project = Project::open_with(&meta.root, vcs, agency_workspace::Environment::inherited())
            .map_err(|err| {
                Failure::new(format!("the project {} is gone", meta.root.display())).caused_by(&err)
            })?;
        let id = self.open_project(project)?;
        let key = TaskKey { project: id.clone(), task: TaskId(meta.task) };
        if self.store.task(&key).is_some() {
            return Ok(key);
        }
        let slug = Slug::new(&meta.slug).map_err(|err| Failure::new(err.to_string()))?;
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

    fn take_in(&mut self, key: TaskKey, run: RunId, handle: RunHandle, answer: Answer) {
        let Some(orphan) = self.orphans.remove(&run) else { return };
        let terms = self.terms_of(&key, &orphan.meta);
        self.register(key.clone(), orphan.meta.clone(), handle);
        let history = self.history.entry(key.clone()).or_default();
        if !history.contains(&orphan.meta) {
            history.push(orphan.meta);
        }
        let ticket = self.ticket(Pending::Adopt { key: key.clone(), run: run.clone(), answer });
        self.decide(Event::Adopt { key, ticket, run, terms });
    }

    pub(super) fn answer_adopt(
        &mut self,
        key: &TaskKey,
        run: &RunId,
        answer: Answer,
        outcome: Result<Outcome, Refusal>,
    ) {
        let refused_run = if outcome.is_err() { self.runs.remove(run) } else { None };
        if let Some(live) = refused_run {
            // Nobody's again.
            let process = Some(live.handle.keeper);
            let orphan = OrphanRun { meta: live.meta, kind: view::OrphanKind::Keeper, process, ending: None };
            self.orphans.insert(run.clone(), orphan);
        }
        answer.give_as(match outcome {
            Ok(_) => self.view(key).map(|task| OrphanAdopted { task: Some(task), notes: Vec::new() }),
            Err(refusal) => Err(refused(refusal)),
        });
    }

    /// Only the process is left: its terminal cannot be had back, so it is ended.
    fn end_process(&mut self, run: RunId, intent: OrphanIntent, answer: Answer) {
        let reporter = self.ground.reporter.clone();
        tokio::spawn(async move {
            let name = run.0.clone();
            let ended = tokio::task::spawn_blocking(move || agency_run::process_tree::end_tree(&name))
                .await
                .unwrap_or(0);
            reporter.report(Happening::OrphanEnded { run, intent, answer, ended }).await;
        });
    }

    pub(super) fn on_orphan_ended(
        &mut self,
        run: &RunId,
        intent: OrphanIntent,
        answer: Answer,
        ended: usize,
    ) {
        tracing::info!(%run, ended, "an orphaned process tree was ended");
        match intent {
            OrphanIntent::End => answer.give_as(Ok(Stopped { task: None, code: None, ended: Vec::new() })),
            // Whoever asked has the environment to start it again with; nobody here has.
            OrphanIntent::Adopt => {
                let task = self.task_for(run).and_then(|key| self.view(&key));
                let notes = vec!["only its process was left, and has been ended".to_string()];
                answer.give_as(task.map(|task| OrphanAdopted { task: Some(task), notes }));
            }
        }
        self.orphans.remove(run);
    }

    /// News of a run that no task owns.
    pub(super) fn on_orphan_news(&mut self, run: &RunId, news: RunNews) {
        let RunNews::Over { exit, ended } = news else { return };
        let Some(orphan) = self.orphans.remove(run) else { return };
        if let Some((handle, answer)) = orphan.ending {
            handle.command(RunCommand::Dismiss);
            answer.give_as(Ok(Stopped { task: None, code: Some(exit.code.to_string()), ended }));
        }
    }
}

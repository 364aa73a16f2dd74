//! The trash of a project: showing it, restoring entries, and emptying it.
//!
//! Not here: how work gets into the trash (see `removals`).

use std::time::Duration;

use agency_api::event::{FilesRestoredEvent, TaskRestoredEvent};
use agency_api::method::Caller;
use agency_api::paths::StateDir;
use agency_api::trash::{Expired, Restored, Trash, TrashEntryView, TrashExpireParams, TrashRestoreParams};
use agency_api::{Failure, FailureCode, method};
use agency_core::ids::{ProjectId, TaskId, TaskKey};
use agency_core::supervisor::Operation;
use agency_core::task_file::Field;
use agency_core::task_status::TaskStatus;
use agency_run::blocking::blocking;
use agency_server::Reply;
use agency_store::workspace_record::SetupProgress;
use agency_work::trash::{self, CutOff, Entry, Removal, RestoredWorkspace, Step, TrashDirectory};
use agency_work::turns;
use agency_workspace::{PastMerge, Project, TrashEntry, UndoneMerge, WorkspaceName};
use tokio::task::JoinHandle;

use super::World;
use super::integrations::Integration;
use super::loop_event::{IntegrationEvent, LoopEvent};
use super::operations::SnapshotLock;
use super::router::{Later, Router};
use super::tasks::store_failure;

pub(super) fn register(router: &mut Router) {
    router.on(method::TrashList, World::trash_list);
    router.on_reply(method::TrashRestore, World::undo);
    router.on_reply(method::TrashExpire, World::expire_trash);
}

impl World {
    /// The project as its tasks use it, and its trash.
    fn trash_of(&self, id: &ProjectId) -> Result<(Project, TrashDirectory), Failure> {
        let known = self
            .store
            .project(id)
            .ok_or_else(|| Failure::new("the project is not known").code(FailureCode::NotAProject))?;
        Ok((known.project.clone(), self.trash_directory(id)))
    }

    fn trash_list(&mut self, id: ProjectId) -> Result<Later<Trash>, Failure> {
        let (project, directory) = self.trash_of(&id)?;
        let merged = self.merged_workspaces(&id);
        Ok(Later::new(blocking(move || trash::list(&project, &directory, &merged))))
    }

    fn merged_workspaces(&self, id: &ProjectId) -> Vec<WorkspaceName> {
        let tasks = self.store.project(id).into_iter().flat_map(|known| known.tasks.keys().copied());
        let keys = tasks.map(|task| TaskKey { project: id.clone(), task });
        let merged = keys.filter(|key| self.supervisor.status(key) == Some(TaskStatus::Merged));
        merged.filter_map(|key| Some(self.workspace_of(&key).ok()?.1)).collect()
    }

    /// Records how far a removed task is on its way out of the trash.
    fn mark_removal(&self, project: &ProjectId, removal: &Removal, step: Step) {
        let removal = Removal { step, ..removal.clone() };
        if let Err(cause) = self.trash_directory(project).write(&removal) {
            tracing::error!(entry = removal.id, %cause, ?step, "cannot record the step of a trash entry");
        }
    }

    /// `agency undo`.
    fn undo(&mut self, (id, params): (ProjectId, TrashRestoreParams), reply: Reply<Restored>) {
        let (project, directory) = match self.trash_of(&id) {
            Ok(found) => found,
            Err(failure) => return reply.send(Err(failure)),
        };
        let (reporter, merged) = (self.context.reporter.clone(), self.merged_workspaces(&id));
        tokio::spawn(async move {
            let choose = move || trash::choose(&project, &directory, &merged, params.id.as_deref());
            let chosen = blocking(choose).await;
            reporter.report(LoopEvent::UndoChosen { project: id, reply, chosen: chosen.map(Box::new) }).await;
        });
    }

    pub(super) fn on_undo_chosen(
        &mut self,
        id: ProjectId,
        reply: Reply<Restored>,
        chosen: Result<Box<Entry>, Failure>,
    ) {
        let begun = chosen.and_then(|entry| match *entry {
            Entry::Task(removal) => self.begin_task_restoration(&id, removal),
            Entry::Files(trashed, view) => self.begin_files_restoration(&id, trashed, view),
            Entry::Merge(merge) => self.begin_unmerge(&id, merge),
        });
        let restoration = match begun {
            Ok(restoration) => restoration,
            Err(failure) => return reply.send(Err(failure)),
        };
        let reporter = self.context.reporter.clone();
        tokio::spawn(async move { reporter.report(restoration.run(reply).await).await });
    }

    fn begin_task_restoration(&mut self, id: &ProjectId, removal: Removal) -> Result<Restoration, Failure> {
        let message = format!("cannot bring {}-{} back", removal.task, removal.slug);
        let refused = || Failure::new(message.clone()).code(FailureCode::AlreadyExists);
        let key = TaskKey { project: id.clone(), task: TaskId(removal.task) };
        if let Some(task) = self.store.task(&key) {
            return Err(refused()
                .because(format!("{} has the same id: {}", task.name, task.path.display()))
                .hint("give that file another id, or remove that task first"));
        }
        let known = self
            .store
            .project(id)
            .ok_or_else(|| refused().code(FailureCode::NotAProject).because("its project is not known"))?;
        let project = known.project.clone();
        self.begin_operation(&key, Operation::RestoreTask).map_err(|failure| failure.within(message))?;
        self.mark_removal(id, &removal, Step::Restoring);
        let (was_cut_off, state) = (removal.step == Step::Restoring, self.context.state.clone());
        Ok(Restoration::Task { key, was_cut_off, removal, project, state })
    }

    fn begin_files_restoration(
        &mut self,
        id: &ProjectId,
        trashed: TrashEntry,
        view: TrashEntryView,
    ) -> Result<Restoration, Failure> {
        let key = TaskKey { project: id.clone(), task: TaskId(view.task) };
        let known = self
            .store
            .project(id)
            .ok_or_else(|| Failure::new("the project is not known").code(FailureCode::NotAProject))?;
        let project = known.project.clone();
        self.begin_operation(&key, Operation::RestoreFiles)
            .map_err(|failure| failure.within(format!("cannot bring {} back", view.id)))?;
        self.record_restore(&key).inspect_err(|_| self.finish_operation(&key, Operation::RestoreFiles))?;
        let lock = self.snapshot_lock(&key);
        Ok(Restoration::Files { lock, key, project, trashed, view })
    }

    /// If this daemon is killed, the next one finds the branch where it was, or moved back.
    fn begin_unmerge(&mut self, id: &ProjectId, merge: PastMerge) -> Result<Restoration, Failure> {
        let task = TaskId(merge.workspace.task_id().parse().unwrap_or_default());
        let key = TaskKey { project: id.clone(), task };
        self.begin_operation(&key, Operation::Merge)
            .map_err(|failure| failure.within(format!("cannot undo the merge of {}", merge.workspace)))?;
        let recorded = self.record_integration(&key, &Caller::default(), Operation::Sync);
        let integration = recorded.inspect_err(|_| self.finish_operation(&key, Operation::Merge))?;
        Ok(Restoration::Merge { key, integration, merge })
    }

    pub(super) fn on_merge_undone(
        &mut self,
        key: &TaskKey,
        entry: TrashEntryView,
        reply: Reply<Restored>,
        undone: Result<UndoneMerge, Failure>,
    ) {
        self.finish_integration(key, Operation::Merge);
        reply.send(undone.and_then(|undone| {
            self.strike_integration(key);
            self.take_merge_back(key.clone());
            let UndoneMerge { branch, before, after, checkout } = undone;
            let moved = format!("{branch}: {before:.10} → {after:.10}");
            let checkout = checkout.map(|path| format!("updated your checkout: {}", path.display()));
            let notes = [moved].into_iter().chain(checkout).collect();
            Ok(Restored { entry, task: Some(self.view(key)?), notes })
        }));
    }

    /// Goes on with what an earlier daemon had begun when it was killed.
    pub(super) fn resume_restoration(
        &mut self,
        key: &TaskKey,
        project: Project,
        removal: Removal,
    ) -> Result<JoinHandle<CutOff>, Failure> {
        self.begin_operation(key, Operation::RestoreTask)?;
        let (state, looked) = (self.context.state.clone(), removal.clone());
        let (key, of) = (key.clone(), key.clone());
        Ok(tokio::spawn(async move {
            let restored =
                blocking(move || trash::restore_task_workspace(&state, &of, &project, &looked, true)).await;
            CutOff::Restoration { key, removal, restored }
        }))
    }

    /// While the daemon boots: no caller waits for it, and the supervisor learns of the task later.
    pub(super) fn settle_restoration(
        &mut self,
        key: &TaskKey,
        removal: &Removal,
        restored: Result<RestoredWorkspace, Failure>,
    ) {
        if let Err(cause) = restored.and_then(|_| self.restore_task(&key.project, removal)) {
            tracing::error!(entry = removal.id, %cause, "a task that was on its way back stays in the trash");
            self.mark_removal(&key.project, removal, Step::Done);
        }
        self.finish_operation(key, Operation::RestoreTask);
    }

    pub(super) fn on_task_restored(
        &mut self,
        key: TaskKey,
        removal: Removal,
        reply: Reply<Restored>,
        restored: Result<RestoredWorkspace, Failure>,
    ) {
        self.finish_operation(&key, Operation::RestoreTask);
        let id = &key.project;
        let restored = restored.and_then(|RestoredWorkspace { mut notes, runs }| {
            let (key, more) = self.restore_task(id, &removal)?;
            notes.extend(more);
            self.runs.history.insert(key.clone(), runs);
            self.report_task_to_supervisor(&key);
            self.touch_index(&key);
            self.announce(Some(&key), None, TaskRestoredEvent { entry: removal.id.clone() });
            let task = self.view(&key)?;
            Ok(Restored { entry: Entry::Task(removal.clone()).view(), task: Some(task), notes })
        });
        if restored.is_err() && self.trash_directory(id).has(&removal.id) {
            self.mark_removal(id, &removal, Step::Done);
        }
        reply.send(restored);
    }

    /// Brings back the task file, the record of the workspace and the queued texts. Then the trash entry goes.
    fn restore_task(
        &mut self,
        project: &ProjectId,
        removal: &Removal,
    ) -> Result<(TaskKey, Vec<String>), Failure> {
        let directory = self.trash_directory(project);
        let cannot = |what: &str| {
            Failure::new(format!("cannot restore the {what} of {}", removal.slug)).code(FailureCode::IoError)
        };
        let bytes =
            std::fs::read(directory.task_file(&removal.id)).map_err(|err| cannot("file").caused_by(&err))?;
        let name = removal.name().map_err(|err| cannot("name").caused_by(&err))?;
        let key = self.store.restore(project, &name, &bytes).map_err(store_failure)?;
        if let Err(cause) = self.workspaces.records.restore_record(&key, &directory.workspace(&removal.id)) {
            tracing::warn!(task = %key, %cause, "cannot restore the record of a workspace");
        }
        let notes = self.correct_records(&key, removal);
        for text in &removal.queued {
            if let Err(cause) = self.queue.push(&key, text.clone()) {
                tracing::warn!(task = %key, %cause, "cannot restore a queued message");
            }
        }
        if let Err(cause) = directory.delete(&removal.id) {
            tracing::warn!(task = %key, %cause, "an entry of the trash stays behind");
        }
        Ok((key, notes))
    }

    /// No process of the task runs now, and ignored files that git did not keep have to be made again.
    fn correct_records(&mut self, key: &TaskKey, removal: &Removal) -> Vec<String> {
        let claims = self.store.file(key).is_ok_and(|file| file.fields().status.claims_a_process());
        if claims && let Err(cause) = self.store.set(key, vec![Field::Status(TaskStatus::Stopped)]) {
            tracing::warn!(task = %key, %cause, "cannot write the status of a task that came back");
        }
        let was_set_up = self.workspaces.records.get(key).setup == SetupProgress::Done;
        if removal.reference.is_none() || removal.keep_ignored || !was_set_up {
            return Vec::new();
        }
        self.mark_setup(key, SetupProgress::Pending);
        vec!["ignored files were not kept: the next start sets the workspace up again".to_owned()]
    }

    pub(super) fn on_files_restored(
        &mut self,
        key: &TaskKey,
        entry: TrashEntryView,
        reply: Reply<Restored>,
        restored: Result<Vec<String>, Failure>,
    ) {
        if restored.is_ok() && self.store.task(key).is_some() {
            self.strike_integration(key);
        }
        self.finish_operation(key, Operation::RestoreFiles);
        reply.send(restored.map(|mut notes| {
            let task = self.view(key).ok();
            if task.is_none() {
                notes.push("its task is not kept: only the workspace is back".to_owned());
            } else {
                self.announce(Some(key), None, FilesRestoredEvent { entry: entry.id.clone() });
            }
            Restored { entry, task, notes }
        }));
    }

    /// `agency gc --trash`.
    fn expire_trash(&mut self, (id, params): (ProjectId, TrashExpireParams), reply: Reply<Expired>) {
        let (project, directory) = match self.trash_of(&id) {
            Ok(found) => found,
            Err(failure) => return reply.send(Err(failure)),
        };
        if let Err(refusal) = self.supervisor.begin_emptying(&id) {
            return reply.send(Err(self.refusal_failure(refusal)));
        }
        let tasks: Vec<TaskId> =
            self.store.project(&id).into_iter().flat_map(|known| known.tasks.keys().copied()).collect();
        let (state, reporter) = (self.context.state.clone(), self.context.reporter.clone());
        let project_id = id.clone();
        tokio::spawn(async move {
            let expired = blocking(move || {
                let age = Duration::from_secs(params.older_than_seconds);
                let (expired, removals) = trash::expire(&project, &directory, age, params.dry_run)?;
                for removal in &removals {
                    let is_task_again = tasks.contains(&TaskId(removal.task));
                    trash::delete_removal(&state, &id, &directory, removal, is_task_again);
                }
                Ok(expired)
            });
            let expired = expired.await;
            reporter.report(LoopEvent::TrashExpired { project: project_id, reply, expired }).await;
        });
    }

    pub(super) fn on_trash_expired(
        &mut self,
        id: &ProjectId,
        reply: Reply<Expired>,
        expired: Result<Expired, Failure>,
    ) {
        self.supervisor.end_emptying(id);
        reply.send(expired);
    }
}

/// An entry on its way out of the trash.
#[expect(clippy::large_enum_variant, reason = "one at a time, on its way to a thread")]
enum Restoration {
    Task { key: TaskKey, removal: Removal, project: Project, was_cut_off: bool, state: StateDir },
    Files { key: TaskKey, project: Project, trashed: TrashEntry, view: TrashEntryView, lock: SnapshotLock },
    Merge { key: TaskKey, integration: Integration, merge: PastMerge },
}

impl Restoration {
    async fn run(self, reply: Reply<Restored>) -> LoopEvent {
        match self {
            Restoration::Task { key, removal, project, was_cut_off, state } => {
                let (looked, of) = (removal.clone(), key.clone());
                let restored = blocking(move || {
                    trash::restore_task_workspace(&state, &of, &project, &looked, was_cut_off)
                });
                LoopEvent::TaskRestored { key, removal, reply, restored: restored.await }
            }
            Restoration::Files { key, project, trashed, view, lock } => {
                let _alone = lock.lock().await;
                let restored = blocking(move || turns::restore_files(&project, &trashed));
                LoopEvent::FilesRestored { key, entry: view, reply, restored: restored.await }
            }
            Restoration::Merge { key, integration, merge } => {
                let entry = Entry::Merge(merge).view();
                let undone = blocking(move || integration.undo_merge()).await;
                let event = IntegrationEvent::MergeUndone { key, entry, reply, undone };
                LoopEvent::Integration(Box::new(event))
            }
        }
    }
}

//! Removing tasks: the teardown, the workspace, the task file. All of it goes into the trash.
//!
//! The daemon records a removal (`trash::Removal`) before anything goes, and completes the record at the end. If a
//! daemon is killed in between, the next one finishes or undoes the removal, and until then no other operation
//! begins on that task.
//! Not here: how entries are restored from the trash (see `trash`).

use std::time::Duration;

use agency_api::event::{RemovalStartedEvent, SetupPhase, TaskRemovedEvent};
use agency_api::method::{self, Caller, Removed, TaskRemoveParams};
use agency_api::{Failure, FailureCode};
use agency_core::ids::{ProjectId, TaskId, TaskKey, Ticket};
use agency_core::supervisor::{Event, Occupation, Operation, Outcome, Refusal};
use agency_run::blocking::blocking;
use agency_server::Reply;
use agency_work::trash::{self, CutOff, Removal, Settled, Step, TrashDirectory};
use agency_work::workspace;
use agency_workspace::Project;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::loop_event::LoopEvent;
use super::operations::Current;
use super::router::Router;
use super::setup_run::SetupRun;
use super::setups::SetupReporter;
use super::tasks::{no_task, store_failure};
use super::{Pending, World};

/// How long a new daemon waits for removals that were cut off before it answers callers.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);

/// The options of the caller of a removal.
#[derive(Debug, Clone)]
pub struct RemovalRequest {
    pub discard: bool,
    /// Why, if it is not a user's `agency rm`.
    pub reason: Option<String>,
    pub batch: Option<String>,
    pub caller: Caller,
}

impl RemovalRequest {
    /// The reason that the trash shows.
    fn why(&self) -> String {
        match (&self.reason, self.discard) {
            (Some(reason), _) => reason.clone(),
            (None, true) => "agency rm --discard".to_owned(),
            (None, false) => "agency rm".to_owned(),
        }
    }
}

pub(super) fn register(router: &mut Router) {
    router.on_reply(method::TaskRemove, World::remove_task);
}

impl World {
    fn remove_task(&mut self, (key, params): (TaskKey, TaskRemoveParams), reply: Reply<Removed>) {
        let TaskRemoveParams { discard, force, reason, batch, caller, .. } = params;
        let request = RemovalRequest { discard, reason, batch, caller };
        if self.supervisor.occupation(&key) == Occupation::Unsettled {
            return self.retry_removal(&key, reply);
        }
        if let Err(failure) = self.may(&key, if discard { Operation::Discard } else { Operation::Remove }) {
            return reply.send(Err(self.explain_removal_refusal(&key, failure)));
        }
        if let Err(failure) = self.refuse_running_programs(Some(&key), discard || force) {
            return reply.send(Err(failure.within(format!("cannot remove task {}", self.name_of(&key)))));
        }
        let shells = self.shell_ends(|shell| shell.key == key);
        let checked = self.workspace_of(&key).and_then(|workspace| {
            let settings = self.settings_with(Some(&key.project), &request.caller.overrides)?;
            Ok((workspace, settings.config.workspace.keep_ignored))
        });
        let base = self.base_of(&key);
        let ticket = self.ticket(Pending::Remove { key: key.clone(), request: Box::new(request), reply });
        let reporter = self.context.reporter.clone();
        tokio::spawn(async move {
            let verdict = blocking(move || {
                let ((project, name), keep_ignored) = checked?;
                let removal = agency_workspace::RemoveOptions { discard, keep_ignored };
                workspace::may_remove(&project, &name, base.as_deref(), removal)
            })
            .await;
            // No process may be left in the workspace when its removal begins.
            let verdict = match verdict {
                Ok(lost) => shells.close().await.map(|_| lost),
                Err(failure) => Err(failure),
            };
            reporter.report(LoopEvent::RemovalChecked { key, ticket, verdict }).await;
        });
    }

    /// Adds to a refused removal which task it was, and that `--discard` stops its agent.
    fn explain_removal_refusal(&self, key: &TaskKey, failure: Failure) -> Failure {
        let failure = failure.within(format!("cannot remove task {}", self.name_of(key)));
        let stop = format!("agency stop {}", key.task);
        // Nothing but its end helps against an orphan, which has another hint.
        match &failure.hint {
            Some(hint) if *hint == stop => failure.hint(format!("{stop}, or pass --discard")),
            _ => failure,
        }
    }

    pub(super) fn on_removal_checked(
        &mut self,
        key: TaskKey,
        ticket: Ticket,
        verdict: Result<agency_workspace::Lost, Failure>,
    ) {
        let opened = || {
            Failure::new("a terminal was opened in its workspace meanwhile")
                .code(FailureCode::Busy)
                .within(format!("cannot remove task {}", self.name_of(&key)))
                .hint("try again")
        };
        let verdict =
            verdict.and_then(|lost| if self.runs.shells.has_any(&key) { Err(opened()) } else { Ok(lost) });
        match verdict {
            Ok(lost) => {
                let discard = matches!(self.requests.pending.get(&ticket), Some(Pending::Remove { request, .. }) if request.discard);
                self.announce_losses(&key, ticket, &lost);
                self.decide(Event::Remove { key, ticket, discard });
            }
            Err(failure) => {
                if let Some(Pending::Remove { reply, .. }) = self.requests.pending.remove(&ticket) {
                    reply.send(Err(failure));
                }
            }
        }
    }

    /// Names what cannot be restored, before anything goes.
    fn announce_losses(&mut self, key: &TaskKey, ticket: Ticket, lost: &agency_workspace::Lost) {
        let watch = match self.requests.pending.get(&ticket) {
            Some(Pending::Remove { request, .. }) => request.caller.watch.clone(),
            _ => None,
        };
        let lost = lost.sentences();
        if !lost.is_empty() {
            self.announce(
                Some(key),
                None,
                RemovalStartedEvent { lost, asked_by: watch.into_iter().collect() },
            );
        }
    }

    /// Nothing lives in the workspace any more: remove the workspace, then the task.
    pub(super) fn answer_remove(
        &mut self,
        key: TaskKey,
        request: &RemovalRequest,
        reply: Reply<Removed>,
        outcome: Result<Outcome, Refusal>,
    ) {
        let begun = match outcome {
            Ok(_) => {
                self.record_removal(&key, request).inspect_err(|_| self.keep_task(&key, Operation::Remove))
            }
            Err(refusal) => Err(self.explain_removal_refusal(&key, self.refusal_failure(refusal))),
        };
        match begun {
            Ok(()) => self.remove_workspace(key, request, reply),
            Err(failure) => reply.send(Err(failure)),
        }
    }

    /// Before anything goes: the record by which the next daemon finishes or undoes the removal.
    fn record_removal(&mut self, key: &TaskKey, request: &RemovalRequest) -> Result<(), Failure> {
        let name = self.store.task(key).ok_or_else(|| no_task(key))?.name.clone();
        let settings = self.settings_with(Some(&key.project), &request.caller.overrides)?;
        let queued = self.queue.of(key).map(|waiting| waiting.text.clone()).collect();
        let keep_ignored = settings.config.workspace.keep_ignored;
        let begun = self.trash_directory(&key.project).begin(
            &name,
            request.why(),
            keep_ignored,
            request.batch.clone(),
            queued,
        );
        let removal = begun.map_err(|err| {
            Failure::new("cannot record the removal").code(FailureCode::IoError).caused_by(&err)
        })?;
        self.set_current(key, Some(Current::Removing { removal, teardown: None }));
        Ok(())
    }

    /// Runs the teardown, then removes the workspace. With `discard` it goes even if the teardown fails.
    fn remove_workspace(&mut self, key: TaskKey, request: &RemovalRequest, reply: Reply<Removed>) {
        let (discard, caller) = (request.discard, &request.caller);
        let keep_ignored = self.removal(&key).is_some_and(|removal| removal.keep_ignored);
        let removal = agency_workspace::RemoveOptions { discard, keep_ignored };
        let workspace = self.workspace_of(&key);
        let base = self.base_of(&key);
        let teardown = self.prepare_teardown(&key, caller);
        let run = self.workspaces.records.get(&key).run;
        let (stop, stopped) = watch::channel(false);
        let (reporter, has_teardown) = (self.setup_reporter(&key), matches!(teardown, Ok(Some(_))));
        let task = tokio::spawn(async move {
            let torn_down = reporter.tear_down(teardown, stopped).await;
            let (refusal, notes) = match torn_down {
                Err(failure) if !discard => (Some(failure), Vec::new()),
                Err(failure) => (None, vec![one_line(&failure)]),
                Ok(()) => (None, Vec::new()),
            };
            let removed = match refusal {
                Some(failure) => Err(failure),
                None => blocking(move || workspace::remove(run, workspace?, base, removal)).await,
            };
            let SetupReporter { key, reporter } = reporter;
            reporter.report(LoopEvent::WorkspaceRemoved { key, reply, removed, notes }).await;
        });
        if has_teardown {
            self.begin_teardown(&key, SetupRun::new(SetupPhase::Teardown, stop, caller.watch.clone(), task));
        }
    }

    fn begin_teardown(&mut self, key: &TaskKey, run: SetupRun) {
        if let Err(cause) = self.begin_operation(key, Operation::TearDown) {
            tracing::error!(task = %key, %cause, "the supervisor does not know of a teardown");
        }
        if let Some(Current::Removing { teardown, .. }) = self.current_mut(key) {
            *teardown = Some(run);
        }
        self.announce_setup_start(key);
    }

    pub(super) fn on_workspace_removed(
        &mut self,
        key: &TaskKey,
        reply: Reply<Removed>,
        removed: Result<(agency_workspace::Removed, u64), Failure>,
        notes: Vec<String>,
    ) {
        self.on_teardown_over(key, removed.is_ok());
        let slug = self.store.task(key).map(|task| task.name.slug.as_str().to_string()).unwrap_or_default();
        let gone = removed.and_then(|(removed, bytes)| {
            let (kept_as, lost) = (removed.trash_ref, removed.lost.sentences());
            let trash = self.put_into_trash(key, kept_as.clone(), bytes)?.id;
            Ok(Removed { id: key.task.0, slug, kept_as, trash, notes, lost })
        });
        match &gone {
            Ok(_) => {
                self.finish_operation(key, Operation::Remove);
                self.forget_removed(key);
            }
            Err(_) => {
                self.delete_record(key);
                self.keep_task(key, Operation::Remove);
            }
        }
        reply.send(gone);
    }

    /// The workspace is gone. Moves the task file after it into the trash, and completes the record.
    fn put_into_trash(
        &mut self,
        key: &TaskKey,
        reference: Option<String>,
        bytes: u64,
    ) -> Result<Removal, Failure> {
        let unknown = || {
            Failure::new(format!("the removal of task {} was not begun", key.task))
                .code(FailureCode::Internal)
        };
        let removal = self.removal(key).cloned().ok_or_else(unknown)?;
        let directory = self.trash_directory(&key.project);
        self.store.remove(key, &directory.task_file(&removal.id)).map_err(store_failure)?;
        self.workspaces.records.move_record(key, &directory.workspace(&removal.id));
        let removal = Removal { step: Step::Done, reference, bytes, ..removal };
        if let Err(cause) = directory.write(&removal) {
            // The next daemon sees from the files of the entry that the removal is over.
            tracing::warn!(task = %key, %cause, "cannot record that a removal is over");
        }
        Ok(removal)
    }

    fn delete_record(&mut self, key: &TaskKey) {
        let Some(removal) = self.removal(key).cloned() else { return };
        if let Err(cause) = self.trash_directory(&key.project).delete(&removal.id) {
            tracing::warn!(task = %key, %cause, "the record of a removal that failed stays behind");
        }
    }

    /// The removal failed. The supervisor has forgotten the task, and learns of it again from its file.
    fn keep_task(&mut self, key: &TaskKey, operation: Operation) {
        self.finish_operation(key, operation);
        self.report_task_to_supervisor(key);
    }

    fn forget_removed(&mut self, key: &TaskKey) {
        self.runs.history.remove(key);
        self.runs.shells.forget(key);
        self.index.remove_task(key);
        self.notices.notifier.forget(key);
        if let Err(cause) = self.queue.take(|waiting| waiting.key() == *key) {
            tracing::warn!(task = %key, %cause, "messages for a removed task stay in the queue");
        }
        self.runs.environments.remove(key);
        self.starts.setups.remove(key);
        self.operations.remove(key);
        self.announce(Some(key), None, TaskRemovedEvent {});
        self.plan_conflict_scan(&key.project);
    }

    /// Settles what the last daemon was killed in the middle of: removals, and tasks on their way out of the trash.
    /// After a few seconds the rest goes on in the background, while this daemon answers callers already.
    pub(super) async fn settle_cut_off(&mut self) {
        let deadline = tokio::time::Instant::now() + SETTLED_WITHIN;
        for mut settling in self.begin_settling() {
            match tokio::time::timeout_at(deadline, &mut settling).await {
                Ok(Ok(settled)) => self.settle(settled),
                Ok(Err(cause)) => tracing::error!(%cause, "an interrupted removal stays unfinished"),
                Err(_) => {
                    let reporter = self.context.reporter.clone();
                    tokio::spawn(async move {
                        if let Ok(settled) = settling.await {
                            reporter.report(LoopEvent::RemovalSettled { settled, reply: None }).await;
                        }
                    });
                }
            }
        }
    }

    fn begin_settling(&mut self) -> Vec<JoinHandle<CutOff>> {
        let projects: Vec<(ProjectId, Project)> =
            self.store.projects().map(|(id, known)| (id.clone(), known.project.clone())).collect();
        let mut settling = Vec::new();
        for (id, project) in projects {
            for removal in self.trash_directory(&id).all() {
                let key = TaskKey { project: id.clone(), task: TaskId(removal.task) };
                let begun = match removal.step {
                    Step::Done => continue,
                    Step::Begun => self.resume_removal(&key, project.clone(), removal),
                    Step::Restoring => self.resume_restoration(&key, project.clone(), removal),
                };
                match begun {
                    Ok(begun) => settling.push(begun),
                    Err(cause) => {
                        tracing::error!(task = %key, %cause, "a cut-off removal is not settled yet")
                    }
                }
            }
        }
        settling
    }

    fn resume_removal(
        &mut self,
        key: &TaskKey,
        project: Project,
        removal: Removal,
    ) -> Result<JoinHandle<CutOff>, Failure> {
        self.begin_operation(key, Operation::FinishRemoval)?;
        self.set_current(key, Some(Current::Removing { removal: removal.clone(), teardown: None }));
        let has_task = self.store.task(key).is_some_and(|task| task.name.slug.as_str() == removal.slug);
        let (key, directory) = (key.clone(), self.trash_directory(&key.project));
        Ok(tokio::spawn(async move {
            let settled = blocking(move || trash::settle(&project, &directory, &removal, has_task)).await;
            CutOff::Removal { key, settled }
        }))
    }

    /// While the daemon boots, and before it tells the supervisor of any task.
    fn settle(&mut self, settled: CutOff) {
        match settled {
            CutOff::Removal { key, settled } => {
                // A failure is kept with the task, for callers that ask for it.
                self.settle_removal(&key, settled).unwrap_or_default();
            }
            CutOff::Restoration { key, removal, restored } => {
                self.settle_restoration(&key, &removal, restored);
            }
        }
    }

    /// `agency rm` of a task whose removal was cut off and could not be finished.
    fn retry_removal(&mut self, key: &TaskKey, reply: Reply<Removed>) {
        let known = self.store.project(&key.project).map(|known| known.project.clone());
        let Some((project, removal)) = known.zip(self.removal(key).cloned()) else {
            return reply.send(Err(no_task(key)));
        };
        let settling = match self.resume_removal(key, project, removal) {
            Ok(settling) => settling,
            Err(failure) => return reply.send(Err(failure)),
        };
        let reporter = self.context.reporter.clone();
        tokio::spawn(async move {
            if let Ok(settled) = settling.await {
                reporter.report(LoopEvent::RemovalSettled { settled, reply: Some(reply) }).await;
            }
        });
    }

    pub(super) fn on_removal_settled(&mut self, settled: CutOff, reply: Option<Reply<Removed>>) {
        match settled {
            CutOff::Removal { key, settled } => {
                let removed = self.on_cut_off_removal(&key, settled);
                if let Some(reply) = reply {
                    reply.send(removed);
                }
            }
            CutOff::Restoration { key, removal, restored } => {
                self.on_task_restored(key, removal, Reply::without_caller(), restored);
            }
        }
    }

    fn on_cut_off_removal(
        &mut self,
        key: &TaskKey,
        settled: Result<Settled, Failure>,
    ) -> Result<Removed, Failure> {
        let slug = self.removal(key).map(|removal| removal.slug.clone()).unwrap_or_default();
        match self.settle_removal(key, settled)? {
            Some(Removal { id: trash, reference: kept_as, .. }) => {
                self.forget_removed(key);
                Ok(Removed { id: key.task.0, slug, kept_as, trash, notes: Vec::new(), lost: Vec::new() })
            }
            None => {
                self.report_task_to_supervisor(key);
                Err(Failure::new(format!("the removal of task {} was undone", key.task))
                    .code(FailureCode::RemovalUnfinished)
                    .because("it was interrupted before it deleted anything")
                    .hint(format!("agency rm {}", key.task)))
            }
        }
    }

    /// Returns what is in the trash now, if the task is gone. If the removal can neither be finished nor undone, the
    /// task stays unsettled: a part of its workspace may be gone, so no other operation may begin there.
    fn settle_removal(
        &mut self,
        key: &TaskKey,
        settled: Result<Settled, Failure>,
    ) -> Result<Option<Removal>, Failure> {
        let ended = match settled {
            Ok(Settled::TakenBack) => {
                self.delete_record(key);
                self.finish_operation(key, Operation::FinishRemoval);
                tracing::warn!(task = %key, "undid an interrupted removal: it had deleted nothing");
                return Ok(None);
            }
            Ok(Settled::Gone { reference, bytes }) => self.put_into_trash(key, reference, bytes),
            Err(failure) => Err(failure),
        };
        match &ended {
            Ok(_) => {
                self.finish_operation(key, Operation::FinishRemoval);
                tracing::warn!(task = %key, "finished an interrupted removal");
            }
            Err(cause) => {
                tracing::error!(task = %key, %cause, "an interrupted removal stays unfinished");
                self.leave_unsettled(key, cause.clone());
            }
        }
        ended.map(Some)
    }

    fn leave_unsettled(&mut self, key: &TaskKey, cause: Failure) {
        if let Some(removal) = self.removal(key).cloned() {
            self.set_current(key, Some(Current::Unsettled { removal, cause }));
        }
        self.supervisor.leave_unsettled(key);
    }

    pub(super) fn trash_directory(&self, project: &ProjectId) -> TrashDirectory {
        TrashDirectory::of(&self.context.state, project)
    }
}

fn one_line(failure: &Failure) -> String {
    let words = std::iter::once(&failure.message).chain(&failure.causes);
    words.map(|words| words.replace('\n', " ")).collect::<Vec<_>>().join(": ")
}

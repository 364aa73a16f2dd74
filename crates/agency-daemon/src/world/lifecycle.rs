//! What comes back from the steps of a task's life, and what its callers are told.

use std::path::Path;
use std::time::Duration;

use agency_api::Failure;
use agency_api::event::TaskRemovedEvent;
use agency_api::method::{Removed, Started, Stopped};
use agency_core::agent::Driver;
use agency_core::ids::{Epoch, TaskKey, Ticket};
use agency_core::supervisor::{Event, MadeBy, Operation, Outcome, Refusal};
use agency_core::task_file::Field;
use agency_run::run::RunCommand;
use agency_workspace::{Project, Workspace, WorkspaceName};

use super::effects::refused;
use super::setups::RemovalWish;
use super::{Pending, World};
use crate::happening::{Answer, StartedRun};

impl World {
    pub(super) fn on_workspace_made(
        &mut self,
        key: TaskKey,
        epoch: Epoch,
        made: Result<Option<Workspace>, Failure>,
    ) {
        match made {
            Ok(workspace) => {
                self.is_back(&key);
                self.mark_cut_off(&key, None);
                let made_by = match workspace {
                    Some(workspace) => {
                        self.note(&key, workspace.warnings.clone());
                        self.made.insert(key.clone(), workspace);
                        MadeBy::ThisStart
                    }
                    None => MadeBy::Earlier,
                };
                let readiness = self.readiness(&key);
                self.decide(Event::WorkspaceMade { key, epoch, made_by, readiness });
            }
            Err(failure) => {
                self.expect_no_workspace(&key);
                let error = failure.message.clone();
                self.failures.insert(key.clone(), failure);
                self.decide(Event::WorkspaceFailed { key, epoch, error });
            }
        }
    }

    pub(super) fn on_keeper_started(
        &mut self,
        key: TaskKey,
        epoch: Epoch,
        started: Result<Box<StartedRun>, Failure>,
    ) {
        match started {
            Ok(started) => {
                let StartedRun { meta, handle, notes } = *started;
                self.note(&key, notes);
                let run = meta.run.clone();
                tracing::info!(task = %key, %run, agent = meta.agent, "run started");
                self.history.entry(key.clone()).or_default().push(meta.clone());
                self.keep_terms(&key);
                let standing = handle.standing.clone();
                self.register(key.clone(), meta, handle);
                // Made just now: whatever it waits for already, nobody knows of it.
                self.notices.notifier.needs_nobody(&key);
                self.state_told(&key, &run, &standing);
                self.hold_first_message(&key);
                self.decide(Event::KeeperReady { key: key.clone(), epoch, run });
                // It may have been at its prompt before anybody could be told.
                self.deliver_next(&key);
            }
            Err(failure) => {
                tracing::warn!(task = %key, cause = failure.message, "a start failed");
                let error = failure.message.clone();
                self.failures.insert(key.clone(), failure);
                self.decide(Event::KeeperFailed { key, epoch, error });
            }
        }
    }

    /// The next start is like this one.
    fn keep_terms(&mut self, key: &TaskKey) {
        let Some(plan) = self.plans.get(key) else { return };
        let known =
            self.store.file(key).map(|file| (file.fields().driver, file.fields().session_id.is_some()));
        let Ok((driver, has_session)) = known else { return };
        let mut fields = Vec::new();
        if driver.unwrap_or(plan.agent.driver) != plan.driver {
            fields.push(Field::Driver(Some(plan.driver)));
        }
        if plan.fresh && has_session {
            fields.push(Field::SessionId(None));
        }
        if fields.is_empty() {
            return;
        }
        if let Err(cause) = self.store.set(key, fields) {
            tracing::warn!(task = %key, %cause, "how it was started is not kept");
        }
    }

    /// An agent that takes no message at its start gets it at its first prompt.
    fn hold_first_message(&mut self, key: &TaskKey) {
        let is_first = self.history.get(key).is_some_and(|runs| runs.len() == 1);
        let plan = self.plans.get(key).filter(|plan| is_first || plan.fresh);
        let is_told = plan.is_none_or(|plan| plan.driver == Driver::Terminal);
        let Some(text) =
            plan.zip(self.store.file(key).ok()).and_then(|(plan, file)| plan.typed_message(file))
        else {
            return;
        };
        match self.queue.push(key, text) {
            Ok(_) if !is_told => {}
            Ok(_) => self.note(key, vec!["its text is sent when it asks for it: `agency queue`".to_owned()]),
            Err(cause) => {
                tracing::error!(task = %key, %cause, "the task's text cannot be held for its agent")
            }
        }
    }

    pub(super) fn note(&mut self, key: &TaskKey, notes: Vec<String>) {
        if !notes.is_empty() {
            self.notes.entry(key.clone()).or_default().extend(notes);
        }
    }

    pub(super) fn answer_start(&mut self, key: &TaskKey, answer: Answer, outcome: Result<Outcome, Refusal>) {
        let notes = self.notes.remove(key).unwrap_or_default();
        let full = self.failures.remove(key);
        match outcome {
            Ok(_) => {
                self.made.remove(key);
                answer.give_as(self.view(key).map(|task| Started { task, notes }));
            }
            Err(Refusal::WorkspaceFailed { .. } | Refusal::KeeperFailed { .. }) if full.is_some() => {
                let failure = full.unwrap_or_else(|| Failure::new("the start failed"));
                answer.give(Err(started_badly(key, failure)));
            }
            Err(Refusal::SetupFailed { .. }) if full.is_some() => {
                self.made.remove(key);
                let failure = full.unwrap_or_else(|| Failure::new("the setup failed"));
                answer.give(Err(started_badly(key, failure)));
            }
            Err(refusal) => answer.give(Err(refused(refusal))),
        }
    }

    pub(super) fn answer_stop(&mut self, key: &TaskKey, answer: Answer, outcome: Result<Outcome, Refusal>) {
        let ended = self.ended.remove(key).unwrap_or_default();
        let task = self.view(key).ok();
        answer.give_as(match outcome {
            Ok(Outcome::Stopped { exit }) => Ok(Stopped { task, code: Some(exit.code.to_string()), ended }),
            Ok(_) => Ok(Stopped { task, code: None, ended }),
            Err(refusal) => Err(refused(refusal)),
        });
    }

    pub(super) fn on_removal_checked(&mut self, key: TaskKey, ticket: Ticket, verdict: Result<(), Failure>) {
        // Something may have begun there while it was looked at.
        let verdict =
            verdict.and_then(|()| self.not_being_removed(&key)).and_then(|()| self.not_landing(&key));
        match verdict {
            Ok(()) => {
                let discard =
                    matches!(self.pending.get(&ticket), Some(Pending::Remove { wish, .. }) if wish.discard);
                self.decide(Event::Remove { key, ticket, discard });
            }
            Err(failure) => {
                if let Some(Pending::Remove { answer, .. }) = self.pending.remove(&ticket) {
                    answer.give(Err(failure));
                }
            }
        }
    }

    /// Nothing lives there any more: the workspace goes, then the task.
    pub(super) fn answer_remove(
        &mut self,
        key: TaskKey,
        wish: &RemovalWish,
        answer: Answer,
        outcome: Result<Outcome, Refusal>,
    ) {
        let begun = outcome.map_err(refused).and_then(|_| {
            // The supervisor has let go of it; the file brings it back.
            self.begin_removal(&key, wish).inspect_err(|_| self.bring_back_to_supervisor(&key))
        });
        match begun {
            Ok(()) => self.remove_workspace(key, wish, answer),
            Err(failure) => answer.give(Err(failure)),
        }
    }

    pub(super) fn on_workspace_removed(
        &mut self,
        key: &TaskKey,
        answer: Answer,
        removed: Result<(agency_workspace::Removed, u64), Failure>,
        notes: Vec<String>,
    ) {
        self.teardown_over(key, removed.is_ok());
        let slug = self.store.task(key).map(|task| task.name.slug.as_str().to_string()).unwrap_or_default();
        let gone = removed.and_then(|(removed, bytes)| {
            let kept_as = removed.trash_ref;
            let trash = self.end_removal(key, kept_as.clone(), bytes)?.id;
            Ok(Removed { id: key.task.0, slug, kept_as, trash, notes })
        });
        match &gone {
            Ok(_) => {
                self.decide(Event::Finished { key: key.clone(), operation: Operation::Remove });
                self.forget_removed(key);
            }
            // The supervisor has let go of it; the file brings it back.
            Err(_) => {
                self.give_removal_up(key);
                self.bring_back_to_supervisor(key);
            }
        }
        answer.give_as(gone);
    }

    fn bring_back_to_supervisor(&mut self, key: &TaskKey) {
        self.decide(Event::Finished { key: key.clone(), operation: Operation::Remove });
        self.see_again(key);
    }

    pub(super) fn forget_removed(&mut self, key: &TaskKey) {
        self.history.remove(key);
        self.index.forget(key);
        self.notices.notifier.forget(key);
        if let Err(cause) = self.queue.take(|waiting| waiting.key() == *key) {
            tracing::warn!(task = %key, %cause, "texts for a task that is gone stay behind");
        }
        self.environments.remove(key);
        self.wishes.remove(key);
        self.turn_locks.remove(key);
        self.announce(Some(key), None, TaskRemovedEvent {});
        self.look_at(&key.project);
    }

    /// The daemon leaves: viewers are told, keepers and agents stay.
    pub(super) async fn leave(mut self) {
        self.end_chores().await;
        self.await_landings().await;
        let mut waiting = Vec::new();
        for (_, live) in self.runs.drain() {
            let (done, left) = tokio::sync::oneshot::channel();
            live.handle.command(RunCommand::Leave { done });
            waiting.push(left);
        }
        let all_left = async {
            for left in waiting {
                // One that ended meanwhile has left as well.
                left.await.unwrap_or_default();
            }
        };
        // One that hangs must not keep the others' daemon; its keeper does not need us.
        if tokio::time::timeout(LEFT_WITHIN, all_left).await.is_err() {
            tracing::warn!("some runs did not take leave");
        }
        for (_, pending) in self.pending.drain() {
            pending.give_up();
        }
        tracing::info!("the daemon leaves");
    }
}

/// Taking leave is one message to each viewer.
const LEFT_WITHIN: Duration = Duration::from_secs(2);

impl Pending {
    fn give_up(self) {
        let failure = Failure::new("the daemon is leaving").hint("try again: it starts by itself");
        match self {
            Pending::Start { answer, .. }
            | Pending::Stop { answer, .. }
            | Pending::Mark { answer, .. }
            | Pending::Remove { answer, .. }
            | Pending::Merge { answer, .. }
            | Pending::Adopt { answer, .. }
            | Pending::Shutdown { answer: Some(answer) } => answer.give(Err(failure)),
            Pending::Shutdown { answer: None } | Pending::Vanished { .. } => {}
        }
    }
}

fn started_badly(key: &TaskKey, failure: Failure) -> Failure {
    let told = failure.within(format!("cannot start task {}", key.task));
    let hint = told.hint.or_else(|| without_proc(Path::new("/proc")));
    Failure { hint, ..told }
}

/// Linux says there who a process is, and no process is kept that could be mistaken for another.
fn without_proc(proc: &Path) -> Option<String> {
    let missing = cfg!(target_os = "linux") && !proc.join("self").exists();
    missing.then(|| "agents need /proc: mount -t proc proc /proc".to_owned())
}

pub(super) fn removal_failure(error: &agency_workspace::RemoveError) -> Failure {
    Failure::from_error(error, error.hint())
}

/// Blocking. Refuses what could not be removed, and while there is work in the workspace unless that is to be
/// discarded.
pub(super) fn may_remove(
    project: &Project,
    name: &WorkspaceName,
    base: Option<&str>,
    discard: bool,
) -> Result<(), Failure> {
    let removal = agency_workspace::RemoveOptions { discard, ..Default::default() };
    agency_workspace::check_remove(project, name, base, removal).map_err(|err| removal_failure(&err))
}

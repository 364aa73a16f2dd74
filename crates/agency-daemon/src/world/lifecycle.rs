//! The life of a task's agent: its start, the answers to the callers of starts and stops, and the end of the daemon.

use std::path::Path;
use std::time::Duration;

use agency_api::method::{Nothing, Started, Stopped};
use agency_api::{Failure, FailureCode, view};
use agency_core::agent::Driver;
use agency_core::ids::{Epoch, TaskKey};
use agency_core::supervisor::{Event, Outcome, Refusal};
use agency_core::task_file::Field;
use agency_run::command::RunCommand;

use super::integrations::await_integrations;
use super::operations::Current;
use super::setups::end_setups;
use super::{Pending, World};
use crate::loop_event::StartedRun;
use crate::reply::Reply;

impl World {
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
                self.runs.history.entry(key.clone()).or_default().push(meta.clone());
                self.keep_terms(&key);
                let standing = handle.standing.clone();
                self.register(key.clone(), meta, handle);
                // The run is new, so no user has been notified of what it waits for.
                self.notices.notifier.clear_need(&key);
                self.state_told(&key, &run, &standing);
                self.hold_first_message(&key);
                self.decide(Event::KeeperReady { key: key.clone(), epoch, run });
                // The agent may have reached its prompt before the supervisor knew of the run.
                self.deliver_next(&key);
            }
            Err(failure) => {
                tracing::warn!(task = %key, cause = failure.message, "a start failed");
                let error = failure.message.clone();
                self.starts.failures.insert(key.clone(), failure);
                self.decide(Event::KeeperFailed { key, epoch, error });
            }
        }
    }

    /// Writes the driver and the session into the task file, so that the next start is like this one.
    fn keep_terms(&mut self, key: &TaskKey) {
        let Some(plan) = self.starts.plans.get(key) else { return };
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
            tracing::warn!(task = %key, %cause, "cannot write down how the task was started");
        }
    }

    /// Queues the task's text for an agent that cannot be started with a message: it gets the text at its first prompt.
    fn hold_first_message(&mut self, key: &TaskKey) {
        let is_first = self.runs.history.get(key).is_some_and(|runs| runs.len() == 1);
        let plan = self.starts.plans.get(key).filter(|plan| is_first || plan.fresh);
        let is_noted = plan.is_none_or(|plan| plan.driver == Driver::Terminal);
        let Some(text) =
            plan.zip(self.store.file(key).ok()).and_then(|(plan, file)| plan.typed_message(file))
        else {
            return;
        };
        match self.queue.push(key, text) {
            Ok(_) if !is_noted => {}
            Ok(_) => self.note(key, vec!["its text is sent when it asks for it: `agency queue`".to_owned()]),
            Err(cause) => {
                tracing::error!(task = %key, %cause, "cannot queue the task's text for its agent")
            }
        }
    }

    pub(super) fn note(&mut self, key: &TaskKey, notes: Vec<String>) {
        if !notes.is_empty() {
            self.starts.notes.entry(key.clone()).or_default().extend(notes);
        }
    }

    pub(super) fn answer_start(
        &mut self,
        key: &TaskKey,
        reply: Reply<Started>,
        outcome: Result<Outcome, Refusal>,
    ) {
        let notes = self.starts.notes.remove(key).unwrap_or_default();
        let full = self.starts.failures.remove(key);
        match outcome {
            Ok(_) => {
                self.starts.made.remove(key);
                reply.send(self.view(key).map(|task| Started { task, notes }));
            }
            Err(Refusal::WorkspaceFailed { .. } | Refusal::KeeperFailed { .. }) if full.is_some() => {
                let failure = full.unwrap_or_else(|| Failure::new("the start failed"));
                reply.send(Err(start_failure(key, failure)));
            }
            Err(Refusal::SetupFailed { .. }) if full.is_some() => {
                self.starts.made.remove(key);
                let failure = full.unwrap_or_else(|| Failure::new("the setup failed"));
                reply.send(Err(start_failure(key, failure)));
            }
            Err(refusal) => reply.send(Err(self.refused(refusal))),
        }
    }

    pub(super) fn answer_stop(
        &mut self,
        key: &TaskKey,
        reply: Reply<Stopped>,
        outcome: Result<Outcome, Refusal>,
    ) {
        let ended = self.runs.ended.remove(key).unwrap_or_default();
        let task = self.view(key).ok();
        reply.send(match outcome {
            Ok(Outcome::Stopped { exit }) => Ok(Stopped { task, code: Some(exit.code.to_string()), ended }),
            Ok(_) => Ok(Stopped { task, code: None, ended }),
            Err(refusal) => Err(self.refused(refusal)),
        });
    }

    pub(super) fn answer_mark(
        &mut self,
        key: &TaskKey,
        reply: Reply<view::Task>,
        outcome: Result<Outcome, Refusal>,
    ) {
        let unwritten = self.starts.failures.remove(key).map_or(Ok(()), Err);
        let marked = outcome.map_err(|refusal| self.refused(refusal)).and(unwritten);
        reply.send(marked.and_then(|()| self.view(key)));
    }

    pub(super) fn answer_shutdown(
        &mut self,
        reply: Option<Reply<Nothing>>,
        outcome: Result<Outcome, Refusal>,
    ) {
        if let Ok(Outcome::ShutDown { still_alive }) = &outcome {
            for key in still_alive {
                tracing::error!(task = %key, "the agent is still alive; the next daemon will find it");
            }
        }
        if let Some(reply) = reply {
            reply.send(outcome.map(|_| Nothing {}).map_err(|refusal| self.refused(refusal)));
        }
    }

    /// The daemon leaves: viewers get a message, keepers and agents stay.
    pub(super) async fn leave(mut self) {
        let (mut setups, mut integrations) = (Vec::new(), Vec::new());
        for current in self.take_all_current() {
            match current {
                Current::SettingUp(run) | Current::Removing { teardown: Some(run), .. } => setups.push(run),
                Current::Integrating(task) => integrations.push(task),
                Current::Removing { teardown: None, .. } | Current::Unsettled { .. } => {}
            }
        }
        end_setups(setups).await;
        await_integrations(integrations).await;
        let mut waiting = Vec::new();
        for (_, live) in self.runs.live.drain() {
            let (done, left) = tokio::sync::oneshot::channel();
            live.handle.command(RunCommand::Leave { done });
            waiting.push(left);
        }
        let all_left = async {
            for left in waiting {
                // A run that ended meanwhile drops the sender.
                left.await.unwrap_or_default();
            }
        };
        // A run that hangs must not keep the daemon. Its keeper works without one.
        if tokio::time::timeout(LEFT_WITHIN, all_left).await.is_err() {
            tracing::warn!("some runs did not leave in time");
        }
        for (_, pending) in self.requests.pending.drain() {
            pending.give_up();
        }
        tracing::info!("the daemon leaves");
    }
}

/// To leave, a run sends one message to each viewer.
const LEFT_WITHIN: Duration = Duration::from_secs(2);

impl Pending {
    fn give_up(self) {
        let failure = Failure::new("the daemon is leaving")
            .code(FailureCode::DaemonLost)
            .hint("try again: it starts by itself");
        match self {
            Pending::Start { reply, .. } => reply.send(Err(failure)),
            Pending::Stop { reply, .. } => reply.send(Err(failure)),
            Pending::Mark { reply, .. } => reply.send(Err(failure)),
            Pending::Remove { reply, .. } => reply.send(Err(failure)),
            Pending::Merge { reply, .. } => reply.send(Err(failure)),
            Pending::Adopt { reply, .. } => reply.send(Err(failure)),
            Pending::Shutdown { reply: Some(reply) } => reply.send(Err(failure)),
            Pending::Shutdown { reply: None } | Pending::Vanished { .. } => {}
        }
    }
}

fn start_failure(key: &TaskKey, failure: Failure) -> Failure {
    let failure = failure.within(format!("cannot start task {}", key.task));
    let code = match failure.code {
        FailureCode::Failed => FailureCode::StartFailed,
        code => code,
    };
    let hint = failure.hint.or_else(|| hint_without_proc(Path::new("/proc")));
    Failure { code, hint, ..failure }
}

/// On Linux the keeper identifies processes by `/proc`, and without it refuses to hold any.
fn hint_without_proc(proc: &Path) -> Option<String> {
    let missing = cfg!(target_os = "linux") && !proc.join("self").exists();
    missing.then(|| "agents need /proc: mount -t proc proc /proc".to_owned())
}

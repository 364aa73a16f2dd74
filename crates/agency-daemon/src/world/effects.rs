//! The effects that the supervisor orders: one function for each.
//!
//! Not here: effects that take many steps. `workspaces`, `setups` and `launches` carry those out.

use std::time::Duration;

use agency_api::event::{ErrorEvent, StatusChangeEvent};
use agency_core::exit::RunExit;
use agency_core::ids::{RunId, TaskKey, Ticket};
use agency_core::supervisor::{Effect, Notice, Outcome, Refusal};
use agency_core::task_file::{Field, LastExit};
use agency_core::task_status::TaskStatus;
use agency_keeper::platform;
use agency_run::command::RunCommand;
use agency_store::clock;
use rustix::process::Signal;

use super::notices::ended_with;
use super::{Pending, World};

impl World {
    pub(super) fn perform(&mut self, effect: Effect, next: &[Effect]) {
        match effect {
            Effect::MakeWorkspace { key, epoch } => self.make_workspace(key, epoch),
            Effect::UndoWorkspace { key, epoch } => self.undo_workspace(key, epoch),
            Effect::SetUp { key, epoch } => self.set_up(key, epoch),
            Effect::EndSetup { key, .. } => self.stop_setup(&key),
            Effect::StartKeeper { key, epoch, cause } => self.start_keeper(key, epoch, cause),
            Effect::StopRun { run, grace, .. } => self.stop_run(&run, grace),
            Effect::KillRun { run, .. } => self.stop_run(&run, Duration::ZERO),
            Effect::DismissRun { run, .. } => self.dismiss_run(&run),
            Effect::WriteStatus { key, status } => self.write_status(&key, status),
            Effect::WriteExit { key, exit, .. } => self.write_exit(&key, exit, status_in(next, &key)),
            Effect::UndoTask { key } => self.undo_task(&key),
            Effect::Reply { ticket, outcome } => self.reply(ticket, outcome),
            Effect::Report(notice) => self.report(notice),
            Effect::Quit => self.end_connections(),
        }
    }

    pub(super) fn command(&self, run: &RunId, command: RunCommand) {
        match self.runs.live.get(run) {
            Some(live) => live.handle.command(command),
            // The run is over already, which is what most commands want.
            None => tracing::debug!(%run, "no such run to command"),
        }
    }

    /// Wakes the keeper if it is suspended: it could not signal the agent.
    fn stop_run(&self, run: &RunId, grace: Duration) {
        if let Some(live) = self.runs.live.get(run)
            && let Err(cause) = platform::signal_if_same(&live.handle.keeper, Signal::CONT)
        {
            tracing::warn!(%run, pid = live.handle.keeper.pid, %cause, "cannot wake the keeper");
        }
        self.command(run, RunCommand::Stop { grace });
    }

    fn dismiss_run(&mut self, run: &RunId) {
        self.command(run, RunCommand::Dismiss);
        if let Some(live) = self.runs.live.remove(run) {
            self.workspaces.places.forget(&live.key);
            self.runs.environments.insert(live.key, live.handle.environment);
            self.runs.dismissed.retain(|commands| !commands.is_closed());
            self.runs.dismissed.push(live.handle.commands);
        }
    }

    pub(super) fn write_status(&mut self, key: &TaskKey, status: TaskStatus) {
        self.write(key, vec![Field::Status(status)]);
        self.announce(Some(key), None, StatusChangeEvent { status: agency_run::view::status(status) });
    }

    /// Writes the exit together with the status that the next effect would write: one write instead of two.
    pub(super) fn write_exit(&mut self, key: &TaskKey, exit: RunExit, status: Option<TaskStatus>) {
        self.on_agent_ended(key, exit);
        let last =
            LastExit { code: exit.code, raw: exit.raw, at: Some(clock::timestamp()), asked: exit.requested };
        let status = status.map(Field::Status);
        self.write(key, [Field::LastExit(Some(last))].into_iter().chain(status).collect());
    }

    fn write(&mut self, key: &TaskKey, fields: Vec<Field>) {
        // The user may have edited the file meanwhile. Tell the supervisor before the file is written.
        if let Ok(changed) = self.store.refresh(&key.project) {
            self.report_edited_tasks(&key.project, changed);
        }
        if let Err(cause) = self.store.set(key, fields) {
            tracing::error!(task = %key, %cause, "the task file cannot be written");
            self.starts.failures.insert(key.clone(), super::tasks::store_failure_of(&cause));
            let error = ErrorEvent::new("the task file cannot be written", cause.to_string());
            self.announce(Some(key), None, error);
        }
    }

    fn undo_task(&mut self, key: &TaskKey) {
        if let Err(cause) = self.store.undo_create(key) {
            tracing::warn!(task = %key, %cause, "a task file stays behind");
        }
        self.starts.plans.remove(key);
        self.workspaces.records.forget(key);
    }

    fn report(&mut self, notice: Notice) {
        match notice {
            Notice::Crashed { key, run, exit } => {
                tracing::warn!(task = %key, %run, code = %exit.code, "the agent crashed");
                let error = ErrorEvent::new("the agent crashed", ended_with(exit));
                self.announce(Some(&key), Some(&run), error);
                self.record_unexpected_end(&key, Some(&run), ended_with(exit));
            }
            Notice::Restarting { key, attempt } => {
                tracing::info!(task = %key, attempt, "restarting after a crash");
                self.notices.notifier.clear_need(&key);
            }
            Notice::RestartGivenUp { key, why } => {
                tracing::error!(task = %key, %why, "Agency gave up restarting the agent");
                let error = ErrorEvent::new("Agency gave up restarting the agent", why.to_string());
                self.announce(Some(&key), None, error);
                self.append_error(&key, "Agency gave up restarting the agent", &why.to_string());
                self.announce_unsent_texts(&key);
                self.record_unexpected_end(&key, None, format!("Agency gave up restarting the agent: {why}"));
            }
            Notice::RestartFailed { key, error } => {
                tracing::error!(task = %key, cause = %error, "the restart failed");
                self.announce(Some(&key), None, ErrorEvent::new("the restart failed", error.clone()));
                self.append_error(&key, "the restart failed", &error);
                self.record_unexpected_end(&key, None, format!("the restart failed: {error}"));
            }
            Notice::WontDie { key, run } => {
                let cause = self
                    .refusal_failure(Refusal::WontDie { key: key.clone(), run: run.clone() })
                    .causes
                    .join(", ");
                tracing::error!(task = %key, %run, cause, "the run does not end");
                let error = ErrorEvent::new("the run does not end", cause);
                self.announce(Some(&key), Some(&run), error);
            }
            Notice::DaemonResumeMarkStopped { marked_stopped, adopted, elsewhere } => {
                tracing::info!(marked_stopped, adopted, elsewhere, "daemon_resume_mark_stopped");
            }
        }
    }

    fn reply(&mut self, ticket: Ticket, outcome: Result<Outcome, Refusal>) {
        let Some(pending) = self.requests.pending.remove(&ticket) else {
            return tracing::error!(%ticket, "the supervisor answered a ticket that is not open");
        };
        match pending {
            Pending::Start { key, reply } => self.answer_start(&key, reply, outcome),
            Pending::Stop { key, closed, reply } => self.answer_stop(&key, closed, reply, outcome),
            Pending::Mark { key, reply } => self.answer_mark(&key, reply, outcome),
            Pending::Remove { key, request, reply } => self.answer_remove(key, &request, reply, outcome),
            Pending::StopWithoutWorkspace { key } => self.answer_stop_without_workspace(&key, outcome),
            Pending::StopBeforeMerge { key, merge, reply } => {
                self.answer_stop_before_merge(key, *merge, reply, outcome)
            }
            Pending::Merge { key, merge, reply } => self.answer_merge(&key, merge, reply, outcome),
            Pending::Adopt { key, run, reply } => self.answer_adopt(&key, &run, reply, outcome),
            Pending::Shutdown { reply } => self.answer_shutdown(reply, outcome),
        }
    }
}

fn status_in(effects: &[Effect], wanted: &TaskKey) -> Option<TaskStatus> {
    effects.iter().find_map(|effect| match effect {
        Effect::WriteStatus { key, status } if key == wanted => Some(*status),
        _ => None,
    })
}

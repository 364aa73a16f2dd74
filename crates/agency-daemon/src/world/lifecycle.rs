//! The end of an agent, the status that a user gives to its task, and the status and the end of the daemon itself.
//!
//! Not here: starts (see `starts`).

use std::time::Duration;

use agency_api::method::{self, DaemonStopParams, Nothing, Stopped, TaskStopParams};
use agency_api::{Failure, FailureCode, view};
use agency_core::ids::TaskKey;
use agency_core::supervisor::{Event, Operation, Outcome, Refusal, Verdict};
use agency_run::capacity::{self, Capacity};
use agency_run::command::RunCommand;
use agency_server::Reply;
use agency_store::clock;

use super::integrations::await_integrations;
use super::loop_event::AfterShells;
use super::operations::Current;
use super::router::Router;
use super::setups::end_setups;
use super::{Pending, World};

pub(super) fn register(router: &mut Router) {
    router.on(method::DaemonStatus, World::daemon_view);
    router.on_reply(method::DaemonStop, World::stop_daemon);
    router.on_reply(method::TaskStop, World::stop_task);
    router.on_reply(method::TaskIdle, World::mark_idle);
    router.on_reply(method::TaskComplete, World::mark_completed);
    router.on_reply(method::TaskFail, World::mark_failed);
    router.on_reply(method::TaskReview, World::mark_reviewed);
}

impl World {
    fn stop_daemon(&mut self, params: DaemonStopParams, reply: Reply<Nothing>) {
        if params.agents {
            if let Err(failure) = self.refuse_running_programs(None, params.force) {
                return reply.send(Err(failure.within("cannot end everything")));
            }
            return self.end_all(&params.overrides, Some(reply));
        }
        reply.send(Ok(Nothing {}));
        self.lifetime.leaving = true;
    }

    fn daemon_view(&mut self, _: Nothing) -> view::Daemon {
        let state = &self.context.state;
        view::Daemon {
            pid: std::process::id() as i32,
            version: env!("CARGO_PKG_VERSION").to_string(),
            epoch: self.context.epoch.get(),
            uptime_seconds: clock::now().saturating_sub(self.lifetime.born).as_secs(),
            socket: self.context.socket.as_path().into(),
            state_dir: state.root().into(),
            log: state.daemon_log().into(),
            projects: self.store.projects().count() as u64,
            live_runs: self.supervisor.live_runs().count() as u64,
            open_shells: self.runs.shells.live().count() as u64,
            orphans: self.runs.orphans.len() as u64,
            open_files: capacity::open_files(),
            room: Capacity::measure().figures(),
            problems: self.context.problems.clone(),
        }
    }

    fn stop_task(&mut self, (key, params): (TaskKey, TaskStopParams), reply: Reply<Stopped>) {
        if self.stop_teardown(&key) {
            return reply.send(self.stopped(&key, Vec::new()));
        }
        if let Err(failure) = self.refuse_running_programs(Some(&key), params.force) {
            return reply.send(Err(failure.within(format!("cannot stop task {}", self.name_of(&key)))));
        }
        let ends = self.shell_ends(|shell| shell.key == key);
        match ends.is_empty() {
            true => self.stop_agent(key, Vec::new(), reply),
            false => self.end_shells(ends, AfterShells::Stop { key, reply }),
        }
    }

    /// The terminals of the task are closed: stops its agent, if it has one.
    pub(super) fn stop_agent(&mut self, key: TaskKey, closed: Vec<String>, reply: Reply<Stopped>) {
        if !closed.is_empty() && self.may(&key, Operation::Stop).is_err() {
            return reply.send(self.stopped(&key, closed));
        }
        let ticket = self.ticket(Pending::Stop { key: key.clone(), closed, reply });
        self.decide(Event::Stop { key, ticket });
    }

    fn stopped(&self, key: &TaskKey, closed: Vec<String>) -> Result<Stopped, Failure> {
        Ok(Stopped { task: Some(self.view(key)?), code: None, ended: Vec::new(), closed })
    }

    fn mark_idle(&mut self, key: TaskKey, reply: Reply<view::Task>) {
        let ticket = self.ticket(Pending::Mark { key: key.clone(), reply });
        self.decide(Event::Idle { key, ticket });
    }

    fn mark_completed(&mut self, key: TaskKey, reply: Reply<view::Task>) {
        self.mark(key, Verdict::Completed, reply);
    }

    fn mark_failed(&mut self, key: TaskKey, reply: Reply<view::Task>) {
        self.mark(key, Verdict::Failed, reply);
    }

    fn mark_reviewed(&mut self, key: TaskKey, reply: Reply<view::Task>) {
        self.mark(key, Verdict::Reviewed, reply);
    }

    fn mark(&mut self, key: TaskKey, verdict: Verdict, reply: Reply<view::Task>) {
        let ticket = self.ticket(Pending::Mark { key: key.clone(), reply });
        self.decide(Event::Mark { key, ticket, verdict });
    }

    pub(super) fn answer_stop(
        &mut self,
        key: &TaskKey,
        closed: Vec<String>,
        reply: Reply<Stopped>,
        outcome: Result<Outcome, Refusal>,
    ) {
        let ended = self.runs.ended.remove(key).unwrap_or_default();
        let task = self.view(key).ok();
        reply.send(match outcome {
            Ok(Outcome::Stopped { exit }) => {
                Ok(Stopped { task, code: Some(exit.code.to_string()), ended, closed })
            }
            Ok(_) => Ok(Stopped { task, code: None, ended, closed }),
            Err(refusal) => Err(self.refusal_failure(refusal)),
        });
    }

    pub(super) fn answer_mark(
        &mut self,
        key: &TaskKey,
        reply: Reply<view::Task>,
        outcome: Result<Outcome, Refusal>,
    ) {
        let unwritten = self.starts.failures.remove(key).map_or(Ok(()), Err);
        if unwritten.is_err() {
            // The task keeps the status that its file has.
            self.report_task_to_supervisor(key);
        }
        let marked = outcome.map_err(|refusal| self.refusal_failure(refusal)).and(unwritten);
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
            reply.send(outcome.map(|_| Nothing {}).map_err(|refusal| self.refusal_failure(refusal)));
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
        let handles = self.runs.live.drain().map(|(_, live)| live.handle);
        for handle in handles.chain(self.runs.shells.drain()) {
            let (done, left) = tokio::sync::oneshot::channel();
            handle.command(RunCommand::Leave { done });
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
        let dismissed = std::mem::take(&mut self.runs.dismissed);
        let all_dismissed = async {
            for commands in dismissed {
                commands.closed().await;
            }
        };
        // A keeper that is not dismissed waits for an hour.
        if tokio::time::timeout(DISMISSED_WITHIN, all_dismissed).await.is_err() {
            tracing::warn!("some keepers could not be dismissed; the next daemon dismisses them");
        }
        for (_, pending) in self.requests.pending.drain() {
            pending.give_up();
        }
        tracing::info!("the daemon leaves");
    }
}

/// To leave, a run sends one message to each viewer.
const LEFT_WITHIN: Duration = Duration::from_secs(2);

/// To dismiss a keeper, a run sends one message. On a busy machine 200 of them take a while.
const DISMISSED_WITHIN: Duration = Duration::from_secs(10);

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
            Pending::StopBeforeMerge { reply, .. } => reply.send(Err(failure)),
            Pending::Merge { reply, .. } => reply.send(Err(failure)),
            Pending::Adopt { reply, .. } => reply.send(Err(failure)),
            Pending::Shutdown { reply: Some(reply) } => reply.send(Err(failure)),
            Pending::Shutdown { reply: None } | Pending::StopWithoutWorkspace { .. } => {}
        }
    }
}

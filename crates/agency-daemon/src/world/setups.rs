//! Setups and teardowns: the user's commands that prepare a fresh workspace, and that run before it is removed.
//!
//! Before the daemon makes a workspace, it records that the setup is owed; after the setup it strikes that out. So if
//! the daemon is killed in between, the next start runs the setup again.
//! Not here: how the commands run (see `agency_work::setup`).

use std::time::Duration;

use agency_api::config::Overrides;
use agency_api::event::{SetupEndedEvent, SetupOutcome, SetupOutputEvent, SetupPhase, SetupStartedEvent};
use agency_api::method::{self, Caller, Started, Stream, TaskSetupParams};
use agency_api::{Failure, FailureCode};
use agency_core::config::WorkspaceConfig;
use agency_core::ids::{Epoch, TaskKey};
use agency_core::restart::RestartPolicy;
use agency_core::supervisor::{AgentActivity, Event, Operation, Origin, Readiness, RunTerms, StartPlan};
use agency_run::environment::{self, Environment};
use agency_run::process_tree::end_tree;
use agency_run::view;
use agency_server::Promised;
use agency_server::Reply;
use agency_store::settings::Settings;
use agency_store::workspace_record::SetupProgress;
use agency_work::setup::{self, SetupFailure, SetupPlan};
use agency_work::setup_commands::{self, SetupCommands};
use agency_workspace::Vcs;
use tokio::sync::watch;

use super::loop_event::{LoopEvent, Reporter};
use super::operations::Current;
use super::router::Router;
use super::setup_run::SetupRun;
use super::{Pending, World};

pub(super) fn register(router: &mut Router) {
    router.on_reply(method::TaskSetup, World::setup_task);
}

/// The options of a start that concern its setup.
#[derive(Debug, Clone, Default)]
pub struct SetupRequest {
    pub environment: Environment,
    pub overrides: Overrides,
    pub mode: SetupMode,
    pub watch: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SetupMode {
    #[default]
    IfOwed,
    /// Without the commands.
    Skip,
    Again,
}

impl World {
    pub(super) fn readiness(&self, key: &TaskKey) -> Readiness {
        let mode = self.starts.setups.get(key).map(|request| request.mode).unwrap_or_default();
        match self.workspaces.records.get(key).setup.is_owed() || mode == SetupMode::Again {
            true => Readiness::Raw,
            false => Readiness::Ready,
        }
    }

    pub(super) fn settings_of_setup(&self, key: &TaskKey) -> Result<Settings, Failure> {
        let overrides =
            self.starts.setups.get(key).map(|request| request.overrides.clone()).unwrap_or_default();
        self.settings_with(Some(&key.project), &overrides)
    }

    pub(super) fn mark_setup(&mut self, key: &TaskKey, mark: SetupProgress) {
        if let Err(cause) = self.workspaces.records.change(key, |record| record.setup = mark) {
            tracing::error!(task = %key, %cause, ?mark, "cannot record how far a workspace is set up");
        }
    }

    /// Remembers the options of a start that concern its setup.
    pub(super) fn request_setup(&mut self, key: &TaskKey, caller: &Caller, mode: SetupMode) {
        let request = SetupRequest {
            environment: self.environment_for(key, caller),
            overrides: caller.overrides.clone(),
            mode,
            watch: caller.watch.clone(),
        };
        if let Some(run) = self.setup_run_mut(key) {
            run.asked_by.extend(request.watch.clone());
        }
        self.starts.setups.insert(key.clone(), request);
    }

    /// `agency setup`.
    fn setup_task(&mut self, (key, params): (TaskKey, TaskSetupParams), reply: Reply<Started>) {
        if let Err(failure) = self.workspace_to_enter(&key) {
            return reply.send(Err(failure));
        }
        // If the supervisor is about to refuse this request, the one before it still counts.
        if self.supervisor.may_begin(&key, Operation::SetUp, AgentActivity::AtWork).is_ok() {
            self.request_setup(&key, &params.caller, SetupMode::Again);
        }
        let terms = RunTerms { stop_grace: Duration::ZERO, restart: RestartPolicy::Never, takes_slot: true };
        let plan = StartPlan { task: Origin::Existing, terms };
        let ticket = self.ticket(Pending::Start { key: key.clone(), reply });
        self.decide(Event::SetUp { key, ticket, plan });
    }

    pub(super) fn set_up(&mut self, key: TaskKey, epoch: Epoch) {
        let prepared = self.prepare_setup(&key);
        let (stop, stopped) = watch::channel(false);
        let reporter = self.setup_reporter(&key);
        let task = tokio::spawn(async move {
            let outcome = match prepared {
                Ok(plan) => reporter.set_up(plan, stopped).await,
                Err(failure) => Err(SetupFailure { failure, stopped: false }),
            };
            let SetupReporter { key, reporter } = reporter;
            reporter.report(LoopEvent::SetupOver { key, epoch, outcome }).await;
        });
        let watch = self.starts.setups.get(&key).and_then(|request| request.watch.clone());
        let run = SetupRun::new(SetupPhase::Setup, stop, watch, task);
        self.set_current(&key, Some(Current::SettingUp(run)));
        self.announce_setup_start(&key);
    }

    pub(super) fn setup_reporter(&self, key: &TaskKey) -> SetupReporter {
        SetupReporter { key: key.clone(), reporter: self.context.reporter.clone() }
    }

    pub(super) fn announce_setup_start(&mut self, key: &TaskKey) {
        let Some(run) = self.setup_run(key) else { return };
        let (phase, asked_by) = (run.phase, run.asked_by.clone());
        self.announce(Some(key), None, SetupStartedEvent { phase, asked_by });
    }

    /// Stops the teardown of a removal. False if none runs.
    pub(super) fn stop_teardown(&mut self, key: &TaskKey) -> bool {
        let teardown = self.setup_run(key).filter(|run| run.phase == SetupPhase::Teardown);
        teardown.inspect(|run| run.stop()).is_some()
    }

    pub(super) fn stop_setup(&mut self, key: &TaskKey) {
        if let Some(run) = self.setup_run(key) {
            run.stop();
        }
    }

    fn prepare_setup(&mut self, key: &TaskKey) -> Result<SetupPlan, Failure> {
        let request = self.starts.setups.get(key).cloned().unwrap_or_default();
        let config = self.settings_of_setup(key)?.config.workspace;
        let (project, name) = self.workspace_of(key)?;
        let commands = if request.mode == SetupMode::Skip { &[] } else { config.setup.as_slice() };
        let commands = self.prepare_commands(key, commands, &config, request.environment)?;
        self.mark_setup(key, SetupProgress::Pending);
        let task = key.task;
        let hint = format!(
            "`agency logs {task} --setup` shows all of it; `agency setup {task}` runs it again, \
             `agency start {task} --skip-setup` goes on without it"
        );
        Ok(SetupPlan { project, name, patterns: config.copy, commands, hint })
    }

    /// The commands with everything that they need. From now on the workspace's record says that they run, so the next
    /// daemon ends them if this one is killed.
    fn prepare_commands(
        &mut self,
        key: &TaskKey,
        commands: &[Vec<String>],
        config: &WorkspaceConfig,
        mut env: Environment,
    ) -> Result<SetupCommands, Failure> {
        let cwd = self.workspace_to_enter(key)?;
        let tokens = self.tokens_of(key, None)?;
        let run = self.workspace_run(key)?;
        env.extend(tokens.exported().into_iter().map(|(name, value)| (name.into(), value)));
        env.insert("PWD".into(), cwd.clone().into());
        env.insert(environment::RUN_ID.into(), run.clone().into());
        env.insert(environment::SOCKET.into(), self.context.state.daemon_socket().into());
        environment::drop_long_variables(&mut env);
        let is_at_work = !commands.is_empty();
        let written = self.workspaces.records.change(key, |record| {
            record.run = Some(run.clone());
            record.at_work = is_at_work;
        });
        written.map_err(|err| {
            Failure::new("cannot record what runs in the workspace")
                .code(FailureCode::IoError)
                .caused_by(&err)
        })?;
        Ok(SetupCommands {
            commands: commands.iter().map(|command| tokens.expand(command)).collect(),
            env,
            cwd,
            log: self.workspaces.records.directory(key).setup_log(),
            limit: Some(config.setup_timeout).filter(|limit| !limit.is_zero()),
            run,
        })
    }

    pub(super) fn on_setup_printed(&mut self, key: &TaskKey, text: String) {
        let Some(run) = self.setup_run(key) else { return };
        run.printed.send_modify(|count| *count += 1);
        let output = SetupOutputEvent { text, phase: run.phase, asked_by: run.asked_by.clone() };
        // The setup log has it for callers that come later.
        self.announce_in_passing(key, output);
    }

    /// A stream of what the last setup printed; with `follow` also of what it prints from now on.
    pub(super) fn setup_log(&self, key: &TaskKey, follow: bool) -> Result<Stream, Failure> {
        let path = self.workspaces.records.directory(key).setup_log();
        if !path.exists() {
            return Err(Failure::new(format!("no setup has run in the workspace of task {}", key.task))
                .code(FailureCode::NotFound)
                .hint("`workspace.setup` in config.toml says what runs there"));
        }
        let grows = self.setup_run(key).filter(|_| follow).map(|run| run.printed.subscribe());
        self.promise(key, Promised::SetupLog { path, grows })
    }

    fn announce_setup_end(&mut self, key: &TaskKey, phase: SetupPhase, outcome: SetupOutcome) {
        let asked_by = self.setup_run(key).map(|run| run.asked_by.clone()).unwrap_or_default();
        self.announce(Some(key), None, SetupEndedEvent { outcome, phase, asked_by });
    }

    pub(super) fn on_setup_over(
        &mut self,
        key: TaskKey,
        epoch: Epoch,
        outcome: Result<Vec<String>, SetupFailure>,
    ) {
        let skipped = self.starts.setups.get(&key).is_some_and(|request| request.mode == SetupMode::Skip);
        let (mark, ended) = match &outcome {
            Ok(_) if skipped => (SetupProgress::Skipped, SetupOutcome::Done),
            Ok(_) => (SetupProgress::Done, SetupOutcome::Done),
            Err(failed) if failed.stopped => (SetupProgress::Pending, SetupOutcome::Stopped),
            Err(_) => (SetupProgress::Failed, SetupOutcome::Failed),
        };
        self.mark_setup(&key, mark);
        self.record_no_commands(&key);
        tracing::info!(task = %key, outcome = ?ended, "setup over");
        self.announce_setup_end(&key, SetupPhase::Setup, ended);
        self.set_current(&key, None);
        match outcome {
            Ok(notes) => {
                self.add_notes(&key, notes);
                self.decide(Event::SetupDone { key, epoch });
            }
            Err(SetupFailure { failure, .. }) => {
                let error = failure.message.clone();
                self.starts.failures.insert(key.clone(), failure);
                self.decide(Event::SetupFailed { key, epoch, error });
            }
        }
    }

    /// Ends the commands that a killed daemon left running. Nothing may begin in those workspaces before that.
    pub(super) async fn end_commands_left_running(&mut self) {
        let left: Vec<(TaskKey, String)> = self
            .workspaces
            .records
            .all()
            .filter(|(_, record)| record.at_work)
            .map(|(key, record)| (key.clone(), record.run.clone().unwrap_or_default()))
            .collect();
        let ends: Vec<_> = left
            .into_iter()
            .map(|(key, run)| (key, tokio::task::spawn_blocking(move || end_tree(&run))))
            .collect();
        for (key, end) in ends {
            match end.await {
                Ok(0) => {}
                Ok(ended) => {
                    tracing::warn!(task = %key, ended, "a setup was left running, and has been ended")
                }
                Err(cause) => tracing::error!(task = %key, %cause, "a setup may be left running"),
            }
            let record = self.workspaces.records.get(&key);
            if record.setup == SetupProgress::Pending && !record.merging {
                setup_commands::end_cut_off_log(&self.workspaces.records.directory(&key).setup_log());
            }
            self.record_no_commands(&key);
        }
    }

    /// The teardown of a removal. `None`: there is nothing to run.
    pub(super) fn prepare_teardown(
        &mut self,
        key: &TaskKey,
        caller: &Caller,
    ) -> Result<Option<SetupCommands>, Failure> {
        let (project, name) = self.workspace_of(key)?;
        let is_there = agency_workspace::workspace_path(&project, &name).is_dir();
        let was_set_up = self.workspaces.records.get(key).setup != SetupProgress::None;
        if !is_there || (project.vcs() == Vcs::Plain && !was_set_up) {
            return Ok(None);
        }
        let config = self.settings_with(Some(&key.project), &caller.overrides)?.config.workspace;
        if config.teardown.is_empty() {
            return Ok(None);
        }
        let env = self.environment_for(key, caller);
        self.prepare_commands(key, &config.teardown, &config, env).map(Some)
    }

    /// The teardown of a removal is over, if there was one.
    pub(super) fn on_teardown_over(&mut self, key: &TaskKey, is_removed: bool) {
        if self.setup_run(key).is_none() {
            return;
        }
        let outcome = if is_removed { SetupOutcome::Done } else { SetupOutcome::Failed };
        self.announce_setup_end(key, SetupPhase::Teardown, outcome);
        if let Some(Current::Removing { teardown, .. }) = self.current_mut(key) {
            *teardown = None;
        }
        self.record_no_commands(key);
    }

    pub(super) fn setup_view(&self, key: &TaskKey) -> Option<agency_api::view::SetupState> {
        let is_running = self.setup_run(key).is_some_and(|run| run.phase == SetupPhase::Setup);
        view::setup(self.workspaces.records.get(key).setup, is_running)
    }
}

/// The commands of a setup do not outlive the daemon: the next start runs them again.
pub(super) async fn end_setups(runs: Vec<SetupRun>) {
    runs.iter().for_each(SetupRun::stop);
    let deadline = tokio::time::Instant::now() + ENDED_WITHIN;
    for run in runs {
        if tokio::time::timeout_at(deadline, run.task).await.is_err() {
            tracing::warn!("a setup does not end; the next daemon will end it");
        }
    }
}

/// A process tree has two seconds of grace.
const ENDED_WITHIN: Duration = Duration::from_secs(5);

/// Runs the commands of one workspace beside the loop, and reports their output to it.
pub(super) struct SetupReporter {
    pub(super) key: TaskKey,
    pub(super) reporter: Reporter,
}

impl SetupReporter {
    async fn set_up(
        &self,
        plan: SetupPlan,
        stopped: watch::Receiver<bool>,
    ) -> Result<Vec<String>, SetupFailure> {
        setup::set_up(plan, stopped, self.report_output()).await
    }

    pub(super) async fn tear_down(
        &self,
        teardown: Result<Option<SetupCommands>, Failure>,
        stopped: watch::Receiver<bool>,
    ) -> Result<(), Failure> {
        match teardown? {
            Some(commands) => setup::tear_down(self.key.task, commands, stopped, self.report_output()).await,
            None => Ok(()),
        }
    }

    fn report_output(&self) -> setup::Report {
        let (key, reporter) = (self.key.clone(), self.reporter.clone());
        Box::new(move |text| {
            let (key, reporter) = (key.clone(), reporter.clone());
            Box::pin(async move { reporter.report(LoopEvent::SetupPrinted { key, text }).await })
        })
    }
}

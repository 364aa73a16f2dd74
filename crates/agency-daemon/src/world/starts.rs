//! Starts: the plan of a start, and the answer to its caller.
//!
//! Not here: new tasks (see `new_tasks`), the workspace of a start (see `workspaces` and `setups`), and how its agent is
//! launched (see `launches`).

use std::path::Path;

use agency_api::config::Overrides;
use agency_api::method::{self, Caller, Started, TaskStartParams};
use agency_api::{Failure, FailureCode};
use agency_core::agent::{Agent, Driver};
use agency_core::ids::{Epoch, ProjectId, TaskKey};
use agency_core::supervisor::{Event, Limits, Operation, Origin, Outcome, Refusal, StartPlan};
use agency_core::task_file::Field;
use agency_run::capacity::Capacity;
use agency_run::environment;
use agency_run::plan::{self, LaunchPlan, PlannedTask, StartOptions};
use agency_run::start::StartedRun;
use agency_server::Reply;
use agency_store::trust;

use super::router::Router;
use super::setups::SetupMode;
use super::tasks::store_failure;
use super::{Pending, World};

pub(super) fn register(router: &mut Router) {
    router.on_reply(method::TaskStart, World::start);
    router.on_reply(method::TaskRestart, World::restart);
}

/// A start or a restart of a task that exists.
pub(super) struct StartRequest<'a> {
    pub(super) key: TaskKey,
    pub(super) caller: &'a Caller,
    pub(super) options: StartOptions,
    pub(super) is_restart: bool,
}

impl World {
    fn start(&mut self, call: (TaskKey, TaskStartParams), reply: Reply<Started>) {
        self.start_existing(call, false, reply);
    }

    fn restart(&mut self, call: (TaskKey, TaskStartParams), reply: Reply<Started>) {
        self.start_existing(call, true, reply);
    }

    fn start_existing(
        &mut self,
        (key, params): (TaskKey, TaskStartParams),
        is_restart: bool,
        reply: Reply<Started>,
    ) {
        let driver = match parse_driver(params.driver.as_deref()) {
            Ok(driver) => driver,
            Err(failure) => return reply.send(Err(failure)),
        };
        let options = StartOptions { driver, fresh: params.fresh, skip_setup: params.skip_setup };
        self.begin(StartRequest { key, caller: &params.caller, options, is_restart }, reply);
    }

    /// Plans the start of a task that exists, and begins it.
    pub(super) fn begin(&mut self, request: StartRequest<'_>, reply: Reply<Started>) {
        self.check_other_hosts(&request.key);
        let checked = self.check_start(&request);
        match checked.and_then(|()| self.plan_start(&request.key, request.caller, request.options)) {
            Ok(plan) => self.order_start(request, plan, Origin::Existing, reply),
            Err(failure) => {
                let failure = self.announce_if_missing(&request, failure);
                reply.send(Err(failure));
            }
        }
    }

    /// Says the same about an agent that is not installed as `new` does.
    fn announce_if_missing(&mut self, request: &StartRequest<'_>, failure: Failure) -> Failure {
        let fields =
            self.store.file(&request.key).map(|file| (file.fields().agent.clone(), file.fields().driver));
        let Ok((Some(name), driver)) = fields else { return failure };
        let settings = self.settings_with(Some(&request.key.project), &request.caller.overrides);
        match settings.ok().and_then(|settings| settings.config.agents.find(&name).cloned().ok()) {
            Some(agent) => {
                let driver = request.options.driver.or(driver).unwrap_or(agent.driver);
                self.announce_missing_agent(&agent, driver, failure)
            }
            None => failure,
        }
    }

    /// Begins a task that this call has just made and planned. Takes its file back if the supervisor refuses the start.
    pub(super) fn begin_new(
        &mut self,
        key: TaskKey,
        plan: LaunchPlan,
        caller: &Caller,
        reply: Reply<Started>,
    ) {
        self.check_other_hosts(&key);
        if let Err(failure) = self.may(&key, Operation::Start).and_then(|()| self.refuse_unexplained(&key)) {
            if let Err(cause) = self.store.undo_create(&key) {
                tracing::warn!(task = %key, %cause, "a task file stays behind");
            }
            return reply.send(Err(failure));
        }
        let request = StartRequest { key, caller, options: StartOptions::default(), is_restart: false };
        self.order_start(request, plan, Origin::MadeByThisCall, reply);
    }

    fn check_start(&self, request: &StartRequest<'_>) -> Result<(), Failure> {
        // A live agent needs no further capacity; a restart ends it first.
        if self.live_run(&request.key).is_err() {
            self.check_capacity(1)?;
            self.refuse_unexplained(&request.key)?;
        }
        match request.is_restart {
            true => self.may(&request.key, Operation::Restart),
            false => {
                self.may(&request.key, Operation::Start)?;
                self.check_options_of_live_agent(&request.key, request.options)
            }
        }
    }

    /// Has the supervisor begin a start that is planned.
    fn order_start(
        &mut self,
        request: StartRequest<'_>,
        plan: LaunchPlan,
        origin: Origin,
        reply: Reply<Started>,
    ) {
        let StartRequest { key, caller, options, is_restart } = request;
        self.refresh_limits(Some(&key.project), &caller.overrides);
        let start = StartPlan { task: origin, terms: plan.terms };
        self.starts.plans.insert(key.clone(), plan);
        let setup = if options.skip_setup { SetupMode::Skip } else { SetupMode::IfOwed };
        self.request_setup(&key, caller, setup);
        let ticket = self.ticket(Pending::Start { key: key.clone(), reply });
        self.decide(match is_restart {
            false => Event::Start { key, ticket, plan: start },
            true => Event::Restart { key, ticket, plan: start },
        });
    }

    /// Refuses options that only a new process can take, if the agent is already running.
    fn check_options_of_live_agent(&self, key: &TaskKey, options: StartOptions) -> Result<(), Failure> {
        let Ok(live) = self.live_run(key) else { return Ok(()) };
        let other = options.driver.filter(|driver| driver.to_string() != live.meta.driver);
        let (cause, option) = match (other, options.fresh) {
            (Some(driver), _) => {
                (format!("its driver is {}", live.meta.driver), format!("--driver {driver}"))
            }
            (None, true) => ("it is in its session".to_owned(), "--fresh".to_owned()),
            (None, false) => return Ok(()),
        };
        let failure = Failure::new(format!("the agent of task {} is already running", live.meta.name()))
            .code(FailureCode::AgentRunning)
            .because(cause);
        Err(failure.hint(format!("agency restart {} {option}", key.task)))
    }

    /// Checks whether the machine has capacity for so many more agents than those that are being started.
    pub(super) fn check_capacity(&self, agents: u32) -> Result<(), Failure> {
        let starting =
            self.requests.pending.values().filter(|pending| matches!(pending, Pending::Start { .. })).count();
        Capacity::measure().check_starts(u64::from(agents) + starting as u64)
    }

    /// Gives the supervisor the limits as they are configured now, with the caller's overrides.
    pub(super) fn refresh_limits(&mut self, project: Option<&ProjectId>, overrides: &Overrides) {
        if let Ok(settings) = self.settings_with(project, overrides) {
            let (max_agents, shutdown_timeout) =
                (settings.config.max_agents, settings.config.shutdown_timeout);
            self.supervisor.set_limits(Limits { max_agents, shutdown_timeout });
        }
    }

    /// Plans a start, and finds everything that would make it fail, before anything is made.
    pub(super) fn plan_start(
        &self,
        key: &TaskKey,
        caller: &Caller,
        options: StartOptions,
    ) -> Result<LaunchPlan, Failure> {
        let file = self.store.file(key).map_err(store_failure)?;
        let fields = file.fields();
        let settings = self.settings_with(Some(&key.project), &caller.overrides)?;
        let env = environment::from_caller(&caller.env);
        let chosen = plan::choose_agent(&settings.config, fields.agent.as_deref(), &env);
        let (agent, _) = chosen.map_err(|failure| settings.add_trust_hint(failure))?;
        if let Some(command) = &fields.command {
            self.require_consent(key, command)?;
        }
        let root = self.store.project(&key.project).map_or(Path::new("/"), |known| known.root());
        let task = PlannedTask {
            driver: options.driver.or(fields.driver),
            command: fields.command.as_deref(),
            session_known: fields.session_id.is_some() && !options.fresh,
            directory: root,
        };
        let planned = plan::plan(&settings.config, agent, task, caller)?;
        if let Some(driver) = options.driver.filter(|driver| *driver != fields.driver.unwrap_or(agent.driver))
        {
            self.check_driver_switch(key, agent, driver, options.fresh)?;
        }
        Ok(LaunchPlan { fresh: options.fresh, ..planned })
    }

    /// Checks whether another driver can resume the session of the last one.
    fn check_driver_switch(
        &self,
        key: &TaskKey,
        agent: &Agent,
        driver: Driver,
        fresh: bool,
    ) -> Result<(), Failure> {
        let file = self.store.file(key).map_err(store_failure)?;
        let refused = || {
            Failure::new(format!("task {} cannot switch to the {driver} driver", key.task))
                .code(FailureCode::Unsupported)
        };
        if !self.runs.history.contains_key(key) {
            return Ok(());
        }
        if file.fields().command.is_some() {
            let last = file.fields().driver.unwrap_or(agent.driver);
            return Err(refused()
                .because(format!("its command was written for the {last} driver"))
                .hint(format!("agency new SLUG --driver {driver} -- COMMAND")));
        }
        if fresh {
            return Ok(());
        }
        agent.check_resume(driver).map_err(|err| refused().because(err.to_string()).hint(err.hint()))?;
        if driver == Driver::Acp && self.cannot_resume_sessions(&agent.name) {
            return Err(refused()
                .because(format!("{} reports that it cannot resume sessions over ACP", agent.display_name))
                .hint("pass --fresh to begin a new session"));
        }
        if file.fields().session_id.is_none() {
            return Err(refused()
                .because(format!("{} has not reported its session id yet", agent.display_name))
                .hint("try again when it has answered, or pass --fresh to begin a new session"));
        }
        Ok(())
    }

    /// A command in a task file that no user typed on this machine came with the repository.
    fn require_consent(&self, key: &TaskKey, command: &[String]) -> Result<(), Failure> {
        if self.configuration.trust.trusts(&key.project, &trust::command_digest(command)) {
            return Ok(());
        }
        Err(Failure::new(format!("the command of task {} is not trusted", key.task))
            .code(FailureCode::NotTrusted)
            .because(format!("its file asks to run {command:?}, which was not given to `agency new` here"))
            .hint("`agency trust` shows and allows what this repository wants to run"))
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
                self.add_notes(&key, notes);
                let run = meta.run.clone();
                tracing::info!(task = %key, %run, agent = meta.agent, "run started");
                self.runs.history.entry(key.clone()).or_default().push(meta.clone());
                self.write_start_terms(&key);
                self.mark_agent_cut_off(&key, false);
                let standing = handle.standing.clone();
                self.register(key.clone(), meta, handle);
                // The run is new, so no user has been notified of what it waits for.
                self.notices.notifier.clear_need(&key);
                self.record_state(&key, &run, &standing);
                self.queue_first_message(&key);
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
    fn write_start_terms(&mut self, key: &TaskKey) {
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
    fn queue_first_message(&mut self, key: &TaskKey) {
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
            Ok(_) => self.add_notes(
                key,
                vec!["its first message is sent when it is at its prompt: `agency queue`".to_owned()],
            ),
            Err(cause) => {
                tracing::error!(task = %key, %cause, "cannot queue the first message for the agent")
            }
        }
    }

    pub(super) fn add_notes(&mut self, key: &TaskKey, notes: Vec<String>) {
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
                let failure =
                    full.unwrap_or_else(|| Failure::new("the start failed").code(FailureCode::StartFailed));
                reply.send(Err(start_failure(key, failure)));
            }
            Err(Refusal::SetupFailed { .. }) if full.is_some() => {
                self.starts.made.remove(key);
                let failure =
                    full.unwrap_or_else(|| Failure::new("the setup failed").code(FailureCode::SetupFailed));
                reply.send(Err(start_failure(key, failure)));
            }
            Err(refusal) => reply.send(Err(self.refusal_failure(refusal))),
        }
    }
}

pub(super) fn parse_driver(driver: Option<&str>) -> Result<Option<Driver>, Failure> {
    driver.map(str::parse::<Driver>).transpose().map_err(|err| {
        Failure::new(err.to_string()).code(FailureCode::InvalidArgument).hint("terminal, stream-json or acp")
    })
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

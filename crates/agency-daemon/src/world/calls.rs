//! Methods about the daemon and about the life of a task: the loop answers at once, or gives the supervisor a ticket
//! and answers when the supervisor reports back.

use std::ffi::OsString;
use std::sync::Arc;

use agency_api::config::Overrides;
use agency_api::method::{
    self, Caller, DaemonStopParams, LogForm, LogReadParams, Nothing, Plan, PtyAttachParams, ScreenDump,
    Started, Stopped, Stream, TaskListParams, TaskListing, TaskNewParams, TaskPlanParams, TaskStartParams,
};
use agency_api::{Bytes, Failure, FailureCode, view};
use agency_core::agent::Driver;
use agency_core::config::Config;
use agency_core::ids::{ProjectId, TaskKey};
use agency_core::slug::{Slug, TaskName};
use agency_core::supervisor::{Event, FoundRun, FoundTask, Limits, Operation, Origin, StartPlan, Verdict};
use agency_core::task_file::{Fields, TaskFile};
use agency_run::capacity::{self, Capacity};
use agency_run::command::TerminalCommand;
use agency_run::logs::LogRequest;
use agency_run::plan::{self, PlannedTask, StartOptions};
use agency_run::view::screen_size;
use agency_run::viewers::ViewerOptions;
use agency_run::{environment, limits};
use agency_store::settings::SettingsFiles;
use agency_store::{clock, trust};
use agency_workspace::{Environment, Project, Vcs, WorkspaceName};

use super::argument::{Argument, open_project, open_project_as};
use super::boot::is_talk;
use super::consent::cannot_remember;
use super::setups::SetupMode;
use super::talks::no_terminal;
use super::tasks::store_failure;
use super::workspaces::workspace_failure;
use super::{Pending, World};
use crate::blocking::blocking;
use crate::loop_event::{LoopEvent, NewTask, WorkspaceCheck};
use crate::reply::Reply;
use crate::router::{Later, Router};
use crate::streams::Promised;

pub(super) fn register(router: &mut Router) {
    router.on(method::DaemonStatus, World::daemon_view);
    router.on_reply(method::DaemonStop, World::stop_daemon);
    router.on_reply(method::TaskNew, World::new_task);
    router.on_reply(method::TaskStart, World::start);
    router.on_reply(method::TaskRestart, World::restart);
    router.on_reply(method::TaskStop, World::stop_task);
    router.on_reply(method::TaskIdle, World::idle);
    router.on_reply(method::TaskComplete, World::complete);
    router.on_reply(method::TaskFail, World::fail);
    router.on_reply(method::TaskReview, World::review);
    router.on(method::TaskList, World::list);
    router.on(method::TaskGet, World::get);
    router.on(method::TaskPlan, World::plan);
    router.on(method::PtyAttach, World::attach);
    router.on(method::PtyScreen, World::screen);
    router.on(method::LogRead, World::log);
}

impl Argument<TaskNewParams> for NewTask {
    type Prepared = NewTask;

    async fn prepare(params: TaskNewParams) -> Result<NewTask, Failure> {
        let vcs = params.vcs.as_deref().map(str::parse::<Vcs>).transpose();
        let vcs = vcs.map_err(|err| Failure::new(err.to_string()).code(FailureCode::InvalidArgument))?;
        let project = open_project_as(params.cwd.clone(), vcs, environment_of(&params.caller)).await?;
        Ok(NewTask { project, params })
    }

    fn resolve(_world: &mut World, new: NewTask) -> Result<NewTask, Failure> {
        Ok(new)
    }
}

/// The project whose tasks are meant; all projects if it is `None`.
impl Argument<TaskListParams> for Option<ProjectId> {
    type Prepared = Option<Project>;

    async fn prepare(params: TaskListParams) -> Result<Option<Project>, Failure> {
        match params.cwd {
            Some(cwd) => open_project(cwd).await.map(Some),
            None => Ok(None),
        }
    }

    fn resolve(world: &mut World, project: Option<Project>) -> Result<Option<ProjectId>, Failure> {
        project.map(|project| world.open_project(project)).transpose()
    }
}

impl World {
    fn stop_daemon(&mut self, params: DaemonStopParams, reply: Reply<Nothing>) {
        if params.agents {
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
            epoch: self.context.epoch,
            uptime_seconds: clock::now().saturating_sub(self.lifetime.born).as_secs(),
            socket: state.daemon_socket().into(),
            state_dir: state.root().into(),
            log: state.daemon_log().into(),
            projects: self.store.projects().count() as u64,
            live_runs: self.supervisor.live_runs().count() as u64,
            orphans: self.runs.orphans.len() as u64,
            open_files: capacity::open_files(),
            room: Capacity::measure().figures(),
        }
    }

    /// Has git say whether the workspace can be made, before anything is written.
    fn new_task(&mut self, new: NewTask, reply: Reply<Started>) {
        let name = match self.next_name(&new) {
            Ok(name) => name,
            Err(failure) => return reply.send(Err(failure)),
        };
        let reporter = self.context.reporter.clone();
        tokio::spawn(async move {
            let (project, base) = (new.project.clone(), new.params.base_branch.clone());
            let checked = blocking(move || check_workspace(&project, &name, base.as_deref())).await;
            reporter.report(LoopEvent::NewTaskChecked { new: Box::new(new), checked, reply }).await;
        });
    }

    /// The name of the workspace, unless another task is made first.
    fn next_name(&mut self, new: &NewTask) -> Result<WorkspaceName, Failure> {
        let slug = parse_slug(&new.params.slug)?;
        let id = self.open_project(new.project.clone())?;
        let name = self.store.next_name(&id, slug).to_string();
        name.parse().map_err(|err: agency_workspace::NameError| Failure::new(err.to_string()))
    }

    pub(super) fn on_new_task_checked(
        &mut self,
        mut new: NewTask,
        checked: Result<WorkspaceCheck, Failure>,
        reply: Reply<Started>,
    ) {
        self.lend_environment(&mut new.params);
        match checked.and_then(|checked| self.create_task(&new, checked)) {
            Ok((key, notes)) if new.params.draft => {
                let task = self.view(&key);
                reply.send(task.map(|task| Started { task, notes }));
            }
            Ok((key, notes)) => {
                self.starts.notes.insert(key.clone(), notes);
                let wish = StartOptions::default();
                self.begin(key, &new.params.caller, wish, Origin::MadeByThisCall, reply, false);
            }
            Err(failure) => reply.send(Err(failure)),
        }
    }

    /// Checks everything else, then writes the task file.
    fn create_task(
        &mut self,
        new: &NewTask,
        checked: WorkspaceCheck,
    ) -> Result<(TaskKey, Vec<String>), Failure> {
        let params = &new.params;
        let slug = parse_slug(&params.slug)?;
        let id = self.open_project(new.project.clone())?;
        let asker = params.on_behalf_of.as_deref().map(|run| self.parent_for(&id, run)).transpose()?;
        if params.vcs.is_some() {
            self.store.choose_vcs(&id, new.project.clone()).map_err(store_failure)?;
        }
        // A base that was found in another kind of repository means nothing in the one that the project's tasks use.
        let vcs = self.store.project(&id).map(|known| known.project.vcs());
        let base = if vcs == Some(new.project.vcs()) { checked.base } else { params.base_branch.clone() };
        let mut settings = self.settings_with(Some(&id), &params.caller.overrides)?;
        let mut notes = std::mem::take(&mut settings.warnings);
        if params.agent.is_none() && params.command.is_none() {
            settings.check_choice()?;
        }
        let env = environment::from_caller(&params.caller.env);
        let chosen = plan::choose_agent(&settings.config, params.agent.as_deref(), &env);
        let (agent, chosen) = chosen.map_err(|failure| settings.about_trust(failure))?;
        notes.extend(chosen.filter(|_| params.command.is_none()));
        let driver = parse_driver(params.driver.as_deref())?;
        let command = params.command.as_ref().map(|words| texts(words)).transpose()?;
        let driver = driver.or_else(|| Some(plan::driver_for(agent, command.is_some())));
        let name = self.store.next_name(&id, slug);
        notes.extend(checked.warning);
        notes.extend(self.namesake(&id, &name));
        if !params.draft {
            self.has_room()?;
            let root = self.store.project(&id).map(|known| known.root().to_path_buf()).unwrap_or_default();
            let task =
                PlannedTask { driver, command: command.as_deref(), session_known: false, directory: &root };
            plan::plan(&settings.config, agent, task, &params.caller)?;
        }
        let fields = Fields {
            base_branch: base,
            labels: params.labels.clone(),
            created_at: Some(clock::timestamp()),
            agent: Some(agent.name.clone()),
            driver,
            command: command.clone(),
            parent: asker.map(|asker| asker.task),
            ..Fields::default()
        };
        if let Some(command) = command {
            // The user has just typed this command, so the same command in the task file needs no further consent.
            let (digest, root) = (trust::command_digest(&command), new.project.root());
            self.configuration
                .trust
                .agree(&self.context.state, &id, root, digest)
                .map_err(|err| cannot_remember(&err))?;
        }
        let file = TaskFile::create(fields, params.body.0.clone());
        let key = self.store.create(&id, name, file).map_err(store_failure)?;
        self.decide(Event::TaskSeen(FoundTask {
            key: key.clone(),
            status: agency_core::task_status::TaskStatus::Draft,
            run: FoundRun::None,
        }));
        self.touch_index(&key);
        Ok((key, notes))
    }

    /// A note if another task has the same slug: the slug alone names neither of them any more.
    fn namesake(&self, project: &ProjectId, name: &TaskName) -> Option<String> {
        let tasks = self.store.project(project)?.tasks.values();
        let other = tasks.map(|task| &task.name).find(|other| other.slug == name.slug)?;
        let slug = name.slug.as_str();
        Some(format!("task {} is called {slug} too: name this one {} or {name}", other.id, name.id))
    }

    fn start(&mut self, call: (TaskKey, TaskStartParams), reply: Reply<Started>) {
        self.start_existing(call, false, reply);
    }

    fn restart(&mut self, call: (TaskKey, TaskStartParams), reply: Reply<Started>) {
        self.start_existing(call, true, reply);
    }

    fn start_existing(
        &mut self,
        (key, params): (TaskKey, TaskStartParams),
        restart: bool,
        reply: Reply<Started>,
    ) {
        let driver = match parse_driver(params.driver.as_deref()) {
            Ok(driver) => driver,
            Err(failure) => return reply.send(Err(failure)),
        };
        let wish = StartOptions { driver, fresh: params.fresh, skip_setup: params.skip_setup };
        self.begin(key, &params.caller, wish, Origin::Existing, reply, restart);
    }

    pub(super) fn begin(
        &mut self,
        key: TaskKey,
        caller: &Caller,
        wish: StartOptions,
        origin: Origin,
        reply: Reply<Started>,
        restart: bool,
    ) {
        self.look_elsewhere(&key);
        // One that lives needs nothing more, and makes room first if it is to be started anew. For one that
        // this call made there was room a moment ago.
        let needs_none = self.live_run(&key).is_ok() || origin == Origin::MadeByThisCall;
        let room = if needs_none { Ok(()) } else { self.has_room() };
        let operation = if restart { Operation::Restart } else { Operation::Start };
        let planned = room.and_then(|()| self.may(&key, operation));
        let planned = planned
            .and_then(|()| if restart { Ok(()) } else { self.check_options_of_live_agent(&key, wish) });
        let planned = planned.and_then(|()| self.plan_start(&key, caller, wish));
        let plan = match planned {
            Ok(plan) => plan,
            Err(failure) => {
                if origin == Origin::MadeByThisCall {
                    self.store
                        .undo_create(&key)
                        .unwrap_or_else(|left| tracing::warn!(%left, "a task file stays behind"));
                }
                return reply.send(Err(failure));
            }
        };
        self.refresh_limits(Some(&key.project), &caller.overrides);
        let start = StartPlan { task: origin, terms: plan.terms };
        self.starts.plans.insert(key.clone(), plan);
        let setup = if wish.skip_setup { SetupMode::Skip } else { SetupMode::IfOwed };
        self.request_setup(&key, caller, setup);
        let ticket = self.ticket(Pending::Start { key: key.clone(), reply });
        self.decide(match restart {
            false => Event::Start { key, ticket, plan: start },
            true => Event::Restart { key, ticket, plan: start },
        });
    }

    /// Refuses options that only a new process can take, if the agent lives already.
    fn check_options_of_live_agent(&self, key: &TaskKey, wish: StartOptions) -> Result<(), Failure> {
        let Ok(live) = self.live_run(key) else { return Ok(()) };
        let other = wish.driver.filter(|driver| driver.to_string() != live.meta.driver);
        let (cause, option) = match (other, wish.fresh) {
            (Some(driver), _) => {
                (format!("it is driven by {}", live.meta.driver), format!("--driver {driver}"))
            }
            (None, true) => ("it is in its session".to_owned(), "--fresh".to_owned()),
            (None, false) => return Ok(()),
        };
        let failure = Failure::new(format!("the agent of task {} lives", live.meta.name())).because(cause);
        Err(failure.hint(format!("agency restart {} {option}", key.task)))
    }

    /// Checks whether the machine has capacity for one more agent than those that are being started.
    fn has_room(&self) -> Result<(), Failure> {
        let starting =
            self.requests.pending.values().filter(|pending| matches!(pending, Pending::Start { .. })).count();
        Capacity::measure().check_starts(1 + starting as u64)
    }

    /// Gives the supervisor the limits as they are configured now, with the caller's overrides.
    pub(super) fn refresh_limits(&mut self, project: Option<&ProjectId>, overrides: &Overrides) {
        if let Ok(settings) = self.settings_with(project, overrides) {
            let (max_agents, shutdown_timeout) =
                (settings.config.max_agents, settings.config.shutdown_timeout);
            self.supervisor.set_limits(Limits { max_agents, shutdown_timeout });
        }
    }

    /// Gives the runs new screen rules: a run without output would not read them again by itself.
    pub(super) fn heed_rules(&mut self) {
        let rules = self.context.rule_book.rules();
        if !Arc::ptr_eq(&rules, &self.configuration.screen_rules) {
            self.configuration.screen_rules = rules;
            let terminals = self.runs.live.values().filter_map(|live| live.handle.terminal());
            terminals.for_each(|terminal| terminal.post(TerminalCommand::ReloadRules));
        }
    }

    fn stop_task(&mut self, key: TaskKey, reply: Reply<Stopped>) {
        if self.stop_teardown(&key) {
            let stopped = |task| Stopped { task: Some(task), code: None, ended: Vec::new() };
            return reply.send(self.view(&key).map(stopped));
        }
        let ticket = self.ticket(Pending::Stop { key: key.clone(), reply });
        self.decide(Event::Stop { key, ticket });
    }

    fn idle(&mut self, key: TaskKey, reply: Reply<view::Task>) {
        let ticket = self.ticket(Pending::Mark { key: key.clone(), reply });
        self.decide(Event::Idle { key, ticket });
    }

    fn complete(&mut self, key: TaskKey, reply: Reply<view::Task>) {
        self.mark(key, Verdict::Completed, reply);
    }

    fn fail(&mut self, key: TaskKey, reply: Reply<view::Task>) {
        self.mark(key, Verdict::Failed, reply);
    }

    fn review(&mut self, key: TaskKey, reply: Reply<view::Task>) {
        self.mark(key, Verdict::Reviewed, reply);
    }

    fn mark(&mut self, key: TaskKey, verdict: Verdict, reply: Reply<view::Task>) {
        let ticket = self.ticket(Pending::Mark { key: key.clone(), reply });
        self.decide(Event::Mark { key, ticket, verdict });
    }

    fn get(&mut self, key: TaskKey) -> Result<view::Task, Failure> {
        self.view(&key)
    }

    fn list(&mut self, project: Option<ProjectId>) -> Result<TaskListing, Failure> {
        let projects: Vec<ProjectId> = match project {
            Some(project) => vec![project],
            None => self.store.projects().map(|(id, _)| id.clone()).collect(),
        };
        self.plan_scans(&projects);
        let (mut tasks, mut warnings) = (Vec::new(), Vec::new());
        for id in &projects {
            match self.store.refresh(id).map_err(store_failure) {
                Ok(changed) => self.see_changes(id, changed),
                // A project that cannot be read must not hide the others.
                Err(failure) => warnings.extend(std::iter::once(failure.message).chain(failure.causes)),
            }
            warnings.extend(self.store.project(id).into_iter().flat_map(|known| known.unused.clone()));
            let config = match self.settings(Some(id)) {
                Ok(settings) => {
                    warnings.extend(settings.warnings);
                    settings.config
                }
                // The list does not need the file, so its problem is only a warning.
                Err(failure) => {
                    warnings.extend(failure.causes);
                    Config::default()
                }
            };
            let ids = self.store.project(id).into_iter().flat_map(|known| known.tasks.keys());
            for task in ids {
                tasks.push(self.view_with(&TaskKey { project: id.clone(), task: *task }, &config)?);
            }
        }
        let troubled = self.runs.live.values().filter_map(|live| Some((live, live.trouble.as_ref()?)));
        warnings.extend(troubled.map(|(live, cause)| {
            format!(
                "what task {} prints is not kept: its journal cannot be written: {cause}",
                live.meta.name()
            )
        }));
        warnings.extend(self.context.rule_book.problems());
        warnings.dedup();
        Ok(TaskListing { tasks, orphans: self.orphan_views(), warnings })
    }

    fn screen(&mut self, key: TaskKey) -> Result<Later<ScreenDump>, Failure> {
        let (_, commands) = self.live_terminal(&key)?;
        Ok(Later::new(async move {
            let ended =
                |_| Failure::new("the run ended before it could be looked at").code(FailureCode::NotRunning);
            commands.ask(|answer| TerminalCommand::DumpScreen { answer }).await.map_err(ended)
        }))
    }

    /// The live run of a task. The failure says how to get one.
    pub(super) fn live_run(&self, key: &TaskKey) -> Result<&super::LiveRun, Failure> {
        let name = self.store.task(key).map_or_else(|| key.task.to_string(), |task| task.name.to_string());
        if let Some(host) = self.runs.elsewhere.get(key) {
            return Err(Failure::new(format!("task {name} runs on {host}"))
                .code(FailureCode::RunningElsewhere)
                .hint("use `agency` there"));
        }
        let live = self.supervisor.live_run(key).and_then(|run| self.runs.live.get(run));
        live.ok_or_else(|| {
            let status = self.supervisor.status(key).map_or("not known", |status| status.as_str());
            Failure::new(format!("task {name} has no live agent: it is {status}"))
                .code(FailureCode::NotRunning)
                .hint(format!("agency start {}", key.task))
        })
    }

    fn plan(&mut self, (key, params): (TaskKey, TaskPlanParams)) -> Result<Plan, Failure> {
        let TaskPlanParams { message, overrides, .. } = params;
        let cwd = self.workspace_to_enter(&key)?;
        self.give_ports(&key)?;
        let tokens = self.tokens_of(&key, message.as_ref().map(|message| message.as_os_str().to_owned()))?;
        let file = self.store.file(&key).map_err(store_failure)?;
        let settings = self.settings_with(Some(&key.project), &overrides)?;
        let opener = settings.config.workspace.opener.as_deref().unwrap_or_default();
        let opener = tokens.expand(opener).into_iter().map(Bytes::from).collect();
        let argv = match message {
            None => Vec::new(),
            Some(_) => {
                let agent = settings.config.agents.find(file.fields().agent.as_deref().unwrap_or_default());
                let action = agent.and_then(|agent| agent.run_action()).map_err(plan::agent_failure)?;
                tokens.expand(action).into_iter().map(Bytes::from).collect()
            }
        };
        let (short, long): (Vec<_>, Vec<_>) =
            tokens.exported().into_iter().partition(|(_, value)| value.len() <= limits::LONGEST_EXEC_VALUE);
        let mut env: Vec<(Bytes, Bytes)> =
            short.into_iter().map(|(name, value)| (name.as_str().into(), Bytes::from(value))).collect();
        if !long.is_empty() {
            // exec does not take values that are this long. The command can read them in the task file.
            let path = self.store.task(&key).map(|task| task.path.clone()).unwrap_or_default();
            env.push((environment::PROMPT_FILE.into(), path.into()));
        }
        Ok(Plan { task: self.view(&key)?, cwd: cwd.into(), argv, env, opener })
    }

    fn attach(&mut self, (key, params): (TaskKey, PtyAttachParams)) -> Result<Stream, Failure> {
        let (live, run) = self.live_terminal(&key)?;
        if params.inside_run.as_deref() == Some(live.meta.run.0.as_str()) {
            return Err(Failure::new("cannot attach a run to itself")
                .code(FailureCode::InvalidArgument)
                .because(format!("this terminal is the one of task {}", live.meta.name()))
                .hint("attach from another terminal"));
        }
        if let Some(target) = params.ssh_auth_sock.as_ref().filter(|target| !target.0.is_empty()) {
            let dir = self.context.state.run(&live.meta.run.0);
            if let Err(cause) = environment::refresh_ssh_link(&dir, target.as_os_str()) {
                tracing::warn!(%cause, "cannot update the link to the ssh agent");
            }
        }
        let (config, notes) = self.config_for_viewer(&key.project, &params.overrides)?;
        let view = ViewerOptions {
            size: screen_size(params.size),
            mode: params.mode,
            screen_only: params.screen_only,
            frames: params.frames,
            clipboard: config.clipboard,
        };
        let promised = Promised::Viewer { run, view };
        Ok(Stream { detach_keys: Some(config.detach_keys), notes, ..self.promise(&key, promised)? })
    }

    /// A broken configuration file must not keep a user from attaching, so it is only a note. Broken overrides of the
    /// call itself are a failure.
    fn config_for_viewer(
        &self,
        project: &ProjectId,
        overrides: &Overrides,
    ) -> Result<(Config, Vec<String>), Failure> {
        let own = SettingsFiles::without_files(overrides)?;
        Ok(match self.settings_with(Some(project), overrides) {
            Ok(settings) => (settings.config, Vec::new()),
            Err(failure) => {
                let words: Vec<String> = std::iter::once(failure.message).chain(failure.causes).collect();
                (own.config, vec![words.join(": ")])
            }
        })
    }

    fn log(&mut self, (key, params): (TaskKey, LogReadParams)) -> Result<Stream, Failure> {
        let LogReadParams { form, follow, .. } = params;
        if form == LogForm::Setup {
            return self.setup_log(&key, follow);
        }
        let runs = self.runs.history.get(&key).map(Vec::as_slice).unwrap_or_default();
        let is_raw = form == LogForm::Raw;
        if !is_raw && runs.last().is_some_and(is_talk) {
            return Err(no_terminal(&key));
        }
        // Output of a terminal and messages of a protocol are not shown in one text.
        let runs = runs.iter().filter(|meta| is_raw || !is_talk(meta));
        let runs = runs.map(|meta| self.context.state.run(&meta.run.0)).collect();
        self.promise(&key, Promised::Log(LogRequest { runs, form, follow }))
    }

    pub(super) fn promise(&self, key: &TaskKey, promised: Promised) -> Result<Stream, Failure> {
        let token = self.context.streams.promise(promised);
        let stream = token.map_err(|err| Failure::new("cannot promise a stream").caused_by(&err))?;
        Ok(Stream { stream, task: self.view(key)?, detach_keys: None, notes: Vec::new() })
    }
}

/// Blocking. Fails where making the workspace would fail.
fn check_workspace(
    project: &Project,
    name: &WorkspaceName,
    base: Option<&str>,
) -> Result<WorkspaceCheck, Failure> {
    let base = agency_workspace::check_create(project, name, base).map_err(|err| workspace_failure(&err))?;
    if project.vcs() == Vcs::Plain {
        return Ok(WorkspaceCheck { base: None, warning: None });
    }
    // The number is only for a warning, so a failure to count is no failure.
    let warning = match agency_workspace::dirty_checkout(project).unwrap_or_default().len() {
        0 => None,
        1 => Some("1 file with uncommitted changes in your checkout is not in the workspace".to_string()),
        many => {
            Some(format!("{many} files with uncommitted changes in your checkout are not in the workspace"))
        }
    };
    Ok(WorkspaceCheck { base: base.map(|base| base.name), warning })
}

fn environment_of(caller: &Caller) -> Environment {
    let pairs = |(name, value): &(Bytes, Bytes)| -> (OsString, OsString) {
        (name.as_os_str().to_owned(), value.as_os_str().to_owned())
    };
    Environment::of(caller.env.iter().map(pairs))
}

fn parse_slug(slug: &str) -> Result<Slug, Failure> {
    Slug::new(slug)
        .map_err(|err| Failure::new(err.to_string()).code(FailureCode::InvalidArgument).hint(err.hint()))
}

fn parse_driver(driver: Option<&str>) -> Result<Option<Driver>, Failure> {
    driver.map(str::parse::<Driver>).transpose().map_err(|err| {
        Failure::new(err.to_string()).code(FailureCode::InvalidArgument).hint("terminal, stream-json or acp")
    })
}

fn texts(words: &[Bytes]) -> Result<Vec<String>, Failure> {
    let text = |word: &Bytes| String::from_utf8(word.0.clone());
    let texts: Result<Vec<String>, _> = words.iter().map(text).collect();
    texts.map_err(|_| Failure::new("the command is not UTF-8 text").because("a task file could not hold it"))
}

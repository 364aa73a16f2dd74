//! Terminals beside agents: callers open, list and close them. Each has a keeper of its own, so it outlives the daemon.
//!
//! A terminal has no status and takes no slot of `max_agents`, so the supervisor knows nothing of it but whether one may be
//! opened. Not here: how terminals are closed (see `shell_ends`) and attached to (see `terminals`).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;

use agency_api::event::{ErrorEvent, ShellEndedEvent, ShellOpenedEvent};
use agency_api::method::{self, ScreenDump};
use agency_api::shell::{Shell, ShellListParams, ShellOpenParams, ShellOpened, ShellRef, Shells};
use agency_api::{Bytes, Failure, FailureCode};
use agency_core::agent::Driver;
use agency_core::exit::RunExit;
use agency_core::ids::{ProjectId, RunId, TaskKey};
use agency_core::shell;
use agency_core::spelling::{did_you_mean, nearest};
use agency_core::supervisor::Operation;
use agency_run::command::{RunCommand, TerminalCommand};
use agency_run::environment::{self, Environment};
use agency_run::handle::{CommandSender, RunHandle};
use agency_run::report::RunReport;
use agency_run::run_context::RunContext;
use agency_run::run_meta::{self, RunMeta, ShellMeta};
use agency_run::shell::{ShellActivity, ShellLaunch, look};
use agency_run::start::StartedRun;
use agency_server::{Argument, Reply};
use agency_store::clock;

use super::World;
use super::argument::open_task;
use super::loop_event::{LoopEvent, NamedTask, ShellEvent};
use super::router::{Later, Router};
use super::tasks::no_task;

/// The agent that the files of a terminal's run name. Its settings are those of a shell.
const AGENT: &str = "shell";

/// Every machine has it.
const FALLBACK_SHELL: &str = "/bin/sh";

pub(super) fn register(router: &mut Router) {
    router.on_reply(method::ShellOpen, World::open_shell);
    router.on(method::ShellList, World::shell_list);
    router.on_reply(method::ShellClose, World::close_shells);
    router.on(method::ShellScreen, World::shell_screen);
}

/// A terminal whose keeper is there.
pub(super) struct LiveShell {
    pub(super) key: TaskKey,
    pub(super) name: String,
    meta: RunMeta,
    pub(super) handle: RunHandle,
    viewers: usize,
}

/// The terminals that are open, that are being opened, and the runs of those that ended.
#[derive(Default)]
pub(super) struct ShellTable {
    live: BTreeMap<RunId, LiveShell>,
    starting: HashSet<(TaskKey, String)>,
    /// Every task's terminals that left a journal, oldest first.
    past: HashMap<TaskKey, Vec<RunMeta>>,
}

impl ShellTable {
    pub(super) fn is_live(&self, run: &RunId) -> bool {
        self.live.contains_key(run)
    }

    pub(super) fn live(&self) -> impl Iterator<Item = &LiveShell> {
        self.live.values()
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &RunId> {
        self.live.keys()
    }

    /// Whether the task has a terminal, or is about to have one.
    pub(super) fn has_any(&self, key: &TaskKey) -> bool {
        self.live.values().any(|shell| shell.key == *key) || self.starting.iter().any(|(of, _)| of == key)
    }

    pub(super) fn is_starting_any(&self) -> bool {
        !self.starting.is_empty()
    }

    /// Takes all terminals out: the daemon leaves.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = RunHandle> {
        std::mem::take(&mut self.live).into_values().map(|shell| shell.handle)
    }

    pub(super) fn add_past(&mut self, key: TaskKey, meta: RunMeta) {
        self.past.entry(key).or_default().push(meta);
    }

    /// The user has moved the project of an ended terminal.
    pub(super) fn move_past(&mut self, former: &ProjectId, key: &TaskKey, meta: RunMeta) {
        self.past.remove(&TaskKey { project: former.clone(), task: key.task });
        self.add_past(key.clone(), meta);
    }

    pub(super) fn forget(&mut self, key: &TaskKey) {
        self.past.remove(key);
    }

    fn find(&self, key: &TaskKey, name: &str) -> Option<&LiveShell> {
        self.live.values().find(|shell| shell.key == *key && shell.name == name)
    }

    fn names_of<'a>(&'a self, key: &'a TaskKey) -> impl Iterator<Item = &'a str> {
        self.live.values().filter(move |shell| shell.key == *key).map(|shell| shell.name.as_str())
    }

    /// The last run of the terminal of this name, live or ended.
    fn last_run(&self, key: &TaskKey, name: &str) -> Option<&RunId> {
        let is_named = |meta: &&RunMeta| meta.shell.as_ref().is_some_and(|shell| shell.name == name);
        let past = || self.past.get(key)?.iter().rfind(is_named).map(|meta| &meta.run);
        self.find(key, name).map(|shell| &shell.meta.run).or_else(past)
    }

    fn next_order(&self, key: &TaskKey) -> u64 {
        let live = self.live.values().filter(|shell| shell.key == *key).map(|shell| shell.meta.order);
        let past = self.past.get(key).into_iter().flatten().map(|meta| meta.order);
        live.chain(past).max().unwrap_or_default() + 1
    }
}

/// The task whose terminals are meant; all tasks if it is `None`.
impl Argument<World, ShellListParams> for Option<TaskKey> {
    type Prepared = Option<NamedTask>;

    async fn prepare(params: ShellListParams) -> Result<Option<NamedTask>, Failure> {
        match params.task {
            Some(task) => open_task(task).await.map(Some),
            None => Ok(None),
        }
    }

    fn resolve(world: &mut World, task: Option<NamedTask>) -> Result<Option<TaskKey>, Failure> {
        task.map(|task| world.find(task)).transpose()
    }
}

impl World {
    fn open_shell(&mut self, (key, params): (TaskKey, ShellOpenParams), reply: Reply<ShellOpened>) {
        match self.plan_shell(&key, params) {
            Ok(ShellPlan::Open(shell)) => {
                let task = self.view(&key);
                reply.send(task.map(|task| ShellOpened { shell: *shell, task, new: false }));
            }
            Ok(ShellPlan::Launch(name, launch)) => {
                self.runs.shells.starting.insert((key.clone(), name.clone()));
                let reporter = self.context.reporter.clone();
                tokio::spawn(async move {
                    let started = launch.run(reporter.sink()).await.map(Box::new);
                    let event = ShellEvent::Started { key, name, started, reply };
                    reporter.report(LoopEvent::Shell(event)).await;
                });
            }
            Err(failure) => reply.send(Err(failure)),
        }
    }

    fn plan_shell(&mut self, key: &TaskKey, params: ShellOpenParams) -> Result<ShellPlan, Failure> {
        let name = self.choose_shell_name(key, params.shell.as_deref())?;
        if let Some(live) = self.runs.shells.find(key, &name) {
            if params.command.is_none() {
                return Ok(ShellPlan::Open(Box::new(self.shell_view(live))));
            }
            let (task, running) = (self.name_of(key), self.activity(live).running);
            return Err(Failure::new(format!("terminal {name} of task {task} is open already"))
                .code(FailureCode::AlreadyExists)
                .because(
                    running.map_or("it is at its prompt".to_owned(), |program| {
                        format!("`{program}` runs in it")
                    }),
                )
                .hint(format!("attach to it: agency attach {task}:{name}, or choose another --name")));
        }
        if self.runs.shells.starting.contains(&(key.clone(), name.clone())) {
            return Err(Failure::new(format!(
                "terminal {name} of task {} is being opened",
                self.name_of(key)
            ))
            .code(FailureCode::Busy)
            .hint("try again in a moment"));
        }
        if self.lifetime.ending_shells {
            return Err(Failure::new("the daemon is leaving").code(FailureCode::DaemonLost));
        }
        self.may(key, Operation::OpenShell)?;
        self.check_capacity(1)?;
        let launch = self.prepare_shell(key, &name, params)?;
        Ok(ShellPlan::Launch(name, Box::new(launch)))
    }

    fn choose_shell_name(&self, key: &TaskKey, wanted: Option<&str>) -> Result<String, Failure> {
        match wanted {
            Some(name) => shell::check_name(name).map(String::from).map_err(|problem| {
                Failure::new("a terminal cannot have this name")
                    .code(FailureCode::InvalidArgument)
                    .because(problem)
            }),
            None => {
                let starting =
                    |name: &str| self.runs.shells.starting.contains(&(key.clone(), name.to_owned()));
                let is_taken = |name: &str| self.runs.shells.find(key, name).is_some() || starting(name);
                Ok(shell::free_name(is_taken))
            }
        }
    }

    fn prepare_shell(
        &mut self,
        key: &TaskKey,
        name: &str,
        params: ShellOpenParams,
    ) -> Result<ShellLaunch, Failure> {
        let directory = self.workspace_to_enter(key)?;
        self.give_ports(key)?;
        let (project, _) = self.workspace_of(key)?;
        let task = self.store.task(key).ok_or_else(|| no_task(key))?.name.clone();
        let environment = self.shell_environment(key, &params.caller.env)?;
        let argv = params.command.clone().unwrap_or_else(|| vec![users_shell(&environment)]);
        let run = run_meta::new_run_id()
            .map_err(|err| Failure::new("no random numbers").code(FailureCode::IoError).caused_by(&err))?;
        let program = argv.first().map(|program| program.as_path().display().to_string());
        let meta = RunMeta {
            run,
            host: self.context.state.host().to_owned(),
            host_name: run_meta::host_name(),
            root: project.root().to_path_buf(),
            vcs: project.vcs().to_string(),
            task: key.task.0,
            slug: task.slug.as_str().to_owned(),
            agent: AGENT.to_owned(),
            driver: Driver::Terminal.to_string(),
            program: program.unwrap_or_default(),
            base_branch: None,
            acp: None,
            shell: Some(ShellMeta { name: name.to_owned(), command: params.command }),
            started_at: clock::timestamp(),
            order: self.runs.shells.next_order(key),
        };
        let context = self.context_of(&meta);
        let open_files = params.caller.open_files.or(context.open_files);
        Ok(ShellLaunch {
            argv,
            environment,
            directory,
            size: params.caller.size.unwrap_or_default(),
            socket: self.context.state.daemon_socket(),
            meta,
            context: RunContext { open_files, ..context },
        })
    }

    /// The caller's environment with the variables of the task.
    fn shell_environment(&self, key: &TaskKey, caller: &[(Bytes, Bytes)]) -> Result<Environment, Failure> {
        let own: Vec<(Bytes, Bytes)> = match caller.is_empty() {
            // Without PATH no program would be found.
            true => std::env::vars_os().map(|(name, value)| (name.into(), value.into())).collect(),
            false => caller.to_vec(),
        };
        let mut env = environment::from_caller(&own);
        env.extend(
            self.tokens_of(key, None)?.exported().into_iter().map(|(name, value)| (name.into(), value)),
        );
        Ok(env)
    }

    pub(super) fn on_shell_event(&mut self, event: ShellEvent) {
        match event {
            ShellEvent::Started { key, name, started, reply } => {
                self.runs.shells.starting.remove(&(key.clone(), name.clone()));
                reply.send(self.on_shell_started(key, &name, started));
                if self.lifetime.ending_shells {
                    self.end_all_shells();
                }
            }
            ShellEvent::Closed { after, closed } => self.on_shells_closed(after, closed),
        }
    }

    fn on_shell_started(
        &mut self,
        key: TaskKey,
        name: &str,
        started: Result<Box<StartedRun>, Failure>,
    ) -> Result<ShellOpened, Failure> {
        let task = self.name_of(&key);
        let started = started
            .map_err(|failure| failure.within(format!("cannot open terminal {name} of task {task}")))?;
        let StartedRun { meta, handle, .. } = *started;
        let run = meta.run.clone();
        let command = meta.shell.as_ref().and_then(|shell| shell.command.clone());
        self.register_shell(key.clone(), meta, handle);
        let opened = ShellOpenedEvent { name: name.to_owned(), command };
        self.announce(Some(&key), Some(&run), opened);
        let ended = || Failure::new(format!("terminal {name} ended at once")).code(FailureCode::StartFailed);
        let shell = self.runs.shells.live.get(&run).map(|live| self.shell_view(live)).ok_or_else(ended)?;
        Ok(ShellOpened { shell, task: self.view(&key)?, new: true })
    }

    /// From now on the loop handles the reports of the terminal.
    pub(super) fn register_shell(&mut self, key: TaskKey, meta: RunMeta, handle: RunHandle) {
        handle.command(RunCommand::Begin);
        let name = meta.shell.as_ref().map(|shell| shell.name.clone()).unwrap_or_default();
        tracing::info!(task = %key, run = %meta.run, name, "a terminal is open");
        let live = LiveShell { key, name, handle, viewers: 0, meta };
        self.runs.shells.live.insert(live.meta.run.clone(), live);
    }

    pub(super) fn on_shell_report(&mut self, run: &RunId, report: RunReport) {
        if let RunReport::Over { exit, .. } = report {
            return self.on_shell_over(run, exit);
        }
        let Some(shell) = self.runs.shells.live.get_mut(run) else { return };
        match report {
            RunReport::Viewers(viewers) => shell.viewers = viewers,
            RunReport::Rescued { keeper } => shell.handle.keeper = keeper,
            RunReport::Journal { cause: Some(cause) } => {
                let key = shell.key.clone();
                let error = ErrorEvent::new("the journal of a terminal cannot be written", cause);
                self.announce(Some(&key), Some(run), error);
            }
            // A terminal has no state, no session and no approvals.
            _ => {}
        }
    }

    fn on_shell_over(&mut self, run: &RunId, exit: RunExit) {
        let Some(shell) = self.runs.shells.live.remove(run) else { return };
        let LiveShell { key, name, meta, handle, .. } = shell;
        tracing::info!(task = %key, %run, name, code = %exit.code, "a terminal ended");
        handle.command(RunCommand::Dismiss);
        self.runs.dismissed.retain(|commands| !commands.is_closed());
        self.runs.dismissed.push(handle.commands);
        self.runs.shells.add_past(key.clone(), meta);
        self.announce(Some(&key), Some(run), ShellEndedEvent { name, code: exit.code.to_string() });
    }

    fn shell_list(&mut self, wanted: Option<TaskKey>) -> Shells {
        let is_wanted = |shell: &&LiveShell| wanted.as_ref().is_none_or(|key| *key == shell.key);
        let mut live: Vec<&LiveShell> = self.runs.shells.live().filter(is_wanted).collect();
        live.sort_by(|one, other| {
            (&one.meta.root, one.key.task, one.meta.order).cmp(&(
                &other.meta.root,
                other.key.task,
                other.meta.order,
            ))
        });
        Shells { shells: live.into_iter().map(|shell| self.shell_view(shell)).collect() }
    }

    fn shell_view(&self, live: &LiveShell) -> Shell {
        let LiveShell { key, name, meta, viewers, .. } = live;
        let ShellActivity { pid, running } = self.activity(live);
        Shell {
            name: name.clone(),
            task: key.task.0,
            slug: meta.slug.clone(),
            project: meta.root.as_path().into(),
            run: meta.run.0.clone(),
            pid,
            command: meta.shell.as_ref().and_then(|shell| shell.command.clone()),
            running,
            viewers: *viewers as u64,
            opened_at: meta.started_at.clone(),
        }
    }

    pub(super) fn activity(&self, live: &LiveShell) -> ShellActivity {
        let dir = self.context.state.run(&live.meta.run.0);
        live.meta.shell.as_ref().map(|shell| look(&dir, shell)).unwrap_or_default()
    }

    fn shell_screen(&mut self, (key, params): (TaskKey, ShellRef)) -> Result<Later<ScreenDump>, Failure> {
        let (_, commands) = self.live_shell(&key, &params.shell)?;
        Ok(Later::new(super::terminals::dump_screen(commands)))
    }

    /// The open terminal of this name.
    pub(super) fn live_shell(
        &self,
        key: &TaskKey,
        name: &str,
    ) -> Result<(RunId, CommandSender<TerminalCommand>), Failure> {
        let shell = self.runs.shells.find(key, name).ok_or_else(|| self.no_shell(key, name))?;
        let commands = shell.handle.terminal().ok_or_else(|| self.no_shell(key, name))?;
        Ok((shell.meta.run.clone(), commands.clone()))
    }

    /// The last run of the terminal of this name, also if it has ended.
    pub(super) fn last_shell_run(&self, key: &TaskKey, name: &str) -> Result<RunId, Failure> {
        self.runs.shells.last_run(key, name).cloned().ok_or_else(|| self.no_shell(key, name))
    }

    pub(super) fn no_shell(&self, key: &TaskKey, name: &str) -> Failure {
        let task = self.name_of(key);
        let similar = nearest(name, self.runs.shells.names_of(key));
        let hint =
            did_you_mean(&similar).unwrap_or_else(|| format!("open it: agency shell {task} --name {name}"));
        Failure::new(format!("task {task} has no open terminal {name}"))
            .code(FailureCode::NotFound)
            .hint(hint)
    }
}

/// The answer to a caller who wants a terminal.
enum ShellPlan {
    /// The terminal that is open already.
    Open(Box<Shell>),
    Launch(String, Box<ShellLaunch>),
}

fn users_shell(env: &Environment) -> Bytes {
    let shell = env.get(OsStr::new("SHELL")).filter(|shell| !shell.is_empty());
    shell.map_or_else(|| FALLBACK_SHELL.into(), |shell| Bytes::from(shell.clone()))
}

//! Making a fresh workspace ready to work in, and clearing up before it goes.
//!
//! Whether a setup is still owed is written down before the workspace is made and struck out when the setup is
//! done, so a daemon that dies in between leaves the next start to do it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use agency_api::Failure;
use agency_api::config::Overrides;
use agency_api::event::{SetupEndedEvent, SetupOutcome, SetupOutputEvent, SetupPhase, SetupStartedEvent};
use agency_api::method::{Caller, Stream};
use agency_core::config::{Config, Key, WorkspaceConfig};
use agency_core::ids::{Epoch, TaskKey};
use agency_core::restart::RestartPolicy;
use agency_core::supervisor::{Event, Origin, Readiness, RunTerms, StartPlan};
use agency_core::tokens::{Ports, Tokens};
use agency_run::environment::{self, Environment};
use agency_run::process_tree::end_tree;
use agency_run::run_meta;
use agency_run::view;
use agency_store::ports;
use agency_store::settings::Settings;
use agency_store::workspace_record::Mark;
use agency_workspace::{CopyError, Project, RemoveOptions, Vcs, WorkspaceName};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::tasks::store_failure;
use super::{Pending, World};
use crate::chore::{self, Chore, Log, Trouble};
use crate::happening::{Answer, Happening, Reporter, SetupTrouble};
use crate::rpc;
use crate::streams::Promised;

/// What the one who asked for a start said about its setup.
#[derive(Debug, Clone, Default)]
pub struct SetupWish {
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

/// What the one who wants a task gone said about it.
#[derive(Debug, Clone)]
pub struct RemovalWish {
    pub discard: bool,
    /// Why, if not because a person said so.
    pub reason: Option<String>,
    pub caller: Caller,
}

impl RemovalWish {
    /// For whoever looks into the trash.
    pub fn why(&self) -> String {
        match (&self.reason, self.discard) {
            (Some(reason), _) => reason.clone(),
            (None, true) => "agency rm --discard".to_owned(),
            (None, false) => "agency rm".to_owned(),
        }
    }
}

/// A setup or teardown that runs.
pub(super) struct AtWork {
    phase: SetupPhase,
    stop: watch::Sender<bool>,
    /// Counts what was printed, for those who follow the log.
    printed: watch::Sender<u64>,
    asked_by: Vec<String>,
    task: JoinHandle<()>,
}

impl AtWork {
    fn new(
        phase: SetupPhase,
        stop: watch::Sender<bool>,
        watch: Option<String>,
        task: JoinHandle<()>,
    ) -> AtWork {
        let (printed, _) = watch::channel(0);
        AtWork { phase, stop, printed, asked_by: watch.into_iter().collect(), task }
    }
}

/// Everything a setup needs.
struct Setup {
    project: Project,
    name: WorkspaceName,
    patterns: Vec<String>,
    chore: Chore,
    hint: String,
}

impl World {
    /// Before the workspace is made: what it will need is known, whoever comes after us.
    pub(super) fn expect_workspace(&mut self, key: &TaskKey) {
        match self.give_ports(key) {
            Ok(Some(given)) => self.note_busy_ports(key, &given),
            Ok(None) => self.note_missing_ports(key),
            Err(cause) => tracing::warn!(task = %key, %cause, "a workspace has no ports"),
        }
        let Ok((project, name)) = self.workspace_of(key) else { return };
        let is_there = agency_workspace::workspace_path(&project, &name).is_dir();
        if project.vcs() == Vcs::Plain || is_there {
            return;
        }
        let Ok(settings) = self.settings_of_setup(key) else { return };
        if settings.waiting.contains(&SETUP_KEY) {
            let words = "the project's setup was left out: `agency trust`, then `agency setup";
            self.note(key, vec![format!("{words} {}`", key.task)]);
        }
        let config = settings.config.workspace;
        let is_owed = !config.setup.is_empty() || agency_workspace::includes_files(&project, &config.copy);
        self.mark_setup(key, if is_owed { Mark::Pending } else { Mark::None });
    }

    /// The workspace is there.
    pub(super) fn readiness(&self, key: &TaskKey) -> Readiness {
        let mode = self.wishes.get(key).map(|wish| wish.mode).unwrap_or_default();
        match self.workspaces.get(key).setup.is_owed() || mode == SetupMode::Again {
            true => Readiness::Raw,
            false => Readiness::Ready,
        }
    }

    /// The ports of the task's workspace, chosen now if it has none.
    pub(super) fn give_ports(&mut self, key: &TaskKey) -> Result<Option<Ports>, Failure> {
        let config = self.settings_of_setup(key)?.config.workspace;
        let given = self.workspaces.ports(key, config.port_base, config.ports);
        given.map_err(|err| Failure::new("cannot write down a workspace's ports").caused_by(&err))
    }

    /// They stay its own, since much may know them by now; but somebody should look.
    fn note_busy_ports(&mut self, key: &TaskKey, given: &Ports) {
        let row = (0..given.count).map(|nth| given.first.saturating_add(nth));
        let busy: Vec<String> =
            row.filter(|port| !ports::is_free(*port)).map(|port| port.to_string()).collect();
        if !busy.is_empty() {
            let words = format!("in use by another program, though given to task {}", key.task);
            self.note(key, vec![format!("port {} {words}: `ss -ltnp` shows whose it is", busy.join(", "))]);
        }
    }

    fn note_missing_ports(&mut self, key: &TaskKey) {
        let Ok(settings) = self.settings_of_setup(key) else { return };
        let WorkspaceConfig { ports, port_base, .. } = settings.config.workspace;
        if ports > 0 {
            self.note(key, vec![format!("there are no {ports} free ports from {port_base} on")]);
        }
    }

    /// Nothing was made, or it was taken back.
    pub(super) fn expect_no_workspace(&mut self, key: &TaskKey) {
        if self.workspace_to_enter(key).is_err() {
            self.mark_setup(key, Mark::None);
        }
    }

    fn settings_of_setup(&self, key: &TaskKey) -> Result<Settings, Failure> {
        let overrides = self.wishes.get(key).map(|wish| wish.overrides.clone()).unwrap_or_default();
        self.settings_with(Some(&key.project), &overrides)
    }

    pub(super) fn mark_setup(&mut self, key: &TaskKey, mark: Mark) {
        if let Err(cause) = self.workspaces.change(key, |record| record.setup = mark) {
            tracing::error!(task = %key, %cause, ?mark, "how far a workspace is set up is not kept");
        }
    }

    /// What the names stand for in a task's commands.
    pub(super) fn tokens_of(&self, key: &TaskKey, message: Option<OsString>) -> Result<Tokens, Failure> {
        let (project, workspace) = self.workspace_of(key)?;
        let file = self.store.file(key).map_err(store_failure)?;
        let task = self.store.task(key).map(|task| task.name.clone());
        let name = task.ok_or_else(|| Failure::new(format!("there is no task {}", key.task)))?;
        Ok(Tokens {
            task_id: name.id,
            slug: name.slug,
            body: file.body().to_vec(),
            project_root: project.root().to_path_buf(),
            worktree: agency_workspace::workspace_path(&project, &workspace),
            session_id: file.fields().session_id.clone(),
            message,
            ports: self.workspaces.get(key).ports(),
        })
    }

    /// What the start that was just asked for says about the setup.
    pub(super) fn wish(&mut self, key: &TaskKey, caller: &Caller, mode: SetupMode) {
        let wish = SetupWish {
            environment: self.environment_for(key, caller),
            overrides: caller.overrides.clone(),
            mode,
            watch: caller.watch.clone(),
        };
        if let Some(at_work) = self.chores.get_mut(key) {
            at_work.asked_by.extend(wish.watch.clone());
        }
        self.wishes.insert(key.clone(), wish);
    }

    /// The caller's, with what is configured for the task's agent.
    fn environment_for(&self, key: &TaskKey, caller: &Caller) -> Environment {
        let mut env = match caller.env.is_empty() {
            // A caller that says nothing of its own gets ours, or no program would be found.
            true => {
                let own = std::env::vars_os().map(|(name, value)| (name.into(), value.into()));
                environment::from_caller(&own.collect::<Vec<_>>())
            }
            false => environment::from_caller(&caller.env),
        };
        let settings = self.settings_with(Some(&key.project), &caller.overrides).ok();
        let agent = self.store.file(key).ok().and_then(|file| file.fields().agent.clone());
        let of_agent = |config: &Config| Some(config.agents.find(&agent?).ok()?.env.clone());
        let configured = settings.and_then(|settings| of_agent(&settings.config)).unwrap_or_default();
        env.extend(configured.into_iter().map(|(name, value)| (name.into(), value.into())));
        env
    }

    /// `agency setup`.
    pub(super) fn setup_task(&mut self, key: TaskKey, caller: &Caller, answer: Answer) {
        if let Err(failure) = self
            .workspace_to_enter(&key)
            .and_then(|_| self.not_being_removed(&key))
            .and_then(|()| self.not_landing(&key))
        {
            return answer.give(Err(failure));
        }
        // One that is in the middle of something is refused, and its own wish stands.
        if !self.supervisor.occupation(&key).is_busy() {
            self.wish(&key, caller, SetupMode::Again);
        }
        let terms = RunTerms { stop_grace: Duration::ZERO, restart: RestartPolicy::Never };
        let plan = StartPlan { task: Origin::Existing, terms };
        let ticket = self.ticket(Pending::Start { key: key.clone(), answer });
        self.decide(Event::SetUp { key, ticket, plan });
    }

    /// The directory of a workspace that has been made.
    pub(super) fn workspace_to_enter(&self, key: &TaskKey) -> Result<PathBuf, Failure> {
        let (project, workspace) = self.workspace_of(key)?;
        let path = agency_workspace::workspace_path(&project, &workspace);
        match path.is_dir() {
            true => Ok(path),
            false => Err(Failure::new(format!("task {workspace} has no workspace yet"))
                .because(format!("{} is not there", path.display()))
                .hint(format!("agency start {} makes it", key.task))),
        }
    }

    /// A teardown takes its time, and the supervisor has let go of the task by then.
    pub(super) fn not_being_removed(&self, key: &TaskKey) -> Result<(), Failure> {
        self.is_unsettled(key).map_or(Ok(()), Err)?;
        match self.chores.get(key) {
            Some(AtWork { phase: SetupPhase::Teardown, .. }) => {
                Err(Failure::new(format!("task {} is being removed", key.task)))
            }
            _ if self.removing.contains_key(key) => {
                Err(Failure::new(format!("task {} is being removed", key.task)))
            }
            _ if self.rewinding.contains(key) => {
                Err(Failure::new(format!("the files of task {} are being taken back", key.task))
                    .hint("try again in a moment"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn set_up(&mut self, key: TaskKey, epoch: Epoch) {
        let prepared = self.prepare_setup(&key);
        let (stop, stopped) = watch::channel(false);
        let desk = self.desk(&key);
        let task = tokio::spawn(async move {
            let outcome = match prepared {
                Ok(setup) => desk.furnish(setup, stopped).await,
                Err(failure) => Err(SetupTrouble { failure, stopped: false }),
            };
            let Desk { key, reporter } = desk;
            reporter.report(Happening::SetupOver { key, epoch, outcome }).await;
        });
        let watch = self.wishes.get(&key).and_then(|wish| wish.watch.clone());
        self.at_work(&key, AtWork::new(SetupPhase::Setup, stop, watch, task));
    }

    fn desk(&self, key: &TaskKey) -> Desk {
        Desk { key: key.clone(), reporter: self.ground.reporter.clone() }
    }

    fn at_work(&mut self, key: &TaskKey, at_work: AtWork) {
        let phase = at_work.phase;
        self.chores.insert(key.clone(), at_work);
        let asked_by = self.asked_by(key);
        self.announce(Some(key), None, SetupStartedEvent { phase, asked_by });
    }

    /// Whether a teardown was there to be ended: the supervisor has let go of its task.
    pub(super) fn end_teardown(&mut self, key: &TaskKey) -> bool {
        let is_teardown = self.chores.get(key).is_some_and(|at_work| at_work.phase == SetupPhase::Teardown);
        if is_teardown {
            self.end_setup(key);
        }
        is_teardown
    }

    pub(super) fn end_setup(&mut self, key: &TaskKey) {
        if let Some(at_work) = self.chores.get(key) {
            at_work.stop.send_replace(true);
        }
    }

    fn prepare_setup(&mut self, key: &TaskKey) -> Result<Setup, Failure> {
        let wish = self.wishes.get(key).cloned().unwrap_or_default();
        let config = self.settings_of_setup(key)?.config.workspace;
        let (project, name) = self.workspace_of(key)?;
        let commands = if wish.mode == SetupMode::Skip { &[] } else { config.setup.as_slice() };
        let chore = self.chore(key, commands, &config, wish.environment)?;
        self.mark_setup(key, Mark::Pending);
        let task = key.task;
        let hint = format!(
            "`agency logs {task} --setup` shows all of it; `agency setup {task}` runs it again, \
             `agency start {task} --skip-setup` goes on without it"
        );
        Ok(Setup { project, name, patterns: config.copy, chore, hint })
    }

    /// The name that all carries which is started in the workspace, and by which it is found again.
    pub(super) fn workspace_run(&self, key: &TaskKey) -> Result<String, Failure> {
        if let Some(run) = self.workspaces.get(key).run {
            return Ok(run);
        }
        let made = run_meta::new_run_id().map_err(|err| Failure::new("no random numbers").caused_by(&err))?;
        Ok(made.0)
    }

    /// The commands with all that they need. From here on somebody has to see to their end.
    fn chore(
        &mut self,
        key: &TaskKey,
        commands: &[Vec<String>],
        config: &WorkspaceConfig,
        mut env: Environment,
    ) -> Result<Chore, Failure> {
        let cwd = self.workspace_to_enter(key)?;
        let tokens = self.tokens_of(key, None)?;
        let run = self.workspace_run(key)?;
        env.extend(tokens.exported().into_iter().map(|(name, value)| (name.into(), value)));
        env.insert("PWD".into(), cwd.clone().into());
        env.insert(environment::RUN_ID.into(), run.clone().into());
        env.insert(environment::SOCKET.into(), self.ground.state.daemon_socket().into());
        agency_run::environment::drop_long_variables(&mut env);
        let is_at_work = !commands.is_empty();
        let written = self.workspaces.change(key, |record| {
            record.run = Some(run.clone());
            record.at_work = is_at_work;
        });
        written.map_err(|err| {
            Failure::new("what runs in the workspace cannot be written down").caused_by(&err)
        })?;
        Ok(Chore {
            commands: commands.iter().map(|command| tokens.expand(command)).collect(),
            env,
            cwd,
            log: self.workspaces.directory(key).setup_log(),
            limit: Some(config.setup_timeout).filter(|limit| !limit.is_zero()),
            run,
        })
    }

    pub(super) fn on_setup_printed(&mut self, key: &TaskKey, text: String) {
        let Some(at_work) = self.chores.get(key) else { return };
        at_work.printed.send_modify(|count| *count += 1);
        let output = SetupOutputEvent { text, phase: at_work.phase, asked_by: at_work.asked_by.clone() };
        // Its log has it for those who come later.
        self.announce_in_passing(key, output);
    }

    /// What the last setup printed, and goes on printing.
    pub(super) fn setup_log(&self, key: &TaskKey, follow: bool) -> Result<Stream, Failure> {
        let path = self.workspaces.directory(key).setup_log();
        if !path.exists() {
            return Err(Failure::new(format!("no setup has run in the workspace of task {}", key.task))
                .hint("`workspace.setup` in config.toml says what runs there"));
        }
        let grows = self.chores.get(key).filter(|_| follow).map(|at_work| at_work.printed.subscribe());
        self.promise(key, Promised::SetupLog { path, grows })
    }

    fn asked_by(&self, key: &TaskKey) -> Vec<String> {
        self.chores.get(key).map(|at_work| at_work.asked_by.clone()).unwrap_or_default()
    }

    fn announce_setup_end(&mut self, key: &TaskKey, phase: SetupPhase, outcome: SetupOutcome) {
        let asked_by = self.asked_by(key);
        self.announce(Some(key), None, SetupEndedEvent { outcome, phase, asked_by });
    }

    pub(super) fn on_setup_over(
        &mut self,
        key: TaskKey,
        epoch: Epoch,
        outcome: Result<Vec<String>, SetupTrouble>,
    ) {
        let skipped = self.wishes.get(&key).is_some_and(|wish| wish.mode == SetupMode::Skip);
        let (mark, ended) = match &outcome {
            Ok(_) if skipped => (Mark::Skipped, SetupOutcome::Done),
            Ok(_) => (Mark::Done, SetupOutcome::Done),
            Err(trouble) if trouble.stopped => (Mark::Pending, SetupOutcome::Stopped),
            Err(_) => (Mark::Failed, SetupOutcome::Failed),
        };
        self.mark_setup(&key, mark);
        self.rests(&key);
        tracing::info!(task = %key, outcome = ?ended, "setup over");
        self.announce_setup_end(&key, SetupPhase::Setup, ended);
        self.chores.remove(&key);
        match outcome {
            Ok(notes) => {
                self.note(&key, notes);
                self.decide(Event::SetupDone { key, epoch });
            }
            Err(SetupTrouble { failure, .. }) => {
                let error = failure.message.clone();
                self.failures.insert(key.clone(), failure);
                self.decide(Event::SetupFailed { key, epoch, error });
            }
        }
    }

    /// No command runs in the workspace any more.
    pub(super) fn rests(&mut self, key: &TaskKey) {
        if let Err(cause) = self.workspaces.change(key, |record| record.at_work = false) {
            tracing::warn!(task = %key, %cause, "that a workspace rests is not kept");
        }
    }

    /// What a daemon that was killed left running. Nothing else may begin there before it is gone.
    pub(super) async fn end_what_was_left(&mut self) {
        let left: Vec<(TaskKey, String)> = self
            .workspaces
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
            let record = self.workspaces.get(&key);
            if record.setup == Mark::Pending && !record.merging {
                chore::end_cut_off_log(&self.workspaces.directory(&key).setup_log());
            }
            self.rests(&key);
        }
    }

    /// Ports of tasks that are gone are given back.
    pub(super) fn forget_lost_workspaces(&mut self) {
        let is_lost = |key: &TaskKey| {
            let has_project = self.store.project(&key.project).is_some();
            has_project && self.store.task(key).is_none() && !self.removing.contains_key(key)
        };
        let lost: Vec<TaskKey> = self.workspaces.all().map(|(key, _)| key.clone()).filter(is_lost).collect();
        lost.iter().for_each(|key| self.workspaces.forget(key));
    }

    /// The daemon leaves: commands of setups do not outlive it, and the next start does them again.
    pub(super) async fn end_chores(&mut self) {
        let at_work: Vec<AtWork> = self.chores.drain().map(|(_, at_work)| at_work).collect();
        for chore in &at_work {
            chore.stop.send_replace(true);
        }
        let deadline = tokio::time::Instant::now() + ENDED_WITHIN;
        for chore in at_work {
            if tokio::time::timeout_at(deadline, chore.task).await.is_err() {
                tracing::warn!("a setup does not end; the next daemon will see to it");
            }
        }
    }

    /// The workspace goes, after its teardown. `discard`: whatever becomes of that.
    pub(super) fn remove_workspace(&mut self, key: TaskKey, wish: &RemovalWish, answer: Answer) {
        let (discard, caller) = (wish.discard, &wish.caller);
        let keep_ignored = self.removing.get(&key).is_some_and(|removal| removal.keep_ignored);
        let removal = RemoveOptions { discard, keep_ignored };
        let workspace = self.workspace_of(&key);
        let base = self.base_of(&key);
        let teardown = self.prepare_teardown(&key, caller);
        let run = self.workspaces.get(&key).run;
        let (stop, stopped) = watch::channel(false);
        let (desk, has_teardown) = (self.desk(&key), matches!(teardown, Ok(Some(_))));
        let task = tokio::spawn(async move {
            let torn_down = desk.tear_down(teardown, stopped).await;
            let (refusal, notes) = match torn_down {
                Err(failure) if !discard => (Some(failure), Vec::new()),
                Err(failure) => (None, vec![one_line(&failure)]),
                Ok(()) => (None, Vec::new()),
            };
            let removed = match refusal {
                Some(failure) => Err(failure),
                None => rpc::blocking(move || remove(run, workspace?, base, removal)).await,
            };
            let Desk { key, reporter } = desk;
            reporter.report(Happening::WorkspaceRemoved { key, answer, removed, notes }).await;
        });
        if has_teardown {
            self.at_work(&key, AtWork::new(SetupPhase::Teardown, stop, caller.watch.clone(), task));
        }
    }

    /// None where there is nothing to do.
    fn prepare_teardown(&mut self, key: &TaskKey, caller: &Caller) -> Result<Option<Chore>, Failure> {
        let (project, name) = self.workspace_of(key)?;
        let is_there = agency_workspace::workspace_path(&project, &name).is_dir();
        let was_set_up = self.workspaces.get(key).setup != Mark::None;
        if !is_there || (project.vcs() == Vcs::Plain && !was_set_up) {
            return Ok(None);
        }
        let config = self.settings_with(Some(&key.project), &caller.overrides)?.config.workspace;
        if config.teardown.is_empty() {
            return Ok(None);
        }
        let env = self.environment_for(key, caller);
        self.chore(key, &config.teardown, &config, env).map(Some)
    }

    /// Its teardown, if there was one, is over.
    pub(super) fn teardown_over(&mut self, key: &TaskKey, is_removed: bool) {
        if self.chores.contains_key(key) {
            let outcome = if is_removed { SetupOutcome::Done } else { SetupOutcome::Failed };
            self.announce_setup_end(key, SetupPhase::Teardown, outcome);
            self.chores.remove(key);
            self.rests(key);
        }
    }

    pub(super) fn setup_view(&self, key: &TaskKey) -> Option<agency_api::view::SetupState> {
        let runs = self.chores.get(key).is_some_and(|at_work| at_work.phase == SetupPhase::Setup);
        view::setup(self.workspaces.get(key).setup, runs)
    }
}

/// In a project's file it waits for consent.
const SETUP_KEY: Key = Key::WORKSPACE_SETUP;

/// A tree has two seconds of grace.
const ENDED_WITHIN: Duration = Duration::from_secs(5);

/// How many files that were not copied are named.
const NAMED_FILES: usize = 3;

/// Where the news of one workspace's commands go.
struct Desk {
    key: TaskKey,
    reporter: Reporter,
}

impl Desk {
    async fn furnish(
        &self,
        setup: Setup,
        stopped: watch::Receiver<bool>,
    ) -> Result<Vec<String>, SetupTrouble> {
        let (log, pieces) = Log::open(&setup.chore.log, true);
        let telling = self.pass_on(pieces);
        let outcome = furnish(setup, log, stopped).await;
        all_told(telling).await;
        outcome
    }

    async fn tear_down(
        &self,
        teardown: Result<Option<Chore>, Failure>,
        stopped: watch::Receiver<bool>,
    ) -> Result<(), Failure> {
        let Some(chore) = teardown? else { return Ok(()) };
        let (log, pieces) = Log::open(&chore.log, false);
        let telling = self.pass_on(pieces);
        let outcome = chore::run(&chore, log, stopped).await.map(drop).map_err(|(trouble, _)| trouble);
        all_told(telling).await;
        outcome.map_err(|trouble| {
            let task = self.key.task;
            let hint = format!("mend it, or remove it all the same: agency rm {task} --discard");
            trouble_told(format!("the teardown of task {task} failed"), trouble, hint)
        })
    }

    fn pass_on(&self, mut pieces: mpsc::Receiver<String>) -> JoinHandle<()> {
        let (key, reporter) = (self.key.clone(), self.reporter.clone());
        tokio::spawn(async move {
            while let Some(text) = pieces.recv().await {
                reporter.report(Happening::SetupPrinted { key: key.clone(), text }).await;
            }
        })
    }
}

/// The end is told after all that was printed.
async fn all_told(telling: JoinHandle<()>) {
    if let Err(cause) = telling.await {
        tracing::warn!(%cause, "what a setup printed is not told to its end");
    }
}

async fn furnish(
    setup: Setup,
    mut log: Log,
    stopped: watch::Receiver<bool>,
) -> Result<Vec<String>, SetupTrouble> {
    let Setup { project, name, patterns, chore, hint } = setup;
    let told = |err: CopyError| SetupTrouble {
        stopped: matches!(err, CopyError::Stopped),
        failure: Failure::from_error(&err, err.hint()),
    };
    let stop = stopped.clone();
    let copying = tokio::task::spawn_blocking(move || {
        agency_workspace::copy_ignored(&project, &name, &patterns, || !*stop.borrow()).map_err(told)
    });
    let copied = copying.await.unwrap_or_else(|cause| {
        let failure = Failure::new("the copying of ignored files failed badly").caused_by(&cause);
        Err(SetupTrouble { failure, stopped: false })
    })?;
    if copied.files > 0 {
        let files = if copied.files == 1 { "file" } else { "files" };
        log.say(&format!("copied {} ignored {files}", copied.files)).await;
    }
    let notes = not_copied(&copied.left_out);
    match chore::run(&chore, log, stopped).await {
        Ok(_) => Ok(notes),
        Err((trouble, _)) => {
            let stopped = trouble.stopped;
            let failure = trouble_told("the setup of its workspace failed".to_owned(), trouble, hint);
            Err(SetupTrouble { failure, stopped })
        }
    }
}

fn not_copied(left_out: &[String]) -> Vec<String> {
    let named = left_out.iter().take(NAMED_FILES).map(|file| format!("not copied: {file}"));
    let more = left_out.len().saturating_sub(NAMED_FILES);
    named.chain((more > 0).then(|| format!("not copied: {more} files more"))).collect()
}

fn trouble_told(message: String, trouble: Trouble, hint: String) -> Failure {
    let failure = Failure::new(message).because(trouble.why);
    let failure = match trouble.last_lines.is_empty() {
        true => failure,
        false => failure.because(format!("its last lines:\n  {}", trouble.last_lines.join("\n  "))),
    };
    failure.hint(hint)
}

/// Blocking. What setup commands left running goes with the workspace.
fn remove(
    run: Option<String>,
    (project, name): (Project, WorkspaceName),
    base: Option<String>,
    removal: RemoveOptions,
) -> Result<(agency_workspace::Removed, u64), Failure> {
    if let Some(run) = run {
        end_tree(&run);
    }
    let removed = agency_workspace::remove(&project, &name, base.as_deref(), removal)
        .map_err(|err| super::lifecycle::removal_failure(&err))?;
    let bytes = removed.trash_ref.as_deref().map_or(0, |reference| kept_bytes(&project, reference));
    Ok((removed, bytes))
}

/// Only to be told to people: one that cannot be found out is left out.
fn kept_bytes(project: &Project, reference: &str) -> u64 {
    let entries = agency_workspace::trash_entries(project).unwrap_or_default();
    let entry = entries.iter().find(|entry| entry.reference == reference);
    entry.and_then(|entry| agency_workspace::trash_entry_bytes(project, entry).ok()).unwrap_or(0)
}

fn one_line(failure: &Failure) -> String {
    let words = std::iter::once(&failure.message).chain(&failure.causes);
    words.map(|words| words.replace('\n', " ")).collect::<Vec<_>>().join(": ")
}

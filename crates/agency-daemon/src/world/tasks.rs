//! Finds tasks, plans their starts, and shows them.

use std::path::Path;

use agency_api::config::Overrides;
use agency_api::method::Caller;
use agency_api::{Failure, FailureCode, view};
use agency_core::agent::{Agent, Driver};
use agency_core::config::Config;
use agency_core::ids::{ProjectId, TaskId, TaskKey};
use agency_core::rail::WorkspaceStatus;
use agency_core::slug::ResolveError;
use agency_core::task_status::TaskStatus;
use agency_run::environment;
use agency_run::plan::{self, LaunchPlan, PlannedTask, StartOptions};
use agency_store::settings::Settings;
use agency_store::store::StoreError;
use agency_store::{clock, trust};
use agency_workspace::{Project, WorkspaceName};

use super::{LiveRun, World};
use crate::loop_event::NamedTask;

impl World {
    /// Makes the project known, and reads task files that were edited by hand.
    pub(super) fn open_project(&mut self, project: Project) -> Result<ProjectId, Failure> {
        let (id, changed) = self.store.open(project).map_err(store_failure)?;
        self.see_changes(&id, changed);
        Ok(id)
    }

    /// Tells the supervisor which task files were edited by hand.
    pub(super) fn see_changes(&mut self, project: &ProjectId, changed: Vec<TaskId>) {
        for task in changed {
            let key = TaskKey { project: project.clone(), task };
            self.look_elsewhere(&key);
            self.see_again(&key);
        }
    }

    pub(super) fn find(&mut self, task: NamedTask) -> Result<TaskKey, Failure> {
        let project = self.open_project(task.project)?;
        self.find_in(&project, &task.name)
    }

    /// The task of that name in a project that was just opened.
    pub(super) fn find_in(&self, project: &ProjectId, name: &str) -> Result<TaskKey, Failure> {
        self.store.resolve(project, name).map_err(|err| {
            let code = match &err {
                ResolveError::Unknown { .. } => FailureCode::TaskNotFound,
                ResolveError::Ambiguous { .. } => FailureCode::AmbiguousName,
            };
            Failure::new(err.to_string()).code(code).hint(err.hint())
        })
    }

    pub(super) fn settings(&self, project: Option<&ProjectId>) -> Result<Settings, Failure> {
        self.settings_with(project, &Overrides::default())
    }

    /// The settings with the overrides of one call.
    pub(super) fn settings_with(
        &self,
        project: Option<&ProjectId>,
        overrides: &Overrides,
    ) -> Result<Settings, Failure> {
        let root = project.and_then(|id| Some((id, self.store.project(id)?.root())));
        self.configuration.files.load(root, &self.configuration.trust, overrides)
    }

    pub(super) fn workspace_of(&self, key: &TaskKey) -> Result<(Project, WorkspaceName), Failure> {
        let gone = || no_task(key);
        let known = self.store.project(&key.project).ok_or_else(gone)?;
        let task = known.tasks.get(&key.task).ok_or_else(gone)?;
        let name = known.workspace_name(&task.name).map_err(|err| Failure::new(err.to_string()))?;
        Ok((known.project.clone(), name))
    }

    /// Plans a start, and finds everything that would make it fail, before anything is made.
    pub(super) fn plan_start(
        &self,
        key: &TaskKey,
        caller: &Caller,
        wish: StartOptions,
    ) -> Result<LaunchPlan, Failure> {
        let file = self.store.file(key).map_err(store_failure)?;
        let fields = file.fields();
        let settings = self.settings_with(Some(&key.project), &caller.overrides)?;
        let env = environment::from_caller(&caller.env);
        let chosen = plan::choose_agent(&settings.config, fields.agent.as_deref(), &env);
        let (agent, _) = chosen.map_err(|failure| settings.about_trust(failure))?;
        if let Some(command) = &fields.command {
            self.require_consent(key, command)?;
        }
        let root = self.store.project(&key.project).map_or(Path::new("/"), |known| known.root());
        let task = PlannedTask {
            driver: wish.driver.or(fields.driver),
            command: fields.command.as_deref(),
            session_known: fields.session_id.is_some() && !wish.fresh,
            directory: root,
        };
        let planned = plan::plan(&settings.config, agent, task, caller)?;
        if let Some(driver) = wish.driver.filter(|driver| *driver != fields.driver.unwrap_or(agent.driver)) {
            self.may_switch(key, agent, driver, wish.fresh)?;
        }
        Ok(LaunchPlan { fresh: wish.fresh, ..planned })
    }

    /// Checks whether another driver can resume the session of the last one.
    fn may_switch(&self, key: &TaskKey, agent: &Agent, driver: Driver, fresh: bool) -> Result<(), Failure> {
        let file = self.store.file(key).map_err(store_failure)?;
        let refused = || {
            Failure::new(format!("task {} cannot go on with the {driver} driver", key.task))
                .code(FailureCode::Unsupported)
        };
        if !self.runs.history.contains_key(key) {
            return Ok(());
        }
        if file.fields().command.is_some() {
            return Err(refused()
                .because("it runs a command of its own, which was made for another one")
                .hint(format!("agency new SLUG --driver {driver} -- COMMAND")));
        }
        if fresh {
            return Ok(());
        }
        agent.check_resume(driver).map_err(|err| refused().because(err.to_string()).hint(err.hint()))?;
        if driver == Driver::Acp && self.takes_up_no_session(&agent.name) {
            return Err(refused()
                .because(format!("{} takes up no session over ACP, it says", agent.display_name))
                .hint("pass --fresh to begin a new session"));
        }
        if file.fields().session_id.is_none() {
            return Err(refused()
                .because(format!("{} has not said yet which session it is in", agent.display_name))
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

    pub(super) fn view(&self, key: &TaskKey) -> Result<view::Task, Failure> {
        let config = self.settings(Some(&key.project)).map(|settings| settings.config).unwrap_or_default();
        self.view_with(key, &config)
    }

    pub(super) fn view_with(&self, key: &TaskKey, config: &Config) -> Result<view::Task, Failure> {
        let gone = || no_task(key);
        let known = self.store.project(&key.project).ok_or_else(gone)?;
        let task = known.tasks.get(&key.task).ok_or_else(gone)?;
        let live = self.runs.live.values().find(|live| live.key == *key);
        let last_run = self.runs.history.get(key).and_then(|runs| runs.last());
        let fields = task.content.as_ref().map(|file| file.fields().clone()).unwrap_or_default();
        let state = live.map(|live| live.standing.state);
        let last_exit = fields.last_exit.as_ref().map(|exit| exit.code);
        let status = self.supervisor.status(key).unwrap_or(fields.status);
        let workspace = known.workspace_name(&task.name).ok();
        let worktree = workspace.as_ref().map(|name| agency_workspace::workspace_path(&known.project, name));
        let conflicts = workspace.as_ref().map(|name| self.conflicts_of(key, name)).unwrap_or_default();
        let (ports, setup) = (self.workspaces.records.get(key).ports(), self.setup_view(key));
        // In a plain directory the directory of a draft exists, but it is no workspace yet. A draft whose setup failed
        // has a workspace.
        let has_workspace = status != TaskStatus::Draft || setup.is_some();
        let agent = fields.agent.clone().or(last_run.map(|meta| meta.agent.clone())).unwrap_or_default();
        Ok(view::Task {
            id: key.task.0,
            slug: task.name.slug.as_str().to_string(),
            project: known.root().into(),
            status: agency_run::view::status(status),
            state: live.map(|live| {
                agency_run::view::state(live.standing.state, live.standing.since.at, clock::now())
            }),
            evidence: live.map(|live| agency_run::view::evidence(&live.standing.evidence)),
            seen: live.is_some_and(LiveRun::is_seen),
            queued: self.queue.of(key).count() as u64,
            workspace_status: agency_run::view::workspace_status(WorkspaceStatus::derive(
                status, state, last_exit,
            )),
            agent_name: shown_agent(config, &agent, fields.command.as_deref()),
            agent,
            driver: fields.driver.unwrap_or_default().to_string(),
            labels: fields.labels,
            parent: fields.parent.map(|parent| parent.0),
            base_branch: fields.base_branch,
            branch: workspace
                .filter(|_| known.project.vcs() == agency_workspace::Vcs::Git)
                .map(|name| name.branch()),
            worktree: worktree.filter(|path| has_workspace && path.is_dir()).map(Into::into),
            port: ports.map(|ports| ports.first),
            ports: ports.map_or(0, |ports| ports.count),
            setup,
            conflicts,
            file: task.path.clone().into(),
            age_seconds: fields.created_at.as_deref().and_then(clock::age).map(|age| age.as_secs()),
            created_at: fields.created_at,
            last_exit: last_exit.map(|code| code.to_string()),
            run: live.map(|live| live.meta.run.0.clone()),
            viewers: live.map_or(0, |live| live.viewers as u64),
            elsewhere: self.runs.elsewhere.get(key).cloned(),
            vanished: self.workspaces.records.get(key).vanished,
            merge_cut_off: self.workspaces.records.get(key).merge_cut_off,
            broken: task.content.as_ref().err().cloned(),
        })
    }
}

pub(super) fn no_task(key: &TaskKey) -> Failure {
    Failure::new(format!("there is no task {}", key.task)).code(FailureCode::TaskNotFound)
}

pub(super) fn store_failure(error: StoreError) -> Failure {
    store_failure_of(&error)
}

pub(super) fn store_failure_of(error: &StoreError) -> Failure {
    let failure = Failure::new(error.to_string()).caused_by_source(error);
    match error {
        StoreError::Broken { .. } | StoreError::Content { .. } => {
            failure.hint("mend the front matter of that file")
        }
        StoreError::OtherVcs { .. } => failure.hint("leave --vcs out, or remove those tasks first"),
        StoreError::Write { path, source } | StoreError::Read { path, source } => {
            hint_for_io(failure, path, source)
        }
        StoreError::IdTaken { .. } => failure.hint("give that file another id, or remove that task first"),
        StoreError::NoTask(_) => failure,
    }
}

/// Adds a hint for errors that the user can fix.
fn hint_for_io(failure: Failure, path: &Path, error: &std::io::Error) -> Failure {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            let in_the_way = path.ancestors().find(|path| path.is_file()).unwrap_or(path);
            failure.hint(format!("a directory is needed there: move {} away", in_the_way.display()))
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            failure.hint(format!("make {} writable, or use Agency where you may write", path.display()))
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => failure.hint("make room on that disk"),
        _ => failure,
    }
}

/// The name to show: the agent's, or the program of a task that runs a command of its own.
fn shown_agent(config: &Config, agent: &str, command: Option<&[String]>) -> String {
    let program = command.and_then(<[String]>::first).and_then(|program| Path::new(program).file_name());
    match (program, config.agents.find(agent)) {
        (Some(program), _) => program.to_string_lossy().into_owned(),
        (None, Ok(found)) => found.display_name.clone(),
        (None, Err(_)) => agent.to_string(),
    }
}

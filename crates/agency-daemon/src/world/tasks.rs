//! Finds tasks, lists them, and shows them to callers.

use std::path::Path;

use agency_api::config::Overrides;
use agency_api::method::{self, Method, TaskListParams, TaskListing};
use agency_api::{Failure, FailureCode, view};
use agency_core::agent::{Driver, canonical_name};
use agency_core::agent_state::AgentState;
use agency_core::config::Config;
use agency_core::headline::{Headline, Urgency};
use agency_core::ids::{ProjectId, TaskId, TaskKey};
use agency_core::plain;
use agency_core::rail::WorkspaceStatus;
use agency_core::supervisor::{StreamState, way_to_agent};
use agency_core::task_status::TaskStatus;
use agency_server::{Argument, Reply};
use agency_store::clock;
use agency_store::settings::Settings;
use agency_store::store::StoreError;
use agency_workspace::{Project, WorkspaceName};

use super::argument::open_project;
use super::headlines::last_run_exit;
use super::loop_event::{LoopEvent, LoopRequest, OpenedProject};
use super::router::Router;
use super::{LiveRun, World};

/// Characters of a title that a list can show.
const LONGEST_TITLE: usize = 200;

pub(super) fn register(router: &mut Router) {
    router.on_reply(method::TaskList, World::list);
    router.on(method::TaskGet, World::get);
}

/// The project whose tasks are meant; all projects if it is `None`.
struct ListedProject(Option<OpenedProject>);

impl Argument<World, TaskListParams> for ListedProject {
    type Prepared = ListedProject;

    async fn prepare(params: TaskListParams) -> Result<ListedProject, Failure> {
        match params.cwd {
            Some(cwd) => Ok(ListedProject(Some(open_project(cwd).await?))),
            None => Ok(ListedProject(None)),
        }
    }

    fn resolve(_world: &mut World, project: ListedProject) -> Result<ListedProject, Failure> {
        Ok(project)
    }
}

impl World {
    fn get(&mut self, key: TaskKey) -> Result<view::Task, Failure> {
        let config = self.settings(Some(&key.project)).map(|settings| settings.config).unwrap_or_default();
        self.view_where_it_is(&key, &config)
    }

    fn list(&mut self, ListedProject(project): ListedProject, reply: Reply<TaskListing>) {
        if !self.is_booting() {
            let opened = project.map(|project| self.open_project(project)).transpose();
            return reply.send(opened.and_then(|project| self.listing(project)));
        }
        let known = project.as_ref().map(|opened| self.store.id_of(&opened.project));
        match known {
            None => reply.send(self.listing(None)),
            Some(Some(id)) => reply.send(self.listing(Some(id))),
            // To open a project, the daemon must know all runs.
            Some(None) => {
                let request = LoopRequest::new(method::TaskList::NAME, move |world| {
                    world.list(ListedProject(project), reply);
                });
                self.hold(LoopEvent::Request(request));
            }
        }
    }

    fn listing(&mut self, project: Option<ProjectId>) -> Result<TaskListing, Failure> {
        // The caller has just opened the project, and a daemon that boots has just read all files.
        let is_fresh = project.is_some() || self.is_booting();
        let projects: Vec<ProjectId> = match project {
            Some(project) => vec![project],
            None => self.store.listed_projects().map(|(id, _)| id.clone()).collect(),
        };
        if !self.is_booting() {
            self.plan_conflict_scans(&projects);
            // The kernel does not report every move: the user may have moved a directory far above.
            self.check_workspaces();
        }
        self.listing_of(&projects, is_fresh)
    }

    /// The tasks of these projects. `is_fresh`: their files have just been read.
    pub(super) fn listing_of(
        &mut self,
        projects: &[ProjectId],
        is_fresh: bool,
    ) -> Result<TaskListing, Failure> {
        let (mut tasks, mut warnings) = (Vec::new(), Vec::new());
        for id in projects {
            let refreshed = if is_fresh { Ok(Vec::new()) } else { self.store.refresh(id) };
            match refreshed.map_err(store_failure) {
                Ok(changed) => self.report_edited_tasks(id, changed),
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
            let keys = ids.map(|task| TaskKey { project: id.clone(), task: *task });
            let is_gone = self.is_project_gone(id);
            for key in keys.filter(|key| !is_gone || self.supervisor.live_run(key).is_some()) {
                tasks.push(self.view_where_it_is(&key, &config)?);
            }
        }
        let unwritten = self.runs.live.values().filter_map(|live| Some((live, live.journal_error.as_ref()?)));
        warnings.extend(unwritten.map(|(live, cause)| {
            format!(
                "the output of task {} is not kept: its journal cannot be written: {cause}",
                live.meta.name()
            )
        }));
        let unwritten = self.store.unwritten_records();
        warnings.extend(unwritten.iter().map(|path| format!("{} cannot be written", path.display())));
        warnings.extend(self.context.rule_book.problems());
        warnings.extend(self.repair_warning());
        warnings.dedup();
        let marks = self.settings(None).map(|settings| settings.config.ui.marks).unwrap_or_default();
        Ok(TaskListing { tasks, orphans: self.orphan_views(), warnings, marks: marks.as_str().to_owned() })
    }

    /// Says that this daemon found damaged or missing files of its own.
    fn repair_warning(&self) -> Option<String> {
        match self.context.problems.len() {
            0 => None,
            1 => Some(format!("{} (also in `agency doctor`)", self.context.problems[0])),
            more => {
                Some(format!("{more} files of Agency were damaged or missing: `agency doctor` lists them"))
            }
        }
    }

    /// The live run of a task. The failure says how to get one.
    pub(super) fn live_run(&self, key: &TaskKey) -> Result<&LiveRun, Failure> {
        let name = self.store.task(key).map_or_else(|| key.task.to_string(), |task| task.name.to_string());
        if let Some(host) = self.runs.elsewhere.get(key) {
            return Err(Failure::new(format!("task {name} runs on {host}"))
                .code(FailureCode::RunningElsewhere)
                .hint("use `agency` there"));
        }
        let live = self.supervisor.live_run(key).and_then(|run| self.runs.live.get(run));
        live.ok_or_else(|| {
            let status = self.supervisor.status(key).unwrap_or(TaskStatus::Stopped);
            Failure::new(format!("task {name} has no live agent: it is {status}"))
                .code(FailureCode::NotRunning)
                .hint(way_to_agent(key.task, status))
        })
    }

    /// Makes the project known, and reads task files that were edited by hand.
    pub(super) fn open_project(&mut self, opened: OpenedProject) -> Result<ProjectId, Failure> {
        let OpenedProject { project, taken_back } = opened;
        let root = project.root().to_path_buf();
        let (id, changed) = self.store.open(project).map_err(store_failure)?;
        // The user uses it again.
        self.store.set_forgotten(&root, false).map_err(store_failure)?;
        self.follow_move(&id);
        self.report_edited_tasks(&id, changed);
        self.take_merges_back(&id, &taken_back);
        self.return_orphans(&id);
        Ok(id)
    }

    /// Tells the supervisor which task files were edited by hand.
    pub(super) fn report_edited_tasks(&mut self, project: &ProjectId, changed: Vec<TaskId>) {
        for task in changed {
            let key = TaskKey { project: project.clone(), task };
            self.check_other_hosts(&key);
            self.report_task_to_supervisor(&key);
        }
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
        let name = known
            .workspace_name(&task.name)
            .map_err(|err| Failure::new(err.to_string()).code(FailureCode::InvalidArgument))?;
        Ok((known.project.clone(), name))
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
        let unadopted = self.runs.unadopted.as_ref().and_then(|runs| runs.get(key));
        let standing = live.map(|live| &live.standing).or(unadopted.map(|run| &run.standing));
        let last_run = self.runs.history.get(key).and_then(|runs| runs.last());
        let fields = task.last_content().map(|file| file.fields().clone()).unwrap_or_default();
        let state = standing.map(|standing| standing.state);
        let last_exit = fields.last_exit.as_ref().map(last_run_exit);
        let ended_at = fields.last_exit.as_ref().and_then(|exit| exit.at.as_deref());
        let status = self.supervisor.status(key).unwrap_or(fields.status);
        let facts = self.task_facts(key, status, &fields);
        let workspace = known.workspace_name(&task.name).ok();
        let worktree = workspace.as_ref().map(|name| agency_workspace::workspace_path(&known.project, name));
        let conflicts = workspace.as_ref().map(|name| self.conflicts_of(key, name)).unwrap_or_default();
        let (ports, setup) = (self.workspaces.records.get(key).ports(), self.setup_view(key));
        // In a plain directory the directory of a draft exists, but it is no workspace yet. A draft whose setup failed
        // has a workspace.
        let has_workspace = status != TaskStatus::Draft || setup.is_some();
        let agent = fields.agent.clone().or(last_run.map(|meta| meta.agent.clone())).unwrap_or_default();
        let agent = canonical_name(&agent).to_owned();
        Ok(view::Task {
            id: key.task.0,
            slug: task.name.slug.as_str().to_string(),
            title: task.last_content().and_then(|file| title(file.body())),
            project: known.root().into(),
            headline: Headline::of_task(&facts).words().to_owned(),
            urgency: agency_run::view::urgency(Urgency::of_task(&facts)),
            waiting_for: state.and_then(AgentState::waiting).map(|(_, why)| agency_run::view::why(why)),
            unread: facts.unread,
            status: agency_run::view::status(status),
            state: standing
                .map(|standing| agency_run::view::state(standing.state, standing.since.at, clock::now())),
            evidence: standing.map(|standing| agency_run::view::evidence(&standing.evidence)),
            stream_state: (fields.driver == Some(Driver::StreamJson))
                .then(|| stream_state(self.supervisor.stream_state(key, last_run.is_some()))),
            mode_warning: live.and_then(|live| live.mode_warning.clone()),
            seen: live.is_some_and(LiveRun::is_seen),
            looked_at: self.workspaces.records.get(key).looked_at,
            pinned: self.workspaces.records.get(key).pinned,
            snoozed_until: self.snoozed_until(key, fields.last_exit.as_ref()),
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
            last_exit: last_exit.map(|exit| exit.code.to_string()),
            asked_to_stop: last_exit.is_some_and(|exit| exit.asked),
            ended_seconds: ended_at.and_then(clock::age).map(|age| age.as_secs()),
            run: live.map(|live| &live.meta.run).or(unadopted.map(|run| &run.run)).map(|run| run.0.clone()),
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
    let failure = Failure::new(error.to_string()).code(store_code(error)).caused_by_source(error);
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

fn store_code(error: &StoreError) -> FailureCode {
    match error {
        StoreError::Write { .. } | StoreError::Read { .. } => FailureCode::IoError,
        StoreError::Content { .. } | StoreError::Broken { .. } => FailureCode::TaskFileBroken,
        StoreError::NoTask(_) => FailureCode::TaskNotFound,
        StoreError::IdTaken { .. } => FailureCode::AlreadyExists,
        StoreError::OtherVcs { .. } => FailureCode::Unsupported,
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

/// The first line of a text that says something.
fn title(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(plain::one_line(line, LONGEST_TITLE))
}

fn stream_state(state: StreamState) -> view::StreamState {
    match state {
        StreamState::Idle => view::StreamState::Idle,
        StreamState::Running => view::StreamState::Running,
        StreamState::Error => view::StreamState::Error,
        StreamState::Stopped => view::StreamState::Stopped,
    }
}

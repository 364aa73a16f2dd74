//! The boot of a daemon: it finds projects, tasks, live keepers, and the remains of dead ones.
//!
//! Nothing is spawned here. The daemon adopts a live keeper. A task whose status claims a process that does not exist
//! becomes stopped. A process that belongs to no task is an orphan. `agency_run::run_search` says what lives: files that
//! cannot be read hide no agent.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use agency_api::config::Overrides;
use agency_api::method::{self, Method};
use agency_api::paths::RunDir;
use agency_api::view::OrphanKind;
use agency_core::agent::canonical_name;
use agency_core::evidence::DetectedState;
use agency_core::ids::{RunId, TaskId, TaskKey};
use agency_core::supervisor::{Event, FoundRun, FoundTask, Limits, Supervisor};
use agency_core::task_status::TaskStatus;
use agency_run::follow;
use agency_run::handle::RunHandle;
use agency_run::keeper_link::KeeperLink;
use agency_run::report::RunReporter;
use agency_run::run_context::RunContext;
use agency_run::run_meta::RunMeta;
use agency_run::run_search::{self, FoundRun as SearchedRun, FoundRuns, Holder, UnexplainedRun};
use agency_search::Index;
use agency_store::clock;
use agency_store::event_log::EventLog;
use agency_store::project_record::ProjectHint;
use agency_store::prompt_queue::PromptQueue;
use agency_store::settings::SettingsFiles;
use agency_store::store::Store;
use agency_store::trust::TrustBook;
use agency_store::workspace_record::WorkspaceRecords;
use agency_work::directory_watch::DirectoryWatch;
use tokio::task::JoinHandle;

use super::connections::ConnectionSender;
use super::loop_event::{Inbox, LoopEvent};
use super::runs::{is_conversation, key_of};
use super::{
    Configuration, DaemonContext, Events, Lifetime, OrphanRun, Requests, Runs, Starts, Workspaces, World,
};

/// A keeper answers at once. One that is stopped must not delay the others.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// A run that the daemon has found and does not follow yet.
pub(super) struct UnadoptedRun {
    pub(super) run: RunId,
    /// The state that the daemon before this one logged last.
    pub(super) standing: DetectedState,
}

/// The remains of one run.
enum Remains {
    Kept(RunHandle),
    /// The agent's process lives, its keeper does not.
    Process(agency_api::ProcessIdentity),
    /// A keeper holds the lock of the run. The daemon can neither reach nor see it.
    Unreachable,
    /// A live session on a connection. Its project is out of reach, so no task claims it yet.
    UnclaimedSession,
    Elsewhere,
    Nothing,
}

/// The search for what is left of one run.
enum Search {
    Done(Box<Remains>),
    Running(JoinHandle<Remains>),
}

impl World {
    /// Finds projects, tasks and runs. The daemon can list them from here on.
    pub async fn find_all(mut context: DaemonContext) -> (World, FoundRuns) {
        let records = WorkspaceRecords::load(&context.state);
        let mut found = search_runs(&context, &records).await;
        let hints: Vec<ProjectHint> = found.runs.iter().map(project_hint).collect();
        let (store, spoiled) = Store::load(&context.state, &hints);
        let epoch_problem = context.epoch.problem().map(str::to_owned);
        context.problems.extend(epoch_problem.into_iter().chain(found.problems.drain(..)).chain(spoiled));
        let trust = TrustBook::load(&context.state).unwrap_or_else(|cause| {
            tracing::warn!(%cause, "cannot read what the user trusts; every project asks again");
            TrustBook::default()
        });
        let event_log = EventLog::of(&context.state);
        let last_event = event_log.last_seq().unwrap_or_else(|cause| {
            tracing::warn!(%cause, "cannot read the event log; the numbers of events start again");
            0
        });
        let mut world = World {
            supervisor: Supervisor::new(Limits::default()),
            store,
            configuration: Configuration {
                files: SettingsFiles::default(),
                trust,
                approval_rules: HashMap::new(),
                screen_rules: context.rule_book.rules(),
            },
            runs: Runs::default(),
            starts: Starts::default(),
            workspaces: Workspaces {
                records,
                watch: DirectoryWatch::begin(context.reporter.directory_changes()),
                conflicts: super::conflicts::ConflictScans::default(),
                places: super::missing_workspaces::Places::default(),
                merged_at: HashMap::new(),
            },
            operations: HashMap::new(),
            connections: BTreeMap::new(),
            queue: PromptQueue::load(&context.state),
            index: Index::open(&context.state),
            notices: super::notices::Notices::default(),
            events: Events { last: last_event, log: event_log },
            requests: Requests::default(),
            lifetime: Lifetime {
                born: clock::now(),
                held: Some(Vec::new()),
                quitting: false,
                ending_orphans: false,
                ending_shells: false,
                leaving: false,
            },
            context,
        };
        world.refresh_limits(None, &Overrides::default());
        world.end_commands_left_running().await;
        world.settle_cut_off().await;
        world.forget_lost_workspaces();
        world.complete_metas(&mut found);
        (world, found)
    }

    /// Follows the runs that were found. To fold their journals may take seconds, so the daemon lists tasks meanwhile;
    /// everything else waits.
    pub async fn boot(&mut self, found: FoundRuns, inbox: &mut Inbox) {
        self.runs.unadopted = self.last_known_runs(&found);
        let sessions = self.adopt_connections(&found, inbox).await;
        self.adopt_runs(found, &sessions, inbox).await;
        self.runs.unadopted = None;
        self.report_tasks_to_supervisor();
        self.settle_integrations().await;
        self.check_workspaces();
        // Earlier daemons have notified the user of everything up to now.
        self.notices.notifier.mark_all_known();
        self.deliver_queued_texts();
        self.index_all_tasks();
        self.plan_first_scans();
        for event in self.lifetime.held.take().into_iter().flatten() {
            self.handle(event);
        }
    }

    pub(super) fn is_booting(&self) -> bool {
        self.lifetime.held.is_some()
    }

    /// Keeps an event until the daemon has booted.
    pub(super) fn hold(&mut self, event: LoopEvent) {
        self.lifetime.held.get_or_insert_default().push(event);
    }

    /// Waits for a part of the boot, and lists tasks meanwhile.
    pub(super) async fn list_during<T>(&mut self, inbox: &mut Inbox, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                Some(event) = inbox.recv() => match event {
                    LoopEvent::Request(request)
                        if request.method() == method::TaskList::NAME && self.runs.unadopted.is_some() =>
                    {
                        request.handle(self);
                    }
                    event => self.hold(event),
                },
            }
        }
    }

    /// The last known states of all live runs. `None` if a list that is made now might be wrong: one of them may be an orphan
    /// or on another host, or its agent has ended since.
    fn last_known_runs(&self, found: &FoundRuns) -> Option<HashMap<TaskKey, UnadoptedRun>> {
        let mut known = HashMap::new();
        let has_connection = |name| found.keepers.iter().any(|keeper| keeper.name == name);
        for run in &found.runs {
            let SearchedRun { dir, meta, holder } = run;
            if meta.shell.is_some() {
                continue;
            }
            if meta.host != self.context.state.host() || matches!(holder, Holder::Process(_)) {
                return None;
            }
            if !run.lives() {
                continue;
            }
            let has_agent = match meta.connection_name() {
                Some(name) => has_connection(name),
                None => run.agent_lives(),
            };
            if !has_agent {
                return None;
            }
            let key = key_of(meta);
            self.store.task(&key).filter(|task| task.name.slug.as_str() == meta.slug)?;
            let run = UnadoptedRun { run: meta.run.clone(), standing: agency_run::last_known_state(dir) };
            if known.insert(key, run).is_some() {
                return None;
            }
        }
        // A task that claims to run and has no run becomes stopped, and a draft with a run becomes running.
        let is_truthful = |key: &TaskKey| {
            let status = self.store.last_content(key).map(|file| file.fields().status);
            status.is_some_and(|status| match known.contains_key(key) {
                true => !matches!(status, TaskStatus::Draft | TaskStatus::Stopped),
                false => !status.claims_a_process(),
            })
        };
        let mut keys = self.store.projects().flat_map(|(id, project)| {
            project.tasks.keys().map(|task| TaskKey { project: id.clone(), task: *task })
        });
        (found.unexplained.is_empty() && keys.all(|key| is_truthful(&key))).then_some(known)
    }

    /// A run whose file was lost may lack the agent and the driver. Its task knows them. A run of an earlier version may
    /// name its agent by an alias.
    fn complete_metas(&self, found: &mut FoundRuns) {
        let agents = found.runs.iter_mut().map(|run| &mut run.meta).filter(|meta| meta.shell.is_none());
        for meta in agents {
            meta.agent = canonical_name(&meta.agent).to_owned();
            let Some(fields) = self.store.last_content(&key_of(meta)).map(|file| file.fields()) else {
                continue;
            };
            if meta.agent.is_empty() {
                meta.agent = canonical_name(fields.agent.as_deref().unwrap_or_default()).to_owned();
                meta.base_branch = fields.base_branch.clone();
            }
            if meta.driver.is_empty() {
                meta.driver = fields.driver.unwrap_or_default().to_string();
            }
        }
    }

    async fn adopt_runs(&mut self, found: FoundRuns, sessions: &HashSet<RunId>, inbox: &mut Inbox) {
        let metas = found.runs.iter().map(|run| run.meta.clone());
        let talks: Vec<RunMeta> = metas.filter(is_conversation).collect();
        let searches: Vec<_> = found
            .runs
            .into_iter()
            .map(|run| {
                let (dir, meta, holder) = (run.dir, run.meta, run.holder);
                let elsewhere = meta.host != self.context.state.host();
                if !elsewhere && holder == Holder::Nothing && meta.acp.is_none() {
                    return (meta, Search::Done(Box::new(Remains::Nothing)));
                }
                if sessions.contains(&meta.run) && self.is_out_of_reach(&key_of(&meta)) {
                    return (meta, Search::Done(Box::new(Remains::UnclaimedSession)));
                }
                let mut context = self.context_of(&meta);
                context.before = self.conversations_before(&talks, &meta);
                let report = RunReporter { sink: self.context.reporter.sink(), run: meta.run.clone() };
                let commands = self.commands_of_connection(&meta);
                let search = tokio::spawn(async move {
                    match (elsewhere, commands) {
                        (true, _) => elsewhere_remains(&dir),
                        (false, Some(commands)) => adopt_session(commands, context, report).await,
                        (false, None) if context.is_session => Remains::Nothing,
                        (false, None) => find_remains(holder, context, report).await,
                    }
                });
                (meta, Search::Running(search))
            })
            .collect();
        for (meta, search) in searches {
            let found = match search {
                Search::Done(remains) => Ok(*remains),
                Search::Running(search) => self.list_during(inbox, search).await,
            };
            match found {
                Ok(remains) => self.assign_run(meta, remains),
                Err(cause) => tracing::error!(%cause, "cannot find out what is left of a run"),
            }
        }
        for unexplained in found.unexplained {
            self.add_unexplained(unexplained);
        }
    }

    /// Adds a run to its task, or to the orphans.
    fn assign_run(&mut self, meta: RunMeta, remains: Remains) {
        let key = key_of(&meta);
        let owned = self.store.task(&key).is_some_and(|task| task.name.slug.as_str() == meta.slug);
        if meta.shell.is_some() {
            return self.assign_shell(key, owned, meta, remains);
        }
        let taken = self.runs.live.values().any(|live| live.key == key);
        if owned {
            self.runs.history.entry(key.clone()).or_default().push(meta.clone());
        }
        match remains {
            Remains::Kept(handle) if owned && !taken => {
                self.register(key, meta, handle);
            }
            Remains::Kept(handle) => self.add_found_orphan(meta, OrphanKind::Keeper, Some(handle.keeper)),
            Remains::Process(process) => self.add_found_orphan(meta, OrphanKind::Process, Some(process)),
            Remains::Unreachable | Remains::UnclaimedSession => {
                self.add_found_orphan(meta, OrphanKind::Keeper, None)
            }
            Remains::Elsewhere if owned => {
                self.runs.elsewhere.insert(key, meta.host_name);
            }
            Remains::Elsewhere | Remains::Nothing => {}
        }
    }

    /// Adds a terminal beside an agent to its task, or to the orphans.
    fn assign_shell(&mut self, key: TaskKey, owned: bool, meta: RunMeta, remains: Remains) {
        match remains {
            Remains::Kept(handle) if owned => self.register_shell(key, meta, handle),
            Remains::Kept(handle) => self.add_found_orphan(meta, OrphanKind::Keeper, Some(handle.keeper)),
            Remains::Process(process) => self.add_found_orphan(meta, OrphanKind::Process, Some(process)),
            Remains::Unreachable | Remains::UnclaimedSession => {
                self.add_found_orphan(meta, OrphanKind::Keeper, None)
            }
            Remains::Elsewhere | Remains::Nothing if owned => self.runs.shells.add_past(key, meta),
            Remains::Elsewhere | Remains::Nothing => {}
        }
    }

    fn add_found_orphan(
        &mut self,
        meta: RunMeta,
        kind: OrphanKind,
        process: Option<agency_api::ProcessIdentity>,
    ) {
        tracing::warn!(run = %meta.run, task = meta.name(), ?kind, "an orphan: no task owns it");
        self.add_orphan(OrphanRun::new(meta.run.clone(), Some(meta), kind, process));
    }

    /// Adds a live run that nothing explains to the orphans.
    fn add_unexplained(&mut self, found: UnexplainedRun) {
        tracing::warn!(run = %found.run, holder = ?found.holder, "an orphan: nothing says whose run it is");
        let (kind, process) = match found.holder {
            Holder::Keeper(keeper) => (OrphanKind::Keeper, keeper),
            Holder::Process(process) => (OrphanKind::Process, Some(process)),
            Holder::Nothing => return,
        };
        self.add_orphan(OrphanRun::new(found.run, None, kind, process));
    }

    fn report_tasks_to_supervisor(&mut self) {
        let keys: Vec<TaskKey> = self
            .store
            .projects()
            .flat_map(|(id, known)| {
                known.tasks.keys().map(|task| TaskKey { project: id.clone(), task: *task })
            })
            .filter(|key| !self.supervisor.occupation(key).is_removal())
            .collect();
        let mut tasks = Vec::new();
        for key in keys {
            let run = self.found_run(&key);
            if let Some(status) = self.find_status(&key, &run) {
                tasks.push(FoundTask { key, status, run });
            }
        }
        let dead: Vec<TaskKey> = tasks
            .iter()
            .filter(|task| task.status.claims_a_process() && task.run == FoundRun::None)
            .map(|task| task.key.clone())
            .collect();
        self.decide(Event::Booted { tasks });
        for key in dead {
            self.write_recorded_exit(&key);
        }
    }

    /// The status in the file, or in its mirror if the file cannot be read. If the last daemon was killed after it
    /// started a run and before it wrote the status, writes it now.
    fn find_status(&mut self, key: &TaskKey, run: &FoundRun) -> Option<TaskStatus> {
        let is_live = matches!(run, FoundRun::Live { .. });
        let status = match self.store.last_content(key) {
            Some(file) => file.fields().status,
            // Nothing can be read of it, but its agent must be reachable.
            None if *run != FoundRun::None => TaskStatus::Running,
            None => return None,
        };
        let has_run = status == TaskStatus::Draft && self.has_begun_run(key);
        let unwritten = matches!(status, TaskStatus::Draft | TaskStatus::Stopped) && is_live || has_run;
        if !unwritten {
            return Some(status);
        }
        self.write_status(key, TaskStatus::Running);
        Some(TaskStatus::Running)
    }

    /// Whether an agent of the task was started: a start that was called off leaves no journal.
    fn has_begun_run(&self, key: &TaskKey) -> bool {
        let runs = self.runs.history.get(key).map(Vec::as_slice).unwrap_or_default();
        runs.iter().any(|meta| run_search::has_begun(&self.context.state.run(&meta.run.0)))
    }

    /// Writes down the exit of a run that ended while no daemon was running.
    fn write_recorded_exit(&mut self, key: &TaskKey) {
        let Some(meta) = self.runs.history.get(key).and_then(|runs| runs.last()) else { return };
        let exit = self.recorded_exit(meta);
        self.write_exit(key, exit, None);
    }
}

async fn search_runs(context: &DaemonContext, records: &WorkspaceRecords) -> FoundRuns {
    let (state, epoch) = (context.state.clone(), context.epoch.clone());
    let commands = records.all().filter_map(|(_, record)| record.run.clone()).collect();
    let search = tokio::task::spawn_blocking(move || run_search::find_runs(&state, &epoch, &commands));
    search.await.unwrap_or_else(|cause| {
        tracing::error!(%cause, "cannot find the runs of earlier daemons");
        FoundRuns::default()
    })
}

fn project_hint(run: &SearchedRun) -> ProjectHint {
    let (root, vcs) = (run.meta.root.clone(), run.meta.vcs.clone());
    ProjectHint { root, vcs, task: TaskId(run.meta.task), lives: run.holder != Holder::Nothing }
}

async fn find_remains(holder: Holder, context: RunContext, report: RunReporter) -> Remains {
    let keeper = match holder {
        Holder::Keeper(keeper) => keeper,
        Holder::Process(process) => return Remains::Process(process),
        Holder::Nothing => return Remains::Nothing,
    };
    let connected = tokio::time::timeout(ANSWERS_WITHIN, KeeperLink::connect(context.clone())).await;
    match (connected, keeper) {
        (Ok(Ok(link)), _) => {
            link.restore_pid_file();
            Remains::Kept(follow::follow_link(link, report).await)
        }
        (_, Some(keeper)) => {
            tracing::warn!(run = %context.id, "a keeper is running but does not answer; the daemon follows it when it does");
            Remains::Kept(follow::follow_later(context, keeper, report))
        }
        (_, None) => Remains::Unreachable,
    }
}

/// A session whose connection lives.
async fn adopt_session(commands: ConnectionSender, context: RunContext, report: RunReporter) -> Remains {
    match follow::follow_session(&commands, context, report, true).await {
        Ok(handle) => Remains::Kept(handle),
        Err(cause) => {
            tracing::debug!(%cause, "a session has no place any more");
            Remains::Nothing
        }
    }
}

/// A keeper on another host removes its pid file when its run is over.
fn elsewhere_remains(dir: &RunDir) -> Remains {
    if dir.pid_file().exists() { Remains::Elsewhere } else { Remains::Nothing }
}

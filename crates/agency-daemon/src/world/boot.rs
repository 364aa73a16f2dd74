//! The boot of a daemon: it finds projects, tasks, live keepers, and the remains of dead ones.
//!
//! Nothing is spawned here. The daemon adopts a live keeper. A task whose status claims a process that does not exist
//! becomes stopped. A process that belongs to no task is an orphan. `agency_run::run_search` says what lives: files that
//! cannot be read hide no agent.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use agency_api::config::Overrides;
use agency_api::paths::RunDir;
use agency_api::view::OrphanKind;
use agency_core::agent::canonical_name;
use agency_core::ids::{TaskId, TaskKey};
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

use super::connections::ConnectionSender;
use super::runs::{is_conversation, key_of};
use super::{
    Configuration, DaemonContext, Events, Lifetime, OrphanRun, Requests, Runs, Starts, Workspaces, World,
};

/// A keeper answers at once. One that is stopped must not delay the others.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// The remains of one run.
enum Remains {
    Kept(RunHandle),
    /// The agent's process lives, its keeper does not.
    Process(agency_api::ProcessIdentity),
    /// A keeper holds the lock of the run. The daemon can neither reach nor see it.
    Unreachable,
    Elsewhere,
    Nothing,
}

impl World {
    pub async fn boot(mut context: DaemonContext) -> World {
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
            lifetime: Lifetime { born: clock::now(), quitting: false, ending_orphans: false, leaving: false },
            context,
        };
        world.refresh_limits(None, &Overrides::default());
        world.end_commands_left_running().await;
        world.settle_cut_off().await;
        world.forget_lost_workspaces();
        world.complete_metas(&mut found);
        world.adopt_connections(&found).await;
        world.adopt_runs(found).await;
        world.report_tasks_to_supervisor();
        world.settle_integrations().await;
        world.check_workspaces();
        // Earlier daemons have notified the user of everything up to now.
        world.notices.notifier.mark_all_known();
        world.deliver_queued_texts();
        world.index_all_tasks();
        world.plan_first_scans();
        world
    }

    /// A run whose file was lost may lack the agent and the driver. Its task knows them. A run of an earlier version may
    /// name its agent by an alias.
    fn complete_metas(&self, found: &mut FoundRuns) {
        for meta in found.runs.iter_mut().map(|run| &mut run.meta) {
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

    async fn adopt_runs(&mut self, found: FoundRuns) {
        let metas = found.runs.iter().map(|run| run.meta.clone());
        let talks: Vec<RunMeta> = metas.filter(is_conversation).collect();
        let searches: Vec<_> = found
            .runs
            .into_iter()
            .map(|run| {
                let (dir, meta, holder) = (run.dir, run.meta, run.holder);
                let (mut context, elsewhere) =
                    (self.context_of(&meta), meta.host != self.context.state.host());
                context.before = self.conversations_before(&talks, &meta);
                let report = RunReporter { sink: self.context.reporter.sink(), run: meta.run.clone() };
                let commands = self.commands_of_connection(&meta);
                tokio::spawn(async move {
                    let remains = match (elsewhere, commands) {
                        (true, _) => elsewhere_remains(&dir),
                        (false, Some(commands)) => adopt_session(commands, context, report).await,
                        (false, None) if context.is_session => Remains::Nothing,
                        (false, None) => find_remains(holder, context, report).await,
                    };
                    (meta, remains)
                })
            })
            .collect();
        for search in searches {
            match search.await {
                Ok((meta, remains)) => self.assign_run(meta, remains),
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
            Remains::Unreachable => self.add_found_orphan(meta, OrphanKind::Keeper, None),
            Remains::Elsewhere if owned => {
                self.runs.elsewhere.insert(key, meta.host_name);
            }
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

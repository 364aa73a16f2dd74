//! The boot of a daemon: it finds projects, tasks, live keepers, and the remains of dead ones.
//!
//! Nothing is spawned here. The daemon adopts a live keeper. A task whose status claims a process that does not exist
//! becomes stopped. A process that belongs to no task is an orphan.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use agency_api::config::Overrides;
use agency_api::paths::RunDir;
use agency_api::view::OrphanKind;
use agency_core::ids::TaskKey;
use agency_core::supervisor::{Event, FoundRun, FoundTask, Limits, Supervisor};
use agency_core::task_status::TaskStatus;
use agency_keeper::launch::ABANDONED_FILE;
use agency_keeper::pidfile::PidFile;
use agency_keeper::platform;
use agency_run::follow;
use agency_run::handle::RunHandle;
use agency_run::keeper_link::KeeperLink;
use agency_run::report::RunReporter;
use agency_run::run_context::RunContext;
use agency_run::run_meta::{self, RunMeta};
use agency_search::Index;
use agency_store::clock;
use agency_store::event_log::EventLog;
use agency_store::prompt_queue::PromptQueue;
use agency_store::settings::SettingsFiles;
use agency_store::store::Store;
use agency_store::trust::TrustBook;
use agency_store::workspace_record::WorkspaceRecords;
use agency_work::directory_watch::DirectoryWatch;
use rustix::fs::{FlockOperation, flock};

use super::connections::ConnectionSender;
use super::runs::{is_conversation, key_of};
use super::{
    Configuration, DaemonContext, Events, Lifetime, OrphanRun, Requests, Runs, Starts, Workspaces, World,
};

/// A keeper that holds its run starts the agent within milliseconds.
const LAUNCHED_WITHIN: Duration = Duration::from_secs(5);

/// A keeper answers at once. One that is stopped must not delay the others.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// The remains of one run.
enum Remains {
    Kept(RunHandle),
    /// The agent's process lives, its keeper does not.
    Process(agency_api::ProcessIdentity),
    Elsewhere,
    Nothing,
}

impl World {
    pub async fn boot(context: DaemonContext) -> World {
        let store = Store::load(&context.state);
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
                records: WorkspaceRecords::load(&context.state),
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
            lifetime: Lifetime { born: clock::now(), quitting: false, leaving: false },
            context,
        };
        world.refresh_limits(None, &Overrides::default());
        world.end_commands_left_running().await;
        world.settle_cut_off().await;
        world.forget_lost_workspaces();
        world.adopt_connections().await;
        world.find_runs().await;
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

    async fn find_runs(&mut self) {
        let runs = run_meta::all(&self.context.state);
        let talks: Vec<RunMeta> = runs.iter().map(|(_, meta)| meta.clone()).filter(is_conversation).collect();
        let searches: Vec<_> = runs
            .into_iter()
            .map(|(dir, meta)| {
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
                        (false, None) => find_remains(&dir, context, report).await,
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
        self.add_orphan(OrphanRun { meta, kind, process, ending: None });
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

    /// The status in the file. If the last daemon was killed after it started a run and before it wrote the status, writes
    /// it now.
    fn find_status(&mut self, key: &TaskKey, run: &FoundRun) -> Option<TaskStatus> {
        let status = self.store.file(key).ok()?.fields().status;
        let unwritten = matches!(status, TaskStatus::Draft | TaskStatus::Stopped);
        if !unwritten || !matches!(run, FoundRun::Live { .. }) {
            return Some(status);
        }
        self.write_status(key, TaskStatus::Running);
        Some(TaskStatus::Running)
    }

    /// Writes down the exit of a run that ended while no daemon was running.
    fn write_recorded_exit(&mut self, key: &TaskKey) {
        let Some(meta) = self.runs.history.get(key).and_then(|runs| runs.last()) else { return };
        let exit = self.recorded_exit(meta);
        self.write_exit(key, exit, None);
    }
}

async fn find_remains(dir: &RunDir, context: RunContext, report: RunReporter) -> Remains {
    let pid_file = PidFile::read(&dir.pid_file()).unwrap_or_else(|cause| {
        tracing::warn!(run = %context.id, %cause, "the pid file cannot be read");
        None
    });
    let pid_file = match pid_file {
        Some(pid_file) => pid_file,
        None => match abandon_or_wait(dir.clone()).await {
            Some(pid_file) => pid_file,
            None => return Remains::Nothing,
        },
    };
    if platform::is_alive(&pid_file.keeper) {
        let connected = tokio::time::timeout(ANSWERS_WITHIN, KeeperLink::connect(context.clone())).await;
        return Remains::Kept(match connected {
            Ok(Ok(hold)) => follow::follow_link(hold, report).await,
            _ => {
                tracing::warn!(run = %context.id, "a keeper lives but does not answer; the daemon follows it when it does");
                follow::follow_later(context, pid_file.keeper, report)
            }
        });
    }
    match pid_file.child.filter(platform::is_alive) {
        Some(child) => Remains::Process(child),
        None => Remains::Nothing,
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

/// The journal is the first file that a keeper writes.
fn has_begun(dir: &RunDir) -> bool {
    std::fs::read_dir(dir.journal()).is_ok_and(|mut entries| entries.next().is_some())
}

/// The last daemon was killed during a launch, so the keeper may start only now. The first to lock the directory wins:
/// this daemon, which calls the run off, or the keeper, which then writes its pid file.
async fn abandon_or_wait(dir: RunDir) -> Option<PidFile> {
    let looked = tokio::task::spawn_blocking(move || -> io::Result<Option<PidFile>> {
        let directory = File::open(dir.path())?;
        if flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok() {
            if has_begun(&dir) {
                return Ok(None);
            }
            std::fs::write(dir.path().join(ABANDONED_FILE), b"")?;
            return Ok(None);
        }
        let deadline = Instant::now() + LAUNCHED_WITHIN;
        loop {
            match PidFile::read(&dir.pid_file())? {
                Some(pid_file) if pid_file.child.is_some() => return Ok(Some(pid_file)),
                found if Instant::now() > deadline => return Ok(found),
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    });
    match looked.await.map_err(io::Error::other) {
        Ok(Ok(found)) => found,
        Ok(Err(cause)) | Err(cause) => {
            tracing::warn!(%cause, "cannot find out whether a keeper is being started");
            None
        }
    }
}

/// A keeper on another host removes its pid file when its run is over.
fn elsewhere_remains(dir: &RunDir) -> Remains {
    if dir.pid_file().exists() { Remains::Elsewhere } else { Remains::Nothing }
}

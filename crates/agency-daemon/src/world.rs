//! The daemon's one loop: an event comes, the supervisor decides, the daemon carries the effects out.
//!
//! The supervisor in `agency-core` decides which operations exclude each other, and when processes start and end. The
//! files of this directory decide what needs facts from disk or git: whether a workspace can be made or removed, what
//! becomes of work that an earlier daemon left half done, and which users get a notification.
//! Everything that takes long runs beside the loop and reports back as a [`LoopEvent`].

mod agents;
mod approvals;
pub(crate) mod argument;
mod boot;
mod configuration;
mod conflicts;
mod connections;
mod consent;
mod conversations;
mod cut_off_agents;
pub(crate) mod desk_feed;
mod desks;
mod diffs;
mod effects;
mod environments;
mod events;
mod explain;
mod files;
mod finished_tasks;
mod flags;
mod headlines;
mod integrations;
mod launches;
mod lifecycle;
pub(crate) mod loop_event;
mod mcp;
mod merge_plans;
mod missing_workspaces;
mod moved_projects;
mod new_tasks;
mod notices;
mod operations;
mod orphans;
mod ports;
mod projects;
mod recents;
mod refusals;
mod remarks;
mod removals;
pub(crate) mod router;
mod runs;
mod searches;
mod sends;
mod setup_run;
mod setups;
mod shell_ends;
mod shells;
mod starts;
mod task_names;
mod task_texts;
mod tasks;
mod terminals;
mod timeline;
mod traces;
mod trash;
mod turns;
mod workspaces;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agency_api::config::Overrides;
use agency_api::event::{self};
use agency_api::keeper::Ended;
use agency_api::method::{Nothing, OrphanAdopted, Removed, Started, Stopped};
use agency_api::paths::StateDir;
use agency_api::work::Merged;
use agency_api::{Bytes, Failure, view};
use agency_core::approval::NamedRule;
use agency_core::evidence::{DetectedState, Rules};
use agency_core::ids::{ProjectId, RunId, TaskKey, Ticket};
use agency_core::supervisor::{Event, Supervisor};
use agency_run::handle::{RunCommands, RunHandle};
use agency_run::plan::LaunchPlan;
use agency_run::report::Report;
use agency_run::run_meta::RunMeta;
use agency_search::Index;
use agency_store::clock;
use agency_store::epoch::DaemonEpoch;
use agency_store::event_log::EventLog;
use agency_store::program_memory::ProgramMemories;
use agency_store::prompt_queue::PromptQueue;
use agency_store::rule_book::RuleBook;
use agency_store::settings::SettingsFiles;
use agency_store::store::Store;
use agency_store::trust::TrustBook;
use agency_store::workspace_record::WorkspaceRecords;
use agency_work::directory_watch::DirectoryWatch;
use agency_workspace::Workspace;
use tokio::sync::broadcast;

use agency_server::Reply;
use agency_server::Streams;
use desk_feed::DeskFeed;
use loop_event::{FinishedMerge, Inbox, LoopEvent, Reporter};
use router::Router;

pub use orphans::OrphanRun;

/// The handlers of all methods of the API.
pub fn build_router() -> Router {
    let mut router = Router::default();
    for register in [
        agents::register,
        approvals::register,
        configuration::register,
        conflicts::register,
        connections::register,
        consent::register,
        conversations::register,
        desks::register,
        diffs::register,
        environments::register,
        explain::register,
        files::register,
        finished_tasks::register,
        cut_off_agents::register,
        flags::register,
        task_texts::register,
        integrations::register,
        merge_plans::register,
        lifecycle::register,
        mcp::register,
        new_tasks::register,
        notices::register,
        orphans::register,
        recents::register,
        remarks::register,
        removals::register,
        searches::register,
        sends::register,
        setups::register,
        shells::register,
        starts::register,
        tasks::register,
        terminals::register,
        projects::register,
        traces::register,
        trash::register,
        timeline::register,
        turns::register,
    ] {
        register(&mut router);
    }
    router
}

/// Things that the world is given at its start and never changes.
pub struct DaemonContext {
    pub state: StateDir,
    /// Where the daemon listens.
    pub socket: PathBuf,
    pub epoch: Arc<DaemonEpoch>,
    pub keeper_binary: PathBuf,
    /// Agency itself, where it was when the daemon began.
    pub program: Option<PathBuf>,
    pub rule_book: Arc<RuleBook>,
    /// The memory of programs.
    pub memories: Arc<ProgramMemories>,
    /// The user's own limit of open files, before the daemon raised it.
    pub open_files: Option<(u64, u64)>,
    pub streams: Arc<Streams>,
    pub events: broadcast::Sender<event::Event>,
    /// Sends what surfaces show.
    pub desk: DeskFeed,
    pub reporter: Reporter,
    /// Files that this daemon found spoiled or could not write, and what became of them.
    pub problems: Vec<String>,
}

pub struct World {
    context: DaemonContext,
    supervisor: Supervisor,
    store: Store,
    configuration: Configuration,
    runs: Runs,
    starts: Starts,
    workspaces: Workspaces,
    /// Handles and records of the operations that are under way. The supervisor decides which exclude each other.
    operations: HashMap<TaskKey, operations::TaskOperations>,
    /// Connections that tasks may share, by name.
    connections: BTreeMap<String, connections::SharedConnection>,
    queue: PromptQueue,
    index: Index,
    notices: notices::Notices,
    events: Events,
    requests: Requests,
    lifetime: Lifetime,
}

/// The user's settings, and what was last read of them.
struct Configuration {
    files: SettingsFiles,
    trust: TrustBook,
    /// The rules about approvals that each project's agents were last judged by.
    approval_rules: HashMap<ProjectId, Vec<NamedRule>>,
    /// The rules about screens that every run uses.
    screen_rules: Arc<Rules>,
}

/// Runs that live, and what is known of those that ended.
#[derive(Default)]
struct Runs {
    live: HashMap<RunId, LiveRun>,
    /// Terminals beside agents.
    shells: shells::ShellTable,
    /// While the daemon boots and can list tasks: the runs that it has found and does not follow yet.
    unadopted: Option<HashMap<TaskKey, boot::UnadoptedRun>>,
    /// Runs that the daemon has dismissed, and whose keepers may not know it yet.
    dismissed: Vec<RunCommands>,
    /// How many turns of each task have ended since this daemon began.
    turns: HashMap<TaskKey, u64>,
    /// Every task's runs that left a journal, oldest first.
    history: HashMap<TaskKey, Vec<RunMeta>>,
    /// The environments that the keepers of ended runs held, for a restart. In memory only.
    environments: HashMap<TaskKey, Vec<(Bytes, Bytes)>>,
    /// Processes that ended together with the task's last run.
    ended: HashMap<TaskKey, Vec<Ended>>,
    /// Keepers and processes that belong to no task.
    orphans: BTreeMap<RunId, OrphanRun>,
    /// Hosts that hold a task's run.
    elsewhere: HashMap<TaskKey, String>,
}

/// Plans, results and notes of starts, by task.
#[derive(Default)]
struct Starts {
    plans: HashMap<TaskKey, LaunchPlan>,
    /// Workspaces that starts under way have made, and the full failures of those starts.
    made: HashMap<TaskKey, Workspace>,
    failures: HashMap<TaskKey, Failure>,
    notes: HashMap<TaskKey, Vec<String>>,
    /// The options of starts that concern their setups.
    setups: HashMap<TaskKey, setups::SetupRequest>,
}

struct Workspaces {
    /// The records of workspaces, which lie beside the repository.
    records: WorkspaceRecords,
    /// Reports workspaces that disappear.
    watch: DirectoryWatch,
    /// Workspaces that cannot both be merged.
    conflicts: conflicts::ConflictScans,
    /// Where the workspaces of live agents are.
    places: missing_workspaces::Places,
    /// When this daemon last merged a task.
    merged_at: HashMap<TaskKey, Instant>,
}

/// Announced events.
struct Events {
    /// The number of the last event.
    last: u64,
    log: EventLog,
}

/// Requests that wait for the supervisor.
#[derive(Default)]
struct Requests {
    pending: HashMap<Ticket, Pending>,
    /// The last ticket that was issued.
    last: u64,
}

struct Lifetime {
    born: Duration,
    /// While the daemon boots: the events that must wait until it follows its runs.
    held: Option<Vec<LoopEvent>>,
    /// The agents of tasks have ended; connections are still ending.
    quitting: bool,
    ending_orphans: bool,
    ending_shells: bool,
    leaving: bool,
}

/// A run whose keeper is there.
struct LiveRun {
    key: TaskKey,
    meta: RunMeta,
    handle: RunHandle,
    standing: DetectedState,
    viewers: usize,
    /// When a user last looked at it.
    seen_at: Option<Duration>,
    /// Why its journal cannot be written, if it cannot.
    journal_error: Option<String>,
    /// Why the user should look at the agent's mode, if so.
    mode_warning: Option<String>,
}

impl LiveRun {
    /// A user looks at it now, or has looked since it began to wait.
    fn is_seen(&self) -> bool {
        let Some((since, _)) = self.standing.state.waiting() else { return false };
        self.viewers > 0 || self.seen_at.is_some_and(|seen| seen >= since)
    }
}

/// A caller, and the request that it waits for.
enum Pending {
    Start {
        key: TaskKey,
        reply: Reply<Started>,
    },
    Stop {
        key: TaskKey,
        /// The terminals of the task that were closed first.
        closed: Vec<String>,
        reply: Reply<Stopped>,
    },
    Mark {
        key: TaskKey,
        reply: Reply<view::Task>,
    },
    Remove {
        key: TaskKey,
        request: Box<removals::RemovalRequest>,
        reply: Reply<Removed>,
    },
    /// The daemon itself stops a run whose workspace is gone.
    StopWithoutWorkspace {
        key: TaskKey,
    },
    /// The merge follows when the agent has ended.
    StopBeforeMerge {
        key: TaskKey,
        merge: Box<merge_plans::MergeAfterStop>,
        reply: Reply<Merged>,
    },
    Merge {
        key: TaskKey,
        merge: FinishedMerge,
        reply: Reply<Merged>,
    },
    Adopt {
        key: TaskKey,
        run: RunId,
        reply: Reply<OrphanAdopted>,
    },
    Shutdown {
        reply: Option<Reply<Nothing>>,
    },
}

impl World {
    pub async fn live(mut self, mut inbox: Inbox) {
        while !self.lifetime.leaving {
            let deadlines = [
                self.supervisor.deadline(),
                self.notices.notifier.deadline(),
                self.connections_deadline(),
                self.workspaces.conflicts.deadline(),
                self.snooze_deadline(),
            ];
            let deadline = deadlines.into_iter().flatten().min();
            let event = tokio::select! {
                event = inbox.recv() => event,
                () = agency_run::timer::sleep_until(deadline) => None,
            };
            let is_reading = event.as_ref().is_some_and(LoopEvent::is_desk_reading);
            match event {
                Some(event) => self.handle(event),
                None => {
                    self.decide(Event::Tick);
                    self.tick_connections();
                }
            }
            self.begin_due_scan();
            self.send_due_notices();
            if !is_reading {
                self.context.desk.touch();
            }
        }
        // Later reports have no reader, and their senders must not wait for one.
        drop(inbox);
        self.leave().await;
    }

    fn handle(&mut self, event: LoopEvent) {
        match event {
            LoopEvent::Request(request) => {
                self.apply_screen_rules();
                request.handle(self);
                self.apply_approval_rules();
            }
            LoopEvent::NewTaskChecked { new, checked, reply } => {
                self.on_new_task_checked(*new, checked, reply);
            }
            LoopEvent::WorkspaceMade { key, epoch, made } => self.on_workspace_made(key, epoch, made),
            LoopEvent::WorkspaceUndone { key, epoch } => {
                self.expect_no_workspace(&key);
                self.decide(Event::WorkspaceUndone { key, epoch });
            }
            LoopEvent::SetupPrinted { key, text } => self.on_setup_printed(&key, text),
            LoopEvent::SetupOver { key, epoch, outcome } => self.on_setup_over(key, epoch, outcome),
            LoopEvent::KeeperStarted { key, epoch, started } => self.on_keeper_started(key, epoch, started),
            LoopEvent::EnsureConnection { key, plan, spec, answer } => {
                self.ensure_connection(key, plan, *spec, answer)
            }
            LoopEvent::Reported(Report::Connection { name, attempt, report }) => {
                self.on_connection_report(&name, attempt, report);
            }
            LoopEvent::Reported(Report::Run { run, report }) => self.on_run_report(run, report),
            LoopEvent::TextSent { key, id, outcome } => self.on_text_sent(&key, id, outcome),
            LoopEvent::ReaderLeft { key } => self.remove_reader(&key),
            LoopEvent::RemovalChecked { key, ticket, verdict } => {
                self.on_removal_checked(key, ticket, verdict)
            }
            LoopEvent::WorkspaceRemoved { key, reply, removed, notes } => {
                self.on_workspace_removed(&key, reply, removed, notes)
            }
            LoopEvent::Integration(event) => self.on_integration(*event),
            LoopEvent::ConflictsFound { project, scanner, took, taken_back, found } => {
                self.take_merges_back(&project, &taken_back);
                self.on_conflicts_found(&project, *scanner, took, found);
            }
            LoopEvent::TrashExpired { project, reply, expired } => {
                self.on_trash_expired(&project, reply, expired)
            }
            LoopEvent::RemovalSettled { settled, reply } => self.on_removal_settled(settled, reply),
            LoopEvent::UndoChosen { project, reply, chosen } => {
                self.on_undo_chosen(project, reply, chosen);
            }
            LoopEvent::TaskRestored { key, removal, reply, restored } => {
                self.on_task_restored(key, removal, reply, restored);
            }
            LoopEvent::FilesRestored { key, entry, reply, restored } => {
                self.on_files_restored(&key, entry, reply, restored);
            }
            LoopEvent::TurnKept { key, kept } => self.on_turn_kept(&key, kept),
            LoopEvent::TurnRestored { key, reply, restored } => self.on_turn_restored(&key, reply, restored),
            LoopEvent::DirectoriesChanged => {
                self.check_workspaces();
                self.apply_approval_rules();
            }
            LoopEvent::OrphanFollowed { run, request, followed } => {
                self.on_orphan_followed(run, request, followed);
            }
            LoopEvent::OrphanEnded { run, request, ended } => self.on_orphan_ended(&run, request, ended),
            LoopEvent::Shell(event) => self.on_shell_event(event),
            LoopEvent::OrphansEnded => {
                self.lifetime.ending_orphans = false;
                self.leave_when_alone();
            }
            LoopEvent::EndAll => self.end_all(&Overrides::default(), None),
            LoopEvent::Leave => self.lifetime.leaving = true,
        }
    }

    /// Lets the supervisor decide, and carries out its effects.
    fn decide(&mut self, event: Event) {
        let mut effects = self.supervisor.handle(clock::now(), event).into_iter();
        while let Some(effect) = effects.next() {
            self.perform(effect, effects.as_slice());
        }
        self.cancel_unwanted_starts();
    }

    fn ticket(&mut self, pending: Pending) -> Ticket {
        self.requests.last += 1;
        let ticket = Ticket(self.requests.last);
        self.requests.pending.insert(ticket, pending);
        ticket
    }

    fn end_all(&mut self, overrides: &Overrides, reply: Option<Reply<Nothing>>) {
        self.refresh_limits(None, overrides);
        self.mark_live_agents_cut_off();
        self.end_all_shells();
        let ticket = self.ticket(Pending::Shutdown { reply });
        self.decide(Event::Shutdown { ticket });
    }
}

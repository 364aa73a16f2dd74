//! The daemon's one loop: an event comes, the supervisor decides, the daemon carries the effects out.
//!
//! The supervisor decides which operations exclude each other, and when processes start and end. Everything that takes
//! long runs beside the loop and reports back as a [`LoopEvent`].

mod agents;
mod approvals;
pub(crate) mod argument;
mod boot;
mod configuration;
mod connections;
mod consent;
mod diffs;
mod effects;
mod environments;
mod explain;
mod finding;
mod finished_tasks;
mod integrations;
mod launches;
mod lifecycle;
mod mcp;
mod new_tasks;
mod notices;
mod operations;
mod orphans;
mod ports;
mod radar;
mod refusals;
mod removals;
mod sends;
mod setups;
mod starts;
mod talks;
mod tasks;
mod terminals;
mod traces;
mod trash;
mod turns;
mod vanished;
mod workspaces;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agency_api::config::Overrides;
use agency_api::event::{self, ErrorEvent, EventData};
use agency_api::keeper::Ended;
use agency_api::method::{Nothing, OrphanAdopted, Removed, Started, Stopped};
use agency_api::paths::StateDir;
use agency_api::work::Merged;
use agency_api::{Bytes, Failure, view};
use agency_core::approval::NamedRule;
use agency_core::evidence::{Change, Rules, Standing};
use agency_core::ids::{ProjectId, RunId, TaskKey, Ticket};
use agency_core::supervisor::{Event, Supervisor};
use agency_core::task_file::Field;
use agency_run::command::{RunCommand, TerminalCommand};
use agency_run::handle::RunHandle;
use agency_run::plan::LaunchPlan;
use agency_run::report::{Report, RunReport};
use agency_run::run_meta::RunMeta;
use agency_search::Index;
use agency_store::event_log::EventLog;
use agency_store::prompt_queue::PromptQueue;
use agency_store::rule_book::RuleBook;
use agency_store::settings::SettingsFiles;
use agency_store::store::Store;
use agency_store::trust::TrustBook;
use agency_store::workspace_record::WorkspaceRecords;
use agency_store::{clock, told_mark};
use agency_workspace::Workspace;
use tokio::sync::{broadcast, mpsc};

use crate::loop_event::{FinishedMerge, LoopEvent, Reporter};
use crate::reply::Reply;
use crate::router::Router;
use crate::streams::Streams;
use crate::vanishing::Watch;

pub use orphans::OrphanRun;

/// The handlers of all methods of the API.
pub fn router() -> Router {
    let mut router = Router::default();
    for register in [
        agents::register,
        approvals::register,
        configuration::register,
        connections::register,
        consent::register,
        diffs::register,
        environments::register,
        explain::register,
        finished_tasks::register,
        finding::register,
        integrations::register,
        lifecycle::register,
        mcp::register,
        new_tasks::register,
        notices::register,
        orphans::register,
        radar::register,
        removals::register,
        sends::register,
        setups::register,
        starts::register,
        talks::register,
        tasks::register,
        terminals::register,
        traces::register,
        trash::register,
        turns::register,
    ] {
        register(&mut router);
    }
    router
}

/// Things that the world is given at its start and never changes.
pub struct DaemonContext {
    pub state: StateDir,
    pub epoch: u64,
    pub keeper_binary: PathBuf,
    /// Agency itself, where it was when the daemon began.
    pub program: Option<PathBuf>,
    pub rule_book: Arc<RuleBook>,
    /// The user's own limit of open files, before the daemon raised it.
    pub open_files: Option<(u64, u64)>,
    pub streams: Arc<Streams>,
    pub events: broadcast::Sender<event::Event>,
    pub reporter: Reporter,
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

/// What starts need and have made, by task.
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
    watch: Watch,
    /// Workspaces that cannot both be merged.
    conflicts: radar::Radars,
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
    /// The agents of tasks have ended; connections are still ending.
    quitting: bool,
    leaving: bool,
}

/// A run whose keeper is there.
struct LiveRun {
    key: TaskKey,
    meta: RunMeta,
    handle: RunHandle,
    standing: Standing,
    viewers: usize,
    /// When a user last looked at it.
    seen_at: Option<Duration>,
    /// Why its journal cannot be written, if it cannot.
    trouble: Option<String>,
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
    Vanished {
        key: TaskKey,
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
    pub async fn live(mut self, mut inbox: mpsc::Receiver<LoopEvent>) {
        while !self.lifetime.leaving {
            let deadlines = [
                self.supervisor.deadline(),
                self.notices.notifier.deadline(),
                self.wires_deadline(),
                self.workspaces.conflicts.deadline(),
            ];
            let deadline = deadlines.into_iter().flatten().min();
            let event = tokio::select! {
                event = inbox.recv() => event,
                () = agency_run::timer::sleep_until(deadline) => None,
            };
            match event {
                Some(event) => self.handle(event),
                None => {
                    self.decide(Event::Tick);
                    self.tick_wires();
                }
            }
            self.look_when_due();
            self.tell_due();
        }
        // Later reports have no reader, and their senders must not wait for one.
        drop(inbox);
        self.leave().await;
    }

    /// From now on the loop handles the news of the run.
    fn register(&mut self, key: TaskKey, meta: RunMeta, handle: RunHandle) {
        handle.command(RunCommand::Begin);
        self.watch_workspace(&key);
        let run = meta.run.clone();
        let (standing, missed) = (handle.standing.clone(), handle.missed.clone());
        self.state_found(&key, &run, &standing);
        let seen = std::fs::read_to_string(self.context.state.run(&run.0).seen_file()).ok();
        let seen_at = seen.and_then(|nanos| nanos.parse().ok()).map(Duration::from_nanos);
        let live = LiveRun { key: key.clone(), meta, standing, handle, viewers: 0, seen_at, trouble: None };
        self.runs.live.insert(run.clone(), live);
        // These changes happened while no daemon was there to announce them.
        missed.iter().for_each(|change| self.announce_state(&key, &run, change));
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
            LoopEvent::EnsureWire { plan, spec, answer } => self.ensure_wire(plan, *spec, answer),
            LoopEvent::Reported(Report::Connection { name, attempt, report: news }) => {
                self.on_wire_news(&name, attempt, news);
            }
            LoopEvent::Reported(Report::Run { run, report: news }) => self.on_run_news(run, news),
            LoopEvent::TextSent { key, id, outcome } => self.on_text_sent(&key, id, outcome),
            LoopEvent::ReaderLeft { key } => self.remove_reader(&key),
            LoopEvent::RemovalChecked { key, ticket, verdict } => {
                self.on_removal_checked(key, ticket, verdict)
            }
            LoopEvent::WorkspaceRemoved { key, reply, removed, notes } => {
                self.on_workspace_removed(&key, reply, removed, notes)
            }
            LoopEvent::MergeOver { key, reply, outcome } => self.on_merge_over(key, reply, outcome),
            LoopEvent::SyncOver { key, reply, outcome } => self.on_sync_over(&key, reply, outcome),
            LoopEvent::CollisionsFound { project, radar, took, found } => {
                self.on_collisions_found(&project, *radar, took, found)
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
            LoopEvent::EndAll => self.end_all(&Overrides::default(), None),
            LoopEvent::Leave => self.lifetime.leaving = true,
        }
    }

    /// Gives the runs new screen rules: a run without output would not read them again by itself.
    pub(super) fn apply_screen_rules(&mut self) {
        let rules = self.context.rule_book.rules();
        if !Arc::ptr_eq(&rules, &self.configuration.screen_rules) {
            self.configuration.screen_rules = rules;
            let terminals = self.runs.live.values().filter_map(|live| live.handle.terminal());
            terminals.for_each(|terminal| terminal.post(TerminalCommand::ReloadRules));
        }
    }

    /// Lets the supervisor decide, and carries out its effects.
    fn decide(&mut self, event: Event) {
        let mut effects = self.supervisor.handle(clock::now(), event).into_iter();
        while let Some(effect) = effects.next() {
            self.perform(effect, effects.as_slice());
        }
    }

    fn on_run_news(&mut self, run: RunId, news: RunReport) {
        let Some(live) = self.runs.live.get_mut(&run) else {
            return self.on_orphan_news(&run, news);
        };
        let key = live.key.clone();
        match news {
            RunReport::State(change) => {
                live.standing = change.new.clone();
                self.announce_state(&key, &run, &change);
                self.state_told(&key, &run, &change.new);
                self.deliver_next(&key);
                self.touch_index(&key);
                self.check_workspace(&key);
                // The agent rests: compare its work with other workspaces.
                if change.new.state.waiting().is_some() {
                    self.look_at(&key.project);
                }
            }
            RunReport::Evidence(evidence) => {
                live.standing.evidence = *evidence;
                let standing = live.standing.clone();
                self.detail_told(&key, &run, &standing);
            }
            RunReport::Session(id) => self.keep_session(&key, &run, Some(id)),
            RunReport::SessionLost => self.keep_session(&key, &run, None),
            RunReport::Viewers(viewers) => {
                live.viewers = viewers;
                self.saw(&run);
                self.notices.notifier.set_viewed(&key, viewers > 0);
            }
            RunReport::ConversationEvents { events, next_seq } => {
                let has_turn_ended = events.iter().any(|(_, data)| matches!(data, EventData::TurnEnd(_)));
                for (at, data) in events {
                    self.announce_at(clock::timestamp_of(at), Some(&key), Some(&run), data);
                }
                if has_turn_ended {
                    self.check_workspace(&key);
                    self.turn_ended(&key);
                }
                if let Err(cause) =
                    told_mark::write(&self.context.state.run(&run.0).announced_file(), next_seq)
                {
                    tracing::warn!(%run, %cause, "some events may be announced twice");
                }
            }
            RunReport::ApprovalRequested(approval) => self.put_before_rules(&key, &run, &approval),
            RunReport::Over { exit, ended } => {
                tracing::info!(task = %key, %run, code = %exit.code, "run over");
                self.runs.ended.insert(key.clone(), ended);
                self.decide(Event::RunExited { key: key.clone(), run, exit });
                if !exit.asked && exit.code.is_success() {
                    self.tell_unsent(&key);
                }
                self.notices.notifier.end_run(&key);
                self.touch_index(&key);
                self.look_at(&key.project);
            }
            RunReport::Reached { environment } => {
                live.handle.environment = environment;
                self.notices.notifier.expect_late_state(&key);
            }
            RunReport::Rescued { keeper } => {
                tracing::warn!(task = %key, %run, "the keeper was killed; another one holds the run now");
                live.handle.keeper = keeper;
                self.announce(Some(&key), Some(&run), keeper_killed());
            }
            RunReport::Journal { cause: Some(cause) } => {
                live.trouble = Some(cause.clone());
                tracing::error!(task = %key, %run, %cause, "the journal cannot be written");
                let error = ErrorEvent::new("the journal cannot be written", cause);
                self.announce(Some(&key), Some(&run), error);
            }
            RunReport::Journal { cause: None } => {
                live.trouble = None;
                tracing::info!(task = %key, %run, "the journal is written again")
            }
        }
    }

    /// Writes beside the run when a user looked at it, so that the next daemon knows.
    fn saw(&mut self, run: &RunId) {
        let (now, path) = (clock::now(), self.context.state.run(&run.0).seen_file());
        if let Some(live) = self.runs.live.get_mut(run) {
            live.seen_at = Some(now);
        }
        if let Err(cause) = std::fs::write(path, now.as_nanos().to_string()) {
            tracing::warn!(%run, %cause, "cannot record that a user looked at a run");
        }
    }

    /// Writes the session into the task file: the next start continues it, or begins a new one if there is none.
    fn keep_session(&mut self, key: &TaskKey, run: &RunId, id: Option<String>) {
        let known = self.store.file(key).is_ok_and(|file| file.fields().session_id == id);
        if known {
            return;
        }
        if let Err(cause) = self.store.set(key, vec![Field::SessionId(id)]) {
            tracing::warn!(task = %key, %run, %cause, "cannot write the session into the task file");
        }
    }

    fn announce_state(&mut self, key: &TaskKey, run: &RunId, change: &Change) {
        let (now, new) = (clock::now(), &change.new);
        let time = clock::timestamp_of(new.since.at);
        let change = event::StateChangeEvent {
            old: agency_run::view::state(change.old, now, now),
            new: agency_run::view::state(new.state, new.since.at, now),
            why: new.state.waiting().map(|(_, why)| agency_run::view::why(why)),
            evidence: agency_run::view::evidence(&new.evidence),
            offset: new.since.offset,
        };
        self.announce_at(time, Some(key), Some(run), change);
    }

    fn announce(&mut self, key: Option<&TaskKey>, run: Option<&RunId>, data: impl Into<EventData>) {
        self.announce_at(clock::timestamp_of(clock::now()), key, run, data);
    }

    fn announce_at(
        &mut self,
        time: String,
        key: Option<&TaskKey>,
        run: Option<&RunId>,
        data: impl Into<EventData>,
    ) {
        let event = self.event(time, key, run, data.into());
        self.announce_event(event);
    }

    /// Numbers the event, writes it to the event log, and sends it to subscribers.
    fn announce_event(&mut self, mut event: event::Event) {
        self.events.last += 1;
        event.seq = self.events.last;
        if let Err(cause) = self.events.log.append(&event) {
            tracing::warn!(%cause, "cannot write an event to the event log");
        }
        // There may be no subscriber.
        self.context.events.send(event).unwrap_or_default();
    }

    /// Sends an event without a number to the subscribers of this moment. Its content is kept elsewhere.
    fn announce_in_passing(&mut self, key: &TaskKey, data: impl Into<EventData>) {
        let event = self.event(clock::timestamp_of(clock::now()), Some(key), None, data.into());
        self.context.events.send(event).unwrap_or_default();
    }

    fn event(
        &self,
        time: String,
        key: Option<&TaskKey>,
        run: Option<&RunId>,
        data: EventData,
    ) -> event::Event {
        let root = key.and_then(|key| self.store.project(&key.project)).map(|project| project.root().into());
        let agent = run.and_then(|run| self.runs.live.get(run)).map(|live| live.meta.agent.clone());
        event::Event {
            seq: 0,
            time,
            project: root,
            task: key.map(|key| key.task.0),
            agent,
            run: run.map(|run| run.0.clone()),
            data,
        }
    }

    fn ticket(&mut self, pending: Pending) -> Ticket {
        self.requests.last += 1;
        let ticket = Ticket(self.requests.last);
        self.requests.pending.insert(ticket, pending);
        ticket
    }

    fn end_all(&mut self, overrides: &Overrides, reply: Option<Reply<Nothing>>) {
        self.refresh_limits(None, overrides);
        let ticket = self.ticket(Pending::Shutdown { reply });
        self.decide(Event::Shutdown { ticket });
    }
}

fn keeper_killed() -> ErrorEvent {
    ErrorEvent::new(
        "the keeper was killed",
        "another one holds the run now; what was printed meanwhile may be missing",
    )
}

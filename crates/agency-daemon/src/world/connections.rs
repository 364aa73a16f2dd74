//! Connections to agents that serve many tasks with one process: opened when a task needs one, and opened again when
//! they break.
//!
//! For each connection a state machine of the core decides, and a task of the daemon carries it out.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use agency_api::connection::{Connection as View, ConnectionRef, Connections, Sessions, Status as Shown};
use agency_api::event::{self, AgentStatusEvent, ErrorEvent, EventData};
use agency_api::method::{self, Nothing};
use agency_api::paths::RunDir;
use agency_api::{Failure, FailureCode};
use agency_core::agent::{Agent, Driver, canonical_name};
use agency_core::connection::{ConnectError, Connection, Effect, Event, Status};
use agency_core::ids::{Epoch, RunId, TaskKey, Ticket};
use agency_run::connection::{
    self, AdoptedSession, ConnectionCommand, ConnectionContext, ConnectionPlan, ConnectionSpec,
    ConnectionTask, FoundConnection, GiveUpReason, JournalProgress,
};
use agency_run::plan::StartOptions;
use agency_run::report::ConnectionReport;
use agency_run::run_meta::RunMeta;
use agency_run::run_search::{FoundRun, FoundRuns};
use agency_server::Reply;
use agency_store::clock;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::World;
use super::loop_event::Inbox;
use super::router::{Later, Router};
use super::runs::key_of;
use super::starts::StartRequest;

pub(super) fn register(router: &mut Router) {
    router.on(method::ConnectionList, World::connections);
    router.on_reply(method::ConnectionReconnect, World::reconnect);
    router.on(method::ConnectionSessions, World::agent_sessions);
}

pub type ConnectionSender = mpsc::Sender<ConnectionCommand>;

pub(super) struct SharedConnection {
    plan: ConnectionPlan,
    machine: Connection,
    commands: ConnectionSender,
    spec: Option<ConnectionSpec>,
    waiting: HashMap<Ticket, Waiting>,
    sessions: usize,
    version: Option<String>,
    /// Whether the agent can resume a session of another process; `None` until the agent has said so.
    resumes: Option<bool>,
    error: Option<String>,
    /// The last failure.
    failure: Option<ConnectError>,
    /// Tasks whose runs ended with the connection. They are started again when it is back.
    left_behind: Vec<TaskKey>,
}

/// The session of the last run of a task.
struct LastSession {
    connection: String,
    run: RunId,
    dir: RunDir,
    /// The task file says that an agent is running.
    claims_a_process: bool,
}

enum Waiting {
    Start { key: TaskKey, answer: oneshot::Sender<Result<ConnectionSender, Failure>> },
    Reconnect(Reply<View>),
    Shutdown,
}

impl World {
    fn connection_context(&self, plan: &ConnectionPlan) -> ConnectionContext {
        ConnectionContext {
            plan: plan.clone(),
            state: self.context.state.clone(),
            epoch: self.context.epoch.clone(),
            keeper_binary: self.context.keeper_binary.clone(),
            rule_book: self.context.rule_book.clone(),
            memories: self.context.memories.clone(),
            reporter: self.context.reporter.sink(),
        }
    }

    /// Gives a start its connection: the existing one, or a new one.
    pub(super) fn ensure_connection(
        &mut self,
        key: TaskKey,
        plan: ConnectionPlan,
        spec: ConnectionSpec,
        answer: oneshot::Sender<Result<ConnectionSender, Failure>>,
    ) {
        if self.supervisor.is_start_cancelled(&key) {
            return agency_run::reply::send_reply(answer, Err(start_cancelled()));
        }
        let name = plan.name.clone();
        if !self.connections.contains_key(&name) {
            let commands = ConnectionTask::open(self.connection_context(&plan));
            let machine = Connection::new(&plan.display_name);
            self.connections.insert(name.clone(), SharedConnection::new(plan, commands, machine));
        }
        self.requests.last += 1;
        let ticket = Ticket(self.requests.last);
        if let Some(connection) = self.connections.get_mut(&name) {
            // The next process is started as the last start asked for.
            connection.spec = Some(spec);
            connection.waiting.insert(ticket, Waiting::Start { key, answer });
        }
        self.on_connection_event(&name, Event::Ensure { ticket });
    }

    /// Says the same about an agent that is not installed as a connection that cannot start its process. Other drivers have
    /// no connection.
    pub(super) fn announce_missing_agent(
        &mut self,
        agent: &Agent,
        driver: Driver,
        failure: Failure,
    ) -> Failure {
        if driver != Driver::Acp || failure.code != FailureCode::AgentNotInstalled {
            return failure;
        }
        let ConnectError { message, .. } = ConnectError::not_installed(&agent.display_name);
        let is_known = self.connections.contains_key(&agent.name);
        if !is_known {
            let (agent, status) = (agent.name.clone(), Shown::Disconnected);
            self.announce_agent_event(&agent.clone(), AgentStatusEvent { agent, status });
        }
        let (cause, of) = (Some(failure.message.clone()), Some(agent.name.clone()));
        let event = ErrorEvent { message: message.clone(), cause, agent: of };
        self.announce_agent_event(&agent.name, event);
        failure.within(message)
    }

    /// Ends the handshakes that only cancelled starts wait for. The starts fail at once.
    pub(super) fn cancel_unwanted_starts(&mut self) {
        let mut cancelled = Vec::new();
        for (name, connection) in &mut self.connections {
            let supervisor = &self.supervisor;
            let is_unwanted = |waiting: &Waiting| matches!(waiting, Waiting::Start { key, .. } if supervisor.is_start_cancelled(key));
            for (ticket, waiting) in connection.waiting.extract_if(|_, waiting| is_unwanted(waiting)) {
                if let Waiting::Start { answer, .. } = waiting {
                    agency_run::reply::send_reply(answer, Err(start_cancelled()));
                }
                cancelled.push((name.clone(), ticket));
            }
        }
        for (name, ticket) in cancelled {
            self.on_connection_event(&name, Event::Cancel { ticket });
        }
    }

    fn on_connection_event(&mut self, name: &str, event: Event) {
        let Some(connection) = self.connections.get_mut(name) else { return };
        let effects = connection.machine.on(event, clock::now());
        for effect in effects {
            self.perform_connection_effect(name, effect);
        }
    }

    fn perform_connection_effect(&mut self, name: &str, effect: Effect) {
        let Some(connection) = self.connections.get_mut(name) else { return };
        match effect {
            Effect::Spawn { epoch } => match connection.spec.clone() {
                Some(spec) => {
                    connection.command(ConnectionCommand::Spawn { attempt: epoch.0, spec: Box::new(spec) })
                }
                None => {
                    let cause = "the daemon does not know any more how to start it".to_owned();
                    self.on_connection_event(name, Event::SpawnFailed { epoch, not_found: false, cause });
                }
            },
            Effect::End { epoch } => connection.command(ConnectionCommand::End { attempt: epoch.0 }),
            Effect::Announce { status } => self.on_connection_changed(name, status),
            Effect::Fail(error) => {
                let agent = connection.plan.agent.clone();
                connection.failure = Some(error.clone());
                let ConnectError { message, cause } = error;
                tracing::error!(connection = name, %message, cause, "a connection failed");
                let event = ErrorEvent { message, cause, agent: Some(agent.clone()) };
                self.announce_agent_event(&agent, event);
            }
            Effect::Answer { ticket, answer } => self.answer_connection_request(name, ticket, answer),
        }
    }

    fn answer_connection_request(&mut self, name: &str, ticket: Ticket, outcome: Result<(), ConnectError>) {
        let shown = self.connection_view(name);
        let Some(connection) = self.connections.get_mut(name) else { return };
        let failure = |err: ConnectError| {
            let failure = Failure::new(err.message).code(FailureCode::ConnectionFailed);
            err.cause.into_iter().fold(failure, Failure::because)
        };
        match connection.waiting.remove(&ticket) {
            Some(Waiting::Start { answer, .. }) => {
                let commands = connection.commands.clone();
                agency_run::reply::send_reply(answer, outcome.map(|()| commands).map_err(failure));
            }
            Some(Waiting::Reconnect(reply)) => {
                reply.send(outcome.map_err(failure).and(shown.ok_or_else(connection_gone)));
            }
            Some(Waiting::Shutdown) | None => {}
        }
    }

    fn on_connection_changed(&mut self, name: &str, status: Status) {
        let Some(connection) = self.connections.get_mut(name) else { return };
        let agent = connection.plan.agent.clone();
        tracing::info!(connection = name, ?status, "a connection changed");
        if status == Status::Connected {
            connection.error = None;
        }
        let left_behind = match status {
            Status::Connected => std::mem::take(&mut connection.left_behind),
            _ => Vec::new(),
        };
        if matches!(status, Status::Disconnected | Status::Idle) && connection.machine.retry().is_none() {
            // No retry is planned, so its sessions end.
            connection
                .command(ConnectionCommand::EndSessions { why: connection.give_up_reason(name, status) });
            let lost: Vec<TaskKey> = self.tasks_on_connection(name).collect();
            if let Some(connection) = self.connections.get_mut(name).filter(|_| !lost.is_empty()) {
                connection.left_behind = lost;
            }
        }
        let event = AgentStatusEvent { agent: agent.clone(), status: status_view(status) };
        self.announce_agent_event(&agent, event);
        for key in left_behind {
            self.start_again(key);
        }
        self.forget_ended_connection(name);
    }

    /// Forgets the connection of a single task once it has ended, unless the task ended because of it.
    fn forget_ended_connection(&mut self, name: &str) {
        let is_ended = |connection: &SharedConnection| {
            connection.plan.is_own
                && connection.machine.status() == Status::Idle
                && connection.machine.epoch().is_none()
                && connection.waiting.values().all(|waiting| matches!(waiting, Waiting::Shutdown))
                && connection.left_behind.is_empty()
        };
        if self.connections.get(name).is_some_and(is_ended) {
            self.connections.remove(name);
        }
    }

    /// A name that no other connection has. Tasks of other projects may have the same name.
    pub(super) fn own_connection_name(&self, key: &TaskKey, agent: &str, task: &str) -> String {
        let short = format!("{agent}@{task}");
        let others = self.runs.history.iter().filter(|(other, _)| *other != key);
        match others.flat_map(|(_, runs)| runs).any(|meta| meta.connection_name() == Some(&short)) {
            true => format!("{short}@{}", key.project),
            false => short,
        }
    }

    /// Whether the agent said during the handshake that it resumes no session. It is known before anything is stopped.
    pub(super) fn cannot_resume_sessions(&self, agent: &str) -> bool {
        let of_agent =
            self.connections.values().filter(|connection| canonical_name(&connection.plan.agent) == agent);
        of_agent.filter_map(|connection| connection.resumes).next_back() == Some(false)
    }

    fn tasks_on_connection(&self, name: &str) -> impl Iterator<Item = TaskKey> {
        let sessions = self.runs.live.values().filter(move |live| live.meta.connection_name() == Some(name));
        sessions.map(|live| live.key.clone())
    }

    /// Starts a task again whose run ended with its connection.
    fn start_again(&mut self, key: TaskKey) {
        let environment = self.runs.environments.remove(&key).unwrap_or_default();
        let caller = agency_api::method::Caller { env: environment, ..Default::default() };
        // No caller waits; events say what becomes of it.
        let reply = Reply::without_caller();
        let options = StartOptions::default();
        self.begin(StartRequest { key, caller: &caller, options, is_restart: false }, reply);
    }

    fn announce_agent_event(&mut self, agent: &str, data: impl Into<EventData>) {
        self.announce_event(event::Event {
            seq: 0,
            time: clock::timestamp_of(clock::now()),
            project: None,
            task: None,
            agent: Some(agent.to_owned()),
            run: None,
            data: data.into(),
        });
    }

    pub(super) fn on_connection_report(&mut self, name: &str, attempt: u64, report: ConnectionReport) {
        let Some(connection) = self.connections.get_mut(name) else { return };
        let epoch = Epoch(attempt);
        match report {
            ConnectionReport::Spawned => self.on_connection_event(name, Event::Spawned { epoch }),
            ConnectionReport::SpawnFailed { not_found, cause } => {
                connection.error = Some(cause.clone());
                self.on_connection_event(name, Event::SpawnFailed { epoch, not_found, cause });
            }
            ConnectionReport::Greeted { name: version, resumes } => {
                (connection.version, connection.resumes) = (version, Some(resumes));
                self.on_connection_event(name, Event::Initialized { epoch });
            }
            ConnectionReport::HandshakeFailed { cause } => {
                connection.error = Some(cause.clone());
                self.on_connection_event(name, Event::HandshakeFailed { epoch, cause });
            }
            ConnectionReport::Lost { cause } => {
                // The cause of a failed handshake says more than the exit of the process after it.
                if connection.machine.status() == Status::Connected || connection.error.is_none() {
                    connection.error = Some(cause.clone());
                }
                self.on_connection_event(name, Event::Lost { epoch, cause });
            }
            ConnectionReport::Gone => self.on_connection_event(name, Event::Gone { epoch }),
            ConnectionReport::Sessions(sessions) => {
                connection.sessions = sessions;
                if sessions == 0 && connection.plan.is_own {
                    self.end_connection(name);
                }
            }
        }
        self.leave_when_alone();
    }

    fn end_connection(&mut self, name: &str) {
        self.requests.last += 1;
        let ticket = Ticket(self.requests.last);
        if let Some(connection) = self.connections.get_mut(name) {
            connection.waiting.insert(ticket, Waiting::Shutdown);
        }
        self.on_connection_event(name, Event::Shutdown { ticket });
    }

    pub(super) fn connections_deadline(&self) -> Option<Duration> {
        self.connections.values().filter_map(|connection| connection.machine.deadline()).min()
    }

    pub(super) fn tick_connections(&mut self) {
        let now = clock::now();
        let is_due = |connection: &SharedConnection| {
            connection.machine.deadline().is_some_and(|deadline| deadline <= now)
        };
        let due: Vec<String> = self
            .connections
            .iter()
            .filter(|(_, connection)| is_due(connection))
            .map(|(name, _)| name.clone())
            .collect();
        for name in due {
            self.on_connection_event(&name, Event::Tick);
        }
    }

    /// Ends the connections, after the agents of all tasks have ended.
    pub(super) fn end_connections(&mut self) {
        self.lifetime.quitting = true;
        self.end_orphans();
        for name in self.connections.keys().cloned().collect::<Vec<_>>() {
            self.end_connection(&name);
        }
        self.leave_when_alone();
    }

    pub(super) fn leave_when_alone(&mut self) {
        if self.lifetime.quitting
            && !self.lifetime.ending_orphans
            && !self.lifetime.ending_shells
            && self.connections.values().all(|connection| connection.machine.epoch().is_none())
        {
            self.lifetime.leaving = true;
        }
    }

    /// Finds the connections and sessions that an earlier daemon left. It runs before the search for live runs. Returns the
    /// live sessions.
    pub(super) async fn adopt_connections(&mut self, runs: &FoundRuns, inbox: &mut Inbox) -> HashSet<RunId> {
        let search = self.open_sessions(runs);
        let open_sessions = self.list_during(inbox, search).await;
        let (live, dead): (Vec<_>, Vec<_>) =
            self.find_connections(runs).await.into_iter().partition(|found| found.lives);
        let settled = tokio::task::spawn_blocking(move || {
            let dirs: Vec<RunDir> = dead.into_iter().map(|found| found.dir).collect();
            for dir in &dirs {
                let sessions = open_sessions.values().flatten();
                if let Err(cause) = connection::recover_lines(dir, sessions) {
                    tracing::error!(%cause, dir = %dir.path().display(), "the last output of a connection is lost");
                }
            }
            connection::delete_oldest(&dirs);
            open_sessions
        });
        let mut open_sessions = self.list_during(inbox, settled).await.unwrap_or_default();
        let mut live_sessions = HashSet::new();
        for found in live {
            let sessions = open_sessions.remove(&found.meta.plan.name).unwrap_or_default();
            live_sessions.extend(sessions.iter().map(|session| session.run.clone()));
            self.adopt_connection(found, sessions, inbox).await;
        }
        let closed = tokio::task::spawn_blocking(move || {
            open_sessions.into_values().for_each(|sessions| connection::close_sessions(&sessions))
        });
        if let Err(cause) = self.list_during(inbox, closed).await {
            tracing::error!(%cause, "a session without a connection stays open");
        }
        live_sessions
    }

    async fn find_connections(&mut self, runs: &FoundRuns) -> Vec<FoundConnection> {
        let (state, epoch) = (self.context.state.clone(), self.context.epoch.clone());
        let keepers = runs.keepers.clone();
        let search =
            tokio::task::spawn_blocking(move || connection::find_processes(&state, &epoch, &keepers));
        let found = search.await.unwrap_or_else(|cause| {
            tracing::error!(%cause, "cannot find the connections of earlier daemons");
            Vec::new()
        });
        self.context.problems.extend(found.iter().filter_map(|found| found.problem.clone()));
        found
    }

    /// Sessions that have not ended, by the name of their connection.
    fn open_sessions(
        &self,
        runs: &FoundRuns,
    ) -> impl Future<Output = HashMap<String, Vec<AdoptedSession>>> + use<> {
        let sessions = self.last_sessions(runs);
        let read = tokio::task::spawn_blocking(move || {
            let mut open_sessions: HashMap<String, Vec<AdoptedSession>> = HashMap::new();
            for LastSession { connection, run, dir, claims_a_process } in sessions {
                let progress = JournalProgress::read(&dir.journal()).unwrap_or_else(|cause| {
                    tracing::warn!(%run, %cause, "a session's journal cannot be read; its connection has the lines");
                    JournalProgress::default()
                });
                // The journal may have lost its end. A session that ends deletes its pid file.
                if !progress.is_over && (claims_a_process || dir.pid_file().exists()) {
                    open_sessions.entry(connection).or_default().push(AdoptedSession { run, dir, progress });
                }
            }
            open_sessions
        });
        async { read.await.unwrap_or_default() }
    }

    /// The sessions that may be open: those of the last run of each task. A run begins only when the one before it has ended.
    fn last_sessions(&self, runs: &FoundRuns) -> Vec<LastSession> {
        let own = self.context.state.host();
        let here = runs.runs.iter().filter(|run| run.meta.host == own);
        let last: HashMap<TaskKey, &RunId> = here.map(|run| (key_of(&run.meta), &run.meta.run)).collect();
        let session = |run: &FoundRun| {
            let (meta, key) = (&run.meta, key_of(&run.meta));
            let is_out_of_reach = self.is_out_of_reach(&key);
            let is_owned = is_out_of_reach || self.store.task(&key).is_some();
            if !is_owned || last.get(&key) != Some(&&meta.run) {
                return None;
            }
            let file = self.store.last_content(&key);
            Some(LastSession {
                connection: meta.connection_name()?.to_owned(),
                run: meta.run.clone(),
                dir: run.dir.clone(),
                claims_a_process: !is_out_of_reach
                    && file.is_none_or(|file| file.fields().status.claims_a_process()),
            })
        };
        runs.runs.iter().filter_map(session).collect()
    }

    async fn adopt_connection(
        &mut self,
        found: FoundConnection,
        sessions: Vec<AdoptedSession>,
        inbox: &mut Inbox,
    ) {
        let plan = found.meta.plan.clone();
        let name = plan.name.clone();
        let adoption = ConnectionTask::adopt(self.connection_context(&plan), found.dir, found.meta, sessions);
        match self.list_during(inbox, adoption).await {
            Ok(adopted) => {
                let machine = Connection::new(&plan.display_name);
                let (spec, sessions) = (Some(adopted.spec), adopted.sessions);
                let connection = SharedConnection {
                    spec,
                    sessions,
                    version: adopted.version,
                    resumes: adopted.resumes,
                    ..SharedConnection::new(plan, adopted.commands, machine)
                };
                self.connections.insert(name.clone(), connection);
                self.on_connection_event(&name, Event::Adopted { greeted: adopted.is_greeted });
            }
            Err(cause) => tracing::error!(connection = name, %cause, "cannot adopt a connection"),
        }
    }

    /// The connection of a session that an earlier daemon opened.
    pub(super) fn commands_of_connection(&self, meta: &RunMeta) -> Option<ConnectionSender> {
        self.connections.get(meta.connection_name()?).map(|connection| connection.commands.clone())
    }

    pub(super) fn connections(&mut self, _: Nothing) -> Connections {
        let mut connections: Vec<View> =
            self.connections.keys().filter_map(|name| self.connection_view(name)).collect();
        connections.sort_by(|one, other| one.name.cmp(&other.name));
        Connections { connections }
    }

    fn connection_view(&self, name: &str) -> Option<View> {
        let connection = self.connections.get(name)?;
        let now = clock::now();
        let retry = connection.machine.retry();
        Some(View {
            name: name.to_owned(),
            agent: connection.plan.agent.clone(),
            display_name: connection.plan.display_name.clone(),
            status: status_view(connection.machine.status()),
            sessions: connection.sessions as u64,
            version: connection.version.clone(),
            error: connection.error.clone(),
            retry_in_ms: retry.map(|retry| retry.due.saturating_sub(now).as_millis() as u64),
            attempt: retry.map(|retry| retry.number),
        })
    }

    fn reconnect(&mut self, connection: ConnectionRef, reply: Reply<View>) {
        let name = match self.find_connection(&connection.name) {
            Ok(name) => name,
            Err(failure) => return reply.send(Err(failure)),
        };
        self.requests.last += 1;
        let ticket = Ticket(self.requests.last);
        if let Some(connection) = self.connections.get_mut(&name) {
            connection.waiting.insert(ticket, Waiting::Reconnect(reply));
        }
        self.on_connection_event(&name, Event::Reconnect { ticket });
    }

    fn find_connection(&self, name: &str) -> Result<String, Failure> {
        // An adopted connection of an earlier version may have the alias of an agent as its name.
        for name in [name, canonical_name(name)] {
            if self.connections.contains_key(name) {
                return Ok(name.to_owned());
            }
        }
        let known: Vec<&str> = self.connections.keys().map(String::as_str).collect();
        let failure = Failure::new(format!("there is no connection called `{}`", name.escape_debug()))
            .code(FailureCode::NotFound);
        Err(match known.is_empty() {
            true => failure.because("no task has needed one yet").hint("agency new TASK --driver acp"),
            false => failure.hint(format!("there is: {}", known.join(", "))),
        })
    }

    fn agent_sessions(&mut self, connection: ConnectionRef) -> Result<Later<Sessions>, Failure> {
        let name = self.find_connection(&connection.name)?;
        let commands = self
            .connections
            .get(&name)
            .map(|connection| connection.commands.clone())
            .ok_or_else(connection_gone)?;
        Ok(Later::new(async move {
            let result = sessions_of(commands).await?;
            Ok(Sessions { sessions: result["sessions"].as_array().cloned().unwrap_or_default() })
        }))
    }
}

impl SharedConnection {
    fn new(plan: ConnectionPlan, commands: ConnectionSender, machine: Connection) -> SharedConnection {
        SharedConnection {
            plan,
            machine,
            commands,
            spec: None,
            waiting: HashMap::new(),
            sessions: 0,
            version: None,
            resumes: None,
            error: None,
            failure: None,
            left_behind: Vec::new(),
        }
    }

    /// The message for its sessions when the daemon gives the connection up.
    fn give_up_reason(&self, name: &str, status: Status) -> Option<GiveUpReason> {
        let message =
            format!("the connection to {} is given up: agency reconnect {name}", self.plan.display_name);
        let cause = self.failure.clone().map(|failure| failure.cause.unwrap_or(failure.message));
        (status == Status::Disconnected).then_some(GiveUpReason { message, cause })
    }

    /// Sends a command. The order is kept as long as the queue is not full, and the task of a connection reads quickly.
    fn command(&self, command: ConnectionCommand) {
        match self.commands.try_send(command) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(command)) => {
                let commands = self.commands.clone();
                tokio::spawn(async move { drop(commands.send(command).await) });
            }
        }
    }
}

async fn sessions_of(commands: ConnectionSender) -> Result<Value, Failure> {
    let (answer, listed) = oneshot::channel();
    commands.send(ConnectionCommand::ListSessions { answer }).await.map_err(|_| connection_gone())?;
    listed.await.map_err(|_| connection_gone())?
}

fn start_cancelled() -> Failure {
    Failure::new("the start was cancelled").code(FailureCode::Cancelled)
}

fn connection_gone() -> Failure {
    Failure::new("the connection is gone").code(FailureCode::ConnectionFailed)
}

fn status_view(status: Status) -> Shown {
    match status {
        Status::Idle => Shown::Idle,
        Status::Starting => Shown::Starting,
        Status::Connected => Shown::Connected,
        Status::Disconnected => Shown::Disconnected,
        Status::Reconnecting => Shown::Reconnecting,
    }
}

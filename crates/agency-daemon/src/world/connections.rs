//! Connections to agents that serve many tasks with one process: opened when a task needs one, and opened again when
//! they break.
//!
//! For each connection a state machine of the core decides, and a task of the daemon carries it out.

use std::collections::HashMap;
use std::time::Duration;

use agency_api::connection::{Connection as View, ConnectionRef, Connections, Sessions, Status as Shown};
use agency_api::event::{self, AgentStatusEvent, ErrorEvent, EventData};
use agency_api::method::{self, Nothing};
use agency_api::paths::RunDir;
use agency_api::{Failure, FailureCode};
use agency_core::connection::{ConnectError, Connection, Effect, Event, Status};
use agency_core::ids::{Epoch, RunId, TaskKey, Ticket};
use agency_run::connection::{
    self, AdoptedSession, ConnectionCommand, ConnectionContext, ConnectionMeta, ConnectionPlan,
    ConnectionSpec, ConnectionTask, GiveUpReason, JournalProgress,
};
use agency_run::plan::StartOptions;
use agency_run::report::ConnectionReport;
use agency_run::run_meta::{self, RunMeta};
use agency_store::clock;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::World;
use super::boot::key_of;
use super::starts::StartRequest;
use crate::reply::Reply;
use crate::router::{Later, Router};

pub(super) fn register(router: &mut Router) {
    router.on(method::ConnectionList, World::connections);
    router.on_reply(method::ConnectionReconnect, World::reconnect);
    router.on(method::ConnectionSessions, World::agent_sessions);
}

pub type Board = mpsc::Sender<ConnectionCommand>;

pub(super) struct SharedConnection {
    plan: ConnectionPlan,
    machine: Connection,
    board: Board,
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

enum Waiting {
    Start(oneshot::Sender<Result<Board, Failure>>),
    Reconnect(Reply<View>),
    Shutdown,
}

impl World {
    fn switchroom(&self, plan: &ConnectionPlan) -> ConnectionContext {
        ConnectionContext {
            plan: plan.clone(),
            state: self.context.state.clone(),
            epoch: self.context.epoch,
            keeper_binary: self.context.keeper_binary.clone(),
            rule_book: self.context.rule_book.clone(),
            reporter: self.context.reporter.sink(),
        }
    }

    /// Gives a start its connection: the existing one, or a new one.
    pub(super) fn ensure_wire(
        &mut self,
        plan: ConnectionPlan,
        spec: ConnectionSpec,
        answer: oneshot::Sender<Result<Board, Failure>>,
    ) {
        let name = plan.name.clone();
        if !self.connections.contains_key(&name) {
            let board = ConnectionTask::open(self.switchroom(&plan));
            let machine = Connection::new(&plan.display_name);
            self.connections.insert(name.clone(), SharedConnection::new(plan, board, machine));
        }
        self.requests.last += 1;
        let ticket = Ticket(self.requests.last);
        if let Some(wire) = self.connections.get_mut(&name) {
            // The next process is started as the last start asked for.
            wire.spec = Some(spec);
            wire.waiting.insert(ticket, Waiting::Start(answer));
        }
        self.wire_event(&name, Event::Ensure { ticket });
    }

    fn wire_event(&mut self, name: &str, event: Event) {
        let Some(wire) = self.connections.get_mut(name) else { return };
        let effects = wire.machine.on(event, clock::now());
        for effect in effects {
            self.wire_effect(name, effect);
        }
    }

    fn wire_effect(&mut self, name: &str, effect: Effect) {
        let Some(wire) = self.connections.get_mut(name) else { return };
        match effect {
            Effect::Spawn { epoch } => match wire.spec.clone() {
                Some(spec) => {
                    wire.command(ConnectionCommand::Spawn { attempt: epoch.0, spec: Box::new(spec) })
                }
                None => {
                    let cause = "the daemon does not know any more how to start it".to_owned();
                    self.wire_event(name, Event::SpawnFailed { epoch, not_found: false, cause });
                }
            },
            Effect::End { epoch } => wire.command(ConnectionCommand::End { attempt: epoch.0 }),
            Effect::Announce { status } => self.wire_changed(name, status),
            Effect::Fail(error) => {
                let agent = wire.plan.agent.clone();
                wire.failure = Some(error.clone());
                let ConnectError { message, cause } = error;
                tracing::error!(connection = name, %message, cause, "a connection failed");
                let event = ErrorEvent { message, cause, agent: Some(agent.clone()) };
                self.announce_wire(&agent, event);
            }
            Effect::Answer { ticket, answer } => self.wire_answer(name, ticket, answer),
        }
    }

    fn wire_answer(&mut self, name: &str, ticket: Ticket, outcome: Result<(), ConnectError>) {
        let shown = self.wire_view(name);
        let Some(wire) = self.connections.get_mut(name) else { return };
        let failure = |err: ConnectError| {
            let failure = Failure::new(err.message).code(FailureCode::ConnectionFailed);
            err.cause.into_iter().fold(failure, Failure::because)
        };
        match wire.waiting.remove(&ticket) {
            Some(Waiting::Start(answer)) => {
                let board = wire.board.clone();
                agency_run::reply::send_reply(answer, outcome.map(|()| board).map_err(failure));
            }
            Some(Waiting::Reconnect(reply)) => {
                reply.send(outcome.map_err(failure).and(shown.ok_or_else(connection_gone)));
            }
            Some(Waiting::Shutdown) | None => {}
        }
    }

    fn wire_changed(&mut self, name: &str, status: Status) {
        let Some(wire) = self.connections.get_mut(name) else { return };
        let agent = wire.plan.agent.clone();
        tracing::info!(connection = name, ?status, "a connection changed");
        if status == Status::Connected {
            wire.error = None;
        }
        let left_behind = match status {
            Status::Connected => std::mem::take(&mut wire.left_behind),
            _ => Vec::new(),
        };
        if matches!(status, Status::Disconnected | Status::Idle) && wire.machine.retry().is_none() {
            // No retry is planned, so its sessions end.
            wire.command(ConnectionCommand::EndSessions { why: wire.given_up(name, status) });
            let lost: Vec<TaskKey> = self.seated_at(name).collect();
            if let Some(wire) = self.connections.get_mut(name).filter(|_| !lost.is_empty()) {
                wire.left_behind = lost;
            }
        }
        let event = AgentStatusEvent { agent: agent.clone(), status: shown(status) };
        self.announce_wire(&agent, event);
        for key in left_behind {
            self.start_again(key);
        }
        self.forget_ended(name);
    }

    /// Forgets the connection of a single task once it has ended, unless the task ended because of it.
    fn forget_ended(&mut self, name: &str) {
        let is_ended = |wire: &SharedConnection| {
            wire.plan.is_own
                && wire.machine.status() == Status::Idle
                && wire.machine.epoch().is_none()
                && wire.waiting.values().all(|waiting| matches!(waiting, Waiting::Shutdown))
                && wire.left_behind.is_empty()
        };
        if self.connections.get(name).is_some_and(is_ended) {
            self.connections.remove(name);
        }
    }

    /// A name that no other connection has. Tasks of other projects may have the same name.
    pub(super) fn own_wire_name(&self, key: &TaskKey, agent: &str, task: &str) -> String {
        let short = format!("{agent}@{task}");
        let others = self.runs.history.iter().filter(|(other, _)| *other != key);
        match others.flat_map(|(_, runs)| runs).any(|meta| meta.connection_name() == Some(&short)) {
            true => format!("{short}@{}", key.project),
            false => short,
        }
    }

    /// Whether the agent said during the handshake that it resumes no session. It is known before anything is stopped.
    pub(super) fn takes_up_no_session(&self, agent: &str) -> bool {
        let of_agent = self.connections.values().filter(|wire| wire.plan.agent == agent);
        of_agent.filter_map(|wire| wire.resumes).next_back() == Some(false)
    }

    fn seated_at(&self, name: &str) -> impl Iterator<Item = TaskKey> {
        let seated = self.runs.live.values().filter(move |live| live.meta.connection_name() == Some(name));
        seated.map(|live| live.key.clone())
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

    fn announce_wire(&mut self, agent: &str, data: impl Into<EventData>) {
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

    pub(super) fn on_wire_news(&mut self, name: &str, attempt: u64, news: ConnectionReport) {
        let Some(wire) = self.connections.get_mut(name) else { return };
        let epoch = Epoch(attempt);
        match news {
            ConnectionReport::Spawned => self.wire_event(name, Event::Spawned { epoch }),
            ConnectionReport::SpawnFailed { not_found, cause } => {
                wire.error = Some(cause.clone());
                self.wire_event(name, Event::SpawnFailed { epoch, not_found, cause });
            }
            ConnectionReport::Greeted { name: version, resumes } => {
                (wire.version, wire.resumes) = (version, Some(resumes));
                self.wire_event(name, Event::Initialized { epoch });
            }
            ConnectionReport::HandshakeFailed { cause } => {
                wire.error = Some(cause.clone());
                self.wire_event(name, Event::HandshakeFailed { epoch, cause });
            }
            ConnectionReport::Lost { cause } => {
                // The cause of a failed handshake says more than the exit of the process after it.
                if wire.machine.status() == Status::Connected || wire.error.is_none() {
                    wire.error = Some(cause.clone());
                }
                self.wire_event(name, Event::Lost { epoch, cause });
            }
            ConnectionReport::Gone => self.wire_event(name, Event::Gone { epoch }),
            ConnectionReport::Sessions(sessions) => {
                wire.sessions = sessions;
                if sessions == 0 && wire.plan.is_own {
                    self.end_wire(name);
                }
            }
        }
        self.leave_when_alone();
    }

    fn end_wire(&mut self, name: &str) {
        self.requests.last += 1;
        let ticket = Ticket(self.requests.last);
        if let Some(wire) = self.connections.get_mut(name) {
            wire.waiting.insert(ticket, Waiting::Shutdown);
        }
        self.wire_event(name, Event::Shutdown { ticket });
    }

    pub(super) fn wires_deadline(&self) -> Option<Duration> {
        self.connections.values().filter_map(|wire| wire.machine.deadline()).min()
    }

    pub(super) fn tick_wires(&mut self) {
        let now = clock::now();
        let is_due =
            |wire: &SharedConnection| wire.machine.deadline().is_some_and(|deadline| deadline <= now);
        let due: Vec<String> =
            self.connections.iter().filter(|(_, wire)| is_due(wire)).map(|(name, _)| name.clone()).collect();
        for name in due {
            self.wire_event(&name, Event::Tick);
        }
    }

    /// Ends the connections, after the agents of all tasks have ended.
    pub(super) fn end_wires(&mut self) {
        self.lifetime.quitting = true;
        for name in self.connections.keys().cloned().collect::<Vec<_>>() {
            self.end_wire(&name);
        }
        self.leave_when_alone();
    }

    fn leave_when_alone(&mut self) {
        if self.lifetime.quitting && self.connections.values().all(|wire| wire.machine.epoch().is_none()) {
            self.lifetime.leaving = true;
        }
    }

    /// Finds the connections and sessions that an earlier daemon left. It runs before the search for live runs.
    pub(super) async fn find_wires(&mut self) {
        let sittings = self.sittings().await;
        let (live, dead): (Vec<_>, Vec<_>) =
            connection::find_processes(&self.context.state).into_iter().partition(|(_, _, lives)| *lives);
        let settled = tokio::task::spawn_blocking(move || {
            let dirs: Vec<RunDir> = dead.into_iter().map(|(dir, ..)| dir).collect();
            for dir in &dirs {
                let seated = sittings.values().flatten();
                if let Err(cause) = connection::recover_lines(dir, seated) {
                    tracing::error!(%cause, dir = %dir.path().display(), "the last output of a connection is lost");
                }
            }
            connection::delete_oldest(&dirs);
            sittings
        });
        let mut sittings = settled.await.unwrap_or_default();
        for (dir, meta, _) in live {
            let seated = sittings.remove(&meta.plan.name).unwrap_or_default();
            self.adopt_wire(dir, meta, seated).await;
        }
        let closed = tokio::task::spawn_blocking(move || {
            sittings.into_values().try_for_each(|seated| connection::close_sessions(&seated))
        });
        if let Err(cause) = closed.await.map_err(std::io::Error::other).and_then(|closed| closed) {
            tracing::error!(%cause, "a session without a connection stays open");
        }
    }

    /// Sessions that have not ended, by the name of their connection.
    async fn sittings(&self) -> HashMap<String, Vec<AdoptedSession>> {
        let runs = run_meta::all(&self.context.state);
        let own = self.context.state.host().to_owned();
        let sessions: Vec<(String, RunId, RunDir)> = runs
            .into_iter()
            .filter(|(_, meta)| meta.host == own && self.store.task(&key_of(meta)).is_some())
            .filter_map(|(dir, meta)| Some((meta.connection_name()?.to_owned(), meta.run.clone(), dir)))
            .collect();
        let read = tokio::task::spawn_blocking(move || {
            let mut sittings: HashMap<String, Vec<AdoptedSession>> = HashMap::new();
            for (name, run, dir) in sessions {
                match JournalProgress::read(&dir.journal()) {
                    Ok(progress) if progress.is_over => {}
                    Ok(progress) => {
                        sittings.entry(name).or_default().push(AdoptedSession { run, dir, progress })
                    }
                    Err(cause) => tracing::warn!(%run, %cause, "a session's journal cannot be read"),
                }
            }
            sittings
        });
        read.await.unwrap_or_default()
    }

    async fn adopt_wire(&mut self, dir: RunDir, meta: ConnectionMeta, seated: Vec<AdoptedSession>) {
        let plan = meta.plan.clone();
        let name = plan.name.clone();
        match ConnectionTask::adopt(self.switchroom(&plan), dir, meta, seated).await {
            Ok(adopted) => {
                let machine = Connection::new(&plan.display_name);
                let (spec, sessions) = (Some(adopted.spec), adopted.sessions);
                let wire = SharedConnection {
                    spec,
                    sessions,
                    version: adopted.version,
                    resumes: adopted.resumes,
                    ..SharedConnection::new(plan, adopted.commands, machine)
                };
                self.connections.insert(name.clone(), wire);
                self.wire_event(&name, Event::Adopted { greeted: adopted.is_greeted });
            }
            Err(cause) => tracing::error!(connection = name, %cause, "cannot adopt a connection"),
        }
    }

    /// The connection of a session that an earlier daemon opened.
    pub(super) fn board_of(&self, meta: &RunMeta) -> Option<Board> {
        self.connections.get(meta.connection_name()?).map(|wire| wire.board.clone())
    }

    fn connections(&mut self, _: Nothing) -> Connections {
        let mut connections: Vec<View> =
            self.connections.keys().filter_map(|name| self.wire_view(name)).collect();
        connections.sort_by(|one, other| one.name.cmp(&other.name));
        Connections { connections }
    }

    fn wire_view(&self, name: &str) -> Option<View> {
        let wire = self.connections.get(name)?;
        let now = clock::now();
        let retry = wire.machine.retry();
        Some(View {
            name: name.to_owned(),
            agent: wire.plan.agent.clone(),
            display_name: wire.plan.display_name.clone(),
            status: shown(wire.machine.status()),
            sessions: wire.sessions as u64,
            version: wire.version.clone(),
            error: wire.error.clone(),
            retry_in_ms: retry.map(|retry| retry.due.saturating_sub(now).as_millis() as u64),
            attempt: retry.map(|retry| retry.number),
        })
    }

    fn reconnect(&mut self, connection: ConnectionRef, reply: Reply<View>) {
        let name = match self.wire_named(&connection.name) {
            Ok(name) => name,
            Err(failure) => return reply.send(Err(failure)),
        };
        self.requests.last += 1;
        let ticket = Ticket(self.requests.last);
        if let Some(wire) = self.connections.get_mut(&name) {
            wire.waiting.insert(ticket, Waiting::Reconnect(reply));
        }
        self.wire_event(&name, Event::Reconnect { ticket });
    }

    fn wire_named(&self, name: &str) -> Result<String, Failure> {
        if self.connections.contains_key(name) {
            return Ok(name.to_owned());
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
        let name = self.wire_named(&connection.name)?;
        let board = self.connections.get(&name).map(|wire| wire.board.clone()).ok_or_else(connection_gone)?;
        Ok(Later::new(async move {
            let result = sessions_of(board).await?;
            Ok(Sessions { sessions: result["sessions"].as_array().cloned().unwrap_or_default() })
        }))
    }
}

impl SharedConnection {
    fn new(plan: ConnectionPlan, board: Board, machine: Connection) -> SharedConnection {
        SharedConnection {
            plan,
            machine,
            board,
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
    fn given_up(&self, name: &str, status: Status) -> Option<GiveUpReason> {
        let message =
            format!("the connection to {} is given up: agency reconnect {name}", self.plan.display_name);
        let cause = self.failure.clone().map(|failure| failure.cause.unwrap_or(failure.message));
        (status == Status::Disconnected).then_some(GiveUpReason { message, cause })
    }

    /// Sends a command. The order is kept as long as the queue is not full, and the task of a connection reads quickly.
    fn command(&self, command: ConnectionCommand) {
        match self.board.try_send(command) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(command)) => {
                let board = self.board.clone();
                tokio::spawn(async move { drop(board.send(command).await) });
            }
        }
    }
}

async fn sessions_of(board: Board) -> Result<Value, Failure> {
    let (answer, told) = oneshot::channel();
    board.send(ConnectionCommand::ListSessions { answer }).await.map_err(|_| connection_gone())?;
    told.await.map_err(|_| connection_gone())?
}

fn connection_gone() -> Failure {
    Failure::new("the connection is gone").code(FailureCode::ConnectionFailed)
}

fn shown(status: Status) -> Shown {
    match status {
        Status::Idle => Shown::Idle,
        Status::Starting => Shown::Starting,
        Status::Connected => Shown::Connected,
        Status::Disconnected => Shown::Disconnected,
        Status::Reconnecting => Shown::Reconnecting,
    }
}

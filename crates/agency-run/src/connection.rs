//! One connection to an agent that serves many sessions: its process, and a session for every task on it.
//!
//! Decides nothing: it starts a process when the daemon orders it, reports what becomes of the process, and carries lines.
//! Each line goes to the session that it belongs to. A session is to its run what a keeper is to a process.

mod left_over;
mod meta;
mod process;
mod session;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agency_api::keeper::{CLOSED_TAG, Frame, FromKeeper, InputSource, LaunchSpec, Start, Stdio, ToKeeper};
use agency_api::paths::{RunDir, StateDir, create_private};
use agency_api::{Bytes, Failure, FailureCode};
use agency_core::agent::Driver;
use agency_core::agent_state::Timing;
use agency_core::ids::RunId;
use agency_driver::acp::router::{Recipient, RoutedLine};
use agency_driver::protocol_run::ConversationTerms;
use agency_journal::{Body, Record, Stream};
use agency_keeper::pidfile::PidFile;
use agency_store::clock;
use agency_store::epoch::DaemonEpoch;
use agency_store::program_memory::ProgramMemories;
use agency_store::rule_book::RuleBook;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::environment::{self, Environment};
use crate::keeper_link::{KeeperLink, KeeperOutput};
use crate::launch::{LaunchError, start_keeper};
use crate::line_queue::WrittenLine;
use crate::process_tree::end_tree;
use crate::reply::send_reply;
use crate::report::{ConnectionReport, Report, ReportSink};
use crate::run_context::{FoldSettings, RunContext};
use crate::timer::sleep_until;
use crate::{fold, limits, run_meta};
pub use left_over::{
    AdoptedSession, FoundConnection, close_sessions, delete_oldest, find_processes, find_session,
    recover_lines,
};
pub use meta::{ConnectionMeta, ConnectionPlan};
use process::{Greeting, Kill, LineSender, Process};
use session::{FromSession, Host, LinePosition, Session, SessionLine, ToSession};
pub use session::{GiveUpReason, JournalProgress, owner_in_journal};

/// The number of the attempt that an adopted process belongs to.
const FIRST_ATTEMPT: u64 = 1;

/// Between the end of the process's input and SIGKILL.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// A process that ends closes its pipes first. Its end follows within this time; otherwise it only closed them.
const EXIT_FOLLOWS_WITHIN: Duration = Duration::from_millis(500);

/// Between SIGTERM and SIGKILL for a process that has closed its input or its output.
const CLOSED_GRACE: Duration = Duration::from_secs(2);

const COMMANDS_WAITING: usize = 256;

/// How a process of a connection is started.
#[derive(Debug, Clone)]
pub struct ConnectionSpec {
    /// The command.
    pub argv: Vec<Bytes>,
    /// Its environment.
    pub env: Environment,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Programs that `stop` leaves alone although the agent started them.
    pub spare: Vec<String>,
    /// Soft and hard limit of open files.
    pub open_files: Option<(u64, u64)>,
}

/// The facts that a connection knows from its beginning and never changes.
#[derive(Clone)]
pub struct ConnectionContext {
    /// Which connection it is.
    pub plan: ConnectionPlan,
    /// The daemon's state directory.
    pub state: StateDir,
    /// The epoch of the daemon.
    pub epoch: Arc<DaemonEpoch>,
    /// The keeper's program.
    pub keeper_binary: PathBuf,
    /// The screen rules.
    pub rule_book: Arc<RuleBook>,
    /// The memory of programs.
    pub memories: Arc<ProgramMemories>,
    /// Where reports go.
    pub reporter: ReportSink,
}

/// A command of the daemon to a connection.
#[derive(Debug)]
pub enum ConnectionCommand {
    /// Start a process.
    Spawn {
        /// Reports about the process carry this number.
        attempt: u64,
        /// How to start it.
        spec: Box<ConnectionSpec>,
    },
    /// Close the input of the process, and kill it if that does not end it.
    End {
        /// The attempt that the process belongs to.
        attempt: u64,
    },
    /// Open a session for a run whose directory exists.
    OpenSession {
        /// The run.
        run: RunId,
        /// The directory of the run.
        dir: RunDir,
        /// The session was open under an earlier daemon: it gets that session or none.
        is_adopted: bool,
        /// Where the run's end of the session goes.
        answer: oneshot::Sender<Result<UnixStream, Failure>>,
    },
    /// End all sessions: there will be no process any more.
    EndSessions {
        /// The reason, unless the user ended the connection.
        why: Option<GiveUpReason>,
    },
    /// List the sessions that the agent knows.
    ListSessions {
        /// Where the agent's answer goes.
        answer: oneshot::Sender<Result<Value, Failure>>,
    },
}

/// A process of an earlier daemon that this daemon holds now.
pub struct AdoptedConnection {
    /// Where commands go.
    pub commands: mpsc::Sender<ConnectionCommand>,
    /// How the process was started.
    pub spec: ConnectionSpec,
    /// The agent has answered `initialize`.
    pub is_greeted: bool,
    /// The agent's own name and version.
    pub version: Option<String>,
    /// Whether the agent can resume a session of another process, once it has said so.
    pub resumes: Option<bool>,
    /// How many sessions are open.
    pub sessions: usize,
}

/// The task that runs a connection.
pub struct ConnectionTask {
    context: ConnectionContext,
    process: Option<Process>,
    sessions: BTreeMap<RunId, Session>,
    /// The runs' ends of adopted sessions that no run has asked for yet.
    unclaimed: HashMap<RunId, UnixStream>,
    from_sessions: mpsc::Receiver<(RunId, FromSession)>,
    /// A copy for each session.
    to_connection: mpsc::Sender<(RunId, FromSession)>,
}

/// Sessions of an earlier daemon, after this daemon has opened them again.
#[derive(Default)]
struct ReopenedSessions {
    /// On this process, as their journals say.
    known: Vec<AdoptedSession>,
    /// Their journals name no connection.
    without_note: Vec<RunId>,
    /// They must connect to this process first.
    unconnected: Vec<RunId>,
}

/// Why a process could not be started.
struct SpawnError {
    not_found: bool,
    cause: String,
}

impl SpawnError {
    fn new(cause: &dyn std::fmt::Display) -> SpawnError {
        SpawnError { not_found: false, cause: cause.to_string() }
    }
}

impl From<LaunchError> for SpawnError {
    fn from(error: LaunchError) -> SpawnError {
        match error {
            LaunchError::Step { what, source } => SpawnError {
                not_found: source.kind() == io::ErrorKind::NotFound,
                cause: format!("cannot {what}: {source}"),
            },
            other => SpawnError::new(&other),
        }
    }
}

impl ConnectionTask {
    /// Begins without a process.
    pub fn open(context: ConnectionContext) -> mpsc::Sender<ConnectionCommand> {
        let (commands, inbox) = mpsc::channel(COMMANDS_WAITING);
        tokio::spawn(ConnectionTask::empty(context).run(inbox));
        commands
    }

    fn empty(context: ConnectionContext) -> ConnectionTask {
        let (to_connection, from_sessions) = mpsc::channel(COMMANDS_WAITING);
        let (sessions, unclaimed) = (BTreeMap::new(), HashMap::new());
        ConnectionTask { context, process: None, sessions, unclaimed, from_sessions, to_connection }
    }

    /// Begins with a process of an earlier daemon and its sessions.
    pub async fn adopt(
        context: ConnectionContext,
        dir: RunDir,
        meta: ConnectionMeta,
        sessions: Vec<AdoptedSession>,
    ) -> io::Result<AdoptedConnection> {
        let (commands, inbox) = mpsc::channel(COMMANDS_WAITING);
        let mut task = ConnectionTask::empty(context);
        task.resume(dir, sessions).await?;
        let process = task.process.as_ref();
        let environment = process.map(|process| process.link.environment.clone()).unwrap_or_default();
        let env = environment::from_wire(environment);
        let (cwd, spare) = (PathBuf::from(meta.cwd.as_os_str()), meta.spare);
        let spec = ConnectionSpec { argv: meta.argv, env, cwd, spare, open_files: None };
        let is_greeted = process.is_some_and(Process::is_greeted);
        let greeted = process.and_then(|process| process.router.greeting()?.ok());
        let version = greeted.and_then(|greeted| process::agent_version(&greeted.capabilities));
        let resumes = greeted.map(|greeted| process::can_resume(&greeted.capabilities));
        let sessions = task.sessions.len();
        tokio::spawn(task.run(inbox));
        Ok(AdoptedConnection { commands, spec, is_greeted, version, resumes, sessions })
    }

    async fn resume(&mut self, dir: RunDir, sessions: Vec<AdoptedSession>) -> io::Result<()> {
        let id = left_over::connection_id(&dir);
        let context = self.run_context(&id, dir.clone(), Vec::new(), None);
        let link = KeeperLink::connect(context).await.map_err(io::Error::other)?;
        link.restore_pid_file();
        let mut process = Process::new(FIRST_ATTEMPT, link);
        let ReopenedSessions { known, without_note, mut unconnected } =
            self.reopen_sessions(&process.link, &id, sessions).await;
        unconnected.extend(self.read_journal(&mut process, &dir, without_note).await?);
        for adopted in &known {
            process.remember(adopted).await;
            if let Some(session) = self.sessions.get_mut(&adopted.run)
                && adopted.progress.has_unknown_gap
            {
                session.pass_gap(process.next_seq, u64::MAX).await;
            }
        }
        process.repair_input();
        for run in unconnected {
            if let Some(connected) = process.connected_message(clock::now()) {
                self.tell(&run, connected).await;
            }
        }
        process.link.follow(process.next_seq).await?;
        self.process = Some(process);
        Ok(())
    }

    /// Opens the sessions that an earlier daemon had opened.
    async fn reopen_sessions(
        &mut self,
        link: &KeeperLink,
        id: &str,
        sessions: Vec<AdoptedSession>,
    ) -> ReopenedSessions {
        let mut reopened = ReopenedSessions::default();
        for adopted in sessions {
            let AdoptedSession { run, dir, progress } = &adopted;
            let (mut session, run_end) = match self.make_session(link, run.clone(), dir.clone(), true) {
                Ok(made) => made,
                Err(cause) => {
                    tracing::error!(%run, %cause, "cannot adopt a session");
                    continue;
                }
            };
            let is_from_here = progress.connection.as_deref() == Some(id);
            if is_from_here {
                (session.held, session.knows_gaps_until) = (progress.last_line, progress.knows_gaps_until);
            }
            self.unclaimed.insert(run.clone(), run_end);
            self.sessions.insert(run.clone(), session);
            match progress.connection {
                Some(_) if is_from_here && progress.greeting.is_some() => reopened.known.push(adopted),
                Some(_) => {
                    if !is_from_here && !progress.is_lost {
                        let cause = "the connection was another one before".to_owned();
                        self.tell(run, ToSession::Lost { cause }).await;
                    }
                    reopened.unconnected.push(run.clone());
                }
                None => reopened.without_note.push(run.clone()),
            }
        }
        reopened
    }

    /// Reads the journal of an earlier daemon and passes on what the sessions do not have. Returns the sessions that it could not greet.
    async fn read_journal(
        &mut self,
        process: &mut Process,
        dir: &RunDir,
        mut without_note: Vec<RunId>,
    ) -> io::Result<Vec<RunId>> {
        let (journal, written_until) = (dir.journal(), process.link.next_seq_at_gone);
        let records = tokio::task::spawn_blocking(move || fold::records(&journal, 0, u64::MAX));
        let records = records.await.map_err(io::Error::other)?.unwrap_or_else(|cause| {
            let connection = &process.link.context.id;
            tracing::error!(%cause, %connection, "the journal of a connection cannot be read");
            Vec::new()
        });
        process.shown_unwritten = None;
        for (number, record) in records.iter().enumerate() {
            match &record.body {
                Body::Gap { .. } => {
                    let until_seq = records.get(number + 1).map_or(record.seq + 1, |next| next.seq);
                    self.on_gap(process, until_seq, record.at_ns).await;
                }
                _ => self.route(process, record).await,
            }
            // The session is new, or its journal was lost: it gets the greeting, then all of its lines.
            if !without_note.is_empty()
                && let Some(connected) = process.connected_message(process.last_record_at())
            {
                for run in std::mem::take(&mut without_note) {
                    self.tell(&run, connected.clone()).await;
                }
            }
        }
        if process.next_seq.max(1) < written_until {
            self.on_gap(process, written_until, u64::MAX).await;
            process.next_seq = written_until;
        }
        process.shown_unwritten = Some(0);
        // From here on all lines are new, also if the journal has lost lines that a session's journal has.
        self.sessions.values_mut().for_each(|session| session.held = LinePosition::default());
        Ok(without_note)
    }

    /// The journal lacks records before this one. `until_at_ns` is the time of that record.
    async fn on_gap(&mut self, process: &mut Process, until_seq: u64, until_at_ns: u64) {
        let connection = &self.context.plan.name;
        tracing::warn!(connection, until_seq, "the journal of a connection lacks records");
        process.has_gap = true;
        process.router.on_gap();
        for session in self.sessions.values_mut() {
            session.pass_gap(until_seq, until_at_ns).await;
        }
    }

    async fn run(mut self, mut inbox: mpsc::Receiver<ConnectionCommand>) {
        loop {
            if let Some(mut process) = self.process.take() {
                match self.settle(&mut process).await {
                    Ok(true) => self.process = Some(process),
                    Ok(false) => self.on_exit(process).await,
                    Err(cause) => self.on_hangup(process, &cause).await,
                }
            }
            let deadline = sleep_until(self.process.as_ref().and_then(Process::deadline));
            tokio::select! {
                command = inbox.recv() => match command {
                    Some(command) => self.obey(command).await,
                    // The daemon exits; the process stays.
                    None => return,
                },
                Some((run, message)) = self.from_sessions.recv() => self.on_session(run, message).await,
                filled = fill(&mut self.process) => if let Err(cause) = filled
                    && let Some(process) = self.process.take()
                {
                    self.on_hangup(process, &cause).await;
                },
                () = deadline => self.kill_if_due().await,
            }
        }
    }

    async fn obey(&mut self, command: ConnectionCommand) {
        match command {
            ConnectionCommand::Spawn { attempt, spec } => self.spawn(attempt, &spec).await,
            ConnectionCommand::End { attempt } => self.end(attempt).await,
            ConnectionCommand::OpenSession { run, dir, is_adopted, answer } => {
                let run_end = match (self.unclaimed.remove(&run), is_adopted) {
                    (Some(run_end), _) => Ok(run_end),
                    (None, true) => Err(Failure::new("the session is over").code(FailureCode::NotRunning)),
                    (None, false) => self.open_session(run, dir).await,
                };
                send_reply(answer, run_end);
                self.report_sessions().await;
            }
            ConnectionCommand::EndSessions { why } => {
                self.tell_all(|| ToSession::Over { why: why.clone() }).await;
            }
            ConnectionCommand::ListSessions { answer } => self.list_sessions(answer),
        }
    }

    async fn report(&self, attempt: u64, report: ConnectionReport) {
        let name = self.context.plan.name.clone();
        self.context.reporter.report(Report::Connection { name, attempt, report }).await;
    }

    async fn report_sessions(&self) {
        self.report(0, ConnectionReport::Sessions(self.sessions.len())).await;
    }

    fn run_context(
        &self,
        id: &str,
        dir: RunDir,
        spare: Vec<String>,
        open_files: Option<(u64, u64)>,
    ) -> RunContext {
        RunContext {
            id: RunId(id.to_owned()),
            name: self.context.plan.name.clone(),
            driver: Driver::Acp,
            is_session: false,
            conversation: ConversationTerms::Stream,
            before: Vec::new(),
            dir,
            epoch: self.context.epoch.clone(),
            owner: None,
            keeper_binary: self.context.keeper_binary.clone(),
            open_files,
            spare,
            fold: FoldSettings { timing: Timing::default(), scrollback: 0, program: String::new() },
            rule_book: self.context.rule_book.clone(),
            memories: self.context.memories.clone(),
            task_words: Arc::default(),
        }
    }

    async fn spawn(&mut self, attempt: u64, spec: &ConnectionSpec) {
        match self.start_process(spec).await {
            Ok(link) => {
                let mut process = Process::new(attempt, link);
                let greeting = process.router.initialize();
                process.lines.push(greeting, LineSender::Connection);
                self.report(attempt, ConnectionReport::Spawned).await;
                match process.link.follow(0).await {
                    Ok(()) => self.process = Some(process),
                    Err(cause) => self.on_hangup(process, &cause).await,
                }
            }
            Err(SpawnError { not_found, cause }) => {
                self.report(attempt, ConnectionReport::SpawnFailed { not_found, cause }).await;
            }
        }
    }

    async fn start_process(&self, spec: &ConnectionSpec) -> Result<KeeperLink, SpawnError> {
        let id = run_meta::new_run_id().map_err(|err| SpawnError::new(&err))?;
        let dir = self.context.state.connection(&id.0);
        let meta = ConnectionMeta {
            plan: self.context.plan.clone(),
            host: self.context.state.host().to_owned(),
            started_at: clock::timestamp(),
            argv: spec.argv.clone(),
            cwd: spec.cwd.as_path().into(),
            spare: spec.spare.clone(),
        };
        let (keeper, made, wanted) = (self.context.keeper_binary.clone(), dir.clone(), spec.clone());
        let (run, socket) = (id.clone(), self.context.state.daemon_socket());
        let started = tokio::task::spawn_blocking(move || {
            let prepared = create_private(&made.journal()).and_then(|()| meta.write(&made));
            let launch = prepared.and_then(|()| launch_spec(&run, &meta.plan.name, &made, wanted, &socket));
            let launch =
                launch.map(|launch| LaunchSpec { owner: serde_json::to_value(&meta).ok(), ..launch });
            let launch =
                launch.map_err(|source| LaunchError::Step { what: "make its directory".into(), source });
            launch.and_then(|launch| start_keeper(&keeper, &launch, None, None)).inspect_err(|_| {
                // This call made the directory, and nothing in it is worth keeping.
                if let Err(cause) = std::fs::remove_dir_all(made.path()) {
                    tracing::warn!(%cause, "cannot delete the directory of a failed connection");
                }
            })
        });
        started.await.map_err(|err| SpawnError::new(&err))??;
        let context = self.run_context(&id.0, dir, spec.spare.clone(), spec.open_files);
        KeeperLink::connect(context).await.map_err(|err| SpawnError::new(&err))
    }

    async fn end(&mut self, attempt: u64) {
        let Some(process) = self.process.as_mut().filter(|process| process.attempt == attempt) else {
            return;
        };
        process.kill = Some(Kill { at: clock::now() + ENDS_WITHIN, grace: Duration::ZERO });
        if let Err(cause) = process.link.frames.send_message(&ToKeeper::CloseInput).await
            && let Some(process) = self.process.take()
        {
            self.on_hangup(process, &cause).await;
        }
    }

    async fn open_session(&mut self, run: RunId, dir: RunDir) -> Result<UnixStream, Failure> {
        let process = self.process.as_ref().filter(|process| process.is_greeted());
        let process =
            process.ok_or_else(|| Failure::new(self.not_connected()).code(FailureCode::ConnectionFailed))?;
        let cannot = |err: io::Error| {
            Failure::new("the session's journal cannot be written").code(FailureCode::IoError).caused_by(&err)
        };
        let (session, run_end) = self.make_session(&process.link, run.clone(), dir, false).map_err(cannot)?;
        // The process may have been silent for long.
        let connected = process.connected_message(clock::now());
        self.sessions.insert(run.clone(), session);
        if let Some(connected) = connected {
            self.tell(&run, connected).await;
        }
        Ok(run_end)
    }

    fn make_session(
        &self,
        link: &KeeperLink,
        run: RunId,
        dir: RunDir,
        is_adopted: bool,
    ) -> io::Result<(Session, UnixStream)> {
        let (keeper, child) = (link.keeper.clone(), link.child.clone());
        let host = Host { keeper, child, environment: link.environment.clone() };
        // A pid file shows other hosts with the same home that a keeper holds the run.
        let pid_file = PidFile { keeper: link.keeper.clone(), child: link.child.clone() };
        if let Err(cause) = pid_file.write(&dir.pid_file()) {
            tracing::warn!(%run, %cause, "cannot write the pid file of a session");
        }
        Session::open(run, dir, host, self.to_connection.clone(), is_adopted)
    }

    fn list_sessions(&mut self, answer: oneshot::Sender<Result<Value, Failure>>) {
        match self.process.as_mut().filter(|process| process.is_greeted()) {
            Some(process) if !process.lists_sessions() => {
                let message = format!("{} cannot list its sessions", self.context.plan.display_name);
                let failure = Failure::new(message).code(FailureCode::Unsupported);
                send_reply(answer, Err(failure.because("the agent does not offer it")));
            }
            Some(process) => {
                let (id, bytes) = process.router.request_sessions(None, None);
                process.requests.insert(id, answer);
                process.lines.push(bytes, LineSender::Connection);
            }
            None => {
                let hint = format!("agency reconnect {}", self.context.plan.name);
                send_reply(
                    answer,
                    Err(Failure::new(self.not_connected()).code(FailureCode::ConnectionFailed).hint(hint)),
                );
            }
        }
    }

    fn not_connected(&self) -> String {
        format!("there is no connection to {}", self.context.plan.display_name)
    }

    async fn on_session(&mut self, run: RunId, message: FromSession) {
        match (message, &mut self.process) {
            (FromSession::Detached, process) => {
                if let Some(process) = process {
                    process.router.forget_run(&run.0);
                }
                self.sessions.remove(&run);
                self.report_sessions().await;
            }
            (FromSession::Write { id, line }, Some(process)) => {
                process.lines.push(line, LineSender::Session { run, id });
            }
            (FromSession::Write { id, .. }, None) => {
                let reason = self.not_connected();
                self.tell(&run, ToSession::Refused { id, reason }).await;
            }
        }
    }

    async fn tell(&self, run: &RunId, message: ToSession) {
        if let Some(session) = self.sessions.get(run) {
            // A session that has ended meanwhile needs no message.
            drop(session.inbox.send(message).await);
        }
    }

    async fn tell_all(&self, message: impl Fn() -> ToSession) {
        for run in self.sessions.keys() {
            self.tell(run, message()).await;
        }
    }

    /// Reads what has arrived and writes the next line. `false` once the process is gone.
    async fn settle(&mut self, process: &mut Process) -> io::Result<bool> {
        while let Some(output) = process.link.next_output()? {
            match output {
                KeeperOutput::Record(record) => self.route(process, &record).await,
                KeeperOutput::Message(message) => self.on_message(process, message).await?,
            }
        }
        self.finish_greeting(process).await;
        process.queue_owed_lines();
        self.answer_requests(process);
        if let Some((id, bytes)) = process.lines.next_piece() {
            process.link.frames.send(&Frame::Input { source: InputSource::Send, id, bytes }).await?;
        }
        let is_over = process.link.gone.is_some() && process.next_seq >= process.link.next_seq_at_gone;
        Ok(!is_over)
    }

    /// Passes the lines of a record to their sessions.
    async fn route(&mut self, process: &mut Process, record: &Record) {
        if record.seq > 0 {
            if record.seq < process.next_seq {
                return;
            }
            process.next_seq = record.seq + 1;
        }
        let at = Duration::from_nanos(record.at_ns);
        process.note_record(record);
        let (routed, from_agent) = match &record.body {
            Body::Gap { .. } if process.take_shown(record) => return,
            Body::Gap { .. } => {
                // A keeper that finds nothing more in its files does not know the time.
                let until_at_ns = if record.at_ns == 0 { u64::MAX } else { record.at_ns };
                return self.on_gap(process, record.seq + 1, until_at_ns).await;
            }
            Body::Output { stream: Stream::Stderr, bytes } => return process.keep_stderr(bytes),
            Body::Output { bytes, .. } => (process.router.on_output(bytes, at), true),
            Body::Input { bytes, .. } => (process.router.on_input(bytes, at), false),
            Body::Exit { status, .. } => {
                process.exit = Some(*status);
                return;
            }
            Body::Note { tag, .. } if tag == CLOSED_TAG => return Self::end_closed(process),
            _ => return,
        };
        for RoutedLine { to, line: bytes, problem } in routed {
            match to {
                Recipient::Run(run) => {
                    if let Some(session) = self.sessions.get_mut(&RunId(run)) {
                        session.pass_line(SessionLine { from_agent, bytes, at_ns: record.at_ns }).await;
                    }
                }
                Recipient::Connection => {
                    if let Some(problem) = problem {
                        let connection = &self.context.plan.name;
                        tracing::warn!(connection, %problem, "a line belongs to no session");
                    }
                }
            }
        }
    }

    /// Passes the agent's answers to callers that asked about no session.
    fn answer_requests(&self, process: &mut Process) {
        for (id, answered) in process.router.take_own_answers() {
            let refused = |why| {
                Failure::new(format!("{} refused", self.context.plan.display_name))
                    .code(FailureCode::Unsupported)
                    .because(why)
            };
            if let Some(answer) = process.requests.remove(&id) {
                send_reply(answer, answered.map_err(refused));
            }
        }
    }

    async fn on_message(&mut self, process: &mut Process, message: FromKeeper) -> io::Result<()> {
        match message {
            FromKeeper::InputTaken { id } => {
                let written = process.lines.on_taken(id);
                if let Some(WrittenLine { source: LineSender::Session { run, id }, .. }) = written {
                    self.tell(&run, ToSession::Taken { id }).await;
                }
            }
            FromKeeper::InputRefused { id, reason } => {
                if let Some(LineSender::Session { run, id }) = process.lines.on_refused(id) {
                    self.tell(&run, ToSession::Refused { id, reason }).await;
                }
                Self::end_closed(process);
            }
            FromKeeper::Sealed { from_seq, until_seq } => {
                let records = process.link.read_sealed(from_seq, until_seq).await?;
                if records.is_none() {
                    self.on_gap(process, until_seq, u64::MAX).await;
                }
                for record in records.unwrap_or_default() {
                    self.route(process, &record).await;
                }
                process.next_seq = process.next_seq.max(until_seq);
            }
            FromKeeper::Gone { ended } => process.link.mark_gone(ended, process.next_seq),
            _ => {}
        }
        Ok(())
    }

    async fn finish_greeting(&mut self, process: &mut Process) {
        if process.greeting != Greeting::Pending {
            return;
        }
        process.greeting = process.read_greeting();
        match process.router.greeting() {
            Some(Ok(greeted)) => {
                let name = process::agent_version(&greeted.capabilities);
                let resumes = process::can_resume(&greeted.capabilities);
                for run in self.sessions.keys() {
                    if let Some(connected) = process.connected_message(process.last_record_at()) {
                        self.tell(run, connected).await;
                    }
                }
                self.report(process.attempt, ConnectionReport::Greeted { name, resumes }).await;
            }
            Some(Err(cause)) => {
                let cause = cause.to_owned();
                self.report(process.attempt, ConnectionReport::HandshakeFailed { cause }).await;
            }
            None => {}
        }
    }

    /// Ends a process that has closed its input or its output: it is of no use any more.
    fn end_closed(process: &mut Process) {
        if process.kill.is_none() && process.link.gone.is_none() {
            // The end of the process and its last words may be on their way. They say more than the closed pipe.
            process.kill = Some(Kill { at: clock::now() + EXIT_FOLLOWS_WITHIN, grace: CLOSED_GRACE });
            process.is_closed = true;
        }
    }

    /// The process is gone, and the sessions have its last lines.
    async fn on_exit(&mut self, mut process: Process) {
        if let Err(cause) = process.link.frames.send_message(&ToKeeper::Dismiss).await {
            tracing::debug!(connection = self.context.plan.name, %cause, "the keeper has exited by itself");
        }
        self.lose(process).await;
    }

    /// The keeper hung up. If it is dead, the pipes of the process are gone with it.
    async fn on_hangup(&mut self, mut process: Process, cause: &io::Error) {
        let connection = &self.context.plan.name;
        tracing::warn!(connection, %cause, "the keeper hung up");
        match process.link.regain().await {
            Ok(_) => match process.link.follow(process.next_seq).await {
                Ok(()) => self.process = Some(process),
                Err(_) => self.lose(process).await,
            },
            Err(_) => {
                let run = process.link.context.id.0.clone();
                let ended = tokio::task::spawn_blocking(move || end_tree(&run)).await;
                let ended = ended.unwrap_or(0);
                tracing::info!(connection, ended, "ended the remaining processes of the connection");
                self.lose(process).await;
            }
        }
    }

    /// Answers every caller and session that waits for the process, and reports its end.
    async fn lose(&mut self, mut process: Process) {
        let cause = process.exit_summary();
        for sender in process.lines.give_up() {
            if let LineSender::Session { run, id } = sender {
                let reason = "the connection was lost".to_owned();
                self.tell(&run, ToSession::Refused { id, reason }).await;
            }
        }
        for (_, answer) in std::mem::take(&mut process.requests) {
            send_reply(
                answer,
                Err(Failure::new("the connection was lost")
                    .code(FailureCode::ConnectionFailed)
                    .because(cause.clone())),
            );
        }
        if process.is_greeted() {
            self.tell_all(|| ToSession::Lost { cause: cause.clone() }).await;
        }
        self.report(process.attempt, ConnectionReport::Lost { cause }).await;
        self.report(process.attempt, ConnectionReport::Gone).await;
    }

    async fn kill_if_due(&mut self) {
        let now = clock::now();
        let Some(process) = &mut self.process else { return };
        let Some(Kill { grace, .. }) = process.kill.take_if(|kill| kill.at <= now) else { return };
        if std::mem::take(&mut process.is_closed) {
            let (attempt, cause) = (process.attempt, process.exit_summary());
            self.report(attempt, ConnectionReport::Lost { cause }).await;
        }
        let Some(process) = &mut self.process else { return };
        if let Err(cause) = process.link.stop(grace).await
            && let Some(process) = self.process.take()
        {
            self.on_hangup(process, &cause).await;
        }
    }
}

/// Reads more from the keeper. Waits for ever while there is no process.
async fn fill(process: &mut Option<Process>) -> io::Result<()> {
    match process {
        Some(process) => process.link.frames.fill().await,
        None => std::future::pending().await,
    }
}

fn launch_spec(
    id: &RunId,
    name: &str,
    dir: &RunDir,
    spec: ConnectionSpec,
    daemon_socket: &Path,
) -> io::Result<LaunchSpec> {
    let mut env = spec.env;
    env.insert(environment::RUN_ID.into(), id.0.clone().into());
    env.insert(environment::SOCKET.into(), daemon_socket.into());
    environment::link_ssh_agent(&mut env, dir)?;
    Ok(LaunchSpec {
        run_id: id.0.clone(),
        name: name.to_owned(),
        run_dir: dir.path().into(),
        start: Start::Spawn {
            argv: spec.argv,
            env: environment::to_wire(env),
            cwd: spec.cwd.as_path().into(),
            stdio: Stdio::Pipes,
        },
        segment_bytes: limits::SEGMENT_BYTES,
        max_journal_bytes: None,
        open_files: spec.open_files,
        linger_ms: limits::KEEPER_LINGERS.as_millis() as u64,
        spare: spec.spare,
        owner: None,
    })
}

//! One connection to an agent that serves many sessions: its process, and a session for every task that talks to it.
//!
//! Decides nothing: it starts a process when it is told to, tells what becomes of it, and carries lines. The lines of
//! each session go to that session's session, which is to its run what a keeper is to a process.

mod session;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agency_api::keeper::{CLOSED_TAG, Frame, FromKeeper, InputSource, LaunchSpec, Start, Stdio, ToKeeper};
use agency_api::paths::{RunDir, StateDir, create_private};
use agency_api::{Bytes, Failure};
use agency_core::agent::Driver;
use agency_core::agent_state::Timing;
use agency_core::ids::RunId;
use agency_driver::acp::router::{Capabilities, Recipient, RoutedLine, Router};
use agency_driver::conversation::ConversationTerms;
use agency_journal::{Body, ExitStatus, Limits, Reader, Record, Stream, Writer};
use agency_keeper::pidfile::PidFile;
use agency_keeper::platform;
use agency_store::atomic;
use agency_store::clock;
use agency_store::rule_book::RuleBook;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::environment::{self, Environment};
use crate::keeper_link::{KeeperLink, KeeperOutput};
use crate::launch::{LaunchError, start_keeper};
use crate::line_queue::{LineQueue, WrittenLine};
use crate::reply::send_reply;
use crate::report::{ConnectionReport, Report, ReportSink};
use crate::run_context::{FoldSettings, RunContext};
use crate::timer::sleep_until;
use crate::{fold, limits, run_meta};
use session::{FromSession, Host, Session, SessionLine, ToSession};
pub use session::{GiveUpReason, JournalProgress};

/// What the machine of a connection that is taken up again counts its process as.
const FIRST_ATTEMPT: u64 = 1;

/// Between the end of its input and SIGKILL.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Between SIGTERM and SIGKILL for one that has closed its output.
const DEAF_GRACE: Duration = Duration::from_secs(2);

/// What it last printed besides, to tell why it ended.
const STDERR_TAIL_BYTES: usize = 2_000;

const COMMANDS_WAITING: usize = 256;

/// How a process of this connection is started.
#[derive(Debug, Clone)]
pub struct ConnectionSpec {
    pub argv: Vec<Bytes>,
    pub env: Environment,
    pub cwd: PathBuf,
    pub spare: Vec<String>,
    pub open_files: Option<(u64, u64)>,
}

/// What a switchboard is given and never changes.
#[derive(Clone)]
pub struct ConnectionContext {
    pub plan: ConnectionPlan,
    pub state: StateDir,
    pub epoch: u64,
    pub keeper_binary: PathBuf,
    pub rule_book: Arc<RuleBook>,
    pub reporter: ReportSink,
}

#[derive(Debug)]
pub enum ConnectionCommand {
    Spawn {
        attempt: u64,
        spec: Box<ConnectionSpec>,
    },
    /// Close its input, kill it if that is not enough.
    End {
        attempt: u64,
    },
    /// A place for a run, whose directory is there.
    OpenSession {
        run: RunId,
        dir: RunDir,
        /// It sat here under a daemon before this one; it gets that place or none.
        is_adopted: bool,
        answer: oneshot::Sender<Result<UnixStream, Failure>>,
    },
    /// There will be no process any more: those who sit here are over, and are told why.
    EndSessions {
        why: Option<GiveUpReason>,
    },
    /// The sessions that the agent knows.
    ListSessions {
        answer: oneshot::Sender<Result<Value, Failure>>,
    },
}

/// Which connection this is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionPlan {
    /// The agent's name, and more where its process is not shared by all.
    pub name: String,
    pub agent: String,
    pub display_name: String,
    /// One task's own: it ends with it.
    pub is_own: bool,
}

/// `wire.json`: whose process this is. Holds no environment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConnectionMeta {
    #[serde(flatten)]
    pub plan: ConnectionPlan,
    pub host: String,
    pub started_at: String,
    argv: Vec<Bytes>,
    cwd: Bytes,
    spare: Vec<String>,
}

impl ConnectionMeta {
    fn path(dir: &RunDir) -> PathBuf {
        dir.path().join("wire.json")
    }

    pub fn read(dir: &RunDir) -> Option<ConnectionMeta> {
        serde_json::from_slice(&std::fs::read(ConnectionMeta::path(dir)).ok()?).ok()
    }

    fn write(&self, dir: &RunDir) -> io::Result<()> {
        atomic::write(&ConnectionMeta::path(dir), &serde_json::to_vec_pretty(self)?)
    }
}

/// A process that is held again.
pub struct AdoptedConnection {
    pub commands: mpsc::Sender<ConnectionCommand>,
    pub spec: ConnectionSpec,
    pub is_greeted: bool,
    /// What the agent calls itself.
    pub version: Option<String>,
    /// Whether it can go on with a session of another process, once it has said so.
    pub resumes: Option<bool>,
    pub sessions: usize,
}

/// A session that a daemon before this one had sessions.
#[derive(Debug)]
pub struct AdoptedSession {
    pub run: RunId,
    pub dir: RunDir,
    pub progress: JournalProgress,
}

pub struct ConnectionTask {
    context: ConnectionContext,
    process: Option<Process>,
    sessions: BTreeMap<RunId, Session>,
    /// The other ends of sessions that were taken before anybody asked.
    unclaimed: HashMap<RunId, UnixStream>,
    from_sessions: mpsc::Receiver<(RunId, FromSession)>,
    to_connection: mpsc::Sender<(RunId, FromSession)>,
}

/// The process and what is known of it.
struct Process {
    attempt: u64,
    link: KeeperLink,
    router: Router,
    lines: LineQueue<LineOrigin>,
    next_seq: u64,
    is_greeted: bool,
    /// Its greeting was answered, one way or the other.
    is_met: bool,
    /// When to end it by force, and how long it then has between SIGTERM and SIGKILL.
    kill_at: Option<(Duration, Duration)>,
    stderr_tail: Vec<u8>,
    exit: Option<ExitStatus>,
    asked: BTreeMap<String, oneshot::Sender<Result<Value, Failure>>>,
    /// Replies that are on their way.
    replied: Vec<String>,
}

/// Who wants to know that a process was written.
enum LineOrigin {
    Nothing,
    Session { run: RunId, id: u64 },
}

impl ConnectionTask {
    /// Without a process.
    pub fn open(context: ConnectionContext) -> mpsc::Sender<ConnectionCommand> {
        let (commands, inbox) = mpsc::channel(COMMANDS_WAITING);
        tokio::spawn(ConnectionTask::empty(context).live(inbox));
        commands
    }

    fn empty(context: ConnectionContext) -> ConnectionTask {
        let (to_connection, from_sessions) = mpsc::channel(COMMANDS_WAITING);
        let (sessions, unclaimed) = (BTreeMap::new(), HashMap::new());
        ConnectionTask { context, process: None, sessions, unclaimed, from_sessions, to_connection }
    }

    /// With a process that a daemon before this one started, and those who sat there.
    pub async fn adopt(
        context: ConnectionContext,
        dir: RunDir,
        meta: ConnectionMeta,
        adopted: Vec<AdoptedSession>,
    ) -> io::Result<AdoptedConnection> {
        let (commands, inbox) = mpsc::channel(COMMANDS_WAITING);
        let mut task = ConnectionTask::empty(context);
        task.resume(dir, adopted).await?;
        let process = task.process.as_ref();
        let environment = process.map(|process| process.link.environment.clone()).unwrap_or_default();
        let env = environment::from_wire(environment);
        let (cwd, spare) = (PathBuf::from(meta.cwd.as_os_str()), meta.spare);
        let spec = ConnectionSpec { argv: meta.argv, env, cwd, spare, open_files: None };
        let is_greeted = process.is_some_and(|process| process.is_greeted);
        let greeted = process.and_then(|process| process.router.greeting()?.ok());
        let version = greeted.and_then(|greeted| called(&greeted.capabilities));
        let resumes = greeted.map(|greeted| greeted.capabilities.resume || greeted.capabilities.load);
        let sessions = task.sessions.len();
        tokio::spawn(task.live(inbox));
        Ok(AdoptedConnection { commands, spec, is_greeted, version, resumes, sessions })
    }

    async fn resume(&mut self, dir: RunDir, adopted: Vec<AdoptedSession>) -> io::Result<()> {
        let id = name_of(&dir);
        let link = KeeperLink::connect(self.run_context(&id, dir.clone(), Vec::new(), None))
            .await
            .map_err(io::Error::other)?;
        let journal = dir.journal();
        let mut process = Process::new(FIRST_ATTEMPT, link);
        let records = tokio::task::spawn_blocking(move || fold::records(&journal, 0, u64::MAX));
        let records = records.await.map_err(io::Error::other)??;
        let mut fresh = Vec::new();
        for adopted in adopted {
            let is_new = adopted.progress.connection.as_deref() != Some(&id);
            let skip = if is_new { 0 } else { adopted.progress.lines.saturating_sub(1) };
            let was_lost = adopted.progress.is_lost || adopted.progress.connection.is_none();
            let (mut session, theirs) =
                self.attach_session(&process.link, adopted.run.clone(), adopted.dir)?;
            session.skip = skip;
            if is_new {
                fresh.push((adopted.run.clone(), was_lost));
            }
            self.unclaimed.insert(adopted.run.clone(), theirs);
            self.sessions.insert(adopted.run, session);
        }
        for record in records {
            self.route(&mut process, &record).await;
        }
        process.is_greeted = matches!(process.router.greeting(), Some(Ok(_)));
        process.is_met = process.router.greeting().is_some();
        for (run, was_lost) in fresh {
            if !was_lost {
                self.tell(
                    &run,
                    ToSession::Lost { cause: "the connection was another one before".to_owned() },
                )
                .await;
            }
            if let Some(connected) = process.connected() {
                self.tell(&run, connected).await;
            }
        }
        process.link.follow(process.next_seq).await?;
        self.process = Some(process);
        Ok(())
    }

    async fn live(mut self, mut inbox: mpsc::Receiver<ConnectionCommand>) {
        loop {
            if let Some(mut process) = self.process.take() {
                match self.settle(&mut process).await {
                    Ok(true) => self.process = Some(process),
                    Ok(false) => self.over(process).await,
                    Err(cause) => self.cut(process, &cause).await,
                }
            }
            let deadline = sleep_until(self.process.as_ref().and_then(Process::deadline));
            tokio::select! {
                command = inbox.recv() => match command {
                    Some(command) => self.command(command).await,
                    // The daemon leaves; the process stays.
                    None => return,
                },
                Some((run, told)) = self.from_sessions.recv() => self.on_session(run, told).await,
                filled = filled(&mut self.process) => if let Err(cause) = filled
                    && let Some(process) = self.process.take()
                {
                    self.cut(process, &cause).await;
                },
                () = deadline => self.due().await,
            }
        }
    }

    async fn command(&mut self, command: ConnectionCommand) {
        match command {
            ConnectionCommand::Spawn { attempt, spec } => self.spawn(attempt, &spec).await,
            ConnectionCommand::End { attempt } => self.end(attempt).await,
            ConnectionCommand::OpenSession { run, dir, is_adopted, answer } => {
                let sessions = match (self.unclaimed.remove(&run), is_adopted) {
                    (Some(theirs), _) => Ok(theirs),
                    (None, true) => Err(Failure::new("the session is over")),
                    (None, false) => self.open_session(run, dir).await,
                };
                send_reply(answer, sessions);
                self.report(0, ConnectionReport::Sessions(self.sessions.len())).await;
            }
            ConnectionCommand::EndSessions { why } => {
                self.tell_all(|| ToSession::Over { why: why.clone() }).await
            }
            ConnectionCommand::ListSessions { answer } => self.ask_sessions(answer),
        }
    }

    async fn report(&self, attempt: u64, report: ConnectionReport) {
        let name = self.context.plan.name.clone();
        self.context.reporter.report(Report::Connection { name, attempt, report }).await;
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
            epoch: self.context.epoch,
            keeper_binary: self.context.keeper_binary.clone(),
            open_files,
            spare,
            fold: FoldSettings { timing: Timing::default(), scrollback: 0, program: String::new() },
            rule_book: self.context.rule_book.clone(),
        }
    }

    async fn spawn(&mut self, attempt: u64, spec: &ConnectionSpec) {
        match self.spawned(spec).await {
            Ok(link) => {
                let mut process = Process::new(attempt, link);
                let greeting = process.router.initialize();
                process.lines.push(greeting, LineOrigin::Nothing);
                self.report(attempt, ConnectionReport::Spawned).await;
                match process.link.follow(0).await {
                    Ok(()) => self.process = Some(process),
                    Err(cause) => self.cut(process, &cause).await,
                }
            }
            Err((not_found, cause)) => {
                self.report(attempt, ConnectionReport::SpawnFailed { not_found, cause }).await
            }
        }
    }

    async fn spawned(&self, spec: &ConnectionSpec) -> Result<KeeperLink, (bool, String)> {
        let other = |cause: &dyn std::fmt::Display| (false, cause.to_string());
        let id = run_meta::new_run_id().map_err(|err| other(&err))?;
        let dir = self.context.state.wire(&id.0);
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
                launch.map_err(|source| LaunchError::Step { what: "make its directory".into(), source });
            launch.and_then(|launch| start_keeper(&keeper, &launch, None, None)).inspect_err(|_| {
                // Made by this very call, and nothing in it is worth keeping.
                if let Err(left) = std::fs::remove_dir_all(made.path()) {
                    tracing::warn!(%left, "the directory of a failed connection stays behind");
                }
            })
        });
        started.await.map_err(|err| other(&err))?.map_err(|err| (is_not_found(&err), told(&err)))?;
        let context = self.run_context(&id.0, dir, spec.spare.clone(), spec.open_files);
        KeeperLink::connect(context).await.map_err(|err| other(&err))
    }

    async fn end(&mut self, attempt: u64) {
        let Some(process) = self.process.as_mut().filter(|process| process.attempt == attempt) else {
            return;
        };
        process.kill_at = Some((clock::now() + ENDS_WITHIN, Duration::ZERO));
        if let Err(cause) = process.link.frames.send_message(&ToKeeper::CloseInput).await
            && let Some(process) = self.process.take()
        {
            self.cut(process, &cause).await;
        }
    }

    async fn open_session(&mut self, run: RunId, dir: RunDir) -> Result<UnixStream, Failure> {
        let not_connected =
            || Failure::new(format!("there is no connection to {}", self.context.plan.display_name));
        let process = self.process.as_ref().filter(|process| process.is_greeted).ok_or_else(not_connected)?;
        let cannot = |err: io::Error| Failure::new("the session's journal cannot be written").caused_by(&err);
        let (session, theirs) = self.attach_session(&process.link, run.clone(), dir).map_err(cannot)?;
        let connected = process.connected();
        self.sessions.insert(run.clone(), session);
        if let Some(connected) = connected {
            self.tell(&run, connected).await;
        }
        Ok(theirs)
    }

    fn attach_session(
        &self,
        link: &KeeperLink,
        run: RunId,
        dir: RunDir,
    ) -> io::Result<(Session, UnixStream)> {
        let (keeper, child) = (link.keeper.clone(), link.child.clone());
        let host = Host { keeper, child, environment: link.environment.clone() };
        // Another host that shares this home sees by it that the run is held.
        std::fs::copy(link.context.dir.pid_file(), dir.pid_file())?;
        Session::open(run, dir, host, self.to_connection.clone())
    }

    fn ask_sessions(&mut self, answer: oneshot::Sender<Result<Value, Failure>>) {
        match self.process.as_mut().filter(|process| process.is_greeted) {
            Some(process) => {
                let (id, bytes) = process.router.request_sessions(None, None);
                process.asked.insert(id, answer);
                process.lines.push(bytes, LineOrigin::Nothing);
            }
            None => {
                let failure =
                    Failure::new(format!("there is no connection to {}", self.context.plan.display_name));
                send_reply(answer, Err(failure.hint(format!("agency reconnect {}", self.context.plan.name))));
            }
        }
    }

    async fn on_session(&mut self, run: RunId, told: FromSession) {
        match (told, &mut self.process) {
            (FromSession::Detached, process) => {
                if let Some(process) = process {
                    process.router.forget_run(&run.0);
                }
                self.sessions.remove(&run);
                self.report(0, ConnectionReport::Sessions(self.sessions.len())).await;
            }
            (FromSession::Write { id, line: bytes }, Some(process)) => {
                process.lines.push(bytes, LineOrigin::Session { run, id })
            }
            (FromSession::Write { id, .. }, None) => {
                let reason = format!("there is no connection to {}", self.context.plan.display_name);
                self.tell(&run, ToSession::Refused { id, reason }).await;
            }
        }
    }

    async fn tell(&self, run: &RunId, told: ToSession) {
        if let Some(session) = self.sessions.get(run) {
            // One that has left meanwhile needs no word.
            drop(session.inbox.send(told).await);
        }
    }

    async fn tell_all(&self, told: impl Fn() -> ToSession) {
        for run in self.sessions.keys() {
            self.tell(run, told()).await;
        }
    }

    /// Hears what has come, writes what waits. `false` once the process is gone.
    async fn settle(&mut self, process: &mut Process) -> io::Result<bool> {
        while let Some(heard) = process.link.next_output()? {
            match heard {
                KeeperOutput::Record(record) => self.route(process, &record).await,
                KeeperOutput::Message(message) => self.message(process, message).await?,
            }
        }
        self.greet(process).await;
        process.reply_for_nobody();
        self.answer_asked(process);
        if let Some((id, bytes)) = process.lines.next_piece() {
            process.link.frames.send(&Frame::Input { source: InputSource::Send, id, bytes }).await?;
        }
        let is_over = process.link.gone.is_some() && process.next_seq >= process.link.next_seq_at_gone;
        Ok(!is_over)
    }

    /// A record of the connection's journal, to whom it is for.
    async fn route(&mut self, process: &mut Process, record: &Record) {
        if record.seq > 0 {
            if record.seq < process.next_seq {
                return;
            }
            process.next_seq = record.seq + 1;
        }
        let at = Duration::from_nanos(record.at_ns);
        let (routed, from_agent) = match &record.body {
            Body::Output { stream: Stream::Stderr, bytes } => return process.overheard(bytes),
            Body::Output { bytes, .. } => (process.router.on_output(bytes, at), true),
            Body::Input { bytes, .. } => (process.router.on_input(bytes, at), false),
            Body::Exit { status, .. } => {
                process.exit = Some(*status);
                return;
            }
            Body::Note { tag, .. } if tag == CLOSED_TAG => return self.deaf(process).await,
            _ => return,
        };
        for RoutedLine { to, line: bytes, problem } in routed {
            match to {
                Recipient::Run(run) => {
                    self.pass_on(&RunId(run), SessionLine { from_agent, bytes, at_ns: record.at_ns }).await
                }
                Recipient::Connection => {
                    if let Some(problem) = problem {
                        tracing::warn!(connection = self.context.plan.name, %problem, "a line for nobody");
                    }
                }
            }
        }
    }

    async fn pass_on(&mut self, run: &RunId, line: SessionLine) {
        let Some(session) = self.sessions.get_mut(run) else { return };
        if session.skip > 0 {
            session.skip -= 1;
            return;
        }
        self.tell(run, ToSession::Line(line)).await;
    }

    /// Answers to what we asked about no session.
    fn answer_asked(&self, process: &mut Process) {
        for (id, answered) in process.router.take_own_answers() {
            let refused =
                |why| Failure::new(format!("{} refused", self.context.plan.display_name)).because(why);
            if let Some(answer) = process.asked.remove(&id) {
                send_reply(answer, answered.map_err(refused));
            }
        }
    }

    async fn message(&mut self, process: &mut Process, message: FromKeeper) -> io::Result<()> {
        match message {
            FromKeeper::InputTaken { id } => {
                if let Some(WrittenLine { source: LineOrigin::Session { run, id }, .. }) =
                    process.lines.on_taken(id)
                {
                    self.tell(&run, ToSession::Taken { id }).await;
                }
            }
            FromKeeper::InputRefused { id, reason } => {
                if let Some(LineOrigin::Session { run, id }) = process.lines.on_refused(id) {
                    self.tell(&run, ToSession::Refused { id, reason }).await;
                }
                // A pipe that takes nothing is as good as an exit.
                self.deaf(process).await;
            }
            FromKeeper::Sealed { from_seq, until_seq } => {
                for record in process.link.read_sealed(from_seq, until_seq).await?.unwrap_or_default() {
                    self.route(process, &record).await;
                }
                process.next_seq = process.next_seq.max(until_seq);
            }
            FromKeeper::Gone { ended } => process.link.mark_gone(ended, process.next_seq),
            _ => {}
        }
        Ok(())
    }

    async fn greet(&mut self, process: &mut Process) {
        if process.is_met {
            return;
        }
        process.is_met = process.router.greeting().is_some();
        match process.router.greeting() {
            Some(Ok(greeted)) => {
                let (name, resumes) =
                    (called(&greeted.capabilities), greeted.capabilities.resume || greeted.capabilities.load);
                process.is_greeted = true;
                for run in self.sessions.keys() {
                    if let Some(connected) = process.connected() {
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

    /// It has closed one of its ends: nothing can come of it any more.
    async fn deaf(&self, process: &mut Process) {
        if process.kill_at.is_none() && process.link.gone.is_none() {
            process.kill_at = Some((clock::now(), DEAF_GRACE));
            self.report(process.attempt, ConnectionReport::Lost { cause: process.exit_summary() }).await;
        }
    }

    /// Its process is gone, its last word has been carried.
    async fn over(&mut self, mut process: Process) {
        if let Err(cause) = process.link.frames.send_message(&ToKeeper::Dismiss).await {
            tracing::debug!(connection = self.context.plan.name, %cause, "the keeper has left by itself");
        }
        self.lost(process).await;
    }

    /// The keeper hung up, and with it the pipes.
    async fn cut(&mut self, mut process: Process, cause: &io::Error) {
        tracing::warn!(connection = self.context.plan.name, %cause, "the keeper hung up");
        match process.link.regain().await {
            Ok(_) => match process.link.follow(process.next_seq).await {
                Ok(()) => self.process = Some(process),
                Err(_) => self.lost(process).await,
            },
            Err(_) => {
                let run = process.link.context.id.0.clone();
                let ended = tokio::task::spawn_blocking(move || crate::process_tree::end_tree(&run)).await;
                tracing::info!(
                    connection = self.context.plan.name,
                    ended = ended.unwrap_or(0),
                    "what was left of it is ended"
                );
                self.lost(process).await;
            }
        }
    }

    async fn lost(&mut self, mut process: Process) {
        let cause = process.exit_summary();
        for then in process.lines.give_up() {
            if let LineOrigin::Session { run, id } = then {
                self.tell(&run, ToSession::Refused { id, reason: "the connection was lost".to_owned() })
                    .await;
            }
        }
        for (_, answer) in std::mem::take(&mut process.asked) {
            send_reply(answer, Err(Failure::new("the connection was lost").because(cause.clone())));
        }
        if process.is_greeted {
            self.tell_all(|| ToSession::Lost { cause: cause.clone() }).await;
        }
        self.report(process.attempt, ConnectionReport::Lost { cause }).await;
        self.report(process.attempt, ConnectionReport::Gone).await;
    }

    async fn due(&mut self) {
        let now = clock::now();
        let Some(process) = &mut self.process else { return };
        let Some((_, grace)) = process.kill_at.take_if(|(at, _)| *at <= now) else { return };
        if let Err(cause) =
            process.link.frames.send_message(&ToKeeper::Stop { grace_ms: grace.as_millis() as u64 }).await
            && let Some(process) = self.process.take()
        {
            self.cut(process, &cause).await;
        }
    }
}

impl Process {
    fn new(attempt: u64, link: KeeperLink) -> Process {
        Process {
            attempt,
            link,
            router: Router::default(),
            lines: LineQueue::default(),
            next_seq: 0,
            is_greeted: false,
            is_met: false,
            kill_at: None,
            stderr_tail: Vec::new(),
            exit: None,
            asked: BTreeMap::new(),
            replied: Vec::new(),
        }
    }

    fn deadline(&self) -> Option<Duration> {
        self.kill_at.map(|(at, _)| at)
    }

    /// What a session is told first.
    fn connected(&self) -> Option<ToSession> {
        let Some(Ok(greeted)) = self.router.greeting() else { return None };
        Some(ToSession::Connected {
            connection: self.link.context.id.0.clone(),
            answer: greeted.line.clone(),
        })
    }

    /// What the agent asks of nobody is refused, or it would wait for ever.
    fn reply_for_nobody(&mut self) {
        let owed = self.router.owed_lines();
        self.replied.retain(|key| owed.iter().any(|(owed, _)| owed == key));
        for (key, bytes) in owed {
            if !self.replied.contains(&key) {
                self.replied.push(key);
                self.lines.push(bytes, LineOrigin::Nothing);
            }
        }
    }

    fn overheard(&mut self, bytes: &[u8]) {
        self.stderr_tail.extend_from_slice(bytes);
        let too_many = self.stderr_tail.len().saturating_sub(STDERR_TAIL_BYTES);
        self.stderr_tail.drain(..too_many);
    }

    /// Why it ended, as far as anybody knows.
    fn exit_summary(&self) -> String {
        let ended = match self.exit {
            Some(ExitStatus::Signal(signal)) => return format!("its process was ended by signal {signal}"),
            Some(ExitStatus::Code(code)) => format!("its process ended with code {code}"),
            Some(ExitStatus::Unknown) => "its process ended".to_owned(),
            None => "it closed its output".to_owned(),
        };
        let words = String::from_utf8_lossy(&self.stderr_tail);
        match words.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(last) => {
                format!("{ended}: {}", agency_core::plain::one_line(last.trim(), STDERR_TAIL_BYTES))
            }
            None => ended,
        }
    }
}

/// What the agent calls itself.
fn called(agent: &Capabilities) -> Option<String> {
    let words: Vec<&str> = [&agent.name, &agent.version].into_iter().flatten().map(String::as_str).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// More from the keeper; never, while there is none.
async fn filled(process: &mut Option<Process>) -> io::Result<()> {
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
    })
}

fn is_not_found(error: &LaunchError) -> bool {
    matches!(error, LaunchError::Step { source, .. } if source.kind() == io::ErrorKind::NotFound)
}

fn told(error: &LaunchError) -> String {
    match error {
        LaunchError::Step { what, source } => format!("cannot {what}: {source}"),
        other => other.to_string(),
    }
}

fn name_of(dir: &RunDir) -> String {
    dir.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Every process of this host that left a trace: its directory, whose it is, and whether it lives.
pub fn find_processes(state: &StateDir) -> Vec<(RunDir, ConnectionMeta, bool)> {
    let Ok(entries) = std::fs::read_dir(state.wires()) else { return Vec::new() };
    let dirs = entries.flatten().map(|entry| RunDir(entry.path()));
    let known = dirs.filter_map(|dir| ConnectionMeta::read(&dir).map(|meta| (dir, meta)));
    let ours = known.filter(|(_, meta)| meta.host == state.host());
    let mut found: Vec<_> = ours
        .map(|(dir, meta)| {
            let pid_file = PidFile::read(&dir.pid_file()).ok().flatten();
            let lives = pid_file.is_some_and(|pid_file| platform::is_alive(&pid_file.keeper));
            (dir, meta, lives)
        })
        .collect();
    found.sort_by(|(_, one, _), (_, other, _)| one.started_at.cmp(&other.started_at));
    found
}

/// Blocking. What a process that is gone had still said reaches the sessions that were sessions there.
pub fn recover_lines<'a>(dir: &RunDir, sessions: impl Iterator<Item = &'a AdoptedSession>) -> io::Result<()> {
    let id = name_of(dir);
    let is_here = |adopted: &&AdoptedSession| adopted.progress.connection.as_deref() == Some(&id);
    let mut writers: HashMap<String, (Writer, u64)> = HashMap::new();
    for adopted in sessions.filter(is_here).filter(|adopted| !adopted.progress.is_lost) {
        let writer = Writer::recover(&adopted.dir.journal(), Limits::PIPES)?;
        writers.insert(adopted.run.0.clone(), (writer, adopted.progress.lines.saturating_sub(1)));
    }
    if writers.is_empty() {
        return Ok(());
    }
    let (mut router, mut reader) = (Router::default(), Reader::open(&dir.journal(), fold::unseal)?);
    while let Some(record) = reader.next()? {
        let at = Duration::from_nanos(record.at_ns);
        let (routed, from_agent) = match &record.body {
            Body::Output { stream: Stream::Stderr, .. } => continue,
            Body::Output { bytes, .. } => (router.on_output(bytes, at), true),
            Body::Input { bytes, .. } => (router.on_input(bytes, at), false),
            _ => continue,
        };
        for RoutedLine { to, line: bytes, .. } in routed {
            let Recipient::Run(run) = to else { continue };
            match writers.get_mut(&run) {
                Some((_, skip)) if *skip > 0 => *skip -= 1,
                Some((writer, _)) => drop(writer.append(record.at_ns, &session::body(from_agent, bytes))?),
                None => {}
            }
        }
    }
    Ok(())
}

/// Blocking. Sessions whose connection is gone for good are over.
pub fn close_sessions(sessions: &[AdoptedSession]) -> io::Result<()> {
    sessions.iter().try_for_each(|adopted| session::close(&adopted.dir, "the connection was gone"))
}

/// Blocking. What processes said that ended long ago stands in their sessions' own journals.
pub fn delete_oldest(dead: &[RunDir]) {
    for dir in &dead[..dead.len().saturating_sub(DEAD_KEPT)] {
        if let Err(left) = std::fs::remove_dir_all(dir.path()) {
            tracing::warn!(%left, "the directory of an old connection stays behind");
        }
    }
}

/// Enough to see why the last ones ended.
const DEAD_KEPT: usize = 5;

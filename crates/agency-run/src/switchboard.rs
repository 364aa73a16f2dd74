//! One connection to an agent that serves many sessions: its process, and a seat for every task that talks to it.
//!
//! Decides nothing: it starts a process when it is told to, tells what becomes of it, and carries lines. The lines of
//! each session go to that session's seat, which is to its run what a keeper is to a process.

mod seat;

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
use crate::hold::{FoldTerms, Heard, Hold, RunContext};
use crate::launch::{LaunchError, start_keeper};
use crate::outbox::{Outbox, Written};
use crate::report::{Report, ReportSink};
use crate::run::sleep_until;
use crate::{fold, limits, run_meta};
use seat::{FromSeat, Host, Seat, SeatLine, ToSeat};
pub use seat::{GivenUp, Progress};

/// What the machine of a connection that is taken up again counts its process as.
const FIRST_ATTEMPT: u64 = 1;

/// Between the end of its input and SIGKILL.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Between SIGTERM and SIGKILL for one that has closed its output.
const DEAF_GRACE: Duration = Duration::from_secs(2);

/// What it last printed besides, to tell why it ended.
const LAST_WORDS: usize = 2_000;

const COMMANDS_WAITING: usize = 256;

/// How a process of this connection is started.
#[derive(Debug, Clone)]
pub struct WireSpec {
    pub argv: Vec<Bytes>,
    pub env: Environment,
    pub cwd: PathBuf,
    pub spare: Vec<String>,
    pub open_files: Option<(u64, u64)>,
}

/// What a switchboard is given and never changes.
#[derive(Clone)]
pub struct Switchroom {
    pub plan: WirePlan,
    pub state: StateDir,
    pub epoch: u64,
    pub keeper_binary: PathBuf,
    pub rule_book: Arc<RuleBook>,
    pub reporter: ReportSink,
}

#[derive(Debug)]
pub enum BoardCommand {
    Spawn {
        attempt: u64,
        spec: Box<WireSpec>,
    },
    /// Close its input, kill it if that is not enough.
    End {
        attempt: u64,
    },
    /// A place for a run, whose directory is there.
    Sit {
        run: RunId,
        dir: RunDir,
        /// It sat here under a daemon before this one; it gets that place or none.
        was_here: bool,
        answer: oneshot::Sender<Result<UnixStream, Failure>>,
    },
    /// There will be no process any more: those who sit here are over, and are told why.
    Dismiss {
        why: Option<GivenUp>,
    },
    /// The sessions that the agent knows.
    Sessions {
        answer: oneshot::Sender<Result<Value, Failure>>,
    },
}

/// What a switchboard tells of its process.
#[derive(Debug)]
pub enum WireNews {
    Spawned,
    SpawnFailed {
        not_found: bool,
        cause: String,
    },
    Greeted {
        name: Option<String>,
        /// It can go on with a session of another process.
        resumes: bool,
    },
    HandshakeFailed {
        cause: String,
    },
    /// Its pipes broke, or it ended.
    Lost {
        cause: String,
    },
    /// Nothing of it is left.
    Gone,
    /// So many tasks have a seat.
    Seats(usize),
}

/// Which connection this is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WirePlan {
    /// The agent's name, and more where its process is not shared by all.
    pub name: String,
    pub agent: String,
    pub display_name: String,
    /// One task's own: it ends with it.
    pub is_own: bool,
}

/// `wire.json`: whose process this is. Holds no environment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WireMeta {
    #[serde(flatten)]
    pub plan: WirePlan,
    pub host: String,
    pub started_at: String,
    argv: Vec<Bytes>,
    cwd: Bytes,
    spare: Vec<String>,
}

impl WireMeta {
    fn path(dir: &RunDir) -> PathBuf {
        dir.path().join("wire.json")
    }

    pub fn read(dir: &RunDir) -> Option<WireMeta> {
        serde_json::from_slice(&std::fs::read(WireMeta::path(dir)).ok()?).ok()
    }

    fn write(&self, dir: &RunDir) -> io::Result<()> {
        atomic::write(&WireMeta::path(dir), &serde_json::to_vec_pretty(self)?)
    }
}

/// A process that is held again.
pub struct Adopted {
    pub commands: mpsc::Sender<BoardCommand>,
    pub spec: WireSpec,
    pub is_greeted: bool,
    /// What the agent calls itself.
    pub version: Option<String>,
    /// Whether it can go on with a session of another process, once it has said so.
    pub resumes: Option<bool>,
    pub sessions: usize,
}

/// A session that a daemon before this one had seated.
#[derive(Debug)]
pub struct Sitting {
    pub run: RunId,
    pub dir: RunDir,
    pub progress: Progress,
}

pub struct Switchboard {
    room: Switchroom,
    line: Option<Line>,
    seats: BTreeMap<RunId, Seat>,
    /// The other ends of seats that were taken before anybody asked.
    kept_free: HashMap<RunId, UnixStream>,
    from_seats: mpsc::Receiver<(RunId, FromSeat)>,
    to_board: mpsc::Sender<(RunId, FromSeat)>,
}

/// The process and what is known of it.
struct Line {
    attempt: u64,
    hold: Hold,
    router: Router,
    outbox: Outbox<Then>,
    next_seq: u64,
    is_greeted: bool,
    /// Its greeting was answered, one way or the other.
    is_met: bool,
    /// When to end it by force, and how long it then has between SIGTERM and SIGKILL.
    kill_at: Option<(Duration, Duration)>,
    last_words: Vec<u8>,
    exit: Option<ExitStatus>,
    asked: BTreeMap<String, oneshot::Sender<Result<Value, Failure>>>,
    /// Replies that are on their way.
    replied: Vec<String>,
}

/// Who wants to know that a line was written.
enum Then {
    Nothing,
    Seat { run: RunId, id: u64 },
}

impl Switchboard {
    /// Without a process.
    pub fn open(room: Switchroom) -> mpsc::Sender<BoardCommand> {
        let (commands, inbox) = mpsc::channel(COMMANDS_WAITING);
        tokio::spawn(Switchboard::empty(room).live(inbox));
        commands
    }

    fn empty(room: Switchroom) -> Switchboard {
        let (to_board, from_seats) = mpsc::channel(COMMANDS_WAITING);
        let (seats, kept_free) = (BTreeMap::new(), HashMap::new());
        Switchboard { room, line: None, seats, kept_free, from_seats, to_board }
    }

    /// With a process that a daemon before this one started, and those who sat there.
    pub async fn adopt(
        room: Switchroom,
        dir: RunDir,
        meta: WireMeta,
        sittings: Vec<Sitting>,
    ) -> io::Result<Adopted> {
        let (commands, inbox) = mpsc::channel(COMMANDS_WAITING);
        let mut board = Switchboard::empty(room);
        board.resume(dir, sittings).await?;
        let line = board.line.as_ref();
        let environment = line.map(|line| line.hold.environment.clone()).unwrap_or_default();
        let env = environment::from_wire(environment);
        let (cwd, spare) = (PathBuf::from(meta.cwd.as_os_str()), meta.spare);
        let spec = WireSpec { argv: meta.argv, env, cwd, spare, open_files: None };
        let is_greeted = line.is_some_and(|line| line.is_greeted);
        let greeted = line.and_then(|line| line.router.greeting()?.ok());
        let version = greeted.and_then(|greeted| called(&greeted.capabilities));
        let resumes = greeted.map(|greeted| greeted.capabilities.resume || greeted.capabilities.load);
        let sessions = board.seats.len();
        tokio::spawn(board.live(inbox));
        Ok(Adopted { commands, spec, is_greeted, version, resumes, sessions })
    }

    async fn resume(&mut self, dir: RunDir, sittings: Vec<Sitting>) -> io::Result<()> {
        let id = name_of(&dir);
        let hold = Hold::connect(self.context(&id, dir.clone(), Vec::new(), None))
            .await
            .map_err(io::Error::other)?;
        let journal = dir.journal();
        let mut line = Line::new(FIRST_ATTEMPT, hold);
        let records = tokio::task::spawn_blocking(move || fold::records(&journal, 0, u64::MAX));
        let records = records.await.map_err(io::Error::other)??;
        let mut fresh = Vec::new();
        for sitting in sittings {
            let is_new = sitting.progress.connection.as_deref() != Some(&id);
            let skip = if is_new { 0 } else { sitting.progress.lines.saturating_sub(1) };
            let was_lost = sitting.progress.is_lost || sitting.progress.connection.is_none();
            let (mut seat, theirs) = self.take_seat(&line.hold, sitting.run.clone(), sitting.dir)?;
            seat.skip = skip;
            if is_new {
                fresh.push((sitting.run.clone(), was_lost));
            }
            self.kept_free.insert(sitting.run.clone(), theirs);
            self.seats.insert(sitting.run, seat);
        }
        for record in records {
            self.route(&mut line, &record).await;
        }
        line.is_greeted = matches!(line.router.greeting(), Some(Ok(_)));
        line.is_met = line.router.greeting().is_some();
        for (run, was_lost) in fresh {
            if !was_lost {
                self.tell(&run, ToSeat::Lost { cause: "the connection was another one before".to_owned() })
                    .await;
            }
            if let Some(connected) = line.connected() {
                self.tell(&run, connected).await;
            }
        }
        line.hold.follow(line.next_seq).await?;
        self.line = Some(line);
        Ok(())
    }

    async fn live(mut self, mut inbox: mpsc::Receiver<BoardCommand>) {
        loop {
            if let Some(mut line) = self.line.take() {
                match self.settle(&mut line).await {
                    Ok(true) => self.line = Some(line),
                    Ok(false) => self.over(line).await,
                    Err(cause) => self.cut(line, &cause).await,
                }
            }
            let deadline = sleep_until(self.line.as_ref().and_then(Line::deadline));
            tokio::select! {
                command = inbox.recv() => match command {
                    Some(command) => self.command(command).await,
                    // The daemon leaves; the process stays.
                    None => return,
                },
                Some((run, told)) = self.from_seats.recv() => self.heard_seat(run, told).await,
                filled = filled(&mut self.line) => if let Err(cause) = filled
                    && let Some(line) = self.line.take()
                {
                    self.cut(line, &cause).await;
                },
                () = deadline => self.due().await,
            }
        }
    }

    async fn command(&mut self, command: BoardCommand) {
        match command {
            BoardCommand::Spawn { attempt, spec } => self.spawn(attempt, &spec).await,
            BoardCommand::End { attempt } => self.end(attempt).await,
            BoardCommand::Sit { run, dir, was_here, answer } => {
                let seated = match (self.kept_free.remove(&run), was_here) {
                    (Some(theirs), _) => Ok(theirs),
                    (None, true) => Err(Failure::new("the session is over")),
                    (None, false) => self.sit(run, dir).await,
                };
                crate::run::tell(answer, seated);
                self.news(0, WireNews::Seats(self.seats.len())).await;
            }
            BoardCommand::Dismiss { why } => self.tell_all(|| ToSeat::Over { why: why.clone() }).await,
            BoardCommand::Sessions { answer } => self.ask_sessions(answer),
        }
    }

    async fn news(&self, attempt: u64, news: WireNews) {
        let name = self.room.plan.name.clone();
        self.room.reporter.report(Report::Connection { name, attempt, news }).await;
    }

    fn context(
        &self,
        id: &str,
        dir: RunDir,
        spare: Vec<String>,
        open_files: Option<(u64, u64)>,
    ) -> RunContext {
        RunContext {
            id: RunId(id.to_owned()),
            name: self.room.plan.name.clone(),
            driver: Driver::Acp,
            is_seat: false,
            talk: ConversationTerms::Stream,
            before: Vec::new(),
            dir,
            epoch: self.room.epoch,
            keeper_binary: self.room.keeper_binary.clone(),
            open_files,
            spare,
            fold: FoldTerms { timing: Timing::default(), scrollback: 0, program: String::new() },
            rule_book: self.room.rule_book.clone(),
        }
    }

    async fn spawn(&mut self, attempt: u64, spec: &WireSpec) {
        match self.spawned(spec).await {
            Ok(hold) => {
                let mut line = Line::new(attempt, hold);
                let greeting = line.router.initialize();
                line.outbox.push(greeting, Then::Nothing);
                self.news(attempt, WireNews::Spawned).await;
                match line.hold.follow(0).await {
                    Ok(()) => self.line = Some(line),
                    Err(cause) => self.cut(line, &cause).await,
                }
            }
            Err((not_found, cause)) => self.news(attempt, WireNews::SpawnFailed { not_found, cause }).await,
        }
    }

    async fn spawned(&self, spec: &WireSpec) -> Result<Hold, (bool, String)> {
        let other = |cause: &dyn std::fmt::Display| (false, cause.to_string());
        let id = run_meta::new_run_id().map_err(|err| other(&err))?;
        let dir = self.room.state.wire(&id.0);
        let meta = WireMeta {
            plan: self.room.plan.clone(),
            host: self.room.state.host().to_owned(),
            started_at: clock::timestamp(),
            argv: spec.argv.clone(),
            cwd: spec.cwd.as_path().into(),
            spare: spec.spare.clone(),
        };
        let (keeper, made, wanted) = (self.room.keeper_binary.clone(), dir.clone(), spec.clone());
        let (run, socket) = (id.clone(), self.room.state.daemon_socket());
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
        let context = self.context(&id.0, dir, spec.spare.clone(), spec.open_files);
        Hold::connect(context).await.map_err(|err| other(&err))
    }

    async fn end(&mut self, attempt: u64) {
        let Some(line) = self.line.as_mut().filter(|line| line.attempt == attempt) else { return };
        line.kill_at = Some((clock::now() + ENDS_WITHIN, Duration::ZERO));
        if let Err(cause) = line.hold.frames.say(&ToKeeper::CloseInput).await
            && let Some(line) = self.line.take()
        {
            self.cut(line, &cause).await;
        }
    }

    async fn sit(&mut self, run: RunId, dir: RunDir) -> Result<UnixStream, Failure> {
        let no_line = || Failure::new(format!("there is no connection to {}", self.room.plan.display_name));
        let line = self.line.as_ref().filter(|line| line.is_greeted).ok_or_else(no_line)?;
        let cannot = |err: io::Error| Failure::new("the session's journal cannot be written").caused_by(&err);
        let (seat, theirs) = self.take_seat(&line.hold, run.clone(), dir).map_err(cannot)?;
        let connected = line.connected();
        self.seats.insert(run.clone(), seat);
        if let Some(connected) = connected {
            self.tell(&run, connected).await;
        }
        Ok(theirs)
    }

    fn take_seat(&self, hold: &Hold, run: RunId, dir: RunDir) -> io::Result<(Seat, UnixStream)> {
        let (keeper, child) = (hold.keeper.clone(), hold.child.clone());
        let host = Host { keeper, child, environment: hold.environment.clone() };
        // Another host that shares this home sees by it that the run is held.
        std::fs::copy(hold.context.dir.pid_file(), dir.pid_file())?;
        Seat::take(run, dir, host, self.to_board.clone())
    }

    fn ask_sessions(&mut self, answer: oneshot::Sender<Result<Value, Failure>>) {
        match self.line.as_mut().filter(|line| line.is_greeted) {
            Some(line) => {
                let (id, bytes) = line.router.request_sessions(None, None);
                line.asked.insert(id, answer);
                line.outbox.push(bytes, Then::Nothing);
            }
            None => {
                let failure =
                    Failure::new(format!("there is no connection to {}", self.room.plan.display_name));
                crate::run::tell(
                    answer,
                    Err(failure.hint(format!("agency reconnect {}", self.room.plan.name))),
                );
            }
        }
    }

    async fn heard_seat(&mut self, run: RunId, told: FromSeat) {
        match (told, &mut self.line) {
            (FromSeat::Left, line) => {
                if let Some(line) = line {
                    line.router.forget_run(&run.0);
                }
                self.seats.remove(&run);
                self.news(0, WireNews::Seats(self.seats.len())).await;
            }
            (FromSeat::Write { id, line: bytes }, Some(line)) => {
                line.outbox.push(bytes, Then::Seat { run, id })
            }
            (FromSeat::Write { id, .. }, None) => {
                let reason = format!("there is no connection to {}", self.room.plan.display_name);
                self.tell(&run, ToSeat::Refused { id, reason }).await;
            }
        }
    }

    async fn tell(&self, run: &RunId, told: ToSeat) {
        if let Some(seat) = self.seats.get(run) {
            // One that has left meanwhile needs no word.
            drop(seat.inbox.send(told).await);
        }
    }

    async fn tell_all(&self, told: impl Fn() -> ToSeat) {
        for run in self.seats.keys() {
            self.tell(run, told()).await;
        }
    }

    /// Hears what has come, writes what waits. `false` once the process is gone.
    async fn settle(&mut self, line: &mut Line) -> io::Result<bool> {
        while let Some(heard) = line.hold.heard()? {
            match heard {
                Heard::Record(record) => self.route(line, &record).await,
                Heard::Message(message) => self.message(line, message).await?,
            }
        }
        self.greet(line).await;
        line.reply_for_nobody();
        self.answer_asked(line);
        if let Some((id, bytes)) = line.outbox.next() {
            line.hold.frames.send(&Frame::Input { source: InputSource::Send, id, bytes }).await?;
        }
        let is_over = line.hold.gone.is_some() && line.next_seq >= line.hold.next_seq_at_gone;
        Ok(!is_over)
    }

    /// A record of the connection's journal, to whom it is for.
    async fn route(&mut self, line: &mut Line, record: &Record) {
        if record.seq > 0 {
            if record.seq < line.next_seq {
                return;
            }
            line.next_seq = record.seq + 1;
        }
        let at = Duration::from_nanos(record.at_ns);
        let (routed, from_agent) = match &record.body {
            Body::Output { stream: Stream::Stderr, bytes } => return line.overheard(bytes),
            Body::Output { bytes, .. } => (line.router.on_output(bytes, at), true),
            Body::Input { bytes, .. } => (line.router.on_input(bytes, at), false),
            Body::Exit { status, .. } => {
                line.exit = Some(*status);
                return;
            }
            Body::Note { tag, .. } if tag == CLOSED_TAG => return self.deaf(line).await,
            _ => return,
        };
        for RoutedLine { to, line: bytes, problem } in routed {
            match to {
                Recipient::Run(run) => {
                    self.pass_on(&RunId(run), SeatLine { from_agent, bytes, at_ns: record.at_ns }).await
                }
                Recipient::Connection => {
                    if let Some(problem) = problem {
                        tracing::warn!(connection = self.room.plan.name, %problem, "a line for nobody");
                    }
                }
            }
        }
    }

    async fn pass_on(&mut self, run: &RunId, seat_line: SeatLine) {
        let Some(seat) = self.seats.get_mut(run) else { return };
        if seat.skip > 0 {
            seat.skip -= 1;
            return;
        }
        self.tell(run, ToSeat::Line(seat_line)).await;
    }

    /// Answers to what we asked about no session.
    fn answer_asked(&self, line: &mut Line) {
        for (id, answered) in line.router.take_own_answers() {
            let refused = |why| Failure::new(format!("{} refused", self.room.plan.display_name)).because(why);
            if let Some(answer) = line.asked.remove(&id) {
                crate::run::tell(answer, answered.map_err(refused));
            }
        }
    }

    async fn message(&mut self, line: &mut Line, message: FromKeeper) -> io::Result<()> {
        match message {
            FromKeeper::InputTaken { id } => {
                if let Some(Written { then: Then::Seat { run, id }, .. }) = line.outbox.taken(id) {
                    self.tell(&run, ToSeat::Taken { id }).await;
                }
            }
            FromKeeper::InputRefused { id, reason } => {
                if let Some(Then::Seat { run, id }) = line.outbox.refused(id) {
                    self.tell(&run, ToSeat::Refused { id, reason }).await;
                }
                // A pipe that takes nothing is as good as an exit.
                self.deaf(line).await;
            }
            FromKeeper::Sealed { from_seq, until_seq } => {
                for record in line.hold.sealed(from_seq, until_seq).await?.unwrap_or_default() {
                    self.route(line, &record).await;
                }
                line.next_seq = line.next_seq.max(until_seq);
            }
            FromKeeper::Gone { ended } => line.hold.is_gone(ended, line.next_seq),
            _ => {}
        }
        Ok(())
    }

    async fn greet(&mut self, line: &mut Line) {
        if line.is_met {
            return;
        }
        line.is_met = line.router.greeting().is_some();
        match line.router.greeting() {
            Some(Ok(greeted)) => {
                let (name, resumes) =
                    (called(&greeted.capabilities), greeted.capabilities.resume || greeted.capabilities.load);
                line.is_greeted = true;
                for run in self.seats.keys() {
                    if let Some(connected) = line.connected() {
                        self.tell(run, connected).await;
                    }
                }
                self.news(line.attempt, WireNews::Greeted { name, resumes }).await;
            }
            Some(Err(cause)) => {
                let cause = cause.to_owned();
                self.news(line.attempt, WireNews::HandshakeFailed { cause }).await;
            }
            None => {}
        }
    }

    /// It has closed one of its ends: nothing can come of it any more.
    async fn deaf(&self, line: &mut Line) {
        if line.kill_at.is_none() && line.hold.gone.is_none() {
            line.kill_at = Some((clock::now(), DEAF_GRACE));
            self.news(line.attempt, WireNews::Lost { cause: line.epitaph() }).await;
        }
    }

    /// Its process is gone, its last word has been carried.
    async fn over(&mut self, mut line: Line) {
        if let Err(cause) = line.hold.frames.say(&ToKeeper::Dismiss).await {
            tracing::debug!(connection = self.room.plan.name, %cause, "the keeper has left by itself");
        }
        self.lost(line).await;
    }

    /// The keeper hung up, and with it the pipes.
    async fn cut(&mut self, mut line: Line, cause: &io::Error) {
        tracing::warn!(connection = self.room.plan.name, %cause, "the keeper hung up");
        match line.hold.regain().await {
            Ok(_) => match line.hold.follow(line.next_seq).await {
                Ok(()) => self.line = Some(line),
                Err(_) => self.lost(line).await,
            },
            Err(_) => {
                let run = line.hold.context.id.0.clone();
                let ended = tokio::task::spawn_blocking(move || crate::process_tree::end_tree(&run)).await;
                tracing::info!(
                    connection = self.room.plan.name,
                    ended = ended.unwrap_or(0),
                    "what was left of it is ended"
                );
                self.lost(line).await;
            }
        }
    }

    async fn lost(&mut self, mut line: Line) {
        let cause = line.epitaph();
        for then in line.outbox.give_up() {
            if let Then::Seat { run, id } = then {
                self.tell(&run, ToSeat::Refused { id, reason: "the connection was lost".to_owned() }).await;
            }
        }
        for (_, answer) in std::mem::take(&mut line.asked) {
            crate::run::tell(answer, Err(Failure::new("the connection was lost").because(cause.clone())));
        }
        if line.is_greeted {
            self.tell_all(|| ToSeat::Lost { cause: cause.clone() }).await;
        }
        self.news(line.attempt, WireNews::Lost { cause }).await;
        self.news(line.attempt, WireNews::Gone).await;
    }

    async fn due(&mut self) {
        let now = clock::now();
        let Some(line) = &mut self.line else { return };
        let Some((_, grace)) = line.kill_at.take_if(|(at, _)| *at <= now) else { return };
        if let Err(cause) = line.hold.frames.say(&ToKeeper::Stop { grace_ms: grace.as_millis() as u64 }).await
            && let Some(line) = self.line.take()
        {
            self.cut(line, &cause).await;
        }
    }
}

impl Line {
    fn new(attempt: u64, hold: Hold) -> Line {
        Line {
            attempt,
            hold,
            router: Router::default(),
            outbox: Outbox::default(),
            next_seq: 0,
            is_greeted: false,
            is_met: false,
            kill_at: None,
            last_words: Vec::new(),
            exit: None,
            asked: BTreeMap::new(),
            replied: Vec::new(),
        }
    }

    fn deadline(&self) -> Option<Duration> {
        self.kill_at.map(|(at, _)| at)
    }

    /// What a seat is told first.
    fn connected(&self) -> Option<ToSeat> {
        let Some(Ok(greeted)) = self.router.greeting() else { return None };
        Some(ToSeat::Connected { connection: self.hold.context.id.0.clone(), answer: greeted.line.clone() })
    }

    /// What the agent asks of nobody is refused, or it would wait for ever.
    fn reply_for_nobody(&mut self) {
        let owed = self.router.owed_lines();
        self.replied.retain(|key| owed.iter().any(|(owed, _)| owed == key));
        for (key, bytes) in owed {
            if !self.replied.contains(&key) {
                self.replied.push(key);
                self.outbox.push(bytes, Then::Nothing);
            }
        }
    }

    fn overheard(&mut self, bytes: &[u8]) {
        self.last_words.extend_from_slice(bytes);
        let too_many = self.last_words.len().saturating_sub(LAST_WORDS);
        self.last_words.drain(..too_many);
    }

    /// Why it ended, as far as anybody knows.
    fn epitaph(&self) -> String {
        let ended = match self.exit {
            Some(ExitStatus::Signal(signal)) => return format!("its process was ended by signal {signal}"),
            Some(ExitStatus::Code(code)) => format!("its process ended with code {code}"),
            Some(ExitStatus::Unknown) => "its process ended".to_owned(),
            None => "it closed its output".to_owned(),
        };
        let words = String::from_utf8_lossy(&self.last_words);
        match words.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(last) => format!("{ended}: {}", agency_core::plain::one_line(last.trim(), LAST_WORDS)),
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
async fn filled(line: &mut Option<Line>) -> io::Result<()> {
    match line {
        Some(line) => line.hold.frames.fill().await,
        None => std::future::pending().await,
    }
}

fn launch_spec(
    id: &RunId,
    name: &str,
    dir: &RunDir,
    spec: WireSpec,
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
pub fn found(state: &StateDir) -> Vec<(RunDir, WireMeta, bool)> {
    let Ok(entries) = std::fs::read_dir(state.wires()) else { return Vec::new() };
    let dirs = entries.flatten().map(|entry| RunDir(entry.path()));
    let known = dirs.filter_map(|dir| WireMeta::read(&dir).map(|meta| (dir, meta)));
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

/// Blocking. What a process that is gone had still said reaches the sessions that were seated there.
pub fn settle_dead<'a>(dir: &RunDir, seated: impl Iterator<Item = &'a Sitting>) -> io::Result<()> {
    let id = name_of(dir);
    let is_here = |sitting: &&Sitting| sitting.progress.connection.as_deref() == Some(&id);
    let mut seats: HashMap<String, (Writer, u64)> = HashMap::new();
    for sitting in seated.filter(is_here).filter(|sitting| !sitting.progress.is_lost) {
        let writer = Writer::recover(&sitting.dir.journal(), Limits::PIPES)?;
        seats.insert(sitting.run.0.clone(), (writer, sitting.progress.lines.saturating_sub(1)));
    }
    if seats.is_empty() {
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
            match seats.get_mut(&run) {
                Some((_, skip)) if *skip > 0 => *skip -= 1,
                Some((writer, _)) => drop(writer.append(record.at_ns, &seat::body(from_agent, bytes))?),
                None => {}
            }
        }
    }
    Ok(())
}

/// Blocking. Sessions whose connection is gone for good are over.
pub fn close_all(seated: &[Sitting]) -> io::Result<()> {
    seated.iter().try_for_each(|sitting| seat::close(&sitting.dir, "the connection was gone"))
}

/// Blocking. What processes said that ended long ago stands in their sessions' own journals.
pub fn forget_oldest(dead: &[RunDir]) {
    for dir in &dead[..dead.len().saturating_sub(DEAD_KEPT)] {
        if let Err(left) = std::fs::remove_dir_all(dir.path()) {
            tracing::warn!(%left, "the directory of an old connection stays behind");
        }
    }
}

/// Enough to see why the last ones ended.
const DEAD_KEPT: usize = 5;

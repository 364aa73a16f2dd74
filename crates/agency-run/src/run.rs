//! One live run, as the daemon sees it: follows its keeper, folds its journal, serves its viewers.
//!
//! Decides nothing about the task: it reports what happens and does what it is told.
//!
//! Invariant: the screen is fed by journal records alone. Input, resizes and answers go to the
//! keeper and come back as records.

mod sight;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use agency_api::event::EventData;
use agency_api::keeper::{Ended, Frame, FromKeeper, InputSource, PROBE_TAG, TerminalProbe, ToKeeper};
use agency_api::method::ScreenDump;
use agency_api::pty::ViewerNotice;
use agency_api::view::Witness;
use agency_api::{Bytes, Failure, ProcessIdentity, chat};
use agency_core::agent::Driver;
use agency_core::agent_state::Timing;
use agency_core::approval::Ruling;
use agency_core::conversation::Approval;
use agency_core::evidence::{Change, Detector, Evidence, Standing};
use agency_core::exit::{ExitCode, RunExit};
use agency_core::ids::RunId;
use agency_journal::{Body, Record};
use agency_store::clock;
use agency_terminal::{Colours, ScreenEvent, Size};
use tokio::sync::{mpsc, oneshot};

use crate::audience::{Audience, View};
use crate::bulletin::Bulletin;
use crate::explain;
use crate::fold::Fold;
use crate::hold::{Heard, Hold, RunContext, wire_size};
use crate::link::LinkError;
use crate::piped::{Answering, PipedTask, Reading, Tuning};
use crate::report::{Report, ReportSink};
use crate::seal;
use crate::sending::{Order, Sending};
use crate::switchboard::BoardCommand;
use crate::talk::Decided;
use crate::viewer::{ViewerId, ViewerQueue};

/// Folding this much again takes a fraction of a second; a checkpoint costs some ten milliseconds.
const CHECKPOINT_EVERY_BYTES: u64 = 16 << 20;

/// Rules about screens take a fraction of a millisecond each time; asking so often again is half a second.
const CHECKPOINT_EVERY_CONSULTATIONS: u32 = 3_000;

/// Typed input waits here while the keeper is busy; more than this is not typing.
const COMMANDS_WAITING: usize = 256;

#[derive(Debug)]
pub enum RunCommand {
    /// Always first: the daemon knows the run now, and its news will be understood.
    Begin,
    Attach {
        viewer: ViewerId,
        queue: Arc<ViewerQueue>,
        view: View,
    },
    Detach {
        viewer: ViewerId,
    },
    Typed {
        viewer: ViewerId,
        bytes: Vec<u8>,
    },
    Resized {
        viewer: ViewerId,
        size: Size,
    },
    /// What the viewer's terminal says of its colours.
    Colours {
        viewer: ViewerId,
        colours: Colours,
    },
    /// The viewer lost output and has sent all it had.
    Refresh {
        viewer: ViewerId,
    },
    Send(Order),
    /// For every viewer.
    Pass(ViewerNotice),
    Screen {
        answer: oneshot::Sender<ScreenDump>,
    },
    /// The rules about screens may have changed.
    HeedRules,
    /// The user's rules about approvals have changed.
    Reconsider,
    /// Who says what of its state.
    Witnesses {
        answer: oneshot::Sender<(Standing, Vec<Witness>, Vec<String>)>,
    },
    /// A conversation is read; only where there is one.
    Chat(Reading),
    /// What waits for an answer; only where there are conversations.
    Approvals {
        answer: oneshot::Sender<Vec<chat::Approval>>,
    },
    Answer(Answering),
    /// What the user's rules say of what the agent asked; none of them: it is left to people.
    Ruled {
        id: String,
        ruling: Option<Ruling>,
    },
    /// What was answered so far.
    Decisions {
        answer: oneshot::Sender<Vec<Decided>>,
    },
    /// A setting is shown or changed.
    Tune(Tuning),
    /// End the turn, keep the session.
    Interrupt {
        answer: oneshot::Sender<Result<(), Failure>>,
    },
    Stop {
        grace: Duration,
    },
    /// The run is over and everyone knows: let the keeper go.
    Dismiss,
    /// The daemon leaves; keeper and agent stay.
    Leave {
        done: oneshot::Sender<()>,
    },
}

/// What a run tells the daemon.
#[derive(Debug)]
pub enum RunNews {
    State(Box<Change>),
    /// The state is the same, and rests on something else, or is about something else.
    Evidence(Box<Evidence>),
    /// The agent says which conversation it is in.
    Session(String),
    /// The agent does not have the conversation that it was to go on with.
    SessionLost,
    Viewers(usize),
    /// What happened in its conversation up to a record, and when.
    Told {
        happened: Vec<(Duration, EventData)>,
        next_seq: u64,
    },
    /// The agent may do something only if somebody says so.
    Asked(Box<Approval>),
    /// The agent has exited, its output is folded, its tree is gone.
    Over {
        exit: RunExit,
        ended: Vec<Ended>,
    },
    /// The keeper was killed and another one holds the run now.
    Rescued {
        keeper: ProcessIdentity,
    },
    /// A keeper that did not answer when it was found does now.
    Reached {
        environment: Vec<(Bytes, Bytes)>,
    },
    /// The journal cannot be written, or can again.
    Journal {
        cause: Option<String>,
    },
}

#[derive(Debug, Clone)]
pub struct RunHandle {
    pub commands: mpsc::Sender<RunCommand>,
    pub keeper: ProcessIdentity,
    pub environment: Vec<(Bytes, Bytes)>,
    /// The agent and its tree were gone when the keeper was found.
    pub gone: bool,
    /// What its journal said when it was found; news follow at each change.
    pub standing: Standing,
    /// What changed while no daemon looked, oldest first.
    pub missed: Vec<Change>,
}

/// Where a run's news go.
pub struct NewsDesk {
    pub reporter: ReportSink,
    pub run: RunId,
}

impl NewsDesk {
    pub async fn tell(&self, news: RunNews) {
        self.reporter.report(Report::Run { run: self.run.clone(), news }).await;
    }
}

/// Connects to the keeper, folds its journal on a thread that may block, then follows it.
pub async fn follow(context: RunContext, news: NewsDesk) -> Result<RunHandle, LinkError> {
    Ok(follow_held(Hold::connect(context).await?, news).await)
}

/// Takes a place at a connection.
pub async fn seated(
    board: &mpsc::Sender<BoardCommand>,
    context: RunContext,
    news: NewsDesk,
    was_here: bool,
) -> Result<RunHandle, Failure> {
    let (answer, told) = oneshot::channel();
    let gone = || Failure::new("the connection is gone");
    let sit = BoardCommand::Sit { run: context.id.clone(), dir: context.dir.clone(), was_here, answer };
    board.send(sit).await.map_err(|_| gone())?;
    let stream = told.await.map_err(|_| gone())??;
    let hold = Hold::seated(context, stream).await;
    let hold = hold.map_err(|err| Failure::new("the connection does not answer").caused_by(&err))?;
    Ok(follow_held(hold, news).await)
}

pub async fn follow_held(hold: Hold, news: NewsDesk) -> RunHandle {
    if hold.context.driver != Driver::Terminal {
        return follow_piped(hold, news).await;
    }
    let mut task = RunTask::begin(hold, news).await;
    let missed = task.bulletin.missed(task.fold.run.take_changes(), task.fold.run.detector());
    let (commands, mut inbox) = mpsc::channel(COMMANDS_WAITING);
    let handle = RunHandle {
        commands,
        keeper: task.hold.keeper.clone(),
        environment: task.hold.environment.clone(),
        gone: task.hold.gone.is_some(),
        standing: task.fold.run.detector().standing(),
        missed,
    };
    tokio::spawn(async move {
        // Nobody wants it followed after all: the keeper goes on without us.
        if let Some(RunCommand::Begin) = inbox.recv().await {
            task.live(inbox).await;
        }
    });
    handle
}

async fn follow_piped(hold: Hold, news: NewsDesk) -> RunHandle {
    let mut task = PipedTask::begin(hold, news).await;
    let (commands, mut inbox) = mpsc::channel(COMMANDS_WAITING);
    let handle = task.handle(commands);
    tokio::spawn(async move {
        if let Some(RunCommand::Begin) = inbox.recv().await {
            task.live(inbox).await;
        }
    });
    handle
}

/// Follows a keeper that lives but does not answer now, stopped or swapped out, as soon as it does.
pub fn follow_later(context: RunContext, keeper: ProcessIdentity, news: NewsDesk) -> RunHandle {
    let (commands, mut inbox) = mpsc::channel(COMMANDS_WAITING);
    let handle = RunHandle {
        commands,
        keeper: keeper.clone(),
        environment: Vec::new(),
        gone: false,
        standing: Detector::new(Timing::default(), clock::now()).standing(),
        missed: Vec::new(),
    };
    tokio::spawn(async move {
        if let Some(RunCommand::Begin) = inbox.recv().await {
            match Hold::connect_patiently(context, &keeper).await {
                Ok(hold) => {
                    news.tell(RunNews::Reached { environment: hold.environment.clone() }).await;
                    if hold.context.driver != Driver::Terminal {
                        return PipedTask::begin(hold, news).await.live(inbox).await;
                    }
                    let mut task = RunTask::begin(hold, news).await;
                    task.report_state().await;
                    task.bulletin.caught_up();
                    task.live(inbox).await;
                }
                Err(cause) => {
                    tracing::error!(run = %news.run, %cause, "the keeper ended before it answered");
                    let exit = RunExit::unasked(ExitCode::Unknown);
                    news.tell(RunNews::Over { exit, ended: Vec::new() }).await;
                }
            }
        }
    });
    handle
}

struct RunTask {
    hold: Hold,
    fold: Fold,
    audience: Audience,
    sending: Sending,
    next_input: u64,
    /// Bytes of what is being sent that the keeper has not handed over yet.
    in_flight: Option<u64>,
    /// When the agent last drew something.
    drawn_at: Duration,
    /// What the terminal was like when it was last asked.
    asked: Option<(Duration, TerminalProbe)>,
    /// Answers up to this output offset are on their way to the agent.
    answers_sent_to: u64,
    bulletin: Bulletin,
    over: bool,
    news: NewsDesk,
}

pub enum Flow {
    Stay,
    Leave,
}

impl RunHandle {
    /// Commands arrive in the order they were given unless the run is far behind.
    pub fn command(&self, command: RunCommand) {
        match self.commands.try_send(command) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(command)) => {
                let commands = self.commands.clone();
                // Closed meanwhile: the run is over, which no command can change.
                tokio::spawn(async move { drop(commands.send(command).await) });
            }
        }
    }
}

impl RunTask {
    async fn begin(hold: Hold, news: NewsDesk) -> RunTask {
        let mut fold = hold.rebuild().await;
        // Silence counts also while no daemon looked.
        fold.run.tick(clock::now());
        RunTask {
            bulletin: Bulletin::open(hold.context.dir.states(), fold.run.detector()),
            hold,
            fold,
            audience: Audience::default(),
            sending: Sending::default(),
            next_input: 1,
            in_flight: None,
            drawn_at: Duration::ZERO,
            asked: None,
            answers_sent_to: 0,
            over: false,
            news,
        }
    }

    async fn live(mut self, mut inbox: mpsc::Receiver<RunCommand>) {
        if let Some(cause) = self.hold.journal_trouble.take() {
            self.news.tell(RunNews::Journal { cause: Some(cause) }).await;
        }
        let mut connected = self.hold.follow(self.fold.next_seq).await;
        loop {
            if let Err(cause) = connected {
                connected = self.lost(&cause).await;
                continue;
            }
            connected = self.settle().await;
            if connected.is_err() {
                continue;
            }
            let deadline = sleep_until(self.deadline());
            tokio::select! {
                biased;
                command = inbox.recv() => match command {
                    Some(command) => match self.command(command).await {
                        Ok(Flow::Stay) => {}
                        Ok(Flow::Leave) => return,
                        Err(cause) => connected = Err(cause),
                    },
                    None => return,
                },
                filled = self.hold.frames.fill(), if !self.hold.left => connected = filled,
                () = deadline => connected = self.due().await,
            }
        }
    }

    fn deadline(&self) -> Option<Duration> {
        let sending = self.sending.deadline(clock::now()).filter(|_| self.in_flight.is_none());
        [self.fold.run.deadline(), sending, self.audience.deadline()].into_iter().flatten().min()
    }

    async fn due(&mut self) -> io::Result<()> {
        let now = clock::now();
        self.heed_rules();
        self.fold.run.tick(now);
        match self.sending.wants_proof() {
            true => self.hold.frames.say(&ToKeeper::Probe { id: 0 }).await,
            false => Ok(()),
        }
    }

    /// After every step: what is owed goes out, what changed is told.
    async fn settle(&mut self) -> io::Result<()> {
        while self.hold.frames.has_more() {
            if !self.frames().await? {
                break;
            }
        }
        self.audience.draw_frames_if_due(self.fold.run.screen(), clock::now());
        self.answer().await?;
        self.send_on().await?;
        self.report_state().await;
        self.checkpoint_if_due().await?;
        self.finish_if_over().await;
        Ok(())
    }

    async fn answer(&mut self) -> io::Result<()> {
        if self.fold.exit.is_some() {
            return Ok(());
        }
        let due: Vec<_> = self
            .fold
            .run
            .owed_answers()
            .filter(|owed| owed.output_offset > self.answers_sent_to)
            .cloned()
            .collect();
        for answer in due {
            self.answers_sent_to = answer.output_offset;
            let source = InputSource::Answer { output_offset: answer.output_offset };
            self.hold.frames.send(&Frame::Input { source, id: 0, bytes: answer.bytes }).await?;
        }
        Ok(())
    }

    async fn report_state(&mut self) {
        let changes = self.fold.run.take_changes();
        let (detector, session) = (self.fold.run.detector(), self.fold.session_id.as_deref());
        if self.bulletin.tell(changes, detector, session, &self.news).await {
            // A quiet moment: the sealed part of the journal can be compressed.
            seal::in_background(self.hold.context.dir.journal());
        }
    }

    /// Screens are read by the rules as they are now.
    fn heed_rules(&mut self) {
        self.fold.run.set_rules(self.hold.context.rule_book.rules(), clock::now());
    }

    async fn checkpoint_if_due(&mut self) -> io::Result<()> {
        let since = self.fold.output_offset.saturating_sub(self.fold.checkpointed_to);
        let is_short =
            since < CHECKPOINT_EVERY_BYTES && self.fold.run.consultations() < CHECKPOINT_EVERY_CONSULTATIONS;
        if is_short || !self.fold.run.screen().in_ground() {
            return Ok(());
        }
        self.checkpoint().await
    }

    async fn checkpoint(&mut self) -> io::Result<()> {
        let (at_seq, bytes) = self.fold.checkpoint()?;
        self.hold.frames.send(&Frame::Checkpoint { at_seq, bytes }).await
    }

    async fn finish_if_over(&mut self) {
        let Some(exit) = self.hold.exit(self.fold.exit, self.fold.next_seq) else { return };
        // Told to every viewer, also one that comes late, and to the daemon once.
        let notice = ViewerNotice::Exited { code: exit.code.to_string() };
        self.audience.end(self.fold.run.screen(), &notice);
        if !std::mem::replace(&mut self.over, true) {
            self.sending.over();
            self.news.tell(RunNews::Over { exit, ended: self.hold.gone.clone().unwrap_or_default() }).await;
        }
    }

    /// Takes in everything that has come whole; `false` if there was nothing.
    async fn frames(&mut self) -> io::Result<bool> {
        let mut any = false;
        while let Some(heard) = self.hold.heard()? {
            any = true;
            match heard {
                Heard::Record(record) => self.fold_record(&record),
                Heard::Message(message) => self.heard(message).await?,
            }
        }
        Ok(any)
    }

    fn fold_record(&mut self, record: &Record) {
        // A record without a number is live only: the disk did not take it.
        if record.seq > 0 && record.seq < self.fold.next_seq {
            return;
        }
        for event in self.fold.record(record) {
            match event {
                ScreenEvent::Bell => self.audience.bell(),
                ScreenEvent::Clipboard { selection, data } => self.audience.copy(selection, data),
                _ => {}
            }
        }
        match &record.body {
            Body::Output { bytes, .. } => {
                self.drawn_at = Duration::from_nanos(record.at_ns);
                self.audience.output(bytes, clock::now());
            }
            Body::Resize { .. } => self.audience.resized(self.fold.run.screen()),
            // The keeper looked again: what was asked before is old.
            Body::Note { tag, .. } if tag == PROBE_TAG => self.asked = None,
            _ => {}
        }
    }

    async fn read_sealed(&mut self, from_seq: u64, until_seq: u64) -> io::Result<()> {
        match self.hold.sealed(from_seq, until_seq).await? {
            Some(records) => records.iter().for_each(|record| self.fold_record(record)),
            None => self.fold.next_seq = until_seq,
        }
        Ok(())
    }

    async fn heard(&mut self, message: FromKeeper) -> io::Result<()> {
        match message {
            FromKeeper::InputTaken { id } if self.in_flight == Some(id) => {
                self.in_flight = None;
                self.sending.taken(clock::now());
            }
            FromKeeper::InputRefused { id, reason } if self.in_flight == Some(id) => {
                self.in_flight = None;
                self.sending.refused(Failure::new("the agent's terminal takes no input").because(reason));
            }
            FromKeeper::Probe { probe, .. } => {
                self.asked = probe.terminal.map(|terminal| (clock::now(), terminal));
            }
            FromKeeper::InputTaken { .. } | FromKeeper::InputRefused { .. } => {}
            FromKeeper::Sealed { from_seq, until_seq } => self.read_sealed(from_seq, until_seq).await?,
            FromKeeper::Gone { ended } => self.hold.is_gone(ended, self.fold.next_seq),
            FromKeeper::Journal { cause } => self.news.tell(RunNews::Journal { cause }).await,
            FromKeeper::Welcome(_) | FromKeeper::Refused { .. } => {}
            FromKeeper::Environment { .. } | FromKeeper::Unknown => {}
        }
        Ok(())
    }

    async fn command(&mut self, command: RunCommand) -> io::Result<Flow> {
        match command {
            RunCommand::Begin => {}
            RunCommand::Attach { viewer, queue, view } => {
                let wanted = self.audience.attach(self.fold.run.screen(), viewer, queue, view);
                self.news.tell(RunNews::Viewers(self.audience.count())).await;
                if let Some(size) = wanted {
                    self.hold.resize(size).await?;
                }
            }
            RunCommand::Detach { viewer } => {
                self.audience.detach(self.fold.run.screen(), viewer);
                self.news.tell(RunNews::Viewers(self.audience.count())).await;
            }
            RunCommand::Typed { viewer, bytes } if self.audience.is_controller(viewer) => {
                self.hold.frames.send(&Frame::Input { source: InputSource::User, id: 0, bytes }).await?;
            }
            // Those who only look do not type.
            RunCommand::Typed { .. } => {}
            RunCommand::Resized { viewer, size } => {
                if let Some(size) = self.audience.resize(self.fold.run.screen(), viewer, size) {
                    self.hold.resize(size).await?;
                }
            }
            RunCommand::Colours { viewer, colours } => {
                self.audience.set_colours(self.fold.run.screen(), viewer, colours);
            }
            RunCommand::Refresh { viewer } => self.audience.refresh(self.fold.run.screen(), viewer),
            RunCommand::Send(order) => self.sending.push(order),
            RunCommand::HeedRules => self.heed_rules(),
            RunCommand::Witnesses { answer } => {
                self.heed_rules();
                let now = clock::now();
                self.fold.run.tick(now);
                let detector = self.fold.run.detector();
                let (witnesses, outlook) = explain::witnesses(detector, now);
                tell(answer, (detector.standing(), witnesses, outlook));
            }
            RunCommand::Pass(notice) => self.audience.pass(notice),
            // A terminal holds no conversation; who asks is told so before it gets here.
            RunCommand::Chat(_)
            | RunCommand::Approvals { .. }
            | RunCommand::Answer(_)
            | RunCommand::Ruled { .. }
            | RunCommand::Decisions { .. }
            | RunCommand::Reconsider
            | RunCommand::Tune(_)
            | RunCommand::Interrupt { .. } => {}
            RunCommand::Screen { answer } => tell(answer, self.screen_dump()),
            RunCommand::Stop { grace } => {
                self.hold.frames.say(&ToKeeper::Stop { grace_ms: grace.as_millis() as u64 }).await?;
            }
            RunCommand::Dismiss => {
                self.checkpoint().await?;
                self.hold.frames.say(&ToKeeper::Dismiss).await?;
                seal::in_background(self.hold.context.dir.journal());
                return Ok(Flow::Leave);
            }
            RunCommand::Leave { done } => {
                self.audience.end(self.fold.run.screen(), &ViewerNotice::DaemonLeaves);
                tell(done, ());
                return Ok(Flow::Leave);
            }
        }
        Ok(Flow::Stay)
    }

    fn screen_dump(&mut self) -> ScreenDump {
        let next_seq = self.fold.next_seq;
        let screen = self.fold.run.screen();
        ScreenDump {
            size: wire_size(screen.size()),
            cursor: screen.cursor(),
            title: screen.title().to_string(),
            alternate: screen.is_alternate(),
            modes: serde_json::to_value(screen.modes()).unwrap_or_default(),
            text: screen.text(),
            ansi: Bytes(screen.redraw(true)),
            next_seq,
            dump: Bytes(screen.dump()),
        }
    }

    /// What is being sent goes on, as far as it can now.
    async fn send_on(&mut self) -> io::Result<()> {
        if self.sending.is_idle() || self.in_flight.is_some() {
            return Ok(());
        }
        let mut sending = std::mem::take(&mut self.sending);
        let written = sending.next(&mut || self.sight());
        self.sending = sending;
        let Some(bytes) = written else { return Ok(()) };
        let id = self.next_input;
        self.next_input += 1;
        self.in_flight = Some(id);
        self.hold.frames.send(&Frame::Input { source: InputSource::Send, id, bytes }).await
    }

    /// The keeper hung up: find it again, or put another in its place, or say that the run is over.
    async fn lost(&mut self, cause: &io::Error) -> io::Result<()> {
        if self.over {
            self.hold.left = true;
            return Ok(());
        }
        tracing::warn!(run = %self.hold.context.id, %cause, "the keeper hung up");
        self.sending.refuse_all("the keeper hung up before the agent took the text");
        self.in_flight = None;
        // What was on its way may not have arrived; the journal will tell.
        self.answers_sent_to = 0;
        match self.hold.regain().await {
            Ok(replaced) => {
                if replaced {
                    self.news.tell(RunNews::Rescued { keeper: self.hold.keeper.clone() }).await;
                }
                self.hold.follow(self.fold.next_seq).await
            }
            Err(cause) => {
                tracing::error!(run = %self.hold.context.id, %cause, "the run is lost");
                self.fold = self.hold.rebuild().await;
                self.hold.is_gone(Vec::new(), 0);
                self.hold.left = true;
                self.finish_if_over().await;
                Ok(())
            }
        }
    }
}

/// Whoever asked may have left by now, which is no trouble of ours.
pub fn tell<T>(whom: oneshot::Sender<T>, what: T) {
    drop(whom.send(what));
}

pub async fn sleep_until(deadline: Option<Duration>) {
    match deadline {
        Some(at) => tokio::time::sleep(at.saturating_sub(clock::now())).await,
        None => std::future::pending().await,
    }
}

//! One live run, as the daemon sees it: follows its keeper, folds its journal, serves its viewers.
//!
//! Decides nothing about the task: it reports what happens and does what it is told.
//!
//! Invariant: the screen is fed by journal records alone. Input, resizes and answers go to the
//! keeper and come back as records.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use agency_api::keeper::{Ended, Frame, FromKeeper, InputSource, PROBE_TAG, TerminalProbe, ToKeeper};
use agency_api::method::ScreenDump;
use agency_api::pty::ViewerNotice;
use agency_api::view::Witness;
use agency_api::{Bytes, Failure, ProcessIdentity, chat};
use agency_core::agent::Driver;
use agency_core::agent_state::AgentState;
use agency_core::agent_state::Timing;
use agency_core::evidence::{Activity, Change, Detector, Evidence, Rules, Rung, Standing};
use agency_core::exit::{ExitCode, RunExit};
use agency_core::ids::RunId;
use agency_journal::{Body, Decoded, Record};
use agency_terminal::{Colours, ScreenEvent, Size};
use tokio::sync::{mpsc, oneshot};

use crate::audience::{Audience, View};
use crate::fold::Fold;
use crate::happening::{Happening, Reporter};
use crate::hold::{Hold, RunContext, wire_size};
use crate::link::LinkError;
use crate::piped::{Answering, PipedTask, Reading};
use crate::seal;
use crate::sending::{Order, Sending, Sight};
use crate::state_log::StateLog;
use crate::viewer::{ViewerId, ViewerQueue};
use crate::{clock, explain};

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
    /// What happened in its conversation: when, which kind of event, its data.
    Told(Vec<(Duration, (&'static str, serde_json::Value))>),
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
    pub reporter: Reporter,
    pub run: RunId,
}

impl NewsDesk {
    pub async fn tell(&self, news: RunNews) {
        self.reporter.report(Happening::RunNews { run: self.run.clone(), news }).await;
    }
}

/// Connects to the keeper, folds its journal on a thread that may block, then follows it.
pub async fn follow(context: RunContext, news: NewsDesk) -> Result<RunHandle, LinkError> {
    Ok(follow_held(Hold::connect(context).await?, news).await)
}

pub async fn follow_held(hold: Hold, news: NewsDesk) -> RunHandle {
    if hold.context.driver != Driver::Terminal {
        return follow_piped(hold, news).await;
    }
    let mut task = RunTask::begin(hold, news).await;
    let missed = task.log_changes();
    task.states.caught_up();
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
                    task.states.caught_up();
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
    states: StateLog,
    rules: Arc<Rules>,
    session_id: Option<String>,
    /// What the state rests on, as the daemon knows it.
    told_evidence: Evidence,
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
            states: StateLog::open(hold.context.dir.states()),
            session_id: None,
            told_evidence: fold.run.detector().standing().evidence,
            rules: hold.context.rule_book.rules(),
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
        let due: Vec<_> =
            self.fold.run.owed().filter(|owed| owed.output_offset > self.answers_sent_to).cloned().collect();
        for answer in due {
            self.answers_sent_to = answer.output_offset;
            let source = InputSource::Answer { output_offset: answer.output_offset };
            self.hold.frames.send(&Frame::Input { source, id: 0, bytes: answer.bytes }).await?;
        }
        Ok(())
    }

    async fn report_state(&mut self) {
        for change in self.log_changes() {
            let is_quiet = !matches!(change.new.state, AgentState::Starting | AgentState::Running);
            self.told_evidence.clone_from(&change.new.evidence);
            self.news.tell(RunNews::State(Box::new(change))).await;
            if is_quiet {
                // The sealed part of the journal can be compressed.
                seal::in_background(self.hold.context.dir.journal());
            }
        }
        self.report_evidence().await;
        if self.session_id != self.fold.session_id {
            self.session_id.clone_from(&self.fold.session_id);
            if let Some(id) = self.session_id.clone() {
                self.news.tell(RunNews::Session(id)).await;
            }
        }
    }

    async fn report_evidence(&mut self) {
        let evidence = self.fold.run.detector().standing().evidence;
        if self.told_evidence != evidence {
            self.told_evidence = evidence.clone();
            self.news.tell(RunNews::Evidence(Box::new(evidence))).await;
        }
    }

    /// What changed and nobody was told of.
    fn log_changes(&mut self) -> Vec<Change> {
        let began = self.fold.run.detector().began();
        self.states.new_among(self.fold.run.take_changes(), began)
    }

    /// Screens are read by the rules as they are now.
    fn heed_rules(&mut self) {
        let rules = self.hold.context.rule_book.rules();
        if !Arc::ptr_eq(&rules, &self.rules) {
            self.rules = rules.clone();
            self.fold.run.set_rules(rules, clock::now());
        }
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

    /// How it ended, once the exit has been folded and the tree is gone.
    fn exit(&self) -> Option<RunExit> {
        self.hold.gone.as_ref()?;
        let caught_up = self.fold.next_seq >= self.hold.next_seq_at_gone;
        // A journal that has none lost it, on a full disk say.
        self.fold.exit.or(caught_up.then_some(RunExit::unasked(ExitCode::Unknown)))
    }

    async fn finish_if_over(&mut self) {
        let Some(exit) = self.exit() else { return };
        // Told to every viewer, also one that comes late, and to the daemon once.
        let notice = ViewerNotice::Exited { code: exit.code.to_string() };
        self.audience.end(self.fold.run.screen(), &notice);
        if !std::mem::replace(&mut self.over, true) {
            self.sending.over();
            self.news.tell(RunNews::Over { exit, ended: self.hold.gone.clone().unwrap_or_default() }).await;
        }
    }

    /// Takes in every whole frame that has come; `false` if there was none.
    async fn frames(&mut self) -> io::Result<bool> {
        let mut any = false;
        while let Some(frame) = self.hold.frames.take()? {
            any = true;
            match frame {
                Frame::Record(bytes) => self.record(&bytes)?,
                Frame::Control(json) => match serde_json::from_slice(&json) {
                    Ok(message) => self.heard(message).await?,
                    Err(cause) => {
                        tracing::warn!(run = %self.hold.context.id, %cause, "a message makes no sense")
                    }
                },
                Frame::Input { .. } | Frame::Checkpoint { .. } | Frame::Note { .. } => {}
            }
        }
        Ok(any)
    }

    fn record(&mut self, bytes: &[u8]) -> io::Result<()> {
        let record = match Record::decode(bytes) {
            Decoded::Complete(record, _) => record,
            other => return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a record: {other:?}"))),
        };
        self.fold_record(&record);
        Ok(())
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

    /// Records that were compressed before the keeper could send them are read here.
    async fn read_sealed(&mut self, from_seq: u64, until_seq: u64) -> io::Result<()> {
        let journal = self.hold.context.dir.journal();
        let read = tokio::task::spawn_blocking(move || crate::fold::records(&journal, from_seq, until_seq));
        match read.await.map_err(io::Error::other)? {
            Ok(records) => records.iter().for_each(|record| self.fold_record(record)),
            // Asking again would give the same answer; what comes after it is still worth seeing.
            Err(cause) => {
                tracing::error!(run = %self.hold.context.id, %cause, from_seq, until_seq, "records are lost");
                self.fold.next_seq = until_seq;
            }
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
                self.news.tell(RunNews::Viewers(self.audience.len())).await;
                if let Some(size) = wanted {
                    self.hold.resize(size).await?;
                }
            }
            RunCommand::Detach { viewer } => {
                self.audience.detach(self.fold.run.screen(), viewer);
                self.news.tell(RunNews::Viewers(self.audience.len())).await;
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

    /// What can be seen of the agent by who wants to send it something.
    fn sight(&mut self) -> Sight {
        let now = clock::now();
        self.heed_rules();
        self.fold.run.look_now(now);
        let standing = self.fold.run.detector().standing();
        let full_screen = self.fold.run.detector().is_full_screen();
        let dialog_shown = shows_dialog(self.fold.run.detector());
        let noted = self.fold.terminal.clone();
        let (asked_at, terminal) = match self.asked.clone() {
            Some((at, terminal)) => (Some(at), Some(terminal)),
            None => (None, noted),
        };
        let canonical = terminal.as_ref().is_some_and(|terminal| terminal.canonical);
        let all_read = terminal.as_ref().is_some_and(|terminal| terminal.input_waiting == Some(0));
        let screen = self.fold.run.screen();
        let modes = screen.modes();
        Sight {
            now,
            dialog: dialog(&standing),
            state_since: standing.since.at,
            dialog_shown,
            reads_lines: canonical,
            hides_input: terminal.is_some_and(|terminal| terminal.canonical && !terminal.echo),
            full_screen,
            bracketed_paste: modes.bracketed_paste,
            app_cursor: modes.app_cursor,
            kitty_flags: screen.keyboard_flags(),
            drawn_at: self.drawn_at,
            works: works(&standing),
            all_read_at: asked_at.filter(|_| all_read),
            rows: screen.rows(),
            cursor: screen.cursor(),
        }
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

/// What is open instead of the prompt. A line program that asks is answered by what is typed.
fn dialog(standing: &Standing) -> Option<String> {
    let (_, why) = standing.state.waiting().filter(|(_, why)| why.is_dialog())?;
    let detail = standing.evidence.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
    let is_dialog = standing.evidence.source != Rung::Kernel;
    is_dialog.then(|| format!("it waits for a {why}, not for a prompt{detail}"))
}

/// Agents report what they have not drawn yet; rules about screens only know what they see.
fn shows_dialog(detector: &Detector) -> bool {
    let is_dialog = |activity| matches!(activity, Activity::Waiting(why) if why.is_dialog());
    detector.claims().any(|(rung, claim)| rung == Rung::Screen && is_dialog(claim.activity))
}

/// Only what was seen to work: output alone may be the echo.
fn works(standing: &Standing) -> Option<(Duration, String)> {
    let evidence = &standing.evidence;
    let is_seen = standing.state == AgentState::Running && evidence.source != Rung::Silence;
    is_seen.then(|| (standing.since.at, format!("{}: {}", evidence.source, evidence.rule)))
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

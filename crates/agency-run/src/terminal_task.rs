//! One live run, as the daemon sees it: follows its keeper, folds its journal, serves its viewers.
//!
//! Decides nothing about the task: it reports what happens and does what it is told.
//!
//! Invariant: the screen is fed by journal records alone. Input, resizes and answers go to the
//! keeper and come back as records.

mod observation;

use std::io;
use std::time::Duration;

use agency_api::keeper::{Frame, FromKeeper, InputSource, PROBE_TAG, TerminalProbe, ToKeeper};
use agency_api::method::ScreenDump;
use agency_api::pty::ViewerNotice;
use agency_api::{Bytes, Failure};
use agency_journal::{Body, Record};
use agency_store::clock;
use agency_terminal::ScreenEvent;
use tokio::sync::mpsc;

use crate::command::{Flow, RunCommand};
use crate::compression;
use crate::explain;
use crate::fold::Fold;
use crate::handle::RunHandle;
use crate::keeper_link::{KeeperLink, KeeperOutput};
use crate::reply::send_reply;
use crate::report::{RunReport, RunReporter};
use crate::send_queue::SendQueue;
use crate::state_reporter::StateReporter;
use crate::timer::sleep_until;
use crate::view::api_size;
use crate::viewers::Viewers;

/// Folding this much again takes a fraction of a second; a checkpoint costs some ten milliseconds.
const CHECKPOINT_EVERY_BYTES: u64 = 16 << 20;

/// Rules about screens take a fraction of a millisecond each time; asking so often again is half a second.
const CHECKPOINT_EVERY_CONSULTATIONS: u32 = 3_000;

pub struct TerminalTask {
    link: KeeperLink,
    fold: Fold,
    viewers: Viewers,
    send_queue: SendQueue,
    next_input: u64,
    /// Bytes of what is being sent that the keeper has not handed over yet.
    in_flight: Option<u64>,
    /// When the agent last drew something.
    drawn_at: Duration,
    /// What the terminal was like when it was last asked.
    asked: Option<(Duration, TerminalProbe)>,
    /// Answers up to this output offset are on their way to the agent.
    answers_sent_to: u64,
    state_reporter: StateReporter,
    over: bool,
    reporter: RunReporter,
}

impl TerminalTask {
    pub async fn begin(link: KeeperLink, reporter: RunReporter) -> TerminalTask {
        let mut fold = link.rebuild().await;
        // Silence counts also while no daemon looked.
        fold.run.tick(clock::now());
        TerminalTask {
            state_reporter: StateReporter::open(link.context.dir.states(), fold.run.detector()),
            link,
            fold,
            viewers: Viewers::default(),
            send_queue: SendQueue::default(),
            next_input: 1,
            in_flight: None,
            drawn_at: Duration::ZERO,
            asked: None,
            answers_sent_to: 0,
            over: false,
            reporter,
        }
    }

    /// The handle that the daemon gets before the task runs.
    pub fn handle(&mut self, commands: mpsc::Sender<RunCommand>) -> RunHandle {
        let missed = self.state_reporter.missed(self.fold.run.take_changes(), self.fold.run.detector());
        RunHandle {
            commands,
            keeper: self.link.keeper.clone(),
            environment: self.link.environment.clone(),
            gone: self.link.gone.is_some(),
            standing: self.fold.run.detector().standing(),
            missed,
        }
    }

    /// Reports the state that the journal shows to a daemon that could not reach the keeper before.
    pub async fn catch_up(&mut self) {
        self.report_state().await;
        self.state_reporter.caught_up();
    }

    pub async fn live(mut self, mut inbox: mpsc::Receiver<RunCommand>) {
        if let Some(cause) = self.link.journal_trouble.take() {
            self.reporter.report(RunReport::Journal { cause: Some(cause) }).await;
        }
        let mut connected = self.link.follow(self.fold.next_seq).await;
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
                filled = self.link.frames.fill(), if !self.link.left => connected = filled,
                () = deadline => connected = self.due().await,
            }
        }
    }

    fn deadline(&self) -> Option<Duration> {
        let send_queue = self.send_queue.deadline(clock::now()).filter(|_| self.in_flight.is_none());
        [self.fold.run.deadline(), send_queue, self.viewers.deadline()].into_iter().flatten().min()
    }

    async fn due(&mut self) -> io::Result<()> {
        let now = clock::now();
        self.heed_rules();
        self.fold.run.tick(now);
        match self.send_queue.wants_proof() {
            true => self.link.frames.say(&ToKeeper::Probe { id: 0 }).await,
            false => Ok(()),
        }
    }

    /// After every step: what is owed goes out, what changed is told.
    async fn settle(&mut self) -> io::Result<()> {
        while self.link.frames.has_more() {
            if !self.frames().await? {
                break;
            }
        }
        self.viewers.draw_frames_if_due(self.fold.run.screen(), clock::now());
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
            self.link.frames.send(&Frame::Input { source, id: 0, bytes: answer.bytes }).await?;
        }
        Ok(())
    }

    async fn report_state(&mut self) {
        let changes = self.fold.run.take_changes();
        let (detector, session) = (self.fold.run.detector(), self.fold.session_id.as_deref());
        if self.state_reporter.report(changes, detector, session, &self.reporter).await {
            // A quiet moment: the sealed part of the journal can be compressed.
            compression::compress_in_background(self.link.context.dir.journal());
        }
    }

    /// Screens are read by the rules as they are now.
    fn heed_rules(&mut self) {
        self.fold.run.set_rules(self.link.context.rule_book.rules(), clock::now());
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
        self.link.frames.send(&Frame::Checkpoint { at_seq, bytes }).await
    }

    async fn finish_if_over(&mut self) {
        let Some(exit) = self.link.exit(self.fold.exit, self.fold.next_seq) else { return };
        // TimedEvent to every viewer, also one that comes late, and to the daemon once.
        let notice = ViewerNotice::Exited { code: exit.code.to_string() };
        self.viewers.end(self.fold.run.screen(), &notice);
        if !std::mem::replace(&mut self.over, true) {
            self.send_queue.over();
            self.reporter
                .report(RunReport::Over { exit, ended: self.link.gone.clone().unwrap_or_default() })
                .await;
        }
    }

    /// Takes in everything that has come whole; `false` if there was nothing.
    async fn frames(&mut self) -> io::Result<bool> {
        let mut any = false;
        while let Some(heard) = self.link.next_output()? {
            any = true;
            match heard {
                KeeperOutput::Record(record) => self.fold_record(&record),
                KeeperOutput::Message(message) => self.heard(message).await?,
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
                ScreenEvent::Bell => self.viewers.bell(),
                ScreenEvent::Clipboard { selection, data } => self.viewers.copy(selection, data),
                _ => {}
            }
        }
        match &record.body {
            Body::Output { bytes, .. } => {
                self.drawn_at = Duration::from_nanos(record.at_ns);
                self.viewers.output(bytes, clock::now());
            }
            Body::Resize { .. } => self.viewers.resized(self.fold.run.screen()),
            // The keeper looked again: what was asked before is old.
            Body::Note { tag, .. } if tag == PROBE_TAG => self.asked = None,
            _ => {}
        }
    }

    async fn read_sealed(&mut self, from_seq: u64, until_seq: u64) -> io::Result<()> {
        match self.link.sealed(from_seq, until_seq).await? {
            Some(records) => records.iter().for_each(|record| self.fold_record(record)),
            None => self.fold.next_seq = until_seq,
        }
        Ok(())
    }

    async fn heard(&mut self, message: FromKeeper) -> io::Result<()> {
        match message {
            FromKeeper::InputTaken { id } if self.in_flight == Some(id) => {
                self.in_flight = None;
                self.send_queue.taken(clock::now());
            }
            FromKeeper::InputRefused { id, reason } if self.in_flight == Some(id) => {
                self.in_flight = None;
                self.send_queue.refused(Failure::new("the agent's terminal takes no input").because(reason));
            }
            FromKeeper::Probe { probe, .. } => {
                self.asked = probe.terminal.map(|terminal| (clock::now(), terminal));
            }
            FromKeeper::InputTaken { .. } | FromKeeper::InputRefused { .. } => {}
            FromKeeper::Sealed { from_seq, until_seq } => self.read_sealed(from_seq, until_seq).await?,
            FromKeeper::Gone { ended } => self.link.mark_gone(ended, self.fold.next_seq),
            FromKeeper::Journal { cause } => self.reporter.report(RunReport::Journal { cause }).await,
            FromKeeper::Welcome(_) | FromKeeper::Refused { .. } => {}
            FromKeeper::Environment { .. } | FromKeeper::Unknown => {}
        }
        Ok(())
    }

    async fn command(&mut self, command: RunCommand) -> io::Result<Flow> {
        match command {
            RunCommand::Begin => {}
            RunCommand::Attach { viewer, queue, options } => {
                let wanted = self.viewers.attach(self.fold.run.screen(), viewer, queue, options);
                self.reporter.report(RunReport::Viewers(self.viewers.count())).await;
                if let Some(size) = wanted {
                    self.link.resize(size).await?;
                }
            }
            RunCommand::Detach { viewer } => {
                self.viewers.detach(self.fold.run.screen(), viewer);
                self.reporter.report(RunReport::Viewers(self.viewers.count())).await;
            }
            RunCommand::Typed { viewer, bytes } if self.viewers.is_controller(viewer) => {
                self.link.frames.send(&Frame::Input { source: InputSource::User, id: 0, bytes }).await?;
            }
            // Those who only look do not type.
            RunCommand::Typed { .. } => {}
            RunCommand::Resized { viewer, size } => {
                if let Some(size) = self.viewers.resize(self.fold.run.screen(), viewer, size) {
                    self.link.resize(size).await?;
                }
            }
            RunCommand::Colours { viewer, colours } => {
                self.viewers.set_colours(self.fold.run.screen(), viewer, colours);
            }
            RunCommand::Refresh { viewer } => self.viewers.refresh(self.fold.run.screen(), viewer),
            RunCommand::Send(order) => self.send_queue.push(order),
            RunCommand::HeedRules => self.heed_rules(),
            RunCommand::Witnesses { answer } => {
                self.heed_rules();
                let now = clock::now();
                self.fold.run.tick(now);
                let detector = self.fold.run.detector();
                let (witnesses, outlook) = explain::witnesses(detector, now);
                send_reply(answer, (detector.standing(), witnesses, outlook));
            }
            RunCommand::Pass(notice) => self.viewers.pass(notice),
            // A terminal holds no conversation; who asks is told so before it gets here.
            RunCommand::Chat(_)
            | RunCommand::Approvals { .. }
            | RunCommand::Answer(_)
            | RunCommand::Ruled { .. }
            | RunCommand::Decisions { .. }
            | RunCommand::Reconsider
            | RunCommand::Tune(_)
            | RunCommand::Interrupt { .. } => {}
            RunCommand::Screen { answer } => send_reply(answer, self.screen_dump()),
            RunCommand::Stop { grace } => {
                self.link.frames.say(&ToKeeper::Stop { grace_ms: grace.as_millis() as u64 }).await?;
            }
            RunCommand::Dismiss => {
                self.checkpoint().await?;
                self.link.frames.say(&ToKeeper::Dismiss).await?;
                compression::compress_in_background(self.link.context.dir.journal());
                return Ok(Flow::Leave);
            }
            RunCommand::Leave { done } => {
                self.viewers.end(self.fold.run.screen(), &ViewerNotice::DaemonLeaves);
                send_reply(done, ());
                return Ok(Flow::Leave);
            }
        }
        Ok(Flow::Stay)
    }

    fn screen_dump(&mut self) -> ScreenDump {
        let next_seq = self.fold.next_seq;
        let screen = self.fold.run.screen();
        ScreenDump {
            size: api_size(screen.size()),
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
        if self.send_queue.is_idle() || self.in_flight.is_some() {
            return Ok(());
        }
        let mut send_queue = std::mem::take(&mut self.send_queue);
        let written = send_queue.next(&mut || self.observe());
        self.send_queue = send_queue;
        let Some(bytes) = written else { return Ok(()) };
        let id = self.next_input;
        self.next_input += 1;
        self.in_flight = Some(id);
        self.link.frames.send(&Frame::Input { source: InputSource::Send, id, bytes }).await
    }

    /// The keeper hung up: find it again, or put another in its place, or say that the run is over.
    async fn lost(&mut self, cause: &io::Error) -> io::Result<()> {
        if self.over {
            self.link.left = true;
            return Ok(());
        }
        tracing::warn!(run = %self.link.context.id, %cause, "the keeper hung up");
        self.send_queue.refuse_all("the keeper hung up before the agent took the text");
        self.in_flight = None;
        // What was on its way may not have arrived; the journal will tell.
        self.answers_sent_to = 0;
        match self.link.regain().await {
            Ok(replaced) => {
                if replaced {
                    self.reporter.report(RunReport::Rescued { keeper: self.link.keeper.clone() }).await;
                }
                self.link.follow(self.fold.next_seq).await
            }
            Err(cause) => {
                tracing::error!(run = %self.link.context.id, %cause, "the run is lost");
                self.fold = self.link.rebuild().await;
                self.link.mark_gone(Vec::new(), 0);
                self.link.left = true;
                self.finish_if_over().await;
                Ok(())
            }
        }
    }
}

//! The follower of a run with a terminal: folds its journal into a screen, serves its viewers and types messages.
//!
//! Decides nothing about the task: it reports what happens and obeys commands.

mod approvals;
mod caller;
mod memory;
mod messages;
pub(crate) mod observation;

use std::io;
use std::time::Duration;

use agency_api::keeper::{Frame, InputSource, PROBE_TAG, Probe, TerminalProbe, ToKeeper};
use agency_api::pty::ViewerNotice;
use agency_api::{Failure, FailureCode};
use agency_core::evidence::{Change, Detector};
use agency_core::exit::RunExit;
use agency_driver::sending::SendMachine;
use agency_journal::{Body, Record};
use agency_store::clock;
use agency_terminal::ScreenEvent;

use self::caller::Caller;
use self::memory::RunMemory;
use crate::command::{SendRequest, TerminalCommand};
use crate::fold::{Fold, MEMORY_TAG};
use crate::follower::{Folded, Follower, RunTask};
use crate::handle::{CommandSender, RunCommands};
use crate::keeper_link::KeeperLink;
use crate::reply::send_reply;
use crate::report::{RunReport, RunReporter};
use crate::screen_dump;
use crate::state_reporter::StateUpdate;
use crate::viewers::Viewers;

/// Folding this much again takes a fraction of a second; a checkpoint costs some ten milliseconds.
const CHECKPOINT_EVERY_BYTES: u64 = 16 << 20;

/// Each evaluation of the screen rules costs about 0.2 ms, so replaying 3,000 of them takes about half a second.
const CHECKPOINT_EVERY_CONSULTATIONS: u32 = 3_000;

pub struct TerminalTask {
    follower: Follower,
    fold: Fold,
    viewers: Viewers,
    /// Types messages. Each comes with the caller that waits for its receipt.
    messages: SendMachine<Caller>,
    next_input: u64,
    /// The input of a message that the keeper has not written yet.
    in_flight: Option<u64>,
    /// When the agent last drew something.
    drawn_at: Duration,
    /// The last answer of the keeper to a request for a probe.
    probed: Option<(Duration, TerminalProbe)>,
    /// The keeper has received the terminal's answers up to this output offset.
    answers_sent_to: u64,
    memory: RunMemory,
}

impl RunTask for TerminalTask {
    type Command = TerminalCommand;

    async fn open(link: KeeperLink, reporter: RunReporter) -> TerminalTask {
        let mut fold = link.rebuild().await;
        // The agent may have been silent while no daemon ran.
        fold.run.tick(clock::now());
        TerminalTask {
            follower: Follower::new(link, reporter, fold.run.detector()),
            fold,
            viewers: Viewers::default(),
            messages: SendMachine::default(),
            next_input: 1,
            in_flight: None,
            drawn_at: Duration::ZERO,
            probed: None,
            answers_sent_to: 0,
            memory: RunMemory::default(),
        }
    }

    fn commands(sender: CommandSender<TerminalCommand>) -> RunCommands {
        RunCommands::Terminal(sender)
    }

    fn follower(&self) -> &Follower {
        &self.follower
    }

    fn follower_mut(&mut self) -> &mut Follower {
        &mut self.follower
    }

    fn folded(&self) -> Folded {
        Folded { next_seq: self.fold.next_seq, exit: self.fold.exit }
    }

    fn skip_to(&mut self, seq: u64) {
        self.fold.next_seq = seq;
    }

    fn detector(&self) -> &Detector {
        self.fold.run.detector()
    }

    fn unentered_text(&self) -> Option<String> {
        self.fold.unentered.typed().filter(|_| self.messages.is_idle()).map(|typed| typed.text)
    }

    fn take_changes(&mut self) -> Vec<Change> {
        self.fold.run.take_changes()
    }

    fn tick(&mut self, now: Duration) {
        self.reload_rules();
        self.fold.run.tick(now);
    }

    async fn on_begin(&mut self) {
        self.report_state().await;
        self.follower.states.mark_caught_up();
    }

    async fn on_record(&mut self, record: &Record) {
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
            // The keeper has probed again by itself, so the requested probe is older.
            Body::Note { tag, .. } if tag == PROBE_TAG => self.probed = None,
            Body::Note { tag, bytes } if tag == MEMORY_TAG => self.memory.on_note(bytes),
            _ => {}
        }
    }

    fn on_input_taken(&mut self, id: u64) {
        if self.in_flight.take_if(|in_flight| *in_flight == id).is_some() {
            self.messages.on_written(clock::now());
        }
    }

    fn on_input_refused(&mut self, id: u64, reason: String) {
        if self.in_flight.take_if(|in_flight| *in_flight == id).is_some() {
            let failure = Failure::new("the agent's terminal takes no input")
                .code(FailureCode::NotDelivered)
                .because(reason);
            if let Some(caller) = self.messages.cancel_active() {
                caller.refuse(failure);
            }
        }
    }

    fn on_probe(&mut self, probe: Probe) {
        self.probed = probe.terminal.map(|terminal| (clock::now(), terminal));
    }

    async fn on_command(&mut self, command: TerminalCommand) -> io::Result<()> {
        let screen = self.fold.run.screen();
        match command {
            TerminalCommand::Attach { viewer, queue, options } => {
                let wanted = self.viewers.attach(screen, viewer, queue, options);
                self.report_viewers().await;
                if let Some(size) = wanted {
                    self.follower.link.resize(size).await?;
                }
            }
            TerminalCommand::Detach { viewer } => {
                self.viewers.detach(screen, viewer);
                self.report_viewers().await;
            }
            TerminalCommand::Type { viewer, bytes } => {
                if self.viewers.is_controller(viewer) {
                    self.write(InputSource::User, 0, bytes).await?;
                }
            }
            TerminalCommand::Resize { viewer, size } => {
                if let Some(size) = self.viewers.resize(screen, viewer, size) {
                    self.follower.link.resize(size).await?;
                }
            }
            TerminalCommand::SetColours { viewer, colours } => {
                self.viewers.set_colours(screen, viewer, colours);
            }
            TerminalCommand::Refresh { viewer } => self.viewers.refresh(screen, viewer),
            TerminalCommand::Notify(notice) => self.viewers.notify_all(notice),
            TerminalCommand::DumpScreen { answer } => send_reply(answer, screen_dump::dump(&mut self.fold)),
            TerminalCommand::ReloadRules => self.reload_rules(),
            // After each command the task notes a memory that has changed.
            TerminalCommand::ReloadMemory => {}
            TerminalCommand::Contradict(request) => self.contradict(request).await?,
            TerminalCommand::ListApprovals { answer } => send_reply(answer, self.open_approvals()),
            TerminalCommand::Answer(request) => self.answer_dialog(request),
        }
        Ok(())
    }

    fn on_send(&mut self, request: SendRequest) {
        self.messages.push(request.order, Caller::Receipt(request.receipt));
    }

    async fn on_stop(&mut self, grace: Duration) -> io::Result<()> {
        self.follower.link.stop(grace).await
    }

    async fn on_deadline(&mut self) -> io::Result<()> {
        self.tick(clock::now());
        // A journal that lost its beginning does not say how the program reads.
        let is_unknown = self.probed.is_none() && self.fold.terminal.is_none() && !self.messages.is_idle();
        match is_unknown || self.messages.needs_read_probe() {
            true => self.follower.link.frames.send_message(&ToKeeper::Probe { id: 0 }).await,
            false => Ok(()),
        }
    }

    async fn advance(&mut self) -> io::Result<()> {
        self.viewers.draw_frames_if_due(self.fold.run.screen(), clock::now());
        self.write_answers().await?;
        self.write_message().await?;
        self.report_state().await;
        self.memory.reply();
        self.update_memory().await?;
        self.checkpoint_if_due().await?;
        if let Some(exit) = self.follower.over {
            // A viewer that attaches after the end learns of it at once.
            self.end_viewers(exit);
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Duration> {
        let sending = self.messages.deadline(clock::now()).filter(|_| self.in_flight.is_none());
        [self.fold.run.deadline(), sending, self.viewers.deadline()].into_iter().flatten().min()
    }

    fn on_over(&mut self, exit: RunExit) {
        self.end_viewers(exit);
        self.messages.on_exit();
        self.send_receipts();
        self.refuse_messages("the agent exited before it took the message");
        self.memory.refuse("the agent exited meanwhile");
    }

    fn on_hangup(&mut self) {
        self.refuse_messages("the keeper hung up before the agent took the message");
        self.in_flight = None;
        self.memory.refuse("the keeper hung up meanwhile");
        // Answers that were on their way may not have arrived; the journal shows which did.
        self.answers_sent_to = 0;
    }

    async fn on_keeper_lost(&mut self) {
        // The journal may hold records that the keeper did not send any more.
        self.fold = self.follower.link.rebuild().await;
    }

    async fn on_dismiss(&mut self) -> io::Result<()> {
        self.checkpoint().await
    }

    fn on_leave(&mut self) {
        self.viewers.end(self.fold.run.screen(), &ViewerNotice::DaemonLeaves);
    }
}

impl TerminalTask {
    async fn write(&mut self, source: InputSource, id: u64, bytes: Vec<u8>) -> io::Result<()> {
        self.follower.link.frames.send(&Frame::Input { source, id, bytes }).await
    }

    /// Writes what the terminal owes the agent: answers to its queries.
    async fn write_answers(&mut self) -> io::Result<()> {
        if self.fold.exit.is_some() {
            return Ok(());
        }
        let owed = self.fold.run.owed_answers();
        let due: Vec<_> = owed.filter(|owed| owed.output_offset > self.answers_sent_to).cloned().collect();
        for answer in due {
            self.answers_sent_to = answer.output_offset;
            let source = InputSource::Answer { output_offset: answer.output_offset };
            self.write(source, 0, answer.bytes).await?;
        }
        Ok(())
    }

    async fn report_state(&mut self) {
        let changes = self.fold.run.take_changes();
        let update = StateUpdate::new(changes, self.fold.run.detector(), self.fold.session_id.as_deref());
        if self.follower.report_state(update).await {
            // The agent rests: a good time to compress its journal.
            self.follower.compress_journal();
        }
    }

    async fn report_viewers(&self) {
        self.follower.reporter.report(RunReport::Viewers(self.viewers.count())).await;
    }

    fn end_viewers(&mut self, exit: RunExit) {
        let notice = ViewerNotice::Exited { code: exit.code.to_string() };
        self.viewers.end(self.fold.run.screen(), &notice);
    }

    /// From now on the detector reads the screen by the rules as they are now.
    fn reload_rules(&mut self) {
        self.fold.run.set_rules(self.follower.link.context.rule_book.rules(), clock::now());
    }

    async fn checkpoint_if_due(&mut self) -> io::Result<()> {
        let since = self.fold.output_offset.saturating_sub(self.fold.checkpointed_to);
        let is_short =
            since < CHECKPOINT_EVERY_BYTES && self.fold.run.consultations() < CHECKPOINT_EVERY_CONSULTATIONS;
        // A text on its way is in no record yet.
        let is_sending = !self.messages.is_idle();
        if is_short || is_sending || !self.fold.run.screen().in_ground() {
            return Ok(());
        }
        self.checkpoint().await
    }

    async fn checkpoint(&mut self) -> io::Result<()> {
        let (at_seq, bytes) = self.fold.checkpoint()?;
        // A fold that starts at the checkpoint does not see earlier notes, but it sees this one, which is after `at_seq`.
        if let Some(note) = self.fold.unentered.to_note() {
            self.write_note(&note).await?;
        }
        self.follower.link.frames.send(&Frame::Checkpoint { at_seq, bytes }).await
    }
}

//! The follower of a run with a conversation: folds its journal into the conversation and writes messages and answers.
//!
//! Decides nothing about the task: it reports what happens and obeys commands.

mod approvals;
mod messages;
mod readers;
mod settings;

use std::io;
use std::time::Duration;

use agency_api::keeper::{Frame, InputSource};
use agency_api::{Failure, FailureCode};
use agency_core::evidence::{Change, Detector};
use agency_core::exit::RunExit;
use agency_journal::Record;
use agency_store::{announced_mark, clock};
use tokio::sync::oneshot;

use crate::command::{ConversationCommand, SendRequest};
use crate::conversation::{self, ConversationFold, ConversationSource, TimedEvent};
use crate::fold::is_name;
use crate::follower::{Folded, Follower, RunTask};
use crate::handle::{CommandSender, RunCommands};
use crate::keeper_link::KeeperLink;
use crate::line_queue::{LineQueue, LineSource, WrittenLine};
use crate::process_tree::end_tree;
use crate::reply::send_reply;
use crate::report::{RunReport, RunReporter};
use crate::rule_decisions::RuleDecisions;
use crate::state_reporter::StateUpdate;
use approvals::PendingAnswers;
use messages::UnconfirmedMessage;
use readers::WaitingReader;
use settings::PendingSetting;

/// The agent has this long to close its session. Then the daemon leaves the session to it.
const CLOSED_WITHIN: Duration = Duration::from_secs(2);

pub struct ConversationTask {
    follower: Follower,
    fold: ConversationFold,
    lines: LineQueue<LineSource>,
    /// Messages that the agent's input has taken and that the agent has not reacted to.
    unconfirmed: Vec<UnconfirmedMessage>,
    readers: Vec<WaitingReader>,
    rule_decisions: RuleDecisions,
    answers: PendingAnswers,
    /// The keys of owed lines that are on their way.
    owed_keys: Vec<String>,
    settings: Vec<PendingSetting>,
    /// The session is being closed and ends at this time in any case.
    stop_at: Option<Duration>,
    has_reported_session_loss: bool,
    /// Events of the conversation that the daemon has not got: from the time when no daemon ran, and of time limits.
    missed: Vec<TimedEvent>,
    reported_mode_warning: Option<String>,
}

impl RunTask for ConversationTask {
    type Command = ConversationCommand;

    async fn open(link: KeeperLink, reporter: RunReporter) -> ConversationTask {
        let (mut fold, mut missed) = rebuild(&link).await;
        missed.extend(fold.tick(clock::now()));
        ConversationTask {
            follower: Follower::new(link, reporter, fold.run.detector()),
            fold,
            lines: LineQueue::default(),
            unconfirmed: Vec::new(),
            readers: Vec::new(),
            rule_decisions: RuleDecisions::default(),
            answers: PendingAnswers::default(),
            owed_keys: Vec::new(),
            settings: Vec::new(),
            stop_at: None,
            has_reported_session_loss: false,
            missed,
            reported_mode_warning: None,
        }
    }

    fn commands(sender: CommandSender<ConversationCommand>) -> RunCommands {
        RunCommands::Conversation(sender)
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

    fn take_changes(&mut self) -> Vec<Change> {
        self.fold.run.take_changes()
    }

    fn tick(&mut self, now: Duration) {
        let events = self.fold.tick(now);
        self.missed.extend(events);
    }

    async fn on_begin(&mut self) {
        self.report_missed().await;
        if self.fold.run.is_half_written() && self.fold.exit.is_none() {
            // An earlier daemon died in the middle of a line. End it, so that the next line is not a part of it.
            self.lines.push(b"\n".to_vec(), LineSource::Follower);
        }
    }

    async fn on_record(&mut self, record: &Record) {
        let events = self.fold.record(record);
        self.write_noted_answer(&record.body);
        self.settle_answered_settings(&events);
        self.report_events(events).await;
        self.report_state().await;
    }

    fn on_input_taken(&mut self, id: u64) {
        if let Some(line) = self.lines.on_taken(id) {
            self.on_line_written(line);
        }
    }

    fn on_input_refused(&mut self, id: u64, reason: String) {
        if let Some(source) = self.lines.on_refused(id) {
            self.on_line_refused(
                source,
                Failure::new("the agent takes no input").code(FailureCode::NotDelivered).because(reason),
            );
        }
    }

    async fn on_command(&mut self, command: ConversationCommand) -> io::Result<()> {
        match command {
            ConversationCommand::Read(request) => self.read(request),
            ConversationCommand::ListApprovals { answer } => send_reply(answer, self.open_approvals()),
            ConversationCommand::Answer(request) => self.answer(request).await?,
            ConversationCommand::ApplyRuling { id, ruling } => self.apply_ruling(id, ruling).await?,
            ConversationCommand::RecheckRules => self.recheck_rules().await,
            ConversationCommand::ListDecisions { answer } => {
                send_reply(answer, conversation::decisions(&self.fold));
            }
            ConversationCommand::Interrupt { answer } => self.interrupt(answer),
            ConversationCommand::Configure(request) => self.configure(request),
            ConversationCommand::ConfigureOption(request) => self.configure_option(request),
        }
        Ok(())
    }

    fn on_send(&mut self, request: SendRequest) {
        self.send(request);
    }

    /// A session that shares its process is closed first, if its agent does that in time.
    async fn on_stop(&mut self, grace: Duration) -> io::Result<()> {
        if self.follower.link.context.is_session && grace > Duration::ZERO && self.stop_at.is_none() {
            for line in self.fold.run.stop() {
                self.lines.push(line, LineSource::Follower);
            }
            self.stop_at = Some(clock::now() + CLOSED_WITHIN.min(grace));
            return Ok(());
        }
        self.stop_at = None;
        self.follower.link.stop(grace).await
    }

    async fn on_deadline(&mut self) -> io::Result<()> {
        self.tick(clock::now());
        Ok(())
    }

    async fn advance(&mut self) -> io::Result<()> {
        self.report_missed().await;
        self.queue_owed_lines();
        self.ask_rules().await;
        self.write_next().await?;
        self.stop_if_closed().await?;
        self.confirm_messages();
        self.confirm_answers();
        self.give_up_late_settings();
        self.report_state().await;
        self.serve_readers();
        Ok(())
    }

    fn deadline(&self) -> Option<Duration> {
        let messages = self.unconfirmed.iter().map(UnconfirmedMessage::due);
        let readers = self.readers.iter().map(|reader| reader.due);
        let settings = self.settings.iter().map(|setting| setting.due);
        let due = messages.chain(readers).chain(settings).chain(self.stop_at);
        self.fold.run.deadline().into_iter().chain(due).min()
    }

    fn on_over(&mut self, _exit: RunExit) {
        self.give_up_requests("the agent exited before it took the message");
        self.serve_readers();
    }

    fn on_hangup(&mut self) {
        self.give_up_requests("the keeper hung up before the agent took the message");
        self.owed_keys.clear();
    }

    async fn on_keeper_lost(&mut self) {
        // Its pipes are gone, and the next run must not meet its processes in the same workspace.
        let run = &self.follower.link.context.id;
        let id = run.0.clone();
        let ended = tokio::task::spawn_blocking(move || end_tree(&id)).await;
        tracing::info!(%run, ended = ended.unwrap_or(0), "ended the remaining processes of the run");
    }

    async fn on_dismiss(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Folds the journals. Also returns the events that the daemon has not announced.
async fn rebuild(link: &KeeperLink) -> (ConversationFold, Vec<TimedEvent>) {
    let context = &link.context;
    let announced_to = announced_mark::read(&context.dir.announced_file());
    let (before, timing) = (context.before.clone(), context.fold.timing);
    let own = ConversationSource { terms: context.conversation.clone(), journal: context.dir.journal() };
    let rebuilt =
        tokio::task::spawn_blocking(move || ConversationFold::rebuild(&before, &own, timing, announced_to));
    match rebuilt.await.map_err(io::Error::other).and_then(|rebuilt| rebuilt) {
        Ok(rebuilt) => rebuilt,
        Err(cause) => {
            tracing::error!(run = %context.id, %cause, "cannot read the journal; the conversation starts empty");
            (ConversationFold::fresh(context.conversation.clone(), timing), Vec::new())
        }
    }
}

impl ConversationTask {
    async fn report_events(&mut self, events: Vec<TimedEvent>) {
        let session = self.fold.run.session_id();
        let announced = |timed: &TimedEvent| conversation::event_data(&timed.event, session);
        let events: Vec<_> = events.iter().filter_map(|timed| Some((timed.at, announced(timed)?))).collect();
        if !events.is_empty() {
            let report = RunReport::ConversationEvents { events, next_seq: self.fold.next_seq };
            self.follower.reporter.report(report).await;
        }
    }

    async fn report_missed(&mut self) {
        let missed = std::mem::take(&mut self.missed);
        self.report_events(missed).await;
    }

    async fn report_mode_warning(&mut self) {
        let warning = self.fold.run.mode_warning().map(str::to_owned);
        if self.reported_mode_warning != warning {
            self.reported_mode_warning.clone_from(&warning);
            self.follower.reporter.report(RunReport::ModeWarning(warning)).await;
        }
    }

    async fn report_state(&mut self) {
        self.report_mode_warning().await;
        if self.rule_decisions.hold_back(self.fold.run.conversation()) {
            return;
        }
        let changes = self.rule_decisions.release(self.fold.run.take_changes());
        let session = self.fold.session().filter(|id| is_name(id));
        let update = StateUpdate::new(changes, self.fold.run.detector(), session);
        self.follower.report_state(update).await;
        if self.fold.run.has_lost_session() && !std::mem::replace(&mut self.has_reported_session_loss, true) {
            self.follower.reporter.report(RunReport::SessionLost).await;
        }
    }

    fn interrupt(&mut self, answer: oneshot::Sender<Result<(), Failure>>) {
        let is_working = self.fold.run.is_working();
        match self.fold.run.interrupt().filter(|_| is_working) {
            Some(line) => self.lines.push(line, LineSource::Interrupt { answer }),
            None => {
                let failure = Failure::new("there is no turn to interrupt").code(FailureCode::NotFound);
                send_reply(answer, Err(failure.because("the agent waits for you")));
            }
        }
    }

    async fn stop_if_closed(&mut self) -> io::Result<()> {
        let is_due = |at: &mut Duration| *at <= clock::now() || self.fold.run.has_stopped();
        match self.stop_at.take_if(is_due) {
            Some(_) => self.follower.link.stop(Duration::ZERO).await,
            None => Ok(()),
        }
    }

    /// Queues the lines that the protocol requires, such as the opening of a session or the refusal of an unknown request.
    fn queue_owed_lines(&mut self) {
        let owed = self.fold.run.owed_lines();
        self.owed_keys.retain(|key| owed.iter().any(|(owed, _)| owed == key));
        for (key, line) in owed {
            if !self.owed_keys.contains(&key) {
                self.owed_keys.push(key.clone());
                self.lines.push(line, LineSource::Owed { key });
            }
        }
    }

    async fn write_next(&mut self) -> io::Result<()> {
        match self.lines.next_piece() {
            Some((id, bytes)) if self.fold.exit.is_none() => {
                let input = Frame::Input { source: InputSource::Send, id, bytes };
                self.follower.link.frames.send(&input).await
            }
            _ => Ok(()),
        }
    }

    fn on_line_written(&mut self, line: WrittenLine<LineSource>) {
        let WrittenLine { source, sent_at } = line;
        match source {
            LineSource::Follower | LineSource::Owed { .. } | LineSource::Setting { .. } => {}
            LineSource::Message(message) => self.on_message_written(message, sent_at),
            LineSource::Answer { id, answer } => self.answers.written.push((id, answer)),
            LineSource::Interrupt { answer } => send_reply(answer, Ok(())),
        }
    }

    fn on_line_refused(&mut self, source: LineSource, failure: Failure) {
        match source {
            LineSource::Follower => {}
            // The protocol still owes the line, so it is queued again.
            LineSource::Owed { key } => self.owed_keys.retain(|owed| *owed != key),
            LineSource::Message(message) => {
                self.fold.run.drop_unwritten_prompt();
                send_reply(message.receipt, Err(failure));
            }
            LineSource::Answer { id, answer } => self.on_answer_refused(id, answer, failure),
            LineSource::Setting { request } => self.settle_setting(&request, Err(failure.message)),
            LineSource::Interrupt { answer } => send_reply(answer, Err(failure)),
        }
    }

    /// Answers every caller that waits for the agent.
    fn give_up_requests(&mut self, why: &str) {
        for source in self.lines.give_up() {
            self.on_line_refused(source, Failure::new(why).code(FailureCode::NotDelivered));
        }
        self.give_up_settings(why);
        self.give_up_answers(why);
        self.give_up_messages(why);
    }
}

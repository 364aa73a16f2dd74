//! One live run without a terminal: follows its keeper, folds its journal into a conversation, writes what it is told to.
//!
//! Decides nothing about the task: it reports what happens and does what it is told.
//!
//! Invariant: the conversation is fed by journal records alone. What is written goes to the keeper and comes back as
//! records.

mod settings;

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use agency_api::keeper::{Frame, FromKeeper, InputSource, ToKeeper};
use agency_api::method::{Receipt, ReceiptKind};
use agency_api::{Failure, chat};
use agency_core::approval::Ruling;
use agency_core::conversation::{Approval, Entry, Item};
use agency_driver::conversation::{AnswerError, ApprovalAnswer};
use agency_driver::sending::SendOrder;
use agency_journal::{Body, Record};
use agency_store::{clock, told_mark};
use tokio::sync::{mpsc, oneshot};

use crate::command::{AnswerRequest, ChatRequest, Flow, RunCommand};
use crate::conversation::{self, ConversationFold, ConversationSource, Decision, TimedEvent};
use crate::handle::RunHandle;
use crate::keeper_link::{KeeperLink, KeeperOutput};
use crate::line_queue::{LineQueue, Then, Written};
use crate::reply::send_reply;
use crate::report::{RunReport, RunReporter};
use crate::rule_decisions::RuleDecisions;
use crate::send_queue::SendRequest;
use crate::state_reporter::StateReporter;
use crate::timer::sleep_until;
use crate::{compression, explain};

/// An agent that has shown nothing by then may still take it: some need seconds to come up.
const PROVEN_WITHIN: Duration = Duration::from_secs(6);
/// Who waits for something new gets what has come up to then, so that a growing text is not sent letter by letter.
const GATHERED_FOR: Duration = Duration::from_millis(40);
/// A session that is not closed by then is left to its agent.
const CLOSED_WITHIN: Duration = Duration::from_secs(2);
/// Longer than this nobody is kept waiting.
const ANSWERED_WITHIN: Duration = Duration::from_secs(20);

pub struct ConversationTask {
    link: KeeperLink,
    fold: ConversationFold,
    line_queue: LineQueue<Then>,
    /// Messages that were written: has the agent taken them?
    proving: Vec<Proving>,
    readers: Vec<Reader>,
    /// Answers that are on their way, and whose they are.
    answering: BTreeMap<String, String>,
    rule_decisions: RuleDecisions,
    /// Answers that are written once the journal has who gives them.
    noted: Vec<Noted>,
    /// Answers that were written, and who is told when the journal has them.
    decided: Vec<(String, oneshot::Sender<Result<chat::Approval, Failure>>)>,
    /// Lines that the protocol asks for and that are on their way, by their keys.
    owed: Vec<String>,
    /// Who waits for the agent's word on a setting.
    tuning: Vec<settings::PendingSetting>,
    state_reporter: StateReporter,
    /// When a session that is being closed ends in any case.
    stop_at: Option<Duration>,
    told_loss: bool,
    over: bool,
    reporter: RunReporter,
    /// What happened while no daemon looked.
    missed: Vec<TimedEvent>,
}

struct Noted {
    id: String,
    line: Vec<u8>,
    answer: oneshot::Sender<Result<chat::Approval, Failure>>,
}

struct Proving {
    receipt: oneshot::Sender<Result<Receipt, Failure>>,
    bytes: u64,
    since: Duration,
}

struct Reader {
    reading: ChatRequest,
    due: Duration,
}

impl ConversationTask {
    pub async fn begin(link: KeeperLink, reporter: RunReporter) -> ConversationTask {
        let context = &link.context;
        let told_from = told_mark::read(&context.dir.told());
        let (before, timing) = (context.before.clone(), context.fold.timing);
        let own = ConversationSource { terms: context.conversation.clone(), journal: context.dir.journal() };
        let rebuilt =
            tokio::task::spawn_blocking(move || ConversationFold::rebuild(&before, &own, timing, told_from))
                .await;
        let (mut fold, missed) = match rebuilt.map_err(io::Error::other).and_then(|rebuilt| rebuilt) {
            Ok(rebuilt) => rebuilt,
            Err(cause) => {
                tracing::error!(run = %context.id, %cause, "the journal cannot be read; the conversation starts empty");
                (ConversationFold::fresh(context.conversation.clone(), timing), Vec::new())
            }
        };
        fold.run.tick(clock::now());
        ConversationTask {
            state_reporter: StateReporter::open(link.context.dir.states(), fold.run.detector()),
            link,
            fold,
            line_queue: LineQueue::default(),
            proving: Vec::new(),
            readers: Vec::new(),
            answering: BTreeMap::new(),
            rule_decisions: RuleDecisions::default(),
            noted: Vec::new(),
            decided: Vec::new(),
            owed: Vec::new(),
            tuning: Vec::new(),
            stop_at: None,
            told_loss: false,
            over: false,
            reporter,
            missed,
        }
    }

    /// What the daemon needs to know of it before it lives.
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

    pub async fn live(mut self, mut inbox: mpsc::Receiver<RunCommand>) {
        if let Some(cause) = self.link.journal_trouble.take() {
            self.reporter.report(RunReport::Journal { cause: Some(cause) }).await;
        }
        let missed = std::mem::take(&mut self.missed);
        self.announce(missed).await;
        if self.fold.run.is_half_written() && self.fold.exit.is_none() {
            // A line that a daemon did not live to end: what follows must not become a part of it.
            self.line_queue.push(b"\n".to_vec(), Then::Nothing);
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
                () = deadline => self.fold.run.tick(clock::now()),
            }
        }
    }

    fn deadline(&self) -> Option<Duration> {
        let proofs = self.proving.iter().map(|proving| proving.since + PROVEN_WITHIN);
        let readers = self.readers.iter().map(|reader| reader.due);
        let tuning = self.tuning.iter().map(|asked| asked.due);
        let due = proofs.chain(readers).chain(tuning).chain(self.stop_at);
        self.fold.run.deadline().into_iter().chain(due).min()
    }

    /// After every step: what is owed goes out, what changed is told.
    async fn settle(&mut self) -> io::Result<()> {
        while self.link.frames.has_more() {
            if !self.frames().await? {
                break;
            }
        }
        self.write_owed();
        self.ask_rules().await;
        self.write_on().await?;
        self.stop_if_closed().await?;
        self.prove();
        self.tell_decided();
        self.give_up_tuning();
        self.report().await;
        self.serve_readers();
        self.finish_if_over().await;
        Ok(())
    }

    async fn frames(&mut self) -> io::Result<bool> {
        let mut any = false;
        while let Some(heard) = self.link.next_output()? {
            any = true;
            match heard {
                KeeperOutput::Record(record) => self.fold_record(&record).await,
                KeeperOutput::Message(message) => self.heard(message).await?,
            }
        }
        Ok(any)
    }

    async fn fold_record(&mut self, record: &Record) {
        if record.seq > 0 && record.seq < self.fold.next_seq {
            return;
        }
        let told = self.fold.record(record);
        self.write_noted(&record.body);
        self.tuned(&told);
        self.announce(told).await;
        self.report().await;
    }

    async fn announce(&mut self, told: Vec<TimedEvent>) {
        let session = self.fold.run.session_id().map(str::to_owned);
        let events: Vec<_> = told
            .iter()
            .filter_map(|told| Some((told.at, conversation::announced(&told.event, session.as_deref())?)))
            .collect();
        if events.is_empty() {
            return;
        }
        self.reporter.report(RunReport::ConversationEvents { events, next_seq: self.fold.next_seq }).await;
    }

    async fn heard(&mut self, message: FromKeeper) -> io::Result<()> {
        match message {
            FromKeeper::InputTaken { id } => {
                if let Some(written) = self.line_queue.taken(id) {
                    self.written(written);
                }
            }
            FromKeeper::InputRefused { id, reason } => {
                if let Some(then) = self.line_queue.refused(id) {
                    self.not_written(then, Failure::new("the agent takes no input").because(reason));
                }
            }
            FromKeeper::Sealed { from_seq, until_seq } => self.read_sealed(from_seq, until_seq).await?,
            FromKeeper::Gone { ended } => self.link.mark_gone(ended, self.fold.next_seq),
            FromKeeper::Journal { cause } => self.reporter.report(RunReport::Journal { cause }).await,
            FromKeeper::Probe { .. } | FromKeeper::Welcome(_) | FromKeeper::Refused { .. } => {}
            FromKeeper::Environment { .. } | FromKeeper::Unknown => {}
        }
        Ok(())
    }

    async fn read_sealed(&mut self, from_seq: u64, until_seq: u64) -> io::Result<()> {
        match self.link.sealed(from_seq, until_seq).await? {
            Some(records) => {
                for record in &records {
                    self.fold_record(record).await;
                }
            }
            None => self.fold.next_seq = until_seq,
        }
        Ok(())
    }

    async fn command(&mut self, command: RunCommand) -> io::Result<Flow> {
        match command {
            RunCommand::Send(order) => self.send(order),
            RunCommand::Chat(reading) => self.read(reading),
            RunCommand::Approvals { answer } => send_reply(answer, self.approvals()),
            RunCommand::Answer(answering) => self.answer(answering).await?,
            RunCommand::Ruled { id, ruling } => self.ruled(id, ruling).await?,
            RunCommand::Reconsider => self.reconsider().await,
            RunCommand::Decisions { answer } => send_reply(answer, conversation::decisions(&self.fold)),
            RunCommand::Interrupt { answer } => self.interrupt(answer),
            RunCommand::Tune(tuning) => self.tune(tuning),
            RunCommand::Witnesses { answer } => {
                let now = clock::now();
                self.fold.run.tick(now);
                let detector = self.fold.run.detector();
                let (witnesses, outlook) = explain::witnesses(detector, now);
                send_reply(answer, (detector.standing(), witnesses, outlook));
            }
            RunCommand::Stop { grace } => self.stop(grace).await?,
            RunCommand::Dismiss => {
                self.link.frames.say(&ToKeeper::Dismiss).await?;
                compression::compress_in_background(self.link.context.dir.journal());
                return Ok(Flow::Leave);
            }
            RunCommand::Leave { done } => {
                send_reply(done, ());
                return Ok(Flow::Leave);
            }
            // There is no terminal to look at or to type into; who asks is told so before it gets here.
            RunCommand::Begin
            | RunCommand::HeedRules
            | RunCommand::Attach { .. }
            | RunCommand::Detach { .. }
            | RunCommand::Typed { .. }
            | RunCommand::Resized { .. }
            | RunCommand::Colours { .. }
            | RunCommand::Refresh { .. }
            | RunCommand::Pass(_)
            | RunCommand::Screen { .. } => {}
        }
        Ok(Flow::Stay)
    }

    fn send(&mut self, request: SendRequest) {
        let SendRequest { order, receipt } = request;
        let text = match order {
            SendOrder::Text { text, enter: true, .. } => text,
            SendOrder::Text { .. } => {
                let failure = Failure::new("a message to this agent is sent whole");
                return send_reply(
                    receipt,
                    Err(failure.because("it has no terminal to type into").hint("leave out --no-enter")),
                );
            }
            SendOrder::Keys(_) => {
                let failure =
                    Failure::new("this agent takes no keys").because("it has no terminal to type into");
                return send_reply(
                    receipt,
                    Err(failure.hint("agency approve, agency deny, agency interrupt")),
                );
            }
        };
        let bytes = text.len() as u64;
        let was_working = self.fold.run.is_working();
        match self.fold.run.prompt(&String::from_utf8_lossy(&text)) {
            Ok(line) => self.line_queue.push(line, Then::Message { receipt, bytes, was_working }),
            // Nothing of it was written: who holds texts for it tries again.
            Err(why) => send_reply(receipt, Ok(receipt_of(ReceiptKind::Refused, 0, &why.to_string()))),
        }
    }

    fn read(&mut self, reading: ChatRequest) {
        let revision = self.fold.run.conversation().revision();
        let is_news = reading.page.since.is_none_or(|since| since < revision);
        if is_news || !reading.wait || self.over {
            return send_reply(reading.answer, conversation::chat(&self.fold.run, reading.page, !self.over));
        }
        self.readers.push(Reader { reading, due: clock::now() + ANSWERED_WITHIN });
    }

    fn serve_readers(&mut self) {
        let (now, revision) = (clock::now(), self.fold.run.conversation().revision());
        for mut reader in std::mem::take(&mut self.readers) {
            if reader.reading.page.since.is_some_and(|since| since < revision) {
                reader.due = reader.due.min(now + GATHERED_FOR);
            }
            if reader.reading.answer.is_closed() {
                continue;
            }
            match reader.due <= now || self.over {
                true => {
                    send_reply(
                        reader.reading.answer,
                        conversation::chat(&self.fold.run, reader.reading.page, !self.over),
                    );
                }
                false => self.readers.push(reader),
            }
        }
    }

    fn approvals(&self) -> Vec<chat::Approval> {
        let is_open = |id: &String| !self.answering.contains_key(id) && self.rule_decisions.is_for_people(id);
        let open = self.fold.run.conversation().open_approvals();
        open.filter(|approval| is_open(&approval.id)).filter_map(conversation::approval).collect()
    }

    async fn answer(&mut self, answering: AnswerRequest) -> io::Result<()> {
        let AnswerRequest { id, verdict, by, why, answer } = answering;
        match self.answer_to(id, &verdict) {
            Err(failure) => send_reply(answer, Err(failure)),
            Ok((id, line)) => {
                // Who it was stands in the journal before what was said.
                let decision = Decision { id: id.clone(), by: by.clone(), why };
                let bytes = serde_json::to_vec(&decision)?;
                self.link.frames.send(&Frame::Note { tag: conversation::DECISION.to_owned(), bytes }).await?;
                self.answering.insert(id.clone(), by);
                self.noted.push(Noted { id, line, answer });
            }
        }
        Ok(())
    }

    /// By now every record from before the note is folded, so what a daemon before us wrote is known: nothing is
    /// answered twice.
    fn write_noted(&mut self, body: &Body) {
        let Some(Decision { id: decided, .. }) = Decision::in_record(body) else { return };
        for Noted { id, line, answer } in std::mem::take(&mut self.noted) {
            match (id == decided, self.fold.run.open_requests().contains(&id.as_str())) {
                (false, _) => self.noted.push(Noted { id, line, answer }),
                (true, true) => self.line_queue.push(line, Then::Answer { id, answer }),
                (true, false) => send_reply(answer, Err(Failure::new("nobody asks that any more"))),
            }
        }
    }

    /// Whatever is asked anew goes to the user's rules first.
    async fn ask_rules(&mut self) {
        for approval in self.rule_decisions.new_among(self.fold.run.conversation()) {
            self.reporter.report(RunReport::ApprovalRequested(Box::new(approval))).await;
        }
    }

    /// The rules have changed: what waits for people is put before them again.
    async fn reconsider(&mut self) {
        for approval in self.rule_decisions.left_among(self.fold.run.conversation()) {
            if !self.answering.contains_key(&approval.id) {
                self.reporter.report(RunReport::ApprovalRequested(Box::new(approval))).await;
            }
        }
    }

    async fn ruled(&mut self, id: String, ruling: Option<Ruling>) -> io::Result<()> {
        let Some(Ruling { allow, by, why }) = ruling else {
            self.rule_decisions.leave_to_people(&id);
            return Ok(());
        };
        let message = || why.clone().unwrap_or_else(|| "The user's rules do not allow this.".to_owned());
        let verdict = if allow { ApprovalAnswer::Allow } else { ApprovalAnswer::Deny { message: message() } };
        if self.answer_to(Some(id.clone()), &verdict).is_err() {
            // Somebody was faster, or it is withdrawn.
            self.rule_decisions.leave_to_people(&id);
            return Ok(());
        }
        // What becomes of it is seen in the conversation.
        let (answer, _) = oneshot::channel();
        self.answer(AnswerRequest { id: Some(id), verdict, by, why, answer }).await
    }

    /// The request that is meant, and the line that answers it.
    fn answer_to(&self, id: Option<String>, verdict: &ApprovalAnswer) -> Result<(String, Vec<u8>), Failure> {
        let run = &self.fold.run;
        let first = || {
            run.open_requests().into_iter().find(|id| !self.answering.contains_key(*id)).map(str::to_owned)
        };
        let Some(id) = id.or_else(first) else {
            let failure = Failure::new("nothing waits for an answer");
            // Only what is still on its way: an old decision explains nothing.
            let on_its_way = run.conversation().open_approvals().next();
            return Err(on_its_way
                .into_iter()
                .fold(failure, |failure, open| failure.because(self.was_first(open))));
        };
        if let Some(by) = self.answering.get(&id) {
            return Err(Failure::new(format!("{by} was first")).because("their answer is on its way"));
        }
        match run.answer(&id, verdict) {
            Ok(line) => Ok((id, line)),
            Err(AnswerError::NothingToRemember) => Err(Failure::new("this cannot be allowed for good")
                .because(AnswerError::NothingToRemember.to_string())
                .hint("leave out --always")),
            Err(unfit @ (AnswerError::NotOffered | AnswerError::NeedsAnswers | AnswerError::Unfit)) => {
                Err(Failure::new("this is no answer to what it asks").because(unfit.to_string()))
            }
            Err(AnswerError::NotOpen) => {
                let cause = self.known(&id).map(|known| self.was_first(known));
                let failure = Failure::new("nobody asks that any more");
                Err(cause.into_iter().fold(failure, Failure::because))
            }
        }
    }

    /// What became of it, for who came late.
    fn was_first(&self, approval: &Approval) -> String {
        let title = &approval.title;
        let Some(outcome) = &approval.outcome else {
            let by = self.answering.get(&approval.id).map_or("somebody", String::as_str);
            return format!("{by} was first: the answer to `{title}` is on its way");
        };
        let by = outcome.by.as_deref().unwrap_or("somebody");
        match (outcome.cancelled, outcome.allowed) {
            (true, _) => format!("the agent withdrew `{title}`"),
            (false, true) => format!("{by} was first and allowed `{title}`"),
            (false, false) => format!("{by} was first and denied `{title}`"),
        }
    }

    /// A session that shares its process is closed first, as far as its agent does that in time.
    async fn stop(&mut self, grace: Duration) -> io::Result<()> {
        if self.link.context.is_session && grace > Duration::ZERO && self.stop_at.is_none() {
            for line in self.fold.run.stop() {
                self.line_queue.push(line, Then::Nothing);
            }
            self.stop_at = Some(clock::now() + CLOSED_WITHIN.min(grace));
            return Ok(());
        }
        self.stop_at = None;
        self.link.frames.say(&ToKeeper::Stop { grace_ms: grace.as_millis() as u64 }).await
    }

    async fn stop_if_closed(&mut self) -> io::Result<()> {
        let is_due = |at: &mut Duration| *at <= clock::now() || self.fold.run.has_stopped();
        match self.stop_at.take_if(is_due) {
            Some(_) => self.link.frames.say(&ToKeeper::Stop { grace_ms: 0 }).await,
            None => Ok(()),
        }
    }

    fn interrupt(&mut self, answer: oneshot::Sender<Result<(), Failure>>) {
        let is_working = self.fold.run.is_working();
        match self.fold.run.interrupt().filter(|_| is_working) {
            Some(line) => self.line_queue.push(line, Then::Interrupt { answer }),
            None => {
                let failure = Failure::new("there is no turn to interrupt");
                send_reply(answer, Err(failure.because("the agent waits for you")));
            }
        }
    }

    /// Lines that the protocol asks for: a session is begun, what nobody here understands is refused.
    fn write_owed(&mut self) {
        let owed = self.fold.run.owed_lines();
        self.owed.retain(|key| owed.iter().any(|(owed, _)| owed == key));
        for (key, line) in owed {
            if !self.owed.contains(&key) {
                self.owed.push(key.clone());
                self.line_queue.push(line, Then::Owed { key });
            }
        }
    }

    async fn write_on(&mut self) -> io::Result<()> {
        match self.line_queue.next() {
            Some((id, bytes)) if self.fold.exit.is_none() => {
                self.link.frames.send(&Frame::Input { source: InputSource::Send, id, bytes }).await
            }
            _ => Ok(()),
        }
    }

    fn written(&mut self, written: Written<Then>) {
        let Written { then, since } = written;
        match then {
            Then::Nothing | Then::Owed { .. } | Then::Setting { .. } => {}
            Then::Message { receipt, bytes, was_working: true } => {
                let why = "it is at work and takes it when it comes to it";
                send_reply(receipt, Ok(receipt_of(ReceiptKind::Typed, bytes, why)));
            }
            Then::Message { receipt, bytes, .. } => self.proving.push(Proving { receipt, bytes, since }),
            Then::Answer { id, answer } => self.decided.push((id, answer)),
            Then::Interrupt { answer } => send_reply(answer, Ok(())),
        }
    }

    fn not_written(&mut self, then: Then, failure: Failure) {
        match then {
            Then::Nothing => {}
            // Tried again once it is owed anew.
            Then::Owed { key } => self.owed.retain(|owed| *owed != key),
            Then::Message { receipt, .. } => {
                self.fold.run.drop_unwritten_prompt();
                send_reply(receipt, Err(failure));
            }
            Then::Answer { id, answer } => {
                self.answering.remove(&id);
                self.rule_decisions.leave_to_people(&id);
                send_reply(answer, Err(failure));
            }
            Then::Setting { request } => self.settle_tuning(&request, Err(failure.message)),
            Then::Interrupt { answer } => send_reply(answer, Err(failure)),
        }
    }

    /// An answer counts once the journal has it: until then it is nobody else's turn.
    fn tell_decided(&mut self) {
        let run = &self.fold.run;
        self.answering.retain(|id, _| run.open_requests().contains(&id.as_str()));
        for (id, answer) in std::mem::take(&mut self.decided) {
            if self.answering.contains_key(&id) {
                self.decided.push((id, answer));
                continue;
            }
            let known = self.known(&id).and_then(conversation::approval);
            send_reply(answer, known.ok_or_else(|| Failure::new("the request is gone")));
        }
    }

    fn known(&self, id: &str) -> Option<&Approval> {
        let known = self.fold.run.conversation().entries().iter().rev().filter_map(approval_of);
        known.into_iter().find(|known| known.id == id)
    }

    /// What the agent says after a message shows that it has taken it.
    fn prove(&mut self) {
        let (now, heard_at) = (clock::now(), self.fold.heard_at);
        for proving in std::mem::take(&mut self.proving) {
            let Proving { receipt, bytes, since } = proving;
            if heard_at >= since {
                send_reply(receipt, Ok(receipt_of(ReceiptKind::Delivered, bytes, "the agent has answered")));
            } else if now.saturating_sub(since) >= PROVEN_WITHIN {
                let why = "its input has taken it; the agent has not said anything yet";
                send_reply(receipt, Ok(receipt_of(ReceiptKind::Typed, bytes, why)));
            } else {
                self.proving.push(Proving { receipt, bytes, since });
            }
        }
    }

    async fn report(&mut self) {
        if self.rule_decisions.holds_back(self.fold.run.conversation()) {
            return;
        }
        let changes = self.rule_decisions.told(self.fold.run.take_changes());
        let session = self.fold.session().filter(|id| crate::fold::is_name(id));
        self.state_reporter.report(changes, self.fold.run.detector(), session, &self.reporter).await;
        if self.fold.run.has_lost_session() && !std::mem::replace(&mut self.told_loss, true) {
            self.reporter.report(RunReport::SessionLost).await;
        }
    }

    async fn finish_if_over(&mut self) {
        let Some(exit) = self.link.exit(self.fold.exit, self.fold.next_seq) else { return };
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        self.let_go("the agent exited before it took the text");
        self.serve_readers();
        self.reporter
            .report(RunReport::Over { exit, ended: self.link.gone.clone().unwrap_or_default() })
            .await;
    }

    /// Whoever waits for something to be written waits no longer.
    fn let_go(&mut self, why: &str) {
        for then in self.line_queue.give_up() {
            self.not_written(then, Failure::new(why));
        }
        self.end_tuning(why);
        for Noted { id, answer, .. } in std::mem::take(&mut self.noted) {
            self.not_written(Then::Answer { id, answer }, Failure::new(why));
        }
        for (_, answer) in std::mem::take(&mut self.decided) {
            send_reply(answer, Err(Failure::new(why)));
        }
        for Proving { receipt, bytes, .. } in std::mem::take(&mut self.proving) {
            send_reply(receipt, Ok(receipt_of(ReceiptKind::Typed, bytes, why)));
        }
    }

    /// The keeper hung up: find it again, or say that the run is over. Its pipes are gone with it.
    async fn lost(&mut self, cause: &io::Error) -> io::Result<()> {
        if self.over {
            self.link.left = true;
            return Ok(());
        }
        tracing::warn!(run = %self.link.context.id, %cause, "the keeper hung up");
        self.let_go("the keeper hung up before the agent took the text");
        self.owed.clear();
        match self.link.regain().await {
            Ok(_) => self.link.follow(self.fold.next_seq).await,
            Err(cause) => {
                tracing::error!(run = %self.link.context.id, %cause, "the run is lost");
                // Nobody can talk to it any more, and the next run must not meet it in the same workspace.
                let run = self.link.context.id.0.clone();
                let ended = tokio::task::spawn_blocking(move || crate::process_tree::end_tree(&run)).await;
                tracing::info!(run = %self.link.context.id, ended = ended.unwrap_or(0), "what was left of it is ended");
                self.link.mark_gone(Vec::new(), 0);
                self.link.left = true;
                self.finish_if_over().await;
                Ok(())
            }
        }
    }
}

fn approval_of(entry: &Entry) -> Option<&Approval> {
    match &entry.item {
        Item::Approval(approval) => Some(approval),
        _ => None,
    }
}

fn receipt_of(receipt: ReceiptKind, bytes: u64, why: &str) -> Receipt {
    Receipt { receipt, bytes, why: Some(why.to_owned()), screen: None }
}

//! The loop that follows one keeper, the same for terminals and conversations.
//!
//! Reads what the keeper sends, obeys the commands that every run understands, regains a lost keeper and reports the end of
//! the run. A [`RunTask`] folds the records and does what is special to its kind of run.

use std::io;
use std::time::Duration;

use agency_api::keeper::{FromKeeper, Probe, ToKeeper};
use agency_core::evidence::{Change, Detector};
use agency_core::exit::RunExit;
use agency_journal::Record;
use agency_keeper::platform;
use agency_store::clock;
use rustix::process::Signal;
use tokio::sync::mpsc;

use crate::command::{RunCommand, SendRequest};
use crate::compression::compress_in_background;
use crate::explain::explain;
use crate::handle::{Command, CommandSender, RunCommands, RunHandle};
use crate::keeper_link::{KeeperLink, KeeperOutput};
use crate::reply::send_reply;
use crate::report::{RunReport, RunReporter};
use crate::state_reporter::{StateReporter, StateUpdate};
use crate::timer::sleep_until;

/// The state that the followers of all runs share.
pub struct Follower {
    pub link: KeeperLink,
    pub reporter: RunReporter,
    pub states: StateReporter,
    /// How the run ended, once the daemon knows.
    pub over: Option<RunExit>,
}

impl Follower {
    pub fn new(link: KeeperLink, reporter: RunReporter, detector: &Detector) -> Follower {
        let states = StateReporter::open(link.context.dir.states(), detector);
        Follower { link, reporter, states, over: None }
    }

    /// Returns `true` if the agent has stopped working.
    pub async fn report_state(&mut self, update: StateUpdate) -> bool {
        self.states.report(update, &self.reporter).await
    }

    /// Compresses the closed segments of the run's journal.
    pub fn compress_journal(&self) {
        compress_in_background(self.link.context.dir.journal());
    }
}

/// The part of a journal that a task has folded.
pub struct Folded {
    /// The first record that the task has not folded.
    pub next_seq: u64,
    /// The exit, once the task has folded its record.
    pub exit: Option<RunExit>,
}

/// One kind of run: with a terminal, or with a conversation.
///
/// Invariant: only records of the journal change what the task shows. Input goes to the keeper and comes back as records.
pub trait RunTask: Sized + Send + 'static {
    /// The commands that only this kind of run understands.
    type Command: Send + 'static;

    /// Folds the journal as it is now.
    fn open(link: KeeperLink, reporter: RunReporter) -> impl Future<Output = Self> + Send;

    /// Marks a sender as that of this kind of run.
    fn commands(sender: CommandSender<Self::Command>) -> RunCommands;

    fn follower(&self) -> &Follower;
    fn follower_mut(&mut self) -> &mut Follower;

    fn folded(&self) -> Folded;
    /// Goes on at a later record: those before it cannot be read.
    fn skip_to(&mut self, seq: u64);
    fn detector(&self) -> &Detector;
    fn take_changes(&mut self) -> Vec<Change>;
    /// A text that a send typed and did not enter.
    fn unentered_text(&self) -> Option<String> {
        None
    }
    /// Lets the time pass: silence is evidence too.
    fn tick(&mut self, now: Duration);

    /// Before the first record.
    fn on_begin(&mut self) -> impl Future<Output = ()> + Send;
    fn on_record(&mut self, record: &Record) -> impl Future<Output = ()> + Send;
    /// The keeper has written an input to the agent.
    fn on_input_taken(&mut self, id: u64);
    fn on_input_refused(&mut self, id: u64, reason: String);
    fn on_probe(&mut self, _probe: Probe) {}
    fn on_command(&mut self, command: Self::Command) -> impl Future<Output = io::Result<()>> + Send;
    fn on_send(&mut self, request: SendRequest);
    fn on_stop(&mut self, grace: Duration) -> impl Future<Output = io::Result<()>> + Send;
    fn on_deadline(&mut self) -> impl Future<Output = io::Result<()>> + Send;
    /// After every event: writes what is due to the keeper and reports what changed.
    fn advance(&mut self) -> impl Future<Output = io::Result<()>> + Send;
    /// When `on_deadline` is due.
    fn deadline(&self) -> Option<Duration>;

    /// The run is over. Called once, before the daemon hears of it.
    fn on_over(&mut self, exit: RunExit);
    /// The keeper closed its socket. It may or may not have written the input that was on its way.
    fn on_hangup(&mut self);
    /// The keeper is gone for good.
    fn on_keeper_lost(&mut self) -> impl Future<Output = ()> + Send;
    /// Before the keeper exits.
    fn on_dismiss(&mut self) -> impl Future<Output = io::Result<()>> + Send;
    /// Before the daemon exits.
    fn on_leave(&mut self) {}
}

/// The handle that the daemon gets before the task runs.
pub fn handle_of<T: RunTask>(task: &mut T, commands: CommandSender<T::Command>) -> RunHandle {
    let (changes, standing) = (task.take_changes(), task.detector().standing());
    let began = task.detector().began();
    let follower = task.follower_mut();
    RunHandle {
        commands: T::commands(commands),
        keeper: follower.link.keeper.clone(),
        environment: follower.link.environment.clone(),
        gone: follower.link.gone.is_some(),
        standing,
        missed: follower.states.take_missed(changes, began),
    }
}

enum Flow {
    Stay,
    Leave,
}

/// Follows the keeper until the daemon dismisses the run or exits.
pub async fn run<T: RunTask>(mut task: T, mut inbox: mpsc::Receiver<Command<T::Command>>) {
    if let Some(cause) = task.follower_mut().link.journal_trouble.take() {
        task.follower().reporter.report(RunReport::Journal { cause: Some(cause) }).await;
    }
    task.on_begin().await;
    let next_seq = task.folded().next_seq;
    let mut connected = task.follower_mut().link.follow(next_seq).await;
    loop {
        if let Err(cause) = connected {
            connected = regain(&mut task, &cause).await;
            continue;
        }
        connected = settle(&mut task).await;
        if connected.is_err() {
            continue;
        }
        let deadline = sleep_until(task.deadline());
        let link = &mut task.follower_mut().link;
        tokio::select! {
            biased;
            command = inbox.recv() => match command {
                Some(command) => match obey(&mut task, command).await {
                    Ok(Flow::Stay) => {}
                    Ok(Flow::Leave) => return,
                    Err(cause) => connected = Err(cause),
                },
                None => return,
            },
            filled = link.frames.fill(), if !link.is_lost => connected = filled,
            () = deadline => connected = task.on_deadline().await,
        }
    }
}

/// Folds what the keeper has sent, then lets the task write and report.
async fn settle<T: RunTask>(task: &mut T) -> io::Result<()> {
    // The keeper may have sent more while the task wrote to it.
    while task.follower().link.frames.has_more() {
        if !read_frames(task).await? {
            break;
        }
    }
    task.advance().await?;
    finish_if_over(task).await;
    Ok(())
}

/// Returns `false` if no whole frame was there.
async fn read_frames<T: RunTask>(task: &mut T) -> io::Result<bool> {
    let mut any = false;
    while let Some(output) = task.follower_mut().link.next_output()? {
        any = true;
        match output {
            KeeperOutput::Record(record) if is_new(task, &record) => task.on_record(&record).await,
            KeeperOutput::Record(_) => {}
            KeeperOutput::Message(message) => hear(task, message).await?,
        }
    }
    Ok(any)
}

/// A record without a number is always new: the disk did not take it, so it comes only once.
fn is_new<T: RunTask>(task: &T, record: &Record) -> bool {
    record.seq == 0 || record.seq >= task.folded().next_seq
}

async fn hear<T: RunTask>(task: &mut T, message: FromKeeper) -> io::Result<()> {
    match message {
        FromKeeper::InputTaken { id } => task.on_input_taken(id),
        FromKeeper::InputRefused { id, reason } => task.on_input_refused(id, reason),
        FromKeeper::Probe { probe, .. } => task.on_probe(probe),
        FromKeeper::Sealed { from_seq, until_seq } => read_sealed(task, from_seq, until_seq).await?,
        FromKeeper::Gone { ended } => {
            let next_seq = task.folded().next_seq;
            task.follower_mut().link.mark_gone(ended, next_seq);
        }
        FromKeeper::Journal { cause } => {
            task.follower().reporter.report(RunReport::Journal { cause }).await;
        }
        FromKeeper::Welcome(_) | FromKeeper::Refused { .. } => {}
        FromKeeper::Environment { .. } | FromKeeper::Unknown => {}
    }
    Ok(())
}

async fn read_sealed<T: RunTask>(task: &mut T, from_seq: u64, until_seq: u64) -> io::Result<()> {
    match task.follower().link.read_sealed(from_seq, until_seq).await? {
        Some(records) => {
            for record in &records {
                if is_new(task, record) {
                    task.on_record(record).await;
                }
            }
        }
        None => task.skip_to(until_seq),
    }
    Ok(())
}

async fn obey<T: RunTask>(task: &mut T, command: Command<T::Command>) -> io::Result<Flow> {
    let command = match command {
        Command::Own(command) => return task.on_command(command).await.map(|()| Flow::Stay),
        Command::Run(command) => command,
    };
    match command {
        RunCommand::Begin => {}
        RunCommand::Send(request) => task.on_send(request),
        RunCommand::Explain { answer } => {
            let now = clock::now();
            task.tick(now);
            send_reply(answer, explain(task.detector(), task.unentered_text(), now));
        }
        RunCommand::Stop { grace } => task.on_stop(grace).await?,
        RunCommand::Dismiss => {
            if let Err(cause) = dismiss(task).await {
                end_lost_keeper(&task.follower().link, &cause);
            }
            task.follower_mut().compress_journal();
            return Ok(Flow::Leave);
        }
        RunCommand::Leave { done } => {
            task.on_leave();
            send_reply(done, ());
            return Ok(Flow::Leave);
        }
    }
    Ok(Flow::Stay)
}

async fn dismiss<T: RunTask>(task: &mut T) -> io::Result<()> {
    task.on_dismiss().await?;
    task.follower_mut().link.frames.send_message(&ToKeeper::Dismiss).await
}

/// Signals a keeper that hung up before it could be dismissed. Without this it would wait for an hour. Its agent is gone.
fn end_lost_keeper(link: &KeeperLink, cause: &io::Error) {
    tracing::debug!(run = %link.context.id, %cause, "the keeper hung up before it was dismissed");
    if let Err(cause) = platform::signal_if_same(&link.keeper, Signal::TERM) {
        tracing::warn!(run = %link.context.id, %cause, "cannot end a keeper that hung up");
    }
}

async fn finish_if_over<T: RunTask>(task: &mut T) {
    let Folded { next_seq, exit } = task.folded();
    if task.follower().over.is_some() {
        return;
    }
    let Some(exit) = task.follower().link.exit(exit, next_seq) else { return };
    task.follower_mut().over = Some(exit);
    task.on_over(exit);
    let follower = task.follower();
    let ended = follower.link.gone.clone().unwrap_or_default();
    follower.reporter.report(RunReport::Over { exit, ended }).await;
}

/// The keeper hung up: connects again, starts another keeper for the same terminal, or ends the run.
async fn regain<T: RunTask>(task: &mut T, cause: &io::Error) -> io::Result<()> {
    if task.follower().over.is_some() {
        task.follower_mut().link.is_lost = true;
        return Ok(());
    }
    let run = task.follower().link.context.id.clone();
    tracing::warn!(%run, %cause, "the keeper hung up");
    task.on_hangup();
    match task.follower_mut().link.regain().await {
        Ok(replaced) => {
            if replaced {
                let keeper = task.follower().link.keeper.clone();
                task.follower().reporter.report(RunReport::Rescued { keeper }).await;
            }
            let next_seq = task.folded().next_seq;
            task.follower_mut().link.follow(next_seq).await
        }
        Err(cause) => {
            tracing::error!(%run, %cause, "the run is lost");
            task.on_keeper_lost().await;
            let link = &mut task.follower_mut().link;
            link.mark_gone(Vec::new(), 0);
            link.is_lost = true;
            finish_if_over(task).await;
            Ok(())
        }
    }
}

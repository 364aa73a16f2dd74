//! `agency chat`: a task's conversation, read and followed, and what is typed sent to its agent.

use std::collections::{BTreeMap, VecDeque};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use agency_api::chat::{AnswerParams, Approval, Chat as Read, Entry, Item, ReadParams, SettingParams};
use agency_api::method::{
    ApprovalAnswer, ChatRead, TaskGet, TaskInterrupt, TaskRef, TaskSend, TaskSendParams,
};
use agency_api::view::TaskStatus;
use agency_api::{Bytes, Failure, FailureCode};
use agency_client::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::approve::me;
use super::setting::{self, Which};
use crate::cli::Chat;
use crate::context::Context;
use crate::desk::Desk;
use crate::line;
use crate::output::{self, Paint, printable};
use crate::stop::{Done, Stop, failed};
use crate::talk::{self, Question, Transcript};

/// Between two looks at a task that is being started again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(300);

/// SIGCONT: somebody stopped us and brought us back.
const CONTINUED: i32 = rustix::process::Signal::CONT.as_raw();

/// Who reads a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Once,
    Script,
    /// Who needs not be told of what they see.
    Person,
}

pub(super) async fn chat(context: &Context, args: Chat) -> Done {
    let task = context.task(&args.name.task)?;
    let is_at_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    match is_at_terminal && !args.json && !args.follow {
        true => talk(context, task, args.at).await,
        false => print(context, task, args.at, args.follow, args.json).await,
    }
}

/// Without a terminal to type at.
pub(super) async fn print(
    context: &Context,
    task: TaskRef,
    at: Option<u64>,
    follow: bool,
    json: bool,
) -> Done {
    let (news, mut inbox) = mpsc::channel(16);
    let reader = if follow { Reader::Script } else { Reader::Once };
    let reading = tokio::spawn(follow_chat(context.clone(), task, at, news, reader));
    let mut transcript = Transcript::new(Paint::for_stdout());
    while let Some(entries) = inbox.recv().await {
        for entry in &entries {
            match json {
                true => output::json_line(entry)?,
                false => show(&transcript.next(entry))?,
            }
        }
    }
    show(transcript.end_line())?;
    reading.await.map_err(|err| failed("cannot read the conversation", &err))??;
    Ok(ExitCode::SUCCESS)
}

fn show(text: &str) -> Result<(), Stop> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// The conversation so far, then what is new, for as long as the agent lives or is being started again.
async fn follow_chat(
    context: Context,
    task: TaskRef,
    at: Option<u64>,
    news: mpsc::Sender<Vec<Entry>>,
    reader: Reader,
) -> Result<(), Failure> {
    let mut daemon = context.daemon().await?;
    let mut since = None;
    loop {
        let wait = since.is_some();
        let (limit, looking) = (at.map(|_| u64::MAX), reader == Reader::Person);
        let params = ReadParams { task: task.clone(), since, before: None, limit, wait, looking };
        let mut chat = match daemon.call(ChatRead, params).await {
            Ok(chat) => chat,
            Err(failure) if since.is_none() => return Err(failure),
            // The run ended, or the daemon did: whoever is there now knows.
            Err(_) => {
                tokio::time::sleep(LOOK_AGAIN_AFTER).await;
                daemon = context.daemon().await?;
                continue;
            }
        };
        begins_in(at, &chat)?;
        chat.entries.retain(|entry| at.is_none_or(|at| entry.number >= at));
        since = Some(chat.revision);
        if news.send(chat.entries).await.is_err() || reader == Reader::Once {
            return Ok(());
        }
        if !chat.live {
            let task = daemon.call(TaskGet, task.clone()).await?;
            if !talk::holds(&task) || !matches!(task.status, TaskStatus::Running | TaskStatus::Idle) {
                return Ok(());
            }
            tokio::time::sleep(LOOK_AGAIN_AFTER).await;
        }
    }
}

fn begins_in(at: Option<u64>, chat: &Read) -> Result<(), Failure> {
    match at.filter(|at| *at > chat.total) {
        Some(at) => Err(Failure::new(format!("there is no entry {at}"))
            .code(FailureCode::NotFound)
            .because(format!("the conversation has {} entries so far", chat.total))),
        None => Ok(()),
    }
}

/// On a terminal: what comes is printed, what is typed is sent.
pub(super) async fn talk(context: &Context, task: TaskRef, at: Option<u64>) -> Done {
    let (news, mut inbox) = mpsc::channel(16);
    let reading = tokio::spawn(follow_chat(context.clone(), task.clone(), at, news, Reader::Person));
    let deaf = |err: std::io::Error| failed("cannot listen for signals", &err);
    let mut interrupts = signal(SignalKind::interrupt()).map_err(deaf)?;
    let mut ends =
        (signal(SignalKind::terminate()).map_err(deaf)?, signal(SignalKind::hangup()).map_err(deaf)?);
    let mut continued = signal(SignalKind::from_raw(CONTINUED)).map_err(deaf)?;
    let daemon = context.daemon().await?;
    let desk = Desk::take().map_err(|err| failed("cannot use the terminal", &err))?;
    let mut seat = Seat {
        daemon,
        task,
        desk,
        transcript: Transcript::new(Paint::for_stdout()),
        open: VecDeque::new(),
        answers: BTreeMap::new(),
        typed: VecDeque::new(),
    };
    loop {
        tokio::select! {
            entries = inbox.recv() => match entries {
                Some(entries) => seat.show(&entries)?,
                None => break,
            },
            keys = seat.desk.typed() => {
                if seat.pressed(keys).await? {
                    seat.note("[left; the agent keeps running]")?;
                    return Ok(ExitCode::SUCCESS);
                }
            }
            _ = interrupts.recv() => seat.interrupt().await?,
            _ = continued.recv() => seat.desk.retake()?,
            _ = ends.0.recv() => return Ok(ExitCode::SUCCESS),
            _ = ends.1.recv() => return Ok(ExitCode::SUCCESS),
        }
    }
    let now = seat.daemon.call(TaskGet, seat.task.clone()).await.ok();
    match now.filter(|task| !talk::holds(task)) {
        Some(task) => seat.note(&format!("[the agent now runs in a terminal: agency attach {}]", task.id))?,
        None => seat.note("[the agent has ended]")?,
    }
    reading.await.map_err(|err| failed("cannot read the conversation", &err))??;
    Ok(ExitCode::SUCCESS)
}

/// `/mode plan`: which setting, and what it is to be.
fn setting_of(line: &str) -> Option<(Which, Option<&str>)> {
    let (word, wanted) = line.split_once(' ').map_or((line, None), |(word, rest)| (word, Some(rest.trim())));
    let which = match word {
        "/model" => Which::Model,
        "/mode" => Which::Mode,
        _ => return None,
    };
    Some((which, wanted.filter(|wanted| !wanted.is_empty())))
}

/// Where a person sits: what they see, and what waits for them.
struct Seat {
    daemon: Client,
    task: TaskRef,
    desk: Desk,
    transcript: Transcript,
    /// Approvals without an answer, oldest first.
    open: VecDeque<Approval>,
    /// Of the oldest, if it asks several questions.
    answers: BTreeMap<String, String>,
    /// What was typed here stands on the screen already.
    typed: VecDeque<String>,
}

impl Seat {
    fn show(&mut self, entries: &[Entry]) -> Result<(), Stop> {
        for entry in entries {
            let text = self.transcript.next(entry);
            match &entry.item {
                Item::User { text } if self.typed.front() == Some(text) => drop(self.typed.pop_front()),
                _ => self.desk.print(&text)?,
            }
            if let Item::Approval(approval) = &entry.item {
                self.open.retain(|open| open.id != approval.id);
                if approval.outcome.is_none() {
                    self.open.push_back(approval.clone());
                    self.how_to_answer(approval)?;
                }
            }
        }
        Ok(())
    }

    fn how_to_answer(&mut self, approval: &Approval) -> Result<(), Stop> {
        let words = match talk::questions(approval).is_empty() {
            true => "[y: allow, n: deny, /always: allow for this session, /deny WHY]",
            false => "[number or text; n to skip]",
        };
        self.note(words)
    }

    fn note(&mut self, text: &str) -> Result<(), Stop> {
        let text = Paint::for_stdout().paint(output::Colour::Faint, &printable(text));
        Ok(self.desk.print(&format!("{}{text}\n", self.transcript.end_line()))?)
    }

    /// Whether they leave.
    async fn pressed(&mut self, keys: Option<Vec<u8>>) -> Result<bool, Stop> {
        let Some(keys) = keys else { return Ok(true) };
        for done in self.desk.press(&keys)? {
            match done {
                line::Done::Entered(text) => self.typed(&text).await?,
                line::Done::Left => return Ok(true),
            }
        }
        Ok(false)
    }

    async fn typed(&mut self, line: &str) -> Result<(), Stop> {
        let line = line.trim();
        let done = match (self.open.front().cloned(), line) {
            (_, "") => Ok(()),
            (Some(_), "y" | "yes" | "/allow") if self.question().is_none() => {
                self.decide(true, false, None).await
            }
            (Some(_), "/always") => self.decide(true, true, None).await,
            (Some(_), "n" | "no" | "/deny") => self.decide(false, false, None).await,
            (Some(_), line) if line.starts_with("/deny ") => {
                self.decide(false, false, Some(line["/deny ".len()..].trim().to_owned())).await
            }
            (Some(_), line) if self.question().is_some() => self.answer(line).await,
            (None, "/allow" | "/always" | "/deny") => {
                Err(Failure::new("no request is waiting for an answer"))
            }
            (_, "/quit" | "/leave") => Err(Failure::new("press ctrl-d to leave")),
            (_, line) if setting_of(line).is_some() => self.set(line).await,
            (_, text) => self.send(text).await,
        };
        match done {
            Ok(()) => Ok(()),
            Err(failure) => {
                let causes = failure.causes.iter().map(|cause| format!(": {cause}")).collect::<String>();
                self.note(&format!("[{}{causes}]", failure.message))
            }
        }
    }

    /// The question that comes next, if the agent wants to know something.
    fn question(&self) -> Option<Question> {
        let questions = talk::questions(self.open.front()?);
        questions.into_iter().find(|question| !self.answers.contains_key(&question.text))
    }

    async fn answer(&mut self, line: &str) -> Result<(), Failure> {
        if let Some(question) = self.question() {
            self.answers.insert(question.text.clone(), question.answered(line));
        }
        match self.question() {
            Some(_) => Ok(()),
            None => self.decide(true, false, None).await,
        }
    }

    async fn decide(&mut self, allow: bool, always: bool, message: Option<String>) -> Result<(), Failure> {
        let Some(approval) = self.open.pop_front() else { return Ok(()) };
        let answers = std::mem::take(&mut self.answers);
        let answers = (allow && !answers.is_empty()).then_some(answers);
        let (task, id) = (self.task.clone(), Some(approval.id.clone()));
        let params = AnswerParams { task, id, allow, always, message, answers, by: Some(me()) };
        let done = self.daemon.call(ApprovalAnswer, params).await;
        if done.as_ref().is_err_and(|failure| failure.hint.is_some()) {
            // It still waits: another answer may do.
            self.open.push_front(approval);
        }
        done.map(drop)
    }

    async fn set(&mut self, line: &str) -> Result<(), Failure> {
        let Some((which, wanted)) = setting_of(line) else { return Ok(()) };
        let is_change = wanted.is_some();
        let params = SettingParams { task: self.task.clone(), name: wanted.map(str::to_owned) };
        let told = which.call(&mut self.daemon, params).await?;
        if is_change {
            // The conversation tells of it.
            return Ok(());
        }
        let lines = setting::shown(which, &told);
        lines.iter().try_for_each(|line| self.note(line)).map_err(|_| Failure::new("the terminal is gone"))
    }

    async fn send(&mut self, text: &str) -> Result<(), Failure> {
        let params = TaskSendParams {
            task: self.task.clone(),
            text: Bytes(text.as_bytes().to_vec()),
            enter: true,
            anyway: false,
            queue: false,
            keys: Vec::new(),
        };
        self.typed.push_back(text.to_owned());
        self.daemon.call(TaskSend, params).await.map(drop)
    }

    async fn interrupt(&mut self) -> Result<(), Stop> {
        match self.daemon.call(TaskInterrupt, self.task.clone()).await {
            Ok(_) => self.note("[interrupted]"),
            Err(failure) => self.note(&format!("[{}; ctrl-d leaves]", failure.message)),
        }
    }
}

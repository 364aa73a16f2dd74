//! `agency chat`: prints a task's conversation, follows it, and sends what the user types to the agent.

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

use super::approve::{decided_by, send_reason};
use super::setting::{self, Which};
use crate::chat_terminal::ChatTerminal;
use crate::cli::Chat;
use crate::context::Context;
use crate::conversation::{self, Question, Transcript};
use crate::line_editor::LineEvent;
use crate::outcome::{CommandError, CommandResult, failed};
use crate::output::{self, Paint, printable};

/// The pause between two reads of a task that is being started again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(300);

/// SIGCONT: the shell continues us after ctrl-z.
const CONTINUED: i32 = rustix::process::Signal::CONT.as_raw();

/// How a conversation is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReaderKind {
    Once,
    /// Follows the conversation, and does not count as a viewer.
    Script,
    /// A user at a terminal: the daemon sends no notifications about what they see.
    Person,
}

pub(super) async fn chat(context: &Context, args: Chat) -> CommandResult {
    let task = context.task(&args.name.task)?;
    let is_at_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    match is_at_terminal && !args.json && !args.follow {
        true => open_chat(context, task, args.at).await,
        false => print_chat(context, task, args.at, args.follow, args.json).await,
    }
}

/// Prints the conversation; reads no keyboard.
pub(super) async fn print_chat(
    context: &Context,
    task: TaskRef,
    at: Option<u64>,
    follow: bool,
    json: bool,
) -> CommandResult {
    let (news, mut inbox) = mpsc::channel(16);
    let reader = if follow { ReaderKind::Script } else { ReaderKind::Once };
    let reading = tokio::spawn(follow_chat(context.clone(), task, at, news, reader));
    let mut transcript = Transcript::new(Paint::for_stdout());
    while let Some(entries) = inbox.recv().await {
        for entry in &entries {
            match json {
                true => output::json_line(entry)?,
                false => show(&transcript.text_for(entry))?,
            }
        }
    }
    show(transcript.end_line())?;
    reading.await.map_err(|err| failed("cannot read the conversation", &err))??;
    Ok(ExitCode::SUCCESS)
}

fn show(text: &str) -> Result<(), CommandError> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Sends the conversation so far, then new entries while the agent is running or being started again.
async fn follow_chat(
    context: Context,
    task: TaskRef,
    at: Option<u64>,
    news: mpsc::Sender<Vec<Entry>>,
    reader: ReaderKind,
) -> Result<(), Failure> {
    let mut daemon = context.daemon().await?;
    let mut since = None;
    loop {
        let wait = since.is_some();
        let (limit, looking) = (at.map(|_| u64::MAX), reader == ReaderKind::Person);
        let params = ReadParams { task: task.clone(), since, before: None, limit, wait, looking };
        let mut chat = match daemon.call(ChatRead, params).await {
            Ok(chat) => chat,
            Err(failure) if since.is_none() => return Err(failure),
            // The run or the daemon ended. Connect again: a new daemon knows the state.
            Err(_) => {
                tokio::time::sleep(LOOK_AGAIN_AFTER).await;
                daemon = context.daemon().await?;
                continue;
            }
        };
        check_start(at, &chat)?;
        chat.entries.retain(|entry| at.is_none_or(|at| entry.number >= at));
        since = Some(chat.revision);
        if news.send(chat.entries).await.is_err() || reader == ReaderKind::Once {
            return Ok(());
        }
        if !chat.live {
            let task = daemon.call(TaskGet, task.clone()).await?;
            if !conversation::has_conversation(&task)
                || !matches!(task.status, TaskStatus::Running | TaskStatus::Idle)
            {
                return Ok(());
            }
            tokio::time::sleep(LOOK_AGAIN_AFTER).await;
        }
    }
}

fn check_start(at: Option<u64>, chat: &Read) -> Result<(), Failure> {
    match at.filter(|at| *at > chat.total) {
        Some(at) => Err(Failure::new(format!("there is no entry {at}"))
            .code(FailureCode::NotFound)
            .because(format!("the conversation has {} entries so far", chat.total))),
        None => Ok(()),
    }
}

/// On a terminal: prints new entries and sends what the user types.
pub(super) async fn open_chat(context: &Context, task: TaskRef, at: Option<u64>) -> CommandResult {
    let (news, mut inbox) = mpsc::channel(16);
    let reading = tokio::spawn(follow_chat(context.clone(), task.clone(), at, news, ReaderKind::Person));
    let no_signals = |err: std::io::Error| failed("cannot listen for signals", &err);
    let mut interrupts = signal(SignalKind::interrupt()).map_err(no_signals)?;
    let mut ends = (
        signal(SignalKind::terminate()).map_err(no_signals)?,
        signal(SignalKind::hangup()).map_err(no_signals)?,
    );
    let mut continued = signal(SignalKind::from_raw(CONTINUED)).map_err(no_signals)?;
    let daemon = context.daemon().await?;
    let terminal = ChatTerminal::take().map_err(|err| failed("cannot use the terminal", &err))?;
    let mut session = ChatSession {
        daemon,
        task,
        terminal,
        transcript: Transcript::new(Paint::for_stdout()),
        open: VecDeque::new(),
        typed_for: None,
        answers: BTreeMap::new(),
        sent: VecDeque::new(),
    };
    loop {
        tokio::select! {
            entries = inbox.recv() => match entries {
                Some(entries) => session.show(&entries)?,
                None => break,
            },
            keys = session.terminal.next_keys() => {
                if session.on_keys(keys).await? {
                    session.note("[left; the agent keeps running]")?;
                    return Ok(ExitCode::SUCCESS);
                }
            }
            _ = interrupts.recv() => session.interrupt().await?,
            _ = continued.recv() => session.terminal.retake()?,
            _ = ends.0.recv() => return Ok(ExitCode::SUCCESS),
            _ = ends.1.recv() => return Ok(ExitCode::SUCCESS),
        }
    }
    let now = session.daemon.call(TaskGet, session.task.clone()).await.ok();
    match now.filter(|task| !conversation::has_conversation(task)) {
        Some(task) => {
            session.note(&format!("[the agent now runs in a terminal: agency attach {}]", task.id))?
        }
        None => session.note("[the agent has ended]")?,
    }
    reading.await.map_err(|err| failed("cannot read the conversation", &err))??;
    Ok(ExitCode::SUCCESS)
}

/// Parses `/mode plan`: the setting, and its new value.
fn parse_setting(line: &str) -> Option<(Which, Option<&str>)> {
    let (word, wanted) = line.split_once(' ').map_or((line, None), |(word, rest)| (word, Some(rest.trim())));
    let which = match word {
        "/model" => Which::Model,
        "/mode" => Which::Mode,
        _ => return None,
    };
    Some((which, wanted.filter(|wanted| !wanted.is_empty())))
}

/// One user in one conversation: what they see, and the requests that wait for them.
struct ChatSession {
    daemon: Client,
    task: TaskRef,
    terminal: ChatTerminal,
    transcript: Transcript,
    /// Requests without an answer, oldest first. Only the first one is on the screen.
    open: VecDeque<Approval>,
    /// The request that was on the screen when the user began to type this line.
    typed_for: Option<String>,
    /// The answers so far to the oldest request, if it asks several questions.
    answers: BTreeMap<String, String>,
    /// Messages that this user sent. They are on the screen already, so their entries are not printed.
    sent: VecDeque<String>,
}

impl ChatSession {
    fn show(&mut self, entries: &[Entry]) -> Result<(), CommandError> {
        for entry in entries {
            match &entry.item {
                Item::Approval(approval) if approval.outcome.is_none() => {
                    self.add_request(entry, approval)?
                }
                Item::User { text } if self.sent.front() == Some(text) => {
                    self.transcript.text_for(entry);
                    self.sent.pop_front();
                }
                _ => self.print(entry)?,
            }
            if let Item::Approval(approval) = &entry.item
                && approval.outcome.is_some()
            {
                self.close_request(&approval.id)?;
            }
        }
        Ok(())
    }

    fn print(&mut self, entry: &Entry) -> Result<(), CommandError> {
        let text = self.transcript.text_for(entry);
        Ok(self.terminal.print(&text)?)
    }

    /// Shows a request if no other one waits before it: the user answers one at a time, and only what they see.
    fn add_request(&mut self, entry: &Entry, approval: &Approval) -> Result<(), CommandError> {
        if let Some(known) = self.open.iter_mut().find(|open| open.id == approval.id) {
            *known = approval.clone();
            return Ok(());
        }
        self.open.push_back(approval.clone());
        if self.open.len() == 1 {
            self.print(entry)?;
            return self.show_answers(approval);
        }
        self.note(&format!("[{} waiting]", output::count(self.open.len() - 1, "more request")))
    }

    /// A request needs no answer any more; shows the next one.
    fn close_request(&mut self, id: &str) -> Result<(), CommandError> {
        let was_shown = self.open.front().is_some_and(|open| open.id == id);
        self.open.retain(|open| open.id != id);
        if was_shown {
            self.answers.clear();
            self.show_next()?;
        }
        Ok(())
    }

    fn show_next(&mut self) -> Result<(), CommandError> {
        let Some(next) = self.open.front().cloned() else { return Ok(()) };
        let text = self.transcript.text_of_request(&next);
        self.terminal.print(&text)?;
        self.show_answers(&next)
    }

    fn show_answers(&mut self, approval: &Approval) -> Result<(), CommandError> {
        let words = match conversation::questions(approval).is_empty() {
            true => {
                "[y: allow, n: deny, or the number of an option; /always: allow for this session, /deny WHY]"
            }
            false => "[number or text; n to skip]",
        };
        self.note(words)
    }

    fn note(&mut self, text: &str) -> Result<(), CommandError> {
        let text = Paint::for_stdout().paint(output::Colour::Faint, &printable(text));
        Ok(self.terminal.print(&format!("{}{text}\n", self.transcript.end_line()))?)
    }

    /// Returns whether the user leaves.
    async fn on_keys(&mut self, keys: Option<Vec<u8>>) -> Result<bool, CommandError> {
        let Some(keys) = keys else { return Ok(true) };
        if self.terminal.is_line_empty() {
            self.typed_for = self.open.front().map(|open| open.id.clone());
        }
        for event in self.terminal.press(&keys)? {
            match event {
                LineEvent::Entered(text) => self.on_line(&text).await?,
                LineEvent::EndOfInput => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Whether the line answers a request.
    fn is_answer(&self, line: &str) -> bool {
        let is_word = matches!(line, "y" | "yes" | "n" | "no" | "/allow" | "/always" | "/deny");
        is_word || line.starts_with("/deny ") || self.option(line).is_some() || self.question().is_some()
    }

    /// The option of the request on the screen that a number names.
    fn option(&self, line: &str) -> Option<String> {
        let approval = self.open.front().filter(|open| conversation::questions(open).is_empty())?;
        let at = line.parse::<usize>().ok()?.checked_sub(1)?;
        approval.choices.get(at).map(|choice| choice.id.clone())
    }

    async fn on_line(&mut self, line: &str) -> Result<(), CommandError> {
        let line = line.trim();
        let shown = self.open.front().map(|open| open.id.clone());
        let typed_for = std::mem::replace(&mut self.typed_for, shown.clone());
        if !line.is_empty() && shown.is_some() && typed_for != shown && self.is_answer(line) {
            return self.note("[not sent: another request came up while you typed; answer the one above]");
        }
        let outcome = match (self.open.front().cloned(), line) {
            (_, "") => Ok(()),
            (Some(_), line) if self.option(line).is_some() => self.choose(line).await,
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
                Err(Failure::new("no request is waiting for an answer").code(FailureCode::NoOpenRequest))
            }
            (_, "/quit" | "/leave") => {
                Err(Failure::new("press ctrl-d to leave").code(FailureCode::InvalidArgument))
            }
            (_, line) if parse_setting(line).is_some() => self.set(line).await,
            (_, text) => self.send(text).await,
        };
        match outcome {
            Ok(()) => Ok(()),
            Err(failure) => {
                let causes = failure.causes.iter().map(|cause| format!(": {cause}")).collect::<String>();
                self.note(&format!("[{}{causes}]", failure.message))
            }
        }
    }

    /// The next question without an answer, if the oldest request asks questions.
    fn question(&self) -> Option<Question> {
        let questions = conversation::questions(self.open.front()?);
        questions.into_iter().find(|question| !self.answers.contains_key(&question.text))
    }

    async fn answer(&mut self, line: &str) -> Result<(), Failure> {
        if let Some(question) = self.question() {
            self.answers.insert(question.text.clone(), question.answer_for(line));
        }
        match self.question() {
            Some(_) => Ok(()),
            None => self.decide(true, false, None).await,
        }
    }

    async fn decide(&mut self, allow: bool, always: bool, message: Option<String>) -> Result<(), Failure> {
        let answers = std::mem::take(&mut self.answers);
        let answers = (allow && !answers.is_empty()).then_some(answers);
        self.give(AnswerParams { allow, always, message, answers, ..self.answer_params() }).await
    }

    async fn choose(&mut self, line: &str) -> Result<(), Failure> {
        let option = self.option(line);
        self.give(AnswerParams { option, ..self.answer_params() }).await
    }

    fn answer_params(&self) -> AnswerParams {
        AnswerParams {
            task: self.task.clone(),
            id: self.open.front().map(|open| open.id.clone()),
            allow: true,
            always: false,
            message: None,
            option: None,
            answers: None,
            by: Some(decided_by()),
        }
    }

    /// Answers the request on the screen. Its entry, once it has an outcome, brings the next one.
    async fn give(&mut self, params: AnswerParams) -> Result<(), Failure> {
        let (task, reason) = (params.task.clone(), params.message.clone().filter(|_| !params.allow));
        let answered = self.daemon.call(ApprovalAnswer, params).await?;
        if let Some(reason) = reason {
            send_reason(&mut self.daemon, task, &answered.approval, &reason).await?;
        }
        Ok(())
    }

    async fn set(&mut self, line: &str) -> Result<(), Failure> {
        let Some((which, wanted)) = parse_setting(line) else { return Ok(()) };
        let is_change = wanted.is_some();
        let params = SettingParams { task: self.task.clone(), name: wanted.map(str::to_owned) };
        let setting = which.call(&mut self.daemon, params).await?;
        if is_change {
            // The conversation gets an entry about the change.
            return Ok(());
        }
        let lines = setting::setting_lines(which, &setting);
        lines
            .iter()
            .try_for_each(|line| self.note(line))
            .map_err(|_| Failure::new("the terminal is gone").code(FailureCode::IoError))
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
        self.sent.push_back(text.to_owned());
        self.daemon.call(TaskSend, params).await.map(drop)
    }

    async fn interrupt(&mut self) -> Result<(), CommandError> {
        match self.daemon.call(TaskInterrupt, self.task.clone()).await {
            Ok(_) => self.note("[interrupted]"),
            Err(failure) => self.note(&format!("[{}; ctrl-d leaves]", failure.message)),
        }
    }
}

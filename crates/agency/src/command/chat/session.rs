//! One user in one conversation: what they see, what they type, and the requests that wait for them.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use agency_api::chat::{AnswerParams, Approval, Entry, Item, OptionParams, ReadParams, SettingParams};
use agency_api::config::{Overrides, ShowParams};
use agency_api::method::{
    ApprovalAnswer, ChatRead, ConfigShow, Receipt, ReceiptKind, TaskGet, TaskInterrupt, TaskOption, TaskRef,
    TaskSend, TaskSendParams,
};
use agency_api::view::Task;
use agency_api::{Bytes, Failure, FailureCode};
use agency_client::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::input::{self, OwnCommand};
use super::{Followed, ReaderKind, earlier_entries, follow_chat};
use crate::attach::leave_keys::{Leave, LeaveKeys, Pressed};
use crate::attach::{self, Departure};
use crate::chat_history::ChatHistory;
use crate::chat_screen::{ChatScreen, fitting};
use crate::chat_status::ChatStatus;
use crate::chat_terminal::ChatTerminal;
use crate::command::approve::decided_by;
use crate::command::option;
use crate::command::setting::{self, Which};
use crate::context::Context;
use crate::conversation::{self, Question, item_text};
use crate::image;
use crate::line_editor::LineEvent;
use crate::outcome::{CommandError, failed};
use crate::output::{self, Colour, Paint, printable};

/// SIGCONT: the shell continues us after ctrl-z.
const CONTINUED: i32 = rustix::process::Signal::CONT.as_raw();

/// The time in the status line changes each second. While text streams in, the daemon is not asked more often either.
const STATUS_EVERY: Duration = Duration::from_secs(1);

/// How many names are offered at once.
const MOST_OFFERED: usize = 8;

/// On a terminal: prints new entries and sends what the user types.
pub(in crate::command) async fn open_chat(
    context: &Context,
    task: TaskRef,
    at: Option<u64>,
) -> Result<Departure, CommandError> {
    let (news, mut inbox) = mpsc::channel(16);
    let reading = tokio::spawn(follow_chat(context.clone(), task.clone(), at, news, ReaderKind::Person));
    let no_signals = |err: std::io::Error| failed("cannot listen for signals", &err);
    let mut interrupts = signal(SignalKind::interrupt()).map_err(no_signals)?;
    let mut ends = (
        signal(SignalKind::terminate()).map_err(no_signals)?,
        signal(SignalKind::hangup()).map_err(no_signals)?,
    );
    let mut continued = signal(SignalKind::from_raw(CONTINUED)).map_err(no_signals)?;
    let mut resized = signal(SignalKind::window_change()).map_err(no_signals)?;
    let mut ticks = tokio::time::interval(STATUS_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (outbox, mut receipts) = send_messages(context.clone());
    let mut session = ChatSession::begin(context, task, outbox).await?;
    loop {
        tokio::select! {
            chat = inbox.recv() => match chat {
                Some(chat) => session.show(&chat).await?,
                None => break,
            },
            keys = session.terminal.next_keys() => {
                let leave = session.on_keys(keys).await?;
                if let Some(leave) = leave {
                    return leave_chat(session, receipts, leave).await;
                }
            }
            () = sleep_until_some(session.decide_at) => {
                let pressed = session.leave_keys.flush();
                let leave = session.on_pressed(pressed).await?;
                if let Some(leave) = leave {
                    return leave_chat(session, receipts, leave).await;
                }
            }
            Some(receipt) = receipts.recv() => session.show_receipt(receipt)?,
            _ = ticks.tick() => session.tick().await?,
            _ = interrupts.recv() => session.interrupt().await?,
            _ = continued.recv() => session.terminal.retake()?,
            _ = resized.recv() => session.resize()?,
            _ = ends.0.recv() => return Ok(Departure::Over(ExitCode::SUCCESS)),
            _ = ends.1.recv() => return Ok(Departure::Over(ExitCode::SUCCESS)),
        }
    }
    let now = session.daemon.call(TaskGet, session.task.clone()).await.ok();
    match now.filter(|task| !conversation::has_conversation(task)) {
        Some(task) => {
            session.leave(&format!("[the agent now runs in a terminal: agency attach {}]", task.id))?
        }
        None => session.leave("[the agent has ended]")?,
    }
    drop(session);
    reading.await.map_err(|err| failed("cannot read the conversation", &err))??;
    Ok(Departure::Over(ExitCode::SUCCESS))
}

async fn leave_chat(
    mut session: ChatSession,
    mut receipts: mpsc::Receiver<Result<Receipt, Failure>>,
    leave: Leave,
) -> Result<Departure, CommandError> {
    session.leave("[left; the agent keeps running]")?;
    let left = match leave {
        Leave::Detach => Departure::Over(ExitCode::SUCCESS),
        Leave::Next => Departure::Next(Box::new(session.daemon.call(TaskGet, session.task.clone()).await?)),
    };
    drop(session);
    // A message that the user has just entered is still sent.
    while let Some(receipt) = receipts.recv().await {
        receipt_note(receipt).iter().for_each(|note| output::note(note));
    }
    Ok(left)
}

async fn sleep_until_some(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The keys that leave, as in a terminal.
async fn leave_keys(context: &Context, daemon: &mut Client, task: &Task) -> Result<LeaveKeys, Failure> {
    let key = Some("detach_keys".to_owned());
    let overrides = Overrides::from_process(&context.options);
    let shown = daemon.call(ConfigShow, ShowParams { cwd: task.project.clone(), key, overrides }).await;
    // A broken configuration file must not keep a user from a conversation.
    let entry = shown.ok().and_then(|shown| shown.settings.into_iter().next());
    let text = entry.and_then(|entry| entry.value.as_str().map(str::to_owned));
    attach::detach_keys(text.as_deref()).map(LeaveKeys::new)
}

/// The next message is sent after this time even if the receipt of the last one is not there yet.
const SENT_WITHIN: Duration = Duration::from_millis(500);

/// Sends messages one after the other, beside the screen: a receipt can take seconds.
fn send_messages(
    context: Context,
) -> (mpsc::UnboundedSender<TaskSendParams>, mpsc::Receiver<Result<Receipt, Failure>>) {
    let (outbox, mut messages) = mpsc::unbounded_channel();
    let (reports, receipts) = mpsc::channel(1);
    tokio::spawn(async move {
        while let Some(params) = messages.recv().await {
            let (reports, connected) = (reports.clone(), context.daemon().await);
            let mut sending = tokio::spawn(async move {
                let receipt = match connected {
                    Ok(mut daemon) => daemon.call(TaskSend, params).await,
                    Err(failure) => Err(failure),
                };
                // The channel is closed after a signal has ended the chat.
                reports.send(receipt).await.ok();
            });
            tokio::time::timeout(SENT_WITHIN, &mut sending).await.ok();
        }
    });
    (outbox, receipts)
}

struct ChatSession {
    daemon: Client,
    task: TaskRef,
    /// Messages for the agent.
    outbox: mpsc::UnboundedSender<TaskSendParams>,
    terminal: ChatTerminal,
    screen: ChatScreen,
    status: ChatStatus,
    /// When the daemon was last asked about the task.
    asked_at: Option<Instant>,
    leave_keys: LeaveKeys,
    /// When the held keys are decided, if no more keys arrive.
    decide_at: Option<tokio::time::Instant>,
    history: ChatHistory,
    /// The directory of `@FILE`: the workspace.
    directory: PathBuf,
    /// Requests without an answer, oldest first. Only the first one is on the screen.
    open: VecDeque<Approval>,
    /// The request that was on the screen when the user began to type this line.
    typed_for: Option<String>,
    /// The answers so far to the oldest request, if it asks several questions.
    answers: BTreeMap<String, String>,
}

/// Showing the conversation.
impl ChatSession {
    async fn begin(
        context: &Context,
        task: TaskRef,
        outbox: mpsc::UnboundedSender<TaskSendParams>,
    ) -> Result<ChatSession, CommandError> {
        let mut daemon = context.daemon().await?;
        let known = daemon.call(TaskGet, task.clone()).await?;
        let leave_keys = leave_keys(context, &mut daemon, &known).await?;
        let history = ChatHistory::open(&context.state, known.project.as_path());
        let mut terminal = ChatTerminal::take().map_err(|err| failed("cannot use the terminal", &err))?;
        terminal.line().set_history(history.messages().to_vec());
        let mut status = ChatStatus::default();
        status.read_task(&known, Instant::now());
        Ok(ChatSession {
            daemon,
            task,
            outbox,
            terminal,
            screen: ChatScreen::new(Paint::for_stdout(), ChatTerminal::size().0),
            status,
            asked_at: None,
            leave_keys,
            decide_at: None,
            history,
            directory: known.worktree.as_ref().unwrap_or(&known.project).as_path().to_path_buf(),
            open: VecDeque::new(),
            typed_for: None,
            answers: BTreeMap::new(),
        })
    }

    async fn show(&mut self, chat: &Followed) -> Result<(), CommandError> {
        if let Some(note) = earlier_entries(chat) {
            self.note(&note)?;
        }
        self.show_entries(&chat.entries)?;
        if let Some(session) = &chat.status {
            self.status.read_session(session, &chat.usage);
        }
        let is_recent = self.asked_at.is_some_and(|at| at.elapsed() < STATUS_EVERY);
        let is_news = chat.status.as_ref().map(|session| session.working) != self.status.was_working();
        if is_news || !is_recent {
            self.ask_status().await;
        }
        self.draw_status()
    }

    /// Shows how much time has passed, and asks again if the daemon has not seen the last change of the agent yet.
    async fn tick(&mut self) -> Result<(), CommandError> {
        let is_outdated = self.status.was_working() != Some(self.status.session().working);
        if is_outdated || self.asked_at.is_none() {
            self.ask_status().await;
        }
        self.draw_status()
    }

    /// Asks the daemon what the agent does. Without an answer the line stays as it is.
    async fn ask_status(&mut self) {
        if let Ok(task) = self.daemon.call(TaskGet, self.task.clone()).await {
            self.status.read_task(&task, Instant::now());
            self.asked_at = Some(Instant::now());
        }
    }

    fn draw_status(&mut self) -> Result<(), CommandError> {
        Ok(self.terminal.set_status(self.status.line(Instant::now()))?)
    }

    fn resize(&mut self) -> Result<(), CommandError> {
        self.screen.set_columns(ChatTerminal::size().0);
        Ok(self.terminal.redraw()?)
    }

    fn show_entries(&mut self, entries: &[Entry]) -> Result<(), CommandError> {
        let mut text = String::new();
        for entry in entries {
            match &entry.item {
                Item::Approval(approval) if approval.outcome.is_none() => {
                    self.print(&std::mem::take(&mut text))?;
                    self.add_request(entry, approval)?;
                }
                _ => text.push_str(&self.screen.text_for(entry)),
            }
            if let Item::Approval(approval) = &entry.item
                && approval.outcome.is_some()
            {
                self.print(&std::mem::take(&mut text))?;
                self.close_request(&approval.id)?;
            }
        }
        self.print(&text)
    }

    fn print(&mut self, text: &str) -> Result<(), CommandError> {
        Ok(self.terminal.print(text, self.screen.rows())?)
    }

    fn note(&mut self, text: &str) -> Result<(), CommandError> {
        let text = Paint::for_stdout().paint(Colour::Faint, &printable(text));
        self.print(&format!("{text}\n"))
    }

    /// Prints everything that is not complete, and a last line.
    fn leave(&mut self, words: &str) -> Result<(), CommandError> {
        let rest = self.screen.finish();
        let words = Paint::for_stdout().paint(Colour::Faint, &printable(words));
        Ok(self.terminal.finish(&format!("{rest}{words}\n"))?)
    }

    /// Shows a request if no other one waits before it: the user answers one at a time, and only what they see.
    fn add_request(&mut self, entry: &Entry, approval: &Approval) -> Result<(), CommandError> {
        if let Some(known) = self.open.iter_mut().find(|open| open.id == approval.id) {
            *known = approval.clone();
            return Ok(());
        }
        self.open.push_back(approval.clone());
        if self.open.len() == 1 {
            let text = self.screen.text_for(entry);
            self.print(&text)?;
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
        let text = item_text(Paint::for_stdout(), &Item::Approval(next.clone()));
        self.print(&format!("{text}\n"))?;
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
}

/// Handling the keyboard.
impl ChatSession {
    /// Returns whether the user leaves.
    async fn on_keys(&mut self, keys: Option<Vec<u8>>) -> Result<Option<Leave>, CommandError> {
        let Some(keys) = keys else { return Ok(Some(Leave::Detach)) };
        let pressed = self.leave_keys.feed(&keys);
        self.on_pressed(pressed).await
    }

    async fn on_pressed(&mut self, pressed: Pressed) -> Result<Option<Leave>, CommandError> {
        self.decide_at = self.leave_keys.pending().map(|wait| tokio::time::Instant::now() + wait);
        if self.terminal.line().is_empty() {
            self.typed_for = self.open.front().map(|open| open.id.clone());
        }
        for event in self.terminal.press(&pressed.pass)? {
            match event {
                LineEvent::Entered(text) => self.on_line(&text).await?,
                LineEvent::Complete => self.complete()?,
                LineEvent::EndOfInput => return Ok(Some(Leave::Detach)),
            }
        }
        Ok(pressed.leave)
    }

    /// Completes the word before the cursor as far as it is clear, and offers the names if there are several.
    fn complete(&mut self) -> Result<(), CommandError> {
        let (word, begins_message) = self.terminal.line().word_before_cursor();
        let agents = &self.status.session().commands;
        let words = input::completions(&word, begins_message, agents, &self.directory);
        let common = input::common_beginning(&words);
        match words.as_slice() {
            [] => return Ok(()),
            [only] if only.ends_with('/') => self.terminal.line().replace_word(only),
            [only] => self.terminal.line().replace_word(&format!("{only} ")),
            _ if common.len() > word.len() => self.terminal.line().replace_word(&common),
            _ => {}
        }
        let columns = ChatTerminal::size().0.saturating_sub(1);
        let names = words.iter().filter(|_| words.len() > 1).take(MOST_OFFERED);
        let mut offered: Vec<String> = names.map(|name| self.offered_row(name, columns)).collect();
        if words.len() > MOST_OFFERED {
            offered.push(format!("  … {} more", words.len() - MOST_OFFERED));
        }
        Ok(self.terminal.offer(offered)?)
    }

    fn offered_row(&self, name: &str, columns: usize) -> String {
        let own = input::OWN_COMMANDS.iter().find(|(own, _)| *own == name.trim_start_matches('/'));
        let agents =
            self.status.session().commands.iter().find(|command| name == format!("/{}", command.name));
        let about = agents.map(|command| command.description.as_str()).or(own.map(|(_, effect)| *effect));
        let about = about.filter(|_| name.starts_with('/')).unwrap_or_default();
        let row = fitting(&printable(&format!("  {name:<16} {about}")).replace('\n', " "), columns);
        Paint::for_stdout().paint(Colour::Faint, row.trim_end())
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
            (Some(_), "y" | "yes" | "/allow" | "//allow") if self.question().is_none() => {
                self.decide(true, false, None).await
            }
            (Some(_), "/always" | "//always") => self.decide(true, true, None).await,
            (Some(_), "n" | "no" | "/deny" | "//deny") => self.decide(false, false, None).await,
            (Some(_), line) if line.starts_with("/deny ") || line.starts_with("//deny ") => {
                let why = line.trim_start_matches('/')["deny ".len()..].trim().to_owned();
                self.decide(false, false, Some(why)).await
            }
            (Some(_), line) if self.question().is_some() && self.own_command(line).is_none() => {
                self.answer(line).await
            }
            (_, "/quit" | "/leave") => {
                Err(Failure::new("press ctrl-d to leave").code(FailureCode::InvalidArgument))
            }
            (_, text) => self.on_command_or_message(text).await,
        };
        outcome.or_else(|failure| self.show_failure(&failure))
    }

    fn show_failure(&mut self, failure: &Failure) -> Result<(), CommandError> {
        self.note(&failure_note(failure))
    }

    fn own_command<'a>(&self, line: &'a str) -> Option<OwnCommand<'a>> {
        input::own_command(line, &self.status.session().commands)
    }

    async fn on_command_or_message(&mut self, text: &str) -> Result<(), Failure> {
        self.remember(text);
        let Some(OwnCommand { name, rest }) = self.own_command(text) else { return self.send(text) };
        match name {
            "help" => {
                let lines = input::help_lines(&self.status.session().commands);
                self.note_lines(&lines)
            }
            "show" => self.show_entry(rest).await,
            "option" => self.set_option(rest).await,
            "model" => self.set(Which::Model, rest).await,
            "mode" => self.set(Which::Mode, rest).await,
            _ => Err(Failure::new("no request is waiting for an answer").code(FailureCode::NoOpenRequest)),
        }
    }

    /// Keeps the message for the Up key.
    fn remember(&mut self, text: &str) {
        // A history that cannot be written is still there until the user leaves.
        self.history.add(text).ok();
        self.terminal.line().set_history(self.history.messages().to_vec());
    }

    fn note_lines(&mut self, lines: &[String]) -> Result<(), Failure> {
        self.note(&lines.join("\n")).map_err(|_| terminal_gone())
    }

    /// Prints an entry in full.
    async fn show_entry(&mut self, number: Option<&str>) -> Result<(), Failure> {
        let number = match number {
            Some(word) => word.parse::<u64>().ok(),
            None => self.screen.last_folded(),
        };
        let none = || Failure::new("/show needs the number of an entry").code(FailureCode::InvalidArgument);
        let number = number.filter(|number| *number > 0).ok_or_else(none)?;
        let params = ReadParams {
            before: Some(number.saturating_add(1)),
            limit: Some(1),
            ..ReadParams::of(self.task.clone())
        };
        let read = self.daemon.call(ChatRead, params).await?;
        let entry = read.entries.first().filter(|entry| entry.number == number);
        let entry = entry.ok_or_else(|| {
            Failure::new(format!("there is no entry {number}"))
                .code(FailureCode::NotFound)
                .because(format!("the conversation has {} entries so far", read.total))
        })?;
        let text = match &entry.item {
            Item::ToolCall(call) => {
                let text = conversation::tool_text(Paint::for_stdout(), call, usize::MAX, |_| String::new());
                let input = serde_json::to_string_pretty(&call.input).unwrap_or_default();
                let input = Some(input).filter(|_| !call.input.is_null()).unwrap_or_default();
                format!(
                    "{}{text}\n",
                    input.lines().map(|line| format!("  {}\n", printable(line))).collect::<String>()
                )
            }
            item => format!("{}\n", item_text(Paint::for_stdout(), item)),
        };
        self.note(&format!("[entry {number}]")).and_then(|()| self.print(&text)).map_err(|_| terminal_gone())
    }

    async fn set_option(&mut self, rest: Option<&str>) -> Result<(), Failure> {
        let (name, value) = match rest
            .map(|rest| rest.split_once(' ').map_or((rest, None), |(name, value)| (name, Some(value.trim()))))
        {
            Some((name, value)) => (Some(name.to_owned()), value.map(str::to_owned)),
            None => (None, None),
        };
        let is_change = value.is_some();
        let params = OptionParams { task: self.task.clone(), option: name, value };
        let listed = self.daemon.call(TaskOption, params).await?;
        if is_change {
            // The conversation gets an entry about the change.
            return Ok(());
        }
        let lines: Vec<String> = listed.options.iter().flat_map(option::option_lines).collect();
        match lines.is_empty() {
            true => self.note_lines(&["the agent offers no options".to_owned()]),
            false => self.note_lines(&lines),
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
        self.daemon.call(ApprovalAnswer, params).await.map(drop)
    }

    async fn set(&mut self, which: Which, wanted: Option<&str>) -> Result<(), Failure> {
        let is_change = wanted.is_some();
        let params = SettingParams { task: self.task.clone(), name: wanted.map(str::to_owned) };
        let setting = which.call(&mut self.daemon, params).await?;
        if is_change {
            // The conversation gets an entry about the change.
            return Ok(());
        }
        self.note_lines(&setting::setting_lines(which, &setting))
    }

    fn send(&mut self, text: &str) -> Result<(), Failure> {
        let images = input::named_images(text, &self.directory);
        let images = images.iter().map(|path| image::read(path)).collect::<Result<_, _>>()?;
        let params = TaskSendParams {
            task: self.task.clone(),
            text: Bytes(text.as_bytes().to_vec()),
            enter: true,
            anyway: false,
            queue: false,
            keys: Vec::new(),
            images,
        };
        let gone = |_| Failure::new("the message was not sent").code(FailureCode::Internal);
        self.outbox.send(params).map_err(gone)
    }

    fn show_receipt(&mut self, receipt: Result<Receipt, Failure>) -> Result<(), CommandError> {
        self.asked_at = None;
        receipt_note(receipt).map_or(Ok(()), |note| self.note(&note))
    }

    async fn interrupt(&mut self) -> Result<(), CommandError> {
        match self.daemon.call(TaskInterrupt, self.task.clone()).await {
            Ok(_) => self.note("[interrupted]"),
            Err(failure) => self.note(&format!("[{}; ctrl-d leaves]", failure.message)),
        }
    }
}

/// The outcome of a message in words, if no entry of the conversation shows it.
fn receipt_note(receipt: Result<Receipt, Failure>) -> Option<String> {
    match receipt {
        Ok(Receipt { receipt: ReceiptKind::Delivered | ReceiptKind::Typed, .. }) => None,
        Ok(Receipt { receipt: kind, why, .. }) => {
            let word = if kind == ReceiptKind::Queued { "queued" } else { "not sent" };
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            Some(format!("[{word}{why}]"))
        }
        Err(failure) => Some(failure_note(&failure)),
    }
}

fn failure_note(failure: &Failure) -> String {
    let causes = failure.causes.iter().map(|cause| format!(": {cause}")).collect::<String>();
    format!("[{}{causes}]", failure.message)
}

fn terminal_gone() -> Failure {
    Failure::new("the terminal is gone").code(FailureCode::IoError)
}

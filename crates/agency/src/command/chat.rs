//! `agency chat`: prints a task's conversation, follows it, and sends what the user types to the agent.

mod input;
mod session;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use agency_api::chat::{Chat as Read, Item, ReadParams, SeenText};
use agency_api::method::{ChatRead, TaskGet, TaskRef};
use agency_api::view::TaskStatus;
use agency_api::{Failure, FailureCode};
use tokio::sync::mpsc;

use crate::attach::Departure;
use crate::cli::Chat;
use crate::context::Context;
use crate::conversation::{self, Transcript};
use crate::outcome::{CommandError, CommandResult, failed};
use crate::output::{self, Paint};
pub(super) use session::open_chat;

/// The pause between two reads of a task that is being started again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(300);

/// How a conversation is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReaderKind {
    Once,
    /// Follows the conversation, and does not count as a viewer.
    Script,
    /// The same, and gets each entry as a whole when it changes.
    JsonScript,
    /// A user at a terminal: the daemon sends no notifications about what they see.
    Person,
}

pub(super) async fn chat(context: &Context, args: Chat) -> Result<Departure, CommandError> {
    let task = context.task(&args.name.task)?;
    let is_at_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    match is_at_terminal && !args.json && !args.follow {
        true => open_chat(context, task, args.at).await,
        false => print_chat(context, task, args.at, args.follow, args.json).await.map(Departure::Over),
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
    let reader = match (follow, json) {
        (true, true) => ReaderKind::JsonScript,
        (true, false) => ReaderKind::Script,
        (false, _) => ReaderKind::Once,
    };
    let reading = tokio::spawn(follow_chat(context.clone(), task, at, news, reader));
    let mut transcript = Transcript::new(Paint::for_stdout());
    while let Some(chat) = inbox.recv().await {
        earlier_entries(&chat).iter().for_each(|note| output::note(note));
        for entry in &chat.entries {
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

/// Says that there are entries before the first one of the first answer, and how to see them.
fn earlier_entries(chat: &Followed) -> Option<String> {
    let first = chat.entries.first().filter(|_| chat.is_first && chat.at.is_none())?;
    let words = match first.number.checked_sub(1)? {
        0 => return None,
        1 => "1 earlier entry".to_owned(),
        before => format!("{before} earlier entries"),
    };
    Some(format!("[{words} above; `agency chat {} --at 1` shows all]", chat.name))
}

/// An answer of the daemon to a reader that follows.
struct Followed {
    chat: Read,
    is_first: bool,
    at: Option<u64>,
    /// The task, as the user named it.
    name: String,
}

impl std::ops::Deref for Followed {
    type Target = Read;

    fn deref(&self) -> &Read {
        &self.chat
    }
}

/// The text that can still grow: only the last entry does.
fn seen_text(chat: &Read) -> Option<SeenText> {
    let entry = chat.entries.last()?;
    match &entry.item {
        Item::Assistant { text } | Item::Thinking { text } => {
            let bytes = entry.text_bytes.unwrap_or(entry.text_from.unwrap_or(0) + text.len() as u64);
            Some(SeenText { entry: entry.number, bytes })
        }
        _ => None,
    }
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
    news: mpsc::Sender<Followed>,
    reader: ReaderKind,
) -> Result<(), Failure> {
    let mut daemon = context.daemon().await?;
    let (mut since, mut seen) = (None, None);
    loop {
        let wait = since.is_some();
        let (limit, looking) = (at.map(|_| u64::MAX), reader == ReaderKind::Person);
        let params =
            ReadParams { since, limit, wait, looking, seen, status: looking, ..ReadParams::of(task.clone()) };
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
        if reader != ReaderKind::JsonScript {
            seen = seen_text(&chat).or(seen);
        }
        let (is_live, is_first) = (chat.live, since.is_none());
        since = Some(chat.revision);
        let followed = Followed { chat, is_first, at, name: task.name.clone() };
        if news.send(followed).await.is_err() || reader == ReaderKind::Once {
            return Ok(());
        }
        if !is_live {
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

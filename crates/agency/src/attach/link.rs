//! The way to a task's terminal, found again when it breaks.
//!
//! Two halves, because hearing must not wait for saying: a daemon that does not read still shows its screen.

use std::time::{Duration, Instant};

use agency_api::config::Overrides;
use agency_api::keeper::Size;
use agency_api::method::{PtyAttach, PtyAttachParams, Stream, TaskGet, TaskRef};
use agency_api::pty::{AttachMode, Colours, ViewerNotice, ViewerRequest};
use agency_api::view::{AgentState, Task};
use agency_api::{Failure, FailureCode};
use agency_client::{Client, StreamSocket};
use futures_util::stream::SplitStream;
use futures_util::{SinkExt, StreamExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;

use crate::caller;
use crate::context::Context;

/// Longer than an upgrade takes; whoever waits that long wants to know why.
const GIVE_UP_AFTER: Duration = Duration::from_secs(30);
const REFUSED_FOR: Duration = Duration::from_secs(3);
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A reconnection that is quicker than this is not worth a word.
const SAY_SO_AFTER: Duration = Duration::from_secs(1);

/// What was typed just before the end still gets this long to arrive.
const DELIVERED_WITHIN: Duration = Duration::from_millis(500);

const HANGS_AFTER: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) task: TaskRef,
    pub(crate) mode: AttachMode,
    pub(crate) frames: bool,
    pub(crate) overrides: Overrides,
}

/// What a new connection begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    Scrollback,
    /// The scrollback is on the user's terminal already.
    Screen,
}

pub(super) struct Connected {
    pub(super) task: Task,
    pub(super) detach_keys: Option<String>,
    pub(super) notes: Vec<String>,
    /// Keys that an earlier connection did not deliver.
    pub(super) undelivered: Vec<u8>,
    stream: StreamSocket,
}

pub(super) async fn connect(
    daemon: &mut Client,
    target: &Target,
    begin: Begin,
) -> Result<Connected, Failure> {
    let params = PtyAttachParams {
        task: target.task.clone(),
        size: caller::terminal_size().unwrap_or_default(),
        mode: target.mode,
        inside_run: caller::inside_run(),
        ssh_auth_sock: caller::ssh_auth_sock(),
        screen_only: begin == Begin::Screen,
        frames: target.frames,
        overrides: target.overrides.clone(),
    };
    let answer = daemon.call(PtyAttach, params).await?;
    let stream = daemon.stream(&answer.stream).await?;
    let Stream { task, detach_keys, notes, .. } = answer;
    Ok(Connected { task, detach_keys, notes, undelivered: Vec::new(), stream })
}

impl Connected {
    pub(super) fn split(self) -> (Hearing, Saying) {
        let (mut sink, stream) = self.stream.split();
        let (sender, mut messages) = mpsc::channel::<Message>(1);
        let writer = tokio::spawn(async move {
            while let Some(message) = messages.recv().await {
                let copy = message.clone();
                // The hearing half meets the same end and reports it.
                if sink.send(message).await.is_err() {
                    messages.close();
                    return undelivered(copy, messages).await;
                }
            }
            Vec::new()
        });
        (Hearing::Stream(stream), Saying { sender, writer })
    }
}

/// The keys among messages that nobody took.
async fn undelivered(first: Message, mut rest: mpsc::Receiver<Message>) -> Vec<u8> {
    let mut typed = Vec::new();
    let mut next = Some(first);
    while let Some(message) = next {
        if let Message::Binary(bytes) = message {
            typed.extend_from_slice(&bytes);
        }
        next = rest.recv().await;
    }
    typed
}

/// What the daemon says, or how the search for another one goes.
pub(super) enum Hearing {
    Stream(SplitStream<StreamSocket>),
    Search(Search),
}

pub(super) struct Search {
    attempt: JoinHandle<Result<Connected, Missed>>,
    since: Instant,
    said: bool,
}

impl Drop for Search {
    fn drop(&mut self) {
        self.attempt.abort();
    }
}

pub(super) enum Heard {
    Bytes(Vec<u8>),
    Notice(ViewerNotice),
    Broken,
    Found(Box<Connected>),
    Missed(Missed),
    /// Said once, when a search takes long.
    StillSearching,
}

/// Why there is no connection any more.
pub(super) struct Missed {
    pub(super) failure: Failure,
    /// The task, if a daemon answered and refused.
    pub(super) task: Option<Box<Task>>,
}

impl Hearing {
    /// Safe to drop half-way: nothing that was heard is lost.
    pub(super) async fn next(&mut self) -> Heard {
        match self {
            Hearing::Stream(stream) => hear(stream).await,
            Hearing::Search(search) => search.next().await,
        }
    }

    /// Looks for a daemon: `patience` long for one that someone else starts, then by starting one.
    pub(super) fn search(
        context: Context,
        target: Target,
        patience: Duration,
        old: Option<Saying>,
    ) -> Hearing {
        let attempt = tokio::spawn(async move {
            let (undelivered, found) = tokio::join!(undelivered_by(old), search(context, target, patience));
            found.map(|found| Connected { undelivered, ..found })
        });
        Hearing::Search(Search { attempt, since: Instant::now(), said: false })
    }
}

async fn hear(stream: &mut SplitStream<StreamSocket>) -> Heard {
    loop {
        match stream.next().await {
            Some(Ok(Message::Binary(bytes))) => return Heard::Bytes(bytes.into()),
            Some(Ok(Message::Text(text))) => match serde_json::from_str(&text) {
                Ok(notice) => return Heard::Notice(notice),
                // A word of a later version.
                Err(_) => continue,
            },
            Some(Ok(Message::Close(_)) | Err(_)) | None => return Heard::Broken,
            Some(Ok(_)) => {}
        }
    }
}

impl Search {
    async fn next(&mut self) -> Heard {
        let patience = SAY_SO_AFTER.saturating_sub(self.since.elapsed());
        tokio::select! {
            found = &mut self.attempt => match found {
                Ok(Ok(connected)) => Heard::Found(Box::new(connected)),
                Ok(Err(missed)) => Heard::Missed(missed),
                Err(err) => Heard::Missed(Missed {
                    failure: Failure::new("the search for the daemon failed")
                        .code(FailureCode::Internal)
                        .caused_by(&err),
                    task: None,
                }),
            },
            () = tokio::time::sleep(patience), if !self.said => {
                self.said = true;
                Heard::StillSearching
            }
        }
    }
}

async fn search(context: Context, target: Target, patience: Duration) -> Result<Connected, Missed> {
    let since = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let missed = match attempt(&context, &target, since.elapsed() < patience).await {
            Ok(connected) => return Ok(connected),
            Err(missed) => missed,
        };
        if missed.is_final(since.elapsed()) {
            return Err(missed);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn attempt(
    context: &Context,
    target: &Target,
    someone_else_may_start: bool,
) -> Result<Connected, Missed> {
    let unreachable = |failure| Missed { failure, task: None };
    let mut daemon = match someone_else_may_start {
        true => Client::connect(&context.state).await.map_err(unreachable)?,
        // Without a word about it: the screen is the agent's now.
        false => Client::connect_or_start(&context.state, &context.executable).await.map_err(unreachable)?,
    };
    match connect(&mut daemon, target, Begin::Screen).await {
        Ok(connected) => Ok(connected),
        Err(failure) => {
            // One that still answers has refused; one that does not has left again.
            let task = daemon.call(TaskGet, target.task.clone()).await.ok().map(Box::new);
            Err(Missed { failure, task })
        }
    }
}

impl Missed {
    /// The run has ended, or nothing will come of waiting.
    fn is_final(&self, waited: Duration) -> bool {
        match &self.task {
            // A daemon on its way out refuses what the next one will do.
            Some(_) => self.run_has_ended() || waited > REFUSED_FOR,
            None => waited > GIVE_UP_AFTER,
        }
    }

    pub(super) fn run_has_ended(&self) -> bool {
        self.task
            .as_ref()
            .is_some_and(|task| task.run.is_none() || matches!(task.state, Some(AgentState::Exited { .. })))
    }
}

/// The half that types and sizes.
pub(super) struct Saying {
    sender: mpsc::Sender<Message>,
    /// Ends with the keys that it could not deliver.
    writer: JoinHandle<Vec<u8>>,
}

/// Ends an old half; returns the keys that its daemon has certainly not seen.
async fn undelivered_by(old: Option<Saying>) -> Vec<u8> {
    let Some(Saying { sender, writer }) = old else { return Vec::new() };
    drop(sender);
    // A daemon that neither reads nor leaves may yet see them.
    tokio::time::timeout(HANGS_AFTER, writer).await.ok().and_then(Result::ok).unwrap_or_default()
}

/// What waits to be said.
#[derive(Debug, Default)]
pub(super) struct Unsaid {
    pub(super) typed: Vec<u8>,
    pub(super) size: Option<Size>,
    pub(super) colours: Option<Colours>,
}

impl Unsaid {
    pub(super) fn is_empty(&self) -> bool {
        self.typed.is_empty() && self.size.is_none() && self.colours.is_none()
    }

    fn take(&mut self) -> Message {
        let size = self.size.take().map(|size| ViewerRequest::Resize { size });
        match size.or_else(|| self.colours.take().map(ViewerRequest::Colours)) {
            Some(request) => Message::text(serde_json::to_string(&request).expect("numbers are always JSON")),
            None => Message::binary(std::mem::take(&mut self.typed)),
        }
    }
}

impl Saying {
    /// Takes the next message once there is room for it; for ever when nobody listens any more, of
    /// which the hearing half learns after the last words. Safe to drop half-way.
    pub(super) async fn say(&self, unsaid: &mut Unsaid) {
        if !self.try_say(unsaid).await {
            std::future::pending().await
        }
    }

    async fn try_say(&self, unsaid: &mut Unsaid) -> bool {
        match self.sender.reserve().await {
            Ok(permit) => {
                permit.send(unsaid.take());
                true
            }
            Err(_) => false,
        }
    }

    /// Delivers what was typed before the end.
    pub(super) async fn finish(self, mut unsaid: Unsaid) {
        let delivery = async {
            while !unsaid.is_empty() && self.try_say(&mut unsaid).await {}
            // Both fail only when nobody listens any more.
            self.sender.send(Message::Close(None)).await.ok();
            drop(self.sender);
            self.writer.await.ok();
        };
        // A daemon that hangs does not hold us.
        tokio::time::timeout(DELIVERED_WITHIN, delivery).await.ok();
    }
}

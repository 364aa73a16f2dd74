//! The connection to a task's terminal; when it breaks, the search for a new one.
//!
//! It has two halves, because receiving must not wait for sending: a daemon that does not read still sends its screen.

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

/// Longer than an upgrade takes. After that, the user should see an error.
const GIVE_UP_AFTER: Duration = Duration::from_secs(30);
const REFUSED_FOR: Duration = Duration::from_secs(3);
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A shorter search is not reported to the user.
const REPORTED_AFTER: Duration = Duration::from_secs(1);

/// How long keys that were typed just before the end may take to arrive.
const DELIVERED_WITHIN: Duration = Duration::from_millis(500);

const HANGS_AFTER: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) task: TaskRef,
    /// A terminal beside the agent.
    pub(crate) shell: Option<String>,
    pub(crate) mode: AttachMode,
    pub(crate) frames: bool,
    /// Send the whole scrollback even if this terminal has it already.
    pub(crate) all_history: bool,
    pub(crate) overrides: Overrides,
}

/// The first data that the daemon sends on a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstScreen {
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
    first: FirstScreen,
) -> Result<Connected, Failure> {
    let params = PtyAttachParams {
        task: target.task.clone(),
        shell: target.shell.clone(),
        size: caller::terminal_size().unwrap_or_default(),
        mode: target.mode,
        inside_run: caller::inside_run(),
        ssh_auth_sock: caller::ssh_auth_sock(),
        screen_only: first == FirstScreen::Screen,
        terminal: if target.all_history { None } else { caller::terminal() },
        frames: target.frames,
        acknowledges: true,
        overrides: target.overrides.clone(),
    };
    let answer = daemon.call(PtyAttach, params).await?;
    let stream = daemon.stream(&answer.stream).await?;
    let Stream { task, detach_keys, notes, .. } = answer;
    Ok(Connected { task, detach_keys, notes, undelivered: Vec::new(), stream })
}

impl Connected {
    pub(super) fn split(self) -> (Incoming, Outgoing) {
        let (mut sink, stream) = self.stream.split();
        let (sender, mut messages) = mpsc::channel::<Message>(1);
        let writer = tokio::spawn(async move {
            while let Some(message) = messages.recv().await {
                let copy = message.clone();
                // The receiving half sees the same end and reports it.
                if sink.send(message).await.is_err() {
                    messages.close();
                    return collect_keys(copy, messages).await;
                }
            }
            Vec::new()
        });
        (Incoming::Stream(stream), Outgoing { sender, writer })
    }
}

/// The keys in messages that were not sent.
async fn collect_keys(first: Message, mut rest: mpsc::Receiver<Message>) -> Vec<u8> {
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

/// Messages from the daemon, or the search for another daemon.
pub(super) enum Incoming {
    Stream(SplitStream<StreamSocket>),
    Search(Search),
}

pub(super) struct Search {
    attempt: JoinHandle<Result<Connected, SearchFailure>>,
    since: Instant,
    is_reported: bool,
}

impl Drop for Search {
    fn drop(&mut self) {
        self.attempt.abort();
    }
}

pub(super) enum Received {
    Bytes(Vec<u8>),
    Notice(ViewerNotice),
    Broken,
    Found(Box<Connected>),
    SearchFailure(SearchFailure),
    /// Returned once, when a search takes long.
    StillSearching,
}

/// Why no new connection was found.
pub(super) struct SearchFailure {
    pub(super) failure: Failure,
    /// The task, if a daemon answered and refused.
    pub(super) task: Option<Box<Task>>,
    /// A terminal beside the agent was meant.
    is_shell: bool,
}

impl Incoming {
    /// Cancel safe: no message is lost.
    pub(super) async fn next(&mut self) -> Received {
        match self {
            Incoming::Stream(stream) => receive(stream).await,
            Incoming::Search(search) => search.next().await,
        }
    }

    /// Searches for a daemon. During `patience` it waits for one that another process starts; then it starts one itself.
    pub(super) fn search(
        context: Context,
        target: Target,
        patience: Duration,
        old: Option<Outgoing>,
    ) -> Incoming {
        let attempt = tokio::spawn(async move {
            let (undelivered, found) = tokio::join!(close_outgoing(old), search(context, target, patience));
            found.map(|found| Connected { undelivered, ..found })
        });
        Incoming::Search(Search { attempt, since: Instant::now(), is_reported: false })
    }
}

async fn receive(stream: &mut SplitStream<StreamSocket>) -> Received {
    loop {
        match stream.next().await {
            Some(Ok(Message::Binary(bytes))) => return Received::Bytes(bytes.into()),
            Some(Ok(Message::Text(text))) => match serde_json::from_str(&text) {
                Ok(notice) => return Received::Notice(notice),
                // A notice of a later version.
                Err(_) => continue,
            },
            Some(Ok(Message::Close(_)) | Err(_)) | None => return Received::Broken,
            Some(Ok(_)) => {}
        }
    }
}

impl Search {
    async fn next(&mut self) -> Received {
        let patience = REPORTED_AFTER.saturating_sub(self.since.elapsed());
        tokio::select! {
            found = &mut self.attempt => match found {
                Ok(Ok(connected)) => Received::Found(Box::new(connected)),
                Ok(Err(failure)) => Received::SearchFailure(failure),
                Err(err) => Received::SearchFailure(SearchFailure {
                    failure: Failure::new("the search for the daemon failed")
                        .code(FailureCode::Internal)
                        .caused_by(&err),
                    task: None,
                    is_shell: false,
                }),
            },
            () = tokio::time::sleep(patience), if !self.is_reported => {
                self.is_reported = true;
                Received::StillSearching
            }
        }
    }
}

async fn search(context: Context, target: Target, patience: Duration) -> Result<Connected, SearchFailure> {
    let since = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let failure = match attempt(&context, &target, since.elapsed() < patience).await {
            Ok(connected) => return Ok(connected),
            Err(failure) => failure,
        };
        if failure.is_final(since.elapsed()) {
            return Err(failure);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn attempt(
    context: &Context,
    target: &Target,
    someone_else_may_start: bool,
) -> Result<Connected, SearchFailure> {
    let is_shell = target.shell.is_some();
    let unreachable = |failure| SearchFailure { failure, task: None, is_shell };
    let mut daemon = match someone_else_may_start {
        true => Client::connect(&context.state).await.map_err(unreachable)?,
        // Without progress output: the screen shows the agent.
        false => Client::connect_or_start(&context.state, &context.executable).await.map_err(unreachable)?,
    };
    match connect(&mut daemon, target, FirstScreen::Screen).await {
        Ok(connected) => Ok(connected),
        Err(failure) => {
            // If the daemon still answers, it has refused. If not, it has ended too.
            let task = daemon.call(TaskGet, target.task.clone()).await.ok().map(Box::new);
            Err(SearchFailure { failure, task, is_shell })
        }
    }
}

impl SearchFailure {
    /// The run has ended, or more waiting will not help.
    fn is_final(&self, waited: Duration) -> bool {
        match &self.task {
            // A daemon that is stopping refuses. The next one will accept.
            Some(_) => self.run_has_ended() || waited > REFUSED_FOR,
            None => waited > GIVE_UP_AFTER,
        }
    }

    pub(super) fn run_has_ended(&self) -> bool {
        if self.is_shell {
            return self.task.is_some() && self.failure.code == FailureCode::NotFound;
        }
        self.task
            .as_ref()
            .is_some_and(|task| task.run.is_none() || matches!(task.state, Some(AgentState::Exited { .. })))
    }
}

/// The half that sends keys and sizes.
pub(super) struct Outgoing {
    sender: mpsc::Sender<Message>,
    /// Returns the keys that it could not deliver.
    writer: JoinHandle<Vec<u8>>,
}

/// Closes an old half and returns the keys that its daemon has certainly not received.
async fn close_outgoing(old: Option<Outgoing>) -> Vec<u8> {
    let Some(Outgoing { sender, writer }) = old else { return Vec::new() };
    drop(sender);
    // A daemon that hangs may still read them, so they must not be sent twice.
    tokio::time::timeout(HANGS_AFTER, writer).await.ok().and_then(Result::ok).unwrap_or_default()
}

/// Keys, size and colours that wait to be sent.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    pub(super) typed: Vec<u8>,
    pub(super) size: Option<Size>,
    pub(super) colours: Option<Colours>,
    pub(super) drawn: Drawn,
}

/// How much of the stream the terminal has drawn.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    received: u64,
    /// The last number that the daemon got.
    reported: u64,
    /// The next one.
    due: Option<u64>,
}

/// The daemon waits after 512 KiB. A user who types causes no report.
const REPORTED_EVERY: u64 = 64 << 10;

impl Drawn {
    pub(super) fn on_received(&mut self, bytes: &[u8]) {
        self.received += bytes.len() as u64;
    }

    /// The terminal has drawn everything but the last `pending` bytes, or a little more.
    pub(super) fn on_written(&mut self, pending: usize) {
        let drawn = self.received.saturating_sub(pending as u64);
        if drawn >= self.reported + REPORTED_EVERY {
            (self.reported, self.due) = (drawn, Some(drawn));
        }
    }
}

impl Unsent {
    pub(super) fn is_empty(&self) -> bool {
        self.typed.is_empty() && self.size.is_none() && self.colours.is_none() && self.drawn.due.is_none()
    }

    fn take_message(&mut self) -> Message {
        let size = self.size.take().map(|size| ViewerRequest::Resize { size });
        let colours = size.or_else(|| self.colours.take().map(ViewerRequest::Colours));
        match colours.or_else(|| self.drawn.due.take().map(|bytes| ViewerRequest::Processed { bytes })) {
            Some(request) => Message::text(serde_json::to_string(&request).expect("numbers are always JSON")),
            None => Message::binary(std::mem::take(&mut self.typed)),
        }
    }
}

impl Outgoing {
    /// Sends the next message once there is room for it. Waits forever if the connection is closed: the receiving half
    /// notices that after the last message. Cancel safe.
    pub(super) async fn send(&self, unsent: &mut Unsent) {
        if !self.try_send(unsent).await {
            std::future::pending().await
        }
    }

    async fn try_send(&self, unsent: &mut Unsent) -> bool {
        match self.sender.reserve().await {
            Ok(permit) => {
                permit.send(unsent.take_message());
                true
            }
            Err(_) => false,
        }
    }

    /// Sends what was typed before the end, then closes the connection.
    pub(super) async fn finish(self, mut unsent: Unsent) {
        let delivery = async {
            while !unsent.is_empty() && self.try_send(&mut unsent).await {}
            // Both fail only if the connection is closed already.
            self.sender.send(Message::Close(None)).await.ok();
            drop(self.sender);
            self.writer.await.ok();
        };
        // Do not wait longer for a daemon that hangs.
        tokio::time::timeout(DELIVERED_WITHIN, delivery).await.ok();
    }
}

//! The daemon's server: WebSockets on a Unix socket that only its owner can open.
//!
//! `/rpc` speaks JSON-RPC in text messages. `/stream/{token}` carries the bytes of a terminal or a log. Which function
//! handles a request is not decided here, but by the [`Router`].

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agency_api::desk::{DeskChange, DeskStart, DeskUpdate, Gap};
use agency_api::event::{Event, MissedEvent};
use agency_api::method::{ChatRead, DeskSubscribe, EventSubscribe, EventSubscribeParams, Method, Nothing};
use agency_api::paths::StateDir;
use agency_api::pty::ViewerRequest;
use agency_api::rpc::{ErrorObject, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, Request, write_answer};
use agency_api::{Failure, FailureCode, socket};
use agency_run::blocking::blocking;
use agency_run::command::TerminalCommand;
use agency_run::handle::CommandSender;
use agency_run::view::{screen_colours, screen_size};
use agency_run::viewer_queue::{Next, Outgoing, ViewerId, ViewerQueue};
use agency_store::event_log::EventLog;
use agency_stream::Stream;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response as HttpResponse};
use axum::routing::any;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::UnixListener;
use tokio::net::unix::SocketAddr;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc, watch};

use crate::router::{self, RequestLoop, Router};
use crate::streams::{Promised, Streams};

/// Users sometimes paste a prompt of many megabytes. A longer message is an accident.
const MAX_MESSAGE_BYTES: usize = 256 << 20;

/// This many answers and events wait for a client that reads slowly.
const ANSWERS_WAITING: usize = 64;

/// Each answer that is not sent yet holds one permit. A task that gets all permits knows that every answer is sent.
pub const UNSENT_ANSWERS: u32 = 1 << 20;

/// Everything that serves one connection needs.
#[derive(Clone)]
pub struct ServerContext<L> {
    /// The directory with the log of earlier events.
    pub state: StateDir,
    /// The handlers of all methods.
    pub router: Arc<Router<L>>,
    /// The way to the loop.
    pub requests: L,
    /// The streams that the loop has promised to callers.
    pub streams: Arc<Streams>,
    /// New events.
    pub events: broadcast::Sender<Event>,
    /// Changes of the desk.
    pub desk: broadcast::Sender<DeskUpdate>,
    /// One permit for each answer that may be unsent: [`UNSENT_ANSWERS`] of them.
    pub unsent: Arc<Semaphore>,
}

/// A message that waits to be sent. It holds its permit until then.
struct Outbound {
    text: String,
    _unsent: Option<OwnedSemaphorePermit>,
}

/// Accepts connections on `listener` and serves them, until accepting fails for good.
pub async fn serve<L: RequestLoop>(
    listener: std::os::unix::net::UnixListener,
    server: ServerContext<L>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = OwnerListener(UnixListener::from_std(listener)?);
    let paths = axum::Router::new()
        .route("/rpc", any(open_rpc::<L>))
        .route("/stream/{token}", any(open_stream::<L>))
        .with_state(server);
    axum::serve(listener, paths).await
}

/// Accepts connections of the user who runs the daemon, and drops all others without an answer.
struct OwnerListener(UnixListener);

impl axum::serve::Listener for OwnerListener {
    type Io = Stream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Stream, SocketAddr) {
        loop {
            match self.0.accept().await.and_then(|(stream, address)| Ok((stream.into_std()?, address))) {
                Ok((stream, _)) if !matches!(socket::peer_is_us(&stream), Ok(true)) => {
                    tracing::warn!("another user tried to connect");
                }
                Ok((stream, address)) => match Stream::new(stream) {
                    Ok(stream) => return (stream, address),
                    Err(cause) => tracing::warn!(%cause, "cannot serve a connection"),
                },
                // Most likely no file descriptor is free. Connections that close free some.
                Err(cause) => {
                    tracing::warn!(%cause, "cannot accept a connection");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

async fn open_rpc<L: RequestLoop>(
    State(server): State<ServerContext<L>>,
    upgrade: WebSocketUpgrade,
) -> HttpResponse {
    upgrade
        .max_message_size(MAX_MESSAGE_BYTES)
        .max_frame_size(MAX_MESSAGE_BYTES)
        .on_upgrade(|socket| serve_connection(server, socket))
}

async fn serve_connection<L: RequestLoop>(server: ServerContext<L>, socket: WebSocket) {
    let (sink, mut requests) = socket.split();
    let (answers, waiting) = mpsc::channel(ANSWERS_WAITING);
    // Dropped when this function returns: tasks that wait for the client learn that it has disconnected.
    let (_here, presence) = watch::channel(());
    tokio::spawn(send_answers(sink, waiting));
    while let Some(Ok(message)) = requests.next().await {
        match message {
            Message::Text(text) => {
                // Each request has its own task, so that a stop that takes seconds delays no other request.
                tokio::spawn(respond(server.clone(), text, answers.clone(), presence.clone()));
            }
            Message::Close(_) => return,
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) => {}
        }
    }
}

async fn send_answers(mut sink: SplitSink<WebSocket, Message>, mut waiting: mpsc::Receiver<Outbound>) {
    while let Some(Outbound { text, _unsent }) = waiting.recv().await {
        if sink.send(Message::Text(text.into())).await.is_err() {
            return;
        }
    }
}

async fn respond<L: RequestLoop>(
    server: ServerContext<L>,
    text: Utf8Bytes,
    answers: mpsc::Sender<Outbound>,
    mut presence: watch::Receiver<()>,
) {
    let unsent = server.unsent.clone().acquire_owned().await.ok();
    let (id, outcome) = match parse(&text) {
        Err(error) => (Value::Null, Err(error)),
        Ok(Request { id: None, .. }) => return,
        Ok(Request { id: Some(id), method, params, .. }) if method == EventSubscribe::NAME => {
            (id, subscribe(&server, params, &answers, presence).await)
        }
        Ok(request) if request.method == DeskSubscribe::NAME => {
            let id = request.id.clone().unwrap_or_default();
            (id, subscribe_to_desk(&server, request, &answers, presence).await)
        }
        Ok(request) => {
            let id = request.id.clone().unwrap_or_default();
            // A client that waits for new entries and disconnects gives up the request. Other requests are carried out.
            let is_waiting = request.method == ChatRead::NAME;
            tokio::select! {
                outcome = server.router.answer(&server.requests, request) => (id, outcome),
                _ = presence.changed(), if is_waiting => return,
            }
        }
    };
    if let Ok(text) = write_answer(&id, outcome) {
        // A client that has disconnected needs no answer.
        drop(answers.send(Outbound { text, _unsent: unsent }).await);
    }
}

fn parse(text: &str) -> Result<Request, ErrorObject> {
    let value: Value =
        serde_json::from_str(text).map_err(|err| ErrorObject::new(PARSE_ERROR, err.to_string()))?;
    serde_json::from_value(value).map_err(|err| ErrorObject::new(INVALID_REQUEST, err.to_string()))
}

/// Sends the stored events first, then the new ones.
async fn subscribe<L: RequestLoop>(
    server: &ServerContext<L>,
    params: Value,
    answers: &mpsc::Sender<Outbound>,
    mut presence: watch::Receiver<()>,
) -> Result<String, ErrorObject> {
    let params: EventSubscribeParams = router::parse_params::<EventSubscribe>(params)?;
    let live = server.events.subscribe();
    let past = match params.since {
        None => Vec::new(),
        Some(since) => {
            let time: jiff::Timestamp = since.parse().map_err(|_| {
                ErrorObject::new(INVALID_PARAMS, format!("`{since}` is not a time of RFC 3339"))
            })?;
            let state = server.state.clone();
            blocking(move || EventLog::of(&state).since(time).map_err(unreadable)).await?
        }
    };
    let passing = pass_events(past, live, answers.clone());
    tokio::spawn(async move {
        tokio::select! {
            () = passing => {}
            // The channel carries no value. It only closes.
            _ = presence.changed() => {}
        }
    });
    Ok(serde_json::json!(Nothing {}).to_string())
}

/// The answer has the updates so far. Those that follow are sent as notifications.
async fn subscribe_to_desk<L: RequestLoop>(
    server: &ServerContext<L>,
    request: Request,
    answers: &mpsc::Sender<Outbound>,
    mut presence: watch::Receiver<()>,
) -> Result<String, ErrorObject> {
    // First of all, so that no update is missed while the loop answers.
    let live = server.desk.subscribe();
    let answer = server.router.answer(&server.requests, request).await?;
    let start: DeskStart = serde_json::from_str(&answer).map_err(|cause| {
        Failure::new("the start of a subscription cannot be read")
            .code(FailureCode::Internal)
            .caused_by(&cause)
    })?;
    let passing = pass_updates(start.seq, live, answers.clone());
    tokio::spawn(async move {
        tokio::select! {
            () = passing => {}
            // The channel carries no value. It only closes.
            _ = presence.changed() => {}
        }
    });
    Ok(answer)
}

/// Sends updates after `passed`. A subscriber that falls behind gets a `Gap`: it has to read the desk again.
async fn pass_updates(
    passed: u64,
    mut updates: broadcast::Receiver<DeskUpdate>,
    answers: mpsc::Sender<Outbound>,
) {
    loop {
        let update = match updates.recv().await {
            Ok(update) if update.seq <= passed => continue,
            Ok(update) => update,
            Err(broadcast::error::RecvError::Lagged(_)) => {
                DeskUpdate { seq: 0, change: DeskChange::Gap(Gap {}) }
            }
            Err(broadcast::error::RecvError::Closed) => return,
        };
        if !notify("desk", serde_json::to_value(update), &answers).await {
            return;
        }
    }
}

fn unreadable(cause: std::io::Error) -> Failure {
    Failure::new("cannot read what happened before").code(FailureCode::IoError).caused_by(&cause)
}

/// Sends a subscriber that falls behind the number of events that it missed. No event is dropped silently.
async fn pass_events(
    past: Vec<Event>,
    mut events: broadcast::Receiver<Event>,
    answers: mpsc::Sender<Outbound>,
) {
    let mut passed = 0;
    for event in past {
        passed = event.seq;
        if !pass_on(event, &answers).await {
            return;
        }
    }
    loop {
        let event = match events.recv().await {
            // The event came after the subscription began and is among the stored events, too.
            Ok(event) if (1..=passed).contains(&event.seq) => continue,
            Ok(event) => event,
            Err(broadcast::error::RecvError::Lagged(count)) => missed_event(count),
            Err(broadcast::error::RecvError::Closed) => return,
        };
        if !pass_on(event, &answers).await {
            return;
        }
    }
}

fn missed_event(count: u64) -> Event {
    let time = agency_store::clock::timestamp();
    let data = MissedEvent { count }.into();
    Event { seq: 0, time, project: None, task: None, agent: None, run: None, data }
}

async fn pass_on(event: Event, answers: &mpsc::Sender<Outbound>) -> bool {
    notify("event", serde_json::to_value(event), answers).await
}

/// Returns `false` once the subscriber has disconnected.
async fn notify(method: &str, params: serde_json::Result<Value>, answers: &mpsc::Sender<Outbound>) -> bool {
    let text = params.and_then(|params| serde_json::to_string(&Request::new(None, method, params)));
    let Ok(text) = text else { return true };
    answers.send(Outbound { text, _unsent: None }).await.is_ok()
}

async fn open_stream<L: RequestLoop>(
    State(server): State<ServerContext<L>>,
    Path(token): Path<String>,
    upgrade: WebSocketUpgrade,
) -> HttpResponse {
    match server.streams.redeem(&token) {
        Some(promised) => upgrade.on_upgrade(|socket| stream(promised, socket)),
        None => (StatusCode::NOT_FOUND, "no such stream").into_response(),
    }
}

async fn stream(promised: Promised, socket: WebSocket) {
    match promised {
        Promised::Viewer { run, view } => {
            static NEXT: AtomicU64 = AtomicU64::new(1);
            let viewer = ViewerId(NEXT.fetch_add(1, Ordering::Relaxed));
            let queue = Arc::new(ViewerQueue::for_viewer(view.acknowledges));
            let (sink, source) = socket.split();
            let attach = TerminalCommand::Attach { viewer, queue: queue.clone(), options: view };
            if run.send(attach).await.is_err() {
                return;
            }
            tokio::select! {
                () = show(sink, &queue, viewer, &run) => {}
                () = listen(source, &queue, viewer, &run) => {}
            }
            // A run that is over has no viewers.
            run.send(TerminalCommand::Detach { viewer }).await.unwrap_or_default();
        }
        Promised::Log(request) => stream_log(socket, agency_run::logs::read(request)).await,
        Promised::SetupLog { path, grows } => {
            stream_log(socket, agency_run::logs::read_setup(path, grows)).await;
        }
    }
}

async fn stream_log(socket: WebSocket, log: mpsc::Receiver<Vec<u8>>) {
    let (sink, source) = socket.split();
    tokio::select! {
        () = send_log(sink, log) => {}
        () = until_closed(source) => {}
    }
}

async fn show(
    mut sink: SplitSink<WebSocket, Message>,
    queue: &ViewerQueue,
    viewer: ViewerId,
    run: &CommandSender<TerminalCommand>,
) {
    loop {
        let message = match queue.next().await {
            Next::Send(Outgoing::Bytes(bytes)) => Message::Binary(bytes.into()),
            Next::Send(Outgoing::Notice(notice)) => match serde_json::to_string(&notice) {
                Ok(text) => Message::Text(text.into()),
                Err(_) => continue,
            },
            Next::Send(Outgoing::End) => {
                // The viewer may have disconnected already.
                sink.send(Message::Close(None)).await.unwrap_or_default();
                return;
            }
            Next::Refresh => match run.send(TerminalCommand::Refresh { viewer }).await {
                Ok(()) => continue,
                Err(_) => return,
            },
        };
        if sink.send(message).await.is_err() {
            return;
        }
    }
}

async fn listen(
    mut source: SplitStream<WebSocket>,
    queue: &ViewerQueue,
    viewer: ViewerId,
    run: &CommandSender<TerminalCommand>,
) {
    while let Some(Ok(message)) = source.next().await {
        let command = match message {
            Message::Binary(bytes) => TerminalCommand::Type { viewer, bytes: bytes.to_vec() },
            Message::Text(text) => match serde_json::from_str(&text) {
                Ok(ViewerRequest::Resize { size }) => {
                    TerminalCommand::Resize { viewer, size: screen_size(size) }
                }
                Ok(ViewerRequest::Colours(colours)) => {
                    TerminalCommand::SetColours { viewer, colours: screen_colours(&colours) }
                }
                Ok(ViewerRequest::Processed { bytes }) => {
                    queue.acknowledge(bytes);
                    continue;
                }
                Ok(ViewerRequest::Unknown) | Err(_) => continue,
            },
            Message::Close(_) => return,
            Message::Ping(_) | Message::Pong(_) => continue,
        };
        if run.send(command).await.is_err() {
            return;
        }
    }
}

async fn send_log(mut sink: SplitSink<WebSocket, Message>, mut log: mpsc::Receiver<Vec<u8>>) {
    while let Some(bytes) = log.recv().await {
        if sink.send(Message::Binary(bytes.into())).await.is_err() {
            return;
        }
    }
    // The client may have disconnected already.
    sink.send(Message::Close(None)).await.unwrap_or_default();
}

async fn until_closed(mut source: SplitStream<WebSocket>) {
    while let Some(Ok(message)) = source.next().await {
        if let Message::Close(_) = message {
            return;
        }
    }
}

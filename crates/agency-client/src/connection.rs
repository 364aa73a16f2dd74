//! One connection to the daemon: sends calls, receives answers and events.

use std::collections::VecDeque;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use agency_api::daemon_socket;
use agency_api::desk::DeskUpdate;
use agency_api::event::Event;
use agency_api::method::Method;
use agency_api::paths::StateDir;
use agency_api::rpc::{ErrorObject, INVALID_PARAMS, METHOD_NOT_FOUND, Request};
use agency_api::{Failure, FailureCode};
use agency_stream::Stream;
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::spawn::start_daemon;

/// A WebSocket of terminal or log bytes.
pub type StreamSocket = WebSocketStream<Stream>;

/// A connection to the daemon.
pub struct Client {
    socket: WebSocketStream<Stream>,
    path: PathBuf,
    next_id: u64,
    /// Events that arrived while a call waited for its answer.
    events: VecDeque<Event>,
    /// Changes of the desk that arrived while a call waited for its answer.
    desk_updates: VecDeque<DeskUpdate>,
    is_broken: bool,
}

impl Client {
    /// Connects to the running daemon. Fails if none runs.
    pub async fn connect(state: &StateDir) -> Result<Client, Failure> {
        let unreachable = |cause: String| {
            Failure::new("cannot reach the daemon")
                .code(FailureCode::NoDaemon)
                .because(format!("{}: {cause}", state.daemon_socket().display()))
                .hint("agency daemon status")
        };
        let (stream, path) = daemon_socket::connect(state).map_err(|err| unreachable(err.to_string()))?;
        let socket = shake_hands(stream, "/rpc").await.map_err(unreachable)?;
        Ok(Client {
            socket,
            path,
            next_id: 0,
            events: VecDeque::new(),
            desk_updates: VecDeque::new(),
            is_broken: false,
        })
    }

    /// Connects to the daemon. Starts `executable` as the daemon first if none runs.
    pub async fn connect_or_start(state: &StateDir, executable: &Path) -> Result<Client, Failure> {
        match Client::connect(state).await {
            Ok(client) => Ok(client),
            Err(_) => {
                start_daemon(state, executable).await?;
                Client::connect(state).await
            }
        }
    }

    /// Whether the connection broke. A call that failed since then got no answer from the daemon.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Calls a method. Keeps events that arrive before the answer for [`Client::next_event`].
    pub async fn call<M: Method>(&mut self, method: M, params: M::Params) -> Result<M::Result, Failure> {
        let mut kept = VecDeque::new();
        let answer = self.call_with_events(method, params, |event| kept.push_back(event)).await;
        self.events.append(&mut kept);
        answer
    }

    /// Calls a method. Passes events that arrive before the answer to `on_event` and does not keep them.
    pub async fn call_with_events<M: Method>(
        &mut self,
        _method: M,
        params: M::Params,
        mut on_event: impl FnMut(Event),
    ) -> Result<M::Result, Failure> {
        self.next_id += 1;
        let id = self.next_id;
        let params = serde_json::to_value(params).map_err(|err| unreadable(M::NAME, &err))?;
        let request = Request::new(Some(id), M::NAME, params);
        let text = serde_json::to_string(&request).map_err(|err| unreadable(M::NAME, &err))?;
        if let Err(err) = self.socket.send(Message::text(text)).await {
            self.is_broken = true;
            return Err(connection_lost(M::NAME, &err));
        }
        self.receive_answer(id, M::NAME, &mut on_event).await
    }

    async fn receive_answer<R: DeserializeOwned>(
        &mut self,
        id: u64,
        method: &str,
        on_event: &mut impl FnMut(Event),
    ) -> Result<R, Failure> {
        loop {
            let text = self.next_text(method).await?;
            match serde_json::from_str::<Envelope>(&text) {
                Ok(Envelope { id: Some(answered), error }) if answered == id => {
                    return match error {
                        Some(error) => Err(refusal(method, error)),
                        None => read_result(&text).map_err(|err| unreadable(method, &err)),
                    };
                }
                Ok(Envelope { id: Some(_), .. }) => {}
                _ => match read_notification(&text) {
                    Some(Notification::Event(event)) => on_event(*event),
                    Some(Notification::Desk(update)) => self.desk_updates.push_back(*update),
                    None => {}
                },
            }
        }
    }

    /// The next event of a subscription. `None` once the connection broke.
    pub async fn next_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            self.receive_notification("event").await?;
        }
    }

    /// The next change of the desk. `None` once the connection broke. Cancel safe.
    pub async fn next_desk_update(&mut self) -> Option<DeskUpdate> {
        loop {
            if let Some(update) = self.desk_updates.pop_front() {
                return Some(update);
            }
            self.receive_notification("desk").await?;
        }
    }

    async fn receive_notification(&mut self, kind: &str) -> Option<()> {
        let text = self.next_text(kind).await.ok()?;
        match read_notification(&text) {
            Some(Notification::Event(event)) => self.events.push_back(*event),
            Some(Notification::Desk(update)) => self.desk_updates.push_back(*update),
            None => {}
        }
        Some(())
    }

    /// Opens the stream of a token that an answer contained.
    pub async fn stream(&self, token: &str) -> Result<StreamSocket, Failure> {
        open(&self.path, &format!("/stream/{token}")).await.map_err(|cause| {
            Failure::new("cannot open the stream").code(FailureCode::DaemonLost).because(cause)
        })
    }

    async fn next_text(&mut self, method: &str) -> Result<String, Failure> {
        let text = self.receive(method).await;
        self.is_broken |= text.is_err();
        text
    }

    async fn receive(&mut self, method: &str) -> Result<String, Failure> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text.to_string()),
                Some(Ok(Message::Close(_))) | None => {
                    return Err(Failure::new("the daemon closed the connection")
                        .code(FailureCode::DaemonLost)
                        .because(format!("while {method} was waiting for its answer"))
                        .hint("its log says why: `agency daemon status` shows the path"));
                }
                Some(Ok(_)) => {}
                Some(Err(err)) => return Err(connection_lost(method, &err)),
            }
        }
    }
}

/// The parts of a message that say what it answers. Reading it skips the result, which may be large.
#[derive(Deserialize)]
struct Envelope {
    /// Absent in an event.
    id: Option<Value>,
    error: Option<ErrorObject>,
}

fn read_result<R: DeserializeOwned>(text: &str) -> serde_json::Result<R> {
    #[derive(Deserialize)]
    struct Answer<R> {
        result: R,
    }
    serde_json::from_str(text).map(|answer: Answer<R>| answer.result)
}

/// A message of the daemon that answers no call.
enum Notification {
    Event(Box<Event>),
    Desk(Box<DeskUpdate>),
}

fn read_notification(text: &str) -> Option<Notification> {
    let notification: Request = serde_json::from_str(text).ok()?;
    match notification.method.as_str() {
        "desk" => serde_json::from_value(notification.params).ok().map(Notification::Desk),
        _ => serde_json::from_value(notification.params).ok().map(Notification::Event),
    }
}

async fn open(path: &Path, resource: &str) -> Result<WebSocketStream<Stream>, String> {
    let stream = agency_api::socket::connect(path).map_err(|err| err.to_string())?;
    shake_hands(stream, resource).await
}

/// Makes a WebSocket of a connection.
async fn shake_hands(stream: UnixStream, resource: &str) -> Result<WebSocketStream<Stream>, String> {
    let stream = Stream::new(stream).map_err(|err| err.to_string())?;
    let url = format!("ws://localhost{resource}");
    let (socket, _) = tokio_tungstenite::client_async_with_config(url, stream, Some(limits()))
        .await
        .map_err(|err| err.to_string())?;
    Ok(socket)
}

/// No limits: logs and prompts may be long, and the client trusts the daemon.
fn limits() -> tokio_tungstenite::tungstenite::protocol::WebSocketConfig {
    tokio_tungstenite::tungstenite::protocol::WebSocketConfig::default()
        .max_message_size(None)
        .max_frame_size(None)
}

/// A method or parameters that the daemon does not know come from another version, not from a mistake of the caller.
fn refusal(method: &str, error: ErrorObject) -> Failure {
    match error.code {
        METHOD_NOT_FOUND | INVALID_PARAMS => version_mismatch(method, error.message),
        _ => error.into(),
    }
}

fn connection_lost(method: &str, error: &tokio_tungstenite::tungstenite::Error) -> Failure {
    Failure::new("the connection to the daemon broke")
        .code(FailureCode::DaemonLost)
        .because(format!("{method}: {error}"))
        .hint("it may have been done: `agency ls` starts the next daemon and shows the result")
}

fn unreadable(method: &str, error: &serde_json::Error) -> Failure {
    version_mismatch(method, error.to_string())
}

fn version_mismatch(method: &str, why: String) -> Failure {
    Failure::new(format!("the daemon and this program disagree about {method}"))
        .code(FailureCode::VersionMismatch)
        .because(why)
        .hint("they may have different versions: `agency daemon restart` starts the new one, and agents keep running")
}

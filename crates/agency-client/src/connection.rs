//! One connection to the daemon: calls go out, answers and events come in.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use agency_api::event::Event;
use agency_api::method::Method;
use agency_api::paths::StateDir;
use agency_api::rpc::{ErrorObject, INVALID_PARAMS, METHOD_NOT_FOUND, Outcome, Request, Response};
use agency_api::{Failure, FailureCode};
use agency_stream::Stream;
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::spawn::start_daemon;

/// A WebSocket of terminal or log bytes.
pub type StreamSocket = WebSocketStream<Stream>;

pub struct Client {
    socket: WebSocketStream<Stream>,
    path: PathBuf,
    next_id: u64,
    /// Events that arrived while an answer was awaited.
    events: VecDeque<Event>,
    is_broken: bool,
}

impl Client {
    /// Connects to the daemon that runs, or says that none does.
    pub async fn connect(state: &StateDir) -> Result<Client, Failure> {
        let path = state.daemon_socket();
        let socket = open(&path, "/rpc").await.map_err(|cause| {
            Failure::new("cannot reach the daemon")
                .code(FailureCode::NoDaemon)
                .because(format!("{}: {cause}", path.display()))
                .hint("agency daemon status")
        })?;
        Ok(Client { socket, path, next_id: 0, events: VecDeque::new(), is_broken: false })
    }

    /// Connects, after starting `executable` as the daemon if none runs.
    pub async fn connect_or_start(state: &StateDir, executable: &Path) -> Result<Client, Failure> {
        match Client::connect(state).await {
            Ok(client) => Ok(client),
            Err(_) => {
                start_daemon(state, executable).await?;
                Client::connect(state).await
            }
        }
    }

    /// The daemon has gone; what a call was refused with since is nobody's answer.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    pub async fn call<M: Method>(&mut self, method: M, params: M::Params) -> Result<M::Result, Failure> {
        let mut kept = VecDeque::new();
        let answer = self.call_hearing(method, params, |event| kept.push_back(event)).await;
        self.events.append(&mut kept);
        answer
    }

    /// As [`Client::call`]; events of a subscription are handed over as they come, not kept.
    pub async fn call_hearing<M: Method>(
        &mut self,
        _method: M,
        params: M::Params,
        mut hear: impl FnMut(Event),
    ) -> Result<M::Result, Failure> {
        self.next_id += 1;
        let id = self.next_id;
        let params = serde_json::to_value(params).map_err(|err| garbled(M::NAME, &err))?;
        let request = Request::new(Some(id), M::NAME, params);
        let text = serde_json::to_string(&request).map_err(|err| garbled(M::NAME, &err))?;
        if let Err(err) = self.socket.send(Message::text(text)).await {
            self.is_broken = true;
            return Err(lost(M::NAME, &err));
        }
        let answer = self.answer(id, M::NAME, &mut hear).await?;
        serde_json::from_value(answer).map_err(|err| garbled(M::NAME, &err))
    }

    async fn answer(
        &mut self,
        id: u64,
        method: &str,
        hear: &mut impl FnMut(Event),
    ) -> Result<Value, Failure> {
        loop {
            let text = self.next_text(method).await?;
            if let Ok(response) = serde_json::from_str::<Response>(&text) {
                if response.id != id {
                    continue;
                }
                return match response.outcome {
                    Outcome::Result(value) => Ok(value),
                    Outcome::Error(error) => Err(refused(method, error)),
                };
            }
            event_of(&text).into_iter().for_each(&mut *hear);
        }
    }

    /// The next event of a subscription; `None` once the daemon has gone.
    pub async fn next_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let text = self.next_text("event").await.ok()?;
            self.events.extend(event_of(&text));
        }
    }

    /// Opens the stream that an answer named.
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
                        .hint("its log says why: see `agency daemon status`"));
                }
                Some(Ok(_)) => {}
                Some(Err(err)) => return Err(lost(method, &err)),
            }
        }
    }
}

fn event_of(text: &str) -> Option<Event> {
    let notification: Request = serde_json::from_str(text).ok()?;
    serde_json::from_value(notification.params).ok()
}

async fn open(path: &Path, resource: &str) -> Result<WebSocketStream<Stream>, String> {
    let stream = agency_api::socket::connect(path).and_then(Stream::new).map_err(|err| err.to_string())?;
    let url = format!("ws://localhost{resource}");
    let (socket, _) = tokio_tungstenite::client_async_with_config(url, stream, Some(limits()))
        .await
        .map_err(|err| err.to_string())?;
    Ok(socket)
}

/// Logs and prompts may be long; the daemon is trusted not to flood its own client.
fn limits() -> tokio_tungstenite::tungstenite::protocol::WebSocketConfig {
    tokio_tungstenite::tungstenite::protocol::WebSocketConfig::default()
        .max_message_size(None)
        .max_frame_size(None)
}

/// What only another version could ask for is not the caller's fault.
fn refused(method: &str, error: ErrorObject) -> Failure {
    match error.code {
        METHOD_NOT_FOUND | INVALID_PARAMS => disagree(method, error.message),
        _ => error.into(),
    }
}

fn lost(method: &str, error: &tokio_tungstenite::tungstenite::Error) -> Failure {
    Failure::new("the connection to the daemon broke")
        .code(FailureCode::DaemonLost)
        .because(format!("{method}: {error}"))
        .hint("what was begun is finished or taken back by the next daemon: `agency ls` starts it and shows which")
}

fn garbled(method: &str, error: &serde_json::Error) -> Failure {
    disagree(method, error.to_string())
}

fn disagree(method: &str, why: String) -> Failure {
    Failure::new(format!("the daemon and this program disagree about {method}"))
        .code(FailureCode::VersionMismatch)
        .because(why)
        .hint("they may be of different versions: `agency daemon restart` starts the new one, agents live on")
}

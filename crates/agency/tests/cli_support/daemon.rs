//! A fake daemon: it gives the answers that the test sets, and hands its streams to the test.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use agency_api::Failure;
use agency_api::pty::ViewerNotice;
use agency_api::rpc::{ErrorObject, Request, write_answer};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{
    ErrorResponse, Request as Upgrade, Response as Accepted,
};

use super::{Home, PATIENCE};

type Answers = Arc<Mutex<HashMap<String, Result<Value, Failure>>>>;

pub struct FakeDaemon {
    answers: Answers,
    calls: Receiver<(String, Value)>,
    streams: Receiver<FakeStream>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// One open stream, as the daemon sees it.
pub struct FakeStream {
    send: mpsc::UnboundedSender<Message>,
    received: Receiver<Message>,
}

impl FakeDaemon {
    pub fn start(home: &Home) -> FakeDaemon {
        let answers = Answers::default();
        let (call, calls) = channel();
        let (open, streams) = channel();
        let (stop, stopped) = oneshot::channel();
        let listener = agency_api::socket::bind(&home.state().daemon_socket()).unwrap();
        let server = FakeServer { answers: answers.clone(), call, open };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = server.serve(listener) => {}
                    _ = stopped => {}
                }
            });
        });
        let daemon = FakeDaemon { answers, calls, streams, stop: Some(stop), thread: Some(thread) };
        daemon.answer("pty.attach", json!({ "stream": "t", "task": task("running") }));
        daemon.answer("task.get", task("running"));
        daemon
    }

    pub fn answer(&self, method: &str, answer: Value) -> &Self {
        self.answers.lock().unwrap().insert(method.into(), Ok(answer));
        self
    }

    pub fn refuse(&self, method: &str, failure: Failure) -> &Self {
        self.answers.lock().unwrap().insert(method.into(), Err(failure));
        self
    }

    /// The parameters of the next call of `method`. Skips calls of other methods.
    #[track_caller]
    pub fn called(&self, method: &str) -> Value {
        loop {
            let (name, params) = self.calls.recv_timeout(PATIENCE).expect("a call");
            if name == method {
                return params;
            }
        }
    }

    #[track_caller]
    pub fn stream(&self) -> FakeStream {
        self.streams.recv_timeout(PATIENCE).expect("a stream")
    }

    /// Ends without a message, as after SIGKILL.
    pub fn crash(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for FakeDaemon {
    fn drop(&mut self) {
        self.end();
    }
}

impl FakeStream {
    pub fn send(&self, bytes: &[u8]) {
        assert!(self.try_send(bytes), "the client has left");
    }

    /// False if the client has closed the stream.
    pub fn try_send(&self, bytes: &[u8]) -> bool {
        self.send.send(Message::binary(bytes.to_vec())).is_ok()
    }

    pub fn notice(&self, notice: &ViewerNotice) {
        self.send.send(Message::text(serde_json::to_string(notice).unwrap())).unwrap();
    }

    /// Ignores errors, because the client may have closed the stream first.
    pub fn close(&self) {
        self.send.send(Message::Close(None)).ok();
    }

    /// The typed bytes up to `end`.
    #[track_caller]
    pub fn typed_until(&self, end: &str) -> String {
        let mut typed = Vec::new();
        while !typed.ends_with(end.as_bytes()) {
            match self.received.recv_timeout(PATIENCE).expect("typed bytes") {
                Message::Binary(bytes) => typed.extend_from_slice(&bytes),
                Message::Text(_) => {}
                other => panic!("{other:?} after {:?}", String::from_utf8_lossy(&typed)),
            }
        }
        String::from_utf8(typed).unwrap()
    }

    /// The next request of the client.
    #[track_caller]
    pub fn request(&self) -> Value {
        loop {
            if let Message::Text(text) = self.received.recv_timeout(PATIENCE).expect("a request") {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    /// All bytes that are typed until the client closes the stream.
    #[track_caller]
    pub fn typed_until_close(&self) -> String {
        let mut typed = Vec::new();
        loop {
            match self.received.recv_timeout(PATIENCE) {
                Ok(Message::Binary(bytes)) => typed.extend_from_slice(&bytes),
                Ok(Message::Close(_)) | Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Ok(_) => {}
                Err(err) => panic!("{err} after {:?}", String::from_utf8_lossy(&typed)),
            }
        }
        String::from_utf8(typed).unwrap()
    }
}

struct FakeServer {
    answers: Answers,
    call: Sender<(String, Value)>,
    open: Sender<FakeStream>,
}

impl FakeServer {
    async fn serve(self, listener: std::os::unix::net::UnixListener) {
        listener.set_nonblocking(true).unwrap();
        let listener = UnixListener::from_std(listener).unwrap();
        // Owned here, so that a crash closes all connections at once.
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (answers, call, open) = (self.answers.clone(), self.call.clone(), self.open.clone());
            connections.spawn(async move {
                let mut path = String::new();
                #[expect(clippy::result_large_err, reason = "the library's signature")]
                let note_path = |upgrade: &Upgrade, accepted: Accepted| -> Result<Accepted, ErrorResponse> {
                    path = upgrade.uri().path().to_owned();
                    Ok(accepted)
                };
                // A client that only checked whether a daemon is running.
                let Ok(socket) = tokio_tungstenite::accept_hdr_async(stream, note_path).await else { return };
                match path.as_str() {
                    "/rpc" => answer_calls(socket, answers, call).await,
                    _ => stream_to_test(socket, open).await,
                }
            });
        }
    }
}

async fn answer_calls(
    mut socket: WebSocketStream<UnixStream>,
    answers: Answers,
    call: Sender<(String, Value)>,
) {
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        let request: Request = serde_json::from_str(&text).unwrap();
        let outcome = match answers.lock().unwrap().get(&request.method) {
            Some(Ok(value)) => Ok(value.clone()),
            Some(Err(failure)) => Err(ErrorObject::from(failure.clone())),
            None => Err(ErrorObject::new(-32601, format!("the test has no answer to {}", request.method))),
        };
        // The test may have ended.
        call.send((request.method, request.params)).ok();
        let result = outcome.map(|value| value.to_string());
        let text = write_answer(&request.id.unwrap_or_default(), result).unwrap();
        if socket.send(Message::text(text)).await.is_err() {
            return;
        }
    }
}

async fn stream_to_test(socket: WebSocketStream<UnixStream>, open: Sender<FakeStream>) {
    let (mut sink, mut source) = socket.split();
    let (send, mut outgoing) = mpsc::unbounded_channel();
    let (forward, received) = channel();
    if open.send(FakeStream { send, received }).is_err() {
        return;
    }
    let sending = async move {
        while let Some(message) = outgoing.recv().await {
            if sink.send(message).await.is_err() {
                break;
            }
        }
        std::future::pending::<()>().await;
    };
    let receiving = async move {
        while let Some(Ok(message)) = source.next().await {
            forward.send(message).ok();
        }
    };
    tokio::select! {
        () = sending => {}
        () = receiving => {}
    }
}

/// A task as the daemon shows it.
pub fn task(status: &str) -> Value {
    let live = status == "running" || status == "idle";
    let mut task = json!({
        "id": 1, "slug": "fix-login", "title": null, "project": "/project", "status": status,
        "headline": if live { "at its prompt" } else { status }, "urgency": if live { "waiting" } else { "resting" },
        "waiting_for": live.then_some("prompt"), "unread": live, "stream_state": null, "mode_warning": null,
        "state": live.then(|| json!({ "state": "needs_input", "for_seconds": 12, "why": "prompt" })),
        "evidence": null, "seen": false, "queued": 0,
        "workspace_status": if live { "needs_input" } else { "idle" },
        "agent": "shell", "agent_name": "Shell", "driver": "terminal", "labels": [], "parent": null,
        "base_branch": "main", "branch": "agency/1-fix-login", "worktree": null, "port": null, "ports": 0, "setup": null, "file": "/project/1.md",
        "created_at": null, "age_seconds": 200, "last_exit": (!live).then_some("-15"),
        "asked_to_stop": !live, "ended_seconds": (!live).then_some(300), "conflicts": [], "vanished": null, "merge_cut_off": null,
        "run": live.then_some("k3v9x0a2bc"), "viewers": 0, "elsewhere": null, "broken": null,
    });
    // The macro takes a limited number of keys.
    for (key, value) in [("looked_at", Value::Null), ("pinned", false.into()), ("snoozed_until", Value::Null)]
    {
        task[key] = value;
    }
    task
}

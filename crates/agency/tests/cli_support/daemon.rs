//! A daemon that answers by a script and hands its streams to the test.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use agency_api::Failure;
use agency_api::pty::ViewerNotice;
use agency_api::rpc::{ErrorObject, Request, Response};
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
    say: mpsc::UnboundedSender<Message>,
    heard: Receiver<Message>,
}

impl FakeDaemon {
    pub fn start(home: &Home) -> FakeDaemon {
        let answers = Answers::default();
        let (call, calls) = channel();
        let (open, streams) = channel();
        let (stop, stopped) = oneshot::channel();
        let listener = agency_api::socket::bind(&home.state().daemon_socket()).unwrap();
        let door = Door { answers: answers.clone(), call, open };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = door.serve(listener) => {}
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

    /// The parameters of the next call of `method`; calls of others are passed over.
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

    /// Gone without a word, as after SIGKILL.
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
    pub fn say(&self, bytes: &[u8]) {
        assert!(self.says(bytes), "the client has left");
    }

    /// False once the client has closed the connection.
    pub fn says(&self, bytes: &[u8]) -> bool {
        self.say.send(Message::binary(bytes.to_vec())).is_ok()
    }

    pub fn notice(&self, notice: &ViewerNotice) {
        self.say.send(Message::text(serde_json::to_string(notice).unwrap())).unwrap();
    }

    /// The client may have been quicker.
    pub fn close(&self) {
        self.say.send(Message::Close(None)).ok();
    }

    /// The keys of the client, until they end with `end`.
    #[track_caller]
    pub fn typed_until(&self, end: &str) -> String {
        let mut typed = Vec::new();
        while !typed.ends_with(end.as_bytes()) {
            match self.heard.recv_timeout(PATIENCE).expect("typed bytes") {
                Message::Binary(bytes) => typed.extend_from_slice(&bytes),
                Message::Text(_) => {}
                other => panic!("{other:?} after {:?}", String::from_utf8_lossy(&typed)),
            }
        }
        String::from_utf8(typed).unwrap()
    }

    /// The next request in words.
    #[track_caller]
    pub fn request(&self) -> Value {
        loop {
            if let Message::Text(text) = self.heard.recv_timeout(PATIENCE).expect("a request") {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    /// All that is typed until the client leaves.
    #[track_caller]
    pub fn typed_to_the_end(&self) -> String {
        let mut typed = Vec::new();
        loop {
            match self.heard.recv_timeout(PATIENCE) {
                Ok(Message::Binary(bytes)) => typed.extend_from_slice(&bytes),
                Ok(Message::Close(_)) | Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Ok(_) => {}
                Err(err) => panic!("{err} after {:?}", String::from_utf8_lossy(&typed)),
            }
        }
        String::from_utf8(typed).unwrap()
    }
}

struct Door {
    answers: Answers,
    call: Sender<(String, Value)>,
    open: Sender<FakeStream>,
}

impl Door {
    async fn serve(self, listener: std::os::unix::net::UnixListener) {
        listener.set_nonblocking(true).unwrap();
        let listener = UnixListener::from_std(listener).unwrap();
        // Owned here, so that a crash closes every connection at once.
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
                // Someone who only looked whether we are here.
                let Ok(socket) = tokio_tungstenite::accept_hdr_async(stream, note_path).await else { return };
                match path.as_str() {
                    "/rpc" => converse(socket, answers, call).await,
                    _ => stream_to_test(socket, open).await,
                }
            });
        }
    }
}

async fn converse(mut socket: WebSocketStream<UnixStream>, answers: Answers, call: Sender<(String, Value)>) {
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        let request: Request = serde_json::from_str(&text).unwrap();
        let outcome = match answers.lock().unwrap().get(&request.method) {
            Some(Ok(value)) => Ok(value.clone()),
            Some(Err(failure)) => Err(ErrorObject::from(failure.clone())),
            None => Err(ErrorObject::new(-32601, format!("the test has no answer to {}", request.method))),
        };
        // The test may be over.
        call.send((request.method, request.params)).ok();
        let response = Response::new(request.id.unwrap_or_default(), outcome);
        let text = serde_json::to_string(&response).unwrap();
        if socket.send(Message::text(text)).await.is_err() {
            return;
        }
    }
}

async fn stream_to_test(socket: WebSocketStream<UnixStream>, open: Sender<FakeStream>) {
    let (mut sink, mut source) = socket.split();
    let (say, mut said) = mpsc::unbounded_channel();
    let (hear, heard) = channel();
    if open.send(FakeStream { say, heard }).is_err() {
        return;
    }
    let saying = async move {
        while let Some(message) = said.recv().await {
            if sink.send(message).await.is_err() {
                break;
            }
        }
        std::future::pending::<()>().await;
    };
    let hearing = async move {
        while let Some(Ok(message)) = source.next().await {
            hear.send(message).ok();
        }
    };
    tokio::select! {
        () = saying => {}
        () = hearing => {}
    }
}

/// A task as the daemon shows it.
pub fn task(status: &str) -> Value {
    let live = status == "running" || status == "idle";
    json!({
        "id": 1, "slug": "fix-login", "project": "/project", "status": status,
        "state": live.then(|| json!({ "state": "needs_input", "for_seconds": 12, "why": "unknown" })),
        "evidence": null, "seen": false, "queued": 0,
        "workspace_status": if live { "needs_input" } else { "idle" },
        "agent": "fake", "agent_name": "Shell", "driver": "terminal", "labels": [], "parent": null,
        "base_branch": "main", "branch": "agency/1-fix-login", "worktree": null, "port": null, "ports": 0, "setup": null, "file": "/project/1.md",
        "created_at": null, "age_seconds": 200, "last_exit": (!live).then_some("-15"),
        "run": live.then_some("k3v9x0a2bc"), "viewers": 0, "elsewhere": null, "broken": null,
    })
}

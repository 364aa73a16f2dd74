//! An agent that speaks ACP: one process, many sessions; each plays the script.
//!
//! `fake-agent --acp SCRIPT [OPTION…]`: `acp/session.rs` lists the steps. The agent stores its sessions in the file that
//! `FAKE_AGENT_SESSIONS` names, so that another process can load or resume them; without it they end with this process.
//!
//! | option | effect |
//! |---|---|
//! | `--no-resume`, `--no-load`, `--no-list`, `--no-close` | lacks this ability |
//! | `--forget` | does not find the sessions that it is to load or resume |
//! | `--login` | opens sessions only after `authenticate` |
//! | `--options` | reports modes as config options, and has the options `effort` and `fast` |
//! | `--images` | takes images |
//! | `--refuse TEXT` | answers `initialize` with an error |
//! | `--mute` | does not answer `initialize` |
//! | `--speaks N` | answers with another protocol version |
//! | `--die CODE` | ends at `initialize` |
//! | `--die-once PATH CODE` | the same, but only if PATH does not exist; creates PATH |
//! | `--begin-in MODE` | begins its sessions in this mode, `ask` or `auto`; without it in `ask` |
//! | `--no-modes` | has no modes |
//! | `--wrong-id` | answers `session/new` under an id that the client did not use |
//! | `--early` | sends an update of a session before the answer that names it |
//! | `--mark PATH` | appends its pid to a file |
//! | `--linger` | outlives the end of its input |

mod mcp;
mod session;
mod session_file;

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::process::exit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::ending::{crash, crash_once, wait_forever};
use crate::lines::print_line;
use crate::script::Ending;
use session::{Incoming, Session};
use session_file::SessionFile;

pub(crate) fn play(mut args: impl Iterator<Item = String>) -> ! {
    let script = args.next().unwrap_or_default();
    let args: Vec<String> = args.collect();
    let agent = Arc::new(Agent {
        script,
        session_file: SessionFile::open(),
        args,
        next_session: AtomicU64::new(1),
        next_request: AtomicU64::new(0),
        pending_requests: Mutex::default(),
        sessions: Mutex::default(),
        is_logged_in: Mutex::new(false),
    });
    if let Some(path) = agent.option("--mark") {
        mark(&path);
    }
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if let Ok(message) = serde_json::from_str::<Value>(&line) {
            Agent::handle(&agent, &message);
        }
    }
    if agent.has("--linger") { wait_forever() } else { exit(0) }
}

pub(crate) struct Agent {
    script: String,
    args: Vec<String>,
    session_file: SessionFile,
    next_session: AtomicU64,
    next_request: AtomicU64,
    /// The session that waits for the answer to a request of ours, by the id of the request.
    pending_requests: Mutex<HashMap<u64, Sender<Incoming>>>,
    sessions: Mutex<HashMap<String, Sender<Incoming>>>,
    /// The client has logged in.
    is_logged_in: Mutex<bool>,
}

impl Agent {
    fn handle(agent: &Arc<Agent>, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        let session = params["sessionId"].as_str().unwrap_or_default();
        match message["method"].as_str() {
            None => agent.deliver_answer(message),
            Some("initialize") => agent.answer_initialize(id),
            Some("authenticate") => {
                *lock(&agent.is_logged_in) = true;
                answer(id, &json!({}));
            }
            Some("session/new" | "session/load" | "session/resume")
                if agent.has("--login") && !*lock(&agent.is_logged_in) =>
            {
                refuse(id, -32000, "Authentication required");
            }
            Some("session/new") => Agent::new_session(agent, id, params),
            Some("session/load") => Agent::reopen_session(agent, id, params, true),
            Some("session/resume") => Agent::reopen_session(agent, id, params, false),
            Some("session/list") => {
                answer(id, &json!({ "sessions": agent.session_file.list(), "nextCursor": null }))
            }
            Some("session/close") => {
                agent.send_to(session, Incoming::Close);
                lock(&agent.sessions).remove(session);
                answer(id, &json!({}));
            }
            Some("session/cancel") => {
                agent.send_to(session, Incoming::Cancel);
            }
            Some("session/prompt") => {
                let text = prompt_text(&params["prompt"]);
                if !agent.send_to(session, Incoming::Prompt { id: id.clone(), text }) {
                    refuse(id, -32602, "no such session");
                }
            }
            Some("session/set_mode") => agent.set(session, id, &params["modeId"]),
            Some("session/set_config_option") if params["configId"] == "mode" => {
                agent.set(session, id, &params["value"]);
            }
            Some("session/set_config_option") => agent.set_option(session, id, params),
            Some("session/set_model") => answer(id, &json!({})),
            Some(other) => {
                if !id.is_null() {
                    refuse(id, -32601, &format!("{other} is not known here"));
                }
            }
        }
    }

    fn answer_initialize(&self, id: &Value) {
        if let Some(code) = self.option("--die") {
            crash(Ending::Code(code.parse().unwrap_or(1)));
        }
        if let Some(at) = self.args.iter().position(|arg| arg == "--die-once") {
            crash_once(&self.args[at + 1..].iter().take(2).cloned().collect::<Vec<_>>().join(" "));
        }
        if self.has("--mute") {
            return;
        }
        if let Some(words) = self.option("--refuse") {
            return refuse(id, -32603, &words);
        }
        let version: u64 = self.option("--speaks").and_then(|version| version.parse().ok()).unwrap_or(1);
        let mut abilities = json!({ "loadSession": !self.has("--no-load"), "sessionCapabilities": {},
            "promptCapabilities": { "image": self.has("--images") } });
        for (name, missing) in [("resume", "--no-resume"), ("list", "--no-list"), ("close", "--no-close")] {
            if !self.has(missing) {
                abilities["sessionCapabilities"][name] = json!({});
            }
        }
        answer(
            id,
            &json!({
                "protocolVersion": version, "agentCapabilities": abilities,
                "agentInfo": { "name": "fake-agent", "title": "Fake", "version": "1.0.0" },
                "authMethods": [{ "id": "key", "name": "A key" }],
            }),
        );
    }

    fn new_session(agent: &Arc<Agent>, id: &Value, params: &Value) {
        let number = agent.next_session.fetch_add(1, Ordering::SeqCst);
        let session = format!("fake-{}-{number}", std::process::id());
        let cwd = params["cwd"].as_str().unwrap_or_default();
        agent.session_file.add(&session, cwd);
        if agent.has("--early") {
            update(
                &session,
                &json!({ "sessionUpdate": "available_commands_update", "availableCommands": [] }),
            );
        }
        agent.open(agent, &session, params);
        let mut result = agent.settings();
        result["sessionId"] = json!(session);
        if agent.has("--wrong-id") {
            return answer(&json!(4711), &result);
        }
        answer(id, &result);
    }

    /// Loads or resumes a session of this or another process. A load repeats its messages.
    fn reopen_session(agent: &Arc<Agent>, id: &Value, params: &Value, is_load: bool) {
        let session = params["sessionId"].as_str().unwrap_or_default();
        let missing = if is_load { "--no-load" } else { "--no-resume" };
        if agent.has(missing) {
            return refuse(id, -32601, "it cannot");
        }
        let Some(messages) = agent.session_file.messages_of(session).filter(|_| !agent.has("--forget"))
        else {
            return refuse(id, -32002, "no such session");
        };
        for (kind, text) in messages.iter().filter(|_| is_load) {
            update(session, &chunk(kind, text));
        }
        agent.open(agent, session, params);
        answer(id, &agent.settings());
    }

    fn open(&self, agent: &Arc<Agent>, session: &str, params: &Value) {
        let sender = Session::begin(agent.clone(), session, params, &self.script);
        lock(&self.sessions).insert(session.to_owned(), sender);
    }

    fn set(&self, session: &str, id: &Value, mode: &Value) {
        let mode = mode.as_str().unwrap_or_default();
        if !["ask", "auto"].contains(&mode) {
            return refuse(id, -32602, "no such mode");
        }
        self.send_to(session, Incoming::Mode(mode.to_owned()));
        answer(id, &json!({}));
    }

    fn set_option(&self, session: &str, id: &Value, params: &Value) {
        let (option, value) = (params["configId"].as_str().unwrap_or_default(), &params["value"]);
        let is_offered = match option {
            "effort" => *value == "low" || *value == "high",
            "fast" => value.is_boolean() && params["type"] == "boolean",
            _ => false,
        };
        if !is_offered {
            return refuse(id, -32602, "no such value");
        }
        self.send_to(session, Incoming::Option(option.to_owned(), value.clone()));
        answer(id, &json!({}));
    }

    /// The modes and models that the client may choose from.
    fn settings(&self) -> Value {
        if self.has("--no-modes") {
            return json!({});
        }
        let modes = [("ask", "Ask first"), ("auto", "Auto")];
        if self.has("--options") {
            let options = modes.map(|(id, name)| json!({ "value": id, "name": name }));
            let efforts =
                [("low", "Low"), ("high", "High")].map(|(id, name)| json!({ "value": id, "name": name }));
            return json!({ "configOptions": [
                { "id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": self.first_mode(),
                    "options": options },
                { "id": "effort", "name": "Effort", "description": "how hard it thinks", "type": "select",
                    "currentValue": "low", "options": efforts },
                { "id": "fast", "name": "Fast mode", "type": "boolean", "currentValue": false },
            ] });
        }
        let known = modes.map(|(id, name)| json!({ "id": id, "name": name }));
        json!({ "modes": { "currentModeId": self.first_mode(), "availableModes": known },
            "models": { "currentModelId": "small", "availableModels": [{ "modelId": "small", "name": "Small" },
                { "modelId": "large", "name": "Large" }] } })
    }

    fn first_mode(&self) -> String {
        self.option("--begin-in").unwrap_or_else(|| "ask".to_owned())
    }

    fn deliver_answer(&self, message: &Value) {
        let sender = message["id"].as_u64().and_then(|id| lock(&self.pending_requests).remove(&id));
        if let Some(sender) = sender {
            // Sending fails if the session was closed meanwhile; it needs no answer then.
            drop(sender.send(Incoming::Answer(message.clone())));
        }
    }

    /// `false`: there is no such session.
    fn send_to(&self, session: &str, incoming: Incoming) -> bool {
        lock(&self.sessions).get(session).is_some_and(|sender| sender.send(incoming).is_ok())
    }

    /// Sends a request to the client; `answer_to` receives the answer.
    fn ask(&self, method: &str, params: &Value, answer_to: Sender<Incoming>) {
        let id = self.next_request.fetch_add(1, Ordering::SeqCst);
        lock(&self.pending_requests).insert(id, answer_to);
        emit(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    fn has(&self, option: &str) -> bool {
        self.args.iter().any(|arg| arg == option)
    }

    fn option(&self, name: &str) -> Option<String> {
        let at = self.args.iter().position(|arg| arg == name)?;
        self.args.get(at + 1).cloned()
    }
}

/// The text of a prompt, and a word about its image.
fn prompt_text(prompt: &Value) -> String {
    let text = prompt[0]["text"].as_str().unwrap_or_default();
    let image = prompt[1]["data"]
        .as_str()
        .map(|data| format!(" [{}, {}]", prompt[1]["mimeType"].as_str().unwrap_or_default(), data.len()));
    format!("{text}{}", image.unwrap_or_default())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(id: &Value, result: &Value) {
    emit(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

fn refuse(id: &Value, code: i64, message: &str) {
    emit(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }));
}

fn update(session: &str, update: &Value) {
    let params = json!({ "sessionId": session, "update": update });
    emit(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
}

fn emit(message: &Value) {
    print_line(&message.to_string());
}

fn mark(path: &str) {
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    if let Err(err) = file.and_then(|mut file| writeln!(file, "{}", std::process::id())) {
        eprintln!("fake-agent: {path}: {err}");
    }
}

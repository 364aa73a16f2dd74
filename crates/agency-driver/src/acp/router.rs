//! Folds a connection's journal: finds the run that each line belongs to, and keeps the connection's own state.
//!
//! The ids of our requests begin with the run that made them, or with `agency`. So the id alone routes an answer, and a
//! crash loses nothing that routing needs.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

pub use super::opening::Capabilities;
use super::rpc::{self, Message, Refusal};
use crate::lines::{LineSplitter, SplitLine};

/// The prefix of the ids of the connection's own requests, where other ids have their run.
const OWN: &str = "agency";
/// The version of the protocol that Agency speaks.
const VERSION: u64 = 1;
/// An agent may send updates of a session before the answer that names the session. The router holds at most so many.
const MOST_EARLY: usize = 1000;
const MOST_EARLY_BYTES: usize = 16 << 20;

/// The owner of a line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recipient {
    /// The run with this id.
    Run(String),
    /// The connection itself.
    Connection,
}

/// A line and its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutedLine {
    /// The owner.
    pub to: Recipient,
    /// The line, with its end of line.
    pub line: Vec<u8>,
    /// The problem with the line, if there is one. A bad line without an owner goes to every run on the connection, which shows it.
    pub problem: Option<String>,
}

/// The agent's answer to `initialize`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The answer as it came. The journal of every session begins with it.
    pub line: Vec<u8>,
    /// The capabilities of the agent.
    pub capabilities: Capabilities,
}

/// The fold of one connection's journal.
#[derive(Debug, Default)]
pub struct Router {
    output: LineSplitter,
    input: LineSplitter,
    /// The journal has lost lines, and none was written to the agent since.
    is_input_unknown: bool,
    next_request: u64,
    greeting: Option<Result<Greeting, String>>,
    /// The run of each session, by the session's id.
    sessions: BTreeMap<String, String>,
    /// Our requests that the agent has not answered, by their ids.
    our_requests: BTreeMap<String, OurPending>,
    /// Requests of the agent that a run has not answered, oldest first: the id and the run. An agent may use an id twice.
    agent_requests: Vec<(Value, Recipient)>,
    /// Lines of sessions whose id no answer has named yet.
    early: Vec<EarlyLine>,
    /// Refusals of requests that belong to no run, until the journal has them.
    owed: Vec<(String, Vec<u8>)>,
    /// Answers to the connection's own requests, with their ids.
    own_answers: Vec<(String, Result<Value, String>)>,
}

#[derive(Debug)]
struct OurPending {
    by: Recipient,
    kind: RequestKind,
}

#[derive(Debug, PartialEq, Eq)]
enum RequestKind {
    Initialize,
    NewSession,
    Close { session: String },
    Other,
}

#[derive(Debug)]
struct EarlyLine {
    session: String,
    line: Vec<u8>,
    /// The id of the request, if the line is one.
    request: Option<Value>,
}

impl Router {
    /// The router of a connection that has sent nothing yet.
    pub fn new() -> Router {
        Router::default()
    }

    /// The agent's answer to `initialize`, or why Agency cannot use it. `None` before the agent answers.
    pub fn greeting(&self) -> Option<Result<&Greeting, &str>> {
        self.greeting.as_ref().map(|greeting| greeting.as_ref().map_err(String::as_str))
    }

    /// Whether a line to the agent was begun and not ended, or may have been.
    pub fn is_half_written(&self) -> bool {
        self.input.has_rest() || self.is_input_unknown
    }

    /// Whether `initialize` was sent and the agent has not answered.
    pub fn awaits_greeting(&self) -> bool {
        self.our_requests.values().any(|request| request.kind == RequestKind::Initialize)
    }

    /// Refusals of requests that belong to no run, each with its own key, until the journal has them.
    pub fn owed_lines(&self) -> Vec<(String, Vec<u8>)> {
        self.owed.clone()
    }

    /// The answers to the connection's own requests since the last call.
    pub fn take_own_answers(&mut self) -> Vec<(String, Result<Value, String>)> {
        std::mem::take(&mut self.own_answers)
    }

    /// A run ended. The router forgets its sessions and refuses the requests that it had not answered.
    pub fn forget_run(&mut self, run: &str) {
        self.sessions.retain(|_, of| of != run);
        let gone = Recipient::Run(run.to_owned());
        let unanswered: Vec<Value> =
            self.agent_requests.extract_if(.., |(_, to)| *to == gone).map(|(id, _)| id).collect();
        for id in unanswered {
            self.owe_refusal(&id, rpc::BAD_PARAMS, "no run uses this session any more");
        }
    }

    /// The run of a session, if the journal has lost lines. The run's journal has them.
    pub fn remember_session(&mut self, session: &str, run: &str) {
        self.sessions.insert(session.to_owned(), run.to_owned());
    }

    /// A request of the agent that a run has not answered, if the journal has lost it. The run's journal has it.
    pub fn remember_request(&mut self, id: &Value, run: &str) {
        let to = Recipient::Run(run.to_owned());
        if self.asker(id).is_none() {
            self.agent_requests.push((id.clone(), to));
        }
    }

    /// The run of the oldest open request with this id.
    fn asker(&self, id: &Value) -> Option<&Recipient> {
        self.agent_requests.iter().find(|(known, _)| known == id).map(|(_, to)| to)
    }

    /// The agent's answer to `initialize`, if the journal has lost it. The journals of sessions have it.
    pub fn remember_greeting(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let answer = rpc::read(line).unwrap_or_default().into_iter().find_map(|message| match message {
            Message::Answer { id, answer } => Some((id, answer)),
            Message::Request { .. } | Message::Notification { .. } => None,
        });
        if let Some((id, answer)) = answer.filter(|_| self.greeting.is_none()) {
            self.skip_request_number(&id);
            self.greeting = Some(read_greeting(&answer, line));
        }
    }

    /// Routes output of the agent, in the order of its lines.
    pub fn on_output(&mut self, bytes: &[u8], _at: Duration) -> Vec<RoutedLine> {
        let mut routed = Vec::new();
        for line in self.output.feed(bytes) {
            match line {
                SplitLine::Whole(line) => self.route_line(line, &mut routed),
                SplitLine::TooLong(line) => routed.extend(self.route_bad_line(line, "the line has no end")),
            }
        }
        routed
    }

    /// Routes what Agency wrote to the agent, as the journal has it.
    pub fn on_input(&mut self, bytes: &[u8], _at: Duration) -> Vec<RoutedLine> {
        let mut routed = Vec::new();
        for line in self.input.feed(bytes).into_iter().filter_map(SplitLine::whole) {
            self.is_input_unknown = false;
            let messages = rpc::read(&line).unwrap_or_default();
            let recipients = messages.into_iter().map(|message| self.record_our_message(message));
            let Some(to) = recipients.last() else {
                continue;
            };
            routed.push(RoutedLine { to, line: with_newline(line), problem: None });
        }
        routed
    }

    /// The journal lacks lines of both directions. Answers to earlier requests may be among them.
    pub fn on_gap(&mut self) {
        (self.output, self.input) = (LineSplitter::default(), LineSplitter::default());
        self.is_input_unknown = true;
        self.our_requests.clear();
    }

    fn route_line(&mut self, line: Vec<u8>, routed: &mut Vec<RoutedLine>) {
        let messages = match rpc::read(&line) {
            Ok(messages) => messages,
            Err(cause) => return routed.extend(self.route_bad_line(line, &cause)),
        };
        // A line with several messages goes once to each owner of one of them.
        let mut done: Vec<Recipient> = Vec::new();
        for message in messages {
            if names_no_session(&message) {
                routed.extend(self.route_bad_line(line.clone(), "it names no session"));
                continue;
            }
            let Some((to, problem)) = self.route_message(message, &line) else { continue };
            if !done.contains(&to) {
                routed.push(RoutedLine { to: to.clone(), line: with_newline(line.clone()), problem });
                done.push(to);
            }
            self.release_early_lines(routed);
        }
    }

    /// A bad line names no owner, so it goes to every run on the connection.
    fn route_bad_line(&self, line: Vec<u8>, problem: &str) -> Vec<RoutedLine> {
        let mut runs: Vec<Recipient> =
            self.sessions.values().map(|run| Recipient::Run(run.clone())).collect();
        runs.sort();
        runs.dedup();
        if runs.is_empty() {
            runs.push(Recipient::Connection);
        }
        let line = with_newline(line);
        let routed = |to| RoutedLine { to, line: line.clone(), problem: Some(problem.to_owned()) };
        runs.into_iter().map(routed).collect()
    }

    /// `None` for a line that must wait until an answer names its session.
    fn route_message(&mut self, message: Message, line: &[u8]) -> Option<(Recipient, Option<String>)> {
        match message {
            Message::Answer { id, answer } => Some(self.route_answer(&id, answer, line)),
            Message::Notification { method, params } => {
                let to = match method.as_str() {
                    "$/cancel_request" => self.asker(&params["requestId"]).cloned(),
                    _ => None,
                };
                match to {
                    Some(to) => Some((to, None)),
                    None => self.find_recipient(&params, None, line),
                }
            }
            Message::Request { id, method, params } => {
                let (to, problem) = self.find_recipient(&params, Some(&id), line)?;
                match &to {
                    Recipient::Run(_) => self.agent_requests.push((id, to.clone())),
                    Recipient::Connection if problem.is_some() => {}
                    Recipient::Connection => {
                        self.owe_refusal(&id, rpc::UNKNOWN_METHOD, &format!("Agency does not know {method}"))
                    }
                }
                Some((to, problem))
            }
        }
    }

    /// Finds the owner by the session that the message names, or by the request of ours that it belongs to.
    fn find_recipient(
        &mut self,
        params: &Value,
        request: Option<&Value>,
        line: &[u8],
    ) -> Option<(Recipient, Option<String>)> {
        if let Some(to) = params["requestId"].as_str().and_then(run_of_id) {
            return Some((to, None));
        }
        let Some(session) = params["sessionId"].as_str() else { return Some((Recipient::Connection, None)) };
        if let Some(run) = self.sessions.get(session) {
            return Some((Recipient::Run(run.clone()), None));
        }
        if self.awaits_session() && self.has_room_for(line) {
            let (session, line, request) = (session.to_owned(), line.to_vec(), request.cloned());
            self.early.push(EarlyLine { session, line, request });
            return None;
        }
        if let Some(id) = request {
            self.owe_refusal(id, rpc::BAD_PARAMS, "no run uses this session");
        }
        Some((Recipient::Connection, Some(format!("no run uses the session {session}"))))
    }

    fn has_room_for(&self, line: &[u8]) -> bool {
        let held: usize = self.early.iter().map(|early| early.line.len()).sum();
        self.early.len() < MOST_EARLY && held + line.len() <= MOST_EARLY_BYTES
    }

    /// Whether an answer is due that names a new session.
    fn awaits_session(&self) -> bool {
        self.our_requests.values().any(|request| request.kind == RequestKind::NewSession)
    }

    /// Routes early lines whose session has been named, and all others once no such answer is due.
    fn release_early_lines(&mut self, routed: &mut Vec<RoutedLine>) {
        for early in std::mem::take(&mut self.early) {
            let EarlyLine { session, line, request } = early;
            let to = match self.sessions.get(&session) {
                Some(run) => Recipient::Run(run.clone()),
                None if self.awaits_session() => {
                    self.early.push(EarlyLine { session, line, request });
                    continue;
                }
                None => Recipient::Connection,
            };
            let problem = (to == Recipient::Connection).then(|| format!("no run uses the session {session}"));
            match (&to, request) {
                (Recipient::Run(_), Some(id)) => self.agent_requests.push((id, to.clone())),
                (Recipient::Connection, Some(id)) => {
                    self.owe_refusal(&id, rpc::BAD_PARAMS, "no run uses this session")
                }
                (_, None) => {}
            }
            routed.push(RoutedLine { to, line: with_newline(line), problem });
        }
    }

    fn route_answer(
        &mut self,
        id: &Value,
        answer: Result<Value, Refusal>,
        line: &[u8],
    ) -> (Recipient, Option<String>) {
        let Some(OurPending { by: to, kind }) = self.our_requests.remove(&rpc::key(id)) else {
            let to = id.as_str().and_then(run_of_id).or_else(|| self.only_opening_run(&answer));
            let to = to.unwrap_or(Recipient::Connection);
            // The journal may have lost the request for a new session.
            let named = answer.as_ref().ok().and_then(|result| result["sessionId"].as_str());
            let is_ours = id.as_str().and_then(run_of_id).is_some();
            if let (Recipient::Run(run), Some(session), true) = (&to, named, is_ours) {
                self.remember_session(session, run);
            }
            return (to, Some(format!("{id} answers no open request")));
        };
        match (kind, &to, &answer) {
            (RequestKind::Initialize, ..) => self.greeting = Some(read_greeting(&answer, line)),
            (RequestKind::NewSession, Recipient::Run(run), Ok(result)) => {
                if let Some(session) = result["sessionId"].as_str() {
                    self.sessions.insert(session.to_owned(), run.clone());
                }
            }
            (RequestKind::Close { session }, Recipient::Run(run), Ok(_)) => {
                self.sessions.retain(|name, of| *name != session || of != run);
            }
            _ => {}
        }
        if to == Recipient::Connection {
            let id = id.as_str().unwrap_or_default().to_owned();
            self.own_answers.push((id, answer.map_err(|refusal| refusal.summary())));
        }
        (to, None)
    }

    /// The run that must learn of a session under an id that no run used: the only one that waits for a new session.
    fn only_opening_run(&self, answer: &Result<Value, Refusal>) -> Option<Recipient> {
        answer.as_ref().ok().filter(|result| result["sessionId"].is_string())?;
        let mut opening =
            self.our_requests.values().filter(|request| request.kind == RequestKind::NewSession);
        match (opening.next(), opening.next()) {
            (Some(only), None) => Some(only.by.clone()),
            _ => None,
        }
    }

    fn record_our_message(&mut self, message: Message) -> Recipient {
        match message {
            Message::Request { id, method, params } => {
                let by = id.as_str().and_then(run_of_id).unwrap_or(Recipient::Connection);
                self.skip_request_number(&id);
                let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
                let kind = match method.as_str() {
                    "initialize" => RequestKind::Initialize,
                    "session/new" => RequestKind::NewSession,
                    "session/close" => RequestKind::Close { session },
                    "session/load" | "session/resume" => {
                        if let Recipient::Run(run) = &by {
                            self.sessions.insert(session, run.clone());
                        }
                        RequestKind::Other
                    }
                    _ => RequestKind::Other,
                };
                self.our_requests.insert(rpc::key(&id), OurPending { by: by.clone(), kind });
                by
            }
            Message::Notification { params, .. } => {
                let run = params["sessionId"].as_str().and_then(|session| self.sessions.get(session));
                run.map_or(Recipient::Connection, |run| Recipient::Run(run.clone()))
            }
            Message::Answer { id, .. } => {
                let key = owed_key(&id);
                self.owed.retain(|(known, _)| *known != key);
                let answered = self.agent_requests.iter().position(|(known, _)| *known == id);
                answered.map_or(Recipient::Connection, |at| self.agent_requests.remove(at).1)
            }
        }
    }

    /// The next request of the connection gets a higher number than those in the journal.
    fn skip_request_number(&mut self, id: &Value) {
        let own = id.as_str().and_then(|id| id.strip_prefix(OWN)?.strip_prefix(':')?.parse::<u64>().ok());
        self.next_request = self.next_request.max(own.unwrap_or(0));
    }

    fn owe_refusal(&mut self, id: &Value, code: i64, message: &str) {
        let key = owed_key(id);
        self.owed.retain(|(known, _)| *known != key);
        self.owed.push((key, rpc::refusal(id, code, message)));
    }
}

/// The connection's own lines.
impl Router {
    /// The first line of a connection.
    pub fn initialize(&mut self) -> Vec<u8> {
        let client = json!({ "name": "agency", "title": "Agency", "version": env!("CARGO_PKG_VERSION") });
        // Offer neither files nor terminals: agents that get them bypass their own permission rules.
        let can = json!({
            "fs": { "readTextFile": false, "writeTextFile": false },
            "terminal": false,
            "session": { "notices": {}, "compaction": {} },
            "elicitation": { "form": {} },
        });
        let params = json!({ "protocolVersion": VERSION, "clientCapabilities": can, "clientInfo": client });
        self.request("initialize", &params).1
    }

    /// Requests a list of the agent's sessions, of one directory or of all. Returns the id and the line.
    pub fn request_sessions(&mut self, cwd: Option<&str>, cursor: Option<&str>) -> (String, Vec<u8>) {
        let mut params = json!({});
        for (name, value) in [("cwd", cwd), ("cursor", cursor)] {
            if let Some(value) = value {
                params[name] = json!(value);
            }
        }
        self.request("session/list", &params)
    }

    /// Logs in with one of the methods that the agent offers. Returns the id and the line.
    pub fn authenticate(&mut self, method: &str) -> (String, Vec<u8>) {
        self.request("authenticate", &json!({ "methodId": method }))
    }

    fn request(&mut self, method: &str, params: &Value) -> (String, Vec<u8>) {
        self.next_request += 1;
        let id = format!("{OWN}:{}", self.next_request);
        let line = rpc::request(&id, method, params);
        (id, line)
    }
}

fn read_greeting(answer: &Result<Value, Refusal>, line: &[u8]) -> Result<Greeting, String> {
    let result = answer.as_ref().map_err(Refusal::summary)?;
    match result["protocolVersion"].as_u64() {
        Some(VERSION) => {
            Ok(Greeting { line: with_newline(line.to_vec()), capabilities: Capabilities::read(result) })
        }
        Some(other) => {
            Err(format!("it speaks version {other} of the protocol, and Agency speaks version {VERSION}"))
        }
        None => Err("it does not say which version of the protocol it speaks".to_owned()),
    }
}

/// The owner of a request of ours, from its id.
fn run_of_id(id: &str) -> Option<Recipient> {
    let (run, _) = id.split_once(':')?;
    Some(if run == OWN { Recipient::Connection } else { Recipient::Run(run.to_owned()) })
}

fn owed_key(id: &Value) -> String {
    format!("reply {}", rpc::key(id))
}

fn names_no_session(message: &Message) -> bool {
    matches!(message, Message::Notification { method, params }
        if method == "session/update" && !params["sessionId"].is_string())
}

fn with_newline(mut line: Vec<u8>) -> Vec<u8> {
    line.push(b'\n');
    line
}

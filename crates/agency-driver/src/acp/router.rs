//! A connection's journal, folded: which session each line belongs to, and what the connection itself knows.
//!
//! Ids of our requests begin with the run that made them, or with `agency`; so an answer is led back by its id alone,
//! and nothing has to be remembered that a crash could take away.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

pub use super::opening::Capabilities;
use super::rpc::{self, Message, Refusal};
use crate::lines::{Line, Lines};

/// The run that the connection's own requests are made by.
const OWN: &str = "agency";
/// The version of the protocol that is spoken here.
const VERSION: u64 = 1;
/// Updates of a session may come before its name does. More of them than this are an accident.
const MOST_EARLY: usize = 1000;
const MOST_EARLY_BYTES: usize = 16 << 20;

/// Whose a line is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recipient {
    Run(String),
    Connection,
}

/// A line and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutedLine {
    pub to: Recipient,
    /// With its end of line.
    pub line: Vec<u8>,
    /// What is wrong with it. A bad line is told of, to all who have a session if to anybody, and nothing else
    /// happens.
    pub problem: Option<String>,
}

/// How the greeting went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The answer to `initialize`, as it came: every session begins with it.
    pub line: Vec<u8>,
    pub capabilities: Capabilities,
}

#[derive(Debug, Default)]
pub struct Router {
    out: Lines,
    written: Lines,
    next_request: u64,
    greeting: Option<Result<Greeting, String>>,
    /// Which run a session belongs to, by its name.
    sessions: BTreeMap<String, String>,
    /// Our requests that have no answer yet, by their ids.
    sent: BTreeMap<String, Sent>,
    /// Who was asked, by the ids of the agent's requests.
    asked: BTreeMap<String, (Value, Recipient)>,
    /// Lines of sessions that have no name yet.
    early: Vec<Early>,
    /// Answers to what nobody was asked.
    owed: Vec<(String, Vec<u8>)>,
    /// Answers to the connection's own requests, by their ids.
    answers: Vec<(String, Result<Value, String>)>,
}

#[derive(Debug)]
struct Sent {
    to: Recipient,
    what: What,
}

#[derive(Debug, PartialEq, Eq)]
enum What {
    Initialize,
    NewSession,
    Close { session: String },
    Other,
}

#[derive(Debug)]
struct Early {
    session: String,
    line: Vec<u8>,
    /// Its id, if it asks something.
    asks: Option<Value>,
}

impl Router {
    pub fn new() -> Router {
        Router::default()
    }

    /// How the greeting went, once it is answered.
    pub fn greeting(&self) -> Option<Result<&Greeting, &str>> {
        self.greeting.as_ref().map(|greeting| greeting.as_ref().map_err(String::as_str))
    }

    /// A line to the agent was begun and not ended.
    pub fn is_half_written(&self) -> bool {
        self.written.has_rest()
    }

    /// Answers to what the agent asks of nobody, each with a key of its own; until they are in the journal.
    pub fn owed_lines(&self) -> Vec<(String, Vec<u8>)> {
        self.owed.clone()
    }

    /// The answers to the connection's own requests since the last call.
    pub fn take_own_answers(&mut self) -> Vec<(String, Result<Value, String>)> {
        std::mem::take(&mut self.answers)
    }

    /// A run is over: nobody is there for its session any more, and what it was asked is answered for it.
    pub fn forget_run(&mut self, run: &str) {
        self.sessions.retain(|_, of| of != run);
        let gone = Recipient::Run(run.to_owned());
        let asked: Vec<Value> =
            self.asked.values().filter(|(_, to)| *to == gone).map(|(id, _)| id.clone()).collect();
        for id in asked {
            self.asked.remove(&rpc::key(&id));
            self.owe(&id, rpc::BAD_PARAMS, "nobody is in this session any more");
        }
    }

    /// What the agent said; each line with whom it is for, in the order of the lines.
    pub fn on_output(&mut self, bytes: &[u8], _at: Duration) -> Vec<RoutedLine> {
        let mut routed = Vec::new();
        for line in self.out.feed(bytes) {
            match line {
                Line::Whole(line) => self.heard(line, &mut routed),
                Line::TooLong(line) => routed.extend(self.bad(line, "the line has no end")),
            }
        }
        routed
    }

    /// What was written to the agent, likewise.
    pub fn on_input(&mut self, bytes: &[u8], _at: Duration) -> Vec<RoutedLine> {
        let mut routed = Vec::new();
        for line in self.written.feed(bytes) {
            let Line::Whole(line) = line else { continue };
            let messages = rpc::read(&line).unwrap_or_default();
            let Some(to) = messages.into_iter().map(|message| self.wrote(message)).next_back() else {
                continue;
            };
            routed.push(RoutedLine { to, line: ended(line), problem: None });
        }
        routed
    }

    /// Something that it said is not in the journal.
    pub fn on_gap(&mut self) {
        self.out = Lines::default();
    }

    fn heard(&mut self, line: Vec<u8>, routed: &mut Vec<RoutedLine>) {
        let messages = match rpc::read(&line) {
            Ok(messages) => messages,
            Err(cause) => return routed.extend(self.bad(line, &cause)),
        };
        // A line with several messages is for each of those whom one of them is for.
        let mut done: Vec<Recipient> = Vec::new();
        for message in messages {
            if names_no_session(&message) {
                routed.extend(self.bad(line.clone(), "it names no session"));
                continue;
            }
            let Some((to, problem)) = self.route(message, &line) else { continue };
            if !done.contains(&to) {
                routed.push(RoutedLine { to: to.clone(), line: ended(line.clone()), problem });
                done.push(to);
            }
            self.release(routed);
        }
    }

    /// Nobody knows whose it is: everybody who has a session here sees it.
    fn bad(&self, line: Vec<u8>, problem: &str) -> Vec<RoutedLine> {
        let mut runs: Vec<Recipient> =
            self.sessions.values().map(|run| Recipient::Run(run.clone())).collect();
        runs.sort();
        runs.dedup();
        if runs.is_empty() {
            runs.push(Recipient::Connection);
        }
        let line = ended(line);
        let routed = |to| RoutedLine { to, line: line.clone(), problem: Some(problem.to_owned()) };
        runs.into_iter().map(routed).collect()
    }

    /// Nothing for a line that has to wait until its session has a name.
    fn route(&mut self, message: Message, line: &[u8]) -> Option<(Recipient, Option<String>)> {
        match message {
            Message::Answer { id, answer } => Some(self.answered(&id, answer, line)),
            Message::Notification { method, params } => {
                let to = match method.as_str() {
                    "$/cancel_request" => {
                        self.asked.get(&rpc::key(&params["requestId"])).map(|(_, to)| to.clone())
                    }
                    _ => None,
                };
                match to {
                    Some(to) => Some((to, None)),
                    None => self.addressed(&params, None, line),
                }
            }
            Message::Request { id, method, params } => {
                let (to, problem) = self.addressed(&params, Some(&id), line)?;
                match &to {
                    Recipient::Run(_) => drop(self.asked.insert(rpc::key(&id), (id, to.clone()))),
                    Recipient::Connection if problem.is_some() => {}
                    Recipient::Connection => {
                        self.owe(&id, rpc::UNKNOWN_METHOD, &format!("{method} is not known here"))
                    }
                }
                Some((to, problem))
            }
        }
    }

    /// By the session that is named, or by the request of ours that it is about.
    fn addressed(
        &mut self,
        params: &Value,
        asks: Option<&Value>,
        line: &[u8],
    ) -> Option<(Recipient, Option<String>)> {
        if let Some(to) = params["requestId"].as_str().and_then(run_of_id) {
            return Some((to, None));
        }
        let Some(session) = params["sessionId"].as_str() else { return Some((Recipient::Connection, None)) };
        if let Some(run) = self.sessions.get(session) {
            return Some((Recipient::Run(run.clone()), None));
        }
        if self.awaits_a_name() && self.has_room_for(line) {
            let (session, line, asks) = (session.to_owned(), line.to_vec(), asks.cloned());
            self.early.push(Early { session, line, asks });
            return None;
        }
        if let Some(id) = asks {
            self.owe(id, rpc::BAD_PARAMS, "nobody is in this session");
        }
        Some((Recipient::Connection, Some(format!("nobody is in the session {session}"))))
    }

    fn has_room_for(&self, line: &[u8]) -> bool {
        let held: usize = self.early.iter().map(|early| early.line.len()).sum();
        self.early.len() < MOST_EARLY && held + line.len() <= MOST_EARLY_BYTES
    }

    fn awaits_a_name(&self) -> bool {
        self.sent.values().any(|sent| sent.what == What::NewSession)
    }

    /// What came early goes to whom it is for as soon as that is known; or to nobody, once no name is awaited.
    fn release(&mut self, routed: &mut Vec<RoutedLine>) {
        for early in std::mem::take(&mut self.early) {
            let Early { session, line, asks } = early;
            let to = match self.sessions.get(&session) {
                Some(run) => Recipient::Run(run.clone()),
                None if self.awaits_a_name() => {
                    self.early.push(Early { session, line, asks });
                    continue;
                }
                None => Recipient::Connection,
            };
            let problem =
                (to == Recipient::Connection).then(|| format!("nobody is in the session {session}"));
            match (&to, asks) {
                (Recipient::Run(_), Some(id)) => drop(self.asked.insert(rpc::key(&id), (id, to.clone()))),
                (Recipient::Connection, Some(id)) => {
                    self.owe(&id, rpc::BAD_PARAMS, "nobody is in this session")
                }
                (_, None) => {}
            }
            routed.push(RoutedLine { to, line: ended(line), problem });
        }
    }

    fn answered(
        &mut self,
        id: &Value,
        answer: Result<Value, Refusal>,
        line: &[u8],
    ) -> (Recipient, Option<String>) {
        let Some(Sent { to, what }) = self.sent.remove(&rpc::key(id)) else {
            let to = id.as_str().and_then(run_of_id).unwrap_or(Recipient::Connection);
            return (to, Some(format!("nobody asked what {id} answers")));
        };
        match (what, &to, &answer) {
            (What::Initialize, ..) => self.greeting = Some(read_greeting(&answer, line)),
            (What::NewSession, Recipient::Run(run), Ok(result)) => {
                if let Some(session) = result["sessionId"].as_str() {
                    self.sessions.insert(session.to_owned(), run.clone());
                }
            }
            (What::Close { session }, Recipient::Run(run), Ok(_)) => {
                self.sessions.retain(|name, of| *name != session || of != run);
            }
            _ => {}
        }
        if to == Recipient::Connection {
            let id = id.as_str().unwrap_or_default().to_owned();
            self.answers.push((id, answer.map_err(|refusal| refusal.words())));
        }
        (to, None)
    }

    fn wrote(&mut self, message: Message) -> Recipient {
        match message {
            Message::Request { id, method, params } => {
                let to = id.as_str().and_then(run_of_id).unwrap_or(Recipient::Connection);
                self.counted(&id);
                let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
                let what = match method.as_str() {
                    "initialize" => What::Initialize,
                    "session/new" => What::NewSession,
                    "session/close" => What::Close { session },
                    "session/load" | "session/resume" => {
                        if let Recipient::Run(run) = &to {
                            self.sessions.insert(session, run.clone());
                        }
                        What::Other
                    }
                    _ => What::Other,
                };
                self.sent.insert(rpc::key(&id), Sent { to: to.clone(), what });
                to
            }
            Message::Notification { params, .. } => {
                let run = params["sessionId"].as_str().and_then(|session| self.sessions.get(session));
                run.map_or(Recipient::Connection, |run| Recipient::Run(run.clone()))
            }
            Message::Answer { id, .. } => {
                let key = owed_key(&id);
                self.owed.retain(|(known, _)| *known != key);
                self.asked.remove(&rpc::key(&id)).map_or(Recipient::Connection, |(_, to)| to)
            }
        }
    }

    /// Our own requests count on from what the journal has.
    fn counted(&mut self, id: &Value) {
        let own = id.as_str().and_then(|id| id.strip_prefix(OWN)?.strip_prefix(':')?.parse::<u64>().ok());
        self.next_request = self.next_request.max(own.unwrap_or(0));
    }

    fn owe(&mut self, id: &Value, code: i64, words: &str) {
        let key = owed_key(id);
        self.owed.retain(|(known, _)| *known != key);
        self.owed.push((key, rpc::refusal(id, code, words)));
    }
}

/// The connection's own lines.
impl Router {
    /// The first line of a connection.
    pub fn initialize(&mut self) -> Vec<u8> {
        let client = json!({ "name": "agency", "title": "Agency", "version": env!("CARGO_PKG_VERSION") });
        // Files and terminals are the agent's own affair: those that are offered them write past their own rules.
        let can = json!({
            "fs": { "readTextFile": false, "writeTextFile": false },
            "terminal": false,
            "session": { "notices": {}, "compaction": {} },
            "elicitation": { "form": {} },
        });
        let params = json!({ "protocolVersion": VERSION, "clientCapabilities": can, "clientInfo": client });
        self.request("initialize", &params).1
    }

    /// The sessions that the agent knows, of one directory or of all; under the id that is returned.
    pub fn request_sessions(&mut self, cwd: Option<&str>, cursor: Option<&str>) -> (String, Vec<u8>) {
        let mut params = json!({});
        for (name, value) in [("cwd", cwd), ("cursor", cursor)] {
            if let Some(value) = value {
                params[name] = json!(value);
            }
        }
        self.request("session/list", &params)
    }

    /// Logs in, in one of the ways that the agent named.
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
    let result = answer.as_ref().map_err(Refusal::words)?;
    match result["protocolVersion"].as_u64() {
        Some(VERSION) => {
            Ok(Greeting { line: ended(line.to_vec()), capabilities: Capabilities::read(result) })
        }
        Some(other) => {
            Err(format!("it speaks version {other} of the protocol, and Agency version {VERSION}"))
        }
        None => Err("it does not say which version of the protocol it speaks".to_owned()),
    }
}

/// Whose request an id of ours is.
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

fn ended(mut line: Vec<u8>) -> Vec<u8> {
    line.push(b'\n');
    line
}

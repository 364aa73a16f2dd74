//! One session of an agent that speaks ACP, folded into a conversation and a state.
//!
//! Fed by the session's own journal alone: the lines of this session in both directions, and notes that say when the
//! connection came and went. What was written is in there too, so a fold knows what is in flight, what is open and
//! what is owed.

mod commands;
mod heard;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use agency_core::agent_state::{AgentState, Timing};
use agency_core::conversation::{Conversation, Item, Outcome, Usage};
use agency_core::evidence::{Activity, Change, Detector, Mark, Why};
use agency_core::exit::ExitCode;
use agency_core::plain::one_line;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::asking::Asked;
use super::opening::{Capabilities, Stage, Way};
use super::rpc;
use super::settings::Settings;
use super::telling::Telling;
use crate::conversation::{AgentSetting, ConversationEvent, Inherited, Offers};
use crate::lines::{Line, Lines};
use crate::meter::Meter;

/// What must be known to begin a session, or to go on with one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcpTerms {
    /// The run whose session it is: ids of its requests begin with it.
    pub run: String,
    pub cwd: PathBuf,
    /// The session to go on with. Absent: a new one.
    pub session_id: Option<String>,
    /// Nothing begins if it cannot go on with that session.
    pub must_resume: bool,
    /// What the user wants it to be set to.
    pub mode: Option<String>,
    pub model: Option<String>,
    /// What the agent may use in this session.
    pub servers: Vec<McpServer>,
}

/// A program that the agent starts for a session, and speaks MCP with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServer {
    pub name: String,
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
}

/// A note in a session's journal: the connection that it lives on came, or went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ConnectionNote {
    /// The next line is the agent's answer to `initialize`.
    Connected,
    Lost {
        #[serde(default)]
        cause: Option<String>,
    },
    /// Nobody brings it back by itself.
    GivenUp {
        message: String,
        #[serde(default)]
        cause: Option<String>,
    },
}

pub struct AcpRun {
    terms: AcpTerms,
    out: Lines,
    err: Lines,
    written: Lines,
    telling: Telling,
    detector: Detector,
    /// Bytes of output so far.
    offset: u64,
    /// Connections so far: ids of the agent's requests begin again with each.
    epoch: u64,
    stage: Stage,
    capabilities: Capabilities,
    settings: Settings,
    session_id: Option<String>,
    /// The session that this run is in or is to be in.
    target: Option<String>,
    /// Our requests that have no answer yet, by their ids.
    sent: BTreeMap<String, Sent>,
    /// Lines that set what was asked for, and are not in the journal yet.
    wanted: Vec<(String, Vec<u8>)>,
    /// Answers that are owed, by the agent's ids.
    replies: Vec<(String, Vec<u8>)>,
    /// Requests of the agent that nobody has answered, oldest first.
    open: Vec<Asked>,
    /// Who said that they answer a request, and why, by its id.
    deciders: BTreeMap<String, (String, Option<String>)>,
    turn: Option<Turn>,
    /// A prompt was made and is not in the journal yet.
    writing: Option<String>,
    /// The agent tells a session again: whether it is kept.
    replay: Option<Replay>,
    /// There was a turn in this run.
    begun: bool,
    /// What a turn that failed said last.
    ended_badly: Option<String>,
    usage: Usage,
    meter: Meter,
    /// What somebody set it to while it lived, as far as it agreed.
    chosen: BTreeMap<AgentSetting, String>,
    next_request: u64,
    /// How many times a session was asked for.
    openings: u64,
    /// The last that the agent printed besides.
    last_words: Option<String>,
}

/// A request of ours.
#[derive(Clone, Debug, PartialEq)]
enum Sent {
    Open(Way),
    Prompt,
    Set(AgentSetting, String),
    Login,
    Other,
}

/// A prompt in flight.
#[derive(Debug)]
struct Turn {
    /// The key of its request.
    key: String,
    text: String,
    is_cancelled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replay {
    Kept,
    Swallowed,
}

impl AcpRun {
    pub fn began(timing: Timing, now: Duration, terms: AcpTerms) -> AcpRun {
        let (conversation, usage, chosen) = (Conversation::default(), Usage::default(), BTreeMap::new());
        AcpRun::going_on(Inherited { conversation, usage, session_id: None, chosen }, timing, now, terms)
    }

    /// A run that goes on with a conversation.
    pub(crate) fn going_on(inherited: Inherited, timing: Timing, now: Duration, terms: AcpTerms) -> AcpRun {
        let mut run = AcpRun {
            target: terms.session_id.clone(),
            session_id: terms.session_id.clone().or(inherited.session_id),
            terms,
            out: Lines::default(),
            err: Lines::default(),
            written: Lines::default(),
            telling: Telling::new(inherited.conversation),
            detector: Detector::new(timing, now),
            offset: 0,
            epoch: 0,
            stage: Stage::Down,
            capabilities: Capabilities::default(),
            settings: Settings::default(),
            sent: BTreeMap::new(),
            wanted: Vec::new(),
            replies: Vec::new(),
            open: Vec::new(),
            deciders: BTreeMap::new(),
            turn: None,
            writing: None,
            replay: None,
            begun: false,
            ended_badly: None,
            usage: inherited.usage,
            meter: Meter::after(inherited.usage.cost_usd),
            chosen: inherited.chosen,
            next_request: 1,
            openings: 0,
            last_words: None,
        };
        run.judge(now);
        run
    }

    pub(crate) fn inherited(self) -> Inherited {
        let Self { telling, usage, session_id, chosen, .. } = self;
        Inherited { conversation: telling.conversation, usage, session_id, chosen }
    }

    /// What the wall's clock is ahead of the one that events are told by.
    pub fn set_wall_offset(&mut self, offset: Duration) {
        self.telling.conversation.set_wall_offset(offset);
    }

    pub fn conversation(&self) -> &Conversation {
        &self.telling.conversation
    }

    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    pub fn usage(&self) -> Usage {
        self.usage
    }

    pub fn state(&self) -> AgentState {
        self.detector.state()
    }

    pub fn detector(&self) -> &Detector {
        &self.detector
    }

    pub fn take_changes(&mut self) -> Vec<Change> {
        self.detector.take_changes()
    }

    pub fn deadline(&self) -> Option<Duration> {
        self.detector.deadline()
    }

    pub fn tick(&mut self, now: Duration) {
        self.detector.tick(now);
    }

    /// The requests that wait for an answer, oldest first.
    pub fn open_requests(&self) -> impl Iterator<Item = &str> {
        self.open.iter().map(|asked| asked.id.as_str())
    }

    /// Never: where the agent does not have a session any more, this run begins another.
    pub fn has_lost_session(&self) -> bool {
        false
    }

    /// A line to the agent was begun and not ended.
    pub fn is_half_written(&self) -> bool {
        self.written.has_rest()
    }

    /// A turn is in progress.
    pub fn is_working(&self) -> bool {
        self.turn.is_some()
    }

    /// The session is there and takes a message.
    pub fn is_ready(&self) -> bool {
        self.stage == Stage::Ready && self.turn.is_none() && self.writing.is_none()
    }

    pub fn modes(&self) -> Offers {
        self.settings.offers(AgentSetting::Mode)
    }

    pub fn models(&self) -> Offers {
        self.settings.offers(AgentSetting::Model)
    }

    pub fn on_output(&mut self, bytes: &[u8], at: Duration) -> Vec<ConversationEvent> {
        let mut events = Vec::new();
        self.offset += bytes.len() as u64;
        for line in self.out.feed(bytes) {
            match line {
                Line::Whole(line) => self.line(&line, at, &mut events),
                Line::TooLong(line) => {
                    let cause = format!("it begins with {}", String::from_utf8_lossy(&line));
                    self.telling.failed("a line has no end", Some(cause), at, &mut events);
                }
            }
        }
        self.judge(at);
        events
    }

    fn line(&mut self, line: &[u8], at: Duration, events: &mut Vec<ConversationEvent>) {
        match rpc::read(line) {
            Ok(messages) => messages.into_iter().for_each(|message| self.heard(message, at, events)),
            Err(cause) => {
                let shown = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
                self.telling.failed(&format!("not a message: {shown}"), Some(cause), at, events);
            }
        }
    }

    /// What it prints besides is its log, by the protocol: only its last words may say why it ended.
    pub fn on_errors(&mut self, bytes: &[u8], _at: Duration) {
        for line in self.err.feed(bytes) {
            if let Line::Whole(line) = line {
                let text = one_line(&String::from_utf8_lossy(&line), 300);
                self.last_words = Some(text).filter(|text| !text.is_empty()).or(self.last_words.take());
            }
        }
    }

    /// Something that it said is not in the journal.
    pub fn on_gap(&mut self, at: Duration) {
        self.out = Lines::default();
        self.telling.notice("some of what the agent said here is lost".to_owned(), at);
    }

    /// What we wrote to it, as the journal has it.
    pub fn on_input(&mut self, bytes: &[u8], at: Duration) -> Vec<ConversationEvent> {
        let mut events = Vec::new();
        for line in self.written.feed(bytes) {
            let Line::Whole(line) = line else { continue };
            for message in rpc::read(&line).unwrap_or_default() {
                self.wrote(message, at, &mut events);
            }
        }
        self.judge(at);
        events
    }

    pub fn on_connection(&mut self, note: &ConnectionNote, at: Duration) -> Vec<ConversationEvent> {
        let mut events = Vec::new();
        match note {
            ConnectionNote::Connected => {
                // One that nobody saw end has ended all the same.
                self.disconnected(None, at, &mut events);
                self.epoch += 1;
                // Another process counts its calls anew.
                self.telling.conversation.settle_all();
                self.stage = Stage::Greeting;
            }
            ConnectionNote::Lost { cause } => self.disconnected(cause.clone(), at, &mut events),
            ConnectionNote::GivenUp { message, cause } => {
                self.disconnected(cause.clone(), at, &mut events);
                self.telling.failed(message, cause.clone(), at, &mut events);
            }
        }
        self.judge(at);
        events
    }

    /// Noted before an answer is written: who gives it, and why.
    pub fn on_decision(&mut self, id: &str, by: &str, why: Option<&str>) {
        if self.open.iter().any(|asked| asked.id == id) {
            self.deciders.insert(id.to_owned(), (by.to_owned(), why.map(str::to_owned)));
        }
    }

    pub(crate) fn on_exit_note(&mut self, item: Item, at: Duration) {
        self.telling.conversation.add(item, at);
    }

    pub fn on_exit(&mut self, code: ExitCode, at: Duration) -> Vec<ConversationEvent> {
        let mut events = Vec::new();
        if let Some(line) = self.out.rest() {
            self.line(&line, at, &mut events);
        }
        let was_working = self.turn.take().is_some();
        self.disconnected(None, at, &mut events);
        if was_working {
            let text = "the session ended in the middle of a turn; what was asked is not sent again";
            self.telling.notice(text.to_owned(), at);
        }
        self.detector.on_exit(code, self.mark(at));
        events
    }

    /// All that lived on a connection is gone with it.
    fn disconnected(&mut self, cause: Option<String>, at: Duration, events: &mut Vec<ConversationEvent>) {
        self.telling.pause(events);
        if self.replay.take().is_some() {
            self.telling.history_ends();
        }
        for asked in std::mem::take(&mut self.open) {
            self.close(&asked.id, withdrawn());
            events.push(ConversationEvent::ApprovalWithdrawn { id: asked.id });
        }
        self.telling.tools.fail(&mut self.telling.conversation);
        if let Some(turn) = self.turn.take() {
            let shown = one_line(&turn.text, 80);
            let message = format!("`{shown}` was lost with the connection; it is not sent again");
            self.ended_badly = Some(message.clone());
            self.telling.failed(&message, cause.or(self.last_words.take()), at, events);
        }
        (self.out, self.written) = (Lines::default(), Lines::default());
        (self.wanted, self.replies, self.writing) = (Vec::new(), Vec::new(), None);
        self.sent.clear();
        self.deciders.clear();
        self.stage = Stage::Down;
    }

    fn close(&mut self, id: &str, outcome: Outcome) {
        let key = approval_key(id);
        self.telling.conversation.update(&key, |item| match item {
            Item::Approval(approval) if approval.outcome.is_none() => {
                approval.outcome = Some(outcome);
                true
            }
            _ => false,
        });
        self.telling.conversation.settle(&key);
    }

    fn mark(&self, at: Duration) -> Mark {
        Mark { at, offset: self.offset }
    }

    fn judge(&mut self, at: Duration) {
        let (activity, rule, detail) = self.stands();
        self.detector.on_protocol(activity, rule, detail, self.mark(at));
    }

    /// What it does, which rule says so, and what it waits for.
    fn stands(&self) -> (Activity, &'static str, Option<String>) {
        use Activity::{Waiting, Working};
        if let Some(asked) = self.open.first() {
            let (why, rule) = match asked.is_permission() {
                true => (Why::Permission, "it asks for a permission"),
                false => (Why::Question, "it asks a question"),
            };
            return (Waiting(why), rule, Some(asked.title.clone()));
        }
        match &self.stage {
            Stage::Down if self.epoch == 0 => return (Working, "the agent starts", None),
            Stage::Down => return (Working, "the connection is made again", None),
            Stage::Greeting | Stage::Opening { .. } | Stage::Settling => {
                return (Working, "the session is opened", None);
            }
            Stage::Failed { why } => return (Waiting(Why::Error), "there is no session", Some(why.clone())),
            Stage::Locked { .. } | Stage::Ready | Stage::Closed => {}
        }
        match (&self.turn, &self.ended_badly) {
            (Some(_), _) => (Working, "a turn is in progress", None),
            (None, Some(words)) => (
                Waiting(Why::Error),
                "the turn failed",
                Some(words.clone()).filter(|words| !words.is_empty()),
            ),
            (None, None) if self.begun => (Waiting(Why::Finished), "the turn is over", None),
            (None, None) => (Waiting(Why::Prompt), "it takes messages", None),
        }
    }
}

fn approval_key(id: &str) -> String {
    format!("approval {id}")
}

/// Nobody decided.
fn withdrawn() -> Outcome {
    Outcome { allowed: false, cancelled: true, ..Outcome::default() }
}

/// The text of a prompt that was written.
fn prompt_text(params: &Value) -> String {
    let blocks = params["prompt"].as_array().into_iter().flatten();
    let texts = blocks.filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

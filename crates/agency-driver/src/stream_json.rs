//! The stream-json driver: Claude Code's lines of JSON, both ways, folded into a conversation and a state.
//!
//! Fed by journal records alone: what was written to the agent is in the journal too, so a fold knows every
//! prompt, every answer and every request that is still open. What it does not know it keeps and shows.

mod commands;
mod dials;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use agency_core::agent_state::{AgentState, Timing};
use agency_core::conversation::{
    Approval, Choice, ChoiceKind, Conversation, Item, Outcome, ToolCall, ToolStatus, TurnEnd, Usage,
};
use agency_core::evidence::{Activity, Change, Detector, Mark, Why};
use agency_core::exit::ExitCode;
use agency_core::plain::one_line;
use serde_json::{Value, json};

use crate::conversation::{AgentSetting, ConversationEvent, Inherited, answer_of};
use crate::lines::{Line, Lines};
use crate::meter::Meter;
use dials::{Dials, Settled};

pub struct StreamRun {
    out: Lines,
    err: Lines,
    written: Lines,
    conversation: Conversation,
    detector: Detector,
    /// Bytes of output so far.
    offset: u64,
    session_id: Option<String>,
    /// Requests of the agent that nobody has answered, oldest first.
    open: Vec<Asked>,
    /// Requests that nobody here can answer, and whose refusal has not been written.
    owed: Vec<String>,
    /// Who said that they answer a request, and why, by its id.
    deciders: BTreeMap<String, (String, Option<String>)>,
    /// Tools at work, by the id of their call.
    tools: Vec<String>,
    /// It tells its own state; what results mean is guessed no longer.
    tells_state: bool,
    working: bool,
    /// There was a turn in this run.
    begun: bool,
    /// It has said in this run which tools and models there are, so its session is there.
    is_in_session: bool,
    lost_session: bool,
    /// What a turn that failed said last.
    ended_badly: Option<String>,
    /// The message whose parts are arriving.
    message: String,
    usage: Usage,
    meter: Meter,
    next_request: u64,
    dials: Dials,
}

#[derive(Clone, Debug, PartialEq)]
struct Asked {
    id: String,
    tool: String,
    title: String,
    input: Value,
    /// What the agent would remember, should it be allowed for good.
    suggestions: Vec<Value>,
}

impl StreamRun {
    pub fn began(timing: Timing, now: Duration) -> StreamRun {
        let mut run = StreamRun {
            out: Lines::default(),
            err: Lines::default(),
            written: Lines::default(),
            conversation: Conversation::default(),
            detector: Detector::new(timing, now),
            offset: 0,
            session_id: None,
            open: Vec::new(),
            owed: Vec::new(),
            deciders: BTreeMap::new(),
            tools: Vec::new(),
            tells_state: false,
            working: false,
            begun: false,
            is_in_session: false,
            lost_session: false,
            ended_badly: None,
            message: String::new(),
            usage: Usage::default(),
            meter: Meter::default(),
            next_request: 1,
            dials: Dials::default(),
        };
        // Its input is a pipe: it takes what is written there whenever it gets to it.
        run.judge(now);
        run
    }

    /// A run that goes on with a conversation.
    pub(crate) fn going_on(inherited: Inherited, timing: Timing, now: Duration) -> StreamRun {
        let mut run = StreamRun::began(timing, now);
        (run.conversation, run.usage, run.session_id) =
            (inherited.conversation, inherited.usage, inherited.session_id);
        run.meter = Meter::after(run.usage.cost_usd);
        run.dials = Dials::again(inherited.chosen);
        run
    }

    pub(crate) fn inherited(self) -> Inherited {
        let Self { conversation, usage, session_id, dials, .. } = self;
        Inherited { conversation, usage, session_id, chosen: dials.chosen() }
    }

    /// What the wall's clock is ahead of the one that events are told by.
    pub fn set_wall_offset(&mut self, offset: Duration) {
        self.conversation.set_wall_offset(offset);
    }

    pub fn conversation(&self) -> &Conversation {
        &self.conversation
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

    /// It was to go on with a session that it does not have.
    pub fn has_lost_session(&self) -> bool {
        self.lost_session
    }

    /// A line to the agent was begun and not ended.
    pub fn is_half_written(&self) -> bool {
        self.written.has_rest()
    }

    /// A turn is in progress.
    pub fn is_working(&self) -> bool {
        self.working
    }

    pub fn on_output(&mut self, bytes: &[u8], at: Duration) -> Vec<ConversationEvent> {
        let mut events = Vec::new();
        self.offset += bytes.len() as u64;
        for line in self.out.feed(bytes) {
            match line {
                Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => {}
                Line::Whole(line) => self.line(&line, at, &mut events),
                Line::TooLong(line) => {
                    let cause = format!("it begins with {}", String::from_utf8_lossy(&line));
                    self.failed("a line has no end", Some(cause), at, &mut events);
                }
            }
        }
        self.judge(at);
        events
    }

    /// What it prints besides: shown, never taken for a message.
    pub fn on_errors(&mut self, bytes: &[u8], at: Duration) {
        for line in self.err.feed(bytes) {
            if let Line::Whole(line) = line {
                let text = String::from_utf8_lossy(&line).trim().to_owned();
                if !text.is_empty() {
                    self.conversation.add(Item::Notice { text }, at);
                }
            }
        }
    }

    /// Something that it said is not in the journal.
    pub fn on_gap(&mut self, at: Duration) {
        self.out = Lines::default();
        self.conversation
            .add(Item::Notice { text: "some of what the agent said here is lost".to_owned() }, at);
    }

    /// What we wrote to it, as the journal has it.
    pub fn on_input(&mut self, bytes: &[u8], at: Duration) -> Vec<ConversationEvent> {
        let mut events = Vec::new();
        for line in self.written.feed(bytes) {
            let Line::Whole(line) = line else { continue };
            if let Ok(message) = serde_json::from_slice::<Value>(&line) {
                self.sent(&message, at, &mut events);
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
        self.conversation.add(item, at);
    }

    pub fn on_exit(&mut self, code: ExitCode, at: Duration) -> Vec<ConversationEvent> {
        let mut events = Vec::new();
        if let Some(line) = self.out.rest() {
            self.line(&line, at, &mut events);
        }
        for asked in std::mem::take(&mut self.open) {
            self.close(&asked.id, withdrawn());
            events.push(ConversationEvent::ApprovalWithdrawn { id: asked.id });
        }
        for id in std::mem::take(&mut self.tools) {
            self.conversation.update(&tool_key(&id), |item| ended(item, ToolStatus::Failed, None));
        }
        if self.working {
            let text = "the agent ended in the middle of its turn; what it was asked is not sent again";
            self.conversation.add(Item::Notice { text: text.to_owned() }, at);
        }
        self.detector.on_exit(code, self.mark(at));
        events
    }

    fn mark(&self, at: Duration) -> Mark {
        Mark { at, offset: self.offset }
    }

    fn line(&mut self, line: &[u8], at: Duration, events: &mut Vec<ConversationEvent>) {
        // Several messages may stand in one line.
        let stream = serde_json::Deserializer::from_slice(line).into_iter::<Value>();
        for message in stream {
            match message {
                Ok(message) => self.message(&message, at, events),
                Err(cause) => {
                    let shown = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
                    self.failed(&format!("not a message: {shown}"), Some(cause.to_string()), at, events);
                    return;
                }
            }
        }
    }

    fn message(&mut self, message: &Value, at: Duration, events: &mut Vec<ConversationEvent>) {
        if let Some(id) = text(&message["session_id"]).filter(|id| !id.is_empty()) {
            self.session_id = Some(id);
        }
        match message["type"].as_str() {
            Some("assistant") => self.assistant(message, at, events),
            Some("user") => self.results(message, at, events),
            Some("stream_event") => self.partial(message, at, events),
            Some("control_request") => self.asked(message, at, events),
            Some("control_cancel_request") => self.taken_back(message, at, events),
            Some("control_response") => self.settled(message, at, events),
            Some("result") => self.result(message, at, events),
            Some("error") => {
                let words = text(&message["message"]).or(text(&message["error"]["message"]));
                let raw = words.is_none().then(|| cut(&message.to_string()));
                self.failed(words.as_deref().unwrap_or("the agent reports an error"), raw, at, events);
            }
            Some("system") => self.system(message, at, events),
            other => self.unknown(other.unwrap_or("a message without a type"), message, at, events),
        }
    }

    /// What nobody here knows, or what is not as it should be, is shown as it came.
    fn unknown(&mut self, kind: &str, what: &Value, at: Duration, events: &mut Vec<ConversationEvent>) {
        let kind = one_line(kind, 60);
        self.conversation.add(Item::Notice { text: format!("{kind}: {}", cut(&what.to_string())) }, at);
        events.push(ConversationEvent::Other { kind });
    }

    fn taken_back(&mut self, message: &Value, at: Duration, events: &mut Vec<ConversationEvent>) {
        let Some(id) = text(&message["request_id"]) else {
            return self.unknown("control_cancel_request", message, at, events);
        };
        self.open.retain(|asked| asked.id != id);
        self.owed.retain(|owed| *owed != id);
        self.close(&id, withdrawn());
        events.push(ConversationEvent::ApprovalWithdrawn { id });
    }

    fn system(&mut self, message: &Value, at: Duration, events: &mut Vec<ConversationEvent>) {
        match message["subtype"].as_str() {
            Some("session_state_changed") => {
                (self.tells_state, self.is_in_session) = (true, true);
                self.working = message["state"].as_str() != Some("idle");
            }
            Some("init" | "status") => {
                self.is_in_session = true;
                for (setting, key) in [(AgentSetting::Model, "model"), (AgentSetting::Mode, "permissionMode")]
                {
                    let notice = self.dials.on_told(setting, message[key].as_str());
                    self.notice(notice, at);
                }
            }
            Some("api_retry") => {
                let notice =
                    Item::Notice { text: format!("the model does not answer; try {}", message["attempt"]) };
                self.conversation.upsert(RETRY, at, || notice.clone(), |item| replaced(item, notice.clone()));
            }
            Some("permission_denied") => {
                self.conversation
                    .add(Item::Notice { text: format!("denied: {}", cut(&message.to_string())) }, at);
            }
            Some(other) => events.push(ConversationEvent::Other { kind: format!("system {other}") }),
            None => self.unknown("system", message, at, events),
        }
    }

    /// The answer to a request of ours.
    fn settled(&mut self, message: &Value, at: Duration, events: &mut Vec<ConversationEvent>) {
        let response = &message["response"];
        if !response["request_id"].is_string() {
            return self.unknown("control_response", message, at, events);
        }
        let Some(Settled { request, outcome, notice }) = self.dials.on_answer(response) else { return };
        self.notice(notice, at);
        events.push(ConversationEvent::SettingAnswered { request, outcome });
    }

    fn notice(&mut self, text: Option<String>, at: Duration) {
        if let Some(text) = text {
            self.conversation.add(Item::Notice { text }, at);
        }
    }

    /// Parts of a message that is still being written.
    fn partial(&mut self, message: &Value, at: Duration, events: &mut Vec<ConversationEvent>) {
        let event = &message["event"];
        match event["type"].as_str() {
            Some("message_start") => self.message = text(&event["message"]["id"]).unwrap_or_default(),
            Some("content_block_delta") => {
                let key = format!("{}/{}", self.message, event["index"]);
                let delta = &event["delta"];
                if let Some(more) = delta["text"].as_str() {
                    self.conversation.upsert(
                        &key,
                        at,
                        || Item::Assistant { text: String::new() },
                        grow(more),
                    );
                } else if let Some(more) = delta["thinking"].as_str() {
                    self.conversation.upsert(&key, at, || Item::Thinking { text: String::new() }, grow(more));
                } else if !delta["type"].is_string() || is_text(delta) {
                    self.unknown("stream_event", message, at, events);
                }
            }
            // The beginnings and ends of parts say nothing that the parts do not.
            Some(_) => {}
            None => self.unknown("stream_event", message, at, events),
        }
    }

    fn assistant(&mut self, message: &Value, at: Duration, events: &mut Vec<ConversationEvent>) {
        let id = text(&message["message"]["id"]).unwrap_or_default();
        let Some(blocks) = blocks(&message["message"]["content"]) else {
            return self.unknown("assistant", message, at, events);
        };
        for block in blocks {
            let word = |name: &str| text(&block[name]);
            match (block["type"].as_str(), word("text"), word("thinking")) {
                (Some("text"), Some(said), _) => {
                    self.whole(&id, Item::Assistant { text: said.clone() }, at);
                    events.push(ConversationEvent::Output { text: said });
                }
                (Some("thinking"), _, Some(thought)) => {
                    self.whole(&id, Item::Thinking { text: thought.clone() }, at);
                    events.push(ConversationEvent::Thinking { text: thought });
                }
                (Some("tool_use"), ..) => self.tool_use(&block, at, events),
                // Nobody but the model can read it.
                (Some("redacted_thinking"), ..) => {}
                (other, ..) => self.unknown(other.unwrap_or("assistant"), &block, at, events),
            }
        }
    }

    /// The whole text takes the place of what came of it in parts.
    fn whole(&mut self, message: &str, item: Item, at: Duration) {
        let is_begun = |known: &Item| match (known, &item) {
            (Item::Assistant { text: part }, Item::Assistant { text: all })
            | (Item::Thinking { text: part }, Item::Thinking { text: all }) => all.starts_with(part.as_str()),
            _ => false,
        };
        let keys = (0..MOST_BLOCKS).map(|index| format!("{message}/{index}"));
        let begun = keys.into_iter().find(|key| self.conversation.get(key).is_some_and(is_begun));
        match begun.filter(|_| !message.is_empty()) {
            Some(key) => {
                self.conversation.update(&key, |known| replaced(known, item));
                self.conversation.settle(&key);
            }
            None => self.conversation.add(item, at),
        }
    }

    fn tool_use(&mut self, block: &Value, at: Duration, events: &mut Vec<ConversationEvent>) {
        let (Some(id), Some(name)) = (text(&block["id"]), text(&block["name"])) else {
            return self.unknown("tool_use", block, at, events);
        };
        let input = block["input"].clone();
        let call = ToolCall {
            id: id.clone(),
            title: title(&name, &input),
            name: name.clone(),
            input: input.clone(),
            status: ToolStatus::Running,
            output: None,
        };
        self.conversation.upsert(&tool_key(&id), at, || Item::ToolCall(call), |_| false);
        self.tools.push(id.clone());
        events.push(ConversationEvent::ToolUse { id, name, input });
    }

    /// What the user's side of the conversation got back from tools.
    fn results(&mut self, message: &Value, at: Duration, events: &mut Vec<ConversationEvent>) {
        let Some(blocks) = blocks(&message["message"]["content"]) else {
            return self.unknown("user", message, at, events);
        };
        for block in blocks {
            match (block["type"].as_str(), text(&block["text"])) {
                (Some("tool_result"), _) => self.tool_result(&block, at, events),
                (Some("text"), Some(text)) => self.conversation.add(Item::Notice { text }, at),
                (other, _) => self.unknown(other.unwrap_or("user"), &block, at, events),
            }
        }
    }

    fn tool_result(&mut self, block: &Value, at: Duration, events: &mut Vec<ConversationEvent>) {
        let Some(id) = text(&block["tool_use_id"]) else {
            return self.unknown("tool_result", block, at, events);
        };
        let output = content(&block["content"]);
        let success = !block["is_error"].as_bool().unwrap_or(false);
        let name = match self.conversation.get(&tool_key(&id)) {
            Some(Item::ToolCall(call)) => call.name.clone(),
            _ => String::new(),
        };
        let status = if success { ToolStatus::Completed } else { ToolStatus::Failed };
        self.conversation.update(&tool_key(&id), |item| ended(item, status, Some(output.clone())));
        self.tools.retain(|tool| *tool != id);
        events.push(ConversationEvent::ToolResult { id, name, output, success });
    }

    fn asked(&mut self, message: &Value, at: Duration, events: &mut Vec<ConversationEvent>) {
        let (Some(id), request) = (text(&message["request_id"]), &message["request"]) else {
            return self.unknown("control_request", message, at, events);
        };
        if request["subtype"].as_str() != Some("can_use_tool") {
            let kind = format!("request {}", request["subtype"].as_str().unwrap_or("without a kind"));
            // It may wait for ever: better that it hears no.
            self.owed.push(id);
            return self.unknown(&kind, request, at, events);
        }
        let tool = text(&request["tool_name"]).unwrap_or_else(|| "a tool without a name".to_owned());
        let input = request["input"].clone();
        let title = title(&tool, &input);
        let asked = Asked {
            id: id.clone(),
            tool: tool.clone(),
            title: title.clone(),
            input: input.clone(),
            suggestions: request["permission_suggestions"].as_array().cloned().unwrap_or_default(),
        };
        self.open.retain(|known| known.id != id);
        self.open.push(asked);
        let approval = Approval {
            id: id.clone(),
            tool: tool.clone(),
            title: title.clone(),
            input,
            choices: choices(request),
            outcome: None,
        };
        self.conversation.upsert(&approval_key(&id), at, || Item::Approval(approval), |_| false);
        events.push(ConversationEvent::ApprovalRequested { id, tool, title });
    }

    fn result(&mut self, message: &Value, at: Duration, events: &mut Vec<ConversationEvent>) {
        let reason = text(&message["terminal_reason"]).or(text(&message["subtype"]));
        // A turn that somebody ended has not failed.
        let was_interrupted = reason.as_deref().is_some_and(|reason| reason.starts_with("aborted"));
        let failed = !was_interrupted
            && (message["is_error"].as_bool().unwrap_or(false)
                || message["subtype"].as_str().is_some_and(|subtype| subtype.starts_with("error")));
        if let Some(total) = message["total_cost_usd"].as_f64() {
            self.meter.told(total);
        }
        let usage = &message["usage"];
        let count = |name: &str| usage[name].as_u64().unwrap_or(0);
        let turn = Usage {
            input_tokens: count("input_tokens") + count("cache_creation_input_tokens"),
            output_tokens: count("output_tokens"),
            cached_tokens: count("cache_read_input_tokens"),
            cost_usd: self.meter.total(),
        };
        self.usage.input_tokens += turn.input_tokens;
        self.usage.output_tokens += turn.output_tokens;
        self.usage.cached_tokens += turn.cached_tokens;
        self.usage.cost_usd = turn.cost_usd;
        let end = TurnEnd { text: text(&message["result"]), reason, failed, usage: turn };
        let words = end.text.as_ref().or(end.reason.as_ref()).map(|words| cut(words));
        self.ended_badly = failed.then(|| words.unwrap_or_default());
        self.conversation.settle(RETRY);
        self.begun = true;
        if ["subtype", "result"].iter().any(|name| !message[*name].is_null() && !message[*name].is_string()) {
            // The turn is over all the same, or nobody could go on.
            self.unknown("result", message, at, events);
        }
        if failed && !self.is_in_session && message["num_turns"].as_u64() == Some(0) {
            (self.lost_session, self.session_id) = (true, None);
            let text = "the agent does not have this session any more: the next start begins a new one";
            self.conversation.add(Item::Notice { text: text.to_owned() }, at);
        }
        if !self.tells_state {
            self.working = false;
        }
        self.conversation.add(Item::TurnEnd(end.clone()), at);
        events.push(ConversationEvent::TurnEnd(end));
    }

    fn failed(
        &mut self,
        message: &str,
        cause: Option<String>,
        at: Duration,
        events: &mut Vec<ConversationEvent>,
    ) {
        self.conversation.add(Item::Error { message: message.to_owned(), cause: cause.clone() }, at);
        events.push(ConversationEvent::Error { message: message.to_owned(), cause });
    }

    /// A line that we wrote.
    fn sent(&mut self, message: &Value, at: Duration, events: &mut Vec<ConversationEvent>) {
        match message["type"].as_str() {
            Some("user") => {
                self.begun = true;
                self.conversation.add(Item::User { text: content(&message["message"]["content"]) }, at);
                self.ended_badly = None;
                self.working = true;
            }
            Some("control_response") => {
                let Some(id) = text(&message["response"]["request_id"]) else { return };
                let answer = &message["response"]["response"];
                self.owed.retain(|owed| *owed != id);
                if !self.open.iter().any(|asked| asked.id == id) {
                    return;
                }
                let (by, why) = self.deciders.remove(&id).unzip();
                let outcome = Outcome {
                    allowed: answer["behavior"].as_str() == Some("allow"),
                    cancelled: false,
                    message: text(&answer["message"]).or(why.flatten()),
                    by,
                    answer: answer_of(&answer["updatedInput"]["answers"]),
                };
                self.open.retain(|asked| asked.id != id);
                self.close(&id, outcome.clone());
                events.push(ConversationEvent::ApprovalDecided { id, outcome });
            }
            Some("control_request") => {
                let number =
                    message["request_id"].as_str().and_then(|id| id.strip_prefix("agency-")?.parse().ok());
                self.next_request = self.next_request.max(number.map_or(0, |number: u64| number + 1));
                if let Some(id) = message["request_id"].as_str() {
                    self.dials.on_sent(id, &message["request"]);
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, id: &str, outcome: Outcome) {
        let key = approval_key(id);
        self.conversation.update(&key, |item| match item {
            Item::Approval(approval) if approval.outcome.is_none() => {
                approval.outcome = Some(outcome);
                true
            }
            _ => false,
        });
        // Should the agent ask under the same id again, that is another request.
        self.conversation.settle(&key);
    }

    fn judge(&mut self, at: Duration) {
        let (activity, rule, detail) = self.stands();
        self.detector.on_protocol(activity, rule, detail, self.mark(at));
    }

    /// What it does, which rule says so, and what it waits for.
    fn stands(&self) -> (Activity, &'static str, Option<String>) {
        use Activity::{Waiting, Working};
        if let Some(asked) = self.open.first() {
            let (why, rule) = match asked.tool == ASK {
                true => (Why::Question, "it asks a question"),
                false => (Why::Permission, "it asks for a permission"),
            };
            return (Waiting(why), rule, Some(asked.title.clone()));
        }
        match (self.working, &self.ended_badly) {
            (true, _) if self.tells_state => (Working, "it says that it works", None),
            (true, _) => (Working, "a turn is in progress", None),
            (false, Some(words)) => (
                Waiting(Why::Error),
                "the turn failed",
                Some(words.clone()).filter(|words| !words.is_empty()),
            ),
            (false, None) if self.begun => (Waiting(Why::Finished), "the turn is over", None),
            (false, None) => (Waiting(Why::Prompt), "it takes messages", None),
        }
    }
}

/// The entry about a model that does not answer.
const RETRY: &str = "retry";

/// The tool with which it asks the user something.
const ASK: &str = "AskUserQuestion";

/// The choices of every permission.
const ALLOW: &str = "allow";
const ALLOW_ALWAYS: &str = "allow-always";
const DENY: &str = "deny";

/// More parts than this no message has.
const MOST_BLOCKS: usize = 64;

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

fn tool_key(id: &str) -> String {
    format!("tool {id}")
}

fn approval_key(id: &str) -> String {
    format!("approval {id}")
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// The parts of a message; a text alone is one of them.
fn blocks(content: &Value) -> Option<Vec<Value>> {
    match content {
        Value::String(text) => Some(vec![json!({ "type": "text", "text": text })]),
        Value::Array(blocks) => Some(blocks.clone()),
        _ => None,
    }
}

/// It says that it is text, so it should have some.
fn is_text(delta: &Value) -> bool {
    matches!(delta["type"].as_str(), Some("text_delta" | "thinking_delta"))
}

fn grow(more: &str) -> impl FnOnce(&mut Item) -> bool + '_ {
    move |item| match item {
        Item::Assistant { text } | Item::Thinking { text } => {
            text.push_str(more);
            !more.is_empty()
        }
        _ => false,
    }
}

fn replaced(known: &mut Item, item: Item) -> bool {
    let is_new = *known != item;
    *known = item;
    is_new
}

/// A tool's end.
fn ended(item: &mut Item, status: ToolStatus, output: Option<String>) -> bool {
    let Item::ToolCall(call) = item else { return false };
    call.status = status;
    call.output = output.or(call.output.take());
    true
}

/// Nobody decided.
fn withdrawn() -> Outcome {
    Outcome { allowed: false, cancelled: true, ..Outcome::default() }
}

/// The text of a content, which is a string or blocks.
fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().map(|block| match block["text"].as_str() {
                Some(text) => text.to_owned(),
                None => format!("[{}]", block["type"].as_str().unwrap_or("something")),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// What is shown in a line.
fn cut(text: &str) -> String {
    one_line(text, 300)
}

/// A tool's call in a line: its name and the argument that tells most.
fn title(tool: &str, input: &Value) -> String {
    const TELLING: [&str; 8] =
        ["command", "file_path", "path", "pattern", "url", "query", "description", "prompt"];
    if let Some(question) = input["questions"][0]["question"].as_str() {
        return cut(question);
    }
    let argument = TELLING.iter().find_map(|name| input[*name].as_str());
    match argument {
        Some(argument) => cut(&format!("{tool}: {}", argument.lines().next().unwrap_or_default())),
        None => tool.to_owned(),
    }
}

fn choices(request: &Value) -> Vec<Choice> {
    let choice = |id: &str, kind, label: &str| Choice { id: id.to_owned(), kind, label: label.to_owned() };
    let mut choices = vec![choice(ALLOW, ChoiceKind::AllowOnce, "Allow")];
    if request["permission_suggestions"].as_array().is_some_and(|suggestions| !suggestions.is_empty()) {
        choices.push(choice(ALLOW_ALWAYS, ChoiceKind::AllowAlways, "Allow for this session"));
    }
    choices.push(choice(DENY, ChoiceKind::RejectOnce, "Deny"));
    choices
}

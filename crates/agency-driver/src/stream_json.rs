//! The stream-json driver: Claude Code's lines of JSON, both ways, folded into a conversation and a state.
//!
//! Fed by journal records alone: what was written to the agent is in the journal too, so a fold knows every
//! prompt, every answer and every request that is still open. What it does not know it keeps and shows.

use std::collections::BTreeMap;
use std::time::Duration;

use agency_core::agent_state::{AgentMachine, AgentState, Timing};
use agency_core::conversation::{
    Approval, Choice, ChoiceKind, Conversation, Item, Outcome, ToolCall, ToolStatus, TurnEnd, Usage,
};
use agency_core::evidence::{Activity, Why};
use agency_core::exit::ExitCode;
use serde_json::{Value, json};

use crate::lines::{Line, Lines};

pub struct StreamRun {
    out: Lines,
    err: Lines,
    written: Lines,
    talk: Conversation,
    machine: AgentMachine,
    session_id: Option<String>,
    /// Requests of the agent that nobody has answered, by their id.
    open: BTreeMap<String, Asked>,
    /// It tells its own state; what results mean is guessed no longer.
    tells_state: bool,
    working: bool,
    ended_badly: bool,
    /// The message whose parts are arriving.
    message: String,
    usage: Usage,
    next_request: u64,
}

#[derive(Clone, Debug, PartialEq)]
struct Asked {
    tool: String,
    input: Value,
}

/// What happened, for subscribers.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    Output {
        text: String,
    },
    Thinking {
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: Value,
    },
    ToolResult {
        id: String,
        name: String,
        output: String,
        success: bool,
    },
    Approval {
        id: String,
        tool: String,
        title: String,
    },
    ApprovalGone {
        id: String,
    },
    TurnEnd(TurnEnd),
    Error {
        message: String,
        cause: Option<String>,
    },
    /// Kept and shown as it came.
    Other {
        kind: String,
    },
}

/// How an approval is answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Allow,
    /// Allowed, and not asked again in this session.
    AllowAlways,
    Deny {
        message: String,
    },
    /// The answers to a question, by the question's text.
    Answer {
        answers: BTreeMap<String, String>,
    },
}

impl StreamRun {
    pub fn began(timing: Timing, now: Duration) -> StreamRun {
        StreamRun {
            out: Lines::default(),
            err: Lines::default(),
            written: Lines::default(),
            talk: Conversation::default(),
            machine: AgentMachine::new(timing, now),
            session_id: None,
            open: BTreeMap::new(),
            tells_state: false,
            working: false,
            ended_badly: false,
            message: String::new(),
            usage: Usage::default(),
            next_request: 1,
        }
    }

    pub fn conversation(&self) -> &Conversation {
        &self.talk
    }

    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    pub fn usage(&self) -> Usage {
        self.usage
    }

    pub fn state(&self) -> AgentState {
        self.machine.state()
    }

    pub fn deadline(&self) -> Option<Duration> {
        self.machine.deadline()
    }

    pub fn tick(&mut self, now: Duration) {
        self.machine.tick(now);
    }

    /// A turn is in progress.
    pub fn is_working(&self) -> bool {
        self.working
    }

    pub fn on_output(&mut self, bytes: &[u8], at: Duration) -> Vec<StreamEvent> {
        let mut events = Vec::new();
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
                    self.talk.add(Item::Notice { text }, at);
                }
            }
        }
    }

    /// What we wrote to it, as the journal has it.
    pub fn on_input(&mut self, bytes: &[u8], at: Duration) {
        for line in self.written.feed(bytes) {
            let Line::Whole(line) = line else { continue };
            if let Ok(message) = serde_json::from_slice::<Value>(&line) {
                self.sent(&message, at);
            }
        }
        self.judge(at);
    }

    pub fn on_exit(&mut self, code: ExitCode, at: Duration) {
        for id in std::mem::take(&mut self.open).into_keys() {
            self.close(&id, Outcome { allowed: false, cancelled: true, message: None });
        }
        self.machine.on_exit(code, at);
    }

    fn line(&mut self, line: &[u8], at: Duration, events: &mut Vec<StreamEvent>) {
        // Several messages may stand in one line.
        let mut stream = serde_json::Deserializer::from_slice(line).into_iter::<Value>();
        while let Some(message) = stream.next() {
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

    fn message(&mut self, message: &Value, at: Duration, events: &mut Vec<StreamEvent>) {
        if let Some(id) = text(&message["session_id"]).filter(|id| !id.is_empty()) {
            self.session_id = Some(id);
        }
        match message["type"].as_str() {
            Some("assistant") => self.assistant(message, at, events),
            Some("user") => self.results(message, at, events),
            Some("stream_event") => self.partial(&message["event"], at),
            Some("control_request") => self.asked(message, at, events),
            Some("control_cancel_request") => {
                if let Some(id) = text(&message["request_id"]) {
                    self.open.remove(&id);
                    self.close(&id, Outcome { allowed: false, cancelled: true, message: None });
                    events.push(StreamEvent::ApprovalGone { id });
                }
            }
            Some("control_response") => {}
            Some("result") => self.result(message, at, events),
            Some("error") => {
                let message = text(&message["message"]).or(text(&message["error"]["message"]));
                self.failed(
                    &message.unwrap_or_else(|| "the agent reports an error".into()),
                    None,
                    at,
                    events,
                );
            }
            Some("system") => self.system(message, at, events),
            other => {
                let kind = other.unwrap_or("a message without a type").to_owned();
                self.talk.add(Item::Notice { text: format!("{kind}: {}", cut(&message.to_string())) }, at);
                events.push(StreamEvent::Other { kind });
            }
        }
    }

    fn system(&mut self, message: &Value, at: Duration, events: &mut Vec<StreamEvent>) {
        match message["subtype"].as_str() {
            Some("session_state_changed") => {
                self.tells_state = true;
                self.working = message["state"].as_str() != Some("idle");
            }
            Some("init" | "status") => {}
            Some("api_retry") => {
                let text = format!("the model does not answer; try {}", message["attempt"]);
                self.talk.upsert(
                    "retry",
                    at,
                    || Item::Notice { text: text.clone() },
                    |item| {
                        *item = Item::Notice { text: text.clone() };
                    },
                );
            }
            Some("permission_denied") => {
                self.talk.add(Item::Notice { text: format!("denied: {}", cut(&message.to_string())) }, at);
            }
            other => {
                events.push(StreamEvent::Other { kind: format!("system {}", other.unwrap_or_default()) })
            }
        }
    }

    /// Parts of a message that is still being written.
    fn partial(&mut self, event: &Value, at: Duration) {
        match event["type"].as_str() {
            Some("message_start") => self.message = text(&event["message"]["id"]).unwrap_or_default(),
            Some("content_block_delta") => {
                let key = format!("{}/{}", self.message, event["index"]);
                let delta = &event["delta"];
                if let Some(more) = delta["text"].as_str() {
                    self.talk.upsert(&key, at, || Item::Assistant { text: String::new() }, grow(more));
                } else if let Some(more) = delta["thinking"].as_str() {
                    self.talk.upsert(&key, at, || Item::Thinking { text: String::new() }, grow(more));
                }
            }
            _ => {}
        }
    }

    fn assistant(&mut self, message: &Value, at: Duration, events: &mut Vec<StreamEvent>) {
        let id = text(&message["message"]["id"]).unwrap_or_default();
        let Some(blocks) = message["message"]["content"].as_array() else { return };
        for block in blocks {
            match block["type"].as_str() {
                Some("text") => {
                    let said = text(&block["text"]).unwrap_or_default();
                    self.whole(&id, Item::Assistant { text: said.clone() }, at);
                    events.push(StreamEvent::Output { text: said });
                }
                Some("thinking") => {
                    let thought = text(&block["thinking"]).unwrap_or_default();
                    self.whole(&id, Item::Thinking { text: thought.clone() }, at);
                    events.push(StreamEvent::Thinking { text: thought });
                }
                Some("tool_use") => self.tool_use(block, at, events),
                _ => {}
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
        let begun = keys.into_iter().find(|key| self.talk.get(key).is_some_and(is_begun));
        match begun.filter(|_| !message.is_empty()) {
            Some(key) => self.talk.update(&key, |known| *known = item),
            None => self.talk.add(item, at),
        }
    }

    fn tool_use(&mut self, block: &Value, at: Duration, events: &mut Vec<StreamEvent>) {
        let (Some(id), Some(name)) = (text(&block["id"]), text(&block["name"])) else { return };
        let input = block["input"].clone();
        let call = ToolCall {
            id: id.clone(),
            title: title(&name, &input),
            name: name.clone(),
            input: input.clone(),
            status: ToolStatus::Running,
            output: None,
        };
        self.talk.upsert(&tool_key(&id), at, || Item::ToolCall(call.clone()), |_| {});
        events.push(StreamEvent::ToolUse { id, name, input });
    }

    /// What the user's side of the conversation got back from tools.
    fn results(&mut self, message: &Value, at: Duration, events: &mut Vec<StreamEvent>) {
        let Some(blocks) = message["message"]["content"].as_array() else { return };
        for block in blocks {
            match block["type"].as_str() {
                Some("tool_result") => self.tool_result(block, events),
                Some("text") => {
                    let text = text(&block["text"]).unwrap_or_default();
                    self.talk.add(Item::Notice { text }, at);
                }
                _ => {}
            }
        }
    }

    fn tool_result(&mut self, block: &Value, events: &mut Vec<StreamEvent>) {
        let Some(id) = text(&block["tool_use_id"]) else { return };
        let output = content(&block["content"]);
        let success = !block["is_error"].as_bool().unwrap_or(false);
        let mut name = String::new();
        self.talk.update(&tool_key(&id), |item| {
            if let Item::ToolCall(call) = item {
                name.clone_from(&call.name);
                call.status = if success { ToolStatus::Completed } else { ToolStatus::Failed };
                call.output = Some(output.clone());
            }
        });
        events.push(StreamEvent::ToolResult { id, name, output, success });
    }

    fn asked(&mut self, message: &Value, at: Duration, events: &mut Vec<StreamEvent>) {
        let (Some(id), request) = (text(&message["request_id"]), &message["request"]) else { return };
        if request["subtype"].as_str() != Some("can_use_tool") {
            let kind = format!("request {}", request["subtype"].as_str().unwrap_or("without a kind"));
            return events.push(StreamEvent::Other { kind });
        }
        let tool = text(&request["tool_name"]).unwrap_or_default();
        let input = request["input"].clone();
        let title = title(&tool, &input);
        self.open.insert(id.clone(), Asked { tool: tool.clone(), input: input.clone() });
        let approval = Approval {
            id: id.clone(),
            tool: tool.clone(),
            title: title.clone(),
            input,
            choices: choices(request),
            outcome: None,
        };
        self.talk.upsert(&approval_key(&id), at, || Item::Approval(approval.clone()), |_| {});
        events.push(StreamEvent::Approval { id, tool, title });
    }

    fn result(&mut self, message: &Value, at: Duration, events: &mut Vec<StreamEvent>) {
        let failed = message["is_error"].as_bool().unwrap_or(false)
            || message["subtype"].as_str().is_some_and(|subtype| subtype.starts_with("error"));
        let usage = &message["usage"];
        let count = |name: &str| usage[name].as_u64().unwrap_or(0);
        let turn = Usage {
            input_tokens: count("input_tokens") + count("cache_creation_input_tokens"),
            output_tokens: count("output_tokens"),
            cached_tokens: count("cache_read_input_tokens"),
            cost_usd: message["total_cost_usd"].as_f64(),
        };
        self.usage.input_tokens += turn.input_tokens;
        self.usage.output_tokens += turn.output_tokens;
        self.usage.cached_tokens += turn.cached_tokens;
        self.usage.cost_usd = turn.cost_usd.or(self.usage.cost_usd);
        let end = TurnEnd {
            text: text(&message["result"]),
            reason: text(&message["terminal_reason"]).or(text(&message["subtype"])),
            failed,
            usage: turn,
        };
        self.ended_badly = failed;
        if !self.tells_state {
            self.working = false;
        }
        self.talk.add(Item::TurnEnd(end.clone()), at);
        events.push(StreamEvent::TurnEnd(end));
    }

    fn failed(&mut self, message: &str, cause: Option<String>, at: Duration, events: &mut Vec<StreamEvent>) {
        self.talk.add(Item::Error { message: message.to_owned(), cause: cause.clone() }, at);
        events.push(StreamEvent::Error { message: message.to_owned(), cause });
    }

    /// A line that we wrote.
    fn sent(&mut self, message: &Value, at: Duration) {
        match message["type"].as_str() {
            Some("user") => {
                self.talk.add(Item::User { text: content(&message["message"]["content"]) }, at);
                self.ended_badly = false;
                self.working = true;
            }
            Some("control_response") => {
                let Some(id) = text(&message["response"]["request_id"]) else { return };
                let answer = &message["response"]["response"];
                let allowed = answer["behavior"].as_str() == Some("allow");
                self.open.remove(&id);
                self.close(&id, Outcome { allowed, cancelled: false, message: text(&answer["message"]) });
            }
            Some("control_request") => {
                let number =
                    message["request_id"].as_str().and_then(|id| id.strip_prefix("agency-")?.parse().ok());
                self.next_request = self.next_request.max(number.map_or(0, |number: u64| number + 1));
            }
            _ => {}
        }
    }

    fn close(&mut self, id: &str, outcome: Outcome) {
        self.talk.update(&approval_key(id), |item| {
            if let Item::Approval(approval) = item {
                approval.outcome.get_or_insert(outcome);
            }
        });
    }

    fn judge(&mut self, at: Duration) {
        let activity = match (self.open.values().next(), self.working) {
            (Some(asked), _) if asked.tool == ASK => Activity::Waiting(Why::Question),
            (Some(_), _) => Activity::Waiting(Why::Permission),
            (None, true) => Activity::Working,
            (None, false) if self.ended_badly => Activity::Waiting(Why::Error),
            (None, false) if self.talk.entries().is_empty() => Activity::Waiting(Why::Prompt),
            (None, false) => Activity::Waiting(Why::Finished),
        };
        self.machine.on_evidence(Some(activity), at);
    }
}

/// What is written to the agent; each is one line.
impl StreamRun {
    pub fn prompt(text: &str) -> Vec<u8> {
        line(&json!({
            "type": "user",
            "message": { "role": "user", "content": [{ "type": "text", "text": text }] },
            "parent_tool_use_id": null,
            "session_id": "",
        }))
    }

    /// `None` if nobody asks that any more.
    pub fn answer(&self, id: &str, verdict: &Verdict) -> Option<Vec<u8>> {
        let asked = self.open.get(id)?;
        let response = match verdict {
            Verdict::Allow => json!({ "behavior": "allow", "updatedInput": asked.input }),
            Verdict::AllowAlways => json!({
                "behavior": "allow",
                "updatedInput": asked.input,
                "updatedPermissions": [{
                    "type": "addRules",
                    "rules": [{ "toolName": asked.tool }],
                    "behavior": "allow",
                    "destination": "session",
                }],
            }),
            Verdict::Deny { message } => {
                json!({ "behavior": "deny", "message": message, "interrupt": false })
            }
            Verdict::Answer { answers } => {
                let mut input = asked.input.clone();
                if let Some(fields) = input.as_object_mut() {
                    fields.insert("answers".to_owned(), json!(answers));
                }
                json!({ "behavior": "allow", "updatedInput": input })
            }
        };
        let response = json!({ "subtype": "success", "request_id": id, "response": response });
        Some(line(&json!({ "type": "control_response", "response": response })))
    }

    pub fn interrupt(&mut self) -> Vec<u8> {
        self.request(json!({ "subtype": "interrupt" }))
    }

    pub fn set_model(&mut self, model: &str) -> Vec<u8> {
        self.request(json!({ "subtype": "set_model", "model": model }))
    }

    pub fn set_mode(&mut self, mode: &str) -> Vec<u8> {
        self.request(json!({ "subtype": "set_permission_mode", "mode": mode }))
    }

    fn request(&mut self, request: Value) -> Vec<u8> {
        let id = format!("agency-{}", self.next_request);
        self.next_request += 1;
        line(&json!({ "type": "control_request", "request_id": id, "request": request }))
    }
}

/// The tool with which it asks the user something.
const ASK: &str = "AskUserQuestion";

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

fn grow(more: &str) -> impl FnOnce(&mut Item) + '_ {
    move |item| match item {
        Item::Assistant { text } | Item::Thinking { text } => text.push_str(more),
        _ => {}
    }
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

fn cut(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
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
    let mut choices = vec![choice("allow", ChoiceKind::AllowOnce, "Allow")];
    if request["permission_suggestions"].as_array().is_some_and(|suggestions| !suggestions.is_empty()) {
        choices.push(choice("allow-always", ChoiceKind::AllowAlways, "Allow for this session"));
    }
    choices.push(choice("deny", ChoiceKind::RejectOnce, "Deny"));
    choices
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a recording; returns the run and every state it went through.
    fn play(name: &str) -> (StreamRun, Vec<String>, Vec<StreamEvent>) {
        let path = format!("{}/../../tests/recordings/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let recording = std::fs::read_to_string(&path).expect(&path);
        let mut run = StreamRun::began(Timing::default(), Duration::ZERO);
        let (mut states, mut events) = (Vec::new(), Vec::new());
        for line in recording.lines() {
            let step: Value = serde_json::from_str(line).expect("a recording");
            let at = Duration::from_secs_f64(step["t"].as_f64().expect("a time"));
            let bytes = super::line(&step["msg"]);
            match step["dir"].as_str() {
                Some("<-") => events.extend(run.on_output(&bytes, at)),
                Some("->") => run.on_input(&bytes, at),
                _ => continue,
            }
            let state = match run.state() {
                AgentState::NeedsInput { why, .. } => why.to_string(),
                AgentState::Running => "running".to_owned(),
                other => format!("{other:?}"),
            };
            if states.last() != Some(&state) {
                states.push(state);
            }
        }
        (run, states, events)
    }

    #[test]
    fn a_turn_with_permissions_is_followed_from_prompt_to_end() {
        let (run, states, events) = play("claude-stream-json");
        let expected =
            ["prompt", "running", "permission", "running", "permission", "running", "finished", "running"];
        assert_eq!(states[..8], expected, "{states:?}");
        assert_eq!(run.session_id(), Some("11111111-2222-4333-8444-555555555555"));
        assert!(run.usage().cost_usd.is_some_and(|cost| cost > 0.0));
        let says = |wanted: &str| {
            run.conversation()
                .entries()
                .iter()
                .any(|entry| entry.item == Item::Assistant { text: wanted.into() })
        };
        assert!(says("I will write a file.") && says("All finished."));
        let denied =
            events.iter().any(|event| matches!(event, StreamEvent::ToolResult { success: false, .. }));
        assert!(denied);
        assert_eq!(run.conversation().open_approvals().count(), 0);
    }

    #[test]
    fn parts_and_the_whole_are_one_entry() {
        let (run, ..) = play("claude-stream-json");
        let texts: Vec<&str> = run
            .conversation()
            .entries()
            .iter()
            .filter_map(|entry| match &entry.item {
                Item::Assistant { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        let mut unique = texts.clone();
        unique.dedup();
        assert_eq!(texts, unique);
    }

    #[test]
    fn a_question_an_error_and_an_interrupt_are_told_apart() {
        let (_, states, _) = play("claude-stream-json-askuser");
        assert_eq!(states, ["running", "question", "running", "finished"]);
        let (_, states, events) = play("claude-stream-json-error400");
        assert_eq!(states.last().map(String::as_str), Some("error"));
        let ends: Vec<_> =
            events.iter().filter(|event| matches!(event, StreamEvent::TurnEnd(end) if end.failed)).collect();
        assert_eq!(ends.len(), 1, "an error that calls itself success");
        let (run, _, events) = play("claude-stream-json-interrupt-pending");
        assert!(events.iter().any(|event| matches!(event, StreamEvent::ApprovalGone { .. })));
        assert_eq!(run.conversation().open_approvals().count(), 0);
    }

    #[test]
    fn a_message_during_a_turn_is_a_turn_of_its_own_and_one_end() {
        let (_, states, events) = play("claude-stream-json-queue");
        assert_eq!(states, ["running", "finished"]);
        assert_eq!(events.iter().filter(|event| matches!(event, StreamEvent::TurnEnd(_))).count(), 2);
    }

    #[test]
    fn what_makes_no_sense_is_an_error_and_what_is_unknown_is_kept() {
        let mut run = StreamRun::began(Timing::default(), Duration::ZERO);
        let events = run.on_output(b"not json\n{\"type\":\"dance\",\"x\":1}\n{\"type\":\"system\",\"subtype\":\"new\"}{\"type\":\"result\"}\n\n", Duration::ZERO);
        assert!(
            matches!(&events[..], [
            StreamEvent::Error { .. },
            StreamEvent::Other { kind },
            StreamEvent::Other { .. },
            StreamEvent::TurnEnd(_)
        ] if kind == "dance"),
            "{events:?}"
        );
    }

    #[test]
    fn an_answer_repeats_what_was_asked() {
        let mut run = StreamRun::began(Timing::default(), Duration::ZERO);
        let asked = json!({ "type": "control_request", "request_id": "r1",
            "request": { "subtype": "can_use_tool", "tool_name": "Bash", "input": { "command": "ls" } } });
        run.on_output(&line(&asked), Duration::ZERO);
        let allow = run.answer("r1", &Verdict::Allow).expect("it is open");
        let allow: Value = serde_json::from_slice(&allow).expect("JSON");
        assert_eq!(
            allow["response"]["response"],
            json!({ "behavior": "allow", "updatedInput": { "command": "ls" } })
        );
        run.on_input(&line(&allow), Duration::ZERO);
        assert_eq!(run.answer("r1", &Verdict::Allow), None, "answered once");
    }
}

//! The messages of the agent, and what each of them changes.

use agency_core::conversation::{Approval, Choice, ChoiceKind, Item, ToolCall, ToolStatus, TurnEnd, Usage};
use serde_json::{Value, json};

use super::settings::SettingResult;
use super::{
    ALLOW, ALLOW_ALWAYS, DENY, PermissionRequest, StreamRun, content, cut, end_tool, text, tool_key,
};
use crate::conversation::{AgentSetting, ConversationEvent, replace};

/// The key of the entry about a model that does not answer.
const RETRY: &str = "retry";

/// No message has more parts than this.
const MOST_BLOCKS: usize = 64;

impl StreamRun {
    pub(super) fn read_line(&mut self, line: &[u8]) {
        // One line may hold several messages.
        let stream = serde_json::Deserializer::from_slice(line).into_iter::<Value>();
        for message in stream {
            match message {
                Ok(message) => self.read_message(&message),
                Err(cause) => return self.core.add_unreadable_line(line, cause.to_string()),
            }
        }
    }

    fn read_message(&mut self, message: &Value) {
        if let Some(id) = text(&message["session_id"]).filter(|id| !id.is_empty()) {
            self.core.session_id = Some(id);
        }
        match message["type"].as_str() {
            Some("assistant") => self.read_assistant_message(message),
            Some("user") => self.read_tool_results(message),
            Some("stream_event") => self.read_partial_message(message),
            Some("control_request") => self.read_agent_request(message),
            Some("control_cancel_request") => self.read_cancellation(message),
            Some("control_response") => self.read_answer(message),
            Some("result") => self.read_turn_result(message),
            Some("error") => self.read_error(message),
            Some("system") => self.read_system_message(message),
            other => self.core.add_unknown(other.unwrap_or("a message without a type"), message),
        }
    }

    fn read_error(&mut self, message: &Value) {
        let words = text(&message["message"]).or(text(&message["error"]["message"]));
        let raw = words.is_none().then(|| cut(&message.to_string()));
        self.core.add_error(words.as_deref().unwrap_or("the agent reports an error"), raw);
    }

    /// The agent withdraws a request.
    fn read_cancellation(&mut self, message: &Value) {
        let Some(id) = text(&message["request_id"]) else {
            return self.core.add_unknown("control_cancel_request", message);
        };
        let withdrawn = self.requests.take_all(|request| request.agent_id == id);
        self.refusals.retain(|refused| *refused != id);
        withdrawn.iter().for_each(|request| self.core.withdraw_approval(&request.id));
    }

    fn read_system_message(&mut self, message: &Value) {
        match message["subtype"].as_str() {
            Some("session_state_changed") => {
                (self.reports_state, self.is_in_session) = (true, true);
                self.is_working = message["state"].as_str() != Some("idle");
            }
            Some("init" | "status") => {
                self.is_in_session = true;
                for (setting, key) in [(AgentSetting::Model, "model"), (AgentSetting::Mode, "permissionMode")]
                {
                    let notice = self.settings.record_current(setting, message[key].as_str());
                    self.add_notice_if_any(notice);
                }
            }
            Some("api_retry") => {
                let text = format!("the model does not answer; attempt {}", message["attempt"]);
                self.core.put(RETRY, Item::Notice { text });
            }
            Some("permission_denied") => {
                self.core.add_notice(format!("denied: {}", cut(&message.to_string())));
            }
            Some(other) => self.core.announce(ConversationEvent::Other { kind: format!("system {other}") }),
            None => self.core.add_unknown("system", message),
        }
    }

    /// The agent answers one of our requests.
    fn read_answer(&mut self, message: &Value) {
        let response = &message["response"];
        if !response["request_id"].is_string() {
            return self.core.add_unknown("control_response", message);
        }
        let Some(result) = self.settings.record_answer(response) else { return };
        let SettingResult { request, outcome, notice } = result;
        self.add_notice_if_any(notice);
        self.core.announce(ConversationEvent::SettingAnswered { request, outcome });
    }

    fn add_notice_if_any(&mut self, text: Option<String>) {
        if let Some(text) = text {
            self.core.add_notice(text);
        }
    }

    /// Reads a part of a message that the agent is still writing.
    fn read_partial_message(&mut self, message: &Value) {
        let event = &message["event"];
        match event["type"].as_str() {
            Some("message_start") => {
                self.partial_message = text(&event["message"]["id"]).unwrap_or_default();
            }
            Some("content_block_delta") => {
                let key = format!("{}/{}", self.partial_message, event["index"]);
                let delta = &event["delta"];
                if let Some(more) = delta["text"].as_str() {
                    self.core.upsert(&key, || Item::Assistant { text: String::new() }, append(more));
                } else if let Some(more) = delta["thinking"].as_str() {
                    self.core.upsert(&key, || Item::Thinking { text: String::new() }, append(more));
                } else if !delta["type"].is_string() || claims_text(delta) {
                    self.core.add_unknown("stream_event", message);
                }
            }
            // The begin and the end of a part add nothing to the parts.
            Some(_) => {}
            None => self.core.add_unknown("stream_event", message),
        }
    }

    fn read_assistant_message(&mut self, message: &Value) {
        let id = text(&message["message"]["id"]).unwrap_or_default();
        let Some(blocks) = blocks(&message["message"]["content"]) else {
            return self.core.add_unknown("assistant", message);
        };
        for block in blocks {
            let word = |name: &str| text(&block[name]);
            match (block["type"].as_str(), word("text"), word("thinking")) {
                (Some("text"), Some(text), _) => {
                    self.put_whole_message(&id, Item::Assistant { text: text.clone() });
                    self.core.announce(ConversationEvent::Output { text });
                }
                (Some("thinking"), _, Some(text)) => {
                    self.put_whole_message(&id, Item::Thinking { text: text.clone() });
                    self.core.announce(ConversationEvent::Thinking { text });
                }
                (Some("tool_use"), ..) => self.read_tool_use(&block),
                // Encrypted: only the model can read it.
                (Some("redacted_thinking"), ..) => {}
                (other, ..) => self.core.add_unknown(other.unwrap_or("assistant"), &block),
            }
        }
    }

    /// Replaces the parts of a message by the whole text.
    fn put_whole_message(&mut self, message: &str, item: Item) {
        let is_begun = |known: &Item| match (known, &item) {
            (Item::Assistant { text: part }, Item::Assistant { text: all })
            | (Item::Thinking { text: part }, Item::Thinking { text: all }) => all.starts_with(part.as_str()),
            _ => false,
        };
        let conversation = &mut self.core.conversation;
        let mut keys = (0..MOST_BLOCKS).map(|index| format!("{message}/{index}"));
        let begun = keys.find(|key| conversation.get(key).is_some_and(is_begun));
        match begun.filter(|_| !message.is_empty()) {
            Some(key) => {
                conversation.update(&key, |known| replace(known, item));
                conversation.settle(&key);
            }
            None => self.core.add(item),
        }
    }

    fn read_tool_use(&mut self, block: &Value) {
        let (Some(id), Some(name)) = (text(&block["id"]), text(&block["name"])) else {
            return self.core.add_unknown("tool_use", block);
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
        self.core.upsert(&tool_key(&id), || Item::ToolCall(call), |_| false);
        self.tools.push(id.clone());
        self.core.announce(ConversationEvent::ToolUse { id, name, input });
    }

    /// The results of tools arrive as messages of the user.
    fn read_tool_results(&mut self, message: &Value) {
        let Some(blocks) = blocks(&message["message"]["content"]) else {
            return self.core.add_unknown("user", message);
        };
        for block in blocks {
            match (block["type"].as_str(), text(&block["text"])) {
                (Some("tool_result"), _) => self.read_tool_result(&block),
                (Some("text"), Some(text)) => self.core.add_notice(text),
                (other, _) => self.core.add_unknown(other.unwrap_or("user"), &block),
            }
        }
    }

    fn read_tool_result(&mut self, block: &Value) {
        let Some(id) = text(&block["tool_use_id"]) else {
            return self.core.add_unknown("tool_result", block);
        };
        let output = content(&block["content"]);
        let success = !block["is_error"].as_bool().unwrap_or(false);
        let conversation = &mut self.core.conversation;
        let name = match conversation.get(&tool_key(&id)) {
            Some(Item::ToolCall(call)) => call.name.clone(),
            _ => String::new(),
        };
        let status = if success { ToolStatus::Completed } else { ToolStatus::Failed };
        conversation.update(&tool_key(&id), |item| end_tool(item, status, Some(output.clone())));
        self.tools.retain(|tool| *tool != id);
        self.core.announce(ConversationEvent::ToolResult { id, name, output, success });
    }

    fn read_agent_request(&mut self, message: &Value) {
        let (Some(id), request) = (text(&message["request_id"]), &message["request"]) else {
            return self.core.add_unknown("control_request", message);
        };
        if request["subtype"].as_str() != Some("can_use_tool") {
            let kind = format!("request {}", request["subtype"].as_str().unwrap_or("without a kind"));
            // Without an answer the agent may wait for ever, so refuse.
            self.refusals.push(id);
            return self.core.add_unknown(&kind, request);
        }
        let tool = text(&request["tool_name"]).unwrap_or_else(|| "a tool without a name".to_owned());
        let input = request["input"].clone();
        let title = title(&tool, &input);
        let (agent_id, id) = (id.clone(), self.requests.free_id(id));
        self.requests.insert(PermissionRequest {
            id: id.clone(),
            agent_id,
            tool: tool.clone(),
            title: title.clone(),
            input: input.clone(),
            suggestions: request["permission_suggestions"].as_array().cloned().unwrap_or_default(),
        });
        let choices =
            choices(request["permission_suggestions"].as_array().is_some_and(|all| !all.is_empty()));
        self.core.open_approval(Approval { id, tool, title, input, choices, outcome: None });
    }

    /// The end of a turn.
    fn read_turn_result(&mut self, message: &Value) {
        let end = self.turn_end(message);
        self.core.conversation.settle(RETRY);
        if ["subtype", "result"].iter().any(|name| !message[*name].is_null() && !message[*name].is_string()) {
            // Show the odd result, and end the turn, or the user could not continue.
            self.core.add_unknown("result", message);
        }
        if end.failed && !self.is_in_session && message["num_turns"].as_u64() == Some(0) {
            (self.has_lost_session, self.core.session_id) = (true, None);
            self.core
                .add_notice("the agent does not have this session any more: the next start begins a new one");
        }
        if !self.reports_state {
            self.is_working = false;
        }
        self.core.end_turn(end);
    }

    fn turn_end(&mut self, message: &Value) -> TurnEnd {
        let reason = text(&message["terminal_reason"]).or(text(&message["subtype"]));
        // A turn that the user interrupted has not failed.
        let was_interrupted = reason.as_deref().is_some_and(|reason| reason.starts_with("aborted"));
        let failed = !was_interrupted
            && (message["is_error"].as_bool().unwrap_or(false)
                || message["subtype"].as_str().is_some_and(|subtype| subtype.starts_with("error")));
        if let Some(total) = message["total_cost_usd"].as_f64() {
            self.core.record_cost(total);
        }
        let count = |name: &str| message["usage"][name].as_u64().unwrap_or(0);
        let usage = self.core.add_tokens(Usage {
            input_tokens: count("input_tokens").saturating_add(count("cache_creation_input_tokens")),
            output_tokens: count("output_tokens"),
            cached_tokens: count("cache_read_input_tokens"),
            cost_usd: None,
        });
        TurnEnd { text: text(&message["result"]), reason, failed, usage }
    }
}

/// The parts of a message. A plain text is one part.
fn blocks(content: &Value) -> Option<Vec<Value>> {
    match content {
        Value::String(text) => Some(vec![json!({ "type": "text", "text": text })]),
        Value::Array(blocks) => Some(blocks.clone()),
        _ => None,
    }
}

/// Whether a part says that it is text, so that it should have some.
fn claims_text(delta: &Value) -> bool {
    matches!(delta["type"].as_str(), Some("text_delta" | "thinking_delta"))
}

fn append(more: &str) -> impl FnOnce(&mut Item) -> bool + '_ {
    move |item| match item {
        Item::Assistant { text } | Item::Thinking { text } => {
            text.push_str(more);
            !more.is_empty()
        }
        _ => false,
    }
}

/// One line for a tool call: its name and its most telling argument.
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

pub(super) fn choices(can_remember: bool) -> Vec<Choice> {
    let choice = |id: &str, kind, label: &str| Choice { id: id.to_owned(), kind, label: label.to_owned() };
    let mut choices = vec![choice(ALLOW, ChoiceKind::AllowOnce, "Allow")];
    if can_remember {
        choices.push(choice(ALLOW_ALWAYS, ChoiceKind::AllowAlways, "Allow for this session"));
    }
    choices.push(choice(DENY, ChoiceKind::RejectOnce, "Deny"));
    choices
}

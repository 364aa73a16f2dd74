//! The messages of the agent, and what each of them changes.

use agency_core::approval::Action;
use agency_core::conversation::{Approval, Choice, ChoiceKind, Item, ToolCall, ToolStatus, TurnEnd, Usage};
use serde_json::{Value, json};

use super::settings::SettingResult;
use super::{
    ALLOW, ALLOW_ALWAYS, DENY, PermissionRequest, StreamRun, content, cut, end_tool, text, tool_key,
};
use crate::conversation::{
    AgentSetting, ConversationEvent, ModeChange, ModeChanger, ModeMeaning, SlashCommand,
};

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
        let error = &message["error"];
        let words = text(&message["message"]).or(text(&error["message"])).or(text(error));
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
                if !self.is_working {
                    self.unanswered = 0;
                }
            }
            Some("init" | "status") => {
                self.is_in_session = true;
                let notice = self.settings.record_current(AgentSetting::Model, message["model"].as_str());
                self.add_notice_if_any(notice);
                self.read_mode(message["permissionMode"].as_str());
                self.record_commands(&message["slash_commands"]);
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

    fn read_mode(&mut self, reported: Option<&str>) {
        let old = self.settings.offers(AgentSetting::Mode).current;
        let is_requested = self.settings.is_being_set(AgentSetting::Mode);
        let notice = self.settings.record_current(AgentSetting::Mode, reported);
        let (Some(old), Some(new), Some(notice)) = (old, reported, notice) else { return };
        if is_requested {
            return self.core.add_notice(notice);
        }
        if self.may_switch_mode {
            self.core.add_notice(notice);
            let (old, new, by) = (Some(old), Some(new.to_owned()), ModeChanger::User);
            let change = ModeChange { old, new, by, warning: None };
            return self.core.announce(ConversationEvent::ModeChanged(change));
        }
        self.core.warn_about_own_change(old, new.to_owned(), ModeMeaning::of_id(new));
    }

    /// The agent answers one of our requests.
    fn read_answer(&mut self, message: &Value) {
        let response = &message["response"];
        if !response["request_id"].is_string() {
            return self.core.add_unknown("control_response", message);
        }
        let Some(result) = self.settings.record_answer(response) else { return };
        self.record_commands(&response["response"]["commands"]);
        let SettingResult { request, outcome, notice, mode } = result;
        if let Some(mode) = mode {
            self.core.clear_mode_warning();
            let change = ModeChange { old: None, new: Some(mode), by: ModeChanger::User, warning: None };
            self.core.announce(ConversationEvent::ModeChanged(change));
        }
        self.add_notice_if_any(notice);
        self.core.announce(ConversationEvent::SettingAnswered { request, outcome });
    }

    /// Records the commands that the agent lists: by name, or with a description. A list with descriptions stays.
    fn record_commands(&mut self, list: &Value) {
        let Some(list) = list.as_array().filter(|list| !list.is_empty()) else { return };
        let is_described = list.iter().any(Value::is_object);
        let command = |listed: &Value| {
            let word =
                |name: &str| text(&listed[name]).map(|word| cut(&word)).filter(|word| !word.is_empty());
            let name = listed.as_str().map(cut).or_else(|| word("name"))?;
            let description = word("description").unwrap_or_default();
            Some(SlashCommand { name, description, hint: word("argumentHint") })
        };
        let commands: Vec<SlashCommand> = list.iter().filter_map(command).collect();
        self.core.update_report(|report| {
            if is_described || report.commands.is_empty() {
                report.commands = commands;
            }
        });
    }

    /// Records how full the context of the model is. A part of the work that another model does has its own context.
    fn record_context(&mut self, message: &Value) {
        if message["parent_tool_use_id"].is_string() {
            return;
        }
        let usage = &message["message"]["usage"];
        let names =
            ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"];
        let used: u64 = names.iter().filter_map(|name| usage[*name].as_u64()).sum();
        let models = message["modelUsage"].as_object();
        let size = models
            .and_then(|models| models.values().filter_map(|model| model["contextWindow"].as_u64()).max());
        self.core.update_report(|report| {
            let (known_used, known_size) = report.context.unwrap_or_default();
            let used = if used > 0 { used } else { known_used };
            let context = (used, size.unwrap_or(known_size));
            report.context = (context != (0, 0)).then_some(context);
        });
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
                    self.core.grow_text(&key, || Item::Assistant { text: String::new() }, more);
                } else if let Some(more) = delta["thinking"].as_str() {
                    self.core.grow_text(&key, || Item::Thinking { text: String::new() }, more);
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
        self.record_context(message);
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

    /// Adds the missing rest to the parts of a message, or the whole message if no part of it has arrived.
    fn put_whole_message(&mut self, message: &str, item: Item) {
        let (Item::Assistant { text } | Item::Thinking { text }) = &item else { return };
        let core = &mut self.core;
        let rest = |key: &String| {
            let known = core.conversation.get(key)?;
            let is_same_kind = std::mem::discriminant(known) == std::mem::discriminant(&item);
            core.rest_of_text(key, text).filter(|_| is_same_kind)
        };
        let mut keys = (0..MOST_BLOCKS).map(|index| format!("{message}/{index}"));
        let begun = keys.find_map(|key| rest(&key).map(|rest| (key, rest)));
        match begun.filter(|_| !message.is_empty()) {
            Some((key, rest)) => {
                let empty = || match &item {
                    Item::Thinking { .. } => Item::Thinking { text: String::new() },
                    _ => Item::Assistant { text: String::new() },
                };
                if !rest.is_empty() {
                    core.grow_text(&key, empty, rest);
                }
                core.settle_text(&key);
            }
            None => core.add(item.clone()),
        }
    }

    fn read_tool_use(&mut self, block: &Value) {
        let (Some(id), Some(name)) = (text(&block["id"]), text(&block["name"])) else {
            return self.core.add_unknown("tool_use", block);
        };
        let input = block["input"].clone();
        let title = title(&name, &input);
        let call = ToolCall {
            id: id.clone(),
            title: title.clone(),
            name: name.clone(),
            input: input.clone(),
            status: ToolStatus::Running,
            output: None,
        };
        let command = Action::of_call(&call).command;
        self.core.upsert(&tool_key(&id), || Item::ToolCall(call), |_| false);
        self.tools.push(id.clone());
        self.core.announce(ConversationEvent::ToolUse { id, name, title, command, input });
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
        self.record_context(message);
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
        self.unanswered = self.unanswered.saturating_sub(1);
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

//! The messages of the agent in a session, and what each of them changes.

use agency_core::plain::one_line;
use agent_client_protocol_schema::MaybeUndefined;
use agent_client_protocol_schema::v1::{AvailableCommand, AvailableCommandInput, SessionUpdate};
use serde::Deserialize;
use serde_json::Value;

use super::super::agent_request::AgentRequest;
use super::super::content::block_text;
use super::super::opening::Replay;
use super::super::rpc::{self, Message, Refusal};
use super::super::tools;
use super::super::transcript::Speaker;
use super::{AcpRun, PendingRequest};
use crate::conversation::{AgentSetting, ConversationEvent, SlashCommand};

impl AcpRun {
    pub(super) fn read_message(&mut self, message: Message) {
        match message {
            Message::Notification { method, params } => match method.as_str() {
                "session/update" if params["sessionId"].is_string() => self.read_update(&params["update"]),
                "$/cancel_request" => self.read_cancellation(&params["requestId"]),
                "elicitation/complete" => {}
                other => self.transcript.add_unknown_method(&mut self.core, other, &params),
            },
            Message::Request { id, method, params } => self.read_agent_request(id, &method, &params),
            Message::Answer { id, answer } => self.read_answer(&id, answer),
        }
    }

    fn read_agent_request(&mut self, id: Value, method: &str, params: &Value) {
        match method {
            "session/request_permission" => {
                let call = params["toolCall"]["toolCallId"].as_str();
                let call = call.and_then(|call| tools::find(&self.core.conversation, call));
                self.open_request(AgentRequest::permission(self.approval_id(&id), id, params, call));
            }
            "elicitation/create" => {
                self.open_request(AgentRequest::question(self.approval_id(&id), id, params));
            }
            other => {
                let words = format!("Agency does not know {}", one_line(other, 60));
                self.owe_reply(&id, rpc::refusal(&id, rpc::UNKNOWN_METHOD, &words));
                self.transcript.add_unknown_method(&mut self.core, &format!("request {other}"), params);
            }
        }
    }

    /// The id of an agent's request for people. The agent's own ids repeat with each process and each run.
    fn approval_id(&self, id: &Value) -> String {
        let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        self.requests.free_id(self.request_id(&format!("{}:{id}", self.epoch)))
    }

    /// Shows a request and waits for its answer, unless its turn is cancelled already.
    pub(super) fn open_request(&mut self, request: AgentRequest) {
        self.transcript.finish_message(&mut self.core);
        let is_cancelled = self.turn.as_ref().is_some_and(|turn| turn.is_cancelled);
        match &request.rpc {
            Some(rpc) if is_cancelled => self.owe_reply(rpc, rpc::answer(rpc, &request.cancellation())),
            _ => {
                self.core.open_approval(request.approval());
                self.requests.insert(request);
            }
        }
    }

    /// The agent withdraws one of its requests.
    fn read_cancellation(&mut self, id: &Value) {
        for request in self.requests.take_all(|request| request.rpc.as_ref() == Some(id)) {
            self.owe_reply(id, rpc::refusal(id, rpc::REQUEST_CANCELLED, "the agent withdrew its request"));
            self.core.withdraw_approval(&request.id);
        }
    }

    /// The agent answers one of our requests.
    fn read_answer(&mut self, id: &Value, answer: Result<Value, Refusal>) {
        match (self.pending.remove(&rpc::key(id)), answer) {
            (Some(PendingRequest::Open(method)), Ok(result)) => self.read_opened(&method, &result),
            (Some(PendingRequest::Open(method)), Err(refusal)) => self.read_not_opened(method, &refusal),
            (Some(PendingRequest::Prompt), answer) => self.end_turn(id, answer),
            (Some(PendingRequest::Set(setting, value)), answer) => {
                let outcome = answer.as_ref().map(drop).map_err(Refusal::summary);
                match answer {
                    Ok(result) => self.read_setting_accepted(id, setting, value, &result),
                    Err(refusal) => self.read_setting_refused(setting, &value, &refusal),
                }
                let request = id.as_str().unwrap_or_default().to_owned();
                self.core.announce(ConversationEvent::SettingAnswered { request, outcome });
            }
            (Some(PendingRequest::SetOption(option, value)), answer) => {
                let outcome = answer.as_ref().map(drop).map_err(Refusal::summary);
                match answer {
                    Ok(result) => self.read_option_accepted(id, &option, value, &result),
                    Err(refusal) => self.read_option_refused(&option, &value, &refusal),
                }
                let request = id.as_str().unwrap_or_default().to_owned();
                self.core.announce(ConversationEvent::SettingAnswered { request, outcome });
            }
            (Some(PendingRequest::Login), Ok(_)) => self.read_login(),
            (Some(PendingRequest::Login), Err(refusal)) => self.read_login_refused(&refusal),
            (Some(PendingRequest::Other), _) => {}
            // Not an answer to a request of this session: the connection's greeting, or a stray answer.
            (None, Ok(result)) if result["protocolVersion"].is_number() => self.read_greeting(&result),
            (None, Ok(result)) if result["sessionId"].is_string() => self.read_stray_session(),
            (None, _) => {}
        }
    }

    fn read_update(&mut self, update: &Value) {
        let is_dropped = self.opening.replay == Some(Replay::Dropped);
        let known = SessionUpdate::deserialize(update).ok();
        if known.as_ref().is_some_and(|known| self.apply_session_update(known)) || is_dropped {
            return;
        }
        let is_complete = known.as_ref().is_some_and(|known| is_read_completely(update, known));
        let is_shown = known.is_some_and(|known| self.show_update(known));
        if !is_complete || !is_shown {
            let kind = update["sessionUpdate"].as_str().unwrap_or("an update without a kind");
            self.transcript.add_unknown(&mut self.core, kind, update);
        }
    }

    /// Applies an update about the session itself, such as its mode. Such an update counts at any time, even during a
    /// replay. Returns `false` for an update about the conversation.
    fn apply_session_update(&mut self, update: &SessionUpdate) -> bool {
        match update {
            SessionUpdate::UsageUpdate(usage) => {
                let cost = usage.cost.as_ref().filter(|cost| cost.currency.eq_ignore_ascii_case("USD"));
                cost.into_iter().for_each(|cost| self.core.record_cost(cost.amount));
                let context = Some((usage.used, usage.size)).filter(|(_, size)| *size > 0);
                self.core.update_report(|report| report.context = context.or(report.context));
            }
            SessionUpdate::CurrentModeUpdate(mode) => {
                let before = self.offers(AgentSetting::Mode).current;
                self.settings.record_current(AgentSetting::Mode, &mode.current_mode_id.to_string());
                self.read_mode_change(before);
            }
            SessionUpdate::ConfigOptionUpdate(update) => {
                let before = self.offers(AgentSetting::Mode).current;
                self.settings.set_options(update.config_options.clone());
                self.read_mode_change(before);
            }
            SessionUpdate::AvailableCommandsUpdate(update) => {
                let commands = update.available_commands.iter().map(slash_command).collect();
                self.core.update_report(|report| report.commands = commands);
            }
            SessionUpdate::SessionInfoUpdate(info) => match &info.title {
                MaybeUndefined::Value(title) => {
                    let title = one_line(title, 120);
                    self.core.update_report(|report| report.title = Some(title));
                }
                MaybeUndefined::Null => self.core.update_report(|report| report.title = None),
                MaybeUndefined::Undefined => {}
            },
            _ => return false,
        }
        true
    }

    /// Writes an update into the conversation. Returns `false` if the conversation has no place for it.
    fn show_update(&mut self, update: SessionUpdate) -> bool {
        let (transcript, core) = (&mut self.transcript, &mut self.core);
        match update {
            SessionUpdate::UserMessageChunk(chunk) => {
                let echo = block_text(&chunk.content);
                // Some agents repeat the prompt.
                if !self.turn.as_ref().is_some_and(|turn| turn.text.contains(echo.trim())) {
                    transcript.add_chunk(core, Speaker::User, &chunk);
                }
            }
            SessionUpdate::AgentMessageChunk(chunk) => transcript.add_chunk(core, Speaker::Agent, &chunk),
            SessionUpdate::AgentThoughtChunk(chunk) => transcript.add_chunk(core, Speaker::Thought, &chunk),
            SessionUpdate::ToolCall(call) => transcript.add_tool_report(core, call.into()),
            SessionUpdate::ToolCallUpdate(update) => transcript.add_tool_report(core, update.into()),
            SessionUpdate::Plan(plan) => transcript.put_plan(core, &plan.entries),
            SessionUpdate::Notice(notice) => transcript.add_agent_notice(core, &notice),
            SessionUpdate::CompactionUpdate(update) => transcript.put_compaction(core, &update),
            _ => return false,
        }
        true
    }
}

fn slash_command(command: &AvailableCommand) -> SlashCommand {
    let hint = match &command.input {
        Some(AvailableCommandInput::Unstructured(input)) => Some(one_line(&input.hint, 60)),
        _ => None,
    };
    SlashCommand {
        name: one_line(&command.name, 60),
        description: one_line(&command.description, 200),
        hint: hint.filter(|hint| !hint.is_empty()),
    }
}

/// Whether the official types kept all of an update. They drop elements of a list that they cannot read.
fn is_read_completely(update: &Value, known: &SessionUpdate) -> bool {
    const LISTS: [&str; 3] = ["content", "entries", "locations"];
    const WORDS: [&str; 3] = ["title", "status", "kind"];
    if !matches!(
        known,
        SessionUpdate::ToolCall(_) | SessionUpdate::ToolCallUpdate(_) | SessionUpdate::Plan(_)
    ) {
        return true;
    }
    let kept = serde_json::to_value(known).unwrap_or_default();
    let is_kept = |name: &&str| match (&update[*name], &kept[*name]) {
        (Value::Null, _) => true,
        (Value::Array(all), Value::Array(kept)) => all.len() == kept.len(),
        (Value::Array(all), _) => all.is_empty(),
        _ => false,
    };
    let is_word = |name: &&str| update[*name].is_null() || update[*name].is_string();
    LISTS.iter().all(is_kept) && WORDS.iter().all(is_word)
}

//! The lines that Agency wrote in a session, as the journal has them, and what they change.

use agency_core::conversation::{ApprovalOutcome, Item};
use serde_json::Value;

use super::super::opening::{OpenMethod, Replay, Stage};
use super::super::rpc::{self, Message};
use super::{AcpRun, PendingRequest, Turn, prompt_text};
use crate::conversation::AgentSetting;

impl AcpRun {
    pub(super) fn record_our_message(&mut self, message: Message) {
        match message {
            Message::Notification { method, .. } if method == "session/cancel" => self.cancel_turn(),
            Message::Notification { .. } => {}
            Message::Request { id, method, params } => self.record_our_request(&id, &method, &params),
            Message::Answer { id, answer } => self.record_our_answer(&id, answer.ok().as_ref()),
        }
    }

    fn record_our_request(&mut self, id: &Value, method: &str, params: &Value) {
        let number = id.as_str().and_then(|id| id.rsplit_once(':')?.1.parse::<u64>().ok());
        number.into_iter().for_each(|number| self.core.skip_request_number(number));
        self.owed_settings.retain(|(owed, _)| id.as_str() != Some(owed));
        let value = |name: &str| params[name].as_str().unwrap_or_default().to_owned();
        let request = match method {
            "session/new" => PendingRequest::Open(OpenMethod::New),
            "session/resume" => PendingRequest::Open(OpenMethod::Resume(value("sessionId"))),
            "session/load" => PendingRequest::Open(OpenMethod::Load(value("sessionId"))),
            "session/prompt" => {
                self.begin_turn(id, prompt_text(params));
                PendingRequest::Prompt
            }
            "session/set_mode" => PendingRequest::Set(AgentSetting::Mode, value("modeId")),
            "session/set_model" => PendingRequest::Set(AgentSetting::Model, value("modelId")),
            "session/set_config_option" => match self.settings.setting_of_option(&value("configId")) {
                Some(setting) => PendingRequest::Set(setting, value("value")),
                None => PendingRequest::SetOption(value("configId"), params["value"].clone()),
            },
            "session/close" => {
                self.stage = Stage::Closed;
                PendingRequest::Other
            }
            "authenticate" => {
                self.record_login();
                PendingRequest::Login
            }
            _ => PendingRequest::Other,
        };
        if let PendingRequest::Open(method) = &request {
            self.record_opening(id, method.clone());
        }
        self.pending.insert(rpc::key(id), request);
    }

    fn record_opening(&mut self, id: &Value, method: OpenMethod) {
        if matches!(method, OpenMethod::Load(_)) {
            let replay = if self.transcript_has_messages() { Replay::Dropped } else { Replay::Kept };
            self.opening.replay = Some(replay);
            self.core.is_replaying = true;
        }
        let id = id.as_str().unwrap_or_default().to_owned();
        self.opening.due = None;
        self.stage = Stage::Opening { method, id, is_sent: true };
    }

    fn transcript_has_messages(&self) -> bool {
        let is_message =
            |item: &Item| matches!(item, Item::User { .. } | Item::Assistant { .. } | Item::ToolCall(_));
        self.core.conversation.entries().iter().any(|entry| is_message(&entry.item))
    }

    fn begin_turn(&mut self, id: &Value, text: String) {
        self.transcript.add_prompt(&mut self.core, &text);
        self.core.begin_turn();
        self.forget_allowed_options();
        self.unwritten_prompt = None;
        self.turn = Some(Turn { key: rpc::key(id), text, is_cancelled: false });
    }

    /// The protocol wants an answer to every open request when a turn is cancelled.
    fn cancel_turn(&mut self) {
        self.gaps.owes_cancel = false;
        if let Some(turn) = &mut self.turn {
            turn.is_cancelled = true;
        }
        self.cancel_requests();
    }

    /// An answer of ours is in the journal.
    fn record_our_answer(&mut self, id: &Value, result: Option<&Value>) {
        let key = self.reply_key(id);
        self.owed_replies.retain(|(known, _)| *known != key);
        let request = self.requests.take_decided(|request| request.rpc.as_ref() == Some(id));
        let Some(request) = request else { return };
        let outcome = request.outcome(result);
        if let Some(words) = result.and_then(|result| request.allowed_words(result)) {
            self.record_allowed_option(words);
        }
        self.record_decision(&request.id, outcome);
    }

    /// The user chose a way to log in.
    fn record_login(&mut self) {
        let request = self.requests.take_first(|request| request.rpc.is_none());
        let Some(request) = request else { return };
        self.record_decision(&request.id, ApprovalOutcome { allowed: true, ..ApprovalOutcome::default() });
    }

    fn record_decision(&mut self, id: &str, outcome: ApprovalOutcome) {
        let (by, why) = self.requests.take_decider(id).map(|decider| (decider.by, decider.why)).unzip();
        self.core.decide_approval(id, ApprovalOutcome { by, message: why.flatten(), ..outcome });
    }
}

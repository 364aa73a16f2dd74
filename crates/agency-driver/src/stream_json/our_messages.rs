//! The lines that Agency wrote to the agent, as the journal has them.

use agency_core::conversation::{ApprovalOutcome, Item};
use serde_json::Value;

use super::{StreamRun, content, text};
use crate::conversation::format_answers;

impl StreamRun {
    pub(super) fn record_our_message(&mut self, message: &Value) {
        match message["type"].as_str() {
            Some("user") => {
                self.core.begin_turn();
                self.core.add(Item::User { text: content(&message["message"]["content"]) });
                self.is_working = true;
                self.may_switch_mode = false;
                self.unanswered = self.unanswered.saturating_add(1);
            }
            Some("control_response") => self.record_our_answer(&message["response"]),
            Some("control_request") => {
                if let Some(id) = message["request_id"].as_str() {
                    self.record_our_request(id, &message["request"]);
                }
            }
            _ => {}
        }
    }

    fn record_our_answer(&mut self, response: &Value) {
        let Some(id) = text(&response["request_id"]) else { return };
        self.refusals.retain(|refused| *refused != id);
        let Some(request) = self.requests.take_decided(|request| request.agent_id == id) else { return };
        let id = request.id;
        let answer = &response["response"];
        let (by, why) = self.requests.take_decider(&id).map(|decider| (decider.by, decider.why)).unzip();
        let outcome = ApprovalOutcome {
            allowed: answer["behavior"].as_str() == Some("allow"),
            cancelled: false,
            message: text(&answer["message"]).or(why.flatten()),
            by,
            answer: format_answers(&answer["updatedInput"]["answers"]),
        };
        self.may_switch_mode |= outcome.allowed && may_switch_mode(&request.tool, answer);
        self.core.decide_approval(&id, outcome);
    }

    fn record_our_request(&mut self, id: &str, request: &Value) {
        if let Some(number) = id.strip_prefix("agency-").and_then(|number| number.parse().ok()) {
            self.core.skip_request_number(number);
        }
        self.settings.record_request(id, request);
    }
}

/// Whether an answer that allows a request may change the mode: the tool leaves the planning mode, or the answer names one.
fn may_switch_mode(tool: &str, answer: &Value) -> bool {
    let updates = answer["updatedPermissions"].as_array().into_iter().flatten();
    tool.ends_with("PlanMode") || updates.into_iter().any(|update| update["type"].as_str() == Some("setMode"))
}

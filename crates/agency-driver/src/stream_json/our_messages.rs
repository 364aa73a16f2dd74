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
        self.core.decide_approval(&id, outcome);
    }

    fn record_our_request(&mut self, id: &str, request: &Value) {
        if let Some(number) = id.strip_prefix("agency-").and_then(|number| number.parse().ok()) {
            self.core.skip_request_number(number);
        }
        self.settings.record_request(id, request);
    }
}

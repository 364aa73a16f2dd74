//! The end of a turn: its result, its usage, and the requests that end with it.

use agency_core::conversation::{TurnEnd, Usage};
use agency_core::plain::one_line;
use serde_json::Value;

use super::super::rpc::{self, Refusal};
use super::AcpRun;

impl AcpRun {
    pub(super) fn end_turn(&mut self, id: &Value, answer: Result<Value, Refusal>) {
        if self.turn.take_if(|turn| turn.key == rpc::key(id)).is_none() {
            return;
        }
        self.cancel_requests();
        let last_message = self.transcript.end_turn(&mut self.core);
        let end = match answer {
            Ok(result) => self.turn_end(&result, last_message),
            Err(refusal) => TurnEnd {
                text: Some(refusal.summary()),
                reason: Some("error".to_owned()),
                failed: true,
                usage: self.core.add_tokens(Usage::default()),
            },
        };
        if end.failed || end.reason.as_deref() == Some("cancelled") {
            self.transcript.tools.fail(&mut self.core.conversation);
        }
        self.core.end_turn(end);
    }

    fn turn_end(&mut self, result: &Value, last_message: Option<String>) -> TurnEnd {
        let reason = result["stopReason"].as_str().map(|reason| one_line(reason, 60));
        let failed = matches!(reason.as_deref(), Some("refusal" | "max_tokens" | "max_turn_requests"));
        let count = |name: &str| result["usage"][name].as_u64().unwrap_or(0);
        // Gemini reports its tokens in a field of its own.
        let quota = |name: &str| result["_meta"]["quota"]["token_count"][name].as_u64().unwrap_or(0);
        let has_usage = result["usage"].is_object();
        let or_quota = |tokens: u64, name: &str| if has_usage { tokens } else { quota(name) };
        let usage = self.core.add_tokens(Usage {
            input_tokens: or_quota(
                count("inputTokens").saturating_add(count("cachedWriteTokens")),
                "input_tokens",
            ),
            output_tokens: or_quota(count("outputTokens"), "output_tokens"),
            cached_tokens: count("cachedReadTokens"),
            cost_usd: None,
        });
        let text = if failed { reason.clone() } else { last_message };
        TurnEnd { text, reason, failed, usage }
    }

    /// Cancels every open request of the agent, and owes the agent the answer that says so.
    pub(super) fn cancel_requests(&mut self) {
        for request in self.requests.take_all(|request| request.rpc.is_some()) {
            if let Some(rpc) = &request.rpc {
                self.owe_reply(rpc, rpc::answer(rpc, &request.cancellation()));
            }
            self.core.withdraw_approval(&request.id);
        }
    }

    /// Owes the agent an answer that needs no decision of a user.
    pub(super) fn owe_reply(&mut self, id: &Value, line: Vec<u8>) {
        let key = self.reply_key(id);
        self.owed_replies.retain(|(known, _)| *known != key);
        self.owed_replies.push((key, line));
    }

    pub(super) fn reply_key(&self, id: &Value) -> String {
        format!("reply {} {}", self.epoch, rpc::key(id))
    }
}

//! Lines of a session that were lost while its connection lived: it is unknown which requests are still open.

use super::super::opening::{OpenMethod, Stage};
use super::{AcpRun, PendingRequest};
use crate::conversation::ConversationEvent;

impl AcpRun {
    /// Ends every wait for an answer that may be lost, and makes the agent end a turn that Agency cannot see.
    pub(super) fn cross_gap(&mut self, cause: Option<&str>) {
        if matches!(self.stage, Stage::Down | Stage::Greeting) {
            return;
        }
        self.gaps.count += 1;
        self.transcript.finish_message(&mut self.core);
        self.end_replay();
        self.core.drop_partial_lines();
        self.cancel_requests();
        self.fail_unknown_turn(cause);
        let pending = std::mem::take(&mut self.pending);
        self.unwritten_prompt = None;
        self.owed_settings.clear();
        let is_login_open = pending.values().any(|request| *request == PendingRequest::Login);
        pending.into_iter().for_each(|(key, request)| self.fail_unknown_setting(&key, &request));
        match self.stage.clone() {
            Stage::Opening { method, .. } => self.open_session_again(method),
            Stage::Locked { method } if is_login_open => self.open_session_again(method),
            Stage::Settling => {
                // The requests get new ids, so that a late answer to an old one is no answer to them.
                self.opening.attempts += 1;
                self.apply_settings();
            }
            Stage::Locked { .. }
            | Stage::Ready
            | Stage::Failed { .. }
            | Stage::Closed
            | Stage::Down
            | Stage::Greeting => {}
        }
        self.gaps.owes_cancel = matches!(self.stage, Stage::Settling | Stage::Ready | Stage::Failed { .. })
            && self.opening.target.is_some();
    }

    /// A second session without a use does no harm; a session that is never opened does.
    fn open_session_again(&mut self, method: OpenMethod) {
        self.core.add_notice("the agent's answer may be lost; Agency opens the session again");
        self.open_session(method);
    }

    fn fail_unknown_turn(&mut self, cause: Option<&str>) {
        if self.turn.take().is_none() {
            return self.core.add_notice("some of what the agent said here may be lost");
        }
        self.transcript.tools.fail(&mut self.core.conversation);
        // Does not quote the message: states and events may leave this machine.
        let message =
            "the agent's answer may be lost; Agency cancels the turn and does not send the message again";
        self.core.turn_failure = Some(message.to_owned());
        self.core.add_error(message, cause.map(str::to_owned));
    }

    /// A caller may wait for the answer to a setting.
    fn fail_unknown_setting(&mut self, key: &str, request: &PendingRequest) {
        if let PendingRequest::Set(..) | PendingRequest::SetOption(..) = request {
            let request = serde_json::from_str(key).unwrap_or_else(|_| key.to_owned());
            let outcome = Err("the agent's answer may be lost".to_owned());
            self.core.announce(ConversationEvent::SettingAnswered { request, outcome });
        }
    }

    /// The line that ends a turn whose prompt is not in the journal.
    pub(super) fn owed_cancel(&self) -> Option<(String, Vec<u8>)> {
        let line = self.cancel_line().filter(|_| self.gaps.owes_cancel)?;
        Some((format!("cancel {}", self.gaps.count), line))
    }
}

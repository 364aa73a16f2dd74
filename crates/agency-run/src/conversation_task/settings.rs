//! What the agent is set to: shown, and changed as the agent agrees to it.

use std::time::Duration;

use agency_api::{Failure, chat};
use agency_driver::conversation::{AgentSetting, ConversationEvent};
use agency_store::clock;

use super::ConversationTask;
use crate::command::SettingRequest;
use crate::conversation::TimedEvent;
use crate::line_queue::Then;
use crate::reply::send_reply;

/// One that waits for the agent's word.
pub(super) struct PendingSetting {
    request: String,
    tuning: SettingRequest,
    pub(super) due: Duration,
}

/// An agent answers such a request within moments, also in the middle of a turn.
const SET_WITHIN: Duration = Duration::from_secs(15);
/// What it offers is good to know and not worth waiting for.
const TOLD_WITHIN: Duration = Duration::from_secs(3);

impl ConversationTask {
    pub(super) fn tune(&mut self, tuning: SettingRequest) {
        let asked = match &tuning.wanted {
            Some(wanted) => {
                self.fold.run.set(tuning.setting, wanted).map(|request| (Some(request), SET_WITHIN))
            }
            None => Ok((self.fold.run.request_offers(), TOLD_WITHIN)),
        };
        match asked {
            Ok((Some(request), within)) => {
                let due = clock::now() + within;
                self.line_queue.push(request.line, Then::Setting { request: request.id.clone() });
                self.tuning.push(PendingSetting { request: request.id, tuning, due });
            }
            Ok((None, _)) => {
                let shown = self.setting(tuning.setting);
                send_reply(tuning.answer, Ok(shown));
            }
            Err(not_yet) => {
                let word = tuning.setting.word();
                let failure = Failure::new(format!("the {word} cannot be set")).because(not_yet.to_string());
                send_reply(tuning.answer, Err(failure));
            }
        }
    }

    fn setting(&self, setting: AgentSetting) -> chat::Setting {
        let offers = self.fold.run.offers(setting);
        let offered = offers.offers.into_iter().map(|offer| chat::Offer { id: offer.id, name: offer.name });
        chat::Setting { current: offers.current, offered: offered.collect() }
    }

    /// The agent's word on what was asked.
    pub(super) fn tuned(&mut self, told: &[TimedEvent]) {
        for told in told {
            if let ConversationEvent::SettingAnswered { request, outcome } = &told.event {
                self.settle_tuning(request, outcome.clone());
            }
        }
    }

    pub(super) fn settle_tuning(&mut self, request: &str, outcome: Result<(), String>) {
        let Some(at) = self.tuning.iter().position(|asked| asked.request == request) else { return };
        let SettingRequest { setting, wanted, answer } = self.tuning.remove(at).tuning;
        let answered = match (outcome, wanted) {
            (Ok(()), _) | (Err(_), None) => Ok(self.setting(setting)),
            (Err(why), Some(wanted)) => {
                let word = setting.word();
                let failure = Failure::new(format!("the {word} is not set to {wanted}")).because(why);
                Err(failure.hint(format!("agency {word} TASK shows what there is")))
            }
        };
        send_reply(answer, answered);
    }

    /// Those who have waited long enough.
    pub(super) fn give_up_tuning(&mut self) {
        let now = clock::now();
        let late = self.tuning.iter().filter(|asked| asked.due <= now);
        let late: Vec<String> = late.map(|asked| asked.request.clone()).collect();
        for request in late {
            self.settle_tuning(&request, Err("the agent does not answer".to_owned()));
        }
    }

    pub(super) fn end_tuning(&mut self, why: &str) {
        for PendingSetting { tuning, .. } in std::mem::take(&mut self.tuning) {
            send_reply(tuning.answer, Err(Failure::new(why)));
        }
    }
}

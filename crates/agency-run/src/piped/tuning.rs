//! What the agent is set to: shown, and changed as the agent agrees to it.

use std::time::Duration;

use agency_api::{Failure, chat};
use agency_driver::conversation::{AgentSetting, ConversationEvent};
use agency_store::clock;
use tokio::sync::oneshot;

use super::PipedTask;
use crate::outbox::Then;
use crate::run::tell;
use crate::talk::Told;

/// A caller who wants to know or to change a setting.
#[derive(Debug)]
pub struct Tuning {
    pub setting: AgentSetting,
    /// Absent: only shown.
    pub wanted: Option<String>,
    pub answer: oneshot::Sender<Result<chat::Setting, Failure>>,
}

/// One that waits for the agent's word.
pub(super) struct Asked {
    request: String,
    tuning: Tuning,
    pub(super) due: Duration,
}

/// An agent answers such a request within moments, also in the middle of a turn.
const SET_WITHIN: Duration = Duration::from_secs(15);
/// What it offers is good to know and not worth waiting for.
const TOLD_WITHIN: Duration = Duration::from_secs(3);

impl PipedTask {
    pub(super) fn tune(&mut self, tuning: Tuning) {
        let asked = match &tuning.wanted {
            Some(wanted) => {
                self.fold.run.set(tuning.setting, wanted).map(|request| (Some(request), SET_WITHIN))
            }
            None => Ok((self.fold.run.request_offers(), TOLD_WITHIN)),
        };
        match asked {
            Ok((Some(request), within)) => {
                let due = clock::now() + within;
                self.outbox.push(request.line, Then::Setting { request: request.id.clone() });
                self.tuning.push(Asked { request: request.id, tuning, due });
            }
            Ok((None, _)) => {
                let shown = self.setting(tuning.setting);
                tell(tuning.answer, Ok(shown));
            }
            Err(not_yet) => {
                let word = tuning.setting.word();
                let failure = Failure::new(format!("the {word} cannot be set")).because(not_yet.to_string());
                tell(tuning.answer, Err(failure));
            }
        }
    }

    fn setting(&self, setting: AgentSetting) -> chat::Setting {
        let offers = self.fold.run.offers(setting);
        let offered = offers.offers.into_iter().map(|offer| chat::Offer { id: offer.id, name: offer.name });
        chat::Setting { current: offers.current, offered: offered.collect() }
    }

    /// The agent's word on what was asked.
    pub(super) fn tuned(&mut self, told: &[Told]) {
        for told in told {
            if let ConversationEvent::SettingAnswered { request, outcome } = &told.event {
                self.settle_tuning(request, outcome.clone());
            }
        }
    }

    pub(super) fn settle_tuning(&mut self, request: &str, outcome: Result<(), String>) {
        let Some(at) = self.tuning.iter().position(|asked| asked.request == request) else { return };
        let Tuning { setting, wanted, answer } = self.tuning.remove(at).tuning;
        let answered = match (outcome, wanted) {
            (Ok(()), _) | (Err(_), None) => Ok(self.setting(setting)),
            (Err(why), Some(wanted)) => {
                let word = setting.word();
                let failure = Failure::new(format!("the {word} is not set to {wanted}")).because(why);
                Err(failure.hint(format!("agency {word} TASK shows what there is")))
            }
        };
        tell(answer, answered);
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
        for Asked { tuning, .. } in std::mem::take(&mut self.tuning) {
            tell(tuning.answer, Err(Failure::new(why)));
        }
    }
}

//! Settings of the agent, such as its model: shown, and changed once the agent agrees.

use std::time::Duration;

use agency_api::{Failure, FailureCode, chat};
use agency_driver::conversation::{AgentOption, AgentSetting, ConversationEvent};
use agency_store::clock;

use super::ConversationTask;
use crate::command::{OptionRequest, SettingRequest};
use crate::conversation::TimedEvent;
use crate::line_queue::LineSource;
use crate::reply::send_reply;

/// A caller that waits for the agent's answer.
pub(super) struct PendingSetting {
    /// The id of the request to the agent.
    id: String,
    request: PendingCaller,
    pub(super) due: Duration,
}

/// The caller that waits, and what it asked for.
enum PendingCaller {
    Setting(SettingRequest),
    Option(OptionRequest),
}

/// An agent answers such a request within moments, also in the middle of a turn.
const SET_WITHIN: Duration = Duration::from_secs(15);
/// A list of what the agent offers is useful, but not worth a long wait.
const LISTED_WITHIN: Duration = Duration::from_secs(3);

impl ConversationTask {
    pub(super) fn configure(&mut self, request: SettingRequest) {
        let to_agent = match &request.wanted {
            Some(wanted) => self.fold.run.set(request.setting, wanted).map(|line| (Some(line), SET_WITHIN)),
            None => Ok((self.fold.run.request_offers(), LISTED_WITHIN)),
        };
        match to_agent {
            Ok((Some(to_agent), within)) => {
                let (id, due) = (to_agent.id, clock::now() + within);
                self.lines.push(to_agent.line, LineSource::Setting { request: id.clone() });
                self.settings.push(PendingSetting { id, request: PendingCaller::Setting(request), due });
            }
            Ok((None, _)) => {
                let current = self.current_setting(request.setting);
                send_reply(request.answer, Ok(current));
            }
            Err(not_yet) => {
                let word = request.setting.word();
                let failure = Failure::new(format!("the {word} cannot be set"))
                    .code(FailureCode::Unsupported)
                    .because(not_yet.to_string());
                send_reply(request.answer, Err(failure));
            }
        }
    }

    pub(super) fn configure_option(&mut self, request: OptionRequest) {
        let to_agent = match (&request.option, &request.value) {
            (Some(option), Some(value)) => {
                self.fold.run.set_option(option, value).map(|line| (Some(line), SET_WITHIN))
            }
            _ => Ok((self.fold.run.request_offers(), LISTED_WITHIN)),
        };
        match to_agent {
            Ok((Some(to_agent), within)) => {
                let (id, due) = (to_agent.id, clock::now() + within);
                self.lines.push(to_agent.line, LineSource::Setting { request: id.clone() });
                self.settings.push(PendingSetting { id, request: PendingCaller::Option(request), due });
            }
            Ok((None, _)) => self.answer_option(request, Ok(())),
            Err(why) => self.answer_option(request, Err(why.to_string())),
        }
    }

    fn answer_option(&self, request: OptionRequest, outcome: Result<(), String>) {
        let OptionRequest { option, value, answer } = request;
        let name = option.as_deref().unwrap_or("option");
        if let (Err(why), Some(value)) = (outcome, &value) {
            let failure = Failure::new(format!("the option {name} is not set to {value}"))
                .code(FailureCode::InvalidArgument)
                .because(why)
                .hint("agency option TASK shows the options and their values");
            return send_reply(answer, Err(failure));
        }
        let is_meant = |known: &AgentOption| option.as_ref().is_none_or(|name| known.is_called(name));
        let options: Vec<chat::AgentOption> =
            self.fold.run.options().into_iter().filter(is_meant).map(option_view).collect();
        let answered = match options.is_empty() && option.is_some() {
            true => Err(Failure::new(format!("the agent has no option called {name}"))
                .code(FailureCode::NotFound)
                .hint("agency option TASK shows the options and their values")),
            false => Ok(chat::AgentOptions { options }),
        };
        send_reply(answer, answered);
    }

    fn current_setting(&self, setting: AgentSetting) -> chat::Setting {
        let offers = self.fold.run.offers(setting);
        let offered = offers.offers.into_iter().map(|offer| chat::Offer { id: offer.id, name: offer.name });
        chat::Setting { current: offers.current, offered: offered.collect() }
    }

    /// Answers the callers whose requests the agent has answered.
    pub(super) fn settle_answered_settings(&mut self, events: &[TimedEvent]) {
        for TimedEvent { event, .. } in events {
            if let ConversationEvent::SettingAnswered { request, outcome } = event {
                self.settle_setting(request, outcome.clone());
            }
        }
    }

    pub(super) fn settle_setting(&mut self, id: &str, outcome: Result<(), String>) {
        let Some(at) = self.settings.iter().position(|pending| pending.id == id) else { return };
        let SettingRequest { setting, wanted, answer } = match self.settings.remove(at).request {
            PendingCaller::Setting(request) => request,
            PendingCaller::Option(request) => return self.answer_option(request, outcome),
        };
        let answered = match (outcome, wanted) {
            (Ok(()), _) | (Err(_), None) => Ok(self.current_setting(setting)),
            (Err(why), Some(wanted)) => {
                let word = setting.word();
                let failure = Failure::new(format!("the {word} is not set to {wanted}"))
                    .code(FailureCode::InvalidArgument)
                    .because(why);
                Err(failure.hint(format!("agency {word} TASK shows what there is")))
            }
        };
        send_reply(answer, answered);
    }

    pub(super) fn give_up_late_settings(&mut self) {
        let now = clock::now();
        let late = self.settings.iter().filter(|pending| pending.due <= now);
        let late: Vec<String> = late.map(|pending| pending.id.clone()).collect();
        for id in late {
            self.settle_setting(&id, Err("the agent does not answer".to_owned()));
        }
    }

    pub(super) fn give_up_settings(&mut self, why: &str) {
        for PendingSetting { request, .. } in std::mem::take(&mut self.settings) {
            let failure = Failure::new(why).code(FailureCode::NotDelivered);
            match request {
                PendingCaller::Setting(request) => send_reply(request.answer, Err(failure)),
                PendingCaller::Option(request) => send_reply(request.answer, Err(failure)),
            }
        }
    }
}

fn option_view(option: AgentOption) -> chat::AgentOption {
    let AgentOption { id, name, description, offers } = option;
    let offered = offers.offers.into_iter().map(|offer| chat::Offer { id: offer.id, name: offer.name });
    chat::AgentOption { id, name, description, current: offers.current, offered: offered.collect() }
}

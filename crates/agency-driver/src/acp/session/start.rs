//! From the agent's greeting to a session that accepts messages: open it, log in if necessary, set mode and model.

use std::time::Duration;

use agency_core::plain::one_line;
use serde_json::Value;

use super::super::agent_request::AgentRequest;
use super::super::opening::{Capabilities, OPENED_WITHIN, OpenMethod, Stage};
use super::super::rpc::{self, Refusal};
use super::super::settings::option_word;
use super::{AcpRun, PendingRequest};
use crate::conversation::AgentSetting;

impl AcpRun {
    /// The agent introduced itself: open the session.
    pub(super) fn read_greeting(&mut self, result: &Value) {
        if !matches!(self.stage, Stage::Greeting) {
            return;
        }
        self.capabilities = Capabilities::read(result);
        match OpenMethod::best(self.opening.target.as_deref(), &self.capabilities) {
            Some(method) => self.open_session(method),
            None => self.open_new_session("it can neither resume nor load one"),
        }
    }

    pub(super) fn open_session(&mut self, method: OpenMethod) {
        self.opening.attempts += 1;
        self.opening.due = None;
        let id = self.request_id(&format!("open{}", self.opening.attempts));
        self.stage = Stage::Opening { method, id, is_sent: false };
    }

    /// The agent cannot reopen the session. If the caller required it (`must_resume`), fail and keep its id for a
    /// later attempt; otherwise open a new one.
    fn open_new_session(&mut self, why: &str) {
        if self.terms.must_resume && self.opening.target == self.terms.session_id {
            let way_out = "agency restart --fresh begins a new one, --driver goes back to the one before";
            return self.fail_session(format!("it cannot continue this one: {why}; {way_out}"));
        }
        let message = "the agent does not have this session any more; \
            a new session begins, and it knows nothing of the old one";
        self.core.add_error(message, Some(why.to_owned()));
        self.opening.target = None;
        self.open_session(OpenMethod::New);
    }

    /// The agent opened the session.
    pub(super) fn read_opened(&mut self, method: &OpenMethod, result: &Value) {
        self.end_replay();
        if matches!(self.stage, Stage::Failed { .. }) {
            self.core.add_notice("the agent has opened the session after all");
        }
        let named = result["sessionId"].as_str().filter(|id| !id.is_empty());
        let session = match (method, named) {
            (OpenMethod::Resume(session) | OpenMethod::Load(session), _) => session.clone(),
            (OpenMethod::New, Some(session)) => session.to_owned(),
            (OpenMethod::New, None) => return self.fail_session("it named no session".to_owned()),
        };
        (self.opening.target, self.core.session_id) = (Some(session.clone()), Some(session));
        self.settings.read(result);
        self.apply_settings();
    }

    /// The agent refused to open the session.
    pub(super) fn read_not_opened(&mut self, method: OpenMethod, refusal: &Refusal) {
        self.end_replay();
        if refusal.code == rpc::LOGIN_FIRST && !self.capabilities.logins.is_empty() {
            let agent = self.capabilities.name.clone().unwrap_or_else(|| "the agent".to_owned());
            let request = AgentRequest::login(self.login_id(), &agent, &self.capabilities.logins);
            self.stage = Stage::Locked { method };
            return self.open_request(request);
        }
        match method.next(&self.capabilities) {
            Some(OpenMethod::New) => self.open_new_session(&refusal.summary()),
            Some(next) => self.open_session(next),
            None => self.fail_session(refusal.summary()),
        }
    }

    fn fail_session(&mut self, cause: String) {
        let message = "the agent begins no session";
        self.stage = Stage::Failed { why: format!("{message}: {cause}") };
        self.core.add_error(message, Some(cause));
    }

    /// The agent accepted a login: open the session again.
    pub(super) fn read_login(&mut self) {
        if let Stage::Locked { method } = self.stage.clone() {
            self.open_session(method);
        }
    }

    pub(super) fn read_login_refused(&mut self, refusal: &Refusal) {
        let message = "the agent could not log in";
        self.stage = Stage::Failed { why: format!("{message}: {}", refusal.summary()) };
        self.core.add_error(message, Some(refusal.summary()));
    }

    pub(super) fn login_id(&self) -> String {
        self.request_id(&format!("login{}", self.opening.attempts))
    }
}

/// Mode and model.
impl AcpRun {
    /// Sets the mode and the model that the user wants before any message, or the agent would work in its own mode.
    pub(super) fn apply_settings(&mut self) {
        self.stage = Stage::Settling;
        self.opening.due = None;
        for setting in [AgentSetting::Mode, AgentSetting::Model] {
            let wanted = self.wanted_setting(setting);
            let wanted = match setting {
                AgentSetting::Mode => wanted.or_else(|| self.safer_mode()),
                AgentSetting::Model => wanted,
            };
            let Some(wanted) = wanted else { continue };
            if self.settings.offers(setting).current.as_ref() == Some(&wanted) {
                continue;
            }
            match self.settings.change(setting, &wanted) {
                Some(mut change) => {
                    change.params["sessionId"] = Value::from(self.opening.target.clone());
                    let id = self.request_id(&format!("{}{}", setting.word(), self.opening.attempts));
                    let line = rpc::request(&id, change.method, &change.params);
                    self.owed_settings.push((id, line));
                }
                None if self.may_lack(setting) => self.warn_about_missing_modes(&wanted),
                None => self.fail_setting(setting, self.describe_missing(setting, &wanted)),
            }
        }
        for (option, mut change) in self.settings.restored_options() {
            change.params["sessionId"] = Value::from(self.opening.target.clone());
            let id = self.request_id(&format!("option{}-{option}", self.opening.attempts));
            let line = rpc::request(&id, change.method, &change.params);
            self.owed_settings.push((id, line));
        }
        self.become_ready(None);
    }

    /// The user's last choice, or the value in the configuration.
    fn wanted_setting(&self, setting: AgentSetting) -> Option<String> {
        let usual = match setting {
            AgentSetting::Mode => &self.terms.mode,
            AgentSetting::Model => &self.terms.model,
        };
        self.settings.chosen(setting).or(usual.as_ref()).cloned()
    }

    /// Whether the session may go on without this setting: the agent offers no modes, and the user has chosen none.
    fn may_lack(&self, setting: AgentSetting) -> bool {
        setting == AgentSetting::Mode
            && self.terms.is_mode_usual
            && self.settings.chosen(setting).is_none()
            && self.settings.offers(setting).offers.is_empty()
    }

    /// A session in another mode than the user wants gets no message: it might do what the user did not allow.
    fn fail_setting(&mut self, setting: AgentSetting, why: String) {
        self.core.add_error(&why, None);
        if setting == AgentSetting::Mode {
            self.stage = Stage::Failed { why };
        }
    }

    /// Makes the session ready once no setting is owed or in flight. A mode that the user set repairs a failed session.
    fn become_ready(&mut self, set: Option<AgentSetting>) {
        let sets = |request: &PendingRequest| {
            matches!(request, PendingRequest::Set(..) | PendingRequest::SetOption(..))
        };
        let is_setting = self.pending.values().any(sets);
        let is_repaired = matches!(self.stage, Stage::Failed { .. }) && set == Some(AgentSetting::Mode);
        if (self.stage == Stage::Settling || is_repaired) && self.owed_settings.is_empty() && !is_setting {
            self.stage = Stage::Ready;
        }
    }

    pub(super) fn read_setting_accepted(
        &mut self,
        id: &Value,
        setting: AgentSetting,
        value: String,
        result: &Value,
    ) {
        self.settings.record_current(setting, &value);
        self.settings.read(result);
        if self.stage == Stage::Ready {
            self.core.add_notice(format!("{}: {value}", setting.word()));
        }
        if setting == AgentSetting::Mode {
            self.record_mode_set(&value, is_users_request(id));
        }
        if is_users_request(id) {
            self.settings.choose(setting, value);
        }
        self.become_ready(Some(setting));
    }

    pub(super) fn read_option_accepted(&mut self, id: &Value, option: &str, value: Value, result: &Value) {
        self.settings.record_option(option, &value);
        self.settings.read(result);
        if self.stage == Stage::Ready {
            let words = format!("{option}: {}", option_word(&value));
            self.core.add_notice(one_line(&words, 120));
        }
        if is_users_request(id) {
            self.settings.choose_option(option, value);
        }
        self.become_ready(None);
    }

    pub(super) fn read_option_refused(&mut self, option: &str, value: &Value, refusal: &Refusal) {
        let value = option_word(value);
        let why = format!("the agent refuses the value {value} of {option}: {}", refusal.summary());
        self.core.add_error(&one_line(&why, 300), None);
        self.become_ready(None);
    }

    pub(super) fn read_setting_refused(&mut self, setting: AgentSetting, value: &str, refusal: &Refusal) {
        let why = format!("the agent refuses the {} {value}: {}", setting.word(), refusal.summary());
        match self.stage {
            Stage::Settling => self.fail_setting(setting, why),
            _ => self.core.add_error(&why, None),
        }
        self.become_ready(None);
    }
}

/// The time limit of the opening.
impl AcpRun {
    /// Begins the time limit if the agent owes an answer that the session needs.
    pub(super) fn set_time_limit(&mut self) {
        let is_set = |request: &PendingRequest| matches!(request, PendingRequest::Set(..));
        let is_waiting = match self.stage {
            Stage::Opening { .. } => true,
            Stage::Settling => self.pending.values().any(is_set),
            Stage::Down
            | Stage::Greeting
            | Stage::Locked { .. }
            | Stage::Ready
            | Stage::Failed { .. }
            | Stage::Closed => false,
        };
        let due = self.core.now().saturating_add(OPENED_WITHIN);
        self.opening.due = is_waiting.then(|| self.opening.due.unwrap_or(due));
    }

    /// Fails the opening if its time limit has passed. Returns whether it has. A late answer still opens the session.
    pub(super) fn expire(&mut self, now: Duration) -> bool {
        let Some(due) = self.opening.due.take_if(|due| *due <= now) else { return false };
        self.core.begin_record(due);
        let within = OPENED_WITHIN.as_secs();
        match self.stage.clone() {
            Stage::Opening { method, .. } => {
                self.end_replay();
                self.fail_session(format!("it did not answer {} within {within} seconds", method.name()));
            }
            Stage::Settling => {
                let late = self.pending.values().filter_map(|request| match request {
                    PendingRequest::Set(setting, value) => Some((*setting, value.clone())),
                    _ => None,
                });
                for (setting, value) in late.collect::<Vec<_>>() {
                    let word = setting.word();
                    let why = format!("the agent did not set the {word} {value} within {within} seconds");
                    self.fail_setting(setting, why);
                }
                // A model is a wish; a mode is a promise to the user.
                self.pending
                    .retain(|_, request| !matches!(request, PendingRequest::Set(AgentSetting::Model, _)));
                self.become_ready(None);
            }
            Stage::Down
            | Stage::Greeting
            | Stage::Locked { .. }
            | Stage::Ready
            | Stage::Failed { .. }
            | Stage::Closed => {}
        }
        true
    }

    /// The agent answered a request that Agency did not make, and the answer names a session.
    pub(super) fn read_stray_session(&mut self) {
        if let Stage::Opening { method, is_sent: true, .. } = self.stage.clone() {
            let name = method.name();
            self.fail_session(format!("it answered {name} under an id that Agency did not use"));
        }
    }
}

/// Whether a user made this request: its id ends with a number. Requests that open a session end with a word.
fn is_users_request(id: &Value) -> bool {
    id.as_str().and_then(|id| id.rsplit_once(':')).is_some_and(|(_, what)| what.parse::<u64>().is_ok())
}

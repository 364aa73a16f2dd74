//! From the agent's greeting to a session that accepts messages: open it, log in if necessary, set mode and model.

use serde_json::Value;

use super::super::agent_request::AgentRequest;
use super::super::opening::{Capabilities, OpenMethod, Stage};
use super::super::rpc::{self, Refusal};
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
        for setting in [AgentSetting::Mode, AgentSetting::Model] {
            let Some(wanted) = self.wanted_setting(setting) else { continue };
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
                None => self.fail_setting(setting, self.describe_missing(setting, &wanted)),
            }
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

    /// A session in another mode than the user wants gets no message: it might do what the user did not allow.
    fn fail_setting(&mut self, setting: AgentSetting, why: String) {
        self.core.add_error(&why, None);
        if setting == AgentSetting::Mode {
            self.stage = Stage::Failed { why };
        }
    }

    /// Makes the session ready once no setting is owed or in flight. A mode that the user set repairs a failed session.
    fn become_ready(&mut self, set: Option<AgentSetting>) {
        let is_setting = self.pending.values().any(|request| matches!(request, PendingRequest::Set(..)));
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
        if is_users_request(id) {
            self.settings.choose(setting, value);
        }
        self.become_ready(Some(setting));
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

/// Whether a user made this request: its id ends with a number. Requests that open a session end with a word.
fn is_users_request(id: &Value) -> bool {
    id.as_str().and_then(|id| id.rsplit_once(':')).is_some_and(|(_, what)| what.parse::<u64>().is_ok())
}

//! The lines that Agency writes to an agent in its session.

use serde_json::{Value, json};

use super::super::opening::Stage;
use super::super::rpc;
use super::AcpRun;
use crate::conversation::{AgentSetting, AnswerError, ApprovalAnswer, ImageBlock, NotReady, OurRequest};

impl AcpRun {
    /// A message of the user. Refused while the turn of another message is in progress.
    pub fn prompt(&mut self, text: &str) -> Result<Vec<u8>, NotReady> {
        self.prompt_with(text, &[])
    }

    /// A message of the user with images.
    pub fn prompt_with(&mut self, text: &str, images: &[ImageBlock]) -> Result<Vec<u8>, NotReady> {
        self.require_session()?;
        if self.turn.is_some() || self.unwritten_prompt.is_some() || self.gaps.owes_cancel {
            return Err(NotReady::Busy);
        }
        let image =
            |image: &ImageBlock| json!({ "type": "image", "mimeType": image.media_type, "data": image.data });
        let text = json!({ "type": "text", "text": text });
        let blocks: Vec<Value> = std::iter::once(text).chain(images.iter().map(image)).collect();
        let params = json!({ "prompt": blocks });
        let (id, line) = self.request("session/prompt", params);
        self.unwritten_prompt = Some(id);
        Ok(line)
    }

    /// Forgets the last prompt: its line did not reach the agent and will not.
    pub fn drop_unwritten_prompt(&mut self) {
        self.unwritten_prompt = None;
    }

    /// The answer to an open request.
    pub fn answer(&self, id: &str, verdict: &ApprovalAnswer) -> Result<Vec<u8>, AnswerError> {
        let request = self.requests.get(id).ok_or(AnswerError::NotOpen)?;
        let result = request.result(verdict)?;
        Ok(match &request.rpc {
            Some(rpc) => rpc::answer(rpc, &result),
            None => rpc::request(&self.login_id(), "authenticate", &result),
        })
    }

    /// Lines that must be written and are not in the journal yet, each with its own key.
    pub fn owed_lines(&self) -> Vec<(String, Vec<u8>)> {
        let mut owed = self.owed_replies.clone();
        owed.extend(self.owed_cancel());
        if let Stage::Opening { method, id, is_sent: false } = &self.stage {
            let cwd = self.terms.cwd.to_string_lossy();
            let params = method.params(&cwd, &self.terms.servers);
            owed.push((id.clone(), rpc::request(id, method.name(), &params)));
        }
        owed.extend(self.owed_settings.iter().cloned());
        owed
    }

    /// Ends the turn and keeps the session. `None` if there is no turn.
    pub fn interrupt(&mut self) -> Option<Vec<u8>> {
        self.turn.as_ref()?;
        self.cancel_line()
    }

    pub(super) fn cancel_line(&self) -> Option<Vec<u8>> {
        let session = self.opening.target.as_ref()?;
        Some(rpc::notification("session/cancel", &json!({ "sessionId": session })))
    }

    /// Ends the turn, and closes the session if the agent can.
    pub fn stop(&mut self) -> Vec<Vec<u8>> {
        let mut lines: Vec<Vec<u8>> = self.interrupt().into_iter().collect();
        if self.can_close() {
            lines.push(self.request("session/close", json!({})).1);
        }
        lines
    }

    /// Whether [`AcpRun::stop`] has nothing left to end.
    pub fn has_stopped(&self) -> bool {
        self.turn.is_none() && !self.can_close()
    }

    fn can_close(&self) -> bool {
        let is_open = matches!(self.stage, Stage::Settling | Stage::Ready | Stage::Failed { .. });
        is_open && self.capabilities.close && self.opening.target.is_some()
    }

    /// Changes a setting.
    pub fn set(&mut self, setting: AgentSetting, wanted: &str) -> Result<OurRequest, NotReady> {
        if !matches!(self.stage, Stage::Ready | Stage::Settling | Stage::Failed { .. }) {
            return Err(NotReady::NoSession);
        }
        let change = self.settings.change(setting, wanted);
        let change =
            change.ok_or_else(|| NotReady::Refused { why: self.describe_missing(setting, wanted) })?;
        let (id, line) = self.request(change.method, change.params);
        Ok(OurRequest { id, line })
    }

    /// Changes an option of the session.
    pub fn set_option(&mut self, name: &str, wanted: &str) -> Result<OurRequest, NotReady> {
        let options = self.settings.all_options();
        let Some(option) = options.iter().find(|option| option.is_called(name)) else {
            let ids: Vec<&str> = options.iter().map(|option| option.id.as_str()).collect();
            let known = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
            let why = format!("the agent has no option called {name}; it has {known}");
            return Err(NotReady::Refused { why });
        };
        let settings = [AgentSetting::Mode, AgentSetting::Model];
        let is_setting = |setting: &AgentSetting| {
            self.settings.setting_of_option(&option.id) == Some(*setting)
                || (setting.word() == option.id && !self.settings.is_listed(&option.id))
        };
        if let Some(setting) = settings.into_iter().find(is_setting) {
            return self.set(setting, wanted);
        }
        if !matches!(self.stage, Stage::Ready | Stage::Settling | Stage::Failed { .. }) {
            return Err(NotReady::NoSession);
        }
        let values: Vec<&str> = option.offers.offers.iter().map(|offer| offer.id.as_str()).collect();
        let change = self.settings.change_option(&option.id, wanted).ok_or_else(|| NotReady::Refused {
            why: format!("the option {} has no value {wanted}; it has {}", option.id, values.join(", ")),
        })?;
        let (id, line) = self.request(change.method, change.params);
        Ok(OurRequest { id, line })
    }

    pub(super) fn describe_missing(&self, setting: AgentSetting, wanted: &str) -> String {
        let known: Vec<String> =
            self.settings.offers(setting).offers.into_iter().map(|offer| offer.id).collect();
        let word = setting.word();
        match known.is_empty() {
            true => format!("the agent offers no choice of {word}, so it has no {word} called {wanted}"),
            false => format!("the agent has no {word} called {wanted}; it has {}", known.join(", ")),
        }
    }

    fn require_session(&self) -> Result<(), NotReady> {
        match &self.stage {
            Stage::Ready => Ok(()),
            Stage::Failed { why } => Err(NotReady::Refused { why: why.clone() }),
            Stage::Locked { .. } => {
                Err(NotReady::Refused { why: "the agent wants you to log in first".to_owned() })
            }
            Stage::Closed => Err(NotReady::Refused { why: "the session was closed".to_owned() }),
            Stage::Down | Stage::Greeting | Stage::Opening { .. } | Stage::Settling => {
                Err(NotReady::NoSession)
            }
        }
    }

    /// A request in this session, with the next number.
    fn request(&mut self, method: &str, mut params: Value) -> (String, Vec<u8>) {
        let number = self.core.take_request_number();
        let id = self.request_id(&number.to_string());
        params["sessionId"] = json!(self.opening.target);
        let line = rpc::request(&id, method, &params);
        (id, line)
    }

    /// An id that begins with the run, so that the router can route its answer.
    pub(super) fn request_id(&self, what: &str) -> String {
        format!("{}:{what}", self.terms.run)
    }
}

//! What is written to an agent in its session; each is one line.

use serde_json::{Value, json};

use super::super::opening::Stage;
use super::super::rpc;
use super::AcpRun;
use crate::conversation::{AgentSetting, AnswerError, ApprovalAnswer, NotReady};

impl AcpRun {
    /// A message. One at a time: a second one is refused until the turn of the first is over.
    pub fn prompt(&mut self, text: &str) -> Result<Vec<u8>, NotReady> {
        self.there()?;
        if self.turn.is_some() || self.writing.is_some() {
            return Err(NotReady::Busy);
        }
        let params = json!({ "prompt": [{ "type": "text", "text": text }] });
        let (id, line) = self.request("session/prompt", params);
        self.writing = Some(id);
        Ok(line)
    }

    /// The line of the last prompt did not reach the agent, and will not.
    pub fn prompt_not_written(&mut self) {
        self.writing = None;
    }

    /// The line that answers what is open.
    pub fn answer(&self, id: &str, verdict: &ApprovalAnswer) -> Result<Vec<u8>, AnswerError> {
        let asked = self.open.iter().find(|asked| asked.id == id).ok_or(AnswerError::NotOpen)?;
        let result = asked.result(verdict)?;
        Ok(match &asked.rpc {
            Some(rpc) => rpc::answer(rpc, &result),
            None => rpc::request(&self.named(&format!("login{}", self.openings)), "authenticate", &result),
        })
    }

    /// Lines that must be written next and are not in the journal yet, each with a key of its own.
    pub fn owed_lines(&self) -> Vec<(String, Vec<u8>)> {
        let mut owed = self.replies.clone();
        if let Stage::Opening { way, id, is_sent: false } = &self.stage {
            let cwd = self.terms.cwd.to_string_lossy();
            let params = way.params(&cwd, &self.terms.servers);
            owed.push((id.clone(), rpc::request(id, way.method(), &params)));
        }
        owed.extend(self.wanted.iter().cloned());
        owed
    }

    /// Ends the turn, and keeps the session.
    pub fn interrupt(&mut self) -> Option<Vec<u8>> {
        self.turn.as_ref()?;
        let session = self.target.as_ref()?;
        Some(rpc::notification("session/cancel", &json!({ "sessionId": session })))
    }

    pub fn set_mode(&mut self, mode: &str) -> Result<Vec<u8>, NotReady> {
        self.set(AgentSetting::Mode, mode)
    }

    pub fn set_model(&mut self, model: &str) -> Result<Vec<u8>, NotReady> {
        self.set(AgentSetting::Model, model)
    }

    /// Ends the turn, and the session where the agent can close one.
    pub fn stop(&mut self) -> Vec<Vec<u8>> {
        let mut lines: Vec<Vec<u8>> = self.interrupt().into_iter().collect();
        let is_there = matches!(self.stage, Stage::Settling | Stage::Ready | Stage::Failed { .. });
        if is_there && self.capabilities.close && self.target.is_some() {
            lines.push(self.request("session/close", json!({})).1);
        }
        lines
    }

    /// Nothing more is to come of [`AcpRun::stop`].
    pub fn has_stopped(&self) -> bool {
        let is_there = matches!(self.stage, Stage::Settling | Stage::Ready | Stage::Failed { .. });
        self.turn.is_none() && !(is_there && self.capabilities.close && self.target.is_some())
    }

    fn set(&mut self, setting: AgentSetting, wanted: &str) -> Result<Vec<u8>, NotReady> {
        if !matches!(self.stage, Stage::Ready | Stage::Settling | Stage::Failed { .. }) {
            return Err(NotReady::NoSession);
        }
        let change = self.settings.change(setting, wanted);
        let change = change.ok_or_else(|| NotReady::Refused { why: self.no_such(setting, wanted) })?;
        Ok(self.request(change.method, change.params).1)
    }

    pub(super) fn no_such(&self, setting: AgentSetting, wanted: &str) -> String {
        let known: Vec<String> =
            self.settings.offers(setting).offers.into_iter().map(|offer| offer.id).collect();
        let word = setting.word();
        match known.is_empty() {
            true => format!("the agent has no {word} to choose, so none called {wanted}"),
            false => format!("the agent has no {word} called {wanted}; it has {}", known.join(", ")),
        }
    }

    fn there(&self) -> Result<(), NotReady> {
        match &self.stage {
            Stage::Ready => Ok(()),
            Stage::Failed { why } => Err(NotReady::Refused { why: why.clone() }),
            Stage::Locked { .. } => {
                Err(NotReady::Refused { why: "the agent wants somebody to log in first".to_owned() })
            }
            Stage::Closed => Err(NotReady::Refused { why: "the session was closed".to_owned() }),
            Stage::Down | Stage::Greeting | Stage::Opening { .. } | Stage::Settling => {
                Err(NotReady::NoSession)
            }
        }
    }

    /// A request in this session, under the next number.
    fn request(&mut self, method: &str, mut params: Value) -> (String, Vec<u8>) {
        let id = self.named(&self.next_request.to_string());
        self.next_request += 1;
        params["sessionId"] = json!(self.target);
        let line = rpc::request(&id, method, &params);
        (id, line)
    }

    /// Ids begin with the run, so that answers find their way back.
    pub(super) fn named(&self, what: &str) -> String {
        format!("{}:{what}", self.terms.run)
    }
}

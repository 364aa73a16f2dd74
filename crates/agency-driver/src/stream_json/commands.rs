//! The lines that Agency writes to an agent over stream-json.

use serde_json::{Value, json};

use super::agent_messages::choices;
use super::settings::StreamSettings;
use super::{ALLOW, ALLOW_ALWAYS, DENY, StreamRun, line};
use crate::conversation::{
    AgentOption, AgentSetting, AnswerError, ApprovalAnswer, ImageBlock, NotReady, Offers, OurRequest,
    find_choice,
};

impl StreamRun {
    /// A message of the user.
    pub fn prompt(text: &str) -> Vec<u8> {
        StreamRun::prompt_with(text, &[])
    }

    /// A message of the user with images.
    pub fn prompt_with(text: &str, images: &[ImageBlock]) -> Vec<u8> {
        let image = |image: &ImageBlock| {
            let source = json!({ "type": "base64", "media_type": image.media_type, "data": image.data });
            json!({ "type": "image", "source": source })
        };
        let text = json!({ "type": "text", "text": text });
        let blocks: Vec<Value> = std::iter::once(text).chain(images.iter().map(image)).collect();
        line(&json!({
            "type": "user",
            "message": { "role": "user", "content": blocks },
            "parent_tool_use_id": null,
            "session_id": "",
        }))
    }

    /// The answer to an open request.
    pub fn answer(&self, id: &str, verdict: &ApprovalAnswer) -> Result<Vec<u8>, AnswerError> {
        let request = self.requests.get(id).ok_or(AnswerError::NotOpen)?;
        let response = match verdict {
            ApprovalAnswer::Choose { id: choice } => {
                let offered = choices(!request.suggestions.is_empty());
                let chosen = find_choice(&offered, choice).ok_or(AnswerError::NotOffered)?;
                return self.answer(id, &answer_of_choice(&chosen.id)?);
            }
            ApprovalAnswer::Allow => json!({ "behavior": "allow", "updatedInput": request.input }),
            ApprovalAnswer::AllowAlways => json!({
                "behavior": "allow",
                "updatedInput": request.input,
                "updatedPermissions": session_permissions(&request.suggestions)?,
            }),
            ApprovalAnswer::Deny { message } => {
                json!({ "behavior": "deny", "message": message, "interrupt": false })
            }
            ApprovalAnswer::Answer { answers } => {
                let mut input = request.input.clone();
                if let Some(fields) = input.as_object_mut() {
                    fields.insert("answers".to_owned(), json!(answers));
                }
                json!({ "behavior": "allow", "updatedInput": input })
            }
        };
        let response = json!({ "subtype": "success", "request_id": request.agent_id, "response": response });
        Ok(line(&json!({ "type": "control_response", "response": response })))
    }

    /// Lines that must be written and are not in the journal yet, with their ids: refusals of requests that this
    /// driver does not know, and requests that restore earlier settings.
    pub fn owed_lines(&self) -> Vec<(String, Vec<u8>)> {
        let refusal = |id: &String| {
            let error = "Agency does not know this request";
            let response = json!({ "subtype": "error", "request_id": id, "error": error });
            (id.clone(), line(&json!({ "type": "control_response", "response": response })))
        };
        let restore = |(id, request): (String, Value)| {
            let message = json!({ "type": "control_request", "request_id": id, "request": request });
            (id, line(&message))
        };
        self.settings.owed_requests().map(restore).chain(self.refusals.iter().map(refusal)).collect()
    }

    /// Ends the turn.
    pub fn interrupt(&mut self) -> Vec<u8> {
        self.request(json!({ "subtype": "interrupt" })).line
    }

    /// The values that the agent offers for a setting, and the current one.
    pub fn offers(&self, setting: AgentSetting) -> Offers {
        self.settings.offers(setting)
    }

    /// All options of the session: its mode and its model.
    pub fn options(&self) -> Vec<AgentOption> {
        let settings = [AgentSetting::Mode, AgentSetting::Model].into_iter();
        settings.filter_map(|setting| AgentOption::of_setting(setting, self.offers(setting))).collect()
    }

    /// Changes an option of the session.
    pub fn set_option(&mut self, name: &str, wanted: &str) -> Result<OurRequest, NotReady> {
        let mut settings = [AgentSetting::Mode, AgentSetting::Model].into_iter();
        match settings.find(|setting| setting.word().eq_ignore_ascii_case(name)) {
            Some(setting) => Ok(self.set(setting, wanted)),
            None => {
                let why =
                    format!("over stream-json the agent has no option called {name}; it has mode, model");
                Err(NotReady::Refused { why })
            }
        }
    }

    /// Changes a setting.
    pub fn set(&mut self, setting: AgentSetting, wanted: &str) -> OurRequest {
        self.request(StreamSettings::request(setting, wanted))
    }

    /// Requests the list of what the agent offers. `None` once we have requested it.
    pub fn request_offers(&mut self) -> Option<OurRequest> {
        self.settings.needs_offers().then(|| self.request(json!({ "subtype": "initialize", "hooks": null })))
    }

    fn request(&mut self, request: Value) -> OurRequest {
        let id = format!("agency-{}", self.core.take_request_number());
        let line = line(&json!({ "type": "control_request", "request_id": id, "request": request }));
        OurRequest { id, line }
    }
}

/// The permissions that the agent remembers for its session, from those that it suggests: rules if it suggests any,
/// because they allow the least. Never in the user's files.
fn session_permissions(suggestions: &[Value]) -> Result<Vec<Value>, AnswerError> {
    let is_rule = |suggestion: &&Value| suggestion["type"].as_str() == Some("addRules");
    let chosen: Vec<&Value> = match suggestions.iter().any(|suggestion| is_rule(&suggestion)) {
        true => suggestions.iter().filter(is_rule).collect(),
        false => suggestions.iter().take(1).collect(),
    };
    if chosen.is_empty() {
        return Err(AnswerError::NothingToRemember);
    }
    let for_session = |suggestion: &Value| {
        let mut suggestion = suggestion.clone();
        if let Some(fields) = suggestion.as_object_mut() {
            fields.insert("destination".to_owned(), json!("session"));
        }
        suggestion
    };
    Ok(chosen.into_iter().map(for_session).collect())
}

fn answer_of_choice(id: &str) -> Result<ApprovalAnswer, AnswerError> {
    Ok(match id {
        ALLOW => ApprovalAnswer::Allow,
        ALLOW_ALWAYS => ApprovalAnswer::AllowAlways,
        DENY => ApprovalAnswer::Deny { message: "The user said no.".to_owned() },
        _ => return Err(AnswerError::NotOffered),
    })
}

//! What is written to an agent over stream-json; each is one line.

use serde_json::{Value, json};

use super::dials::Dials;
use super::{ALLOW, ALLOW_ALWAYS, DENY, StreamRun, line};
use crate::conversation::{AgentSetting, AnswerError, ApprovalAnswer, Offers, OurRequest};

impl StreamRun {
    pub fn prompt(text: &str) -> Vec<u8> {
        line(&json!({
            "type": "user",
            "message": { "role": "user", "content": [{ "type": "text", "text": text }] },
            "parent_tool_use_id": null,
            "session_id": "",
        }))
    }

    pub fn answer(&self, id: &str, verdict: &ApprovalAnswer) -> Result<Vec<u8>, AnswerError> {
        let asked = self.open.iter().find(|asked| asked.id == id).ok_or(AnswerError::NotOpen)?;
        let response = match verdict {
            ApprovalAnswer::Choose { id: choice } => return self.answer(id, &chosen(choice)?),
            ApprovalAnswer::Allow => json!({ "behavior": "allow", "updatedInput": asked.input }),
            ApprovalAnswer::AllowAlways => json!({
                "behavior": "allow",
                "updatedInput": asked.input,
                "updatedPermissions": remembered(&asked.suggestions)?,
            }),
            ApprovalAnswer::Deny { message } => {
                json!({ "behavior": "deny", "message": message, "interrupt": false })
            }
            ApprovalAnswer::Answer { answers } => {
                let mut input = asked.input.clone();
                if let Some(fields) = input.as_object_mut() {
                    fields.insert("answers".to_owned(), json!(answers));
                }
                json!({ "behavior": "allow", "updatedInput": input })
            }
        };
        let response = json!({ "subtype": "success", "request_id": id, "response": response });
        Ok(line(&json!({ "type": "control_response", "response": response })))
    }

    /// The answers to requests that nobody here understands, and what it is to be set to again; by their ids.
    pub fn owed_lines(&self) -> Vec<(String, Vec<u8>)> {
        let refusal = |id: &String| {
            let error = "this request is not known here";
            let response = json!({ "subtype": "error", "request_id": id, "error": error });
            (id.clone(), line(&json!({ "type": "control_response", "response": response })))
        };
        let again = |(id, request): (String, Value)| {
            let message = json!({ "type": "control_request", "request_id": id, "request": request });
            (id, line(&message))
        };
        self.dials.owed().map(again).chain(self.owed.iter().map(refusal)).collect()
    }

    pub fn interrupt(&mut self) -> Vec<u8> {
        self.request(json!({ "subtype": "interrupt" })).line
    }

    pub fn offers(&self, setting: AgentSetting) -> Offers {
        self.dials.offers(setting)
    }

    pub fn set(&mut self, setting: AgentSetting, wanted: &str) -> OurRequest {
        self.request(Dials::request(setting, wanted))
    }

    /// Nothing once it has been asked.
    pub fn ask_offers(&mut self) -> Option<OurRequest> {
        let is_needed = self.dials.is_in_the_dark();
        is_needed.then(|| self.request(json!({ "subtype": "initialize", "hooks": null })))
    }

    fn request(&mut self, request: Value) -> OurRequest {
        let id = format!("agency-{}", self.next_request);
        self.next_request += 1;
        let line = line(&json!({ "type": "control_request", "request_id": id, "request": request }));
        OurRequest { id, line }
    }
}

/// What the agent suggests to remember, for as long as its session: rules if it names any, for they say the least.
/// Never in the user's files.
fn remembered(suggestions: &[Value]) -> Result<Vec<Value>, AnswerError> {
    let is_rule = |suggestion: &&Value| suggestion["type"].as_str() == Some("addRules");
    let chosen: Vec<&Value> = match suggestions.iter().any(|suggestion| is_rule(&suggestion)) {
        true => suggestions.iter().filter(is_rule).collect(),
        false => suggestions.iter().take(1).collect(),
    };
    if chosen.is_empty() {
        return Err(AnswerError::NothingToRemember);
    }
    let for_now = |suggestion: &Value| {
        let mut suggestion = suggestion.clone();
        if let Some(fields) = suggestion.as_object_mut() {
            fields.insert("destination".to_owned(), json!("session"));
        }
        suggestion
    };
    Ok(chosen.into_iter().map(for_now).collect())
}

fn chosen(id: &str) -> Result<ApprovalAnswer, AnswerError> {
    Ok(match id {
        ALLOW => ApprovalAnswer::Allow,
        ALLOW_ALWAYS => ApprovalAnswer::AllowAlways,
        DENY => ApprovalAnswer::Deny { message: "The user said no.".to_owned() },
        _ => return Err(AnswerError::NotOffered),
    })
}

//! What an agent asks in a session: for a permission, a question, or that somebody logs in; and how each is answered.

use std::collections::BTreeMap;

use agency_core::conversation::{Approval, Choice, ChoiceKind, Outcome};
use agency_core::plain::one_line;
use agent_client_protocol_schema::v1::ToolCallUpdate;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::form::Form;
use super::tools::{kind_word, shown};
use crate::conversation::{AnswerError, ApprovalAnswer, answer_of};

/// A request of the agent that nobody has answered.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// As people call it: of its own in the whole conversation.
    pub(super) id: String,
    /// As the agent calls it. Absent: it is not a request of the agent's.
    pub(super) rpc: Option<Value>,
    pub(super) title: String,
    tool: String,
    input: Value,
    choices: Vec<Choice>,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Permission,
    Question(Form),
    /// Each choice is a way to log in.
    Login,
}

impl Asked {
    /// `session/request_permission`.
    pub(super) fn permission(id: String, rpc: Value, params: &Value) -> Asked {
        let call = ToolCallUpdate::deserialize(&params["toolCall"]).ok();
        let fields = call.as_ref().map(|call| &call.fields);
        let named = fields.and_then(|fields| {
            fields.name.clone().or_else(|| fields.kind.map(|kind| kind_word(kind).to_owned()))
        });
        let title = fields.and_then(|fields| fields.title.clone());
        // Of a call that cannot be read people see what came.
        let raw = || if call.is_none() { params["toolCall"].clone() } else { json!({}) };
        let mut input = fields.and_then(|fields| fields.raw_input.clone()).unwrap_or_else(raw);
        let diff = fields.and_then(|fields| fields.content.as_deref()).map(|content| shown(content).0);
        if let (Some(diff), Some(input)) = (diff.filter(|diff| !diff.is_empty()), input.as_object_mut()) {
            input.entry("diff").or_insert(Value::String(diff));
        }
        let tool = named.unwrap_or_else(|| "tool".to_owned());
        let title = one_line(title.as_deref().unwrap_or(&tool), 300);
        Asked {
            id,
            rpc: Some(rpc),
            title,
            tool,
            input,
            choices: choices(&params["options"]),
            kind: Kind::Permission,
        }
    }

    /// `elicitation/create`.
    pub(super) fn question(id: String, rpc: Value, params: &Value) -> Asked {
        let message = params["message"].as_str().unwrap_or("the agent asks something");
        let form = Form::read(message, &params["requestedSchema"]);
        let mut input = json!({ "questions": form.questions() });
        if let (Some(url), Some(fields)) = (params["url"].as_str(), input.as_object_mut()) {
            fields.insert("url".to_owned(), json!(url));
        }
        let choices = vec![
            choice("accept", ChoiceKind::AllowOnce, "Answer"),
            choice("decline", ChoiceKind::RejectOnce, "Decline"),
        ];
        let (title, tool) = (one_line(message, 300), "question".to_owned());
        Asked { id, rpc: Some(rpc), title, tool, input, choices, kind: Kind::Question(form) }
    }

    /// The agent lets nobody in who has not logged in, and names the ways to do so.
    pub(super) fn login(id: String, agent: &str, methods: &[(String, String)]) -> Asked {
        let mut choices: Vec<Choice> =
            methods.iter().map(|(id, name)| choice(id, ChoiceKind::AllowOnce, name)).collect();
        let options: Vec<Value> = methods.iter().map(|(_, name)| json!({ "label": name })).collect();
        let question = format!("How do you want to log in to {agent}?");
        let input = json!({ "questions": [{ "question": question, "options": options }] });
        choices.push(choice("decline", ChoiceKind::RejectOnce, "Not now"));
        let title = format!("{agent} wants somebody to log in");
        Asked { id, rpc: None, title, tool: "login".to_owned(), input, choices, kind: Kind::Login }
    }

    pub(super) fn approval(&self) -> Approval {
        Approval {
            id: self.id.clone(),
            tool: self.tool.clone(),
            title: self.title.clone(),
            input: self.input.clone(),
            choices: self.choices.clone(),
            outcome: None,
        }
    }

    pub(super) fn tool(&self) -> &str {
        &self.tool
    }

    pub(super) fn is_permission(&self) -> bool {
        matches!(self.kind, Kind::Permission)
    }

    /// The result that says so; for a login, the way that is meant.
    pub(super) fn result(&self, verdict: &ApprovalAnswer) -> Result<Value, AnswerError> {
        match &self.kind {
            Kind::Permission => {
                let chosen = self.chosen(verdict)?;
                Ok(json!({ "outcome": { "outcome": "selected", "optionId": chosen } }))
            }
            Kind::Question(form) => answered(form, verdict),
            Kind::Login => self.way_in(verdict),
        }
    }

    /// What is said when nobody is to answer any more.
    pub(super) fn cancelled(&self) -> Value {
        match self.kind {
            Kind::Permission => json!({ "outcome": { "outcome": "cancelled" } }),
            Kind::Question(_) | Kind::Login => json!({ "action": "cancel" }),
        }
    }

    /// What a result that was written means. Nobody said it if the turn was cancelled.
    pub(super) fn outcome(&self, result: Option<&Value>) -> Outcome {
        let said = |allowed, cancelled| Outcome { allowed, cancelled, ..Outcome::default() };
        let Some(result) = result else { return said(false, false) };
        if let Some(action) = result["action"].as_str() {
            let answer = answer_of(&result["content"]);
            return Outcome { answer, ..said(action == "accept", action == "cancel") };
        }
        let option = &result["outcome"]["optionId"];
        let chosen = self.choices.iter().find(|choice| option.as_str() == Some(&choice.id));
        let allows = |choice: &Choice| matches!(choice.kind, ChoiceKind::AllowOnce | ChoiceKind::AllowAlways);
        said(chosen.is_some_and(allows), chosen.is_none())
    }

    /// By kind, for every agent calls its options in its own way.
    fn chosen(&self, verdict: &ApprovalAnswer) -> Result<&str, AnswerError> {
        let of_kind = |kind| self.choices.iter().find(|choice| choice.kind == kind);
        let choice = match verdict {
            ApprovalAnswer::Allow | ApprovalAnswer::Answer { .. } => of_kind(ChoiceKind::AllowOnce),
            ApprovalAnswer::AllowAlways => {
                return of_kind(ChoiceKind::AllowAlways)
                    .map(|choice| choice.id.as_str())
                    .ok_or(AnswerError::NothingToRemember);
            }
            ApprovalAnswer::Deny { .. } => {
                of_kind(ChoiceKind::RejectOnce).or(of_kind(ChoiceKind::RejectAlways))
            }
            ApprovalAnswer::Choose { id } => self.choices.iter().find(|choice| choice.id == *id),
        };
        choice.map(|choice| choice.id.as_str()).ok_or(AnswerError::NotOffered)
    }

    fn way_in(&self, verdict: &ApprovalAnswer) -> Result<Value, AnswerError> {
        let ways = || self.choices.iter().filter(|choice| choice.kind == ChoiceKind::AllowOnce);
        let way = match verdict {
            ApprovalAnswer::Allow | ApprovalAnswer::AllowAlways => ways().next(),
            ApprovalAnswer::Answer { answers } => {
                let is_meant =
                    |way: &&Choice| answers.values().any(|said| *said == way.label || *said == way.id);
                ways().find(is_meant)
            }
            ApprovalAnswer::Choose { id } => ways().find(|way| way.id == *id),
            ApprovalAnswer::Deny { .. } => None,
        };
        way.map(|way| json!({ "methodId": way.id })).ok_or(AnswerError::NotOffered)
    }
}

fn answered(form: &Form, verdict: &ApprovalAnswer) -> Result<Value, AnswerError> {
    let none = BTreeMap::new();
    let answers = match verdict {
        ApprovalAnswer::Answer { answers } => answers,
        ApprovalAnswer::Allow | ApprovalAnswer::AllowAlways => &none,
        ApprovalAnswer::Deny { .. } => return Ok(json!({ "action": "decline" })),
        ApprovalAnswer::Choose { id } if id == "decline" => return Ok(json!({ "action": "decline" })),
        ApprovalAnswer::Choose { .. } => &none,
    };
    let content: Map<String, Value> = form.content(answers)?;
    Ok(json!({ "action": "accept", "content": content }))
}

fn choice(id: &str, kind: ChoiceKind, label: &str) -> Choice {
    Choice { id: id.to_owned(), kind, label: one_line(label, 200) }
}

/// Those of a kind that is known: who does not know what an option does must not choose it.
fn choices(options: &Value) -> Vec<Choice> {
    let known = |option: &Value| {
        let kind = match option["kind"].as_str()? {
            "allow_once" => ChoiceKind::AllowOnce,
            "allow_always" => ChoiceKind::AllowAlways,
            "reject_once" => ChoiceKind::RejectOnce,
            "reject_always" => ChoiceKind::RejectAlways,
            _ => return None,
        };
        let id = option["optionId"].as_str()?;
        Some(choice(id, kind, option["name"].as_str().unwrap_or(id)))
    };
    options.as_array().map(|options| options.iter().filter_map(known).collect()).unwrap_or_default()
}

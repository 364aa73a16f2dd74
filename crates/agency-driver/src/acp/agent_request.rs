//! A request of the agent in a session (a permission, a question or a login), and the answers to it.

use std::collections::BTreeMap;

use agency_core::conversation::{Approval, ApprovalOutcome, Choice, ChoiceKind, ToolCall};
use agency_core::plain::one_line;
use agent_client_protocol_schema::v1::{ToolCallUpdate, ToolCallUpdateFields};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::form::Form;
use super::tools::{content_parts, kind_word};
use crate::conversation::{AnswerError, ApprovalAnswer, Identified, find_choice, format_answers};

/// The name of a tool if the agent names neither it nor its kind.
const UNNAMED: &str = "tool";

/// A request of the agent that waits for an answer.
#[derive(Clone, Debug)]
pub(super) struct AgentRequest {
    /// Unique in the whole conversation.
    pub(super) id: String,
    /// The agent's id. Absent for a login, which Agency requests on behalf of the agent.
    pub(super) rpc: Option<Value>,
    pub(super) title: String,
    tool: String,
    input: Value,
    choices: Vec<Choice>,
    kind: RequestKind,
}

#[derive(Clone, Debug)]
enum RequestKind {
    Permission,
    Question(Form),
    /// Each choice is a way to log in.
    Login,
}

impl Identified for AgentRequest {
    fn id(&self) -> &str {
        &self.id
    }
}

impl AgentRequest {
    /// `session/request_permission`. What the request lacks comes from the call that it is about.
    pub(super) fn permission(
        id: String,
        rpc: Value,
        params: &Value,
        known: Option<&ToolCall>,
    ) -> AgentRequest {
        let call = ToolCallUpdate::deserialize(&params["toolCall"]).ok();
        let fields = call.as_ref().map(|call| &call.fields);
        let named = fields.and_then(|fields| {
            fields.name.clone().or_else(|| fields.kind.map(|kind| kind_word(kind).to_owned()))
        });
        let named = named.filter(|name| name != UNNAMED).or_else(|| known.map(|call| call.name.clone()));
        let tool = named.filter(|name| !name.is_empty()).unwrap_or_else(|| UNNAMED.to_owned());
        let title = fields.and_then(|fields| fields.title.as_deref()).filter(|title| says_something(title));
        let title =
            title.or_else(|| known.map(|call| call.title.as_str()).filter(|title| says_something(title)));
        // If the call cannot be read, show it as it came.
        let raw = || if call.is_none() { params["toolCall"].clone() } else { json!({}) };
        let mut input = fields.and_then(|fields| fields.raw_input.clone()).unwrap_or_else(raw);
        let title = one_line(title.unwrap_or(&tool), 300);
        if let Some(input) = input.as_object_mut() {
            complete(input, fields, &params["toolCall"]["locations"], known);
        }
        AgentRequest {
            id,
            rpc: Some(rpc),
            title,
            tool,
            input,
            choices: choices(&params["options"]),
            kind: RequestKind::Permission,
        }
    }

    /// `elicitation/create`.
    pub(super) fn question(id: String, rpc: Value, params: &Value) -> AgentRequest {
        let message = params["message"].as_str().unwrap_or("the agent asks a question");
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
        AgentRequest { id, rpc: Some(rpc), title, tool, input, choices, kind: RequestKind::Question(form) }
    }

    /// The agent opens no session before the user logs in, and lists the ways to log in.
    pub(super) fn login(id: String, agent: &str, methods: &[(String, String)]) -> AgentRequest {
        let mut choices: Vec<Choice> =
            methods.iter().map(|(id, name)| choice(id, ChoiceKind::AllowOnce, name)).collect();
        let options: Vec<Value> = methods.iter().map(|(_, name)| json!({ "label": name })).collect();
        let question = format!("How do you want to log in to {agent}?");
        let input = json!({ "questions": [{ "question": question, "options": options }] });
        choices.push(choice("decline", ChoiceKind::RejectOnce, "Not now"));
        let title = format!("{agent} wants you to log in");
        AgentRequest {
            id,
            rpc: None,
            title,
            tool: "login".to_owned(),
            input,
            choices,
            kind: RequestKind::Login,
        }
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

    pub(super) fn is_permission(&self) -> bool {
        matches!(self.kind, RequestKind::Permission)
    }

    /// The result that carries this answer; for a login, the parameters of `authenticate`.
    pub(super) fn result(&self, verdict: &ApprovalAnswer) -> Result<Value, AnswerError> {
        match &self.kind {
            RequestKind::Permission => {
                let chosen = self.option_of(verdict)?;
                Ok(json!({ "outcome": { "outcome": "selected", "optionId": chosen } }))
            }
            RequestKind::Question(form) => form_result(form, verdict),
            RequestKind::Login => self.login_method(verdict),
        }
    }

    /// The result for a request that the user does not need to answer any more.
    pub(super) fn cancellation(&self) -> Value {
        match self.kind {
            RequestKind::Permission => json!({ "outcome": { "outcome": "cancelled" } }),
            RequestKind::Question(_) | RequestKind::Login => json!({ "action": "cancel" }),
        }
    }

    /// The meaning of a result that was written. `cancelled` if it answers for a cancelled turn.
    pub(super) fn outcome(&self, result: Option<&Value>) -> ApprovalOutcome {
        let outcome =
            |allowed, cancelled| ApprovalOutcome { allowed, cancelled, ..ApprovalOutcome::default() };
        let Some(result) = result else { return outcome(false, false) };
        if let Some(action) = result["action"].as_str() {
            let answer = format_answers(&result["content"]);
            return ApprovalOutcome { answer, ..outcome(action == "accept", action == "cancel") };
        }
        let option = &result["outcome"]["optionId"];
        let chosen = self.choices.iter().find(|choice| option.as_str() == Some(&choice.id));
        let allows = |choice: &Choice| matches!(choice.kind, ChoiceKind::AllowOnce | ChoiceKind::AllowAlways);
        // `allowed` and `denied` say all about the first choice of a kind; another one has its own words.
        let is_first = |choice: &&Choice| {
            choice.kind != ChoiceKind::Other
                && self.choices.iter().find(|other| other.kind == choice.kind) == Some(*choice)
        };
        let answer = chosen.filter(|choice| !is_first(choice)).map(|choice| choice.label.clone());
        ApprovalOutcome { answer, ..outcome(chosen.is_some_and(allows), chosen.is_none()) }
    }

    /// The words of the option that a result allows, with the name of the tool. `None` if it allows nothing.
    pub(super) fn allowed_words(&self, result: &Value) -> Option<String> {
        let option = result["outcome"]["optionId"].as_str()?;
        let chosen = self.choices.iter().find(|choice| choice.id == option)?;
        let allows = !matches!(chosen.kind, ChoiceKind::RejectOnce | ChoiceKind::RejectAlways);
        allows.then(|| format!("{} {} {}", self.tool, chosen.id, chosen.label))
    }

    /// The option that fits an answer. By kind, because every agent names its options in its own way.
    fn option_of(&self, verdict: &ApprovalAnswer) -> Result<&str, AnswerError> {
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
            ApprovalAnswer::Choose { id } => find_choice(&self.choices, id),
        };
        choice.map(|choice| choice.id.as_str()).ok_or(AnswerError::NotOffered)
    }

    fn login_method(&self, verdict: &ApprovalAnswer) -> Result<Value, AnswerError> {
        let methods = || self.choices.iter().filter(|choice| choice.kind == ChoiceKind::AllowOnce);
        let method = match verdict {
            ApprovalAnswer::Allow | ApprovalAnswer::AllowAlways => methods().next(),
            ApprovalAnswer::Answer { answers } => {
                let is_named = |method: &&Choice| {
                    answers.values().any(|answer| *answer == method.label || *answer == method.id)
                };
                methods().find(is_named)
            }
            ApprovalAnswer::Choose { id } => {
                find_choice(&self.choices, id).filter(|choice| choice.kind == ChoiceKind::AllowOnce)
            }
            ApprovalAnswer::Deny { .. } => None,
        };
        method.map(|method| json!({ "methodId": method.id })).ok_or(AnswerError::NotOffered)
    }
}

fn form_result(form: &Form, verdict: &ApprovalAnswer) -> Result<Value, AnswerError> {
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

/// Adds to the arguments what stands elsewhere in the request, and what the call already said.
fn complete(
    input: &mut Map<String, Value>,
    fields: Option<&ToolCallUpdateFields>,
    locations: &Value,
    known: Option<&ToolCall>,
) {
    for (name, value) in known.and_then(|call| call.input.as_object()).into_iter().flatten() {
        input.entry(name.as_str()).or_insert_with(|| value.clone());
    }
    if locations.as_array().is_some_and(|locations| !locations.is_empty()) {
        input.entry("locations").or_insert_with(|| locations.clone());
    }
    let content = fields.and_then(|fields| fields.content.as_deref());
    let diff = content.map(|content| content_parts(content).0).filter(|diff| !diff.is_empty());
    if let Some(diff) = diff {
        input.entry("diff").or_insert(Value::String(diff));
    }
}

/// Whether a title has words: some agents use the arguments, such as `{}`, as the title.
fn says_something(title: &str) -> bool {
    title.chars().any(char::is_alphanumeric)
}

/// The options of a permission. Agency chooses one whose effect it does not know only if a user names it.
fn choices(options: &Value) -> Vec<Choice> {
    let known = |option: &Value| {
        let kind = match option["kind"].as_str().unwrap_or_default() {
            "allow_once" => ChoiceKind::AllowOnce,
            "allow_always" => ChoiceKind::AllowAlways,
            "reject_once" => ChoiceKind::RejectOnce,
            "reject_always" => ChoiceKind::RejectAlways,
            _ => ChoiceKind::Other,
        };
        let id = option["optionId"].as_str()?;
        Some(choice(id, kind, option["name"].as_str().unwrap_or(id)))
    };
    options.as_array().map(|options| options.iter().filter_map(known).collect()).unwrap_or_default()
}

//! Messages that an agent might send: a valid envelope with any content.

#[path = "../../crates/agency-driver/tests/vocabulary/mod.rs"]
mod vocabulary;

use arbitrary::Arbitrary;
use serde_json::{Value, json};

use vocabulary::{KINDS, METHODS, TYPES, WORDS};

const IDS: &[&str] = &["r1:1", "r1:2", "r1:open1", "r1:open2", "r1:mode1", "agency:1", "r2:open1"];

#[derive(Arbitrary, Debug)]
pub enum Json<'a> {
    Null,
    Bool(bool),
    Whole(i64),
    Broken(f64),
    Word(u8),
    Text(&'a str),
    List(Vec<Json<'a>>),
    Object(Vec<(u8, Json<'a>)>),
}

#[derive(Arbitrary, Debug)]
pub enum Message<'a> {
    Bytes(&'a [u8]),
    Any(Json<'a>),
    Request { id: u8, method: u8, params: Json<'a> },
    Notification { method: u8, params: Json<'a> },
    Answer { id: u8, result: Json<'a> },
    Refusal { id: u8, error: Json<'a> },
    Update { kind: u8, one: Json<'a>, two: Json<'a> },
    Stream { kind: u8, one: Json<'a>, two: Json<'a> },
}

impl Json<'_> {
    fn value(&self) -> Value {
        match self {
            Json::Null => Value::Null,
            Json::Bool(value) => json!(value),
            Json::Whole(value) => json!(value),
            Json::Broken(value) => json!(value),
            Json::Word(word) => json!(pick(WORDS, *word)),
            Json::Text(text) => json!(text),
            Json::List(values) => values.iter().map(Json::value).collect(),
            Json::Object(fields) => {
                fields.iter().map(|(name, value)| (pick(WORDS, *name).to_owned(), value.value())).collect()
            }
        }
    }
}

impl Message<'_> {
    /// The message as a line, or the raw bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let value = match self {
            Message::Bytes(bytes) => return bytes.to_vec(),
            Message::Any(value) => value.value(),
            Message::Request { id, method, params } => {
                json!({ "id": name(*id), "method": pick(METHODS, *method), "params": of_session(params) })
            }
            Message::Notification { method, params } => {
                json!({ "method": pick(METHODS, *method), "params": of_session(params) })
            }
            Message::Answer { id, result } => json!({ "id": name(*id), "result": of_session(result) }),
            Message::Refusal { id, error } => json!({ "id": name(*id), "error": error.value() }),
            Message::Update { kind, one, two } => {
                let (one, two) = (one.value(), two.value());
                let update = json!({ "sessionUpdate": pick(KINDS, *kind), "content": one, "toolCallId": "t",
                    "title": "t", "entries": two, "configOptions": two, "currentModeId": "x", "status": "completed" });
                json!({ "method": "session/update", "params": { "sessionId": "s1", "update": update } })
            }
            Message::Stream { kind, one, two } => {
                let (one, two) = (one.value(), two.value());
                json!({ "type": pick(TYPES, *kind), "message": one, "request_id": "q", "request": two,
                    "response": one, "event": two, "subtype": "init" })
            }
        };
        format!("{value}\n").into_bytes()
    }
}

fn of_session(value: &Json<'_>) -> Value {
    let mut value = value.value();
    if let Some(fields) = value.as_object_mut() {
        fields.entry("sessionId").or_insert(json!("s1"));
    }
    value
}

fn pick(words: &[&'static str], at: u8) -> &'static str {
    words[usize::from(at) % words.len()]
}

/// An id: the agent uses numbers, Agency uses names.
fn name(id: u8) -> Value {
    let at = usize::from(id) % (IDS.len() + 3);
    IDS.get(at).map_or(json!(at), |name| json!(name))
}

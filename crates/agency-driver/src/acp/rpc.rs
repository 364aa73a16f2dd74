//! JSON-RPC 2.0, one message per line: reads and writes lines.

use serde_json::{Value, json};

/// Agency does not know the method.
pub(super) const UNKNOWN_METHOD: i64 = -32601;
/// Agency cannot use the parameters.
pub(super) const BAD_PARAMS: i64 = -32602;
/// The caller cancelled the request.
pub(super) const REQUEST_CANCELLED: i64 = -32800;
/// The user must log in first.
pub(super) const LOGIN_FIRST: i64 = -32000;

#[derive(Debug, PartialEq)]
pub(super) enum Message {
    Request { id: Value, method: String, params: Value },
    Notification { method: String, params: Value },
    Answer { id: Value, answer: Result<Value, Refusal> },
}

/// An error instead of a result.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) code: i64,
    pub(super) message: String,
    /// The error's `data`, as text.
    pub(super) detail: Option<String>,
}

impl Refusal {
    fn read(error: &Value) -> Refusal {
        let message = error["message"].as_str().unwrap_or("an error without a message").to_owned();
        let detail = match &error["data"] {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            data => Some(data["details"].as_str().map_or_else(|| data.to_string(), str::to_owned)),
        };
        Refusal { code: error["code"].as_i64().unwrap_or(0), message, detail }
    }

    /// Message and detail in one line, for people.
    pub(super) fn summary(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{} ({detail})", self.message),
            None => self.message.clone(),
        }
    }
}

/// Reads the messages of a line; usually one. Bytes that are not UTF-8 are replaced.
pub(super) fn read(line: &[u8]) -> Result<Vec<Message>, String> {
    let text = String::from_utf8_lossy(line);
    let mut messages = Vec::new();
    for value in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
        messages.push(read_value(value.map_err(|cause| cause.to_string())?)?);
    }
    Ok(messages)
}

fn read_value(mut value: Value) -> Result<Message, String> {
    let Some(fields) = value.as_object_mut() else { return Err("not an object".to_owned()) };
    let mut take = |name: &str| fields.get_mut(name).map(Value::take);
    let id = take("id").filter(|id| id.is_string() || id.is_number());
    let params = take("params").unwrap_or_default();
    match (take("method"), id) {
        (Some(Value::String(method)), Some(id)) => Ok(Message::Request { id, method, params }),
        (Some(Value::String(method)), None) => Ok(Message::Notification { method, params }),
        (Some(_), _) => Err("its method is not a name".to_owned()),
        (None, Some(id)) => {
            let error = take("error").filter(|error| !error.is_null());
            let answer = match error {
                Some(error) => Err(Refusal::read(&error)),
                None => Ok(take("result").unwrap_or_default()),
            };
            Ok(Message::Answer { id, answer })
        }
        (None, None) => Err("neither a request nor an answer".to_owned()),
    }
}

/// An id as a key: `1` and `"1"` are two ids.
pub(super) fn key(id: &Value) -> String {
    id.to_string()
}

pub(super) fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

pub(super) fn request(id: &str, method: &str, params: &Value) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

pub(super) fn notification(method: &str, params: &Value) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

pub(super) fn answer(id: &Value, result: &Value) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

pub(super) fn refusal(id: &Value, code: i64, message: &str) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_request_an_answer_or_a_notification() {
        let one = |text: &str| read(text.as_bytes()).map(|mut all| all.pop());
        let request = one(r#"{"id":1,"method":"a","params":{"b":2}}"#);
        let params = json!({ "b": 2 });
        assert_eq!(request, Ok(Some(Message::Request { id: json!(1), method: "a".into(), params })));
        let notification = one(r#"{"jsonrpc":"2.0","method":"a"}"#);
        assert_eq!(notification, Ok(Some(Message::Notification { method: "a".into(), params: Value::Null })));
        let nothing = one(r#"{"id":"x","result":null,"error":null}"#);
        assert_eq!(nothing, Ok(Some(Message::Answer { id: json!("x"), answer: Ok(Value::Null) })));
        let refused = one(r#"{"id":"x","error":{"code":-32000,"message":"no","data":{"details":"why"}}}"#);
        let Ok(Some(Message::Answer { answer: Err(refused), .. })) = refused else { panic!("{refused:?}") };
        assert_eq!((refused.code, refused.summary().as_str()), (LOGIN_FIRST, "no (why)"));
    }

    #[test]
    fn a_line_that_is_no_message_gives_a_reason() {
        for text in ["", "  "] {
            assert_eq!(read(text.as_bytes()), Ok(Vec::new()));
        }
        for text in ["nope", "[]", "7", "{}", r#"{"id":null}"#, r#"{"method":7}"#, r#"{"id":[],"result":1}"#]
        {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
        assert!(read(b"{\"method\":\"caf\xe9\"}").is_ok(), "bytes that are not UTF-8 are replaced");
        assert_eq!(read(br#"{"method":"a"}{"method":"b"}"#).map(|all| all.len()), Ok(2));
    }
}

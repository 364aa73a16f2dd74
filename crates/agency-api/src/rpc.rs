//! JSON-RPC 2.0 envelopes: text messages of the daemon's `/rpc` WebSocket.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Failure, FailureCode};

/// A call, or a notification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Always `"2.0"`.
    pub jsonrpc: Version,
    /// The id of the call. Absent in a notification, which gets no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    /// The name of the method.
    pub method: String,
    /// The parameters of the method.
    #[serde(default)]
    pub params: Value,
}

/// The answer to a call that was refused or failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct ErrorResponse<'a> {
    jsonrpc: Version,
    id: &'a Value,
    error: ErrorObject,
}

/// An error of JSON-RPC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorObject {
    /// [`REFUSED`], or one of JSON-RPC's own codes.
    pub code: i64,
    /// The message of the failure.
    pub message: String,
    /// The rest of the [`Failure`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<ErrorData>,
}

/// The parts of a [`Failure`] that JSON-RPC has no place for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorData {
    /// The code of the failure. Daemons before codes existed do not send it.
    #[serde(default)]
    pub code: FailureCode,
    /// Why, the nearest cause first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// A way out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The daemon refused the call, or the call failed. The message says why.
pub const REFUSED: i64 = 1;
/// JSON-RPC: the message is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: the message is not a request.
pub const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: there is no such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: the parameters do not fit the method.
pub const INVALID_PARAMS: i64 = -32602;

impl From<Failure> for ErrorObject {
    fn from(failure: Failure) -> Self {
        let data = ErrorData { code: failure.code, causes: failure.causes, hint: failure.hint };
        ErrorObject { code: REFUSED, message: failure.message, data: Some(data) }
    }
}

impl From<ErrorObject> for Failure {
    fn from(error: ErrorObject) -> Self {
        let data = error.data.unwrap_or_default();
        Failure { code: data.code, message: error.message, causes: data.causes, hint: data.hint }
    }
}

impl ErrorObject {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        ErrorObject { code, message: message.into(), data: None }
    }
}

impl Request {
    /// A call, or a notification without an id.
    pub fn new(id: Option<u64>, method: &str, params: Value) -> Self {
        Request { jsonrpc: Version, id: id.map(Value::from), method: method.to_string(), params }
    }
}

/// The text of the answer to the call with this id. `outcome` has the result as JSON: a list of many tasks is large, so the
/// daemon writes each result once and copies it into the answer.
pub fn write_answer(id: &Value, outcome: Result<String, ErrorObject>) -> serde_json::Result<String> {
    match outcome {
        Ok(result) => Ok(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)),
        Err(error) => serde_json::to_string(&ErrorResponse { jsonrpc: Version, id, error }),
    }
}

/// The literal `"2.0"`. Any other version does not parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Version;

impl Serialize for Version {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("2.0")
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "2.0" => Ok(Version),
            other => Err(serde::de::Error::custom(format!("jsonrpc is \"2.0\", not {other:?}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_have_the_form_of_the_specification() {
        let request = Request::new(Some(1), "task.list", serde_json::json!({}));
        assert_eq!(
            serde_json::to_string(&request).unwrap(),
            r#"{"jsonrpc":"2.0","id":1,"method":"task.list","params":{}}"#
        );
        let failure = Failure::new("no task 9").code(FailureCode::TaskNotFound).hint("agency ls");
        let error = ErrorObject::from(failure);
        assert_eq!(
            write_answer(&1.into(), Err(error)).unwrap(),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no task 9","data":{"code":"task_not_found","hint":"agency ls"}}}"#
        );
        assert_eq!(
            write_answer(&"a\"b".into(), Ok("[1]".to_owned())).unwrap(),
            r#"{"jsonrpc":"2.0","id":"a\"b","result":[1]}"#
        );
        assert!(serde_json::from_str::<Request>(r#"{"jsonrpc":"1.0","method":"x"}"#).is_err());
    }
}

//! JSON-RPC 2.0 envelopes: text messages of the daemon's `/rpc` WebSocket.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Failure, FailureCode};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub jsonrpc: Version,
    /// Absent in a notification, which gets no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    pub method: String,
    #[serde(default)]
    pub params: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    pub jsonrpc: Version,
    pub id: Value,
    #[serde(flatten)]
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Result(Value),
    Error(ErrorObject),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorObject {
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<ErrorData>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorData {
    /// Absent in an error of a daemon that knew no codes.
    #[serde(default)]
    pub code: FailureCode,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Something was refused or failed; the message says what. Below it, JSON-RPC's own codes.
pub const REFUSED: i64 = 1;
pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
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
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        ErrorObject { code, message: message.into(), data: None }
    }
}

impl Request {
    pub fn new(id: Option<u64>, method: &str, params: Value) -> Self {
        Request { jsonrpc: Version, id: id.map(Value::from), method: method.to_string(), params }
    }
}

impl Response {
    pub fn new(id: Value, outcome: Result<Value, ErrorObject>) -> Self {
        let outcome = match outcome {
            Ok(value) => Outcome::Result(value),
            Err(error) => Outcome::Error(error),
        };
        Response { jsonrpc: Version, id, outcome }
    }
}

/// The literal `"2.0"`; anything else does not parse.
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
    fn envelopes_read_as_the_specification_writes_them() {
        let request = Request::new(Some(1), "task.list", serde_json::json!({}));
        assert_eq!(
            serde_json::to_string(&request).unwrap(),
            r#"{"jsonrpc":"2.0","id":1,"method":"task.list","params":{}}"#
        );
        let failure = Failure::new("no task 9").code(FailureCode::TaskNotFound).hint("agency ls");
        let error = ErrorObject::from(failure);
        let response = Response::new(1.into(), Err(error));
        assert_eq!(
            serde_json::to_string(&response).unwrap(),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no task 9","data":{"code":"task_not_found","hint":"agency ls"}}}"#
        );
        assert!(serde_json::from_str::<Request>(r#"{"jsonrpc":"1.0","method":"x"}"#).is_err());
    }
}

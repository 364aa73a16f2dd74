//! A failure as people read it and as programs match it: what failed, why, and a way out.
//!
//! Each crate has its own errors, decides which of them are failures, and converts them.

use std::error::Error;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::FailureCode;

/// Why the daemon refused a request, or why the request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The code, for programs.
    #[serde(default)]
    pub code: FailureCode,
    /// One sentence for people that says what was refused or what failed.
    pub message: String,
    /// Why, the nearest cause first.
    #[serde(default)]
    pub causes: Vec<String>,
    /// A way out.
    #[serde(default)]
    pub hint: Option<String>,
}

impl Failure {
    /// A failure with the code `failed`, without causes and hint.
    pub fn new(message: impl Into<String>) -> Self {
        Failure { code: FailureCode::Failed, message: message.into(), causes: Vec::new(), hint: None }
    }

    /// A failure with the text of `error` as its message and the sources of `error` as its causes.
    pub fn from_error(error: &(dyn Error + 'static), hint: Option<impl Into<String>>) -> Self {
        let failure = Failure::new(error.to_string()).caused_by_source(error);
        Failure { hint: hint.map(Into::into), ..failure }
    }

    /// Sets the code.
    pub fn code(mut self, code: FailureCode) -> Self {
        self.code = code;
        self
    }

    /// Sets a new message. The old message becomes the first cause. Code and hint stay.
    pub fn within(self, message: impl Into<String>) -> Self {
        let causes = std::iter::once(self.message).chain(self.causes).collect();
        Failure { code: self.code, message: message.into(), causes, hint: self.hint }
    }

    /// Adds `error` and all of its sources as causes.
    pub fn caused_by(mut self, error: &(dyn Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(cause) = next {
            let text = cause.to_string();
            if self.causes.last() != Some(&text) {
                self.causes.push(text);
            }
            next = cause.source();
        }
        self
    }

    /// Adds the sources of `error` as causes. Its own text is the message already.
    pub fn caused_by_source(self, error: &(dyn Error + 'static)) -> Self {
        match error.source() {
            Some(source) => self.caused_by(source),
            None => self,
        }
    }

    /// Adds a cause.
    pub fn because(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// Sets the hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error: {}", self.message)?;
        for cause in &self.causes {
            write!(f, "\nCaused by: {cause}")?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\nHint: {hint}"),
            None => Ok(()),
        }
    }
}

impl Error for Failure {}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn an_error_becomes_a_cause_of_the_outer_failure() {
        let error = io::Error::other("the disk is full");
        let failure = Failure::from_error(&error, Some("delete something"))
            .because("really")
            .code(FailureCode::IoError)
            .within("cannot start");
        let expected =
            "Error: cannot start\nCaused by: the disk is full\nCaused by: really\nHint: delete something";
        assert_eq!(failure.to_string(), expected);
        assert_eq!(failure.code, FailureCode::IoError);
        assert_eq!(Failure::from_error(&error, None::<String>), Failure::new("the disk is full"));
    }

    #[test]
    fn a_failure_reads_as_error_cause_and_hint() {
        let failure = Failure::new("cannot remove workspace 12-fix-login")
            .because("3 files are not committed")
            .hint("commit them, or pass --discard");
        assert_eq!(
            failure.to_string(),
            "Error: cannot remove workspace 12-fix-login\nCaused by: 3 files are not committed\nHint: commit them, or pass --discard"
        );
    }

    #[test]
    fn a_failure_without_a_code_is_read() {
        let failure: Failure = serde_json::from_str(r#"{"message":"no task 9"}"#).unwrap();
        assert_eq!(failure, Failure::new("no task 9"));
    }
}

//! A failure as a person reads it: what, why, and the way out.

use std::error::Error;
use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Failure { message: message.into(), causes: Vec::new(), hint: None }
    }

    /// An error that speaks for itself, with its way out.
    pub fn told(error: &(dyn Error + 'static), hint: Option<impl Into<String>>) -> Self {
        let failure = Failure::new(error.to_string()).caused_by_source(error);
        Failure { hint: hint.map(Into::into), ..failure }
    }

    /// What could not be done because of it.
    pub fn within(self, message: impl Into<String>) -> Self {
        let causes = std::iter::once(self.message).chain(self.causes).collect();
        Failure { message: message.into(), causes, hint: self.hint }
    }

    /// Keeps the whole chain of `error` as causes.
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

    /// Keeps what is behind `error`, whose own text is the message.
    pub fn caused_by_source(self, error: &(dyn Error + 'static)) -> Self {
        match error.source() {
            Some(source) => self.caused_by(source),
            None => self,
        }
    }

    pub fn because(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

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
    fn what_went_wrong_is_a_cause_of_what_could_not_be_done() {
        let error = io::Error::other("the disk is full");
        let failure =
            Failure::told(&error, Some("delete something")).because("really").within("cannot start");
        let expected =
            "Error: cannot start\nCaused by: the disk is full\nCaused by: really\nHint: delete something";
        assert_eq!(failure.to_string(), expected);
        assert_eq!(Failure::told(&error, None::<String>), Failure::new("the disk is full"));
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
}

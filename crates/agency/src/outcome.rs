//! How a command ends: with an exit code, or with an error that `main` reports.

use std::error::Error;
use std::io;
use std::process::ExitCode;

use agency_api::{Failure, FailureCode};

/// The result of every command: its exit code, or why it could not continue.
pub(crate) type CommandResult = Result<ExitCode, CommandError>;

#[derive(Debug)]
pub(crate) enum CommandError {
    Failed(Failure),
    /// The reader of our standard output has closed it.
    PipeClosed,
}

impl From<Failure> for CommandError {
    fn from(failure: Failure) -> Self {
        CommandError::Failed(failure)
    }
}

impl From<io::Error> for CommandError {
    /// `?` converts only errors of writing to standard output. All others get a message of their own.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CommandError::PipeClosed,
            _ => failed("cannot write to standard output", &error),
        }
    }
}

/// A failure of the operating system, or of Agency itself.
pub(crate) fn failed(message: &str, error: &(dyn Error + 'static)) -> CommandError {
    let code = match error.is::<io::Error>() {
        true => FailureCode::IoError,
        false => FailureCode::Internal,
    };
    CommandError::Failed(Failure::new(message).code(code).caused_by(error))
}

/// Adds `more` below the hint of the failure.
pub(crate) fn with_hint(failure: Failure, more: &str) -> Failure {
    let hint = match &failure.hint {
        Some(hint) => format!("{hint}\n      {more}"),
        None => more.to_owned(),
    };
    failure.hint(hint)
}

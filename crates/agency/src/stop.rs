//! How a command ends before its time.

use std::error::Error;
use std::io;
use std::process::ExitCode;

use agency_api::{Failure, FailureCode};

/// What every command returns: the exit code to leave with, or why it stopped.
pub(crate) type Done = Result<ExitCode, Stop>;

#[derive(Debug)]
pub(crate) enum Stop {
    Failed(Failure),
    /// Whoever read our output has gone.
    PipeClosed,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Stop::Failed(failure)
    }
}

impl From<io::Error> for Stop {
    /// Only writing our own output is converted without a word of context.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Stop::PipeClosed,
            _ => failed("cannot write to standard output", &error),
        }
    }
}

/// A failure of the operating system, or of Agency itself.
pub(crate) fn failed(message: &str, error: &(dyn Error + 'static)) -> Stop {
    let code = match error.is::<io::Error>() {
        true => FailureCode::IoError,
        false => FailureCode::Internal,
    };
    Stop::Failed(Failure::new(message).code(code).caused_by(error))
}

/// One more way out, below the one there is.
pub(crate) fn with_hint(failure: Failure, more: &str) -> Failure {
    let hint = match &failure.hint {
        Some(hint) => format!("{hint}\n      {more}"),
        None => more.to_owned(),
    };
    failure.hint(hint)
}

//! Errors of `agency-workspace` as failures of the API.

use agency_api::Failure;
use agency_workspace as workspace;

/// An error that callers get as a failure.
pub trait AsFailure {
    /// The failure, with its causes and a way out.
    fn as_failure(&self) -> Failure;
}

macro_rules! as_failure {
    ($($error:ty),*) => {
        $(impl AsFailure for $error {
            fn as_failure(&self) -> Failure {
                Failure::from_error(self, self.hint())
            }
        })*
    };
}

as_failure!(
    workspace::ConflictsError,
    workspace::CopyError,
    workspace::CreateError,
    workspace::ExcludeError,
    workspace::OpenError,
    workspace::OperationError,
    workspace::RemoveError,
    workspace::StateError,
    workspace::TrashError,
    workspace::UndoError
);

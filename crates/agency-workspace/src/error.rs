//! The errors of this crate, in the words that a user reads.

mod create;
mod open;
mod operation;
mod undo;

pub use create::{CreateCause, CreateError};
pub use open::OpenError;
pub(crate) use operation::shown;
pub use operation::{Operation, OperationCause, OperationError, RemoveCause, RemoveError};
pub use undo::{UndoCause, UndoError};

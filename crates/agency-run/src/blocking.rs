//! Work that blocks, kept off the threads of tokio.

use agency_api::{Failure, FailureCode};

/// Runs `work` on a thread of its own.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(cause) => Err(Failure::new("the request crashed inside Agency (a bug)")
            .code(FailureCode::Internal)
            .caused_by(&cause)),
    }
}

//! Work that blocks, kept off the loop.

use agency_api::Failure;

pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(cause) => Err(Failure::new("the request failed badly").caused_by(&cause)),
    }
}

//! Waiting for a moment on the daemon's clock.

use std::time::Duration;

use agency_store::clock;

/// Sleeps until the deadline; for ever if there is none.
pub async fn sleep_until(deadline: Option<Duration>) {
    match deadline {
        Some(at) => tokio::time::sleep(at.saturating_sub(clock::now())).await,
        None => std::future::pending().await,
    }
}

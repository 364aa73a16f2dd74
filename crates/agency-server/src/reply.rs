//! The answer that a caller waits for.
//!
//! A [`Reply`] takes only the type that its method declares as its result. It can be moved into a task, or kept until
//! a later loop event decides about it.

use agency_api::Failure;
use tokio::sync::oneshot;

/// Where the answer to one request goes.
#[derive(Debug)]
pub struct Reply<T>(oneshot::Sender<Result<T, Failure>>);

impl<T> Reply<T> {
    /// A reply, and the place where its answer arrives.
    pub fn channel() -> (Reply<T>, oneshot::Receiver<Result<T, Failure>>) {
        let (sender, receiver) = oneshot::channel();
        (Reply(sender), receiver)
    }

    /// For work that the daemon begins by itself: no caller reads the answer.
    pub fn without_caller() -> Reply<T> {
        Reply::channel().0
    }

    /// Answers. A caller that has disconnected gets nothing.
    pub fn send(self, outcome: Result<T, Failure>) {
        drop(self.0.send(outcome));
    }

    /// Returns once the caller no longer waits.
    pub async fn closed(&mut self) {
        self.0.closed().await;
    }
}

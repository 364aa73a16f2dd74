//! Answers to callers that wait on a oneshot channel.

use tokio::sync::oneshot;

/// Sends the answer. If the caller has left meanwhile, the answer is dropped.
pub fn send_reply<T>(to: oneshot::Sender<T>, answer: T) {
    drop(to.send(answer));
}

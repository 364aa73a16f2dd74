//! Answers to callers that wait on a oneshot channel.

use tokio::sync::oneshot;

/// Sends the answer. The caller may have left meanwhile; then nobody needs it.
pub fn send_reply<T>(to: oneshot::Sender<T>, answer: T) {
    drop(to.send(answer));
}

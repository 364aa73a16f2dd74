//! The answer that a caller waits for.
//!
//! A [`Reply`] takes only the type that its method declares as its result. It can be moved into a task, or kept until
//! a later loop event decides about it.

use agency_api::Failure;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
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

/// A reply without its type.
#[derive(Debug)]
pub struct Answer(pub oneshot::Sender<Result<Value, Failure>>);

impl Answer {
    pub fn give(self, outcome: Result<Value, Failure>) {
        drop(self.0.send(outcome));
    }

    pub fn give_as<T: Serialize>(self, outcome: Result<T, Failure>) {
        self.give(outcome.and_then(|value| serde_json::to_value(value).map_err(unwritable)));
    }
}

impl<T: DeserializeOwned + Send + 'static> Reply<T> {
    /// For handlers that do not know their type yet.
    pub fn erase(self) -> Answer {
        let (answer, outcome) = oneshot::channel::<Result<Value, Failure>>();
        tokio::spawn(async move {
            if let Ok(outcome) = outcome.await {
                self.send(outcome.and_then(|value| serde_json::from_value(value).map_err(unwritable)));
            }
        });
        Answer(answer)
    }
}

fn unwritable(cause: serde_json::Error) -> Failure {
    Failure::new("an answer cannot be written").caused_by(&cause)
}

//! The callers that wait until the send machine has carried out an order.

use std::path::PathBuf;

use agency_api::method::Receipt;
use agency_api::{Failure, FailureCode, chat};
use agency_driver::sending::{SendOutcome, SendReceipt};
use tokio::sync::oneshot;

use crate::dialog_log;
use crate::reply::send_reply;

/// The caller that waits for the result of an order.
#[derive(Debug)]
pub(super) enum Caller {
    Receipt(oneshot::Sender<Result<Receipt, Failure>>),
    Answer(Box<AnswerCaller>),
}

impl Caller {
    pub(super) fn refuse(self, failure: Failure) {
        match self {
            Caller::Receipt(caller) => send_reply(caller, Err(failure)),
            Caller::Answer(caller) => caller.refuse(failure),
        }
    }
}

/// A caller that waits until the dialog has taken the answer.
#[derive(Debug)]
pub(super) struct AnswerCaller {
    pub(super) approval: chat::Approval,
    pub(super) outcome: chat::ApprovalOutcome,
    pub(super) reply: oneshot::Sender<Result<chat::Approval, Failure>>,
}

impl AnswerCaller {
    /// Logs the answer and replies with it, or says why the dialog did not take the answer.
    pub(super) fn reply(self, receipt: SendReceipt, log: PathBuf) {
        let AnswerCaller { mut approval, outcome, reply } = self;
        let why = receipt.why.unwrap_or_default();
        let failure = |code| Failure::new(why).code(code).hint("agency attach shows the dialog");
        send_reply(
            reply,
            match receipt.outcome {
                SendOutcome::Delivered => {
                    approval.outcome = Some(outcome);
                    if let Err(cause) = dialog_log::append(log, &approval) {
                        // The agent has the answer, so the caller must not hear of a failure.
                        tracing::warn!(%cause, "an answer to a dialog cannot be logged");
                    }
                    Ok(approval)
                }
                SendOutcome::Typed => Err(failure(FailureCode::NotDelivered)),
                SendOutcome::Refused => Err(failure(FailureCode::ChangedMeanwhile)),
            },
        );
    }

    pub(super) fn refuse(self, failure: Failure) {
        send_reply(self.reply, Err(failure));
    }
}

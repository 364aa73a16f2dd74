//! Messages to the agent and their receipts.

use std::time::Duration;

use agency_api::method::{Receipt, ReceiptKind};
use agency_api::{Failure, FailureCode};
use agency_driver::conversation::ImageBlock;
use agency_driver::sending::SendOrder;
use agency_store::clock;

use super::ConversationTask;
use crate::command::SendRequest;
use crate::line_queue::{LineSource, QueuedMessage};
use crate::reply::send_reply;

/// Some agents need seconds to start. One that has said nothing by then may still take the message.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(6);

/// A message that the agent's input has taken and that the agent has not reacted to.
pub(super) struct UnconfirmedMessage {
    message: QueuedMessage,
    sent_at: Duration,
}

impl UnconfirmedMessage {
    pub(super) fn due(&self) -> Duration {
        self.sent_at + CONFIRMED_WITHIN
    }
}

impl ConversationTask {
    pub(super) fn send(&mut self, request: SendRequest) {
        let SendRequest { order, images, receipt } = request;
        let text = match order {
            SendOrder::Text { text, enter: true, .. } => text,
            SendOrder::Text { .. } => {
                let failure = Failure::new("`--no-enter` needs a terminal agent")
                    .code(FailureCode::Unsupported)
                    .because("it has no terminal to type into")
                    .hint("leave out --no-enter");
                return send_reply(receipt, Err(failure));
            }
            SendOrder::Keys(_) => {
                let failure = Failure::new("`--keys` needs a terminal agent")
                    .code(FailureCode::Unsupported)
                    .because("it has no terminal to type into")
                    .hint("agency approve, agency deny, agency interrupt");
                return send_reply(receipt, Err(failure));
            }
            SendOrder::Answer(_) => {
                let failure = Failure::new("the agent has no terminal").code(FailureCode::Unsupported);
                return send_reply(receipt, Err(failure));
            }
        };
        if !images.is_empty() && !self.fold.run.takes_images() {
            let failure = Failure::new("the agent takes no images")
                .code(FailureCode::Unsupported)
                .because("it does not list `image` among its abilities")
                .hint("name the file in the message: an agent can often read it itself");
            return send_reply(receipt, Err(failure));
        }
        let bytes = text.len() as u64;
        let was_working = self.fold.run.is_working();
        let images: Vec<ImageBlock> = images
            .into_iter()
            .map(|image| ImageBlock { media_type: image.media_type, data: image.data })
            .collect();
        match self.fold.run.prompt_with(&String::from_utf8_lossy(&text), &images) {
            Ok(line) => {
                self.lines.push(line, LineSource::Message(QueuedMessage { receipt, bytes, was_working }));
            }
            // Nothing was written: a caller with a queue keeps the message and tries again.
            Err(why) => send_reply(receipt, Ok(receipt_of(ReceiptKind::Refused, 0, &why.to_string()))),
        }
    }

    pub(super) fn on_message_written(&mut self, message: QueuedMessage, sent_at: Duration) {
        if message.was_working {
            let why = "it is at work and takes it when it comes to it";
            return send_reply(message.receipt, Ok(receipt_of(ReceiptKind::Typed, message.bytes, why)));
        }
        self.unconfirmed.push(UnconfirmedMessage { message, sent_at });
    }

    /// Output of the agent shows that it has taken a message, if the journal has the output after the message.
    pub(super) fn confirm_messages(&mut self) {
        let (now, heard_at, lost_at) = (clock::now(), self.fold.heard_at, self.fold.lost_at);
        let entered_at = self.fold.entered_at;
        for unconfirmed in std::mem::take(&mut self.unconfirmed) {
            let is_entered = entered_at >= unconfirmed.sent_at;
            let (kind, why) = match () {
                // Another process says everything after that.
                () if lost_at >= unconfirmed.sent_at => {
                    (ReceiptKind::Typed, "the agent ended; it is not known whether it read the message")
                }
                () if is_entered && heard_at >= entered_at => {
                    (ReceiptKind::Delivered, "the agent has answered")
                }
                () if unconfirmed.due() <= now => {
                    (ReceiptKind::Typed, "its input has taken it; the agent has not said anything yet")
                }
                () => {
                    self.unconfirmed.push(unconfirmed);
                    continue;
                }
            };
            let QueuedMessage { receipt, bytes, .. } = unconfirmed.message;
            send_reply(receipt, Ok(receipt_of(kind, bytes, why)));
        }
    }

    pub(super) fn give_up_messages(&mut self, why: &str) {
        for UnconfirmedMessage { message, .. } in std::mem::take(&mut self.unconfirmed) {
            send_reply(message.receipt, Ok(receipt_of(ReceiptKind::Typed, message.bytes, why)));
        }
    }
}

fn receipt_of(receipt: ReceiptKind, bytes: u64, why: &str) -> Receipt {
    Receipt { receipt, bytes, why: Some(why.to_owned()), screen: None }
}

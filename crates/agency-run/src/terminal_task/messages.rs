//! Messages that the driver's send machine types, and their receipts.
//!
//! Decides nothing: when to type, when to press Enter and what counts as evidence is in `agency_driver::sending`.

use std::io;

use agency_api::keeper::{Frame, InputSource};
use agency_api::method::{Receipt, ReceiptKind};
use agency_api::{Failure, FailureCode};
use agency_driver::sending::{SendNote, SendOutcome, SendReceipt};

use super::TerminalTask;
use super::caller::Caller;
use crate::fold::SEND_TAG;
use crate::reply::send_reply;

impl TerminalTask {
    /// Writes the next part of the message that is being sent, if it may be written now.
    pub(super) async fn write_message(&mut self) -> io::Result<()> {
        if self.messages.is_idle() || self.in_flight.is_some() {
            return Ok(());
        }
        let mut messages = std::mem::take(&mut self.messages);
        let next = messages.next_write(&mut || self.observe());
        self.messages = messages;
        self.send_receipts();
        let Some(write) = next else { return Ok(()) };
        // An earlier daemon may have announced a text and died before it typed it. These bytes are another thing.
        let correction = self.fold.unentered.is_announced().then(SendNote::default);
        if let Some(note) = write.note.or(correction) {
            self.write_note(&note).await?;
        }
        let id = self.next_input;
        self.next_input += 1;
        self.in_flight = Some(id);
        self.write(InputSource::Send, id, write.bytes).await
    }

    /// Tells this and every later fold of the journal about a text that is being sent.
    pub(super) async fn write_note(&mut self, note: &SendNote) -> io::Result<()> {
        let bytes = serde_json::to_vec(note)?;
        self.follower.link.frames.send(&Frame::Note { tag: SEND_TAG.to_owned(), bytes }).await
    }

    pub(super) fn send_receipts(&mut self) {
        for (caller, receipt) in self.messages.take_receipts() {
            match caller {
                Caller::Receipt(caller) => send_reply(caller, Ok(to_api(receipt))),
                Caller::Answer(caller) => caller.reply(receipt, self.follower.link.context.dir.decisions()),
            }
        }
    }

    pub(super) fn refuse_messages(&mut self, why: &str) {
        for caller in self.messages.cancel_all() {
            caller.refuse(Failure::new(why).code(FailureCode::NotDelivered));
        }
    }
}

fn to_api(receipt: SendReceipt) -> Receipt {
    let SendReceipt { outcome, bytes, why, screen } = receipt;
    let receipt = match outcome {
        SendOutcome::Delivered => ReceiptKind::Delivered,
        SendOutcome::Typed => ReceiptKind::Typed,
        SendOutcome::Refused => ReceiptKind::Refused,
    };
    Receipt { receipt, bytes, why, screen }
}

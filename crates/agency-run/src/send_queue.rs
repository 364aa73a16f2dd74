//! Passes messages to the driver's send machine, and its receipts to the callers that wait for them.
//!
//! Decides nothing: when to type, when to press Enter and what counts as evidence is in `agency_driver::sending`.

use std::time::Duration;

use agency_api::Failure;
use agency_api::method::{Receipt, ReceiptKind};
use agency_driver::sending::{Observation, SendMachine, SendOrder, SendOutcome, SendReceipt};
use tokio::sync::oneshot;

use crate::reply::send_reply;

/// A message or keys for an agent, and the caller that waits for the receipt.
#[derive(Debug)]
pub struct SendRequest {
    /// The message or keys.
    pub order: SendOrder,
    /// Where the receipt goes.
    pub receipt: oneshot::Sender<Result<Receipt, Failure>>,
}

#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    machine: SendMachine<oneshot::Sender<Result<Receipt, Failure>>>,
}

impl SendQueue {
    pub fn push(&mut self, request: SendRequest) {
        self.machine.push(request.order, request.receipt);
    }

    /// The bytes to write to the agent now, if any. Ask again after every event.
    pub fn next_write(&mut self, observe: &mut dyn FnMut() -> Observation) -> Option<Vec<u8>> {
        let bytes = self.machine.next_write(observe);
        self.send_receipts();
        bytes
    }

    pub fn is_idle(&self) -> bool {
        self.machine.is_idle()
    }

    /// The keeper has written the last bytes to the agent's terminal.
    pub fn on_written(&mut self, now: Duration) {
        self.machine.on_written(now);
    }

    /// The keeper could not write the last bytes.
    pub fn refuse_active(&mut self, failure: Failure) {
        if let Some(caller) = self.machine.cancel_active() {
            send_reply(caller, Err(failure));
        }
    }

    /// The agent has exited.
    pub fn on_exit(&mut self) {
        self.machine.on_exit();
        self.send_receipts();
        self.refuse_all("the agent exited before it took the text");
    }

    pub fn refuse_all(&mut self, why: &str) {
        for caller in self.machine.cancel_all() {
            send_reply(caller, Err(Failure::new(why)));
        }
    }

    /// Whether a probe that says if the program has read its input would help now.
    pub fn needs_read_probe(&self) -> bool {
        self.machine.needs_read_probe()
    }

    /// When to ask again if nothing happens.
    pub fn deadline(&self, now: Duration) -> Option<Duration> {
        self.machine.deadline(now)
    }

    fn send_receipts(&mut self) {
        for (caller, receipt) in self.machine.take_receipts() {
            send_reply(caller, Ok(to_api(receipt)));
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

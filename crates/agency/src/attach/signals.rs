//! The signals that an attached client handles.

use std::io;

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) struct Signals {
    resized: Signal,
    continued: Signal,
    hangup: Signal,
    interrupt: Signal,
    quit: Signal,
    terminate: Signal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalEvent {
    Resized,
    /// SIGCONT after a stop.
    Continued,
    /// A signal that ends the client. In raw mode no key sends it, so another process did.
    End(u8),
}

impl Signals {
    pub(crate) fn watch() -> io::Result<Signals> {
        Ok(Signals {
            resized: signal(SignalKind::window_change())?,
            continued: signal(SignalKind::from_raw(Number::CONT.as_raw()))?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    pub(crate) async fn next(&mut self) -> SignalEvent {
        let end = |signal: Number| SignalEvent::End(signal.as_raw() as u8);
        tokio::select! {
            _ = self.terminate.recv() => end(Number::TERM),
            _ = self.hangup.recv() => end(Number::HUP),
            _ = self.interrupt.recv() => end(Number::INT),
            _ = self.quit.recv() => end(Number::QUIT),
            _ = self.continued.recv() => SignalEvent::Continued,
            _ = self.resized.recv() => SignalEvent::Resized,
        }
    }
}

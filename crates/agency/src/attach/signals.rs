//! Signals that an attached client lives with.

use std::io;

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(super) struct Signals {
    resized: Signal,
    continued: Signal,
    hangup: Signal,
    interrupt: Signal,
    quit: Signal,
    terminate: Signal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heeded {
    Resized,
    /// We were stopped, and go on.
    Continued,
    /// Time to go, and why. In raw mode no key sends these: someone meant us.
    End(u8),
}

impl Signals {
    pub(super) fn watch() -> io::Result<Signals> {
        Ok(Signals {
            resized: signal(SignalKind::window_change())?,
            continued: signal(SignalKind::from_raw(Number::CONT.as_raw()))?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    pub(super) async fn next(&mut self) -> Heeded {
        let end = |signal: Number| Heeded::End(signal.as_raw() as u8);
        tokio::select! {
            _ = self.terminate.recv() => end(Number::TERM),
            _ = self.hangup.recv() => end(Number::HUP),
            _ = self.interrupt.recv() => end(Number::INT),
            _ = self.quit.recv() => end(Number::QUIT),
            _ = self.continued.recv() => Heeded::Continued,
            _ = self.resized.recv() => Heeded::Resized,
        }
    }
}

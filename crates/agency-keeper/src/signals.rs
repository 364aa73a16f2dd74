//! Signals to the keeper itself, turned into bytes in a pipe that the loop polls.
//!
//! A self-pipe instead of signalfd: it works on every Unix, needs no blocked signals that a child would
//! inherit, and its handler has three lines.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::io::ioctl_fionbio;

/// The write end of the pipe, where the handler finds it.
static WAKE: AtomicI32 = AtomicI32::new(-1);

pub(crate) struct Signals {
    reader: OwnedFd,
    _writer: OwnedFd,
}

/// The requests of the received signals.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SignalRequests {
    pub(crate) reap: bool,
    pub(crate) end: bool,
    pub(crate) rebind: bool,
}

impl Signals {
    pub(crate) fn install() -> io::Result<Signals> {
        let (reader, writer) = io::pipe()?;
        let (reader, writer) = (OwnedFd::from(reader), OwnedFd::from(writer));
        ioctl_fionbio(&reader, true)?;
        ioctl_fionbio(&writer, true)?;
        WAKE.store(writer.as_raw_fd(), Ordering::SeqCst);
        for signal in [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGUSR1] {
            handle(signal, on_signal as *const () as libc::sighandler_t)?;
        }
        // A closed terminal, a closed connection or a file size limit must not end the keeper.
        for signal in [libc::SIGHUP, libc::SIGPIPE, libc::SIGXFSZ, libc::SIGUSR2, libc::SIGQUIT] {
            handle(signal, libc::SIG_IGN)?;
        }
        unblock_all()?;
        Ok(Signals { reader, _writer: writer })
    }

    /// The requests of all signals since the last call.
    pub(crate) fn take(&self) -> SignalRequests {
        let mut requests = SignalRequests::default();
        let mut bytes = [0; 64];
        while let Ok(count @ 1..) = rustix::io::read(&self.reader, &mut bytes) {
            for byte in bytes.iter().take(count) {
                match i32::from(*byte) {
                    libc::SIGCHLD => requests.reap = true,
                    libc::SIGTERM | libc::SIGINT => requests.end = true,
                    libc::SIGUSR1 => requests.rebind = true,
                    _ => {}
                }
            }
        }
        requests
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

#[allow(unsafe_code)]
extern "C" fn on_signal(signal: libc::c_int) {
    // SAFETY: the descriptor stays open while handlers are installed, which is until the process exits.
    let wake = unsafe { BorrowedFd::borrow_raw(WAKE.load(Ordering::Relaxed)) };
    // If the pipe is full, it already wakes the loop. A failed write is the only thing that could change errno.
    rustix::io::write(wake, &[signal as u8]).ok();
}

#[allow(unsafe_code)]
fn handle(signal: libc::c_int, handler: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: zero is a valid sigaction; the handler is async-signal-safe or SIG_IGN.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &action, std::ptr::null_mut())
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Unblocks all signals: the parent may have blocked some that we need.
#[allow(unsafe_code)]
fn unblock_all() -> io::Result<()> {
    // SAFETY: sigemptyset fills the set before it is used.
    let result = unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut())
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Resets every signal to its default, as after a login. Called between fork and exec.
#[allow(unsafe_code)]
pub(crate) fn reset_for_exec() -> io::Result<()> {
    for signal in 1..=LAST_SIGNAL {
        // SAFETY: async-signal-safe. The call fails for SIGKILL, SIGSTOP and signals that libc reserves.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    unblock_all()
}

const LAST_SIGNAL: libc::c_int = 64;

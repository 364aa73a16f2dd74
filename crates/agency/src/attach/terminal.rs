//! The user's terminal while a client is attached: reads raw keys, writes bytes.
//!
//! Reads and writes never block, so a terminal that hangs cannot keep the loop from a signal or the end. We open the
//! terminal again for that, so it stays blocking for the shell and other programs that share it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use agency_stream::watch_descriptor;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, fcntl_getfl, open};
use rustix::io::{read, retry_on_intr};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, tcgetattr, tcgetpgrp, tcsetattr, ttyname};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::restore;

/// A paste arrives in pieces as large as the kernel's buffer.
const READ_BYTES: usize = 4 << 10;

/// A blocking terminal that reports room takes at least this much.
const ROOM_BYTES: usize = 256;

/// How long the terminal may take to draw the last output before we leave without it.
const WRITTEN_WITHIN: Duration = Duration::from_secs(2);

pub(super) struct Terminal {
    keyboard: AsyncFd<OwnedFd>,
    screen: AsyncFd<OwnedFd>,
    /// The most bytes to write at a time.
    most: usize,
    guard: RestoreOnDrop,
}

/// Bytes that wait to be written to the terminal.
#[derive(Debug, Default)]
pub(super) struct PendingOutput {
    bytes: Vec<u8>,
    /// How many of them are written.
    written: usize,
}

impl PendingOutput {
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.written > self.bytes.len() / 2 {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    fn rest(&self, most: usize) -> &[u8] {
        let rest = &self.bytes[self.written..];
        &rest[..rest.len().min(most)]
    }

    fn remove(&mut self, count: usize) {
        self.written += count;
        if self.written == self.bytes.len() {
            self.bytes.clear();
            self.written = 0;
        }
    }
}

/// The condition of the terminal when we left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TerminalEnd {
    Clean,
    /// It takes no more output. Another write would block forever.
    Hanging,
}

/// Restores the terminal if [`Terminal::leave`] did not.
struct RestoreOnDrop;

impl Drop for RestoreOnDrop {
    fn drop(&mut self) {
        restore::restore_all();
    }
}

impl Terminal {
    /// Sets the terminal to raw mode. [`Terminal::leave`] or dropping it restores the terminal.
    pub(super) fn take() -> io::Result<Terminal> {
        let before = tcgetattr(stdin())?;
        let keyboard = watch_descriptor(reopen(stdin())?, Interest::READABLE)?;
        let screen = watch_descriptor(reopen(stdout())?, Interest::WRITABLE)?;
        restore::arm(before);
        let guard = RestoreOnDrop;
        make_raw()?;
        let is_ours = fcntl_getfl(&screen)?.contains(OFlags::NONBLOCK);
        let most = if is_ours { usize::MAX } else { ROOM_BYTES };
        Ok(Terminal { keyboard, screen, most, guard })
    }

    /// Call it after SIGCONT: the shell has restored its own settings meanwhile.
    pub(super) fn retake(&self) -> io::Result<()> {
        make_raw()
    }

    /// The next keys; `None` when the terminal has gone. Cancel safe.
    pub(super) async fn next_keys(&self) -> Option<Vec<u8>> {
        let typed = self.keyboard.async_io(Interest::READABLE, |tty| {
            check_ready(tty, PollFlags::IN)?;
            let mut buffer = [0; READ_BYTES];
            let len = retry_on_intr(|| read(tty, &mut buffer))?;
            Ok(buffer[..len].to_vec())
        });
        typed.await.ok().filter(|typed| !typed.is_empty())
    }

    /// Writes some of the output; false when the terminal has gone. Waits forever if there is no output. Cancel safe.
    pub(super) async fn write(&self, pending_output: &mut PendingOutput) -> bool {
        if pending_output.len() == 0 {
            return std::future::pending().await;
        }
        let written = self.screen.async_io(Interest::WRITABLE, |tty| {
            check_ready(tty, PollFlags::OUT)?;
            Ok(retry_on_intr(|| rustix::io::write(tty, pending_output.rest(self.most)))?)
        });
        match written.await {
            Ok(count) => {
                pending_output.remove(count);
                true
            }
            Err(_) => false,
        }
    }

    /// Writes the last output, then restores the terminal. The shell continues below `last_row`, if it is known.
    pub(super) async fn leave(self, mut last: PendingOutput, last_row: Option<u16>) -> TerminalEnd {
        last.push(restore::leave_below(last_row).as_bytes());
        let drawing = async { while last.len() > 0 && self.write(&mut last).await {} };
        // If the terminal hangs, leave its screen as it is, but restore its settings.
        let left = match tokio::time::timeout(WRITTEN_WITHIN, drawing).await {
            Ok(()) => TerminalEnd::Clean,
            Err(_) => TerminalEnd::Hanging,
        };
        restore::restore_settings();
        drop(self.guard);
        left
    }
}

fn make_raw() -> io::Result<()> {
    let mut settings = tcgetattr(stdin())?;
    settings.make_raw();
    Ok(tcsetattr(stdin(), OptionalActions::Now, &settings)?)
}

/// Opens the terminal again, so that we can make it non-blocking without effect on other programs. If that is not
/// allowed (after `su` it belongs to another user), uses the descriptor that we were given.
fn reopen(terminal: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let by_name = ttyname(terminal, Vec::new()).and_then(|name| open(name, flags, Mode::empty()));
    // tcgetpgrp succeeds only for the controlling terminal, which /dev/tty names.
    let as_controlling = |_| tcgetpgrp(terminal).and_then(|_| open("/dev/tty", flags, Mode::empty()));
    by_name.or_else(as_controlling).or_else(|_| terminal.try_clone_to_owned())
}

/// The descriptor that we were given may block, so check that it is ready before each read and write.
fn check_ready(tty: &OwnedFd, what: PollFlags) -> io::Result<()> {
    let mut end = [PollFd::from_borrowed_fd(tty.as_fd(), what)];
    match retry_on_intr(|| poll(&mut end, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })))? {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        _ => Ok(()),
    }
}

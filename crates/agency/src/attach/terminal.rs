//! The user's terminal while it is attached: raw keys in, bytes out.
//!
//! Neither reading nor writing ever waits in the kernel, so that a terminal that hangs cannot keep
//! the loop from noticing a signal or the end. What the terminal is shared with, the shell above
//! all, still finds it blocking: ours are descriptions of our own.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use agency_stream::watch_descriptor;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, fcntl_getfl, open};
use rustix::io::{read, retry_on_intr, write};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, tcgetattr, tcgetpgrp, tcsetattr, ttyname};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::restore;

/// A paste arrives in pieces of what the kernel buffers.
const READ_BYTES: usize = 4 << 10;

/// A terminal that may block says that it has room when it takes about so much.
const ROOM_BYTES: usize = 256;

/// How long the last words may take to be drawn before we leave without them.
const DRAWN_WITHIN: Duration = Duration::from_secs(2);

pub(super) struct Terminal {
    keyboard: AsyncFd<OwnedFd>,
    screen: AsyncFd<OwnedFd>,
    /// So much is written at a time.
    most: usize,
    guard: Guard,
}

/// What waits to be drawn.
#[derive(Debug, Default)]
pub(super) struct Undrawn {
    bytes: Vec<u8>,
    /// So many of them have been drawn.
    drawn: usize,
}

impl Undrawn {
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.drawn
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.drawn > self.bytes.len() / 2 {
            self.bytes.drain(..self.drawn);
            self.drawn = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    fn rest(&self, most: usize) -> &[u8] {
        let rest = &self.bytes[self.drawn..];
        &rest[..rest.len().min(most)]
    }

    fn took(&mut self, count: usize) {
        self.drawn += count;
        if self.drawn == self.bytes.len() {
            self.bytes.clear();
            self.drawn = 0;
        }
    }
}

/// How the terminal was when we left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Clean,
    /// It takes no more output: one more word would hold us for ever.
    Hanging,
}

/// Gives the terminal back when nobody did so in good order.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        restore::give_back();
    }
}

impl Terminal {
    /// Takes the terminal: raw from here on, given back by [`Terminal::leave`] or by dropping it.
    pub(super) fn take() -> io::Result<Terminal> {
        let before = tcgetattr(stdin())?;
        let keyboard = watch_descriptor(opened_anew(stdin())?, Interest::READABLE)?;
        let screen = watch_descriptor(opened_anew(stdout())?, Interest::WRITABLE)?;
        restore::arm(before);
        let guard = Guard;
        make_raw()?;
        let is_ours = fcntl_getfl(&screen)?.contains(OFlags::NONBLOCK);
        let most = if is_ours { usize::MAX } else { ROOM_BYTES };
        Ok(Terminal { keyboard, screen, most, guard })
    }

    /// After a stop and a continue the shell's settings are in force.
    pub(super) fn retake(&self) -> io::Result<()> {
        make_raw()
    }

    /// What is typed next; nothing when the terminal has gone. Safe to drop half-way.
    pub(super) async fn typed(&self) -> Option<Vec<u8>> {
        let typed = self.keyboard.async_io(Interest::READABLE, |tty| {
            until_ready(tty, PollFlags::IN)?;
            let mut buffer = [0; READ_BYTES];
            let len = retry_on_intr(|| read(tty, &mut buffer))?;
            Ok(buffer[..len].to_vec())
        });
        typed.await.ok().filter(|typed| !typed.is_empty())
    }

    /// Draws some of what waits, for ever when nothing does; false when the terminal has gone.
    /// Safe to drop half-way.
    pub(super) async fn draw(&self, undrawn: &mut Undrawn) -> bool {
        if undrawn.len() == 0 {
            return std::future::pending().await;
        }
        let written = self.screen.async_io(Interest::WRITABLE, |tty| {
            until_ready(tty, PollFlags::OUT)?;
            Ok(retry_on_intr(|| write(tty, undrawn.rest(self.most)))?)
        });
        match written.await {
            Ok(count) => {
                undrawn.took(count);
                true
            }
            Err(_) => false,
        }
    }

    /// Draws what is left, then gives the terminal back.
    pub(super) async fn leave(self, mut last: Undrawn) -> Left {
        last.push(restore::LEAVE.as_bytes());
        let drawing = async { while last.len() > 0 && self.draw(&mut last).await {} };
        // A terminal that hangs is left as it is; its settings are not.
        let left = match tokio::time::timeout(DRAWN_WITHIN, drawing).await {
            Ok(()) => Left::Clean,
            Err(_) => Left::Hanging,
        };
        restore::give_back_settings();
        drop(self.guard);
        left
    }
}

fn make_raw() -> io::Result<()> {
    let mut settings = tcgetattr(stdin())?;
    settings.make_raw();
    Ok(tcsetattr(stdin(), OptionalActions::Now, &settings)?)
}

/// The same terminal through a description of our own, which may be non-blocking without harm to
/// others. Where it cannot be opened (it belongs to the user before `su`), the one we were given.
fn opened_anew(terminal: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let by_name = ttyname(terminal, Vec::new()).and_then(|name| open(name, flags, Mode::empty()));
    // Only the controlling terminal has a foreground group that we may ask for.
    let as_controlling = |_| tcgetpgrp(terminal).and_then(|_| open("/dev/tty", flags, Mode::empty()));
    by_name.or_else(as_controlling).or_else(|_| terminal.try_clone_to_owned())
}

/// A description that we were given may block, so nothing is tried before its time.
fn until_ready(tty: &OwnedFd, what: PollFlags) -> io::Result<()> {
    let mut end = [PollFd::from_borrowed_fd(tty.as_fd(), what)];
    match retry_on_intr(|| poll(&mut end, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })))? {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        _ => Ok(()),
    }
}

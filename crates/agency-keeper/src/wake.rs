//! What the loop waits for, and what woke it up.
//!
//! poll(2), because a keeper has a handful of descriptors and poll is everywhere.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use agency_journal::Stream;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    Signals,
    Listener,
    Watch,
    Output(Stream),
    Input,
    Peer(u64),
}

#[derive(Debug, Default)]
pub(crate) struct Woken {
    pub(crate) connection: bool,
    pub(crate) watch: bool,
    pub(crate) output: Vec<Stream>,
    pub(crate) heard: Vec<u64>,
    pub(crate) may_speak: Vec<u64>,
}

/// The descriptors of one round.
#[derive(Default)]
pub(crate) struct Waiting<'a> {
    sources: Vec<Source>,
    fds: Vec<PollFd<'a>>,
}

impl<'a> Waiting<'a> {
    pub(crate) fn on(&mut self, source: Source, fd: BorrowedFd<'a>, flags: PollFlags) {
        self.sources.push(source);
        self.fds.push(PollFd::from_borrowed_fd(fd, flags));
    }

    pub(crate) fn until(mut self, deadline: Option<Instant>) -> Woken {
        let left = |at: Instant| at.saturating_duration_since(Instant::now());
        let timeout = deadline.map(|at| timespec(left(at)));
        // Interrupted: the signal is in its pipe, and every deadline is looked at anyway.
        let ready = poll(&mut self.fds, timeout.as_ref()).unwrap_or(0);
        let mut woken = Woken::default();
        for (source, fd) in self.sources.into_iter().zip(self.fds).filter(|_| ready > 0) {
            woken.note(source, fd.revents());
        }
        woken
    }
}

impl Woken {
    fn note(&mut self, source: Source, ready: PollFlags) {
        if ready.is_empty() {
            return;
        }
        match source {
            // Both are looked at in every round.
            Source::Signals | Source::Input => {}
            Source::Listener => self.connection = true,
            Source::Watch => self.watch = true,
            Source::Output(stream) => self.output.push(stream),
            Source::Peer(id) => {
                if ready.contains(PollFlags::OUT) {
                    self.may_speak.push(id);
                }
                if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                    self.heard.push(id);
                }
            }
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    // A deadline that has passed is zero; a little is added to others, so as not to wake just before them.
    let nanoseconds = if duration.is_zero() { 0 } else { 1000 };
    let duration = duration.saturating_add(Duration::from_nanos(nanoseconds));
    Timespec { tv_sec: duration.as_secs() as _, tv_nsec: duration.subsec_nanos() as _ }
}

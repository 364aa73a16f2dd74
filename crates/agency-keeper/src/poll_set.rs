//! The descriptors that the loop polls, and which of them are ready.
//!
//! Uses poll(2): a keeper has few descriptors, and poll exists everywhere.

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
pub(crate) struct Ready {
    pub(crate) connection: bool,
    pub(crate) watch: bool,
    pub(crate) output: Vec<Stream>,
    pub(crate) readable_peers: Vec<u64>,
    pub(crate) writable_peers: Vec<u64>,
}

/// The descriptors to poll in one round.
#[derive(Default)]
pub(crate) struct PollSet<'a> {
    sources: Vec<Source>,
    fds: Vec<PollFd<'a>>,
}

impl<'a> PollSet<'a> {
    pub(crate) fn add(&mut self, source: Source, fd: BorrowedFd<'a>, flags: PollFlags) {
        self.sources.push(source);
        self.fds.push(PollFd::from_borrowed_fd(fd, flags));
    }

    pub(crate) fn wait_until(mut self, deadline: Option<Instant>) -> Ready {
        let left = |at: Instant| at.saturating_duration_since(Instant::now());
        let timeout = deadline.map(|at| timespec(left(at)));
        // If interrupted, the signal is in its pipe, and the loop checks every deadline anyway.
        let ready = poll(&mut self.fds, timeout.as_ref()).unwrap_or(0);
        let mut result = Ready::default();
        for (source, fd) in self.sources.into_iter().zip(self.fds).filter(|_| ready > 0) {
            result.mark(source, fd.revents());
        }
        result
    }
}

impl Ready {
    fn mark(&mut self, source: Source, ready: PollFlags) {
        if ready.is_empty() {
            return;
        }
        match source {
            // The loop serves both in every round.
            Source::Signals | Source::Input => {}
            Source::Listener => self.connection = true,
            Source::Watch => self.watch = true,
            Source::Output(stream) => self.output.push(stream),
            Source::Peer(id) => {
                if ready.contains(PollFlags::OUT) {
                    self.writable_peers.push(id);
                }
                if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                    self.readable_peers.push(id);
                }
            }
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    // Zero for a deadline that has passed. Otherwise a little more, so that poll does not return just before it.
    let nanoseconds = if duration.is_zero() { 0 } else { 1000 };
    let duration = duration.saturating_add(Duration::from_nanos(nanoseconds));
    Timespec { tv_sec: duration.as_secs() as _, tv_nsec: duration.subsec_nanos() as _ }
}

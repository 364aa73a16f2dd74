//! Waiting for file descriptors with a deadline.

use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// `false`: the deadline came first.
pub(crate) fn is_ready_before(deadline: Instant, fds: &mut [PollFd<'_>]) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(fds, Some(&timeout)) {
            Err(Errno::INTR) => {}
            ready => return ready.expect("open descriptors can be polled") > 0,
        }
    }
}

/// Readable when the child has ended.
pub(crate) fn pidfd_of(child: &std::process::Child) -> OwnedFd {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a child has a pid");
    pidfd_open(pid, PidfdFlags::empty()).expect("our own child can be watched")
}

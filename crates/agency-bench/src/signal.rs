//! A pipe that a script writes to when it has come somewhere: seen at once, without asking again and again.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use rustix::io::Errno;

pub struct Signal {
    path: PathBuf,
    pipe: OwnedFd,
}

impl Signal {
    pub fn at(path: PathBuf) -> Signal {
        mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).expect("room for a named pipe");
        // Open for writing too, so that no writer has to wait and none that leaves ends it.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let pipe = open(&path, flags, Mode::empty()).expect("our own pipe can be opened");
        Signal { path, pipe }
    }

    /// The shell command that gives it.
    pub fn give(&self) -> String {
        format!("echo >{}", self.path.display())
    }

    /// Waits until it was given so many times.
    pub fn wait(&self, times: usize, patience: Duration) -> Instant {
        let deadline = Instant::now() + patience;
        let mut given = 0;
        while given < times {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            match poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], Some(&timeout)) {
                Ok(0) => panic!("nobody gave {} {times} times: {given}", self.path.display()),
                Ok(_) => given += self.read(times - given),
                Err(Errno::INTR) => {}
                Err(err) => panic!("cannot wait for {}: {err}", self.path.display()),
            }
        }
        Instant::now()
    }

    /// No more than was asked for: the rest belongs to the next who waits.
    fn read(&self, most: usize) -> usize {
        let mut buf = [0; 64];
        let most = most.min(buf.len());
        rustix::io::read(&self.pipe, &mut buf[..most]).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_giving_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let signal = Signal::at(dir.path().join("signal"));
        let script = format!("{0}; {0}; {0}", signal.give());
        assert!(std::process::Command::new("sh").args(["-c", &script]).status().unwrap().success());
        signal.wait(1, Duration::from_secs(20));
        signal.wait(2, Duration::from_secs(20));
    }
}

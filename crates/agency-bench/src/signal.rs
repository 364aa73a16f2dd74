//! A named pipe to which a script writes when it reaches a point, so that the program need not poll.

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
        // Open for writing too, so that no writer waits, and the end of a writer does not end the pipe.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let pipe = open(&path, flags, Mode::empty()).expect("our own pipe can be opened");
        Signal { path, pipe }
    }

    /// The shell command that sends it.
    pub fn send_command(&self) -> String {
        format!("echo >{}", self.path.display())
    }

    /// Waits until scripts have sent it this many times.
    pub fn wait(&self, times: usize, patience: Duration) -> Instant {
        let deadline = Instant::now() + patience;
        let mut received = 0;
        while received < times {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            match poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], Some(&timeout)) {
                Ok(0) => panic!("{} was sent {received} of {times} times", self.path.display()),
                Ok(_) => received += self.read(times - received),
                Err(Errno::INTR) => {}
                Err(err) => panic!("cannot wait for {}: {err}", self.path.display()),
            }
        }
        Instant::now()
    }

    /// Reads no more than `most`: the rest belongs to the next wait.
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
    fn each_sending_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let signal = Signal::at(dir.path().join("signal"));
        let script = format!("{0}; {0}; {0}", signal.send_command());
        assert!(std::process::Command::new("sh").args(["-c", &script]).status().unwrap().success());
        signal.wait(1, Duration::from_secs(20));
        signal.wait(2, Duration::from_secs(20));
    }
}

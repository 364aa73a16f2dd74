//! The agent's input, read by line, by text or by reply.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::stdio::stdin;

use crate::reply;

#[derive(Default)]
pub(crate) struct Input {
    pending: Vec<u8>,
}

/// The end of the input: the terminal hung up, or the pipe was closed.
#[derive(Debug)]
pub(crate) struct Ended;

impl Input {
    /// One line without its end, which is `\n` or, in raw mode, `\r`.
    pub(crate) fn line(&mut self) -> Result<Vec<u8>, Ended> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                let mut line: Vec<u8> = self.pending.drain(..=end).collect();
                line.pop();
                return Ok(line);
            }
            self.read()?;
        }
    }

    pub(crate) fn until(&mut self, text: &[u8]) -> Result<(), Ended> {
        loop {
            let found = self.pending.windows(text.len().max(1)).position(|window| window == text);
            if let Some(start) = found {
                self.pending.drain(..start + text.len());
                return Ok(());
            }
            self.read()?;
        }
    }

    /// One key: an escape sequence of three bytes, or a single byte.
    pub(crate) fn key(&mut self) -> Result<Vec<u8>, Ended> {
        loop {
            let len = if self.pending.first() == Some(&0x1b) { 3 } else { 1 };
            if self.pending.len() >= len {
                return Ok(self.pending.drain(..len).collect());
            }
            self.read()?;
        }
    }

    /// The terminal's answer to a query, if one comes within this time.
    pub(crate) fn reply(&mut self, within: Duration) -> Result<Option<Vec<u8>>, Ended> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(len) = reply::whole_len(&self.pending) {
                return Ok(Some(self.pending.drain(..len).collect()));
            }
            if !is_readable_before(deadline) {
                return Ok(None);
            }
            self.read()?;
        }
    }

    fn read(&mut self) -> Result<(), Ended> {
        let mut buf = [0; 4096];
        loop {
            match rustix::io::read(stdin(), &mut buf) {
                Ok(0) => return Err(Ended),
                Ok(count) => {
                    self.pending.extend_from_slice(&buf[..count]);
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(_) => return Err(Ended),
            }
        }
    }
}

fn is_readable_before(deadline: Instant) -> bool {
    let terminal = stdin();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&terminal, PollFlags::IN)], Some(&timeout)) {
            Err(Errno::INTR) => {}
            ready => return ready.is_ok_and(|count| count > 0),
        }
    }
}

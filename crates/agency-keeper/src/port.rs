//! The agent's input and output: one terminal, or three pipes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use agency_journal::Stream;
use rustix::io::Errno;

use crate::terminal::Terminal;

pub(crate) enum Port {
    Terminal { terminal: Terminal, is_open: bool },
    Pipes(Pipes),
}

/// Our ends of the pipes; `None` once the other side has closed.
pub(crate) struct Pipes {
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
}

/// The result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadResult {
    /// This many bytes were added.
    Bytes(usize),
    /// There is nothing to read now.
    Empty,
    /// The other side has closed.
    Closed,
}

/// The result of a write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WriteResult {
    Bytes(usize),
    Full,
    Closed,
}

impl Port {
    pub(crate) fn terminal(terminal: Terminal) -> Port {
        Port::Terminal { terminal, is_open: true }
    }

    pub(crate) fn as_terminal(&self) -> Option<&Terminal> {
        match self {
            Port::Terminal { terminal, .. } => Some(terminal),
            Port::Pipes(_) => None,
        }
    }

    /// The descriptors from which output may come.
    pub(crate) fn readable(&self) -> impl Iterator<Item = (Stream, BorrowedFd<'_>)> {
        let (first, second) = match self {
            Port::Terminal { terminal, is_open } => {
                (is_open.then(|| (Stream::Terminal, terminal.master())), None)
            }
            Port::Pipes(pipes) => (
                pipes.stdout.as_ref().map(|fd| (Stream::Stdout, fd.as_fd())),
                pipes.stderr.as_ref().map(|fd| (Stream::Stderr, fd.as_fd())),
            ),
        };
        first.into_iter().chain(second)
    }

    /// The descriptor that takes input.
    pub(crate) fn writable(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Port::Terminal { terminal, is_open } => is_open.then(|| terminal.master()),
            Port::Pipes(pipes) => pipes.stdin.as_ref().map(|fd| fd.as_fd()),
        }
    }

    /// Whether all output has been read and no process can write more.
    pub(crate) fn is_drained(&self) -> bool {
        self.readable().next().is_none()
    }

    /// Reads what is available now, at most up to the buffer's capacity.
    pub(crate) fn read(&mut self, stream: Stream, buffer: &mut Vec<u8>) -> ReadResult {
        let Some(fd) = self.readable().find(|(name, _)| *name == stream).map(|(_, fd)| fd) else {
            return ReadResult::Closed;
        };
        let found = fill_buffer(fd, buffer);
        if found == ReadResult::Closed {
            self.close(stream);
        }
        found
    }

    fn close(&mut self, stream: Stream) {
        match (self, stream) {
            (Port::Terminal { is_open, .. }, _) => *is_open = false,
            (Port::Pipes(pipes), Stream::Stderr) => pipes.stderr = None,
            (Port::Pipes(pipes), Stream::Stdout | Stream::Terminal) => pipes.stdout = None,
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> WriteResult {
        let Some(fd) = self.writable() else { return WriteResult::Closed };
        match rustix::io::retry_on_intr(|| rustix::io::write(fd, bytes)) {
            Ok(0) if !bytes.is_empty() => WriteResult::Full,
            Err(Errno::AGAIN) => WriteResult::Full,
            Ok(count) => WriteResult::Bytes(count),
            Err(_) => WriteResult::Closed,
        }
    }

    /// Signals the end of input. `false` for a terminal, which has no such signal.
    pub(crate) fn close_input(&mut self) -> bool {
        match self {
            Port::Terminal { .. } => false,
            Port::Pipes(pipes) => {
                pipes.stdin = None;
                true
            }
        }
    }

    /// Tells the port that the agent has exited: reads end when its last descendant closes the other end.
    pub(crate) fn on_agent_exit(&mut self) {
        match self {
            Port::Terminal { terminal, .. } => terminal.release_slave(),
            Port::Pipes(pipes) => pipes.stdin = None,
        }
    }
}

impl Pipes {
    pub(crate) fn new(stdin: OwnedFd, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Pipes> {
        for fd in [&stdin, &stdout, &stderr] {
            rustix::io::ioctl_fionbio(fd, true)?;
        }
        Ok(Pipes { stdin: Some(stdin), stdout: Some(stdout), stderr: Some(stderr) })
    }
}

/// Reads several times into one buffer: a terminal returns 4 KB per read, and each record costs a write.
fn fill_buffer(fd: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> ReadResult {
    let before = buffer.len();
    while buffer.len() < buffer.capacity() {
        match rustix::io::read(fd, rustix::buffer::spare_capacity(buffer)) {
            Ok(0) if buffer.len() == before => return ReadResult::Closed,
            Err(Errno::AGAIN) if buffer.len() == before => return ReadResult::Empty,
            Err(Errno::INTR) => {}
            // A terminal reports EIO when no process holds its other end.
            Err(_) if buffer.len() == before => return ReadResult::Closed,
            // Return what was read; the next read reports the end again.
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    ReadResult::Bytes(buffer.len() - before)
}

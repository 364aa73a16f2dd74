//! Where the agent's bytes come and go: a terminal, or three pipes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use agency_journal::Stream;
use rustix::io::Errno;

use crate::terminal::Terminal;

pub(crate) enum Port {
    Terminal { terminal: Terminal, is_open: bool },
    Pipes(Pipes),
}

/// Our ends; `None` once the other side closed.
pub(crate) struct Pipes {
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
}

/// What a read found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// So many bytes were added.
    Bytes(usize),
    /// Nothing now.
    Dry,
    /// Nothing any more.
    Closed,
}

/// What a write did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Write {
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

    /// The descriptors that output may come from.
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

    /// The descriptor that input goes to.
    pub(crate) fn writable(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Port::Terminal { terminal, is_open } => is_open.then(|| terminal.master()),
            Port::Pipes(pipes) => pipes.stdin.as_ref().map(|fd| fd.as_fd()),
        }
    }

    /// All output has been read and nobody is left to write more.
    pub(crate) fn is_drained(&self) -> bool {
        self.readable().next().is_none()
    }

    /// Reads what is there now, at most up to the buffer's capacity.
    pub(crate) fn read(&mut self, stream: Stream, buffer: &mut Vec<u8>) -> Read {
        let Some(fd) = self.readable().find(|(name, _)| *name == stream).map(|(_, fd)| fd) else {
            return Read::Closed;
        };
        let found = read_all(fd, buffer);
        if found == Read::Closed {
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

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Write {
        let Some(fd) = self.writable() else { return Write::Closed };
        match rustix::io::retry_on_intr(|| rustix::io::write(fd, bytes)) {
            Ok(0) if !bytes.is_empty() => Write::Full,
            Err(Errno::AGAIN) => Write::Full,
            Ok(count) => Write::Bytes(count),
            Err(_) => Write::Closed,
        }
    }

    /// The end of input, where a pipe can say it.
    pub(crate) fn close_input(&mut self) -> bool {
        match self {
            Port::Terminal { .. } => false,
            Port::Pipes(pipes) => {
                pipes.stdin = None;
                true
            }
        }
    }

    /// The agent has exited: what is left to read ends when its last descendant lets go.
    pub(crate) fn agent_exited(&mut self) {
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

/// Several reads into one buffer: a terminal gives 4 KB at a time, and each record costs a write.
fn read_all(fd: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> Read {
    let before = buffer.len();
    while buffer.len() < buffer.capacity() {
        match rustix::io::read(fd, rustix::buffer::spare_capacity(buffer)) {
            Ok(0) if buffer.len() == before => return Read::Closed,
            Err(Errno::AGAIN) if buffer.len() == before => return Read::Dry,
            Err(Errno::INTR) => {}
            // EIO is how a terminal says that nobody holds its other end.
            Err(_) if buffer.len() == before => return Read::Closed,
            // What was read goes out first; the next read says it again.
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    Read::Bytes(buffer.len() - before)
}

//! The daemon's end of a keeper's socket: handshake, then frames.

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use agency_api::keeper::{Frame, FromKeeper, OLDEST_VERSION, ToKeeper, VERSION, Welcome, newer_epoch};
use agency_api::paths::RunDir;
use agency_api::{Bytes, ProcessIdentity, socket};
use agency_keeper::platform;
use agency_store::epoch::DaemonEpoch;
use agency_stream::Stream;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::AsyncWrite;

/// A keeper answers within a millisecond; one that is stopped or swapped out has this long.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);

/// One read takes at most this much, so that the daemon serves commands while the agent floods it with output.
const READ_BYTES: usize = 256 << 10;

#[derive(Debug, thiserror::Error)]
pub enum KeeperSocketError {
    #[error("cannot reach the keeper")]
    Io(#[from] io::Error),
    #[error("the keeper refused: {0}")]
    Refused(String),
    #[error("a daemon with epoch {seen} has taken over")]
    NewerDaemon { seen: u64 },
    #[error("invalid reply from the keeper: {0}")]
    InvalidReply(String),
}

pub struct KeeperSocket {
    pub welcome: Welcome,
    /// The launch environment, for a rescue and for restarts. In memory only.
    pub environment: Vec<(Bytes, Bytes)>,
    /// A duplicate of the PTY master. If the keeper is killed, the agent gets no SIGHUP while the daemon holds it.
    pub lifeline: Option<OwnedFd>,
    /// Why the keeper cannot write the journal, if it cannot.
    pub journal_trouble: Option<String>,
    stream: UnixStream,
    buffer: Vec<u8>,
}

impl KeeperSocket {
    /// Blocking. If the keeper has seen a higher epoch than this daemon's, the daemon takes a higher one.
    pub fn connect(run: &RunDir, epoch: &DaemonEpoch) -> Result<KeeperSocket, KeeperSocketError> {
        match KeeperSocket::connect_with(run, epoch.get()) {
            Err(KeeperSocketError::NewerDaemon { seen }) if epoch.exceed(seen) => {
                KeeperSocket::connect_with(run, epoch.get())
            }
            outcome => outcome,
        }
    }

    fn connect_with(run: &RunDir, epoch: u64) -> Result<KeeperSocket, KeeperSocketError> {
        let stream = socket::connect(&run.socket())?;
        let listener = socket::peer_pid(&stream).and_then(platform::identity_of);
        let mut socket = KeeperSocket::over(stream, epoch)?;
        if let Some(keeper) = listener {
            socket.translate_identities(keeper);
        }
        Ok(socket)
    }

    /// Start times count from the boot of a time namespace. If the keeper is in another one than this daemon, the daemon
    /// uses the times that it sees itself. `keeper` is the process behind the socket, as the daemon sees it.
    fn translate_identities(&mut self, keeper: ProcessIdentity) {
        let shift = keeper.start_time.wrapping_sub(self.welcome.keeper.start_time);
        if self.welcome.keeper.pid != keeper.pid || shift == 0 {
            return;
        }
        self.welcome.keeper = keeper;
        let Some(child) = &mut self.welcome.child else { return };
        let expected = child.start_time.wrapping_add(shift);
        match platform::identity_of(child.pid) {
            // Both times are rounded to ticks.
            Some(found) if found.start_time.abs_diff(expected) <= 1 => *child = found,
            _ => child.start_time = expected,
        }
    }

    /// Blocking. Does the handshake over a stream.
    pub fn over(stream: UnixStream, epoch: u64) -> Result<KeeperSocket, KeeperSocketError> {
        stream.set_read_timeout(Some(HANDSHAKE_WITHIN))?;
        stream.set_write_timeout(Some(HANDSHAKE_WITHIN))?;
        let mut handshake = Handshake { stream, buffer: Vec::new(), descriptor: None, trouble: None };
        handshake.send_message(&ToKeeper::Hello {
            min: OLDEST_VERSION,
            max: VERSION,
            epoch,
            peer: format!("agency {}", env!("CARGO_PKG_VERSION")),
            lifeline: true,
        })?;
        let welcome = handshake.welcome()?;
        handshake.send_message(&ToKeeper::Environment { id: 0 })?;
        let environment = handshake.environment()?;
        let Handshake { stream, buffer, descriptor, trouble } = handshake;
        stream.set_read_timeout(None)?;
        stream.set_write_timeout(None)?;
        Ok(KeeperSocket {
            welcome,
            environment,
            lifeline: descriptor,
            journal_trouble: trouble,
            stream,
            buffer,
        })
    }

    /// From here on the async runtime reads and writes the socket.
    pub fn into_frames(self) -> io::Result<Frames> {
        Frames::over(self.stream, self.buffer)
    }
}

struct Handshake {
    stream: UnixStream,
    buffer: Vec<u8>,
    descriptor: Option<OwnedFd>,
    trouble: Option<String>,
}

impl Handshake {
    fn send_message(&mut self, message: &ToKeeper) -> Result<(), KeeperSocketError> {
        Ok(self.stream.write_all(&Frame::control(message)?.encoded())?)
    }

    fn welcome(&mut self) -> Result<Welcome, KeeperSocketError> {
        loop {
            match self.receive_message()? {
                FromKeeper::Welcome(welcome) => return Ok(welcome),
                FromKeeper::Refused { reason } => {
                    return Err(match newer_epoch(&reason) {
                        Some(seen) => KeeperSocketError::NewerDaemon { seen },
                        None => KeeperSocketError::Refused(reason),
                    });
                }
                _ => {}
            }
        }
    }

    fn environment(&mut self) -> Result<Vec<(Bytes, Bytes)>, KeeperSocketError> {
        loop {
            match self.receive_message()? {
                FromKeeper::Environment { env, .. } => return Ok(env),
                FromKeeper::Journal { cause } => self.trouble = cause,
                _ => {}
            }
        }
    }

    fn receive_message(&mut self) -> Result<FromKeeper, KeeperSocketError> {
        loop {
            let decoded = Frame::decode(&self.buffer)
                .map_err(|err| KeeperSocketError::InvalidReply(err.to_string()))?;
            if let Some((frame, used)) = decoded {
                self.buffer.drain(..used);
                if let Frame::Control(json) = frame {
                    return serde_json::from_slice(&json)
                        .map_err(|err| KeeperSocketError::InvalidReply(err.to_string()));
                }
                continue;
            }
            self.receive()?;
        }
    }

    /// Reads what has arrived, and the descriptor that may come with it.
    fn receive(&mut self) -> io::Result<()> {
        let mut bytes = [0; 4096];
        if self.descriptor.is_some() {
            let count = self.stream.read(&mut bytes)?;
            return self.append(&bytes[..count]);
        }
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let slice = &mut [io::IoSliceMut::new(&mut bytes)];
        let message = recvmsg(&self.stream, slice, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        for extra in control.drain() {
            if let RecvAncillaryMessage::ScmRights(mut descriptors) = extra {
                self.descriptor = descriptors.next().or(self.descriptor.take());
            }
        }
        self.append(&bytes[..message.bytes])
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the keeper hung up during the handshake",
            ));
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }
}

/// Frames in and out of a socket between daemon and keeper, from either end.
pub struct Frames {
    stream: Stream,
    buffer: Vec<u8>,
    /// The start of the first frame that `take` has not returned.
    start: usize,
}

impl Frames {
    /// `buffer` has arrived already.
    pub fn over(stream: UnixStream, buffer: Vec<u8>) -> io::Result<Frames> {
        Ok(Frames { stream: Stream::new(stream)?, buffer, start: 0 })
    }

    /// Waits for more bytes. An error, or the end, means that the keeper is gone.
    pub async fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.start);
        self.start = 0;
        if self.buffer.capacity() - self.buffer.len() < READ_BYTES {
            self.buffer.reserve(READ_BYTES);
        }
        poll_fn(|cx| self.poll_fill(cx)).await
    }

    /// The next whole frame among the bytes that have arrived.
    pub fn take(&mut self) -> io::Result<Option<Frame>> {
        let decoded = Frame::decode(&self.buffer[self.start..])
            .map_err(|err| io::Error::new(io::ErrorKind::InvalidData, err))?;
        let Some((frame, used)) = decoded else { return Ok(None) };
        self.start += used;
        Ok(Some(frame))
    }

    /// Reads into the buffer. The end of the stream is an error: the keeper is gone.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.buffer.reserve(1);
        Poll::Ready(match ready!(self.stream.poll_read_into(cx, &mut self.buffer))? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        })
    }

    /// Reads while it writes: a keeper with a full output buffer takes no input until the daemon has read some of it.
    pub async fn send(&mut self, frame: &Frame) -> io::Result<()> {
        let bytes = frame.encoded();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let written = poll_fn(|cx| {
                if let Poll::Ready(written) = Pin::new(&mut self.stream).poll_write(cx, rest) {
                    return Poll::Ready(written);
                }
                self.poll_fill(cx).map_ok(|()| 0)
            });
            rest = &rest[written.await?..];
        }
        Ok(())
    }

    /// `send` may have read whole frames.
    pub fn has_more(&self) -> bool {
        self.buffer.len() > self.start
    }

    pub async fn send_message(&mut self, message: &ToKeeper) -> io::Result<()> {
        self.send(&Frame::control(message)?).await
    }
}

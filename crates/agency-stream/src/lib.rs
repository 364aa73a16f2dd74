//! A Unix socket for a task: woken by bytes that came, and by room only while it waits for room.
//!
//! The runtime's own stream asks for both all the time, so that each byte the other end reads
//! wakes this end for nothing: on the way of a key through three processes that is every second wake-up.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

pub struct Stream {
    socket: AsyncFd<UnixStream>,
    /// Only while a write waits. A duplicate, because a descriptor is watched once.
    room: Option<AsyncFd<OwnedFd>>,
}

impl Stream {
    pub fn new(socket: UnixStream) -> io::Result<Stream> {
        socket.set_nonblocking(true)?;
        Ok(Stream { socket: watch_descriptor(socket, Interest::READABLE)?, room: None })
    }

    /// Appends what has come to `buffer`, into the room that it has; 0 at the end of the stream.
    pub fn poll_read_into(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.socket.poll_read_ready(cx))?;
            let read = ready.try_io(|socket| {
                let read = || rustix::io::read(socket, rustix::buffer::spare_capacity(buffer));
                Ok(rustix::io::retry_on_intr(read)?)
            });
            if let Ok(read) = read {
                return Poll::Ready(read);
            }
        }
    }

    fn poll_put(
        &mut self,
        cx: &mut Context<'_>,
        put: impl Fn(&mut &UnixStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            match put(&mut self.socket.get_ref()) {
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => ready!(self.poll_room(cx))?,
                Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
                done => {
                    self.room = None;
                    return Poll::Ready(done);
                }
            }
        }
    }

    /// Room may have been there before it was watched for, so a write has to be tried afterwards.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let room = match &self.room {
            Some(room) => room,
            None => {
                let duplicate = self.socket.as_fd().try_clone_to_owned()?;
                self.room.insert(watch_descriptor(duplicate, Interest::WRITABLE)?)
            }
        };
        ready!(room.poll_write_ready(cx))?.clear_ready();
        Poll::Ready(Ok(()))
    }
}

/// A descriptor that the runtime watches for this alone.
#[allow(unsafe_code)]
pub fn watch_descriptor<T: Into<OwnedFd> + std::os::fd::AsRawFd>(
    fd: T,
    interest: Interest,
) -> io::Result<AsyncFd<T>> {
    // SAFETY: sockets and owned descriptors keep their number for as long as they live.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.socket.poll_read_ready(cx))?;
            let read = ready.try_io(|socket| match socket.get_ref().read(buffer.initialize_unfilled()) {
                Err(err) if err.kind() == io::ErrorKind::Interrupted => Ok(None),
                read => read.map(Some),
            });
            match read {
                Ok(Ok(Some(count))) => {
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(err)) => return Poll::Ready(Err(err)),
                // Interrupted, or nothing there after all.
                Ok(Ok(None)) | Err(_) => {}
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_put(cx, |socket| socket.write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_put(cx, |socket| socket.write_vectored(parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Nothing is kept here.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match self.socket.get_ref().shutdown(Shutdown::Write) {
            // The other end was quicker.
            Err(err) if err.kind() == io::ErrorKind::NotConnected => Ok(()),
            done => done,
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn pair() -> (Stream, Stream) {
        let (one, other) = UnixStream::pair().unwrap();
        (Stream::new(one).unwrap(), Stream::new(other).unwrap())
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[test]
    fn more_than_the_socket_holds_arrives_whole() {
        runtime().block_on(async {
            let (mut one, mut other) = pair();
            let bytes: Vec<u8> = (0..5_000_000_u32).map(|n| (n % 251) as u8).collect();
            let copy = bytes.clone();
            let writing = tokio::spawn(async move {
                one.write_all(&copy).await.unwrap();
                assert!(one.room.is_none(), "nothing is waited for any more");
                one.shutdown().await.unwrap();
            });
            let mut heard = Vec::new();
            other.read_to_end(&mut heard).await.unwrap();
            writing.await.unwrap();
            assert!(heard == bytes);
        });
    }

    #[test]
    fn bytes_are_appended_and_the_end_is_zero() {
        runtime().block_on(async {
            let (mut one, mut other) = pair();
            one.write_all(b"world").await.unwrap();
            let mut buffer = b"hello ".to_vec();
            buffer.reserve(64);
            assert_eq!(std::future::poll_fn(|cx| other.poll_read_into(cx, &mut buffer)).await.unwrap(), 5);
            assert_eq!(buffer, b"hello world");
            drop(one);
            assert_eq!(std::future::poll_fn(|cx| other.poll_read_into(cx, &mut buffer)).await.unwrap(), 0);
        });
    }

    #[test]
    fn a_write_to_nobody_is_an_error() {
        runtime().block_on(async {
            let (mut one, other) = pair();
            drop(other);
            assert_eq!(one.write_all(b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        });
    }

    #[test]
    fn a_writer_that_waits_hears_of_the_end() {
        runtime().block_on(async {
            let (mut one, other) = pair();
            let writing = tokio::spawn(async move { one.write_all(&vec![0; 50_000_000]).await });
            tokio::task::yield_now().await;
            drop(other);
            assert!(writing.await.unwrap().is_err());
        });
    }
}

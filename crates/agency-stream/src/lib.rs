//! An async Unix socket that wakes its task for incoming bytes, and for free space only while a write waits
//! for it.
//!
//! The runtime's own stream always waits for both, so that each byte that the other end reads wakes this end
//! for nothing. For a key that passes through three processes, that is every second wake-up.

#![warn(missing_docs)]

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

/// An async Unix socket.
pub struct Stream {
    socket: AsyncFd<UnixStream>,
    /// Exists only while a write waits. A duplicate, because a descriptor can be registered once.
    writable: Option<AsyncFd<OwnedFd>>,
}

impl Stream {
    /// Makes the socket non-blocking and registers it with the runtime.
    pub fn new(socket: UnixStream) -> io::Result<Stream> {
        socket.set_nonblocking(true)?;
        Ok(Stream { socket: watch_descriptor(socket, Interest::READABLE)?, writable: None })
    }

    /// Appends incoming bytes to `buffer`, as far as it has capacity. Returns 0 at the end of the stream.
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

    fn poll_write_with(
        &mut self,
        cx: &mut Context<'_>,
        write: impl Fn(&mut &UnixStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            match write(&mut self.socket.get_ref()) {
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => ready!(self.poll_writable(cx))?,
                Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
                done => {
                    self.writable = None;
                    return Poll::Ready(done);
                }
            }
        }
    }

    /// Waits for free space. There may have been space before the registration, so the caller must try to
    /// write again.
    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let writable = match &self.writable {
            Some(writable) => writable,
            None => {
                let duplicate = self.socket.as_fd().try_clone_to_owned()?;
                self.writable.insert(watch_descriptor(duplicate, Interest::WRITABLE)?)
            }
        };
        ready!(writable.poll_write_ready(cx))?.clear_ready();
        Poll::Ready(Ok(()))
    }
}

/// Registers a descriptor with the runtime for this interest only.
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
                // Interrupted, or no bytes after all.
                Ok(Ok(None)) | Err(_) => {}
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_write_with(cx, |socket| socket.write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_write_with(cx, |socket| socket.write_vectored(parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Nothing is buffered here.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match self.socket.get_ref().shutdown(Shutdown::Write) {
            // The other end has closed first.
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
    fn more_bytes_than_the_socket_holds_arrive_complete() {
        runtime().block_on(async {
            let (mut one, mut other) = pair();
            let bytes: Vec<u8> = (0..5_000_000_u32).map(|n| (n % 251) as u8).collect();
            let copy = bytes.clone();
            let writing = tokio::spawn(async move {
                one.write_all(&copy).await.unwrap();
                assert!(one.writable.is_none(), "nothing is waited for any more");
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
    fn a_write_to_a_closed_socket_is_an_error() {
        runtime().block_on(async {
            let (mut one, other) = pair();
            drop(other);
            assert_eq!(one.write_all(b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        });
    }

    #[test]
    fn a_waiting_writer_notices_the_end() {
        runtime().block_on(async {
            let (mut one, other) = pair();
            let writing = tokio::spawn(async move { one.write_all(&vec![0; 50_000_000]).await });
            tokio::task::yield_now().await;
            drop(other);
            assert!(writing.await.unwrap().is_err());
        });
    }
}

//! The user's terminal while it is attached: raw keys in, bytes out.
//!
//! Reading and writing have a thread each, so that neither a terminal that hangs nor a daemon that
//! does not listen can keep the loop from noticing a key, a signal or the end.

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::BorrowedFd;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read, write};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use tokio::sync::{mpsc, oneshot};

use super::restore;

/// A paste arrives in pieces of what the kernel buffers, 4 KiB; more at once only where it can.
const READ_BYTES: usize = 64 << 10;

/// How long the last words may take to be drawn before we leave without them.
const DRAWN_WITHIN: Duration = Duration::from_secs(2);

pub(super) struct Terminal {
    /// What is typed; ends when the terminal has gone.
    pub(super) keyboard: mpsc::Receiver<Vec<u8>>,
    /// What is to be drawn; closed when the terminal has gone.
    pub(super) screen: mpsc::Sender<Vec<u8>>,
    drawn: oneshot::Receiver<()>,
    reader: Reader,
    guard: Guard,
}

/// What waits to be drawn, in pieces that a slow terminal takes in a blink: whoever leaves in the middle
/// waits for one of them and no more.
#[derive(Debug, Default)]
pub(super) struct Undrawn {
    pieces: VecDeque<Vec<u8>>,
    bytes: usize,
}

const PIECE_BYTES: usize = 32 << 10;

impl Undrawn {
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        match self.pieces.back_mut() {
            Some(last) if last.len() + bytes.len() <= PIECE_BYTES => last.extend_from_slice(bytes),
            _ => self.pieces.extend(bytes.chunks(PIECE_BYTES).map(<[u8]>::to_vec)),
        }
    }

    pub(super) fn pop(&mut self) -> Option<Vec<u8>> {
        let piece = self.pieces.pop_front()?;
        self.bytes -= piece.len();
        Some(piece)
    }
}

/// How the terminal was when we left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Clean,
    /// It takes no more output: one more word would hold us for ever.
    Hanging,
}

/// The thread that reads, and the pipe whose end wakes it.
struct Reader {
    thread: JoinHandle<()>,
    stop: PipeWriter,
}

/// Gives the terminal back when nobody did so in good order.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        restore::give_back();
    }
}

impl Terminal {
    /// Takes the terminal: raw from here on, given back by [`Terminal::leave`] or by dropping it.
    pub(super) fn take() -> io::Result<Terminal> {
        let before = tcgetattr(stdin())?;
        let (woken, stop) = io::pipe()?;
        let (typed, keyboard) = mpsc::channel(8);
        // One message waits while one is being written: what is older than that is not on its way yet.
        let (screen, to_draw) = mpsc::channel(1);
        let (all_drawn, drawn) = oneshot::channel();
        restore::arm(before);
        let guard = Guard;
        make_raw()?;
        let thread = std::thread::spawn(move || read_keyboard(&woken, &typed));
        std::thread::spawn(move || draw(to_draw, all_drawn));
        Ok(Terminal { keyboard, screen, drawn, reader: Reader { thread, stop }, guard })
    }

    /// After a stop and a continue the shell's settings are in force.
    pub(super) fn retake(&self) -> io::Result<()> {
        make_raw()
    }

    /// Draws what is left, then gives the terminal back.
    pub(super) async fn leave(self, mut last: Undrawn) -> Left {
        let Terminal { mut keyboard, screen, drawn, reader, guard } = self;
        keyboard.close();
        drop(reader.stop);
        // Its panic has been reported by then.
        reader.thread.join().ok();
        last.push(restore::LEAVE.as_bytes());
        let drawing = async move {
            while let Some(piece) = last.pop() {
                // Fails with the drawing itself, which is then over.
                screen.send(piece).await.ok();
            }
            drop(screen);
            drawn.await.ok();
        };
        // A terminal that hangs is left as it is; its settings are not.
        let left = match tokio::time::timeout(DRAWN_WITHIN, drawing).await {
            Ok(()) => Left::Clean,
            Err(_) => Left::Hanging,
        };
        restore::give_back_settings();
        drop(guard);
        left
    }
}

fn make_raw() -> io::Result<()> {
    let mut settings = tcgetattr(stdin())?;
    settings.make_raw();
    Ok(tcsetattr(stdin(), OptionalActions::Now, &settings)?)
}

fn read_keyboard(woken: &PipeReader, typed: &mpsc::Sender<Vec<u8>>) {
    let mut buffer = vec![0; READ_BYTES];
    while wait_for_key(woken) {
        match read(stdin(), &mut buffer) {
            Ok(0) => return,
            Ok(len) if typed.blocking_send(buffer[..len].to_vec()).is_err() => return,
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return,
        }
    }
}

/// False when it is time to stop.
fn wait_for_key(woken: &PipeReader) -> bool {
    loop {
        let mut ends = [PollFd::new(woken, PollFlags::IN), PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
        match poll(&mut ends, None) {
            Ok(_) if !ends[0].revents().is_empty() => return false,
            Ok(_) if !ends[1].revents().is_empty() => return true,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

fn draw(mut to_draw: mpsc::Receiver<Vec<u8>>, all_drawn: oneshot::Sender<()>) {
    while let Some(bytes) = to_draw.blocking_recv() {
        if write_all(stdout(), &bytes).is_err() {
            break;
        }
    }
    // Nobody waits any more when time ran out.
    all_drawn.send(()).ok();
}

fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match write(to, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            // Someone else made the terminal non-blocking.
            Err(Errno::AGAIN) => wait_for_room(to)?,
            Err(err) => return Err(err),
        }
    }
    Ok(())
}

fn wait_for_room(to: BorrowedFd<'_>) -> Result<(), Errno> {
    match poll(&mut [PollFd::from_borrowed_fd(to, PollFlags::OUT)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(err) => Err(err),
    }
}

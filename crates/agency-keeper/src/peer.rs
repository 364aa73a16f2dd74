//! One connection: its buffers in both directions, its role, and how far it has read the journal.
//!
//! A peer that does not read costs one bounded buffer; it gets missed records later from the journal's files.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use agency_api::keeper::{Frame, FrameError, FromKeeper, MAX_FRAME_BYTES};
use agency_journal::{Body, Chunk, Encoded, GapCause, Record, Tail, records};
use rustix::io::{Errno, IoSlice};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// Above this, the keeper reads nothing more from the peer and buffers no live records for it.
const MAX_OUTGOING_BYTES: usize = 256 << 10;
/// How much to read from the journal's files at once.
const PORTION_BYTES: usize = 64 << 10;
/// How much to read from one peer before the others are served.
const READ_BYTES: usize = 64 << 10;
/// Only a daemon sends checkpoints; no other peer has a reason to send long frames.
const MAX_GUEST_FRAME_BYTES: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Has not sent hello yet.
    Stranger,
    /// May probe, follow and leave hook notes.
    Guest,
    Daemon {
        epoch: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionState {
    Open,
    /// Closes after everything pending is sent.
    Closing,
    Closed,
}

pub(crate) struct Peer {
    pub(crate) id: u64,
    pub(crate) role: Role,
    /// The pid of the other end, if the kernel reports it.
    pub(crate) pid: Option<i32>,
    stream: UnixStream,
    state: ConnectionState,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    sent: usize,
    /// New messages may wait so that several go out in one write.
    may_wait: bool,
    /// When held-back messages are sent at the latest.
    send_by: Option<Instant>,
    /// A descriptor to send along with the first bytes.
    lifeline: Option<OwnedFd>,
    follow: Option<Follow>,
    /// The peer requested the stop and waits for the end.
    pub(crate) awaits_end: bool,
    /// The message to send after the last record.
    end_message: Option<Vec<u8>>,
}

struct Follow {
    next_seq: u64,
    /// Only set while the peer lags behind.
    tail: Option<Tail>,
}

impl Peer {
    pub(crate) fn new(id: u64, stream: UnixStream) -> io::Result<Peer> {
        stream.set_nonblocking(true)?;
        Ok(Peer {
            id,
            role: Role::Stranger,
            pid: agency_api::socket::peer_pid(&stream),
            stream,
            state: ConnectionState::Open,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            sent: 0,
            may_wait: false,
            send_by: None,
            lifeline: None,
            follow: None,
            awaits_end: false,
            end_message: None,
        })
    }

    /// Closed, and all complete frames that it sent are served.
    pub(crate) fn is_over(&self) -> bool {
        self.state == ConnectionState::Closed && !self.has_frame()
    }

    /// Whether frames are left from the last round, and there is space for their replies.
    pub(crate) fn has_pending_frames(&self) -> bool {
        self.has_frame() && (self.state == ConnectionState::Closed || self.backlog() < MAX_OUTGOING_BYTES)
    }

    fn has_frame(&self) -> bool {
        let len = self.incoming.first_chunk::<4>().map(|header| u32::from_le_bytes(*header) as usize);
        // A frame that is too long counts as well, because serving it closes the connection.
        len.is_some_and(|len| self.incoming.len() >= 4 + len || len > self.max_frame_bytes())
    }

    fn max_frame_bytes(&self) -> usize {
        match self.role {
            Role::Stranger | Role::Guest => MAX_GUEST_FRAME_BYTES,
            Role::Daemon { .. } => MAX_FRAME_BYTES,
        }
    }

    pub(crate) fn is_daemon(&self) -> bool {
        matches!(self.role, Role::Daemon { .. })
    }

    pub(crate) fn close(&mut self) {
        self.state = ConnectionState::Closed;
    }

    /// Closes the connection and drops everything that it still wanted.
    pub(crate) fn cut(&mut self) {
        self.close();
        self.incoming = Vec::new();
    }

    /// Closes the connection once everything pending is sent.
    pub(crate) fn close_after_sending(&mut self) {
        if self.state == ConnectionState::Open {
            self.state = ConnectionState::Closing;
        }
        self.incoming = Vec::new();
        self.send_buffered();
    }

    pub(crate) fn wants_to_read(&self) -> bool {
        self.state == ConnectionState::Open && self.backlog() < MAX_OUTGOING_BYTES && !self.has_frame()
    }

    pub(crate) fn wants_to_write(&self, journal_next: u64) -> bool {
        let has_messages = self.backlog() > 0 && self.send_by.is_none();
        self.state != ConnectionState::Closed && (has_messages || self.lags(journal_next))
    }

    fn backlog(&self) -> usize {
        self.outgoing.len() - self.sent
    }

    /// Reads from the socket if all earlier frames are served. Closes at the end of the stream.
    pub(crate) fn receive(&mut self) {
        if self.has_frame() {
            return;
        }
        let wanted = self.incoming.len() + READ_BYTES;
        self.incoming.reserve(READ_BYTES);
        while self.state == ConnectionState::Open && self.incoming.len() < wanted {
            match rustix::io::read(&self.stream, rustix::buffer::spare_capacity(&mut self.incoming)) {
                Ok(0) => self.close(),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.close(),
            }
        }
    }

    /// The next complete frame, or what is wrong with it.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if self.state == ConnectionState::Open && self.backlog() >= MAX_OUTGOING_BYTES {
            return Ok(None);
        }
        if let Some(header) = self.incoming.first_chunk::<4>() {
            let len = u32::from_le_bytes(*header) as usize;
            if len > self.max_frame_bytes() {
                return Err(FrameError::Length(len));
            }
        }
        let Some((frame, used)) = Frame::decode(&self.incoming)? else { return Ok(None) };
        self.incoming.drain(..used);
        if self.incoming.is_empty() && self.incoming.capacity() > 2 * READ_BYTES {
            // Checkpoints are large and rare, so free their memory.
            self.incoming = Vec::new();
        }
        Ok(Some(frame))
    }

    /// Sends a duplicate of the terminal along with the welcome.
    pub(crate) fn attach_lifeline(&mut self, lifeline: OwnedFd) {
        self.lifeline = Some(lifeline);
    }

    pub(crate) fn send(&mut self, message: &FromKeeper) {
        match Frame::control(message) {
            Ok(frame) => frame.encode_into(&mut self.outgoing),
            // Our own messages always serialise; if one does not, a closed peer is better than one that missed it.
            Err(_) => return self.close(),
        }
        if !self.may_wait {
            self.send_buffered();
        }
    }

    /// From here on messages may wait, unless other messages are already pending.
    pub(crate) fn delay_messages(&mut self) {
        self.may_wait = self.backlog() == 0 || self.send_by.is_some();
    }

    /// Held-back messages go out with the next message, or at `when`.
    pub(crate) fn send_by(&mut self, when: Instant) {
        if std::mem::take(&mut self.may_wait) && self.backlog() > 0 {
            self.send_by = self.send_by.or(Some(when));
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.send_by
    }

    pub(crate) fn tick(&mut self, now: Instant) {
        if self.send_by.is_some_and(|when| when <= now) {
            self.send_buffered();
        }
    }

    /// Frees memory that an idle connection does not need.
    pub(crate) fn release_memory(&mut self) {
        self.incoming.shrink_to_fit();
    }

    /// Sends `message` after the last record. A peer that neither follows nor requested the stop has not seen
    /// the exit either; it gets the message when it starts to follow.
    pub(crate) fn send_at_end(&mut self, message: &FromKeeper, journal_next: u64) {
        if self.lags(journal_next) {
            self.end_message = Frame::control(message).ok().map(|frame| frame.encoded());
        } else if self.follow.is_some() || self.awaits_end {
            self.send(message);
        }
    }

    pub(crate) fn follow(&mut self, from_seq: u64) {
        self.follow = Some(Follow { next_seq: from_seq.max(1), tail: None });
    }

    fn lags(&self, journal_next: u64) -> bool {
        self.follow.as_ref().is_some_and(|follow| follow.next_seq < journal_next)
    }

    /// Passes on a record that was just written.
    pub(crate) fn pass_on(&mut self, record: Encoded<'_>) {
        let has_room = self.backlog() < MAX_OUTGOING_BYTES;
        let Some(follow) = self.follow.as_mut() else { return };
        if has_room && follow.tail.is_none() && follow.next_seq == record.header.seq {
            follow.next_seq += 1;
            self.send_record(record.bytes);
        }
    }

    /// Passes on a record that is in no file. Useful only for a peer that has seen everything before it.
    pub(crate) fn pass_on_unwritten(&mut self, encoded: &[u8], journal_next: u64) {
        if self.follow.is_some() && !self.lags(journal_next) && self.backlog() < MAX_OUTGOING_BYTES {
            self.send_record(encoded);
        }
    }

    fn send_record(&mut self, encoded: &[u8]) {
        let header = record_frame_header(encoded);
        let mut sent = 0;
        // While the peer keeps up, send directly from the journal's buffer without a copy.
        if self.backlog() == 0 && self.state == ConnectionState::Open && !self.may_wait {
            sent = self.send_parts(&[IoSlice::new(&header), IoSlice::new(encoded)]);
        }
        self.outgoing.extend_from_slice(header.get(sent..).unwrap_or_default());
        self.outgoing.extend_from_slice(encoded.get(sent.saturating_sub(header.len())..).unwrap_or_default());
        if self.send_by.is_some() && !self.may_wait {
            self.send_buffered();
        }
    }

    /// Sends what is pending, then the next portion of the journal if the peer lags.
    pub(crate) fn send_pending(&mut self, journal_dir: &Path, journal_next: u64) {
        self.send_buffered();
        if self.state == ConnectionState::Open && self.lags(journal_next) && self.backlog() < PORTION_BYTES {
            self.catch_up(journal_dir, journal_next);
            self.send_buffered();
        }
    }

    fn catch_up(&mut self, journal_dir: &Path, journal_next: u64) {
        let Some(mut follow) = self.follow.take() else { return };
        match follow.next_portion(journal_dir) {
            Ok(Portion::Records(bytes)) => {
                for record in records(&bytes) {
                    self.outgoing.extend_from_slice(&record_frame_header(record.bytes));
                    self.outgoing.extend_from_slice(record.bytes);
                }
            }
            Ok(Portion::Sealed { from_seq, until_seq }) => {
                self.send(&FromKeeper::Sealed { from_seq, until_seq })
            }
            // The files no longer hold what was written: another process deleted them.
            Ok(Portion::Nothing) | Err(_) => self.skip_to(&mut follow, journal_next),
        }
        if follow.next_seq >= journal_next {
            follow.tail = None;
        }
        self.follow = Some(follow);
        self.send_end_message(journal_next);
    }

    fn skip_to(&mut self, follow: &mut Follow, journal_next: u64) {
        let body = Body::Gap { output_bytes: 0, cause: GapCause::Corrupt };
        let mut encoded = Vec::new();
        Record { seq: follow.next_seq, output_offset: 0, at_ns: 0, body }.encode_into(&mut encoded);
        self.send_record(&encoded);
        *follow = Follow { next_seq: journal_next, tail: None };
    }

    fn send_end_message(&mut self, journal_next: u64) {
        if !self.lags(journal_next)
            && let Some(message) = self.end_message.take()
        {
            self.outgoing.extend_from_slice(&message);
        }
    }

    fn send_buffered(&mut self) {
        self.send_by = None;
        while self.state != ConnectionState::Closed && self.backlog() > 0 {
            let outgoing = std::mem::take(&mut self.outgoing);
            let count = self.send_parts(&[IoSlice::new(outgoing.get(self.sent..).unwrap_or_default())]);
            self.outgoing = outgoing;
            self.sent += count;
            if count == 0 {
                break;
            }
        }
        if self.backlog() == 0 {
            (self.outgoing, self.sent) = (Vec::new(), 0);
            if self.state == ConnectionState::Closing {
                self.close();
            }
        } else if self.sent > MAX_OUTGOING_BYTES {
            self.outgoing.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// How many bytes the socket accepted; 0 if it is full or broken.
    fn send_parts(&mut self, parts: &[IoSlice<'_>]) -> usize {
        let mut room = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut room);
        let lifeline = self.lifeline.as_ref().map(|fd| [fd.as_fd()]);
        if let Some(fds) = &lifeline {
            beside.push(SendAncillaryMessage::ScmRights(fds));
        }
        let sent = rustix::io::retry_on_intr(|| sendmsg(&self.stream, parts, &mut beside, SEND_FLAGS));
        match sent {
            Ok(count) => {
                self.lifeline = None;
                count
            }
            Err(Errno::AGAIN) => 0,
            Err(_) => {
                self.close();
                0
            }
        }
    }
}

#[cfg(not(target_os = "macos"))]
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);
#[cfg(target_os = "macos")]
const SEND_FLAGS: SendFlags = SendFlags::DONTWAIT;

enum Portion {
    Records(Vec<u8>),
    Sealed { from_seq: u64, until_seq: u64 },
    Nothing,
}

impl Follow {
    fn next_portion(&mut self, journal_dir: &Path) -> io::Result<Portion> {
        let tail = match &mut self.tail {
            Some(tail) => tail,
            none => none.insert(Tail::open(journal_dir, self.next_seq)?),
        };
        let mut bytes = Vec::new();
        let chunk = tail.read(PORTION_BYTES, &mut bytes)?;
        self.next_seq = tail.next_seq();
        Ok(match chunk {
            Chunk::Records => Portion::Records(bytes),
            Chunk::CaughtUp => Portion::Nothing,
            Chunk::Sealed { from_seq, until_seq } => Portion::Sealed { from_seq, until_seq },
        })
    }
}

/// The header of a record frame: the length of the rest, then the frame kind.
fn record_frame_header(encoded: &[u8]) -> [u8; 5] {
    let len = (encoded.len() as u32 + 1).to_le_bytes();
    [len[0], len[1], len[2], len[3], agency_api::keeper::RECORD]
}

impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_frame_is_what_the_api_says_it_is() {
        let record = vec![7; 300];
        let mut ours = record_frame_header(&record).to_vec();
        ours.extend_from_slice(&record);
        assert_eq!(ours, Frame::Record(record).encoded());
    }
}

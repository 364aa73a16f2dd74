//! One connection: its bytes in both directions, how far it has read the journal, what it may ask for.
//!
//! A peer that reads nothing costs a bounded buffer; what it misses waits for it in the journal's files.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use agency_api::keeper::{Frame, FrameError, FromKeeper, MAX_FRAME_BYTES};
use agency_journal::{Body, Chunk, Encoded, GapCause, Record, Tail, records};
use rustix::io::{Errno, IoSlice};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// Above this nothing more is read from the peer, and live records no longer wait for it in memory.
const MAX_OUTGOING_BYTES: usize = 256 << 10;
/// One portion from the journal's files.
const PORTION_BYTES: usize = 64 << 10;
/// How much of one peer is read before the others have their turn.
const READ_BYTES: usize = 64 << 10;
/// Only a daemon sends checkpoints; nobody else has anything long to say.
const MAX_GUEST_FRAME_BYTES: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Has not said hello.
    Stranger,
    /// May look and leave notes.
    Guest,
    Daemon {
        epoch: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Open,
    /// Whatever is still to be sent goes out, then it is closed.
    Closing,
    Closed,
}

pub(crate) struct Peer {
    pub(crate) id: u64,
    pub(crate) role: Role,
    /// Who is at the other end, where the kernel says.
    pub(crate) pid: Option<i32>,
    stream: UnixStream,
    line: Line,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    sent: usize,
    /// What it is told now may wait for company.
    holds_back: bool,
    /// When what was held back goes out, company or not.
    send_by: Option<Instant>,
    /// Goes with the very first bytes.
    lifeline: Option<OwnedFd>,
    follow: Option<Follow>,
    /// It asked for the end and waits for word of it.
    pub(crate) awaits_end: bool,
    /// What it is told once it has seen every record.
    last_word: Option<Vec<u8>>,
}

struct Follow {
    next_seq: u64,
    /// Only while it lags.
    tail: Option<Tail>,
}

impl Peer {
    pub(crate) fn new(id: u64, stream: UnixStream) -> io::Result<Peer> {
        stream.set_nonblocking(true)?;
        Ok(Peer {
            id,
            role: Role::Stranger,
            pid: peer_pid(&stream),
            stream,
            line: Line::Open,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            sent: 0,
            holds_back: false,
            send_by: None,
            lifeline: None,
            follow: None,
            awaits_end: false,
            last_word: None,
        })
    }

    /// Closed, and nothing that it said before is left to be done.
    pub(crate) fn is_over(&self) -> bool {
        self.line == Line::Closed && !self.has_frame()
    }

    /// It has said more than was done in one turn, and hears the answers.
    pub(crate) fn waits_for_its_turn(&self) -> bool {
        self.has_frame() && (self.line == Line::Closed || self.backlog() < MAX_OUTGOING_BYTES)
    }

    fn has_frame(&self) -> bool {
        let len = self.incoming.first_chunk::<4>().map(|header| u32::from_le_bytes(*header) as usize);
        // One that is too long is to be looked at as well: it is what closes the connection.
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
        self.line = Line::Closed;
    }

    /// Closes, and forgets what it still wanted.
    pub(crate) fn cut(&mut self) {
        self.close();
        self.incoming = Vec::new();
    }

    /// Closes once everything is said.
    pub(crate) fn close_after_sending(&mut self) {
        if self.line == Line::Open {
            self.line = Line::Closing;
        }
        self.incoming = Vec::new();
        self.send_more();
    }

    pub(crate) fn wants_to_hear(&self) -> bool {
        self.line == Line::Open && self.backlog() < MAX_OUTGOING_BYTES && !self.has_frame()
    }

    pub(crate) fn wants_to_say(&self, journal_next: u64) -> bool {
        let has_words = self.backlog() > 0 && self.send_by.is_none();
        self.line != Line::Closed && (has_words || self.lags(journal_next))
    }

    fn backlog(&self) -> usize {
        self.outgoing.len() - self.sent
    }

    /// Reads what came, if all that came before has been done. Closes at the end of the stream.
    pub(crate) fn hear(&mut self) {
        if self.has_frame() {
            return;
        }
        let wanted = self.incoming.len() + READ_BYTES;
        self.incoming.reserve(READ_BYTES);
        while self.line == Line::Open && self.incoming.len() < wanted {
            match rustix::io::read(&self.stream, rustix::buffer::spare_capacity(&mut self.incoming)) {
                Ok(0) => self.close(),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.close(),
            }
        }
    }

    /// The next whole frame, or what is wrong with it.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if self.line == Line::Open && self.backlog() >= MAX_OUTGOING_BYTES {
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
            // Checkpoints are large and rare: their room is given back.
            self.incoming = Vec::new();
        }
        Ok(Some(frame))
    }

    /// A duplicate of the terminal goes with the welcome.
    pub(crate) fn attach(&mut self, lifeline: OwnedFd) {
        self.lifeline = Some(lifeline);
    }

    pub(crate) fn tell(&mut self, message: &FromKeeper) {
        match Frame::control(message) {
            Ok(frame) => frame.encode_into(&mut self.outgoing),
            // Our own messages always are JSON; a peer that misses one is better off without us.
            Err(_) => return self.close(),
        }
        if !self.holds_back {
            self.send_more();
        }
    }

    /// From here on it may wait for what it is told, unless more waits for it already.
    pub(crate) fn hold_back(&mut self) {
        self.holds_back = self.backlog() == 0 || self.send_by.is_some();
    }

    /// What was held back goes out with the next word, or then.
    pub(crate) fn send_by(&mut self, when: Instant) {
        if std::mem::take(&mut self.holds_back) && self.backlog() > 0 {
            self.send_by = self.send_by.or(Some(when));
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.send_by
    }

    pub(crate) fn tick(&mut self, now: Instant) {
        if self.send_by.is_some_and(|when| when <= now) {
            self.send_more();
        }
    }

    /// Gives back the room that it does not need while it is quiet.
    pub(crate) fn relax(&mut self) {
        self.incoming.shrink_to_fit();
    }

    /// Told when the last record has been sent. Who neither follows nor asked for the end has not seen the
    /// exit either, and hears of it when it follows.
    pub(crate) fn tell_at_the_end(&mut self, message: &FromKeeper, journal_next: u64) {
        if self.lags(journal_next) {
            self.last_word = Frame::control(message).ok().map(|frame| frame.encoded());
        } else if self.follow.is_some() || self.awaits_end {
            self.tell(message);
        }
    }

    pub(crate) fn follow(&mut self, from_seq: u64) {
        self.follow = Some(Follow { next_seq: from_seq.max(1), tail: None });
    }

    fn lags(&self, journal_next: u64) -> bool {
        self.follow.as_ref().is_some_and(|follow| follow.next_seq < journal_next)
    }

    /// A record that was written just now.
    pub(crate) fn pass_on(&mut self, record: Encoded<'_>) {
        let has_room = self.backlog() < MAX_OUTGOING_BYTES;
        let Some(follow) = self.follow.as_mut() else { return };
        if has_room && follow.tail.is_none() && follow.next_seq == record.header.seq {
            follow.next_seq += 1;
            self.send_record(record.bytes);
        }
    }

    /// A record that is in no file. Only of use to who has seen all before it.
    pub(crate) fn pass_on_unwritten(&mut self, encoded: &[u8], journal_next: u64) {
        if self.follow.is_some() && !self.lags(journal_next) && self.backlog() < MAX_OUTGOING_BYTES {
            self.send_record(encoded);
        }
    }

    fn send_record(&mut self, encoded: &[u8]) {
        let header = record_frame_header(encoded);
        let mut sent = 0;
        // Straight from the journal's buffer while the peer keeps up: no copy.
        if self.backlog() == 0 && self.line == Line::Open && !self.holds_back {
            sent = self.send_parts(&[IoSlice::new(&header), IoSlice::new(encoded)]);
        }
        self.outgoing.extend_from_slice(header.get(sent..).unwrap_or_default());
        self.outgoing.extend_from_slice(encoded.get(sent.saturating_sub(header.len())..).unwrap_or_default());
        if self.send_by.is_some() && !self.holds_back {
            self.send_more();
        }
    }

    /// Sends what waits, and after that the next portion of what it has not seen.
    pub(crate) fn speak(&mut self, journal: &Path, journal_next: u64) {
        self.send_more();
        if self.line == Line::Open && self.lags(journal_next) && self.backlog() < PORTION_BYTES {
            self.catch_up(journal, journal_next);
            self.send_more();
        }
    }

    fn catch_up(&mut self, journal: &Path, journal_next: u64) {
        let Some(mut follow) = self.follow.take() else { return };
        match follow.next_portion(journal) {
            Ok(Portion::Records(bytes)) => {
                for record in records(&bytes) {
                    self.outgoing.extend_from_slice(&record_frame_header(record.bytes));
                    self.outgoing.extend_from_slice(record.bytes);
                }
            }
            Ok(Portion::Sealed { from_seq, until_seq }) => {
                self.tell(&FromKeeper::Sealed { from_seq, until_seq })
            }
            // The files do not hold what was written: somebody took them away.
            Ok(Portion::Nothing) | Err(_) => self.skip_to(&mut follow, journal_next),
        }
        if follow.next_seq >= journal_next {
            follow.tail = None;
        }
        self.follow = Some(follow);
        self.say_last_word(journal_next);
    }

    fn skip_to(&mut self, follow: &mut Follow, journal_next: u64) {
        let body = Body::Gap { output_bytes: 0, cause: GapCause::Corrupt };
        let mut encoded = Vec::new();
        Record { seq: follow.next_seq, output_offset: 0, at_ns: 0, body }.encode_into(&mut encoded);
        self.send_record(&encoded);
        *follow = Follow { next_seq: journal_next, tail: None };
    }

    fn say_last_word(&mut self, journal_next: u64) {
        if !self.lags(journal_next)
            && let Some(word) = self.last_word.take()
        {
            self.outgoing.extend_from_slice(&word);
        }
    }

    fn send_more(&mut self) {
        self.send_by = None;
        while self.line != Line::Closed && self.backlog() > 0 {
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
            if self.line == Line::Closing {
                self.close();
            }
        } else if self.sent > MAX_OUTGOING_BYTES {
            self.outgoing.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// How many bytes the socket took; 0 when it is full or broken.
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
    fn next_portion(&mut self, journal: &Path) -> io::Result<Portion> {
        let tail = match &mut self.tail {
            Some(tail) => tail,
            none => none.insert(Tail::open(journal, self.next_seq)?),
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

/// A record frame without its copy: length of what follows it, and the kind.
fn record_frame_header(encoded: &[u8]) -> [u8; 5] {
    let len = (encoded.len() as u32 + 1).to_le_bytes();
    [len[0], len[1], len[2], len[3], agency_api::keeper::RECORD]
}

impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(target_os = "linux")]
fn peer_pid(stream: &UnixStream) -> Option<i32> {
    rustix::net::sockopt::socket_peercred(stream).ok().map(|peer| peer.pid.as_raw_nonzero().get())
}

#[cfg(not(target_os = "linux"))]
fn peer_pid(_stream: &UnixStream) -> Option<i32> {
    None
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

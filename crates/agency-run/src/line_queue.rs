//! Lines on their way to an agent's input: one after the other, in pieces that the keeper takes.

use std::collections::VecDeque;
use std::time::Duration;

use agency_api::method::Receipt;
use agency_api::{Failure, chat};
use agency_store::clock;
use tokio::sync::oneshot;

/// A keeper holds 1 MiB that the agent has not read; this leaves space for more.
const PIECE_BYTES: usize = 256 << 10;

/// The purpose of a line, and the caller that waits until it is written.
#[derive(Debug)]
pub enum LineSource {
    /// The follower itself: it does not wait.
    Follower,
    /// The protocol requires the line.
    Owed {
        key: String,
    },
    Message(QueuedMessage),
    Answer {
        id: String,
        answer: oneshot::Sender<Result<chat::Approval, Failure>>,
    },
    /// The agent's answer to the request settles it.
    Setting {
        request: String,
    },
    Interrupt {
        answer: oneshot::Sender<Result<(), Failure>>,
    },
}

#[derive(Debug)]
pub struct QueuedMessage {
    pub receipt: oneshot::Sender<Result<Receipt, Failure>>,
    pub bytes: u64,
    /// The agent was working when the caller sent the message.
    pub was_working: bool,
}

/// A line that the agent's input has taken whole.
#[derive(Debug)]
pub struct WrittenLine<S> {
    pub source: S,
    /// When the last piece was sent to the keeper.
    pub sent_at: Duration,
}

/// Lines with their sources, oldest first.
#[derive(Debug)]
pub struct LineQueue<S> {
    waiting: VecDeque<(Vec<u8>, S)>,
    in_flight: Option<Piece>,
    /// Bytes of the first line that the keeper has taken.
    taken: usize,
    last_id: u64,
}

/// A part of the first line that the keeper has not taken yet.
#[derive(Debug)]
struct Piece {
    id: u64,
    /// Where it ends in the line.
    end: usize,
    sent_at: Duration,
}

impl<S> Default for LineQueue<S> {
    fn default() -> Self {
        LineQueue { waiting: VecDeque::new(), in_flight: None, taken: 0, last_id: 0 }
    }
}

impl<S> LineQueue<S> {
    pub fn push(&mut self, line: Vec<u8>, source: S) {
        self.waiting.push_back((line, source));
    }

    /// The next piece and its id, unless one is on its way.
    pub fn next_piece(&mut self) -> Option<(u64, Vec<u8>)> {
        if self.in_flight.is_some() {
            return None;
        }
        let (line, _) = self.waiting.front()?;
        let end = line.len().min(self.taken + PIECE_BYTES);
        let piece = line[self.taken..end].to_vec();
        self.last_id += 1;
        self.in_flight = Some(Piece { id: self.last_id, end, sent_at: clock::now() });
        Some((self.last_id, piece))
    }

    /// The keeper has taken a piece. Returns its line if that was the last piece.
    pub fn on_taken(&mut self, id: u64) -> Option<WrittenLine<S>> {
        let Piece { end, sent_at, .. } = self.in_flight.take_if(|piece| piece.id == id)?;
        self.taken = end;
        let (line, _) = self.waiting.front()?;
        if end < line.len() {
            return None;
        }
        self.taken = 0;
        self.waiting.pop_front().map(|(_, source)| WrittenLine { source, sent_at })
    }

    /// The keeper has refused a piece. Removes its line and returns the source.
    pub fn on_refused(&mut self, id: u64) -> Option<S> {
        self.in_flight.take_if(|piece| piece.id == id)?;
        self.taken = 0;
        self.waiting.pop_front().map(|(_, source)| source)
    }

    /// Removes all lines and returns their sources.
    pub fn give_up(&mut self) -> Vec<S> {
        (self.in_flight, self.taken) = (None, 0);
        std::mem::take(&mut self.waiting).into_iter().map(|(_, source)| source).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_goes_in_pieces_and_nothing_comes_between() {
        let mut queue = LineQueue::default();
        let long = vec![b'x'; 2 * PIECE_BYTES + 1];
        queue.push(long.clone(), LineSource::Follower);
        queue.push(b"next\n".to_vec(), LineSource::Follower);
        let mut written = Vec::new();
        for whole in [false, false, true, true] {
            let (id, piece) = queue.next_piece().expect("a piece");
            assert!(queue.next_piece().is_none(), "one at a time");
            written.extend(piece);
            assert!(queue.on_taken(id + 7).is_none(), "another's");
            assert_eq!(queue.on_taken(id).is_some(), whole);
        }
        assert_eq!(written, [&long[..], b"next\n"].concat());
        assert!(queue.next_piece().is_none());
    }

    #[test]
    fn a_line_that_is_refused_makes_way_for_the_next() {
        let mut queue = LineQueue::default();
        queue.push(vec![b'x'; PIECE_BYTES + 1], LineSource::Follower);
        queue.push(b"next\n".to_vec(), LineSource::Follower);
        let (id, _) = queue.next_piece().expect("a piece");
        assert!(queue.on_refused(id).is_some());
        assert_eq!(queue.next_piece().map(|(_, piece)| piece), Some(b"next\n".to_vec()));
        assert_eq!(queue.give_up().len(), 1);
    }
}

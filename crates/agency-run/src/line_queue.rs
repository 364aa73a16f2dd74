//! Lines on their way to an agent's input: one after the other, in pieces that the keeper takes.

use std::collections::VecDeque;
use std::time::Duration;

use agency_api::method::Receipt;
use agency_api::{Failure, chat};
use agency_store::clock;
use tokio::sync::oneshot;

/// A keeper holds 1 MiB that the agent has not read; this leaves room.
const PIECE: usize = 256 << 10;

/// Who wants to know that a line was written.
#[derive(Debug)]
pub enum Then {
    Nothing,
    /// The protocol asks for it.
    Owed {
        key: String,
    },
    Message {
        receipt: oneshot::Sender<Result<Receipt, Failure>>,
        bytes: u64,
        /// The agent was at work when it was sent.
        was_working: bool,
    },
    Answer {
        id: String,
        answer: oneshot::Sender<Result<chat::Approval, Failure>>,
    },
    /// Its answer comes from the agent.
    Setting {
        request: String,
    },
    Interrupt {
        answer: oneshot::Sender<Result<(), Failure>>,
    },
}

/// A line that the agent's input has taken whole.
#[derive(Debug)]
pub struct Written<T> {
    pub then: T,
    /// When its last piece was sent off.
    pub since: Duration,
}

/// With each line, who wants to know what became of it.
#[derive(Debug)]
pub struct LineQueue<T> {
    waiting: VecDeque<(Vec<u8>, T)>,
    /// The piece that is with the keeper, and how much of the first line is then done.
    in_flight: Option<(u64, usize, Duration)>,
    done: usize,
    last_id: u64,
}

impl<T> Default for LineQueue<T> {
    fn default() -> Self {
        LineQueue { waiting: VecDeque::new(), in_flight: None, done: 0, last_id: 0 }
    }
}

impl<T> LineQueue<T> {
    pub fn push(&mut self, line: Vec<u8>, then: T) {
        self.waiting.push_back((line, then));
    }

    /// The next piece, if none is on its way.
    pub fn next(&mut self) -> Option<(u64, Vec<u8>)> {
        if self.in_flight.is_some() {
            return None;
        }
        let (line, _) = self.waiting.front()?;
        let end = line.len().min(self.done + PIECE);
        let piece = line[self.done..end].to_vec();
        self.last_id += 1;
        self.in_flight = Some((self.last_id, end, clock::now()));
        Some((self.last_id, piece))
    }

    /// A piece was taken; returns its line if that was the last.
    pub fn taken(&mut self, id: u64) -> Option<Written<T>> {
        let (_, end, since) = self.in_flight.take_if(|(in_flight, ..)| *in_flight == id)?;
        self.done = end;
        let (line, _) = self.waiting.front()?;
        if end < line.len() {
            return None;
        }
        self.done = 0;
        self.waiting.pop_front().map(|(_, then)| Written { then, since })
    }

    /// A piece was not taken: its line is given up.
    pub fn refused(&mut self, id: u64) -> Option<T> {
        self.in_flight.take_if(|(in_flight, ..)| *in_flight == id)?;
        self.done = 0;
        self.waiting.pop_front().map(|(_, then)| then)
    }

    pub fn give_up(&mut self) -> Vec<T> {
        (self.in_flight, self.done) = (None, 0);
        std::mem::take(&mut self.waiting).into_iter().map(|(_, then)| then).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_goes_in_pieces_and_nothing_comes_between() {
        let mut queue = LineQueue::default();
        let long = vec![b'x'; 2 * PIECE + 1];
        queue.push(long.clone(), Then::Nothing);
        queue.push(b"next\n".to_vec(), Then::Nothing);
        let mut written = Vec::new();
        for whole in [false, false, true, true] {
            let (id, piece) = queue.next().expect("a piece");
            assert!(queue.next().is_none(), "one at a time");
            written.extend(piece);
            assert!(queue.taken(id + 7).is_none(), "another's");
            assert_eq!(queue.taken(id).is_some(), whole);
        }
        assert_eq!(written, [&long[..], b"next\n"].concat());
        assert!(queue.next().is_none());
    }

    #[test]
    fn a_line_that_is_refused_makes_way_for_the_next() {
        let mut queue = LineQueue::default();
        queue.push(vec![b'x'; PIECE + 1], Then::Nothing);
        queue.push(b"next\n".to_vec(), Then::Nothing);
        let (id, _) = queue.next().expect("a piece");
        assert!(queue.refused(id).is_some());
        assert_eq!(queue.next().map(|(_, piece)| piece), Some(b"next\n".to_vec()));
        assert_eq!(queue.give_up().len(), 1);
    }
}

//! Input on its way to the agent: in order, bounded, and told when it has been taken.

use std::collections::VecDeque;

use agency_api::keeper::InputSource;
use agency_journal::Source;

/// An agent that reads nothing must not make us grow; a paste of this size is a mistake.
const MAX_QUEUED_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct InputQueue {
    waiting: VecDeque<Piece>,
    bytes: usize,
}

struct Piece {
    from: Receipt,
    source: Source,
    bytes: Vec<u8>,
    taken: usize,
}

/// Whom to tell, and of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub(crate) peer: u64,
    pub(crate) id: u64,
}

impl InputQueue {
    /// `false`: there is no room for it.
    pub(crate) fn push(&mut self, from: Receipt, source: InputSource, bytes: Vec<u8>) -> bool {
        if self.bytes + bytes.len() > MAX_QUEUED_BYTES {
            return false;
        }
        self.bytes += bytes.len();
        self.waiting.push_back(Piece { from, source: journal_source(source), bytes, taken: 0 });
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What to write next.
    pub(crate) fn front(&self) -> Option<(Source, &[u8])> {
        let piece = self.waiting.front()?;
        Some((piece.source, piece.bytes.get(piece.taken..)?))
    }

    /// So much of the front was written. Returns whose input is complete by that.
    pub(crate) fn advance(&mut self, count: usize) -> Option<Receipt> {
        let piece = self.waiting.front_mut()?;
        piece.taken += count;
        self.bytes -= count.min(self.bytes);
        if piece.taken < piece.bytes.len() {
            return None;
        }
        self.waiting.pop_front().map(|piece| piece.from)
    }

    /// Nobody will take it any more.
    pub(crate) fn give_up(&mut self) -> Vec<Receipt> {
        self.bytes = 0;
        std::mem::take(&mut self.waiting).into_iter().map(|piece| piece.from).collect()
    }
}

fn journal_source(source: InputSource) -> Source {
    match source {
        InputSource::User => Source::User,
        InputSource::Send => Source::Send,
        InputSource::Answer { output_offset } => Source::Answer { output_offset },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Receipt = Receipt { peer: 1, id: 7 };

    #[test]
    fn a_piece_is_done_when_its_last_byte_is_taken() {
        let mut queue = InputQueue::default();
        assert!(queue.push(ONE, InputSource::Send, b"hello".to_vec()));
        assert_eq!(queue.front(), Some((Source::Send, &b"hello"[..])));
        assert_eq!(queue.advance(2), None);
        assert_eq!(queue.front(), Some((Source::Send, &b"llo"[..])));
        assert_eq!(queue.advance(3), Some(ONE));
        assert!(queue.is_empty());
    }

    #[test]
    fn what_does_not_fit_is_refused_and_room_comes_back() {
        let mut queue = InputQueue::default();
        assert!(queue.push(ONE, InputSource::User, vec![0; MAX_QUEUED_BYTES]));
        assert!(!queue.push(ONE, InputSource::User, vec![0]));
        queue.advance(1);
        assert!(queue.push(ONE, InputSource::User, vec![0]));
    }
}

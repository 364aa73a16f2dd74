//! Input on its way to the agent: ordered, bounded, and with a receipt once the agent has taken it.

use std::collections::VecDeque;

use agency_api::keeper::InputSource;
use agency_journal::Source;

/// Bounds memory if the agent does not read; a larger paste is a mistake.
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

/// Which peer gets the confirmation, and for which of its inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub(crate) peer: u64,
    pub(crate) id: u64,
}

impl InputQueue {
    /// `false` if the queue is full.
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

    /// The bytes to write next.
    pub(crate) fn front(&self) -> Option<(Source, &[u8])> {
        let piece = self.waiting.front()?;
        Some((piece.source, piece.bytes.get(piece.taken..)?))
    }

    /// Removes `count` written bytes from the front. Returns the receipt of the input that this completes.
    pub(crate) fn advance(&mut self, count: usize) -> Option<Receipt> {
        let piece = self.waiting.front_mut()?;
        piece.taken += count;
        self.bytes -= count.min(self.bytes);
        if piece.taken < piece.bytes.len() {
            return None;
        }
        self.waiting.pop_front().map(|piece| piece.from)
    }

    /// Empties the queue and returns the receipts of all input that the agent did not take.
    pub(crate) fn take_refused(&mut self) -> Vec<Receipt> {
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
    fn a_piece_is_complete_when_its_last_byte_is_taken() {
        let mut queue = InputQueue::default();
        assert!(queue.push(ONE, InputSource::Send, b"hello".to_vec()));
        assert_eq!(queue.front(), Some((Source::Send, &b"hello"[..])));
        assert_eq!(queue.advance(2), None);
        assert_eq!(queue.front(), Some((Source::Send, &b"llo"[..])));
        assert_eq!(queue.advance(3), Some(ONE));
        assert!(queue.is_empty());
    }

    #[test]
    fn input_that_does_not_fit_is_refused_until_there_is_space() {
        let mut queue = InputQueue::default();
        assert!(queue.push(ONE, InputSource::User, vec![0; MAX_QUEUED_BYTES]));
        assert!(!queue.push(ONE, InputSource::User, vec![0]));
        queue.advance(1);
        assert!(queue.push(ONE, InputSource::User, vec![0]));
    }
}

//! What waits to be sent to one viewer.
//!
//! Invariant: bounded. A viewer that does not keep up loses what waits and gets a fresh screen
//! when it is ready again; it never holds up the agent or another viewer.

use std::collections::VecDeque;
use std::sync::Mutex;

use agency_api::pty::ViewerNotice;
use tokio::sync::Notify;

/// Some hundred screens; more than this is history by the time it arrives.
const MAX_WAITING_BYTES: usize = 1 << 20;

const BELL: &[u8] = b"\x07";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ViewerId(pub u64);

#[derive(Debug, PartialEq, Eq)]
pub enum Outgoing {
    Bytes(Vec<u8>),
    Notice(ViewerNotice),
    /// Nothing follows.
    End,
}

#[derive(Debug, Default)]
pub struct ViewerQueue {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<Outgoing>,
    bytes: usize,
    flow: Flow,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Flow {
    #[default]
    Live,
    /// Output was dropped.
    Lagging,
    /// A fresh screen has been asked for; output before it would be drawn on a stale one.
    AwaitingScreen,
}

/// What the sender of a viewer does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    Send(Outgoing),
    /// Everything was sent, but something had been dropped: ask for a fresh screen.
    Refresh,
}

impl ViewerQueue {
    /// Live output; dropped, with all output before it, once too much waits.
    pub fn push_bytes(&self, bytes: &[u8]) {
        let mut waiting = self.lock();
        if waiting.flow != Flow::Live || bytes.is_empty() {
            return;
        }
        if waiting.bytes + bytes.len() > MAX_WAITING_BYTES {
            waiting.flow = Flow::Lagging;
            waiting.messages.retain(|message| !matches!(message, Outgoing::Bytes(_)));
            waiting.bytes = 0;
        } else {
            waiting.bytes += bytes.len();
            match waiting.messages.back_mut() {
                Some(Outgoing::Bytes(last)) => last.extend_from_slice(bytes),
                _ => waiting.messages.push_back(Outgoing::Bytes(bytes.to_vec())),
            }
        }
        drop(waiting);
        self.changed.notify_one();
    }

    /// A whole screen, whatever its size: from here on the viewer is up to date.
    pub fn push_screen(&self, screen: Vec<u8>) {
        let mut waiting = self.lock();
        waiting.flow = Flow::Live;
        // It begins from nothing, so what waits before it would only flicker by.
        waiting.messages.retain(|message| !matches!(message, Outgoing::Bytes(_)));
        waiting.messages.push_back(Outgoing::Bytes(screen));
        // The screen itself does not count: a viewer must be able to take at least one.
        waiting.bytes = 0;
        drop(waiting);
        self.changed.notify_one();
    }

    /// Whether a frame may follow now. If not, a refresh is asked for as soon as what waits was sent: frames
    /// are left out for a viewer that is slow, not queued.
    pub fn takes_frame(&self) -> bool {
        let mut waiting = self.lock();
        if waiting.messages.iter().any(|message| matches!(message, Outgoing::Bytes(_))) {
            waiting.flow = Flow::Lagging;
        }
        waiting.flow == Flow::Live
    }

    /// What changed since the frame before: from here on the viewer is up to date.
    pub fn push_frame(&self, frame: Vec<u8>) {
        let mut waiting = self.lock();
        waiting.flow = Flow::Live;
        if !frame.is_empty() {
            waiting.bytes += frame.len();
            waiting.messages.push_back(Outgoing::Bytes(frame));
        }
        drop(waiting);
        self.changed.notify_one();
    }

    /// For a viewer of frames. It takes no frame away, since the next one only says what differs; and one bell
    /// is as good as many.
    pub fn push_bell(&self) {
        let mut waiting = self.lock();
        if waiting.messages.iter().any(|message| matches!(message, Outgoing::Bytes(bytes) if bytes == BELL)) {
            return;
        }
        waiting.bytes += BELL.len();
        waiting.messages.push_back(Outgoing::Bytes(BELL.to_vec()));
        drop(waiting);
        self.changed.notify_one();
    }

    /// A notice that makes those of its kind needless that wait before it: agents may send one after another.
    pub fn push_latest(&self, notice: ViewerNotice) {
        let kind = std::mem::discriminant(&notice);
        let mut waiting = self.lock();
        waiting.messages.retain(
            |message| !matches!(message, Outgoing::Notice(old) if std::mem::discriminant(old) == kind),
        );
        waiting.messages.push_back(Outgoing::Notice(notice));
        drop(waiting);
        self.changed.notify_one();
    }

    pub fn push(&self, message: Outgoing) {
        self.lock().messages.push_back(message);
        self.changed.notify_one();
    }

    pub async fn next(&self) -> Next {
        loop {
            if let Some(next) = self.try_next() {
                return next;
            }
            self.changed.notified().await;
        }
    }

    fn try_next(&self) -> Option<Next> {
        let mut waiting = self.lock();
        match waiting.messages.pop_front() {
            Some(message) => {
                if let Outgoing::Bytes(bytes) = &message {
                    waiting.bytes = waiting.bytes.saturating_sub(bytes.len());
                }
                Some(Next::Send(message))
            }
            None if waiting.flow == Flow::Lagging => {
                waiting.flow = Flow::AwaitingScreen;
                Some(Next::Refresh)
            }
            None => None,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_arrives_in_order_and_in_one_piece() {
        let queue = ViewerQueue::default();
        queue.push_bytes(b"one ");
        queue.push_bytes(b"two");
        assert_eq!(queue.try_next(), Some(Next::Send(Outgoing::Bytes(b"one two".to_vec()))));
        assert_eq!(queue.try_next(), None);
    }

    #[test]
    fn a_viewer_that_does_not_keep_up_gets_a_fresh_screen_and_loses_no_notice() {
        let queue = ViewerQueue::default();
        queue.push(Outgoing::Notice(ViewerNotice::Control { yours: true }));
        for _ in 0..3 {
            queue.push_bytes(&vec![b'x'; MAX_WAITING_BYTES / 2]);
        }
        queue.push_bytes(b"lost");
        assert_eq!(
            queue.try_next(),
            Some(Next::Send(Outgoing::Notice(ViewerNotice::Control { yours: true })))
        );
        assert_eq!(queue.try_next(), Some(Next::Refresh));
        queue.push_bytes(b"too early");
        assert_eq!(queue.try_next(), None);
        queue.push_screen(b"screen".to_vec());
        queue.push_bytes(b" and on");
        assert_eq!(queue.try_next(), Some(Next::Send(Outgoing::Bytes(b"screen and on".to_vec()))));
    }

    #[test]
    fn frames_do_not_wait_behind_each_other() {
        let queue = ViewerQueue::default();
        assert!(queue.takes_frame());
        queue.push_frame(b"one".to_vec());
        assert!(!queue.takes_frame(), "the first is still to be sent");
        assert_eq!(queue.try_next(), Some(Next::Send(Outgoing::Bytes(b"one".to_vec()))));
        assert_eq!(queue.try_next(), Some(Next::Refresh));
        assert!(!queue.takes_frame(), "it has been asked for");
        queue.push_frame(b"three".to_vec());
        assert_eq!(queue.try_next(), Some(Next::Send(Outgoing::Bytes(b"three".to_vec()))));
        assert!(queue.takes_frame());
    }

    #[test]
    fn a_bell_takes_no_frame_away() {
        let queue = ViewerQueue::default();
        let frame = vec![b'x'; MAX_WAITING_BYTES + 1];
        queue.push_frame(frame.clone());
        queue.push_bell();
        queue.push_bell();
        assert_eq!(queue.try_next(), Some(Next::Send(Outgoing::Bytes(frame))));
        assert_eq!(queue.try_next(), Some(Next::Send(Outgoing::Bytes(BELL.to_vec()))));
        assert_eq!(queue.try_next(), None);
        assert!(queue.takes_frame());
    }
}

//! The queue of output and notices for one viewer.
//!
//! Invariant: bounded. A viewer that does not keep up loses the output in its queue and gets a fresh screen once the queue is
//! empty. It never delays the agent or another viewer.
//!
//! A viewer that acknowledges has a queue of its own that the daemon cannot see, such as a browser's. So its output waits here once
//! it is a window behind.

use std::collections::VecDeque;
use std::sync::Mutex;

use agency_api::pty::ViewerNotice;
use tokio::sync::Notify;

/// A few hundred screens. More than this is out of date when it arrives.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// As much as a viewer that acknowledges may have and not have drawn: a tenth of a second of work for a browser.
const WINDOW_BYTES: u64 = 512 << 10;

const BELL: &[u8] = b"\x07";

/// One attached client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ViewerId(pub u64);

/// A message for a viewer.
#[derive(Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// Output for its terminal.
    Bytes(Vec<u8>),
    /// A notice.
    Notice(ViewerNotice),
    /// Nothing follows.
    End,
}

/// Messages that wait for one viewer.
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
    /// For a viewer that acknowledges.
    window: Option<Window>,
}

/// The output that a viewer has got, and how much of it the viewer has drawn. In bytes since the stream began.
#[derive(Debug, Default)]
struct Window {
    sent: u64,
    processed: u64,
}

impl Window {
    /// One message may be longer than the window: a viewer must be able to get at least one screen.
    fn is_open(&self) -> bool {
        self.sent - self.processed < WINDOW_BYTES
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Flow {
    #[default]
    Live,
    /// The queue has dropped output.
    Lagging,
    /// The viewer's sender has asked for a fresh screen. Output before it would be drawn on a stale one.
    AwaitingScreen,
}

/// The next step for the sender of a viewer.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Send this message.
    Send(Outgoing),
    /// The queue is empty, but it has dropped output: ask for a fresh screen.
    Refresh,
}

impl ViewerQueue {
    /// The queue of a viewer, which says how much it has drawn or does not.
    pub fn for_viewer(acknowledges: bool) -> ViewerQueue {
        let window = acknowledges.then(Window::default);
        let waiting = Mutex::new(Waiting { window, ..Waiting::default() });
        ViewerQueue { waiting, changed: Notify::new() }
    }

    /// The viewer has drawn this many bytes since the stream began. It cannot have drawn more than it got.
    pub fn acknowledge(&self, processed: u64) {
        if let Some(window) = &mut self.lock().window {
            window.processed = window.processed.max(processed.min(window.sent));
        }
        self.changed.notify_one();
    }

    /// Adds live output. Drops it, and all output before it, once too much waits.
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

    /// Adds a whole screen of any size. From here on the viewer is up to date.
    pub fn push_screen(&self, screen: Vec<u8>) {
        let mut waiting = self.lock();
        waiting.flow = Flow::Live;
        // It draws everything, so older output would only flicker.
        waiting.messages.retain(|message| !matches!(message, Outgoing::Bytes(_)));
        waiting.messages.push_back(Outgoing::Bytes(screen));
        // The screen does not count against the limit: a viewer must be able to get at least one.
        waiting.bytes = 0;
        drop(waiting);
        self.changed.notify_one();
    }

    /// Whether a frame may follow now. If not, the viewer's sender asks for a refresh once the queue is empty: frames for a
    /// slow viewer are left out, not queued.
    pub fn reserve_frame(&self) -> bool {
        let mut waiting = self.lock();
        if waiting.messages.iter().any(|message| matches!(message, Outgoing::Bytes(_))) {
            waiting.flow = Flow::Lagging;
        }
        waiting.flow == Flow::Live
    }

    /// Adds the changes since the last frame. From here on the viewer is up to date.
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

    /// Rings the bell of a viewer with frames. Unlike output it never drops a frame, because the next frame holds only the
    /// differences. One waiting bell is enough.
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

    /// Adds a notice and removes older ones of its kind: agents may send many in a row.
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

    /// Adds a message that is never dropped.
    pub fn push(&self, message: Outgoing) {
        self.lock().messages.push_back(message);
        self.changed.notify_one();
    }

    /// Waits for the next thing to do.
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
        let is_open = waiting.window.as_ref().is_none_or(Window::is_open);
        match waiting.messages.pop_front_if(|message| is_open || !matches!(message, Outgoing::Bytes(_))) {
            Some(message) => {
                if let Outgoing::Bytes(bytes) = &message {
                    waiting.bytes = waiting.bytes.saturating_sub(bytes.len());
                    if let Some(window) = &mut waiting.window {
                        window.sent += bytes.len() as u64;
                    }
                }
                Some(Next::Send(message))
            }
            // A screen of now would be old when the window opens.
            None if !is_open => None,
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

    fn output(len: usize) -> Vec<u8> {
        vec![b'x'; len]
    }

    #[test]
    fn a_viewer_that_acknowledges_gets_no_more_than_a_window_ahead() {
        let queue = ViewerQueue::for_viewer(true);
        let window = WINDOW_BYTES as usize;
        queue.push_bytes(&output(window));
        assert_eq!(queue.try_next(), Some(Next::Send(Outgoing::Bytes(output(window)))));
        queue.push_bytes(b"more");
        queue.push(Outgoing::Notice(ViewerNotice::ClipboardDenied));
        assert_eq!(queue.try_next(), None, "the viewer has drawn nothing yet");
        queue.acknowledge(u64::MAX);
        assert_eq!(queue.try_next(), Some(Next::Send(Outgoing::Bytes(b"more".to_vec()))));
        assert!(matches!(queue.try_next(), Some(Next::Send(Outgoing::Notice(_)))));
        queue.push_bytes(&output(window));
        assert!(queue.try_next().is_some(), "it cannot have drawn more than it got, but it has drawn that");
        queue.push_bytes(b"and more");
        queue.acknowledge(1);
        assert_eq!(queue.try_next(), None, "an older number takes nothing back");
    }

    #[test]
    fn a_viewer_that_stays_behind_gets_a_fresh_screen_once_it_has_drawn_the_rest() {
        let queue = ViewerQueue::for_viewer(true);
        let window = WINDOW_BYTES as usize;
        queue.push_bytes(&output(window));
        assert!(queue.try_next().is_some());
        for _ in 0..3 {
            queue.push_bytes(&output(MAX_WAITING_BYTES / 2));
        }
        assert_eq!(queue.try_next(), None, "neither output nor a screen that would be old");
        queue.acknowledge(WINDOW_BYTES);
        assert_eq!(queue.try_next(), Some(Next::Refresh));
        queue.push_screen(b"screen".to_vec());
        assert_eq!(queue.try_next(), Some(Next::Send(Outgoing::Bytes(b"screen".to_vec()))));
    }

    #[test]
    fn frames_do_not_wait_behind_each_other() {
        let queue = ViewerQueue::default();
        assert!(queue.reserve_frame());
        queue.push_frame(b"one".to_vec());
        assert!(!queue.reserve_frame(), "the first is still to be sent");
        assert_eq!(queue.try_next(), Some(Next::Send(Outgoing::Bytes(b"one".to_vec()))));
        assert_eq!(queue.try_next(), Some(Next::Refresh));
        assert!(!queue.reserve_frame(), "it has been asked for");
        queue.push_frame(b"three".to_vec());
        assert_eq!(queue.try_next(), Some(Next::Send(Outgoing::Bytes(b"three".to_vec()))));
        assert!(queue.reserve_frame());
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
        assert!(queue.reserve_frame());
    }
}

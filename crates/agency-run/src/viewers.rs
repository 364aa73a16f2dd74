//! The viewers of one run: who controls it, and what each viewer sees.
//!
//! At most one viewer is the controller: it types and sets the size. The others look on. A viewer whose terminal is as large
//! as the screen gets all output of the agent. Another one gets frames of the part that fits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use agency_api::pty::{AttachMode, ViewerNotice};
use agency_core::config::Clipboard;
use agency_terminal::{Colours, Keys, Screen, Size, ViewerFilter, Window};

use crate::frame_clock::FrameClock;
use crate::viewer_queue::{Outgoing, ViewerId, ViewerQueue};

/// A terminal draws this many rows before a person notices.
const ROWS_AT_ONCE: usize = 500;

/// A terminal that shows the scrollback already gets this many of the newest rows again, so that the user sees what came
/// before the screen.
const ROWS_AGAIN: usize = 200;

/// More terminals than a user has at once.
const MOST_TERMINALS: usize = 64;

/// The options of a viewer.
#[derive(Debug, Clone, Copy)]
pub struct ViewerOptions {
    /// The size of its terminal.
    pub size: Size,
    /// Whether it wants control.
    pub mode: AttachMode,
    /// Send no scrollback: the viewer's terminal shows it already.
    pub screen_only: bool,
    /// The viewer's terminal, if it should not get the whole scrollback twice.
    pub terminal: Option<u64>,
    /// Send frames even if the size fits.
    pub frames: bool,
    /// It says how much it has drawn, and gets no more than a window ahead of that.
    pub acknowledges: bool,
    /// Whether the agent may write to the clipboard of the viewer's terminal.
    pub clipboard: Clipboard,
}

#[derive(Default)]
pub(crate) struct Viewers {
    viewers: Vec<Viewer>,
    controller: Option<ViewerId>,
    /// Removes from the output what only the agent's own terminal may see.
    filter: ViewerFilter,
    frames: FrameClock,
    /// The terminals that have the scrollback of this run, the oldest first.
    terminals: VecDeque<u64>,
    /// A clipboard notice for the controller. Waits until no long sequence, such as an image, is in progress.
    copied: Option<ViewerNotice>,
    /// A notice for all viewers. Waits likewise.
    pending: Option<ViewerNotice>,
}

struct Viewer {
    id: ViewerId,
    queue: Arc<ViewerQueue>,
    options: ViewerOptions,
    /// The rows of the scrollback that it gets first.
    scrollback_rows: usize,
    shown: Shown,
    /// Unknown until its terminal has named them.
    colours: Option<Colours>,
}

/// The part of the output that a viewer gets now.
enum Shown {
    /// The viewer waits until the agent's terminal has its size.
    Nothing,
    Everything,
    Frames(Window),
}

/// The part of the output that a viewer should get.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Display {
    Nothing,
    Everything,
    Frames(Keys),
}

impl Viewers {
    pub fn count(&self) -> usize {
        self.viewers.len()
    }

    pub fn is_controller(&self, viewer: ViewerId) -> bool {
        self.controller == Some(viewer)
    }

    /// Adds a viewer. Returns the size that the agent's terminal must take first, if it has another one.
    pub fn attach(
        &mut self,
        screen: &mut Screen,
        id: ViewerId,
        queue: Arc<ViewerQueue>,
        options: ViewerOptions,
    ) -> Option<Size> {
        if self.viewers.is_empty() {
            // The filter has seen no output while no viewer was attached: start in the state of the screen's own parser.
            self.filter = screen.viewer_filter();
        }
        let scrollback_rows = if options.screen_only { 0 } else { self.rows_for(options.terminal) };
        self.viewers.push(Viewer {
            id,
            queue,
            options,
            scrollback_rows,
            shown: Shown::Nothing,
            colours: None,
        });
        let controls = match options.mode {
            AttachMode::Take => true,
            AttachMode::Control => self.controller.is_none(),
            AttachMode::ReadOnly => false,
        };
        if controls {
            self.give_control(screen, Some(id));
        } else {
            self.notify(id, ViewerNotice::Control { yours: false });
        }
        self.show(screen, |_| false);
        (controls && screen.size() != options.size).then_some(options.size)
    }

    /// The rows of the scrollback that a terminal gets: all of them at its first visit, and the newest ones later.
    fn rows_for(&mut self, terminal: Option<u64>) -> usize {
        let Some(terminal) = terminal else { return usize::MAX };
        if self.terminals.contains(&terminal) {
            return ROWS_AGAIN;
        }
        if self.terminals.len() == MOST_TERMINALS {
            self.terminals.pop_front();
        }
        self.terminals.push_back(terminal);
        usize::MAX
    }

    /// Removes a viewer. Control goes to the viewer that has waited for it longest.
    pub fn detach(&mut self, screen: &mut Screen, id: ViewerId) {
        self.viewers.retain(|viewer| viewer.id != id);
        if self.is_controller(id) {
            let heir = self
                .viewers
                .iter()
                .find(|viewer| viewer.options.mode != AttachMode::ReadOnly)
                .map(|heir| heir.id);
            self.controller = None;
            self.give_control(screen, heir);
            self.show(screen, |_| false);
        }
    }

    /// The screen answers colour queries of the agent with the colours of the controller, or of the last controller that
    /// named its colours.
    pub fn set_colours(&mut self, screen: &mut Screen, id: ViewerId, colours: Colours) {
        for viewer in self.viewers.iter_mut().filter(|viewer| viewer.id == id) {
            viewer.colours = Some(colours.clone());
        }
        if self.is_controller(id) {
            screen.set_viewer_colours(colours);
        }
    }

    fn give_control(&mut self, screen: &mut Screen, to: Option<ViewerId>) {
        // The agent wrote it for the controller of that time.
        self.copied = None;
        if let Some(before) = self.controller.take() {
            self.notify(before, ViewerNotice::Control { yours: false });
        }
        self.controller = to;
        if let Some(now) = to {
            self.notify(now, ViewerNotice::Control { yours: true });
            let heir = self.viewers.iter().find(|viewer| viewer.id == now);
            if let Some(colours) = heir.and_then(|heir| heir.colours.clone()) {
                screen.set_viewer_colours(colours);
            }
        }
    }

    fn notify(&self, id: ViewerId, notice: ViewerNotice) {
        for viewer in self.viewers.iter().filter(|viewer| viewer.id == id) {
            viewer.queue.push(Outgoing::Notice(notice.clone()));
        }
    }

    pub fn output(&mut self, bytes: &[u8], now: Duration) {
        if self.viewers.is_empty() {
            return;
        }
        let mut passed = Vec::with_capacity(bytes.len());
        self.filter.pass(bytes, &mut passed);
        for viewer in &self.viewers {
            match viewer.shown {
                Shown::Nothing => {}
                Shown::Everything => viewer.queue.push_bytes(&passed),
                Shown::Frames(_) => self.frames.on_change(now),
            }
        }
        self.send_copied();
        self.send_pending();
    }

    /// Sends a notice to every viewer, between two sequences of the agent.
    pub fn notify_all(&mut self, notice: ViewerNotice) {
        self.pending = Some(notice);
        self.send_pending();
    }

    fn send_pending(&mut self) {
        if self.viewers.is_empty() {
            self.pending = None;
        } else if self.filter.at_boundary()
            && let Some(notice) = self.pending.take()
        {
            self.viewers.iter().for_each(|viewer| viewer.queue.push_latest(notice.clone()));
        }
    }

    /// Passes a clipboard text to the controller's terminal and to no other, if its user allows it.
    pub fn copy(&mut self, selection: String, data: String) {
        let controller = self.viewers.iter().find(|viewer| self.controller == Some(viewer.id));
        self.copied = controller.map(|controller| match controller.options.clipboard {
            Clipboard::Allow => ViewerNotice::Clipboard { selection, data },
            Clipboard::Deny => ViewerNotice::ClipboardDenied,
        });
        self.send_copied();
    }

    fn send_copied(&mut self) {
        let controller = self.viewers.iter().find(|viewer| self.controller == Some(viewer.id));
        if let (Some(controller), true) = (controller, self.filter.at_boundary())
            && let Some(notice) = self.copied.take()
        {
            controller.queue.push_latest(notice);
        }
    }

    /// Rings the bell of viewers with frames. The others get the bell with the output.
    pub fn bell(&self) {
        for viewer in self.viewers.iter().filter(|viewer| matches!(viewer.shown, Shown::Frames(_))) {
            viewer.queue.push_bell();
        }
    }

    /// A viewer's terminal has a new size. Returns the size if the agent's terminal must take it.
    pub fn resize(&mut self, screen: &mut Screen, id: ViewerId, size: Size) -> Option<Size> {
        for viewer in self.viewers.iter_mut().filter(|viewer| viewer.id == id) {
            viewer.options.size = size;
        }
        if self.is_controller(id) {
            return Some(size);
        }
        // Its terminal has moved around what it showed.
        self.show(screen, |viewer| viewer.id == id);
        None
    }

    /// The agent's terminal has a new size. Viewers that waited for it see the screen now; the others get it again.
    pub fn resized(&mut self, screen: &mut Screen) {
        self.show(screen, |viewer| matches!(viewer.shown, Shown::Everything));
    }

    /// The viewer has received everything in its queue and needs what it lost or what has changed since.
    pub fn refresh(&mut self, screen: &mut Screen, id: ViewerId) {
        self.show(screen, |viewer| viewer.id == id && matches!(viewer.shown, Shown::Everything));
        self.show_frames(screen, |viewer| viewer.id == id);
    }

    /// When the next frames are due.
    pub fn deadline(&self) -> Option<Duration> {
        self.frames.deadline()
    }

    pub fn draw_frames_if_due(&mut self, screen: &mut Screen, now: Duration) {
        if self.frames.take_due(now, screen.modes().synchronized) {
            // A viewer whose queue is not empty asks for a refresh once it is.
            self.show_frames(screen, |viewer| viewer.queue.reserve_frame());
        }
    }

    /// Shows each viewer what it should see, if it sees something else now or `again` is true for it.
    fn show(&mut self, screen: &mut Screen, again: impl Fn(&Viewer) -> bool) {
        for viewer in &mut self.viewers {
            let display = viewer.wanted_display(screen.size(), self.controller == Some(viewer.id));
            match (display, &viewer.shown) {
                (Display::Nothing, _) => {}
                (Display::Everything, Shown::Everything) | (Display::Frames(_), Shown::Frames(_))
                    if !again(viewer) => {}
                (Display::Everything, _) => viewer.show_everything(screen),
                (Display::Frames(keys), _) => viewer.begin_frames(screen, keys),
            }
        }
        self.show_frames(screen, |viewer| viewer.queue.reserve_frame());
    }

    fn show_frames(&mut self, screen: &mut Screen, whom: impl Fn(&Viewer) -> bool) {
        for viewer in &mut self.viewers {
            let display = viewer.wanted_display(screen.size(), self.controller == Some(viewer.id));
            match (display, &viewer.shown) {
                (Display::Frames(keys), Shown::Frames(_)) if whom(viewer) => viewer.show_frame(screen, keys),
                _ => {}
            }
        }
    }

    /// Sends a last notice to every viewer and detaches them all.
    pub fn end(&mut self, screen: &mut Screen, notice: &ViewerNotice) {
        // The output since the last frame.
        self.show_frames(screen, |_| true);
        for viewer in self.viewers.drain(..) {
            viewer.queue.push(Outgoing::Notice(notice.clone()));
            viewer.queue.push(Outgoing::End);
        }
        self.controller = None;
    }
}

impl Viewer {
    fn wanted_display(&self, screen: Size, controls: bool) -> Display {
        let own = self.options.size.bounded();
        let fits = (own.cols, own.rows) == (screen.cols, screen.rows);
        let keys = if controls { Keys::Program } else { Keys::Plain };
        match &self.shown {
            Shown::Nothing if controls && own != screen => Display::Nothing,
            _ if self.options.frames => Display::Frames(keys),
            // The new size of the controller is on its way to the agent.
            Shown::Everything if controls => Display::Everything,
            _ if fits => Display::Everything,
            _ => Display::Frames(keys),
        }
    }

    /// Sends the screen, to a new viewer with the scrollback above it. A long scrollback takes time to arrive, so the screen
    /// comes first, and again after the scrollback.
    fn show_everything(&mut self, screen: &mut Screen) {
        let rows = self.wanted_scrollback();
        let is_long = rows.min(screen.scrollback_rows()) > ROWS_AT_ONCE;
        self.queue.push_screen(screen.redraw_with(if is_long { 0 } else { rows }));
        if is_long {
            self.queue.push(Outgoing::Bytes(screen.redraw_with(rows)));
        }
        self.shown = Shown::Everything;
    }

    fn begin_frames(&mut self, screen: &mut Screen, keys: Keys) {
        let mut window = Window::new(self.options.size);
        let mut bytes = match self.wanted_scrollback() {
            0 => Vec::new(),
            rows => rewrapped(screen, self.options.size, rows),
        };
        bytes.extend(screen.frame(&mut window, keys));
        self.queue.push_screen(bytes);
        self.shown = Shown::Frames(window);
    }

    fn show_frame(&mut self, screen: &mut Screen, keys: Keys) {
        if let Shown::Frames(window) = &mut self.shown {
            self.queue.push_frame(screen.frame(window, keys));
        }
    }

    /// The rows of the scrollback that it gets now.
    fn wanted_scrollback(&self) -> usize {
        if matches!(self.shown, Shown::Nothing) { self.scrollback_rows } else { 0 }
    }
}

/// The scrollback, wrapped to another width.
fn rewrapped(screen: &mut Screen, size: Size, rows: usize) -> Vec<u8> {
    match Screen::restore(&screen.dump()) {
        Ok(mut copy) => {
            copy.resize(size);
            copy.redraw_with(rows)
        }
        Err(cause) => {
            tracing::warn!(%cause, "a viewer gets no scrollback");
            Vec::new()
        }
    }
}

//! The viewers of one run: who looks, who types, and what each is shown.
//!
//! At most one controls: types and sizes. The others look. Whose terminal is as large as the screen gets all
//! that the agent prints; whose is not gets frames of the part that fits.

use std::sync::Arc;
use std::time::Duration;

use agency_api::pty::{AttachMode, ViewerNotice};
use agency_core::config::Clipboard;
use agency_terminal::{Colours, Keys, Screen, Size, ViewerFilter, Window};

use crate::frame_clock::FrameClock;
use crate::viewer_queue::{Outgoing, ViewerId, ViewerQueue};

/// A terminal draws so many before anyone sees it happen.
const ROWS_AT_ONCE: usize = 500;

/// How somebody wants to look.
#[derive(Debug, Clone, Copy)]
pub struct ViewerOptions {
    pub size: Size,
    pub mode: AttachMode,
    /// The scrollback is on the viewer's terminal already.
    pub screen_only: bool,
    /// Frames also where the size fits.
    pub frames: bool,
    /// What agents write to the clipboard may reach this one's terminal.
    pub clipboard: Clipboard,
}

#[derive(Default)]
pub struct Viewers {
    viewers: Vec<Viewer>,
    controller: Option<ViewerId>,
    /// Takes out of the output what only the agent's own terminal may see.
    filter: ViewerFilter,
    frames: FrameClock,
    /// Waits for the end of something long that is on its way past, an image say.
    copied: Option<ViewerNotice>,
    /// For everyone, and waits likewise.
    passing: Option<ViewerNotice>,
}

struct Viewer {
    id: ViewerId,
    queue: Arc<ViewerQueue>,
    options: ViewerOptions,
    seen: Seen,
    /// Unknown until its terminal has said.
    colours: Option<Colours>,
}

enum Seen {
    /// Waits for the terminal to have its size.
    Nothing,
    Everything,
    Frames(Window),
}

/// What a viewer is to be shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
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

    /// Adds a viewer; returns the size the terminal must take first, if it has another.
    pub fn attach(
        &mut self,
        screen: &mut Screen,
        id: ViewerId,
        queue: Arc<ViewerQueue>,
        options: ViewerOptions,
    ) -> Option<Size> {
        if self.viewers.is_empty() {
            // Nobody listened until now: begin where the screen's own parser stands.
            self.filter = screen.viewer_filter();
        }
        self.viewers.push(Viewer { id, queue, options, seen: Seen::Nothing, colours: None });
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

    /// Control goes to whoever has waited for it longest.
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

    /// An agent that asks is told the colours of who controls; of who did last, while nobody knows better.
    pub fn set_colours(&mut self, screen: &mut Screen, id: ViewerId, colours: Colours) {
        for viewer in self.viewers.iter_mut().filter(|viewer| viewer.id == id) {
            viewer.colours = Some(colours.clone());
        }
        if self.is_controller(id) {
            screen.set_viewer_colours(colours);
        }
    }

    fn give_control(&mut self, screen: &mut Screen, to: Option<ViewerId>) {
        // Meant for who controlled when it was written.
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
            match viewer.seen {
                Seen::Nothing => {}
                Seen::Everything => viewer.queue.push_bytes(&passed),
                Seen::Frames(_) => self.frames.changed(now),
            }
        }
        self.pass_copied();
        self.pass_on();
    }

    /// A word to every viewer's terminal, in between what the agent says.
    pub fn notify_all(&mut self, notice: ViewerNotice) {
        self.passing = Some(notice);
        self.pass_on();
    }

    fn pass_on(&mut self) {
        if self.viewers.is_empty() {
            self.passing = None;
        } else if self.filter.at_boundary()
            && let Some(notice) = self.passing.take()
        {
            self.viewers.iter().for_each(|viewer| viewer.queue.push_latest(notice.clone()));
        }
    }

    /// For the terminal of who controls and for no other, if its user allows it.
    pub fn copy(&mut self, selection: String, data: String) {
        let controller = self.viewers.iter().find(|viewer| self.controller == Some(viewer.id));
        self.copied = controller.map(|controller| match controller.options.clipboard {
            Clipboard::Allow => ViewerNotice::Clipboard { selection, data },
            Clipboard::Deny => ViewerNotice::ClipboardDenied,
        });
        self.pass_copied();
    }

    fn pass_copied(&mut self) {
        let controller = self.viewers.iter().find(|viewer| self.controller == Some(viewer.id));
        if let (Some(controller), true) = (controller, self.filter.at_boundary())
            && let Some(notice) = self.copied.take()
        {
            controller.queue.push_latest(notice);
        }
    }

    /// Whoever sees frames hears it by itself.
    pub fn bell(&self) {
        for viewer in self.viewers.iter().filter(|viewer| matches!(viewer.seen, Seen::Frames(_))) {
            viewer.queue.push_bell();
        }
    }

    /// A viewer's terminal has a new size. If it controls, the agent's must take it: that is what is returned.
    pub fn resize(&mut self, screen: &mut Screen, id: ViewerId, size: Size) -> Option<Size> {
        for viewer in self.viewers.iter_mut().filter(|viewer| viewer.id == id) {
            viewer.options.size = size;
        }
        if self.is_controller(id) {
            return Some(size);
        }
        // Whatever it showed has been moved about by its terminal.
        self.show(screen, |viewer| viewer.id == id);
        None
    }

    /// The terminal has a new size: whoever waited for it sees everything, the others see it anew.
    pub fn resized(&mut self, screen: &mut Screen) {
        self.show(screen, |viewer| matches!(viewer.seen, Seen::Everything));
    }

    /// The viewer has been sent all there was, and lost some of it or has waited since.
    pub fn refresh(&mut self, screen: &mut Screen, id: ViewerId) {
        self.show(screen, |viewer| viewer.id == id && matches!(viewer.seen, Seen::Everything));
        self.show_frames(screen, |viewer| viewer.id == id);
    }

    /// When frames are due next.
    pub fn deadline(&self) -> Option<Duration> {
        self.frames.deadline()
    }

    pub fn draw_frames_if_due(&mut self, screen: &mut Screen, now: Duration) {
        if self.frames.strikes(now, screen.modes().synchronized) {
            // One that still has something to take asks for a refresh when it has taken it.
            self.show_frames(screen, |viewer| viewer.queue.takes_frame());
        }
    }

    /// Shows each viewer what it is to be shown, if it sees something else now or `anew` says so.
    fn show(&mut self, screen: &mut Screen, anew: impl Fn(&Viewer) -> bool) {
        for viewer in &mut self.viewers {
            let show = viewer.to_be_shown(screen.size(), self.controller == Some(viewer.id));
            match (show, &viewer.seen) {
                (Show::Nothing, _) => {}
                (Show::Everything, Seen::Everything) | (Show::Frames(_), Seen::Frames(_))
                    if !anew(viewer) => {}
                (Show::Everything, _) => viewer.show_everything(screen),
                (Show::Frames(keys), _) => viewer.begin_frames(screen, keys),
            }
        }
        self.show_frames(screen, |viewer| viewer.queue.takes_frame());
    }

    fn show_frames(&mut self, screen: &mut Screen, whom: impl Fn(&Viewer) -> bool) {
        for viewer in &mut self.viewers {
            let show = viewer.to_be_shown(screen.size(), self.controller == Some(viewer.id));
            match (show, &viewer.seen) {
                (Show::Frames(keys), Seen::Frames(_)) if whom(viewer) => viewer.show_frame(screen, keys),
                _ => {}
            }
        }
    }

    /// The last word to everyone.
    pub fn end(&mut self, screen: &mut Screen, notice: &ViewerNotice) {
        // What came since the last frame.
        self.show_frames(screen, |_| true);
        for viewer in self.viewers.drain(..) {
            viewer.queue.push(Outgoing::Notice(notice.clone()));
            viewer.queue.push(Outgoing::End);
        }
        self.controller = None;
    }
}

impl Viewer {
    fn to_be_shown(&self, screen: Size, controls: bool) -> Show {
        let own = self.options.size.bounded();
        let fits = (own.cols, own.rows) == (screen.cols, screen.rows);
        let keys = if controls { Keys::Program } else { Keys::Plain };
        match &self.seen {
            Seen::Nothing if controls && own != screen => Show::Nothing,
            _ if self.options.frames => Show::Frames(keys),
            // The new size of who controls is on its way to the agent.
            Seen::Everything if controls => Show::Everything,
            _ if fits => Show::Everything,
            _ => Show::Frames(keys),
        }
    }

    /// The screen; with the scrollback above it for those who have seen nothing yet. A long one takes its time
    /// to arrive, so the screen comes first, and once more below it.
    fn show_everything(&mut self, screen: &mut Screen) {
        let scrollback = self.wants_scrollback();
        let long = scrollback && screen.scrollback_rows() > ROWS_AT_ONCE;
        self.queue.push_screen(screen.redraw(scrollback && !long));
        if long {
            self.queue.push(Outgoing::Bytes(screen.redraw(true)));
        }
        self.seen = Seen::Everything;
    }

    fn begin_frames(&mut self, screen: &mut Screen, keys: Keys) {
        let mut window = Window::new(self.options.size);
        let mut bytes = if self.wants_scrollback() { flowed(screen, self.options.size) } else { Vec::new() };
        bytes.extend(screen.frame(&mut window, keys));
        self.queue.push_screen(bytes);
        self.seen = Seen::Frames(window);
    }

    fn show_frame(&mut self, screen: &mut Screen, keys: Keys) {
        if let Seen::Frames(window) = &mut self.seen {
            self.queue.push_frame(screen.frame(window, keys));
        }
    }

    fn wants_scrollback(&self) -> bool {
        matches!(self.seen, Seen::Nothing) && !self.options.screen_only
    }
}

/// The scrollback as lines of another width.
fn flowed(screen: &mut Screen, size: Size) -> Vec<u8> {
    match Screen::restore(&screen.dump()) {
        Ok(mut copy) => {
            copy.resize(size);
            copy.redraw(true)
        }
        Err(cause) => {
            tracing::warn!(%cause, "a viewer goes without scrollback");
            Vec::new()
        }
    }
}

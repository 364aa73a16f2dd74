//! The viewers of one run: who looks, who types, and what each is shown.
//!
//! At most one controls: types and sizes. The others look.

use std::sync::Arc;

use agency_api::pty::{AttachMode, ViewerNotice};
use agency_terminal::{Screen, Size, ViewerFilter};

use crate::viewer::{Outgoing, ViewerId, ViewerQueue};

/// How somebody wants to look.
#[derive(Debug, Clone, Copy)]
pub struct View {
    pub size: Size,
    pub mode: AttachMode,
    /// The scrollback is on the viewer's terminal already.
    pub screen_only: bool,
}

#[derive(Default)]
pub struct Audience {
    viewers: Vec<Viewer>,
    controller: Option<ViewerId>,
    /// Takes out of the output what only the agent's own terminal may see.
    filter: ViewerFilter,
}

struct Viewer {
    id: ViewerId,
    queue: Arc<ViewerQueue>,
    view: View,
    seen: Seen,
}

#[derive(PartialEq)]
enum Seen {
    /// Waits for the terminal to have its size.
    Nothing,
    Everything,
}

impl Audience {
    pub fn len(&self) -> usize {
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
        view: View,
    ) -> Option<Size> {
        if self.viewers.is_empty() {
            // Nobody listened until now: begin where the screen's own parser stands.
            self.filter = screen.viewer_filter();
        }
        self.viewers.push(Viewer { id, queue, view, seen: Seen::Nothing });
        let controls = match view.mode {
            AttachMode::Take => true,
            AttachMode::Control => self.controller.is_none(),
            AttachMode::ReadOnly => false,
        };
        if controls {
            self.give_control(Some(id));
        } else {
            self.notify(id, ViewerNotice::Control { yours: false });
        }
        if controls && screen.size() != view.size {
            return Some(view.size);
        }
        self.show(screen, |viewer| viewer.id == id);
        None
    }

    /// Control goes to whoever has waited for it longest.
    pub fn detach(&mut self, id: ViewerId) {
        self.viewers.retain(|viewer| viewer.id != id);
        if self.is_controller(id) {
            let heir = self
                .viewers
                .iter()
                .find(|viewer| viewer.view.mode != AttachMode::ReadOnly)
                .map(|heir| heir.id);
            self.controller = None;
            self.give_control(heir);
        }
    }

    fn give_control(&mut self, to: Option<ViewerId>) {
        if let Some(before) = self.controller.take() {
            self.notify(before, ViewerNotice::Control { yours: false });
        }
        self.controller = to;
        if let Some(now) = to {
            self.notify(now, ViewerNotice::Control { yours: true });
        }
    }

    fn notify(&self, id: ViewerId, notice: ViewerNotice) {
        for viewer in self.viewers.iter().filter(|viewer| viewer.id == id) {
            viewer.queue.push(Outgoing::Notice(notice.clone()));
        }
    }

    pub fn output(&mut self, bytes: &[u8]) {
        if self.viewers.is_empty() {
            return;
        }
        let mut passed = Vec::with_capacity(bytes.len());
        self.filter.pass(bytes, &mut passed);
        for viewer in &self.viewers {
            if viewer.seen == Seen::Everything {
                viewer.queue.push_bytes(&passed);
            }
        }
    }

    /// The terminal has a new size: whoever waited for it sees everything, the others see it anew.
    pub fn resized(&mut self, screen: &mut Screen) {
        let size = screen.size();
        self.show(screen, |viewer| viewer.seen == Seen::Everything || viewer.view.size == size);
    }

    pub fn refresh(&mut self, screen: &mut Screen, id: ViewerId) {
        self.show(screen, |viewer| viewer.id == id);
    }

    /// The screen; with the scrollback above it for those who have seen nothing yet.
    fn show(&mut self, screen: &mut Screen, whom: impl Fn(&Viewer) -> bool) {
        for viewer in self.viewers.iter_mut().filter(|viewer| whom(viewer)) {
            let with_scrollback = viewer.seen == Seen::Nothing && !viewer.view.screen_only;
            viewer.queue.push_screen(screen.redraw(with_scrollback));
            viewer.seen = Seen::Everything;
        }
    }

    /// The last word to everyone.
    pub fn end(&mut self, notice: &ViewerNotice) {
        for viewer in self.viewers.drain(..) {
            viewer.queue.push(Outgoing::Notice(notice.clone()));
            viewer.queue.push(Outgoing::End);
        }
        self.controller = None;
    }
}

//! What peers ask for, and who may ask for what.
//!
//! A frame that cannot be understood closes its connection and nothing else.

use std::time::Duration;

use agency_api::keeper::{
    Frame, FromKeeper, HOOK_TAG, InputSource, MAX_FRAME_BYTES, OLDEST_VERSION, Size, ToKeeper, VERSION,
    Welcome,
};
use agency_journal::BodyRef;

use crate::hold::Hold;
use crate::input::Receipt;
use crate::peer::Role;
use crate::probe::probe;
use crate::version::{self, Versions};

/// Then it is the others' turn: a probe takes a while, and a peer may ask for thousands.
const FRAMES_AT_ONCE: usize = 32;

const OURS: Versions = Versions { min: OLDEST_VERSION, max: VERSION };

/// A record has a header where the frame that brought it had none; both must fit a frame.
pub(crate) const MAX_RECORD_BYTES: usize = MAX_FRAME_BYTES - 4096;

/// What a hello says.
struct Hello {
    versions: Versions,
    epoch: u64,
    lifeline: bool,
}

impl Hold {
    /// Reads what a peer sent and does all that it asks.
    pub(crate) fn hear(&mut self, id: u64) {
        let Some(peer) = self.clients.get_mut(id) else { return };
        peer.hear();
        for _ in 0..FRAMES_AT_ONCE {
            let Some(peer) = self.clients.get_mut(id) else { return };
            match peer.next_frame() {
                Ok(Some(frame)) => self.on_frame(id, frame),
                Ok(None) => return,
                Err(_) => return peer.cut(),
            }
        }
    }

    fn on_frame(&mut self, id: u64, frame: Frame) {
        let Some(role) = self.clients.get_mut(id).map(|peer| peer.role) else { return };
        match (role, frame) {
            (Role::Stranger, Frame::Control(json)) => self.on_first_words(id, &json),
            (Role::Stranger, _) => self.cut(id),
            (_, Frame::Control(json)) => self.on_control(id, role, &json),
            // What the kernel says, only we say.
            (Role::Guest, Frame::Note { tag, .. }) if tag != HOOK_TAG => self.refuse(id, ONLY_A_DAEMON),
            (_, Frame::Note { tag, bytes }) => self.on_note(id, &tag, &bytes),
            (Role::Daemon { .. }, Frame::Input { source, id: input, bytes }) => {
                self.on_input(Receipt { peer: id, id: input }, source, bytes);
            }
            (Role::Daemon { .. }, Frame::Checkpoint { at_seq, bytes }) => {
                self.on_checkpoint(id, at_seq, &bytes)
            }
            (Role::Guest, Frame::Input { id: input, .. }) => {
                self.clients.refuse_input(Receipt { peer: id, id: input }, ONLY_A_DAEMON);
            }
            (Role::Guest, Frame::Checkpoint { .. }) => self.refuse(id, ONLY_A_DAEMON),
            // Records only ever come from us.
            (_, Frame::Record(_)) => self.cut(id),
        }
    }

    fn cut(&mut self, id: u64) {
        if let Some(peer) = self.clients.get_mut(id) {
            peer.cut();
        }
    }

    fn tell(&mut self, id: u64, message: &FromKeeper) {
        if let Some(peer) = self.clients.get_mut(id) {
            peer.tell(message);
        }
    }

    fn refuse(&mut self, id: u64, reason: &str) {
        self.tell(id, &FromKeeper::Refused { reason: reason.to_string() });
    }

    fn on_first_words(&mut self, id: u64, json: &[u8]) {
        match serde_json::from_slice(json) {
            Ok(ToKeeper::Hello { min, max, epoch, lifeline, .. }) => {
                self.on_hello(id, &Hello { versions: Versions { min, max }, epoch, lifeline });
            }
            Ok(_) => self.turn_away(id, "say hello first".to_string()),
            Err(_) => self.cut(id),
        }
    }

    fn turn_away(&mut self, id: u64, reason: String) {
        if let Some(peer) = self.clients.get_mut(id) {
            peer.tell(&FromKeeper::Refused { reason });
            peer.close_after_sending();
        }
    }

    fn on_hello(&mut self, id: u64, hello: &Hello) {
        let theirs = hello.versions;
        let Some(version) = version::common(OURS, theirs) else {
            let (ours_min, ours_max) = (OURS.min, OURS.max);
            let reason = format!(
                "this keeper speaks versions {ours_min} to {ours_max}, you speak {} to {}",
                theirs.min, theirs.max
            );
            return self.turn_away(id, reason);
        };
        match hello.epoch {
            0 => self.welcome(id, Role::Guest, version, false),
            epoch => match self.clients.fence(epoch) {
                Ok(()) => self.welcome(id, Role::Daemon { epoch }, version, hello.lifeline),
                Err(newer) => self.turn_away(id, format!("a newer daemon ({newer}) has been here")),
            },
        }
    }

    fn welcome(&mut self, id: u64, role: Role, version: u16, wants_lifeline: bool) {
        let lifeline = self.port.as_terminal().filter(|_| wants_lifeline);
        // A descriptor that cannot be duplicated is a lifeline less, not a connection less.
        let lifeline = lifeline.and_then(|terminal| terminal.master().try_clone_to_owned().ok());
        let message = FromKeeper::Welcome(self.welcome_text(version, lifeline.is_some()));
        if let Some(peer) = self.clients.get_mut(id) {
            peer.role = role;
            if let Some(lifeline) = lifeline {
                peer.attach(lifeline);
            }
            peer.tell(&message);
        }
        if let Some(cause) = self.ledger.trouble() {
            self.tell(id, &FromKeeper::Journal { cause: Some(cause) });
        }
        if role != Role::Guest {
            self.ledger.record_anchor(&mut self.clients);
        }
    }

    fn welcome_text(&self, version: u16, lifeline: bool) -> Welcome {
        let next_seq = self.ledger.next_seq();
        Welcome {
            version,
            build: env!("CARGO_PKG_VERSION").to_string(),
            run_id: self.run_id.clone(),
            keeper: self.tree.keeper.clone(),
            child: self.tree.child.clone(),
            oldest_seq: self.ledger.oldest_seq().unwrap_or(next_seq),
            next_seq,
            gone: self.state.life.is_gone(),
            lifeline,
            ended: self.ended(),
        }
    }

    fn on_control(&mut self, id: u64, role: Role, json: &[u8]) {
        let Ok(message) = serde_json::from_slice(json) else { return self.cut(id) };
        let is_daemon = role != Role::Guest;
        match message {
            ToKeeper::Follow { from_seq } => self.on_follow(id, from_seq),
            ToKeeper::Probe { id: asked } => self.on_probe(id, asked),
            ToKeeper::Hello { .. } => self.refuse(id, "hello was said before"),
            ToKeeper::Unknown => self.refuse(id, "this keeper does not know that message"),
            _ if !is_daemon => self.refuse(id, ONLY_A_DAEMON),
            ToKeeper::Resize { size } => self.on_resize(id, size),
            ToKeeper::Stop { grace_ms } => self.on_stop(id, grace_ms),
            ToKeeper::Environment { id: asked } => {
                let env = self.env.clone();
                self.tell(id, &FromKeeper::Environment { id: asked, env });
            }
            ToKeeper::CloseInput => self.on_close_input(id),
            ToKeeper::Dismiss => self.on_dismiss(id),
        }
    }

    fn on_follow(&mut self, id: u64, from_seq: u64) {
        // Who asks for more than there is (a journal that lost its end with the power) gets all that comes.
        let from_seq = from_seq.min(self.ledger.next_seq());
        let gone = self.state.life.is_gone().then(|| self.gone_message());
        let journal_next = self.clients.journal_next();
        if let Some(peer) = self.clients.get_mut(id) {
            peer.follow(from_seq);
            if let Some(gone) = &gone {
                peer.tell_at_the_end(gone, journal_next);
            }
        }
    }

    fn on_stop(&mut self, id: u64, grace_ms: u64) {
        let gone = self.state.life.is_gone().then(|| self.gone_message());
        if let Some(peer) = self.clients.get_mut(id) {
            peer.awaits_end = true;
            if let Some(gone) = &gone {
                peer.tell(gone);
            }
        }
        self.stop(Duration::from_millis(grace_ms.min(LONGEST_GRACE_MS)));
    }

    fn on_probe(&mut self, id: u64, asked: u64) {
        let probe = probe(&self.port, &self.tree, &self.clients.daemon_pids());
        self.tell(id, &FromKeeper::Probe { id: asked, probe });
    }

    fn on_resize(&mut self, id: u64, size: Size) {
        let resized = self.port.as_terminal().map(|terminal| terminal.resize(size));
        match resized {
            Some(Ok(())) => self.ledger.record(resize_body(size), &mut self.clients),
            Some(Err(err)) => self.refuse(id, &format!("cannot resize: {err}")),
            None => self.refuse(id, "pipes have no size"),
        }
    }

    fn on_close_input(&mut self, id: u64) {
        if self.port.as_terminal().is_some() {
            return self.refuse(id, "a terminal's input cannot be closed");
        }
        self.state.close_input = true;
    }

    fn on_dismiss(&mut self, id: u64) {
        if !self.state.life.is_gone() {
            return self.refuse(id, "the agent has not gone yet");
        }
        self.state.dismissed = true;
    }

    fn on_input(&mut self, from: Receipt, source: InputSource, bytes: Vec<u8>) {
        let reason = match () {
            () if !self.state.life.is_alive() => "the agent has exited",
            () if self.state.close_input || self.port.writable().is_none() => "the agent's input is closed",
            () if self.state.input.push(from, source, bytes) => return,
            () => "too much input is waiting already",
        };
        self.clients.refuse_input(from, reason);
    }

    fn on_checkpoint(&mut self, id: u64, at_seq: u64, bytes: &[u8]) {
        if bytes.len() > MAX_RECORD_BYTES {
            return self.refuse(id, "the checkpoint is too large");
        }
        self.ledger.record(BodyRef::Checkpoint { at_seq, bytes }, &mut self.clients);
        self.note_again();
    }

    fn on_note(&mut self, id: u64, tag: &str, bytes: &[u8]) {
        if bytes.len() > MAX_RECORD_BYTES {
            return self.refuse(id, "the note is too large");
        }
        self.ledger.record(BodyRef::Note { tag, bytes }, &mut self.clients);
    }
}

const ONLY_A_DAEMON: &str = "only a daemon may ask for that";

/// A day: longer is a mistake, and times must not overflow.
const LONGEST_GRACE_MS: u64 = 24 * 60 * 60 * 1000;

pub(crate) fn resize_body(size: Size) -> BodyRef<'static> {
    let Size { cols, rows, x_pixels, y_pixels } = size;
    BodyRef::Resize { cols, rows, x_pixels, y_pixels }
}

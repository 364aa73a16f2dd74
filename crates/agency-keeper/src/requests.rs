//! The requests of peers: which role may send which frame, and what the keeper does with it.
//!
//! A frame that cannot be parsed closes its connection and affects nothing else.

use std::time::Duration;

use agency_api::keeper::{
    Frame, FromKeeper, HOOK_TAG, InputSource, MAX_FRAME_BYTES, OLDEST_VERSION, Size, ToKeeper, VERSION,
    Welcome, newer_daemon_reason,
};
use agency_journal::BodyRef;

use crate::input::Receipt;
use crate::keeper::Keeper;
use crate::peer::Role;
use crate::probe::probe;
use crate::version::{self, Versions};

/// After this many frames of one peer, serve the others: a probe takes time, and a peer may ask for thousands.
const FRAMES_PER_ROUND: usize = 32;

const SUPPORTED: Versions = Versions { min: OLDEST_VERSION, max: VERSION };

/// A record has a header that the frame did not have; both must fit into one frame.
pub(crate) const MAX_RECORD_BYTES: usize = MAX_FRAME_BYTES - 4096;

/// The contents of a hello message.
struct Hello {
    versions: Versions,
    epoch: u64,
    lifeline: bool,
}

impl Keeper {
    /// Reads what a peer sent and serves its requests.
    pub(crate) fn serve_peer(&mut self, id: u64) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        peer.receive();
        for _ in 0..FRAMES_PER_ROUND {
            let Some(peer) = self.peers.get_mut(id) else { return };
            match peer.next_frame() {
                Ok(Some(frame)) => self.on_frame(id, frame),
                Ok(None) => return,
                Err(_) => return peer.cut(),
            }
        }
    }

    fn on_frame(&mut self, id: u64, frame: Frame) {
        let Some(role) = self.peers.get_mut(id).map(|peer| peer.role) else { return };
        match (role, frame) {
            (Role::Stranger, Frame::Control(json)) => self.on_first_message(id, &json),
            (Role::Stranger, _) => self.cut(id),
            (_, Frame::Control(json)) => self.on_control(id, role, &json),
            // Guests may only leave hook notes; all other tags are written by the keeper and the daemon.
            (Role::Guest, Frame::Note { tag, .. }) if tag != HOOK_TAG => self.refuse(id, ONLY_DAEMONS),
            (_, Frame::Note { tag, bytes }) => self.on_note(id, &tag, &bytes),
            (Role::Daemon { .. }, Frame::Input { source, id: input, bytes }) => {
                self.on_input(Receipt { peer: id, id: input }, source, bytes);
            }
            (Role::Daemon { .. }, Frame::Checkpoint { at_seq, bytes }) => {
                self.on_checkpoint(id, at_seq, &bytes)
            }
            (Role::Guest, Frame::Input { id: input, .. }) => {
                self.peers.refuse_input(Receipt { peer: id, id: input }, ONLY_DAEMONS);
            }
            (Role::Guest, Frame::Checkpoint { .. }) => self.refuse(id, ONLY_DAEMONS),
            // Only the keeper sends records.
            (_, Frame::Record(_)) => self.cut(id),
        }
    }

    fn cut(&mut self, id: u64) {
        if let Some(peer) = self.peers.get_mut(id) {
            peer.cut();
        }
    }

    fn send(&mut self, id: u64, message: &FromKeeper) {
        if let Some(peer) = self.peers.get_mut(id) {
            peer.send(message);
        }
    }

    fn refuse(&mut self, id: u64, reason: &str) {
        self.send(id, &FromKeeper::Refused { reason: reason.to_string() });
    }

    fn on_first_message(&mut self, id: u64, json: &[u8]) {
        match serde_json::from_slice(json) {
            Ok(ToKeeper::Hello { min, max, epoch, lifeline, .. }) => {
                self.on_hello(id, &Hello { versions: Versions { min, max }, epoch, lifeline });
            }
            Ok(_) => self.refuse_and_close(id, "the first message must be hello".to_string()),
            Err(_) => self.cut(id),
        }
    }

    fn refuse_and_close(&mut self, id: u64, reason: String) {
        if let Some(peer) = self.peers.get_mut(id) {
            peer.send(&FromKeeper::Refused { reason });
            peer.close_after_sending();
        }
    }

    fn on_hello(&mut self, id: u64, hello: &Hello) {
        let theirs = hello.versions;
        let Some(version) = version::common(SUPPORTED, theirs) else {
            let (min, max) = (SUPPORTED.min, SUPPORTED.max);
            let reason = format!(
                "this keeper supports versions {min} to {max}, the caller supports {} to {}",
                theirs.min, theirs.max
            );
            return self.refuse_and_close(id, reason);
        };
        match hello.epoch {
            0 => self.welcome(id, Role::Guest, version, false),
            epoch => match self.peers.accept_daemon(epoch) {
                Ok(()) => self.welcome(id, Role::Daemon { epoch }, version, hello.lifeline),
                Err(newer) => self.refuse_and_close(id, newer_daemon_reason(newer)),
            },
        }
    }

    fn welcome(&mut self, id: u64, role: Role, version: u16, wants_lifeline: bool) {
        let lifeline = self.port.as_terminal().filter(|_| wants_lifeline);
        // If the descriptor cannot be duplicated, the peer connects without a lifeline.
        let lifeline = lifeline.and_then(|terminal| terminal.master().try_clone_to_owned().ok());
        let message = FromKeeper::Welcome(self.welcome_message(version, lifeline.is_some()));
        if let Some(peer) = self.peers.get_mut(id) {
            peer.role = role;
            if let Some(lifeline) = lifeline {
                peer.attach_lifeline(lifeline);
            }
            peer.send(&message);
        }
        if let Some(cause) = self.journal.trouble() {
            self.send(id, &FromKeeper::Journal { cause: Some(cause) });
        }
        if role != Role::Guest {
            self.journal.continue_after_damage();
            self.journal.record_anchor(&mut self.peers);
        }
    }

    fn welcome_message(&self, version: u16, lifeline: bool) -> Welcome {
        let next_seq = self.journal.next_seq();
        Welcome {
            version,
            build: env!("CARGO_PKG_VERSION").to_string(),
            run_id: self.run_id.clone(),
            keeper: self.tree.keeper.clone(),
            child: self.tree.child.clone(),
            oldest_seq: self.journal.oldest_seq().unwrap_or(next_seq),
            next_seq,
            gone: self.state.life.is_gone(),
            lifeline,
            ended: self.ended_processes(),
            owner: self.owner.clone(),
            epoch: self.peers.epoch(),
        }
    }

    fn on_control(&mut self, id: u64, role: Role, json: &[u8]) {
        let Ok(message) = serde_json::from_slice(json) else { return self.cut(id) };
        let is_daemon = role != Role::Guest;
        match message {
            ToKeeper::Follow { from_seq } => self.on_follow(id, from_seq),
            ToKeeper::Probe { id: request } => self.on_probe(id, request),
            ToKeeper::Hello { .. } => self.refuse(id, "hello was already sent"),
            ToKeeper::Unknown => self.refuse(id, "this keeper does not know that message"),
            _ if !is_daemon => self.refuse(id, ONLY_DAEMONS),
            ToKeeper::Resize { size } => self.on_resize(id, size),
            ToKeeper::Stop { grace_ms } => self.on_stop(id, grace_ms),
            ToKeeper::Environment { id: request } => {
                let env = self.env.clone();
                self.send(id, &FromKeeper::Environment { id: request, env });
            }
            ToKeeper::CloseInput => self.on_close_input(id),
            ToKeeper::Dismiss => self.on_dismiss(id),
        }
    }

    fn on_follow(&mut self, id: u64, from_seq: u64) {
        // A journal may lose its end in a power failure; a peer that asks for more than there is gets what comes next.
        let from_seq = from_seq.min(self.journal.next_seq());
        let gone = self.state.life.is_gone().then(|| self.gone_message());
        let journal_next = self.peers.journal_next();
        if let Some(peer) = self.peers.get_mut(id) {
            peer.follow(from_seq);
            if let Some(gone) = &gone {
                peer.send_at_end(gone, journal_next);
            }
        }
    }

    fn on_stop(&mut self, id: u64, grace_ms: u64) {
        let gone = self.state.life.is_gone().then(|| self.gone_message());
        if let Some(peer) = self.peers.get_mut(id) {
            peer.awaits_end = true;
            if let Some(gone) = &gone {
                peer.send(gone);
            }
        }
        self.stop(Duration::from_millis(grace_ms.min(LONGEST_GRACE_MS)));
    }

    fn on_probe(&mut self, id: u64, request: u64) {
        let probe = probe(&self.port, &self.tree, &self.peers.daemon_pids());
        self.send(id, &FromKeeper::Probe { id: request, probe });
    }

    fn on_resize(&mut self, id: u64, size: Size) {
        let resized = self.port.as_terminal().map(|terminal| terminal.resize(size));
        match resized {
            Some(Ok(())) => self.journal.record(resize_body(size), &mut self.peers),
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
        self.peers.refuse_input(from, reason);
    }

    fn on_checkpoint(&mut self, id: u64, at_seq: u64, bytes: &[u8]) {
        if bytes.len() > MAX_RECORD_BYTES {
            return self.refuse(id, "the checkpoint is too large");
        }
        self.journal.record(BodyRef::Checkpoint { at_seq, bytes }, &mut self.peers);
        self.repeat_probe_note();
    }

    fn on_note(&mut self, id: u64, tag: &str, bytes: &[u8]) {
        if bytes.len() > MAX_RECORD_BYTES {
            return self.refuse(id, "the note is too large");
        }
        self.journal.record(BodyRef::Note { tag, bytes }, &mut self.peers);
    }
}

const ONLY_DAEMONS: &str = "only a daemon may ask for that";

/// One day. Longer is a mistake, and times must not overflow.
const LONGEST_GRACE_MS: u64 = 24 * 60 * 60 * 1000;

pub(crate) fn resize_body(size: Size) -> BodyRef<'static> {
    let Size { cols, rows, x_pixels, y_pixels } = size;
    BodyRef::Resize { cols, rows, x_pixels, y_pixels }
}

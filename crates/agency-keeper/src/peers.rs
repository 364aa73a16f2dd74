//! All connected peers, and which of them is the current daemon.
//!
//! Invariant: when a daemon says hello, connections of daemons with an older epoch are closed.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use agency_api::keeper::FromKeeper;
use agency_journal::{Record, Records};

use crate::input::Receipt;
use crate::peer::{Peer, Role};

/// Enough for a daemon, its predecessor and several hooks at the same time.
const MAX_PEERS: usize = 64;

#[derive(Default)]
pub(crate) struct Peers {
    peers: Vec<Peer>,
    next_id: u64,
    /// The epoch of the newest daemon that said hello.
    epoch: u64,
    /// The sequence number after the last record that was passed on to the peers.
    journal_next: u64,
}

impl Peers {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter()
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut Peer> {
        self.peers.iter_mut().find(|peer| peer.id == id)
    }

    pub(crate) fn admit(&mut self, stream: UnixStream) {
        if !matches!(agency_api::socket::peer_is_us(&stream), Ok(true)) {
            return;
        }
        if self.peers.len() >= MAX_PEERS && !self.drop_guest() {
            return;
        }
        self.next_id += 1;
        // If the stream cannot be set up, dropping it closes the connection, which the peer notices.
        self.peers.extend(Peer::new(self.next_id, stream));
    }

    /// Drops a peer that is not a daemon, so that guests cannot keep the daemon out.
    fn drop_guest(&mut self) -> bool {
        let least = self.peers.iter().position(|peer| !peer.is_daemon());
        least.map(|index| self.peers.remove(index)).is_some()
    }

    /// Accepts a daemon with this epoch and cuts off older ones. `Err` holds the epoch of a newer daemon.
    pub(crate) fn accept_daemon(&mut self, epoch: u64) -> Result<(), u64> {
        if epoch < self.epoch {
            return Err(self.epoch);
        }
        self.epoch = epoch;
        for peer in &mut self.peers {
            if matches!(peer.role, Role::Daemon { epoch: theirs } if theirs < epoch) {
                peer.cut();
            }
        }
        Ok(())
    }

    /// The epoch of the newest daemon that said hello.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The pids of connected daemons. They are never part of the agent's tree, even if they descend from it.
    pub(crate) fn daemon_pids(&self) -> Vec<i32> {
        self.peers.iter().filter(|peer| peer.is_daemon()).filter_map(|peer| peer.pid).collect()
    }

    pub(crate) fn confirm_input(&mut self, receipt: Receipt) {
        if let Some(peer) = self.get_mut(receipt.peer) {
            peer.send(&FromKeeper::InputTaken { id: receipt.id });
        }
    }

    pub(crate) fn refuse_input(&mut self, receipt: Receipt, reason: &str) {
        if let Some(peer) = self.get_mut(receipt.peer) {
            peer.send(&FromKeeper::InputRefused { id: receipt.id, reason: reason.to_string() });
        }
    }

    pub(crate) fn send_to_all(&mut self, message: &FromKeeper) {
        for peer in self.peers.iter_mut().filter(|peer| peer.role != Role::Stranger) {
            peer.send(message);
        }
    }

    pub(crate) fn send_to_all_at_end(&mut self, message: &FromKeeper) {
        let journal_next = self.journal_next;
        for peer in self.peers.iter_mut().filter(|peer| peer.role != Role::Stranger) {
            peer.send_at_end(message, journal_next);
        }
    }

    pub(crate) fn pass_on(&mut self, records: Records<'_>) {
        for record in records {
            self.journal_next = record.header.seq + 1;
            for peer in &mut self.peers {
                peer.pass_on(record);
            }
        }
    }

    pub(crate) fn pass_on_unwritten(&mut self, record: &Record) {
        let mut encoded = Vec::new();
        record.encode_into(&mut encoded);
        for peer in &mut self.peers {
            peer.pass_on_unwritten(&encoded, self.journal_next);
        }
    }

    /// From here until [`Peers::send_by`], messages may wait so that several go out in one write.
    pub(crate) fn delay_messages(&mut self) {
        self.peers.iter_mut().for_each(Peer::delay_messages);
    }

    pub(crate) fn send_by(&mut self, when: Instant) {
        self.peers.iter_mut().for_each(|peer| peer.send_by(when));
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.peers.iter().filter_map(Peer::deadline).min()
    }

    pub(crate) fn tick(&mut self, now: Instant) {
        self.peers.iter_mut().for_each(|peer| peer.tick(now));
    }

    pub(crate) fn release_memory(&mut self) {
        self.peers.iter_mut().for_each(Peer::release_memory);
    }

    /// Sends to `id` everything that is pending for it.
    pub(crate) fn send_pending(&mut self, id: u64, journal_dir: &Path) {
        let journal_next = self.journal_next;
        if let Some(peer) = self.get_mut(id) {
            peer.send_pending(journal_dir, journal_next);
        }
    }

    /// Peers that sent more frames than one round serves.
    pub(crate) fn with_pending_frames(&self) -> impl Iterator<Item = u64> {
        self.peers.iter().filter(|peer| peer.has_pending_frames()).map(|peer| peer.id)
    }

    pub(crate) fn journal_next(&self) -> u64 {
        self.journal_next
    }

    pub(crate) fn forget_closed(&mut self) {
        self.peers.retain(|peer| !peer.is_over());
    }
}

//! Everybody who is connected, and who of them is the daemon of today.
//!
//! Invariant: connections of a daemon older than the newest that said hello are closed.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use agency_api::keeper::FromKeeper;
use agency_journal::{Record, Records};

use crate::input::Receipt;
use crate::peer::{Peer, Role};

/// Enough for a daemon, its predecessor and some hooks at once.
const MAX_PEERS: usize = 64;

#[derive(Default)]
pub(crate) struct Clients {
    peers: Vec<Peer>,
    next_id: u64,
    /// The newest daemon that said hello.
    epoch: u64,
    /// The next record of the journal, as far as it has been passed on.
    journal_next: u64,
}

impl Clients {
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
        if self.peers.len() >= MAX_PEERS && !self.make_room() {
            return;
        }
        self.next_id += 1;
        // A stream that cannot be set up is closed by dropping it; who connected sees that.
        self.peers.extend(Peer::new(self.next_id, stream));
    }

    /// Somebody who only looks must not keep the daemon out.
    fn make_room(&mut self) -> bool {
        let least = self.peers.iter().position(|peer| !peer.is_daemon());
        least.map(|index| self.peers.remove(index)).is_some()
    }

    /// A daemon says which epoch it is. `Err`: a newer one was here.
    pub(crate) fn fence(&mut self, epoch: u64) -> Result<(), u64> {
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

    /// The daemons that are connected: whatever they descend from, they are no part of an agent.
    pub(crate) fn daemon_pids(&self) -> Vec<i32> {
        self.peers.iter().filter(|peer| peer.is_daemon()).filter_map(|peer| peer.pid).collect()
    }

    pub(crate) fn confirm_input(&mut self, receipt: Receipt) {
        if let Some(peer) = self.get_mut(receipt.peer) {
            peer.tell(&FromKeeper::InputTaken { id: receipt.id });
        }
    }

    pub(crate) fn refuse_input(&mut self, receipt: Receipt, reason: &str) {
        if let Some(peer) = self.get_mut(receipt.peer) {
            peer.tell(&FromKeeper::InputRefused { id: receipt.id, reason: reason.to_string() });
        }
    }

    pub(crate) fn tell_all(&mut self, message: &FromKeeper) {
        for peer in self.peers.iter_mut().filter(|peer| peer.role != Role::Stranger) {
            peer.tell(message);
        }
    }

    pub(crate) fn tell_all_at_the_end(&mut self, message: &FromKeeper) {
        let journal_next = self.journal_next;
        for peer in self.peers.iter_mut().filter(|peer| peer.role != Role::Stranger) {
            peer.tell_at_the_end(message, journal_next);
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

    /// What follows may wait for company, until [`Clients::send_by`].
    pub(crate) fn hold_back(&mut self) {
        self.peers.iter_mut().for_each(Peer::hold_back);
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

    pub(crate) fn relax(&mut self) {
        self.peers.iter_mut().for_each(Peer::relax);
    }

    /// Sends to `id` what waits for it.
    pub(crate) fn speak(&mut self, id: u64, journal: &Path) {
        let journal_next = self.journal_next;
        if let Some(peer) = self.get_mut(id) {
            peer.speak(journal, journal_next);
        }
    }

    /// Who has said more than was done in the last turn.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = u64> {
        self.peers.iter().filter(|peer| peer.waits_for_its_turn()).map(|peer| peer.id)
    }

    pub(crate) fn journal_next(&self) -> u64 {
        self.journal_next
    }

    pub(crate) fn forget_closed(&mut self) {
        self.peers.retain(|peer| !peer.is_over());
    }
}

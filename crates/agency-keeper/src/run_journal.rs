//! The run's journal as the keeper writes it: records with their time, anchors after clock jumps, and full disks.
//!
//! A full disk never stops the agent. Followers still get records that cannot be written; the keeper counts the
//! lost bytes and records them as a gap as soon as there is space.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agency_api::keeper::FromKeeper;
use agency_journal::{Body, BodyRef, Chunk, GapCause, Limits, Record, Tail, Writer, records};

use crate::anchor::Clocks;
use crate::peers::Peers;

/// How long to wait before trying a full disk again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(crate) struct RunJournal {
    writer: Writer,
    dir: PathBuf,
    anchor: Option<Clocks>,
    trouble: Option<Trouble>,
    /// Records that must not be lost; written as soon as there is space again.
    owed: Vec<Body>,
}

struct Trouble {
    cause: String,
    retry_at: Instant,
}

impl RunJournal {
    pub(crate) fn create(dir: &Path, limits: Limits) -> io::Result<RunJournal> {
        Ok(RunJournal::with_writer(Writer::create(dir, limits)?, dir))
    }

    /// Continues the journal of a keeper that was killed.
    pub(crate) fn recover(dir: &Path, limits: Limits) -> io::Result<RunJournal> {
        Ok(RunJournal::with_writer(Writer::recover(dir, limits)?, dir))
    }

    fn with_writer(writer: Writer, dir: &Path) -> RunJournal {
        RunJournal { writer, dir: dir.to_path_buf(), anchor: None, trouble: None, owed: Vec::new() }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn next_seq(&self) -> u64 {
        self.writer.next_seq()
    }

    /// The oldest record that followers can still get.
    pub(crate) fn oldest_seq(&self) -> io::Result<u64> {
        let mut tail = Tail::open(&self.dir, 1)?;
        let mut found = Vec::new();
        while let Chunk::Sealed { .. } = tail.read(1, &mut found)? {}
        match records(&found).next().map(|first| first.decode()) {
            // This gap replaces all records deleted by retention; the first real record comes after it.
            Some(Record { body: Body::Gap { cause: GapCause::Retention, .. }, .. }) => Ok(tail.next_seq()),
            Some(record) => Ok(record.seq),
            None => Ok(self.next_seq()),
        }
    }

    pub(crate) fn record<'b>(&mut self, body: impl Into<BodyRef<'b>>, peers: &mut Peers) {
        let now = Clocks::now();
        if self.anchor.is_none_or(|anchor| now.drifted_from(&anchor)) {
            self.append_anchor(now, peers);
        }
        self.append(now, body.into(), peers);
    }

    /// Writes the first record of this keeper, before any anchor.
    pub(crate) fn record_first(&mut self, body: BodyRef<'_>, peers: &mut Peers) {
        self.append(Clocks::now(), body, peers);
    }

    /// Writes an anchor, which ties the journal to the wall clock.
    pub(crate) fn record_anchor(&mut self, peers: &mut Peers) {
        self.append_anchor(Clocks::now(), peers);
    }

    fn append_anchor(&mut self, now: Clocks, peers: &mut Peers) {
        self.anchor = Some(now);
        self.append(now, now.anchor(), peers);
    }

    fn append(&mut self, now: Clocks, body: BodyRef<'_>, peers: &mut Peers) {
        // Owed records first, so that the order stays the same.
        let written = self.write_owed(now, peers).and_then(|()| {
            let appended = self.writer.append(now.monotonic_ns, body)?;
            peers.pass_on(appended.records());
            Ok(())
        });
        if let Err(err) = written {
            self.enter_trouble(&err, peers);
            self.handle_unwritten(now, body, peers);
        }
    }

    /// Handles a record that was not written: followers get it without a sequence number.
    fn handle_unwritten(&mut self, now: Clocks, body: BodyRef<'_>, peers: &mut Peers) {
        let owned = to_owned_body(&body);
        peers.pass_on_unwritten(&Record {
            seq: 0,
            output_offset: self.writer.output_offset(),
            at_ns: now.monotonic_ns,
            body: owned.clone(),
        });
        match body {
            BodyRef::Exit { .. } | BodyRef::Resize { .. } => self.owed.push(owned),
            BodyRef::Anchor { .. } => self.anchor = None,
            _ => self.writer.note_lost(body.output_advance()),
        }
    }

    fn write_owed(&mut self, now: Clocks, peers: &mut Peers) -> io::Result<()> {
        while let Some(body) = self.owed.first() {
            peers.pass_on(self.writer.append(now.monotonic_ns, body)?.records());
            self.owed.remove(0);
        }
        Ok(())
    }

    fn enter_trouble(&mut self, err: &io::Error, peers: &mut Peers) {
        let cause = err.to_string();
        if self.trouble.is_none() {
            peers.send_to_all(&FromKeeper::Journal { cause: Some(cause.clone()) });
        }
        self.trouble = Some(Trouble { cause, retry_at: Instant::now() + RETRY_AFTER });
    }

    /// Begins a new segment if the current one was deleted or cut: its records are lost for readers, and later ones must
    /// not be.
    pub(crate) fn continue_after_damage(&mut self) {
        // If this fails, the writer tries again when the segment is full.
        self.writer.continue_after_damage().ok();
    }

    pub(crate) fn release_memory(&mut self) {
        self.writer.release_memory();
    }

    /// Why the journal cannot be written, if it cannot.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.as_ref().map(|trouble| trouble.cause.clone())
    }

    /// Whether the journal still lacks records that must not be lost: an exit, a resize, or the gap of lost output.
    pub(crate) fn owes_records(&self) -> bool {
        !self.owed.is_empty() || self.writer.owes_gap()
    }

    /// The last attempt to write owed records before the keeper exits.
    pub(crate) fn write_owed_before_exit(&mut self, peers: &mut Peers) {
        if self.owes_records() {
            self.record_anchor(peers);
        }
    }

    /// When to try the disk again: a while after the last failed write.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.trouble.as_ref().map(|trouble| trouble.retry_at)
    }

    /// Tries the disk again by writing an anchor, which is small and valid at any time.
    pub(crate) fn tick(&mut self, now: Instant, peers: &mut Peers) {
        if self.deadline().is_none_or(|retry_at| retry_at > now) {
            return;
        }
        self.record_anchor(peers);
        // Small records sometimes still fit on a full disk, so only a time without failures ends the trouble.
        if self.deadline().is_some_and(|retry_at| retry_at <= now) {
            self.trouble = None;
            peers.send_to_all(&FromKeeper::Journal { cause: None });
        }
    }
}

fn to_owned_body(body: &BodyRef<'_>) -> Body {
    match *body {
        BodyRef::Output { stream, bytes } => Body::Output { stream, bytes: bytes.to_vec() },
        BodyRef::Input { source, bytes } => Body::Input { source, bytes: bytes.to_vec() },
        BodyRef::HiddenInput { source, len } => Body::HiddenInput { source, len },
        BodyRef::Resize { cols, rows, x_pixels, y_pixels } => Body::Resize { cols, rows, x_pixels, y_pixels },
        BodyRef::Exit { status, stopped_by } => Body::Exit { status, stopped_by },
        BodyRef::Note { tag, bytes } => Body::Note { tag: tag.to_string(), bytes: bytes.to_vec() },
        BodyRef::Anchor { wall_unix_ns, boottime_ns, boot_id } => {
            Body::Anchor { wall_unix_ns, boottime_ns, boot_id }
        }
        BodyRef::Gap { output_bytes, cause } => Body::Gap { output_bytes, cause },
        BodyRef::Checkpoint { at_seq, bytes } => Body::Checkpoint { at_seq, bytes: bytes.to_vec() },
        BodyRef::Unknown { kind, flags, bytes } => Body::Unknown { kind, flags, bytes: bytes.to_vec() },
    }
}

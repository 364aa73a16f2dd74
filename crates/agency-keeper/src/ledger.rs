//! The run's journal as the keeper writes it: every record with its time, anchors where clocks jumped,
//! and what to do when the disk takes no more.
//!
//! A full disk never stops the agent: what cannot be written is still shown to those who watch, counted,
//! and recorded as a gap as soon as there is room.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agency_api::keeper::FromKeeper;
use agency_journal::{Body, BodyRef, Chunk, GapCause, Limits, Record, Tail, Writer, records};

use crate::anchor::Clocks;
use crate::clients::Clients;

/// How often a disk that was full is asked again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(crate) struct Ledger {
    writer: Writer,
    dir: PathBuf,
    anchor: Option<Clocks>,
    trouble: Option<Trouble>,
    /// Records that must not be lost: written when there is room again.
    owed: Vec<Body>,
}

struct Trouble {
    cause: String,
    retry_at: Instant,
}

impl Ledger {
    pub(crate) fn create(dir: &Path, limits: Limits) -> io::Result<Ledger> {
        Ok(Ledger::around(Writer::create(dir, limits)?, dir))
    }

    /// Goes on with the journal of a keeper that was killed.
    pub(crate) fn recover(dir: &Path, limits: Limits) -> io::Result<Ledger> {
        Ok(Ledger::around(Writer::recover(dir, limits)?, dir))
    }

    fn around(writer: Writer, dir: &Path) -> Ledger {
        Ledger { writer, dir: dir.to_path_buf(), anchor: None, trouble: None, owed: Vec::new() }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn next_seq(&self) -> u64 {
        self.writer.next_seq()
    }

    /// The oldest record that can still be sent.
    pub(crate) fn oldest_seq(&self) -> io::Result<u64> {
        let mut tail = Tail::open(&self.dir, 1)?;
        let mut found = Vec::new();
        while let Chunk::Sealed { .. } = tail.read(1, &mut found)? {}
        match records(&found).next().map(|first| first.decode()) {
            // It stands for all that is missing; the first real record comes after it.
            Some(Record { body: Body::Gap { cause: GapCause::Retention, .. }, .. }) => Ok(tail.next_seq()),
            Some(record) => Ok(record.seq),
            None => Ok(self.next_seq()),
        }
    }

    pub(crate) fn record<'b>(&mut self, body: impl Into<BodyRef<'b>>, clients: &mut Clients) {
        let now = Clocks::now();
        if self.anchor.is_none_or(|anchor| now.drifted_from(&anchor)) {
            self.append_anchor(now, clients);
        }
        self.append(now, body.into(), clients);
    }

    /// The first record of this keeper, before any anchor.
    pub(crate) fn record_first(&mut self, body: BodyRef<'_>, clients: &mut Clients) {
        self.append(Clocks::now(), body, clients);
    }

    /// Ties the journal to the wall clock here.
    pub(crate) fn record_anchor(&mut self, clients: &mut Clients) {
        self.append_anchor(Clocks::now(), clients);
    }

    fn append_anchor(&mut self, now: Clocks, clients: &mut Clients) {
        self.anchor = Some(now);
        self.append(now, now.anchor(), clients);
    }

    fn append(&mut self, now: Clocks, body: BodyRef<'_>, clients: &mut Clients) {
        // What is owed goes first: the order must not change.
        let written = self.settle(now, clients).and_then(|()| {
            let appended = self.writer.append(now.monotonic_ns, body)?;
            clients.pass_on(appended.records());
            Ok(())
        });
        if let Err(err) = written {
            self.in_trouble(&err, clients);
            self.lose(now, body, clients);
        }
    }

    /// Nothing in the file; those who watch see it all the same, under no number.
    fn lose(&mut self, now: Clocks, body: BodyRef<'_>, clients: &mut Clients) {
        let owned = owned(&body);
        clients.pass_on_unwritten(&Record {
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

    fn settle(&mut self, now: Clocks, clients: &mut Clients) -> io::Result<()> {
        while let Some(body) = self.owed.first() {
            clients.pass_on(self.writer.append(now.monotonic_ns, body)?.records());
            self.owed.remove(0);
        }
        Ok(())
    }

    fn in_trouble(&mut self, err: &io::Error, clients: &mut Clients) {
        let cause = err.to_string();
        if self.trouble.is_none() {
            clients.tell_all(&FromKeeper::Journal { cause: Some(cause.clone()) });
        }
        self.trouble = Some(Trouble { cause, retry_at: Instant::now() + RETRY_AFTER });
    }

    pub(crate) fn relax(&mut self) {
        self.writer.relax();
    }

    /// Why the journal cannot be written, if it cannot.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.as_ref().map(|trouble| trouble.cause.clone())
    }

    /// The last chance for what is owed.
    pub(crate) fn try_once_more(&mut self, clients: &mut Clients) {
        if !self.owed.is_empty() {
            self.record_anchor(clients);
        }
    }

    /// When to look whether there is room again: a while after the last thing that did not fit.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.trouble.as_ref().map(|trouble| trouble.retry_at)
    }

    /// Tries the disk again; an anchor is a small thing that is right at any time.
    pub(crate) fn tick(&mut self, now: Instant, clients: &mut Clients) {
        if self.deadline().is_none_or(|retry_at| retry_at > now) {
            return;
        }
        self.record_anchor(clients);
        // On a full disk small things still fit now and then: only a quiet while means that it is over.
        if self.deadline().is_some_and(|retry_at| retry_at <= now) {
            self.trouble = None;
            clients.tell_all(&FromKeeper::Journal { cause: None });
        }
    }
}

fn owned(body: &BodyRef<'_>) -> Body {
    match *body {
        BodyRef::Output { stream, bytes } => Body::Output { stream, bytes: bytes.to_vec() },
        BodyRef::Input { source, bytes } => Body::Input { source, bytes: bytes.to_vec() },
        BodyRef::HiddenInput { source, len } => Body::HiddenInput { source, len },
        BodyRef::Resize { cols, rows, x_pixels, y_pixels } => Body::Resize { cols, rows, x_pixels, y_pixels },
        BodyRef::Exit { status, asked } => Body::Exit { status, asked },
        BodyRef::Note { tag, bytes } => Body::Note { tag: tag.to_string(), bytes: bytes.to_vec() },
        BodyRef::Anchor { wall_unix_ns, boottime_ns, boot_id } => {
            Body::Anchor { wall_unix_ns, boottime_ns, boot_id }
        }
        BodyRef::Gap { output_bytes, cause } => Body::Gap { output_bytes, cause },
        BodyRef::Checkpoint { at_seq, bytes } => Body::Checkpoint { at_seq, bytes: bytes.to_vec() },
        BodyRef::Unknown { kind, flags, bytes } => Body::Unknown { kind, flags, bytes: bytes.to_vec() },
    }
}

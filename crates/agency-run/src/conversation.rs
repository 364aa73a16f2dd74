//! The journal of a run folded into its conversation: the same code for live, adopted and ended runs.
//!
//! One conversation may span several runs of a task. The journals of the earlier runs are folded first.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use agency_api::event::{self, ApprovalDecision, EventData};
use agency_api::{Failure, FailureCode, chat};
use agency_core::agent_state::Timing;
use agency_core::conversation::{Approval, ApprovalOutcome, Entry, Item, TurnEnd};
use agency_core::exit::RunExit;
use agency_driver::acp::ConnectionNote;
use agency_driver::conversation::{ConversationEvent, ModeChange, ModeChanger};
use agency_driver::protocol_run::{ConversationRun, ConversationTerms};
use agency_journal::{Body, Reader, Record, Stream};
use agency_store::exit_notes;
use serde::{Deserialize, Serialize};

pub use crate::chat_view::wall_time;
use crate::chat_view::{
    action_view, approval_view, entry_view, shorten_text, shorten_value, status_view, usage_view,
};
use crate::fold::{run_exit, unseal};

/// The tag of notes that say who answers an approval: JSON of a [`Decision`].
pub const DECISION: &str = "decision";
/// The tag of notes that say when a session gained and lost its connection: JSON of a [`ConnectionNote`].
pub const CONNECTION: &str = "connection";

/// The name of the person or rule that answers an approval, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The approval.
    pub id: String,
    /// The name of the answerer.
    pub by: String,
    /// The reason that they give.
    #[serde(default)]
    pub why: Option<String>,
}

/// One run's part of a conversation.
#[derive(Debug, Clone)]
pub struct ConversationSource {
    /// The terms under which the driver reads it.
    pub terms: ConversationTerms,
    /// The journal of the run.
    pub journal: PathBuf,
}

impl Decision {
    /// The decision in a record, if it is such a note.
    pub fn in_record(body: &Body) -> Option<Decision> {
        let Body::Note { tag, bytes } = body else { return None };
        (tag == DECISION).then(|| serde_json::from_slice(bytes).ok()).flatten()
    }
}

/// A conversation as far as its journals have been folded.
pub struct ConversationFold {
    /// The driver's view of the conversation.
    pub run: ConversationRun,
    /// The first record that has not been folded.
    pub next_seq: u64,
    /// How the run ended.
    pub exit: Option<RunExit>,
    /// When the agent last sent something.
    pub heard_at: Duration,
    /// When the agent's input last got something.
    pub entered_at: Duration,
    /// When the agent's process was last lost.
    pub lost_at: Duration,
    terms: ConversationTerms,
    timing: Timing,
    has_begun: bool,
    /// The entries of answered approvals, and when they were answered, since 1970.
    decided: Vec<(u64, Duration)>,
    /// How far the wall clock is ahead of the journal's clock.
    wall_offset: Duration,
    /// The session of the earlier run.
    inherited: Option<String>,
}

/// An approval that has been answered.
#[derive(Debug, Clone, PartialEq)]
pub struct PastDecision {
    /// When, since 1970.
    pub at: Duration,
    /// The approval with its answer.
    pub approval: chat::Approval,
}

/// Something that happened in a conversation, and when.
#[derive(Debug)]
pub struct TimedEvent {
    /// The event.
    pub event: ConversationEvent,
    /// On the journal's clock.
    pub at: Duration,
}

impl ConversationFold {
    /// Without any record.
    pub fn fresh(terms: ConversationTerms, timing: Timing) -> ConversationFold {
        ConversationFold {
            run: ConversationRun::began(terms.clone(), timing, Duration::ZERO),
            next_seq: 0,
            exit: None,
            heard_at: Duration::ZERO,
            entered_at: Duration::ZERO,
            lost_at: Duration::ZERO,
            terms,
            timing,
            has_begun: false,
            decided: Vec::new(),
            wall_offset: Duration::ZERO,
            inherited: None,
        }
    }

    /// Blocking. Folds the earlier runs, oldest first, then the last one. Also returns the events of the last run from the
    /// record `events_from` on.
    pub fn rebuild(
        before: &[ConversationSource],
        last: &ConversationSource,
        timing: Timing,
        events_from: u64,
    ) -> io::Result<(ConversationFold, Vec<TimedEvent>)> {
        let first = before.first().unwrap_or(last);
        let mut fold = ConversationFold::fresh(first.terms.clone(), timing);
        for earlier in before {
            match fold.read(earlier, u64::MAX) {
                Ok(_) => {}
                // The rest of the conversation is still useful.
                Err(cause) => {
                    tracing::warn!(journal = %earlier.journal.display(), %cause, "cannot read a part of a conversation");
                }
            }
            fold.has_begun = false;
        }
        let events = fold.read(last, events_from)?;
        Ok((fold, events))
    }

    fn read(&mut self, source: &ConversationSource, events_from: u64) -> io::Result<Vec<TimedEvent>> {
        (self.next_seq, self.exit) = (0, None);
        self.terms = source.terms.clone();
        let mut reader = Reader::open(&source.journal, unseal)?;
        let mut events = Vec::new();
        while let Some(record) = reader.next()? {
            let of_record = self.record(&record);
            if record.seq >= events_from {
                events.extend(of_record);
            }
        }
        for note in exit_notes::read(&source.journal) {
            let at = note.at().saturating_sub(self.wall_offset);
            self.run.on_exit_note(note.item, at);
        }
        Ok(events)
    }

    /// Folds one record and returns what happened in it.
    pub fn record(&mut self, record: &Record) -> Vec<TimedEvent> {
        let at = Duration::from_nanos(record.at_ns);
        if !std::mem::replace(&mut self.has_begun, true) {
            let fresh = ConversationRun::began(self.terms.clone(), self.timing, at);
            let before = std::mem::replace(&mut self.run, fresh);
            self.wall_offset = wall_offset(record).unwrap_or_default();
            self.inherited = before.session_id().map(str::to_owned);
            self.run = before.continued(self.terms.clone(), self.timing, at, self.wall_offset);
        }
        // A record that the disk did not take has no number.
        if record.seq > 0 {
            self.next_seq = record.seq + 1;
        }
        let events = self.fold_body(record, at);
        self.remember_decisions(&events, at);
        events.into_iter().map(|event| TimedEvent { event, at }).collect()
    }

    /// Says what time it is. Returns what a time limit that has passed brings about.
    pub fn tick(&mut self, now: Duration) -> Vec<TimedEvent> {
        let events = self.run.tick(now);
        events.into_iter().map(|event| TimedEvent { event, at: now }).collect()
    }

    /// The session that the agent has named in this run. The session of the earlier run may not be its own.
    pub fn session(&self) -> Option<&str> {
        self.run.session_id().filter(|id| self.inherited.as_deref() != Some(*id))
    }

    fn remember_decisions(&mut self, events: &[ConversationEvent], at: Duration) {
        for event in events {
            let ConversationEvent::ApprovalDecided { id: decided, .. } = event else { continue };
            let entries = self.run.conversation().entries().iter().rev();
            let is_it = |entry: &&Entry| matches!(&entry.item, Item::Approval(known) if known.id == *decided);
            let number = entries.into_iter().find(is_it).map(|entry| entry.number);
            self.decided.extend(number.map(|number| (number, at.saturating_add(self.wall_offset))));
        }
    }

    fn fold_body(&mut self, record: &Record, at: Duration) -> Vec<ConversationEvent> {
        match &record.body {
            Body::Output { stream: Stream::Stderr, bytes } => self.run.on_errors(bytes, at),
            Body::Output { bytes, .. } => {
                self.heard_at = at;
                return self.run.on_output(bytes, at);
            }
            Body::Input { bytes, .. } => {
                self.entered_at = at;
                return self.run.on_input(bytes, at);
            }
            Body::Exit { status, stopped_by } => {
                let exit = run_exit(*status, *stopped_by);
                self.exit = Some(exit);
                return self.run.on_exit(exit, at);
            }
            Body::Anchor { .. } => {
                if let Some(offset) = wall_offset(record) {
                    self.wall_offset = offset;
                    self.run.set_wall_offset(offset);
                }
            }
            Body::Gap { output_bytes, .. } if *output_bytes > 0 => self.run.on_gap(at),
            Body::Note { tag, .. } if tag == DECISION => {
                if let Some(Decision { id, by, why }) = Decision::in_record(&record.body) {
                    self.run.on_decision(&id, &by, why.as_deref());
                }
            }
            Body::Note { tag, bytes } if tag == CONNECTION => {
                if let Ok(note) = serde_json::from_slice::<ConnectionNote>(bytes) {
                    if matches!(note, ConnectionNote::Lost { .. }) {
                        self.lost_at = at;
                    }
                    return self.run.on_connection(&note, at);
                }
            }
            _ => {}
        }
        Vec::new()
    }
}

fn wall_offset(record: &Record) -> Option<Duration> {
    let Body::Anchor { wall_unix_ns, .. } = record.body else { return None };
    Some(Duration::from_nanos(u64::try_from(wall_unix_ns).ok()?.checked_sub(record.at_ns)?))
}

/// A person scrolls through about this many entries.
const PAGE_ENTRIES: u64 = 2000;

/// Which entries of a conversation a caller asks for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Page {
    /// Only entries that changed after this revision.
    pub since: Option<u64>,
    /// Only entries before this one.
    pub before: Option<u64>,
    /// At most this many, the newest.
    pub limit: Option<u64>,
    /// The part of a growing text that the caller has already.
    pub seen: Option<chat::SeenText>,
    /// Also describe the status of the session.
    pub status: bool,
}

/// A page of a conversation as callers see it.
pub fn chat(run: &ConversationRun, page: Page, live: bool) -> chat::Chat {
    let conversation = run.conversation();
    let entries: Vec<&Entry> = match page.since {
        Some(since) => conversation.since(since).collect(),
        None => conversation.page(page.before, page.limit.unwrap_or(PAGE_ENTRIES) as usize).iter().collect(),
    };
    chat::Chat {
        entries: entries.into_iter().map(|entry| entry_view(entry, page.seen)).collect(),
        revision: conversation.revision(),
        total: conversation.entries().len() as u64,
        usage: usage_view(run.usage()),
        session_id: run.session_id().map(str::to_owned),
        live,
        status: page.status.then(|| Box::new(status_view(run))),
    }
}

/// The journals of a conversation without a live agent.
#[derive(Debug, Clone)]
pub struct PastConversation {
    /// The earlier runs, oldest first.
    pub before: Vec<ConversationSource>,
    /// The newest run.
    pub last: ConversationSource,
}

impl PastConversation {
    /// Blocking. Reads a page.
    pub fn read(&self, page: Page) -> Result<chat::Chat, Failure> {
        Ok(chat(&self.fold()?.run, page, false))
    }

    /// Blocking. The answered approvals, oldest first.
    pub fn decisions(&self) -> Result<Vec<PastDecision>, Failure> {
        Ok(decisions(&self.fold()?))
    }

    fn fold(&self) -> Result<ConversationFold, Failure> {
        let folded = ConversationFold::rebuild(&self.before, &self.last, Timing::default(), u64::MAX);
        let (fold, _) = folded.map_err(|err| {
            Failure::new("the conversation cannot be read").code(FailureCode::IoError).caused_by(&err)
        })?;
        Ok(fold)
    }
}

/// The approvals that have been answered so far, oldest first.
pub fn decisions(fold: &ConversationFold) -> Vec<PastDecision> {
    let entries = fold.run.conversation().entries();
    let decided = fold.decided.iter().filter_map(|(number, at)| {
        let Item::Approval(known) = &entries.get(*number as usize - 1)?.item else { return None };
        Some(PastDecision { at: *at, approval: approval_view(known) })
    });
    decided.collect()
}

/// Bytes of one text in an event. The event log holds the events of all tasks.
const LONGEST_IN_EVENTS: usize = 16_000;

/// An event as subscribers see it. `None` for events that only the conversation shows.
pub fn event_data(event: &ConversationEvent, session_id: Option<&str>) -> Option<EventData> {
    Some(match event {
        ConversationEvent::Output { text } => event::OutputEvent { text: shortened(text) }.into(),
        ConversationEvent::Thinking { text } => event::ThinkingEvent { text: shortened(text) }.into(),
        ConversationEvent::ToolUse { id, name, title, command, input } => event::ToolUseEvent {
            id: id.clone(),
            name: shortened(name),
            title: Some(shortened(title)).filter(|title| !title.is_empty()),
            command: command.as_deref().map(shortened),
            input: shorten_value(input, LONGEST_IN_EVENTS),
        }
        .into(),
        ConversationEvent::ToolResult { id, name, output, success } => event::ToolResultEvent {
            id: id.clone(),
            name: shortened(name),
            output: shortened(output),
            success: *success,
        }
        .into(),
        ConversationEvent::ApprovalRequested(approval) => request_event(approval).into(),
        ConversationEvent::ApprovalWithdrawn { id } => event::ApprovalEvent {
            id: id.clone(),
            decision: Some(ApprovalDecision::Withdrawn),
            ..event::ApprovalEvent::default()
        }
        .into(),
        ConversationEvent::ApprovalDecided { id, outcome } => decision_event(id, outcome).into(),
        ConversationEvent::ModeChanged(change) => mode_event(change).into(),
        ConversationEvent::TurnEnd(end) => turn_end_event(end, session_id).into(),
        ConversationEvent::Error { message, cause } => event::ErrorEvent {
            message: shortened(message),
            cause: cause.as_deref().map(shortened),
            agent: None,
        }
        .into(),
        ConversationEvent::SettingAnswered { .. } | ConversationEvent::Other { .. } => return None,
    })
}

fn request_event(approval: &Approval) -> event::ApprovalEvent {
    let action = action_view(approval, shortened);
    event::ApprovalEvent {
        id: approval.id.clone(),
        tool: Some(shortened(&approval.tool)),
        title: Some(action.summary.clone()),
        action: Some(Box::new(action)),
        choices: approval.choices.iter().map(|choice| shortened(&choice.label)).collect(),
        ..event::ApprovalEvent::default()
    }
}

fn decision_event(id: &str, outcome: &ApprovalOutcome) -> event::ApprovalEvent {
    let decision = if outcome.allowed { ApprovalDecision::Allowed } else { ApprovalDecision::Denied };
    event::ApprovalEvent {
        id: id.to_owned(),
        decision: Some(decision),
        by: outcome.by.clone(),
        why: outcome.message.as_deref().map(shortened),
        answer: outcome.answer.as_deref().map(shortened),
        ..event::ApprovalEvent::default()
    }
}

fn mode_event(change: &ModeChange) -> event::ModeChangedEvent {
    event::ModeChangedEvent {
        old: change.old.as_deref().map(shortened),
        new: change.new.as_deref().map(shortened),
        by: match change.by {
            ModeChanger::Agent => event::ModeChanger::Agent,
            ModeChanger::Agency => event::ModeChanger::Agency,
            ModeChanger::User => event::ModeChanger::User,
        },
        warning: change.warning.as_deref().map(shortened),
    }
}

fn turn_end_event(end: &TurnEnd, session_id: Option<&str>) -> event::TurnEndEvent {
    event::TurnEndEvent {
        text: end.text.as_deref().map(shortened),
        reason: end.reason.as_deref().map(shortened),
        failed: end.failed,
        usage: usage_view(end.usage),
        session_id: session_id.map(str::to_owned),
    }
}

/// A text, cut to the length that events may have.
fn shortened(text: &str) -> String {
    shorten_text(text, LONGEST_IN_EVENTS)
}

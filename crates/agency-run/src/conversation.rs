//! A piped run's journal folded into its conversation: the same code whether it is live, adopted or long over.
//!
//! One conversation may span several runs of a task; the journals of those before are folded first.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use agency_api::event::{self, ApprovalDecision, EventData};
use agency_api::{Failure, chat};
use agency_core::agent_state::Timing;
use agency_core::conversation::{Approval, Entry, Item, Outcome, TurnEnd};
use agency_core::exit::RunExit;
use agency_driver::acp::ConnectionNote;
use agency_driver::conversation::{ConversationEvent, ConversationRun, ConversationTerms};
use agency_journal::{Body, Reader, Record, Stream};
use agency_store::last_words;
use serde::{Deserialize, Serialize};

pub use crate::chat_view::wall_time;
use crate::chat_view::{approval_view, entry_view, shorten_text, shorten_value, usage_view};
use crate::fold::{run_exit, unseal};

/// The tag of notes that say who answers a request: JSON of a [`Decision`].
pub const DECISION: &str = "decision";
/// The tag of notes that say when the connection of a session came and went: JSON of a [`ConnectionNote`].
pub const CONNECTION: &str = "connection";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub id: String,
    pub by: String,
    #[serde(default)]
    pub why: Option<String>,
}

/// A run's part of a conversation.
#[derive(Debug, Clone)]
pub struct ConversationSource {
    pub terms: ConversationTerms,
    pub journal: PathBuf,
}

impl Decision {
    pub fn in_record(body: &Body) -> Option<Decision> {
        let Body::Note { tag, bytes } = body else { return None };
        (tag == DECISION).then(|| serde_json::from_slice(bytes).ok()).flatten()
    }
}

pub struct ConversationFold {
    pub run: ConversationRun,
    /// The first record that has not been folded.
    pub next_seq: u64,
    pub exit: Option<RunExit>,
    /// When the agent last said something.
    pub heard_at: Duration,
    terms: ConversationTerms,
    timing: Timing,
    began: bool,
    /// Entries of the conversation that were answered, and since 1970 when.
    decided: Vec<(u64, Duration)>,
    /// What the wall's clock is ahead of the journal's.
    wall_offset: Duration,
    /// The session of the run before.
    inherited: Option<String>,
}

/// An answer that was given.
#[derive(Debug, Clone, PartialEq)]
pub struct PastDecision {
    /// Since 1970.
    pub at: Duration,
    pub approval: chat::Approval,
}

/// Something that happened in a conversation, and when.
#[derive(Debug)]
pub struct TimedEvent {
    pub event: ConversationEvent,
    pub at: Duration,
}

impl ConversationFold {
    pub fn fresh(terms: ConversationTerms, timing: Timing) -> ConversationFold {
        ConversationFold {
            run: ConversationRun::began(terms.clone(), timing, Duration::ZERO),
            next_seq: 0,
            exit: None,
            heard_at: Duration::ZERO,
            terms,
            timing,
            began: false,
            decided: Vec::new(),
            wall_offset: Duration::ZERO,
            inherited: None,
        }
    }

    /// Blocking. The runs before, oldest first, then the one that counts; what happened in that one, from a record
    /// on, comes along.
    pub fn rebuild(
        before: &[ConversationSource],
        last: &ConversationSource,
        timing: Timing,
        told_from: u64,
    ) -> io::Result<(ConversationFold, Vec<TimedEvent>)> {
        let first = before.first().unwrap_or(last);
        let mut fold = ConversationFold::fresh(first.terms.clone(), timing);
        for earlier in before {
            match fold.read(earlier, u64::MAX) {
                Ok(_) => {}
                // The rest of the conversation is worth having without it.
                Err(cause) => {
                    tracing::warn!(journal = %earlier.journal.display(), %cause, "a part of a conversation is lost");
                }
            }
            fold.began = false;
        }
        let told = fold.read(last, told_from)?;
        Ok((fold, told))
    }

    fn read(&mut self, source: &ConversationSource, told_from: u64) -> io::Result<Vec<TimedEvent>> {
        (self.next_seq, self.exit) = (0, None);
        self.terms = source.terms.clone();
        let mut reader = Reader::open(&source.journal, unseal)?;
        let mut told = Vec::new();
        while let Some(record) = reader.next()? {
            let happened = self.record(&record);
            if record.seq >= told_from {
                told.extend(happened);
            }
        }
        for word in last_words::read(&source.journal) {
            let at = word.at().saturating_sub(self.wall_offset);
            self.run.on_exit_note(word.item, at);
        }
        Ok(told)
    }

    pub fn record(&mut self, record: &Record) -> Vec<TimedEvent> {
        let at = Duration::from_nanos(record.at_ns);
        if !std::mem::replace(&mut self.began, true) {
            let fresh = ConversationRun::began(self.terms.clone(), self.timing, at);
            let before = std::mem::replace(&mut self.run, fresh);
            self.wall_offset = wall_offset(record).unwrap_or_default();
            self.inherited = before.session_id().map(str::to_owned);
            self.run = before.continued(self.terms.clone(), self.timing, at, self.wall_offset);
        }
        // What the disk did not take has no number.
        if record.seq > 0 {
            self.next_seq = record.seq + 1;
        }
        let events = self.folded(record, at);
        self.remember_decisions(&events, at);
        events.into_iter().map(|event| TimedEvent { event, at }).collect()
    }

    /// The session that the agent has named in this run; the one of the run before may not be its own.
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

    fn folded(&mut self, record: &Record, at: Duration) -> Vec<ConversationEvent> {
        match &record.body {
            Body::Output { stream: Stream::Stderr, bytes } => self.run.on_errors(bytes, at),
            Body::Output { bytes, .. } => {
                self.heard_at = at;
                return self.run.on_output(bytes, at);
            }
            Body::Input { bytes, .. } => return self.run.on_input(bytes, at),
            Body::Exit { status, stopped_by: asked } => {
                let exit = run_exit(*status, *asked);
                self.exit = Some(exit);
                return self.run.on_exit(exit.code, at);
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

/// As many entries as a person scrolls through.
const PAGE: u64 = 2000;

/// What a caller asks for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Page {
    pub since: Option<u64>,
    pub before: Option<u64>,
    pub limit: Option<u64>,
}

pub fn chat(run: &ConversationRun, wanted: Page, live: bool) -> chat::Chat {
    let talk = run.conversation();
    let entries: Vec<&Entry> = match wanted.since {
        Some(since) => talk.since(since).collect(),
        None => talk.page(wanted.before, wanted.limit.unwrap_or(PAGE) as usize).iter().collect(),
    };
    chat::Chat {
        entries: entries.into_iter().map(entry_view).collect(),
        revision: talk.revision(),
        total: talk.entries().len() as u64,
        usage: usage_view(run.usage()),
        session_id: run.session_id().map(str::to_owned),
        live,
    }
}

/// The journals of a conversation without a live agent.
#[derive(Debug, Clone)]
pub struct PastConversation {
    /// Oldest first.
    pub before: Vec<ConversationSource>,
    pub last: ConversationSource,
}

impl PastConversation {
    /// Blocking.
    pub fn read(&self, wanted: Page) -> Result<chat::Chat, Failure> {
        Ok(chat(&self.fold()?.run, wanted, false))
    }

    /// Blocking. What was answered in it, oldest first.
    pub fn decisions(&self) -> Result<Vec<PastDecision>, Failure> {
        Ok(decisions(&self.fold()?))
    }

    fn fold(&self) -> Result<ConversationFold, Failure> {
        let folded = ConversationFold::rebuild(&self.before, &self.last, Timing::default(), u64::MAX);
        let (fold, _) =
            folded.map_err(|err| Failure::new("the conversation cannot be read").caused_by(&err))?;
        Ok(fold)
    }
}

/// What was answered so far, oldest first.
pub fn decisions(fold: &ConversationFold) -> Vec<PastDecision> {
    let entries = fold.run.conversation().entries();
    let decided = fold.decided.iter().filter_map(|(number, at)| {
        let Item::Approval(known) = &entries.get(*number as usize - 1)?.item else { return None };
        Some(PastDecision { at: *at, approval: approval_view(known) })
    });
    decided.collect()
}

pub fn approval(approval: &Approval) -> Option<chat::Approval> {
    Some(approval_view(approval))
}

/// In events, which are kept for all tasks together.
const LONGEST_TOLD: usize = 16_000;

/// An event as subscribers see it. None for what only the conversation shows.
pub fn event_data(event: &ConversationEvent, session_id: Option<&str>) -> Option<EventData> {
    Some(match event {
        ConversationEvent::Output { text } => event::OutputEvent { text: shortened(text) }.into(),
        ConversationEvent::Thinking { text } => event::ThinkingEvent { text: shortened(text) }.into(),
        ConversationEvent::ToolUse { id, name, input } => {
            let input = shorten_value(input, LONGEST_TOLD);
            event::ToolUseEvent { id: id.clone(), name: shortened(name), input }.into()
        }
        ConversationEvent::ToolResult { id, name, output, success } => event::ToolResultEvent {
            id: id.clone(),
            name: shortened(name),
            output: shortened(output),
            success: *success,
        }
        .into(),
        ConversationEvent::ApprovalRequested { id, tool, title } => event::ApprovalEvent {
            id: id.clone(),
            tool: Some(shortened(tool)),
            title: Some(shortened(title)),
            ..event::ApprovalEvent::default()
        }
        .into(),
        ConversationEvent::ApprovalWithdrawn { id } => event::ApprovalEvent {
            id: id.clone(),
            decision: Some(ApprovalDecision::Withdrawn),
            ..event::ApprovalEvent::default()
        }
        .into(),
        ConversationEvent::ApprovalDecided { id, outcome } => decided(id, outcome).into(),
        ConversationEvent::TurnEnd(end) => turn_end(end, session_id).into(),
        ConversationEvent::Error { message, cause } => event::ErrorEvent {
            message: shortened(message),
            cause: cause.as_deref().map(shortened),
            agent: None,
        }
        .into(),
        ConversationEvent::SettingAnswered { .. } | ConversationEvent::Other { .. } => return None,
    })
}

fn decided(id: &str, outcome: &Outcome) -> event::ApprovalEvent {
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

fn turn_end(end: &TurnEnd, session_id: Option<&str>) -> event::TurnEndEvent {
    event::TurnEndEvent {
        text: end.text.as_deref().map(shortened),
        reason: end.reason.as_deref().map(shortened),
        failed: end.failed,
        usage: usage_view(end.usage),
        session_id: session_id.map(str::to_owned),
    }
}

/// A text as long as events may hold it.
fn shortened(text: &str) -> String {
    shorten_text(text, LONGEST_TOLD)
}

//! What an agent tells in a session, written into the conversation.

use std::time::Duration;

use agency_core::conversation::{Conversation, Item, PlanStep, ToolStatus};
use agency_core::plain::one_line;
use agent_client_protocol_schema::MaybeUndefined;
use agent_client_protocol_schema::v1::{
    CompactionStatus, CompactionUpdate, ContentBlock, ContentChunk, EmbeddedResourceResource, Notice,
    NoticeSeverity, PlanEntryStatus,
};
use serde_json::Value;

use super::tools::{Told, Tools};
use crate::conversation::ConversationEvent;

/// The entry that still grows.
const GROWING: &str = "growing";
/// The plan of this turn.
const PLAN: &str = "plan";

pub(super) struct Telling {
    pub(super) conversation: Conversation,
    pub(super) tools: Tools,
    growing: Option<Growing>,
    /// The last whole message of the agent in this turn.
    said: Option<String>,
    /// History that is told again: nobody is told of it as news.
    is_history: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    User,
    Agent,
    Thought,
}

/// A message in parts; the next part belongs to it if it has the same voice and the same name.
#[derive(Debug, PartialEq, Eq)]
struct Growing {
    voice: Voice,
    message: Option<String>,
}

impl Telling {
    pub(super) fn new(conversation: Conversation) -> Telling {
        Telling { conversation, tools: Tools::default(), growing: None, said: None, is_history: false }
    }

    /// Somebody has said something in this conversation.
    pub(super) fn has_words(&self) -> bool {
        let is_said =
            |item: &Item| matches!(item, Item::User { .. } | Item::Assistant { .. } | Item::ToolCall(_));
        self.conversation.entries().iter().any(|entry| is_said(&entry.item))
    }

    pub(super) fn history_begins(&mut self) {
        self.is_history = true;
    }

    pub(super) fn history_ends(&mut self) {
        self.pause(&mut Vec::new());
        self.tools.forget();
        (self.is_history, self.said) = (false, None);
        self.conversation.settle(PLAN);
    }

    pub(super) fn prompted(&mut self, text: &str, at: Duration, events: &mut Vec<ConversationEvent>) {
        self.pause(events);
        self.conversation.settle(PLAN);
        self.said = None;
        self.conversation.add(Item::User { text: text.to_owned() }, at);
    }

    /// The end of a turn: what was said last.
    pub(super) fn turn_ends(&mut self, events: &mut Vec<ConversationEvent>) -> Option<String> {
        self.pause(events);
        self.tools.turn_ends();
        self.said.take()
    }

    pub(super) fn chunk(
        &mut self,
        voice: Voice,
        chunk: &ContentChunk,
        at: Duration,
        events: &mut Vec<ConversationEvent>,
    ) {
        let growing = Growing { voice, message: chunk.message_id.as_ref().map(ToString::to_string) };
        if self.growing.as_ref() != Some(&growing) {
            self.pause(events);
        }
        let more = block(&chunk.content);
        if more.is_empty() {
            return;
        }
        let empty = || match voice {
            Voice::User => Item::User { text: String::new() },
            Voice::Agent => Item::Assistant { text: String::new() },
            Voice::Thought => Item::Thinking { text: String::new() },
        };
        self.conversation.upsert(GROWING, at, empty, |item| grow(item, &more));
        self.growing = Some(growing);
    }

    /// What grew is whole now.
    pub(super) fn pause(&mut self, events: &mut Vec<ConversationEvent>) {
        if self.growing.take().is_none() {
            return;
        }
        let event = match self.conversation.get(GROWING) {
            Some(Item::Assistant { text }) => {
                self.said = Some(text.clone());
                Some(ConversationEvent::Output { text: text.clone() })
            }
            Some(Item::Thinking { text }) => Some(ConversationEvent::Thinking { text: text.clone() }),
            _ => None,
        };
        self.conversation.settle(GROWING);
        if !self.is_history {
            events.extend(event);
        }
    }

    pub(super) fn tool(&mut self, told: Told, at: Duration, events: &mut Vec<ConversationEvent>) {
        self.pause(events);
        let is_history = self.is_history;
        self.tools.told(told, &mut self.conversation, at, |event| {
            if !is_history {
                events.push(event);
            }
        });
    }

    pub(super) fn plan(&mut self, entries: &[agent_client_protocol_schema::v1::PlanEntry], at: Duration) {
        let step = |entry: &agent_client_protocol_schema::v1::PlanEntry| PlanStep {
            text: one_line(&entry.content, 1000),
            status: match entry.status {
                PlanEntryStatus::InProgress => ToolStatus::Running,
                PlanEntryStatus::Completed => ToolStatus::Completed,
                _ => ToolStatus::Pending,
            },
        };
        let plan = Item::Plan { steps: entries.iter().map(step).collect() };
        self.upsert(PLAN, plan, at);
    }

    pub(super) fn notice(&mut self, text: String, at: Duration) {
        self.conversation.add(Item::Notice { text }, at);
    }

    pub(super) fn agents_notice(
        &mut self,
        notice: &Notice,
        at: Duration,
        events: &mut Vec<ConversationEvent>,
    ) {
        self.pause(events);
        if notice.severity == NoticeSeverity::Error {
            return self.failed(&notice.title, notice.description.clone(), at, events);
        }
        let text = match &notice.description {
            Some(description) => format!("{}: {description}", notice.title),
            None => notice.title.clone(),
        };
        self.notice(text, at);
    }

    pub(super) fn compaction(&mut self, update: &CompactionUpdate, at: Duration) {
        let text = match (&update.status, &update.error) {
            (CompactionStatus::Completed, _) => "the agent has made its memory of the conversation shorter",
            (CompactionStatus::Failed, MaybeUndefined::Value(error)) => {
                let text = format!("the agent could not make its memory shorter: {error}");
                return self.upsert(&compaction_key(update), Item::Notice { text }, at);
            }
            (CompactionStatus::Failed, _) => "the agent could not make its memory shorter",
            (CompactionStatus::Cancelled, _) => "the agent's memory stays as long as it is",
            _ => "the agent makes its memory of the conversation shorter",
        };
        self.upsert(&compaction_key(update), Item::Notice { text: text.to_owned() }, at);
    }

    /// What nobody here knows is shown as it came.
    pub(super) fn unknown(
        &mut self,
        kind: &str,
        what: &Value,
        at: Duration,
        events: &mut Vec<ConversationEvent>,
    ) {
        self.pause(events);
        self.notice(format!("{}: {}", one_line(kind, 60), one_line(&what.to_string(), 300)), at);
        self.tell(ConversationEvent::Other { kind: one_line(kind, 60) }, events);
    }

    pub(super) fn failed(
        &mut self,
        message: &str,
        cause: Option<String>,
        at: Duration,
        events: &mut Vec<ConversationEvent>,
    ) {
        self.conversation.add(Item::Error { message: message.to_owned(), cause: cause.clone() }, at);
        self.tell(ConversationEvent::Error { message: message.to_owned(), cause }, events);
    }

    pub(super) fn tell(&self, event: ConversationEvent, events: &mut Vec<ConversationEvent>) {
        if !self.is_history {
            events.push(event);
        }
    }

    fn upsert(&mut self, key: &str, item: Item, at: Duration) {
        let new = item.clone();
        self.conversation.upsert(
            key,
            at,
            || new,
            |known| {
                let is_new = *known != item;
                *known = item;
                is_new
            },
        );
    }
}

fn compaction_key(update: &CompactionUpdate) -> String {
    format!("compaction {}", update.compaction_id)
}

fn grow(item: &mut Item, more: &str) -> bool {
    match item {
        Item::User { text } | Item::Assistant { text } | Item::Thinking { text } => text.push_str(more),
        _ => return false,
    }
    true
}

/// The text of a block; what is no text is named.
pub(super) fn block(content: &ContentBlock) -> String {
    match content {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(_) => "[an image]".to_owned(),
        ContentBlock::Audio(_) => "[a sound]".to_owned(),
        ContentBlock::ResourceLink(link) => format!("[{} {}]", link.name, link.uri),
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::TextResourceContents(text) => text.text.clone(),
            EmbeddedResourceResource::BlobResourceContents(blob) => format!("[{}]", blob.uri),
            _ => "[something]".to_owned(),
        },
        _ => "[something]".to_owned(),
    }
}

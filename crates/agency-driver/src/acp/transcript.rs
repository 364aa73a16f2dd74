//! Writes what an agent says in a session into the conversation.

use agency_core::conversation::{Item, PlanStep, ToolStatus};
use agency_core::plain::one_line;
use agent_client_protocol_schema::MaybeUndefined;
use agent_client_protocol_schema::v1::{
    CompactionStatus, CompactionUpdate, ContentChunk, Notice, NoticeSeverity, PlanEntry, PlanEntryStatus,
};
use serde_json::Value;

use super::content::block_text;
use super::tools::{ToolReport, Tools};
use crate::conversation::{ConversationCore, ConversationEvent};

/// The key of the message that is still growing.
const PARTIAL: &str = "growing";
/// No agent has more methods of its own than this.
const MOST_UNKNOWN_METHODS: usize = 100;
/// The key of the plan of this turn.
const PLAN: &str = "plan";

#[derive(Default)]
pub(super) struct Transcript {
    pub(super) tools: Tools,
    /// The message whose chunks are arriving.
    partial: Option<PartialMessage>,
    /// The last complete message of the agent in this turn.
    last_message: Option<String>,
    /// Methods that this driver does not know and that the conversation has shown.
    unknown_methods: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Agent,
    Thought,
}

/// A message that arrives in chunks. The next chunk belongs to it if it has the same speaker and the same id.
#[derive(Debug, PartialEq, Eq)]
struct PartialMessage {
    speaker: Speaker,
    id: Option<String>,
}

impl Transcript {
    /// The agent has sent the whole history of a session.
    pub(super) fn end_history(&mut self, core: &mut ConversationCore) {
        self.finish_message(core);
        self.tools.forget();
        self.last_message = None;
        core.is_replaying = false;
        core.conversation.settle(PLAN);
    }

    pub(super) fn add_prompt(&mut self, core: &mut ConversationCore, text: &str) {
        self.finish_message(core);
        core.conversation.settle(PLAN);
        self.last_message = None;
        core.add(Item::User { text: text.to_owned() });
    }

    /// Ends a turn; returns the agent's last message.
    pub(super) fn end_turn(&mut self, core: &mut ConversationCore) -> Option<String> {
        self.finish_message(core);
        self.tools.end_turn();
        self.last_message.take()
    }

    pub(super) fn add_chunk(&mut self, core: &mut ConversationCore, speaker: Speaker, chunk: &ContentChunk) {
        let partial = PartialMessage { speaker, id: chunk.message_id.as_ref().map(ToString::to_string) };
        if self.partial.as_ref() != Some(&partial) {
            self.finish_message(core);
        }
        let more = block_text(&chunk.content);
        if more.is_empty() {
            return;
        }
        let empty = || match speaker {
            Speaker::User => Item::User { text: String::new() },
            Speaker::Agent => Item::Assistant { text: String::new() },
            Speaker::Thought => Item::Thinking { text: String::new() },
        };
        core.grow_text(PARTIAL, empty, &more);
        self.partial = Some(partial);
    }

    /// Announces the message whose chunks arrived. It is complete now.
    pub(super) fn finish_message(&mut self, core: &mut ConversationCore) {
        if self.partial.take().is_none() {
            return;
        }
        let event = match (core.conversation.get(PARTIAL), core.grown_text(PARTIAL)) {
            (Some(Item::Assistant { .. }), Some(text)) => {
                self.last_message = Some(text.clone());
                Some(ConversationEvent::Output { text })
            }
            (Some(Item::Thinking { .. }), Some(text)) => Some(ConversationEvent::Thinking { text }),
            _ => None,
        };
        core.settle_text(PARTIAL);
        event.into_iter().for_each(|event| core.announce_news(event));
    }

    pub(super) fn add_tool_report(&mut self, core: &mut ConversationCore, report: ToolReport) {
        self.finish_message(core);
        self.tools.apply_report(core, &report);
    }

    pub(super) fn put_plan(&mut self, core: &mut ConversationCore, entries: &[PlanEntry]) {
        self.finish_message(core);
        let step = |entry: &PlanEntry| PlanStep {
            text: one_line(&entry.content, 1000),
            status: match entry.status {
                PlanEntryStatus::InProgress => ToolStatus::Running,
                PlanEntryStatus::Completed => ToolStatus::Completed,
                _ => ToolStatus::Pending,
            },
        };
        core.put(PLAN, Item::Plan { steps: entries.iter().map(step).collect() });
    }

    pub(super) fn add_agent_notice(&mut self, core: &mut ConversationCore, notice: &Notice) {
        self.finish_message(core);
        if notice.severity == NoticeSeverity::Error {
            return core.add_error(&notice.title, notice.description.clone());
        }
        core.add_notice(match &notice.description {
            Some(description) => format!("{}: {description}", notice.title),
            None => notice.title.clone(),
        });
    }

    /// The agent shortens its memory of the conversation.
    pub(super) fn put_compaction(&mut self, core: &mut ConversationCore, update: &CompactionUpdate) {
        let text = match (&update.status, &update.error) {
            (CompactionStatus::Completed, _) => "the agent has made its memory of the conversation shorter",
            (CompactionStatus::Failed, MaybeUndefined::Value(error)) => {
                &format!("the agent could not make its memory shorter: {error}")
            }
            (CompactionStatus::Failed, _) => "the agent could not make its memory shorter",
            (CompactionStatus::Cancelled, _) => "the agent keeps its memory as long as it is",
            _ => "the agent makes its memory of the conversation shorter",
        };
        let key = format!("compaction {}", update.compaction_id);
        core.put(&key, Item::Notice { text: text.to_owned() });
    }

    /// Shows a message that this driver does not know, or cannot read, as it came.
    pub(super) fn add_unknown(&mut self, core: &mut ConversationCore, kind: &str, value: &Value) {
        self.finish_message(core);
        core.add_unknown(kind, value);
    }

    /// Shows the first message of a method that this driver does not know. An agent may send hundreds of them; the journal
    /// has them all.
    pub(super) fn add_unknown_method(&mut self, core: &mut ConversationCore, method: &str, value: &Value) {
        if self.unknown_methods.iter().any(|known| known == method) {
            return core.announce_news(ConversationEvent::Other { kind: one_line(method, 60) });
        }
        if self.unknown_methods.len() < MOST_UNKNOWN_METHODS {
            self.unknown_methods.push(method.to_owned());
        }
        self.add_unknown(core, method, value);
    }
}

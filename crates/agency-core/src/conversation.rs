//! One conversation with an agent, whatever its driver: entries are added, and some of them grow.
//!
//! A fold: the same events in the same order make the same entries. No entry is ever removed.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Time;

/// All entries of one conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    entries: Vec<Entry>,
    /// The index of the entry of a key: a tool call, a message that still grows, an approval.
    by_key: HashMap<String, usize>,
    revision: u64,
    /// Added to the time of an event, gives the time since 1970.
    #[serde(default)]
    wall_offset: Time,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Counts from 1.
    pub number: u64,
    /// The time since 1970, once `set_wall_offset` was called.
    pub at: Time,
    /// The revision of the conversation at the last change of this entry. A reader that knows a revision needs only entries
    /// with a higher one.
    pub revision: u64,
    /// The content.
    pub item: Item,
}

/// The content of an entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Item {
    /// A message of the user.
    User {
        /// The message.
        text: String,
    },
    /// A message of the agent.
    Assistant {
        /// The message so far.
        text: String,
    },
    /// The agent's reasoning.
    Thinking {
        /// The text so far.
        text: String,
    },
    /// A tool call.
    ToolCall(ToolCall),
    /// The agent's plan.
    Plan {
        /// Its steps.
        steps: Vec<PlanStep>,
    },
    /// An approval.
    Approval(Approval),
    /// A remark of the agent about itself, or of Agency about the conversation.
    Notice {
        /// The remark.
        text: String,
    },
    /// Something failed.
    Error {
        /// A sentence that says what failed.
        message: String,
        /// Why, if it is known.
        cause: Option<String>,
    },
    /// A turn that ended.
    TurnEnd(TurnEnd),
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The agent's id of the call.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// One line that says what it does.
    pub title: String,
    /// The arguments.
    pub input: Value,
    /// How far it is.
    pub status: ToolStatus,
    /// The result as text.
    pub output: Option<String>,
}

/// How far a tool call or a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// Not started.
    Pending,
    /// In progress.
    Running,
    /// Ended well.
    Completed,
    /// Ended with an error.
    Failed,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// The step in words.
    pub text: String,
    /// How far it is.
    pub status: ToolStatus,
}

/// An action that the agent may take only if the user or a rule allows it, or a question that only a person can answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// The agent's id of the request.
    pub id: String,
    /// The tool that the agent wants to use.
    pub tool: String,
    /// One line for people.
    pub title: String,
    /// The arguments of the tool.
    pub input: Value,
    /// The possible answers.
    pub choices: Vec<Choice>,
    /// The decision, once there is one.
    pub outcome: Option<ApprovalOutcome>,
}

/// One possible answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The agent's id of the answer.
    pub id: String,
    /// The meaning.
    pub kind: ChoiceKind,
    /// The answer as people read it.
    pub label: String,
}

/// The meaning of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceKind {
    /// Allow this action.
    AllowOnce,
    /// Allow this action and similar ones.
    AllowAlways,
    /// Deny this action.
    RejectOnce,
    /// Deny this action and similar ones.
    RejectAlways,
    /// The agent does not say what it means. Only a user may choose it.
    Other,
}

/// The end of an approval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalOutcome {
    /// Whether the agent may go ahead.
    pub allowed: bool,
    /// The agent withdrew it before a decision.
    pub cancelled: bool,
    /// A message to the agent.
    pub message: Option<String>,
    /// The name of the user or rule that decided, if it is known.
    #[serde(default)]
    pub by: Option<String>,
    /// The answer to a question.
    #[serde(default)]
    pub answer: Option<String>,
}

/// The end of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// The agent's final message.
    pub text: Option<String>,
    /// Why it ended, in the agent's own word.
    pub reason: Option<String>,
    /// Whether the turn ended with an error.
    pub failed: bool,
    /// The use of the model.
    pub usage: Usage,
}

/// The use of the model as the agent reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens that the model read.
    pub input_tokens: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// Tokens that the model read from its cache.
    pub cached_tokens: u64,
    /// The cost of the whole conversation so far, in US dollars.
    pub cost_usd: Option<f64>,
}

impl Conversation {
    /// All entries in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Grows by one with every change.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Entries that changed after a revision, in the order of the conversation.
    pub fn since(&self, revision: u64) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.revision > revision)
    }

    /// The approvals that wait for an answer.
    pub fn open_approvals(&self) -> impl Iterator<Item = &Approval> {
        self.entries.iter().filter_map(|entry| match &entry.item {
            Item::Approval(approval) if approval.outcome.is_none() => Some(approval),
            _ => None,
        })
    }

    /// The last `limit` entries before a number, or the last ones of all without a number.
    pub fn page(&self, before: Option<u64>, limit: usize) -> &[Entry] {
        let whole = self.entries.len();
        let end = before.map_or(whole, |before| (before.saturating_sub(1) as usize).min(whole));
        &self.entries[end.saturating_sub(limit)..end]
    }

    /// Something changed that is in no entry, such as the status of the session. Readers that wait for a change get one.
    pub fn touch(&mut self) {
        self.revision += 1;
    }

    /// Sets what to add to the time of events from now on.
    pub fn set_wall_offset(&mut self, offset: Time) {
        self.wall_offset = offset;
    }

    /// Adds an entry at the end.
    pub fn add(&mut self, item: Item, at: Time) {
        self.revision += 1;
        let number = self.entries.len() as u64 + 1;
        let at = at.saturating_add(self.wall_offset);
        self.entries.push(Entry { number, at, revision: self.revision, item });
    }

    /// Changes the entry of a key, or adds it. `change` returns whether it changed anything.
    pub fn upsert(
        &mut self,
        key: &str,
        at: Time,
        new: impl FnOnce() -> Item,
        change: impl FnOnce(&mut Item) -> bool,
    ) {
        match self.by_key.get(key).copied() {
            Some(index) => self.revise(index, change),
            None => {
                self.by_key.insert(key.to_owned(), self.entries.len());
                let mut item = new();
                change(&mut item);
                self.add(item, at);
            }
        }
    }

    /// Changes the entry of a key, if there is one.
    pub fn update(&mut self, key: &str, change: impl FnOnce(&mut Item) -> bool) {
        if let Some(index) = self.by_key.get(key).copied() {
            self.revise(index, change);
        }
    }

    /// The content of the entry of a key.
    pub fn get(&self, key: &str) -> Option<&Item> {
        self.by_key.get(key).and_then(|index| self.entries.get(*index)).map(|entry| &entry.item)
    }

    /// Whether the entry of a key is the last entry of the conversation.
    pub fn is_last(&self, key: &str) -> bool {
        self.by_key.get(key).is_some_and(|index| index + 1 == self.entries.len())
    }

    /// Closes the entry of a key: it will not change again, and the key may name a new entry.
    pub fn settle(&mut self, key: &str) {
        self.by_key.remove(key);
    }

    /// Closes all entries: none will change again, and every key may name a new entry.
    pub fn settle_all(&mut self) {
        self.by_key.clear();
    }

    fn revise(&mut self, index: usize, change: impl FnOnce(&mut Item) -> bool) {
        let Some(entry) = self.entries.get_mut(index) else { return };
        if change(&mut entry.item) {
            self.revision += 1;
            entry.revision = self.revision;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_added_and_grow_and_a_later_reader_gets_only_changes() {
        let mut conversation = Conversation::default();
        let grow = |text: &'static str| {
            move |item: &mut Item| match item {
                Item::Assistant { text: all } => {
                    all.push_str(text);
                    !text.is_empty()
                }
                _ => panic!("another entry"),
            }
        };
        let empty = || Item::Assistant { text: String::new() };
        conversation.add(Item::User { text: "hi".into() }, Time::ZERO);
        conversation.upsert("m1", Time::ZERO, empty, grow("He"));
        let seen = conversation.revision();
        conversation.upsert("m1", Time::ZERO, empty, grow("llo"));
        conversation.update("unknown", |_| panic!("not there"));
        assert_eq!(conversation.entries().len(), 2);
        let news: Vec<_> = conversation.since(seen).map(|entry| entry.item.clone()).collect();
        assert_eq!(news, [Item::Assistant { text: "Hello".into() }]);
        conversation.upsert("m1", Time::ZERO, empty, grow(""));
        assert_eq!(conversation.since(seen + 1).count(), 0, "nothing changed");
        conversation.settle("m1");
        conversation.upsert("m1", Time::ZERO, empty, grow("another"));
        assert_eq!(conversation.entries().len(), 3);
    }

    #[test]
    fn a_long_conversation_is_read_in_pages_from_its_end() {
        let mut conversation = Conversation::default();
        for number in 1..=10 {
            conversation.add(Item::Notice { text: number.to_string() }, Time::ZERO);
        }
        let page = |before, limit| -> Vec<u64> {
            conversation.page(before, limit).iter().map(|entry| entry.number).collect()
        };
        assert_eq!(page(None, 3), [8, 9, 10]);
        assert_eq!(page(Some(8), 3), [5, 6, 7]);
        assert_eq!(page(Some(2), 3), [1]);
        assert_eq!(page(Some(1), 3), [0_u64; 0]);
        assert_eq!(page(Some(99), 1), [10]);
    }
}

//! One conversation with an agent, whatever it is driven by: entries that are added, and some that grow.
//!
//! A fold: the same events in the same order make the same entries. Nothing is ever taken out.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Time;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    entries: Vec<Entry>,
    /// Where the entry of a key stands: a tool call, a message that still grows, an approval.
    by_key: HashMap<String, usize>,
    revision: u64,
    /// What makes the wall's time of the clock that events are told by.
    #[serde(default)]
    wall_offset: Time,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Counts from 1.
    pub number: u64,
    /// Since 1970, once the conversation was told what time it is.
    pub at: Time,
    /// Grows with every change of the conversation: who has seen up to here needs only what is newer.
    pub revision: u64,
    pub item: Item,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Item {
    User {
        text: String,
    },
    Assistant {
        text: String,
    },
    Thinking {
        text: String,
    },
    ToolCall(ToolCall),
    Plan {
        steps: Vec<PlanStep>,
    },
    Approval(Approval),
    /// Said by the agent about itself, or by us about the conversation.
    Notice {
        text: String,
    },
    Error {
        message: String,
        cause: Option<String>,
    },
    /// A turn that ended.
    TurnEnd(TurnEnd),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// What it does, in a line.
    pub title: String,
    pub input: Value,
    pub status: ToolStatus,
    pub output: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    Pending,
    Running,
    Completed,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    pub text: String,
    pub status: ToolStatus,
}

/// Something that the agent may do only if somebody says so, or a question that only a person can answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    pub id: String,
    pub tool: String,
    /// In a line, for people.
    pub title: String,
    pub input: Value,
    pub choices: Vec<Choice>,
    pub outcome: Option<Outcome>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    pub id: String,
    pub kind: ChoiceKind,
    pub label: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub allowed: bool,
    /// Withdrawn by the agent: nobody decided.
    pub cancelled: bool,
    pub message: Option<String>,
    /// Who decided, as far as they said.
    #[serde(default)]
    pub by: Option<String>,
    /// What a question was answered.
    #[serde(default)]
    pub answer: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnEnd {
    pub text: Option<String>,
    /// Why it ended, in the agent's word.
    pub reason: Option<String>,
    pub failed: bool,
    pub usage: Usage,
}

/// As the agents report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_tokens: u64,
    /// Of the whole conversation so far, in US dollars.
    pub cost_usd: Option<f64>,
}

impl Conversation {
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// What is newer than a revision, in the order of the conversation.
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

    /// The entries before a number, the last `limit` of them; those of the end where there is no number.
    pub fn page(&self, before: Option<u64>, limit: usize) -> &[Entry] {
        let whole = self.entries.len();
        let end = before.map_or(whole, |before| (before.saturating_sub(1) as usize).min(whole));
        &self.entries[end.saturating_sub(limit)..end]
    }

    /// What to add to the time of events from here on.
    pub fn set_wall_offset(&mut self, offset: Time) {
        self.wall_offset = offset;
    }

    pub fn add(&mut self, item: Item, at: Time) {
        self.revision += 1;
        let number = self.entries.len() as u64 + 1;
        let at = at.saturating_add(self.wall_offset);
        self.entries.push(Entry { number, at, revision: self.revision, item });
    }

    /// Changes the entry of a key, or adds it. The change says whether there was one.
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

    pub fn get(&self, key: &str) -> Option<&Item> {
        self.by_key.get(key).and_then(|index| self.entries.get(*index)).map(|entry| &entry.item)
    }

    /// The entry of a key will not change any more: the key may be used again.
    pub fn settle(&mut self, key: &str) {
        self.by_key.remove(key);
    }

    /// No entry will change any more: every key may be used again.
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
    fn entries_are_added_and_grow_and_who_looks_again_gets_what_is_new() {
        let mut talk = Conversation::default();
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
        talk.add(Item::User { text: "hi".into() }, Time::ZERO);
        talk.upsert("m1", Time::ZERO, empty, grow("He"));
        let seen = talk.revision();
        talk.upsert("m1", Time::ZERO, empty, grow("llo"));
        talk.update("nobody", |_| panic!("not there"));
        assert_eq!(talk.entries().len(), 2);
        let news: Vec<_> = talk.since(seen).map(|entry| entry.item.clone()).collect();
        assert_eq!(news, [Item::Assistant { text: "Hello".into() }]);
        talk.upsert("m1", Time::ZERO, empty, grow(""));
        assert_eq!(talk.since(seen + 1).count(), 0, "nothing changed");
        talk.settle("m1");
        talk.upsert("m1", Time::ZERO, empty, grow("another"));
        assert_eq!(talk.entries().len(), 3);
    }

    #[test]
    fn a_long_conversation_is_read_in_pages_from_its_end() {
        let mut talk = Conversation::default();
        for number in 1..=10 {
            talk.add(Item::Notice { text: number.to_string() }, Time::ZERO);
        }
        let page = |before, limit| -> Vec<u64> {
            talk.page(before, limit).iter().map(|entry| entry.number).collect()
        };
        assert_eq!(page(None, 3), [8, 9, 10]);
        assert_eq!(page(Some(8), 3), [5, 6, 7]);
        assert_eq!(page(Some(2), 3), [1]);
        assert_eq!(page(Some(1), 3), [0_u64; 0]);
        assert_eq!(page(Some(99), 1), [10]);
    }
}

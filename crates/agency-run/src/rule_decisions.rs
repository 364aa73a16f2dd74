//! Which of a run's approvals the user's rules have yet to decide, and which are left to people.

use std::collections::BTreeMap;

use agency_core::conversation::{Approval, Conversation};
use agency_core::evidence::Change;

#[derive(Debug, Default)]
pub struct RuleDecisions {
    /// Open approvals that were put before the rules: has nobody but a person to answer them?
    known: BTreeMap<String, bool>,
    /// Something was not told while rules decided.
    held_back: bool,
}

impl RuleDecisions {
    /// Those that nobody has put before the rules yet.
    pub fn new_among(&mut self, talk: &Conversation) -> Vec<Approval> {
        self.known.retain(|id, _| talk.open_approvals().any(|open| open.id == *id));
        let new: Vec<Approval> =
            talk.open_approvals().filter(|open| !self.known.contains_key(&open.id)).cloned().collect();
        self.known.extend(new.iter().map(|approval| (approval.id.clone(), false)));
        new
    }

    /// Those that people have yet to answer; they go on to be theirs meanwhile.
    pub fn left_among(&self, talk: &Conversation) -> Vec<Approval> {
        talk.open_approvals().filter(|open| self.is_for_people(&open.id)).cloned().collect()
    }

    pub fn leave_to_people(&mut self, id: &str) {
        self.known.insert(id.to_owned(), true);
    }

    pub fn is_for_people(&self, id: &str) -> bool {
        self.known.get(id).copied().unwrap_or(false)
    }

    /// Rules may yet answer what it asks: until then it does not wait for anybody.
    pub fn holds_back(&mut self, talk: &Conversation) -> bool {
        let holds = talk.open_approvals().any(|open| !self.is_for_people(&open.id));
        self.held_back |= holds;
        holds
    }

    /// What is told of what happened meanwhile: how it ended.
    pub fn told(&mut self, changes: Vec<Change>) -> Vec<Change> {
        if !std::mem::take(&mut self.held_back) {
            return changes;
        }
        let Some(old) = changes.first().map(|first| first.old) else { return changes };
        let last = changes.into_iter().next_back().filter(|last| last.new.state != old);
        last.map(|last| Change { old, ..last }).into_iter().collect()
    }
}

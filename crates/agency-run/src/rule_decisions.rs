//! Which open approvals of a run the user's rules may still answer, and which a person has to answer.

use std::collections::BTreeMap;

use agency_core::conversation::{Approval, Conversation};
use agency_core::evidence::Change;

#[derive(Debug, Default)]
pub struct RuleDecisions {
    /// Open approvals that the rules have seen; `true` once no rule matched and a person must answer.
    known: BTreeMap<String, bool>,
    /// Changes of state were held back while the rules were checked.
    has_held_back: bool,
}

impl RuleDecisions {
    /// The open approvals that the rules have not seen.
    pub fn take_new(&mut self, conversation: &Conversation) -> Vec<Approval> {
        self.known.retain(|id, _| conversation.open_approvals().any(|open| open.id == *id));
        let is_new = |open: &&Approval| !self.known.contains_key(&open.id);
        let new: Vec<Approval> = conversation.open_approvals().filter(is_new).cloned().collect();
        self.known.extend(new.iter().map(|approval| (approval.id.clone(), false)));
        new
    }

    /// The open approvals that a person has to answer.
    pub fn left_to_people(&self, conversation: &Conversation) -> Vec<Approval> {
        conversation.open_approvals().filter(|open| self.is_for_people(&open.id)).cloned().collect()
    }

    pub fn leave_to_people(&mut self, id: &str) {
        self.known.insert(id.to_owned(), true);
    }

    pub fn is_for_people(&self, id: &str) -> bool {
        self.known.get(id).copied().unwrap_or(false)
    }

    /// Whether changes of state must wait: while a rule may answer, the agent does not wait for a person.
    pub fn hold_back(&mut self, conversation: &Conversation) -> bool {
        let holds = conversation.open_approvals().any(|open| !self.is_for_people(&open.id));
        self.has_held_back |= holds;
        holds
    }

    /// Collapses the changes that were held back into one: from the first old state to the last new one.
    pub fn release(&mut self, changes: Vec<Change>) -> Vec<Change> {
        if !std::mem::take(&mut self.has_held_back) {
            return changes;
        }
        let Some(old) = changes.first().map(|first| first.old) else { return changes };
        let last = changes.into_iter().next_back().filter(|last| last.new.state != old);
        last.map(|last| Change { old, ..last }).into_iter().collect()
    }
}

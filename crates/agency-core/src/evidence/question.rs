//! Whether the agent still asks the same, or asks something new. A new question is a new wait: it has its own age, event and notice.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::claim::Claim;
use crate::Time;
use crate::activity::{Activity, Why};
use crate::agent_state::AgentState;

/// The reason to wait may become known a little after the wait began. Later, another kind of reason is another question.
const KNOWN_WITHIN: Duration = Duration::from_secs(2);

/// How the user may have answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answered {
    Key,
    Enter,
}

/// The question of the present wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Question {
    why: Option<Why>,
    detail: Option<String>,
    answered: Option<Answered>,
    /// The program read a line and reads the next one.
    is_next: bool,
}

impl Question {
    pub(super) fn on_input(&mut self, answered: Answered) {
        self.answered = self.answered.max(Some(answered));
    }

    pub(super) fn on_next_line(&mut self) {
        self.is_next = true;
    }

    /// Takes in the claim that decides. Returns whether an agent that waits asks something new now.
    pub(super) fn on_claim(&mut self, claim: Option<&Claim>, state: AgentState, now: Time) -> bool {
        let Some((why, claim)) = claim.and_then(|claim| match claim.activity {
            Activity::Waiting(why) => Some((why, claim)),
            Activity::Working => None,
        }) else {
            *self = Question { answered: self.answered, ..Question::default() };
            return false;
        };
        let waiting_since = state.waiting().map(|(since, _)| since);
        let is_new = waiting_since.is_some_and(|since| self.is_news(why, claim, now.saturating_sub(since)));
        let began = is_new || waiting_since.is_none();
        *self = Question {
            why: Some(why),
            detail: claim.detail.clone().or(self.detail.take().filter(|_| !began)),
            answered: self.answered.filter(|_| !began),
            is_next: false,
        };
        is_new
    }

    fn is_news(&self, why: Why, claim: &Claim, age: Duration) -> bool {
        let Some(before) = self.why else { return false };
        let is_other_kind =
            before.is_dialog() != why.is_dialog() && before != Why::Unknown && why != Why::Unknown;
        // Typed text lengthens the text at the cursor.
        let is_other_text = match (&self.detail, &claim.detail) {
            (Some(before), Some(now)) => {
                !now.starts_with(before.as_str()) && !before.starts_with(now.as_str())
            }
            (None, _) | (_, None) => false,
        };
        match self.answered {
            _ if self.is_next => true,
            Some(Answered::Enter) => is_other_kind || is_other_text || before.is_dialog() && before != why,
            Some(Answered::Key) => is_other_kind || before.is_dialog() && is_other_text,
            None => is_other_kind && age >= KNOWN_WITHIN,
        }
    }
}

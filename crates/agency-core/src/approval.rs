//! Rules that answer approvals in place of the user: the first rule that fits decides.
//!
//! Knows nothing of files and protocols: the caller passes the rules and the approval. An agent must not fool a rule that
//! allows, so such a rule fits only what it spells out. A rule that denies or asks may fit more: it also fits a request
//! that does not say what the tool would do.

mod action;
mod glob;
mod subject;
mod suggestion;

use std::path::Path;
use std::str::FromStr;

use serde_json::Value;

use crate::conversation::{Approval, ChoiceKind};
pub use action::{Action, McpTool};
use subject::Subject;
pub use suggestion::{PastAnswer, Suggestion, suggest};

/// `[[approve]]` of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// A tool's name, or a kind of tools; `*` in it matches any text.
    pub tool: String,
    /// A pattern for what the tool would do; absent: anything.
    pub pattern: Option<String>,
    /// Only approvals of this agent; absent: of every agent.
    pub agent: Option<String>,
    /// The answer if the rule fits.
    pub decision: Decision,
    /// The reason, which the decision records.
    pub why: Option<String>,
}

/// The answer of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The agent may go ahead.
    Allow,
    /// The agent may not go ahead.
    Deny,
    /// The user answers, whatever later rules say.
    Ask,
}

impl Decision {
    /// Every decision.
    pub const ALL: [Decision; 3] = [Decision::Allow, Decision::Deny, Decision::Ask];

    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Decision::Allow => "allow",
            Decision::Deny => "deny",
            Decision::Ask => "ask",
        }
    }
}

/// The text is not a decision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a decision")]
pub struct UnknownDecision(pub String);

impl FromStr for Decision {
    type Err = UnknownDecision;

    fn from_str(text: &str) -> Result<Decision, UnknownDecision> {
        let found = Decision::ALL.into_iter().find(|word| word.as_str() == text);
        found.ok_or_else(|| UnknownDecision(text.to_owned()))
    }
}

/// A rule, and the name that a decision records: `rule 2 of FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRule {
    /// `rule 2 of FILE`
    pub name: String,
    /// The rule itself.
    pub rule: Rule,
}

/// The answer of a rule to one approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// Whether the agent may go ahead.
    pub allow: bool,
    /// The name of the rule.
    pub by: String,
    /// The reason that the rule gives.
    pub why: Option<String>,
}

/// The agent that asks, and the directory of its relative paths.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// The agent's name.
    pub agent: &'a str,
    /// The workspace of its task.
    pub workspace: &'a Path,
}

/// The answer of the first rule that fits. `None`: the user must answer.
pub fn ruling(rules: &[NamedRule], asker: Asker<'_>, approval: &Approval) -> Option<Ruling> {
    if is_question(approval) {
        return None;
    }
    let subject = Subject::of(&approval.tool, &approval.input, asker.workspace);
    let named = rules.iter().find(|named| {
        named.rule.fits(asker, approval, &subject) || named.rule.may_fit(asker, approval, &subject)
    })?;
    let allow = match named.rule.decision {
        Decision::Allow => true,
        Decision::Deny if named.rule.fits_tool(&approval.tool) => false,
        Decision::Deny | Decision::Ask => return None,
    };
    let wanted = if allow { ChoiceKind::AllowOnce } else { ChoiceKind::RejectOnce };
    let ruling = Ruling { allow, by: named.name.clone(), why: named.rule.why.clone() };
    approval.choices.iter().any(|choice| choice.kind == wanted).then_some(ruling)
}

/// Whether only a person can know the answer.
fn is_question(approval: &Approval) -> bool {
    approval.tool == "AskUserQuestion" || approval.input["questions"].is_array()
}

impl Rule {
    fn fits(&self, asker: Asker<'_>, approval: &Approval, subject: &Subject) -> bool {
        self.fits_agent(asker)
            && self.fits_tool(&approval.tool)
            && self.fits_subject(subject, &approval.input)
    }

    fn fits_agent(&self, asker: Asker<'_>) -> bool {
        self.agent.as_deref().is_none_or(|agent| agent == asker.agent)
    }

    /// Whether the rule denies or asks, and could be meant: the request does not name its tool.
    fn may_fit(&self, asker: Asker<'_>, approval: &Approval, subject: &Subject) -> bool {
        let is_unnamed = subject::UNNAMED.contains(&approval.tool.to_lowercase().as_str());
        self.fits_agent(asker)
            && is_unnamed
            && self.decision != Decision::Allow
            && self.fits_subject(subject, &approval.input)
    }

    fn fits_tool(&self, tool: &str) -> bool {
        let (mine, theirs) = (self.tool.to_lowercase(), tool.to_lowercase());
        let is_kind = subject::kind_of(&theirs) == Some(mine.as_str());
        // Some agents report only the kind of a tool. A rule for any shell then fits the kind.
        let is_shell = theirs == subject::EXECUTE && subject::kind_of(&mine) == Some(subject::EXECUTE);
        glob::fits(&mine, &theirs, |_| true) || is_kind || is_shell
    }

    fn fits_subject(&self, subject: &Subject, input: &Value) -> bool {
        // The user wrote the rule for commands inside the agent's sandbox.
        let is_unsafe = input["dangerouslyDisableSandbox"].as_bool() == Some(true);
        match (&self.pattern, self.decision) {
            (None, _) => true,
            (Some(_), Decision::Allow) if is_unsafe => false,
            (Some(pattern), Decision::Allow) => subject.is_all(pattern),
            (Some(pattern), Decision::Deny | Decision::Ask) => subject.has_any(pattern),
        }
    }
}

#[cfg(test)]
mod tests;

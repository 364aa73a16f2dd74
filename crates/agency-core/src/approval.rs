//! Rules that answer what agents ask for, so that nobody has to: the first one that fits decides.
//!
//! Knows nothing of files and protocols: it is given the rules and what was asked. A rule that allows must not be
//! fooled, so it fits only what it says in so many words; one that denies or leaves it to a person may fit more.

mod glob;
mod subject;

use std::path::Path;
use std::str::FromStr;

use serde_json::Value;

use crate::conversation::{Approval, ChoiceKind};
use subject::Subject;

/// `[[approve]]` of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// A tool's name, or a kind of tools; `*` in it stands for anything.
    pub tool: String,
    /// What the tool would do; absent: whatever it is.
    pub pattern: Option<String>,
    pub agent: Option<String>,
    pub decision: Decision,
    pub why: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Allow,
    Deny,
    /// Left to a person, whatever later rules say.
    Ask,
}

impl Decision {
    pub const ALL: [Decision; 3] = [Decision::Allow, Decision::Deny, Decision::Ask];

    pub fn as_str(self) -> &'static str {
        match self {
            Decision::Allow => "allow",
            Decision::Deny => "deny",
            Decision::Ask => "ask",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no decision")]
pub struct UnknownDecision(pub String);

impl FromStr for Decision {
    type Err = UnknownDecision;

    fn from_str(text: &str) -> Result<Decision, UnknownDecision> {
        let found = Decision::ALL.into_iter().find(|word| word.as_str() == text);
        found.ok_or_else(|| UnknownDecision(text.to_owned()))
    }
}

/// A rule, and what it is called when it has decided: `rule 2 of FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRule {
    pub name: String,
    pub rule: Rule,
}

/// What a rule says, in the place of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    pub allow: bool,
    pub by: String,
    pub why: Option<String>,
}

/// Who asks, and where its relative paths begin.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    pub agent: &'a str,
    pub workspace: &'a Path,
}

/// The first rule that fits decides. None: a person does.
pub fn ruling(rules: &[NamedRule], asker: Asker<'_>, approval: &Approval) -> Option<Ruling> {
    if is_question(approval) {
        return None;
    }
    let subject = Subject::of(&approval.tool, &approval.input, asker.workspace);
    let named = rules.iter().find(|named| named.rule.fits(asker, approval, &subject))?;
    let allow = match named.rule.decision {
        Decision::Allow => true,
        Decision::Deny => false,
        Decision::Ask => return None,
    };
    let wanted = if allow { ChoiceKind::AllowOnce } else { ChoiceKind::RejectOnce };
    let ruling = Ruling { allow, by: named.name.clone(), why: named.rule.why.clone() };
    approval.choices.iter().any(|choice| choice.kind == wanted).then_some(ruling)
}

/// Only a person knows the answer.
fn is_question(approval: &Approval) -> bool {
    approval.tool == "AskUserQuestion" || approval.input["questions"].is_array()
}

impl Rule {
    fn fits(&self, asker: Asker<'_>, approval: &Approval, subject: &Subject) -> bool {
        let is_agent = self.agent.as_deref().is_none_or(|agent| agent == asker.agent);
        is_agent && self.fits_tool(&approval.tool) && self.fits_subject(subject, &approval.input)
    }

    fn fits_tool(&self, tool: &str) -> bool {
        let (mine, theirs) = (self.tool.to_lowercase(), tool.to_lowercase());
        let is_kind = subject::kind_of(&theirs) == Some(mine.as_str());
        // Where only the kind is told, a shell is a shell by any name.
        let is_shell = theirs == subject::EXECUTE && subject::kind_of(&mine) == Some(subject::EXECUTE);
        glob::fits(&mine, &theirs, |_| true) || is_kind || is_shell
    }

    fn fits_subject(&self, subject: &Subject, input: &Value) -> bool {
        // Outside the agent's own sandbox is another thing than was written down.
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

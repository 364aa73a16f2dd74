//! The memory of a program, from before a run of it begins: its signs of work, and the corrections of the user.
//!
//! Knows no file: the daemon reads and writes the memory, and the journal of each run has a note of what the run knew.
//!
//! Invariant: no correction hides that an agent itself reports a permission or a question.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::claim::{Claim, EvidenceSource};
use super::user_words::hash;
use crate::activity::Activity;

/// The meaning of a claim, without the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Belief {
    /// The agent works.
    Working,
    /// The agent waits for the user.
    Waiting,
}

impl Belief {
    /// The belief of an activity.
    pub fn of(activity: Activity) -> Belief {
        if activity.is_waiting() { Belief::Waiting } else { Belief::Working }
    }

    /// The word that people see.
    pub fn as_str(self) -> &'static str {
        match self {
            Belief::Working => "working",
            Belief::Waiting => "waiting",
        }
    }
}

/// The user said that evidence of this kind was wrong. It no longer decides in that program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Correction {
    /// The source of the wrong claim.
    pub source: EvidenceSource,
    /// The rule of the wrong claim.
    pub rule: String,
    /// The belief of the claim.
    pub wrong: Belief,
    /// A hash of the dialog's question. A correction of one dialog must not hide the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<u64>,
    /// When the user said so, in RFC 3339.
    #[serde(default)]
    pub time: String,
}

/// All rules of silence count as this one: their texts have times in them.
const SILENCE: &str = "only output and silence";

impl Correction {
    pub(super) fn of(source: EvidenceSource, claim: &Claim) -> Correction {
        let wrong = Belief::of(claim.activity);
        let rule = if source == EvidenceSource::Silence { SILENCE.to_owned() } else { claim.rule.clone() };
        Correction { source, rule, wrong, question: question(claim), time: String::new() }
    }

    pub(super) fn of_silence(wrong: Belief) -> Correction {
        let (source, rule) = (EvidenceSource::Silence, SILENCE.to_owned());
        Correction { source, rule, wrong, question: None, time: String::new() }
    }

    fn covers(&self, source: EvidenceSource, claim: &Claim) -> bool {
        (self.source, self.wrong) == (source, Belief::of(claim.activity))
            && self.rule == claim.rule
            && self.question == question(claim)
    }

    fn is_same_evidence(&self, other: &Correction) -> bool {
        (self.source, &self.rule, self.question) == (other.source, &other.rule, other.question)
    }
}

fn question(claim: &Claim) -> Option<u64> {
    let Activity::Waiting(why) = claim.activity else { return None };
    let words = || claim.detail.as_deref().unwrap_or_default().chars().filter(|c| c.is_alphabetic());
    why.is_dialog().then(|| hash(&words().collect::<String>()))
}

/// Whether the agent itself reports the claim, so that no correction may hide it.
pub(super) fn is_own_request(source: EvidenceSource, activity: Activity) -> bool {
    match source {
        EvidenceSource::Protocol => true,
        EvidenceSource::Status | EvidenceSource::Hook => {
            matches!(activity, Activity::Waiting(why) if why.is_dialog())
        }
        _ => false,
    }
}

/// The memory of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramMemory {
    /// The name of the program.
    pub program: String,
    /// Signs of work that earlier runs learned.
    #[serde(default)]
    pub signs: BTreeSet<String>,
    /// Evidence that does not decide, because the user said that it was wrong. The newest is the last.
    #[serde(default)]
    pub corrections: Vec<Correction>,
}

impl ProgramMemory {
    /// The memory of a program that Agency knows nothing about.
    pub fn empty(program: &str) -> ProgramMemory {
        ProgramMemory { program: program.to_owned(), ..ProgramMemory::default() }
    }

    /// Adds a correction. It replaces one for the same evidence. Only silence says something in any case, so the last
    /// correction of silence counts; other evidence may be wrong in both ways.
    pub fn correct(&mut self, correction: Correction) {
        let is_replaced = |known: &Correction| {
            known.is_same_evidence(&correction)
                && (known.wrong == correction.wrong || known.source == EvidenceSource::Silence)
        };
        self.corrections.retain(|known| !is_replaced(known));
        self.corrections.push(correction);
    }

    pub(super) fn rejects(&self, source: EvidenceSource, claim: &Claim) -> bool {
        !is_own_request(source, claim.activity)
            && source != EvidenceSource::Silence
            && self.corrections.iter().any(|correction| correction.covers(source, claim))
    }

    /// The wrong belief of silence.
    pub(super) fn wrong_silence(&self) -> Option<Belief> {
        let mut corrections = self.corrections.iter().rev();
        corrections.find(|known| known.source == EvidenceSource::Silence).map(|known| known.wrong)
    }
}

/// Why a user cannot contradict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CannotContradict {
    /// Agency does not say that.
    NotBelieved,
    /// The agent itself asks the user for something.
    OwnRequest(EvidenceSource),
}

/// The user's word about the present state. It holds until there is other evidence than the user knew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UserWord {
    wrong: Belief,
    /// The claims that the user contradicted, by source and rule.
    overruled: Vec<(EvidenceSource, String)>,
}

impl UserWord {
    pub(super) fn against<'a>(
        wrong: Belief,
        claims: impl Iterator<Item = (&'a EvidenceSource, &'a Claim)>,
    ) -> UserWord {
        let overruled = claims.filter(|(_, claim)| Belief::of(claim.activity) == wrong);
        UserWord {
            wrong,
            overruled: overruled.map(|(source, claim)| (*source, claim.rule.clone())).collect(),
        }
    }

    /// The user said that the agent works. What it draws next is better evidence.
    pub(super) fn says_work(&self) -> bool {
        self.wrong == Belief::Waiting
    }

    /// Whether these claims say nothing against the word that the user did not know. A claim that went away and comes
    /// back is a new one.
    pub(super) fn still_holds<'a>(
        &mut self,
        claims: impl Iterator<Item = (&'a EvidenceSource, &'a Claim)>,
    ) -> bool {
        let is_against = |(_, claim): &(&EvidenceSource, &Claim)| Belief::of(claim.activity) == self.wrong;
        let against: Vec<_> =
            claims.filter(is_against).map(|(source, claim)| (*source, &claim.rule)).collect();
        self.overruled.retain(|(source, rule)| against.contains(&(*source, rule)));
        against.len() == self.overruled.len()
    }
}

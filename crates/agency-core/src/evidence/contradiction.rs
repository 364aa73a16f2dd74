//! The detector's memory of its program, and the user's word against the detector.

use std::collections::BTreeSet;

use super::claim::EvidenceSource;
use super::detector::{Detector, Moment};
use super::memory::{Belief, CannotContradict, Correction, ProgramMemory, UserWord, is_own_request};
use super::sign::is_memorable;
use super::user_words::UserWords;
use crate::activity::{Activity, Why};
use crate::agent_state::AgentState;

impl Detector {
    /// The knowledge about the program from earlier runs, and the corrections of the user.
    pub fn memory(&self) -> &ProgramMemory {
        &self.memory
    }

    /// The memory of the program from now on. With `wrong`, the user has contradicted the present state.
    pub fn on_memory(&mut self, memory: ProgramMemory, wrong: Option<Belief>, moment: Moment) {
        self.tick(moment.at);
        let before = std::mem::replace(&mut self.memory, memory);
        match before.program == self.memory.program {
            true => self.sign.forget(before.signs.difference(&self.memory.signs)),
            false => {
                self.word = None;
                self.sign.on_other_program();
            }
        }
        self.sign.know(&self.memory.signs);
        if let Some(wrong) = wrong {
            self.withdraw(&[EvidenceSource::User]);
            self.read_silence(moment);
            self.word = Some(UserWord::against(wrong, self.counted()));
            let (activity, rule) = match wrong {
                Belief::Waiting => (Activity::Working, "you said that it works"),
                Belief::Working => (Activity::Waiting(Why::Unknown), "you said that it waits"),
            };
            self.claim(EvidenceSource::User, activity, rule.to_owned(), None, moment);
        }
        self.settle(moment);
    }

    /// The program in the foreground is another one. The daemon tells later what it remembers about it.
    pub fn on_program(&mut self, program: &str, moment: Moment) {
        if self.memory.program != program {
            self.on_memory(ProgramMemory::empty(program), None, moment);
        }
    }

    /// The user typed these bytes.
    pub fn on_typed(&mut self, bytes: &[u8]) {
        self.user_words.on_typed(bytes);
    }

    /// The corrections that follow if the user says that the present state is wrong.
    pub fn corrections_for(&self, wrong: Belief) -> Result<Vec<Correction>, CannotContradict> {
        let believed = match self.state() {
            AgentState::Starting | AgentState::Running => Some(Belief::Working),
            AgentState::NeedsInput { .. } | AgentState::Stale { .. } => Some(Belief::Waiting),
            AgentState::Exited { .. } => None,
        };
        if believed != Some(wrong) {
            return Err(CannotContradict::NotBelieved);
        }
        if let Some((source, _)) =
            self.claims().find(|(source, claim)| is_own_request(*source, claim.activity))
        {
            return Err(CannotContradict::OwnRequest(source));
        }
        let authority = self.counted().find(|(source, _)| **source != EvidenceSource::User);
        Ok(match authority {
            None => vec![Correction::of_silence(wrong)],
            // The user takes an earlier word back.
            Some((_, claim)) if Belief::of(claim.activity) != wrong => Vec::new(),
            // A screen at rest is silence too.
            Some((EvidenceSource::Animation, claim)) if wrong == Belief::Waiting => {
                vec![Correction::of(EvidenceSource::Animation, claim), Correction::of_silence(wrong)]
            }
            Some((source, claim)) => vec![Correction::of(*source, claim)],
        })
    }

    /// The program's signs of work, and whether an earlier run learned them.
    pub fn signs_of_work(&self) -> impl Iterator<Item = (&str, bool)> {
        self.sign.learned().iter().map(|sign| (sign.as_str(), self.sign.is_known(sign)))
    }

    /// The signs that later runs of the program may know: none has a word that the user typed, or one of `sent`.
    pub fn signs_to_remember(&self, sent: &UserWords) -> BTreeSet<String> {
        let is_foreign = |sign: &str| self.user_words.is_foreign(sign) && sent.is_foreign(sign);
        let learned = self.sign.learned().iter();
        learned.filter(|sign| is_memorable(sign, is_foreign)).cloned().collect()
    }

    /// The remembered signs that were on the screen while the program waited.
    pub fn wrong_signs(&self) -> BTreeSet<String> {
        self.memory.signs.iter().filter(|sign| self.sign.is_wrong(sign)).cloned().collect()
    }

    pub(super) fn read_user(&mut self, moment: Moment) {
        self.read_silence(moment);
        let Some(mut word) = self.word.take() else { return self.withdraw(&[EvidenceSource::User]) };
        let holds = word.still_holds(self.counted().filter(|(source, _)| **source != EvidenceSource::User));
        match holds {
            true => self.word = Some(word),
            false => self.withdraw(&[EvidenceSource::User]),
        }
    }

    /// If silence was wrong in one way, it means the other from now on.
    fn read_silence(&mut self, moment: Moment) {
        let (activity, rule) = match self.memory.wrong_silence() {
            Some(Belief::Waiting) => (Activity::Working, "you said that it is silent at work"),
            Some(Belief::Working) => {
                (Activity::Waiting(Why::Unknown), "you said that it draws while it waits")
            }
            None => return self.withdraw(&[EvidenceSource::Silence]),
        };
        self.claim(EvidenceSource::Silence, activity, rule.to_owned(), None, moment);
    }
}

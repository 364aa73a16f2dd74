//! The memory of a terminal's program: the run notes it in the journal, adds the signs of work that it learns, and takes the
//! user's corrections.
//!
//! Invariant: the detector knows only what a note in the journal says, so every fold of the journal knows the same.

use std::collections::{BTreeSet, VecDeque};
use std::io;

use agency_api::keeper::Frame;
use agency_api::{Failure, FailureCode};
use agency_core::evidence::{Belief, CannotContradict, Correction, EvidenceSource};
use agency_store::clock;

use super::TerminalTask;
use crate::blocking::blocking;
use crate::command::{ContradictRequest, Contradicted};
use crate::explain::explain;
use crate::fold::{MEMORY_TAG, MemoryNote};
use crate::follower::RunTask;
use crate::reply::send_reply;
use crate::screen_dump;

type Answer = tokio::sync::oneshot::Sender<Result<Contradicted, Failure>>;

/// The part of the memory that the run has noted and reported.
#[derive(Debug, Default)]
pub(super) struct RunMemory {
    /// The program whose memory was noted last, and how often the memory had changed then.
    noted: Option<(String, u64)>,
    /// The signs that the run reported last: those to remember, and those to forget.
    reported: (BTreeSet<String>, BTreeSet<String>),
    /// Callers whose contradiction is on its way to the journal, oldest first.
    waiting: VecDeque<(Answer, Contradicted)>,
    /// How many of them the journal holds.
    arrived: usize,
}

impl RunMemory {
    /// A note has been folded.
    pub(super) fn on_note(&mut self, bytes: &[u8]) {
        if serde_json::from_slice::<MemoryNote>(bytes).is_ok_and(|note| note.wrong.is_some()) {
            self.arrived += 1;
        }
    }

    /// Answers the callers whose contradiction the journal holds.
    pub(super) fn reply(&mut self) {
        for _ in 0..std::mem::take(&mut self.arrived) {
            if let Some((answer, contradicted)) = self.waiting.pop_front() {
                send_reply(answer, Ok(contradicted));
            }
        }
    }

    pub(super) fn refuse(&mut self, why: &str) {
        for (answer, _) in self.waiting.drain(..) {
            let failure = Failure::new("the state could not be corrected").code(FailureCode::NotRunning);
            send_reply(answer, Err(failure.because(why)));
        }
    }
}

impl TerminalTask {
    /// Remembers signs that the run has learned, and notes the memory of the program if the run does not know it yet.
    pub(super) async fn update_memory(&mut self) -> io::Result<()> {
        self.report_signs();
        let memories = &self.follower.link.context.memories;
        let program = self.fold.run.remembered_program();
        let changes = memories.changes();
        let is_noted = |(of, at): &(String, u64)| (of.as_str(), *at) == (program, changes);
        if self.fold.exit.is_some() || self.memory.noted.as_ref().is_some_and(is_noted) {
            return Ok(());
        }
        let memory = memories.of(program);
        let is_known = memory == *self.fold.run.detector().memory();
        self.memory.noted = Some((program.to_owned(), changes));
        match is_known {
            true => Ok(()),
            false => self.note_memory(&MemoryNote { memory, wrong: None }).await,
        }
    }

    async fn note_memory(&mut self, note: &MemoryNote) -> io::Result<()> {
        let bytes = serde_json::to_vec(note)?;
        self.follower.link.frames.send(&Frame::Note { tag: MEMORY_TAG.to_owned(), bytes }).await
    }

    fn report_signs(&mut self) {
        let (context, detector) = (&self.follower.link.context, self.fold.run.detector());
        let learned = (detector.signs_to_remember(&context.task_words), detector.wrong_signs());
        if learned == self.memory.reported {
            return;
        }
        self.memory.reported = learned.clone();
        let (memories, program) = (context.memories.clone(), self.fold.run.remembered_program().to_owned());
        tokio::task::spawn_blocking(move || {
            if let Err(cause) = memories.learn(&program, &learned.0, &learned.1) {
                tracing::warn!(program, %cause, "the signs of work of a program are remembered only by this daemon");
            }
        });
    }

    /// Corrects the state, and answers once the journal holds the correction.
    pub(super) async fn contradict(&mut self, request: ContradictRequest) -> io::Result<()> {
        let ContradictRequest { wrong, answer } = request;
        let now = clock::now();
        self.fold.run.tick(now);
        let corrections = match self.fold.run.detector().corrections_for(wrong) {
            Ok(corrections) => dated(corrections),
            Err(cause) => {
                send_reply(answer, Err(refusal(cause, wrong, &self.follower.link.context.name)));
                return Ok(());
            }
        };
        let program = self.fold.run.remembered_program().to_owned();
        let memories = self.follower.link.context.memories.clone();
        let kept = (memories.clone(), program.clone(), corrections.clone());
        let saved = blocking(move || kept.0.correct(&kept.1, kept.2).map_err(|err| unsaved(&err))).await;
        if let Err(failure) = saved {
            send_reply(answer, Err(failure));
            return Ok(());
        }
        let explanation = explain(self.fold.run.detector(), self.unentered_text(), now);
        let screen = screen_dump::dump(&mut self.fold);
        self.memory.noted = Some((program.clone(), memories.changes()));
        let memory = memories.of(&program);
        self.memory.waiting.push_back((answer, Contradicted { program, corrections, explanation, screen }));
        self.note_memory(&MemoryNote { memory, wrong: Some(wrong) }).await
    }
}

fn dated(mut corrections: Vec<Correction>) -> Vec<Correction> {
    let time = clock::timestamp();
    corrections.iter_mut().for_each(|correction| correction.time.clone_from(&time));
    corrections
}

fn unsaved(cause: &io::Error) -> Failure {
    Failure::new("the correction cannot be saved").code(FailureCode::IoError).caused_by(cause)
}

fn refusal(cause: CannotContradict, wrong: Belief, task: &str) -> Failure {
    match cause {
        CannotContradict::NotBelieved => {
            Failure::new(format!("Agency does not say that the agent is {}", wrong.as_str()))
                .code(FailureCode::ChangedMeanwhile)
                .because("the state may have changed meanwhile")
                .hint(format!("agency explain {task}"))
        }
        CannotContradict::OwnRequest(source) => {
            let says = match source {
                EvidenceSource::Status => "the agent itself reports a permission or a question (OSC 7501)",
                _ => "a hook of the agent itself reports a permission or a question",
            };
            Failure::new("a request of the agent itself cannot be contradicted")
                .code(FailureCode::Unsupported)
                .because(says)
                .hint(format!("answer it with agency approvals or agency attach {task}; the state follows the agent's next report"))
        }
    }
}

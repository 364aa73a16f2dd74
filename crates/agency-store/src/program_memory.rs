//! `programs.json`: the memory of programs between their runs. It has signs of work that runs learned, and the corrections
//! of the user.
//!
//! Losing the file costs only the memory. Daemons of several hosts may share it, so every change reads it first.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use agency_api::paths::StateDir;
use agency_core::evidence::{Correction, ProgramMemory};
use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::bounded_read::{Links, read_bounded};

/// Programs that are remembered. The one that changed longest ago is forgotten first.
const MOST_PROGRAMS: usize = 64;
/// A program has one or two signs. More of them are accidents.
const MOST_SIGNS: usize = 16;
/// Corrections of one program. The oldest is forgotten first.
const MOST_CORRECTIONS: usize = 32;
/// The longest text in the file. Names of programs, signs and rules are far shorter.
const LONGEST_TEXT: usize = 200;

#[derive(Debug)]
pub struct ProgramMemories {
    path: PathBuf,
    /// The program that changed last is the last.
    programs: Mutex<Vec<ProgramMemory>>,
    changes: AtomicU64,
}

/// The fate of a change that cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unsaved {
    /// This daemon remembers it.
    Kept,
    /// The caller hears that it failed.
    Dropped,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    programs: Vec<ProgramMemory>,
}

impl ProgramMemories {
    pub fn open(state: &StateDir) -> ProgramMemories {
        let path = state.program_memory();
        let programs = read(&path).unwrap_or_else(|cause| {
            tracing::warn!(%cause, "what Agency remembers about programs cannot be read");
            Vec::new()
        });
        ProgramMemories { path, programs: Mutex::new(programs), changes: AtomicU64::new(0) }
    }

    /// How often the memory has changed. A run that has seen this number knows the present memory.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Returns the memory of a program; it is empty if Agency knows nothing.
    pub fn of(&self, program: &str) -> ProgramMemory {
        let programs = self.lock();
        let known = programs.iter().find(|known| known.program == program);
        known.cloned().unwrap_or_else(|| ProgramMemory::empty(program))
    }

    /// A run learned signs of work, and found that others are wrong. If the file cannot be written, this daemon still
    /// remembers.
    pub fn learn(
        &self,
        program: &str,
        learned: &BTreeSet<String>,
        wrong: &BTreeSet<String>,
    ) -> io::Result<()> {
        self.change(program, Unsaved::Kept, |memory| {
            memory.signs.retain(|sign| !wrong.contains(sign));
            for sign in learned.difference(wrong) {
                if memory.signs.len() < MOST_SIGNS {
                    memory.signs.insert(sign.clone());
                }
            }
        })
    }

    pub fn correct(&self, program: &str, corrections: Vec<Correction>) -> io::Result<()> {
        self.change(program, Unsaved::Dropped, |memory| {
            corrections.into_iter().for_each(|correction| memory.correct(correction));
            let oldest = memory.corrections.len().saturating_sub(MOST_CORRECTIONS);
            memory.corrections.drain(..oldest);
        })
    }

    /// Removes the corrections of a program and returns them.
    pub fn forget_corrections(&self, program: &str) -> io::Result<Vec<Correction>> {
        let mut forgotten = Vec::new();
        self.change(program, Unsaved::Dropped, |memory| forgotten = std::mem::take(&mut memory.corrections))?;
        Ok(forgotten)
    }

    fn change(
        &self,
        program: &str,
        unsaved: Unsaved,
        act: impl FnOnce(&mut ProgramMemory),
    ) -> io::Result<()> {
        if program.is_empty() || program.len() > LONGEST_TEXT {
            return Ok(());
        }
        let mut programs = self.lock();
        // Another host may have changed the file. A damaged file is replaced.
        let mut now = read(&self.path).unwrap_or_else(|_| programs.clone());
        let at = now.iter().position(|known| known.program == program);
        let before = at.map_or_else(|| ProgramMemory::empty(program), |at| now.remove(at));
        let mut memory = before.clone();
        act(&mut memory);
        bound(&mut memory);
        let is_empty = memory.signs.is_empty() && memory.corrections.is_empty();
        let known = programs.iter().find(|known| known.program == program);
        if memory == before && known.map_or(is_empty, |known| *known == memory) {
            return Ok(());
        }
        if !is_empty {
            now.push(memory);
        }
        now.drain(..now.len().saturating_sub(MOST_PROGRAMS));
        let content = Content { programs: now };
        let saved = atomic::write_with_mode(&self.path, &serde_json::to_vec_pretty(&content)?, 0o600);
        if saved.is_ok() || unsaved == Unsaved::Kept {
            *programs = content.programs;
            self.changes.fetch_add(1, Ordering::Release);
        }
        saved
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ProgramMemory>> {
        // The list is replaced in one step, so a thread that panicked while it held the lock left a complete one.
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &std::path::Path) -> io::Result<Vec<ProgramMemory>> {
    match read_bounded(path, Links::Refused) {
        Ok(bytes) => {
            let mut programs = serde_json::from_slice::<Content>(&bytes)?.programs;
            programs.drain(..programs.len().saturating_sub(MOST_PROGRAMS));
            programs.iter_mut().for_each(bound);
            Ok(programs)
        }
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(err) => Err(err),
    }
}

/// A user may edit the file, so its limits hold for reading too.
fn bound(memory: &mut ProgramMemory) {
    memory.signs.retain(|sign| sign.len() <= LONGEST_TEXT);
    while memory.signs.len() > MOST_SIGNS {
        memory.signs.pop_last();
    }
    memory.corrections.retain(|correction| correction.rule.len() <= LONGEST_TEXT);
    memory.corrections.truncate(MOST_CORRECTIONS);
}

#[cfg(test)]
mod tests {
    use agency_core::evidence::{Belief, EvidenceSource};

    use super::*;

    fn signs(words: &[&str]) -> BTreeSet<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn correction(rule: &str) -> Correction {
        let (source, wrong) = (EvidenceSource::Screen, Belief::Waiting);
        Correction { source, rule: rule.to_owned(), wrong, question: None, time: String::new() }
    }

    #[test]
    fn signs_and_corrections_are_kept_per_program_until_they_are_wrong_or_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path().to_owned());
        let memories = ProgramMemories::open(&state);
        memories.learn("one", &signs(&["thinking", "esc to stop"]), &signs(&[])).unwrap();
        memories.correct("one", vec![correction("a menu")]).unwrap();
        memories.learn("two", &signs(&["working"]), &signs(&[])).unwrap();
        let changes = memories.changes();
        memories.learn("two", &signs(&["working"]), &signs(&[])).unwrap();
        assert_eq!(memories.changes(), changes, "nothing is new");

        let next = ProgramMemories::open(&state);
        assert_eq!(next.of("one").signs, signs(&["thinking", "esc to stop"]));
        assert_eq!(next.of("one").corrections, [correction("a menu")]);
        assert_eq!(next.of("three"), ProgramMemory::empty("three"));
        next.learn("one", &signs(&[]), &signs(&["thinking"])).unwrap();
        assert_eq!(next.forget_corrections("one").unwrap(), [correction("a menu")]);
        let last = ProgramMemories::open(&state);
        assert_eq!(last.of("one").signs, signs(&["esc to stop"]));
        assert_eq!(last.of("one").corrections, []);
        assert_eq!(last.of("two").signs, signs(&["working"]));
    }

    #[test]
    fn a_damaged_file_and_one_that_cannot_be_written_cost_only_the_memory() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path().to_owned());
        std::fs::write(state.program_memory(), "{\"programs\": [").unwrap();
        let memories = ProgramMemories::open(&state);
        memories.learn("one", &signs(&["thinking"]), &signs(&[])).unwrap();
        assert_eq!(ProgramMemories::open(&state).of("one").signs, signs(&["thinking"]));

        let gone = StateDir::at(dir.path().join("gone"));
        let memories = ProgramMemories::open(&gone);
        memories.learn("one", &signs(&["thinking"]), &signs(&[])).unwrap_err();
        assert_eq!(memories.of("one").signs, signs(&["thinking"]), "this daemon remembers");
        memories.correct("one", vec![correction("a menu")]).unwrap_err();
        assert_eq!(memories.of("one").corrections, [], "the user hears that it failed");
    }

    #[test]
    fn the_memory_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path().to_owned());
        let memories = ProgramMemories::open(&state);
        let many: BTreeSet<String> = (0..99).map(|n| format!("sign {n}")).collect();
        for n in 0..MOST_PROGRAMS + 3 {
            memories.learn(&format!("p{n}"), &many, &signs(&[])).unwrap();
        }
        (0..99).for_each(|n| memories.correct("p9", vec![correction(&n.to_string())]).unwrap());
        let read = ProgramMemories::open(&state);
        assert_eq!(read.lock().len(), MOST_PROGRAMS);
        assert_eq!(read.of("p2").signs.len(), 0, "the oldest are forgotten");
        let p9 = read.of("p9");
        assert_eq!((p9.signs.len(), p9.corrections.len()), (MOST_SIGNS, MOST_CORRECTIONS));
        assert_eq!(p9.corrections.last().unwrap().rule, "98");
    }
}

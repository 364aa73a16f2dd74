//! Operations on a task's files in the simulated world: merges, syncs, removals, and what comes back.
//!
//! Not here: whether one may begin. Core decides that; this file asserts that it decided well.

use agency_core::exit::ExitCode;
use agency_core::ids::{ProjectId, TaskKey, Ticket};
use agency_core::supervisor::{AgentActivity, Event, Operation, Permit, Verdict};

use crate::daemon::kind_of;
use crate::scribe;
use crate::universe::{Temper, World, WorldEvent};

impl World {
    /// The supervisor let the daemon begin. No other operation may work on these files.
    pub(crate) fn work_begins(&mut self, key: TaskKey, operation: Operation) {
        *self.tally.works.entry(name(operation)).or_default() += 1;
        self.say(|| format!("{operation:?} of {key} begins"));
        assert!(!self.git.contains_key(&key), "{operation:?} of {key} while its workspace is made");
        assert!(!self.setups.contains_key(&key), "{operation:?} of {key} while it is set up");
        match operation {
            Operation::Finish | Operation::Sync | Operation::RestoreTurn | Operation::RestoreFiles => {}
            _ => assert!(!self.lives(&key), "{operation:?} of {key} while its agent is running"),
        }
        if matches!(operation, Operation::RestoreTask | Operation::RestoreFiles) {
            assert!(
                !self.emptying.contains(&key.project),
                "{operation:?} of {key} from a trash that is emptied"
            );
        }
        match operation {
            Operation::RestoreTask => drop(self.returns.insert(key.clone())),
            Operation::Merge => drop(self.merges.insert(key.clone())),
            _ => {}
        }
        self.may_crash_meanwhile(&key);
        let generation = self.generation;
        let other = self.works.insert(key.clone(), (generation, operation));
        assert!(other.is_none(), "{operation:?} of {key} during {other:?}");
        let delay = self.dice.delay();
        self.later(delay, WorldEvent::WorkIsOver { key, generation });
    }

    /// An agent at rest may still crash.
    fn may_crash_meanwhile(&mut self, key: &TaskKey) {
        let run = self.living().find(|(_, run)| run.key == *key && run.temper != Temper::Undead);
        let Some(run) = run.map(|(id, _)| id.clone()).filter(|_| self.dice.percent(90)) else { return };
        let delay = self.dice.delay();
        self.later(delay, WorldEvent::Ends { run, raw: ExitCode::Code(1) });
    }

    pub(crate) fn work_is_over(&mut self, key: TaskKey, generation: u64) {
        // Cut off with its daemon, and the next one may have begun again.
        if self.works.get(&key).is_none_or(|(begun_in, _)| *begun_in != generation) {
            return;
        }
        let (_, operation) = self.works.remove(&key).expect("it was just seen");
        let fails = self.dice.percent(self.faults.git_fails);
        self.say(|| format!("{operation:?} of {key} is over, failed: {fails}"));
        match operation {
            Operation::Merge => self.merge_is_over(key, fails),
            Operation::Remove | Operation::Discard => self.removal_is_over(key, operation, fails),
            Operation::FinishRemoval => self.cut_off_removal_is_over(key, fails),
            Operation::RestoreTask => self.return_is_over(key, fails),
            _ => self.finish(key, operation),
        }
    }

    fn finish(&mut self, key: TaskKey, operation: Operation) {
        self.handle(Event::Finished { key, operation });
    }

    fn merge_is_over(&mut self, key: TaskKey, fails: bool) {
        self.finish(key.clone(), Operation::Merge);
        if self.daemon.is_none() {
            return;
        }
        self.merges.remove(&key);
        if !fails {
            self.mark_merged(key);
        }
    }

    fn mark_merged(&mut self, key: TaskKey) {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.daemon().waiting.insert(ticket, Some(key.clone()));
        self.handle(Event::Mark { key, ticket, verdict: Verdict::Merged });
    }

    /// Merges that the last daemon did not finish: git shows whether the target has moved.
    pub(crate) fn settle_merges(&mut self, project: Option<&ProjectId>) {
        let cut_off = self.merges.iter().filter(|key| self.can_be_settled(key, project));
        for key in cut_off.cloned().collect::<Vec<_>>() {
            if self.daemon.is_none() {
                return;
            }
            self.merges.remove(&key);
            self.tally.count("merge that was cut off");
            if self.dice.percent(50) {
                self.mark_merged(key);
            }
        }
    }

    fn can_be_settled(&self, key: &TaskKey, project: Option<&ProjectId>) -> bool {
        !self.is_hidden(key) && project.is_none_or(|project| key.project == *project)
    }

    fn removal_is_over(&mut self, key: TaskKey, operation: Operation, fails: bool) {
        self.removals.remove(&key);
        if !fails {
            self.put_into_trash(&key);
        }
        self.finish(key.clone(), operation);
        let generation = self.generation;
        self.task_is_seen(key, generation);
    }

    /// Taken back, finished, or neither.
    fn cut_off_removal_is_over(&mut self, key: TaskKey, fails: bool) {
        if fails || self.dice.percent(20) {
            self.tally.unsettled += 1;
            return self.leave_unsettled(&key);
        }
        self.removals.remove(&key);
        if self.dice.percent(50) {
            self.put_into_trash(&key);
        }
        self.finish(key.clone(), Operation::FinishRemoval);
        let generation = self.generation;
        self.task_is_seen(key, generation);
    }

    fn put_into_trash(&mut self, key: &TaskKey) {
        let file = self.files.remove(key).expect("a task that is removed has a file");
        self.trash.insert(key.clone(), file);
    }

    fn return_is_over(&mut self, key: TaskKey, fails: bool) {
        self.returns.remove(&key);
        if !fails {
            let file = self.trash.remove(&key).expect("a restored task was in the trash");
            self.files.insert(key.clone(), file);
        }
        self.finish(key.clone(), Operation::RestoreTask);
        let generation = self.generation;
        self.task_is_seen(key, generation);
    }

    /// Before the daemon answers a caller, it settles removals and restorations that the last daemon did not finish.
    pub(crate) fn go_on_with_what_was_cut_off(&mut self, project: Option<&ProjectId>) {
        let removals = self.removals.iter().map(|key| (key, Operation::FinishRemoval));
        let returns = self.returns.iter().map(|key| (key, Operation::RestoreTask));
        let cut_off = removals.chain(returns).filter(|(key, _)| self.can_be_settled(key, project));
        for (key, operation) in cut_off.map(|(key, operation)| (key.clone(), operation)).collect::<Vec<_>>() {
            match self.begin(&key, operation, AgentActivity::AtWork) {
                Ok(()) => self.work_begins(key, operation),
                // A project that is found while the daemon shuts down is left to the next one.
                Err(refusal) => {
                    assert!(self.daemon().closing, "{operation:?} of {key} was cut off: {refusal}")
                }
            }
        }
    }

    /// One snapshot at a time; a turn that ends meanwhile is not forgotten.
    pub(crate) fn turn_ends(&mut self, key: &TaskKey) {
        if self.is_hidden(key) || !self.is_owned_and_lives(key) {
            return;
        }
        self.take_snapshot(key);
    }

    fn take_snapshot(&mut self, key: &TaskKey) {
        self.write_down(|_| format!("turn-ended {}", scribe::show(key)));
        let is_refused = self.daemon().supervisor.permit(key, Operation::KeepTurn) == Permit::Refused;
        if self.daemon().supervisor.begin_snapshot(key) {
            self.say(|| format!("a snapshot of {key} begins"));
            self.tally.count("snapshot");
            assert!(self.snapshots.insert(key.clone()), "two snapshots of {key} at once");
            let (delay, generation) = (self.dice.delay(), self.generation);
            self.later(delay, WorldEvent::SnapshotIsTaken { key: key.clone(), generation });
        } else if !is_refused {
            assert!(self.snapshots.contains(key), "no snapshot of {key} is taken, and none is under way");
            self.unkept_turns.insert(key.clone());
        }
    }

    pub(crate) fn snapshot_is_taken(&mut self, key: &TaskKey, generation: u64) {
        if generation != self.generation || self.daemon.is_none() {
            return;
        }
        self.snapshots.remove(key);
        self.write_down(|_| format!("turn-kept {}", scribe::show(key)));
        let is_wanted_again = self.daemon().supervisor.end_snapshot(key);
        assert_eq!(is_wanted_again, self.unkept_turns.remove(key), "a turn of {key} is forgotten");
        if is_wanted_again {
            self.tally.count("turn that ended during a snapshot");
            self.take_snapshot(key);
        }
    }

    pub(crate) fn empties_the_trash(&mut self, project: ProjectId) {
        if self.daemon().hidden.contains(&project) {
            return;
        }
        self.write_down(|_| format!("empty-trash {project}"));
        if let Err(refusal) = self.daemon().supervisor.begin_emptying(&project) {
            return *self.tally.refusals.entry(kind_of(&refusal)).or_default() += 1;
        }
        self.say(|| format!("the trash of {project} is being emptied"));
        self.tally.count("emptied trash");
        let mut works = self.works.iter().filter(|(key, _)| key.project == project);
        let is_restoring = works.any(|(_, (_, operation))| {
            matches!(operation, Operation::RestoreTask | Operation::RestoreFiles | Operation::RestoreTurn)
        });
        assert!(!is_restoring, "the trash of {project} is emptied while something comes out of it");
        assert!(self.emptying.insert(project.clone()), "the trash of {project} is emptied twice at once");
        let (delay, generation) = (self.dice.delay(), self.generation);
        self.later(delay, WorldEvent::TrashIsEmpty { project, generation });
    }

    pub(crate) fn trash_is_empty(&mut self, project: &ProjectId, generation: u64) {
        if generation != self.generation || self.daemon.is_none() {
            return;
        }
        self.emptying.remove(project);
        self.trash.retain(|key, _| key.project != *project || self.returns.contains(key));
        self.write_down(|_| format!("emptied {project}"));
        self.daemon().supervisor.end_emptying(project);
    }
}

fn name(operation: Operation) -> &'static str {
    match operation {
        Operation::Merge => "Merge",
        Operation::Finish => "Finish",
        Operation::Sync => "Sync",
        Operation::RestoreTurn => "RestoreTurn",
        Operation::RestoreFiles => "RestoreFiles",
        Operation::RestoreTask => "RestoreTask",
        Operation::Remove => "Remove",
        Operation::FinishRemoval => "FinishRemoval",
        _ => "other",
    }
}

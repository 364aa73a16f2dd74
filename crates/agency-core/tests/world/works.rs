//! Operations on a task's files in the simulated world: merges, syncs, removals, and what comes back.
//!
//! Not here: whether one may begin. Core decides that; this file asserts that it decided well.

use agency_core::exit::ExitCode;
use agency_core::ids::{TaskKey, Ticket};
use agency_core::supervisor::{AgentActivity, Event, Operation, Verdict};

use crate::universe::{Temper, World, WorldEvent};

impl World {
    /// The supervisor let the daemon begin. No other operation may work on these files.
    pub(crate) fn work_begins(&mut self, key: TaskKey, operation: Operation) {
        *self.tally.works.entry(name(operation)).or_default() += 1;
        self.say(|| format!("{operation:?} of {key} begins"));
        assert!(!self.git.contains_key(&key), "{operation:?} of {key} while its workspace is made");
        assert!(!self.setups.contains_key(&key), "{operation:?} of {key} while it is set up");
        match operation {
            Operation::Sync | Operation::RestoreTurn | Operation::RestoreFiles => {}
            _ => assert!(!self.lives(&key), "{operation:?} of {key} while its agent lives"),
        }
        if operation == Operation::RestoreTask {
            self.returns.insert(key.clone());
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
        let Some(daemon) = self.daemon.as_mut().filter(|_| !fails) else { return };
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        daemon.waiting.insert(ticket, Some(key.clone()));
        self.handle(Event::Mark { key, ticket, verdict: Verdict::Merged });
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
            let file = self.trash.remove(&key).expect("what comes back was in the trash");
            self.files.insert(key.clone(), file);
        }
        self.finish(key.clone(), Operation::RestoreTask);
        let generation = self.generation;
        self.task_is_seen(key, generation);
    }

    /// Before the daemon answers a caller, it settles removals and restorations that the last daemon did not finish.
    pub(crate) fn go_on_with_what_was_cut_off(&mut self) {
        let removals = self.removals.iter().map(|key| (key.clone(), Operation::FinishRemoval));
        let returns = self.returns.iter().map(|key| (key.clone(), Operation::RestoreTask));
        let cut_off: Vec<(TaskKey, Operation)> = removals.chain(returns).collect();
        for (key, operation) in cut_off {
            self.begin(&key, operation, AgentActivity::AtWork).expect("nothing else is under way yet");
            self.work_begins(key, operation);
        }
    }
}

fn name(operation: Operation) -> &'static str {
    match operation {
        Operation::Merge => "Merge",
        Operation::Sync => "Sync",
        Operation::RestoreTurn => "RestoreTurn",
        Operation::RestoreFiles => "RestoreFiles",
        Operation::RestoreTask => "RestoreTask",
        Operation::Remove => "Remove",
        Operation::FinishRemoval => "FinishRemoval",
        _ => "other",
    }
}

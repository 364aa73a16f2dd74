//! The people of the simulated world: they ask for anything at any time, and edit files while it is being done.

use agency_core::ids::{TaskKey, Ticket};
use agency_core::supervisor::*;
use agency_core::task_status::TaskStatus;

use crate::daemon::kind_of;
use crate::universe::{TaskOnDisk, WorkspaceOnDisk, World, WorldEvent};

impl World {
    pub(crate) fn person_acts(&mut self) {
        if self.daemon.is_some() {
            self.acts_left -= 1;
            self.act();
        }
        if self.acts_left > 0 {
            let delay = self.dice.delay();
            self.later(delay, WorldEvent::PersonActs);
        }
    }

    fn act(&mut self) {
        let keys: Vec<TaskKey> = self.known_keys().into_iter().collect();
        if keys.is_empty() || self.dice.percent(8) {
            return self.makes_a_task();
        }
        let key = self.dice.one_of(&keys);
        match self.dice.below(100) {
            0..20 => self.asks(key, |world, key, ticket| Event::Start {
                key,
                ticket,
                plan: world.plan(Origin::Existing),
            }),
            20..23 => self.asks(key, |world, key, ticket| Event::SetUp {
                key,
                ticket,
                plan: world.plan(Origin::Existing),
            }),
            23..25 => self.asks_for_work(key, Operation::Merge),
            25..28 => self.asks_for_work(key, Operation::Sync),
            28..30 => self.asks_for_work(key, Operation::RestoreTurn),
            30..32 => self.asks_for_work(key, Operation::RestoreFiles),
            32..35 => self.brings_a_task_back(),
            35..50 => self.asks(key, |_, key, ticket| Event::Stop { key, ticket }),
            50..65 => self.asks(key, |world, key, ticket| Event::Restart {
                key,
                ticket,
                plan: world.plan(Origin::Existing),
            }),
            65..72 => self.asks(key, |_, key, ticket| Event::Idle { key, ticket }),
            72..80 => self.asks(key, |world, key, ticket| {
                let verdicts = [Verdict::Completed, Verdict::Failed, Verdict::Reviewed, Verdict::Merged];
                Event::Mark { key, ticket, verdict: world.dice.one_of(&verdicts) }
            }),
            80..86 => self.removes(key),
            86..90 => self.edits(key),
            90..93 => self.finds_an_orphan(key),
            93..95 => self.shuts_down(),
            95..97 => self.daemon_dies(),
            _ => self.asks(self.a_stranger(), |world, key, ticket| {
                let plan = world.plan(Origin::Existing);
                Event::Start { key, ticket, plan }
            }),
        }
    }

    fn a_stranger(&self) -> TaskKey {
        TaskKey { task: agency_core::ids::TaskId(999), ..self.known_keys().first().expect("a task").clone() }
    }

    fn asks(&mut self, key: TaskKey, question: impl FnOnce(&mut World, TaskKey, Ticket) -> Event) {
        let ticket = self.new_ticket(Some(key.clone()));
        let event = question(self, key, ticket);
        self.handle(event);
    }

    fn new_ticket(&mut self, key: Option<TaskKey>) -> Ticket {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.daemon.as_mut().expect("a daemon to ask").waiting.insert(ticket, key);
        ticket
    }

    fn plan(&mut self, task: Origin) -> StartPlan {
        StartPlan { task, terms: self.new_terms() }
    }

    fn makes_a_task(&mut self) {
        let key = self.new_key();
        let file = TaskOnDisk { status: TaskStatus::Draft, workspace: None, made_by: None, elsewhere: false };
        self.files.insert(key.clone(), file);
        if self.dice.percent(30) {
            return self.task_is_seen(key, self.generation);
        }
        let ticket = self.new_ticket(Some(key.clone()));
        self.files.get_mut(&key).expect("just made").made_by = Some(ticket);
        let plan = self.plan(Origin::MadeByThisCall);
        self.handle(Event::Start { key, ticket, plan });
    }

    /// Tries again to finish a removal that was cut off.
    fn removes(&mut self, key: TaskKey) {
        let occupation = self.daemon.as_ref().expect("a daemon to ask").supervisor.occupation(&key);
        if occupation == Occupation::Unsettled {
            return self.asks_for_work(key, Operation::FinishRemoval);
        }
        let discard = self.dice.percent(50);
        self.asks(key, |_, key, ticket| Event::Remove { key, ticket, discard });
    }

    fn asks_for_work(&mut self, key: TaskKey, operation: Operation) {
        let agent = self.dice.one_of(&[AgentActivity::AtRest, AgentActivity::AtWork]);
        self.say(|| format!("{operation:?} of {key} is asked for"));
        let supervisor = &mut self.daemon.as_mut().expect("a daemon to ask").supervisor;
        match supervisor.begin(&key, operation, agent) {
            Ok(()) => self.work_begins(key, operation),
            Err(refusal) => *self.tally.refusals.entry(kind_of(&refusal)).or_default() += 1,
        }
    }

    fn brings_a_task_back(&mut self) {
        let keys: Vec<TaskKey> = self.trash.keys().cloned().collect();
        if !keys.is_empty() {
            let key = self.dice.one_of(&keys);
            self.asks_for_work(key, Operation::RestoreTask);
        }
    }

    fn edits(&mut self, key: TaskKey) {
        let status = self.dice.one_of(&TaskStatus::ALL);
        self.files.get_mut(&key).expect("a known task").status = status;
        self.task_is_seen(key, self.generation);
    }

    /// A keeper from another life turns up for a task that has none.
    fn finds_an_orphan(&mut self, key: TaskKey) {
        let daemon = self.daemon.as_ref().expect("a daemon to ask");
        let supervisor = &daemon.supervisor;
        let is_free = supervisor.occupation(&key) == Occupation::Free;
        let known = supervisor.status(&key).is_some();
        if daemon.closing || !is_free || !known || self.files[&key].elsewhere {
            return;
        }
        let ours = WorkspaceOnDisk { made_in: 0, lived_in: true, set_up: true };
        self.files.get_mut(&key).expect("a known task").workspace.get_or_insert(ours);
        self.beyond_limit += 1;
        let terms = self.new_terms();
        let run = self.born(key.clone(), terms);
        self.runs.get_mut(&run).expect("just born").announced = true;
        self.asks(key, |_, key, ticket| Event::Adopt { key, ticket, run, terms });
    }

    fn shuts_down(&mut self) {
        let ticket = self.new_ticket(None);
        self.daemon.as_mut().expect("a daemon to ask").closing = true;
        self.handle(Event::Shutdown { ticket });
    }

    pub(crate) fn last_shutdown(&mut self) {
        // The end of the world is without accidents.
        self.faults.daemon_dies = 0;
        if self.daemon.is_none() {
            self.daemon_boots();
        }
        self.shuts_down();
    }
}

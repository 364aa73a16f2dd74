//! The people of the simulated world: they ask for anything at any time, and edit files while it is being done.

use agency_core::ids::{TaskKey, Ticket};
use agency_core::supervisor::*;
use agency_core::task_status::TaskStatus;

use crate::universe::{Happening, TaskOnDisk, WorkspaceOnDisk, World};

impl World {
    pub(crate) fn person_acts(&mut self) {
        if self.daemon.is_some() {
            self.acts_left -= 1;
            self.act();
        }
        if self.acts_left > 0 {
            let delay = self.dice.delay();
            self.later(delay, Happening::PersonActs);
        }
    }

    fn act(&mut self) {
        let keys: Vec<TaskKey> = self.known_keys().into_iter().collect();
        if keys.is_empty() || self.dice.percent(8) {
            return self.makes_a_task();
        }
        let key = self.dice.one_of(&keys);
        match self.dice.below(100) {
            0..27 => self.asks(key, |world, key, ticket| Event::Start {
                key: key.clone(),
                ticket,
                plan: world.plan(&key),
            }),
            27..30 => self.asks(key, |world, key, ticket| Event::SetUp {
                key: key.clone(),
                ticket,
                plan: world.plan(&key),
            }),
            30..50 => self.asks(key, |_, key, ticket| Event::Stop { key, ticket }),
            50..65 => self.asks(key, |world, key, ticket| Event::Restart {
                key: key.clone(),
                ticket,
                plan: world.plan(&key),
            }),
            65..72 => self.asks(key, |_, key, ticket| Event::Idle { key, ticket }),
            72..80 => self.asks(key, |world, key, ticket| {
                let verdicts = [Verdict::Completed, Verdict::Failed, Verdict::Reviewed, Verdict::Merged];
                Event::Mark { key, ticket, verdict: world.dice.one_of(&verdicts) }
            }),
            80..86 => self.asks(key, |_, key, ticket| Event::Remove { key, ticket }),
            86..90 => self.edits(key),
            90..93 => self.finds_an_orphan(key),
            93..95 => self.shuts_down(),
            95..97 => self.daemon_dies(),
            _ => self.asks(self.a_stranger(), |world, key, ticket| {
                let plan = world.plan_in(Workspace::Ready, Origin::Existing);
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

    /// What the daemon sees when it looks, which is only the files.
    fn plan(&mut self, key: &TaskKey) -> StartPlan {
        let is_ready = self.files[key].workspace.as_ref().is_some_and(|it| it.set_up);
        let workspace = if is_ready { Workspace::Ready } else { Workspace::Missing };
        self.plan_in(workspace, Origin::Existing)
    }

    fn plan_in(&mut self, workspace: Workspace, task: Origin) -> StartPlan {
        StartPlan { workspace, task, terms: self.new_terms() }
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
        let plan = self.plan_in(Workspace::Missing, Origin::MadeByThisCall);
        self.handle(Event::Start { key, ticket, plan });
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
        let at_rest = supervisor.doing(&key).is_none() && supervisor.live_run(&key).is_none();
        let known = supervisor.status(&key).is_some();
        if daemon.closing || !at_rest || !known || self.files[&key].elsewhere {
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

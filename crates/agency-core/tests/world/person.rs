//! The people of the simulated world: they ask for anything at any time, and edit files while it is being done.
//!
//! First an act is chosen, and then it is done. So a replay can do the same act in a world that differs.

use agency_core::ids::{ProjectId, RunId, TaskId, TaskKey, Ticket};
use agency_core::supervisor::*;
use agency_core::task_status::TaskStatus;

use crate::connections::is_session;
use crate::daemon::kind_of;
use crate::history::{Act, SpoiledFile};
use crate::universe::{TaskOnDisk, WorkspaceOnDisk, World, WorldEvent};

impl World {
    pub(crate) fn choose_act(&mut self) -> Option<Act> {
        let act = match self.daemon.is_some() {
            true => {
                self.acts_left -= 1;
                self.choose_any_act()
            }
            false => self.choose_spoiled_file(),
        };
        if self.acts_left > 0 {
            let delay = self.fate.delay();
            self.later(delay, WorldEvent::PersonActs);
        }
        act
    }

    /// A disk does not wait for a daemon.
    fn choose_spoiled_file(&mut self) -> Option<Act> {
        if !self.fate.percent(self.faults.files_spoil) {
            return None;
        }
        let keys: Vec<TaskKey> = self.known_keys().into_iter().collect();
        let runs: Vec<RunId> = self.living().map(|(id, _)| id.clone()).collect();
        let spoil = match self.fate.below(4) {
            0 if !keys.is_empty() => SpoiledFile::Task { key: self.fate.one_of(&keys) },
            1 if !runs.is_empty() => SpoiledFile::Run { run: self.fate.one_of(&runs) },
            2 => SpoiledFile::Project { project: self.choose_project() },
            _ => SpoiledFile::Epoch,
        };
        Some(Act::Spoil(spoil))
    }

    fn choose_project(&mut self) -> ProjectId {
        ProjectId(self.fate.one_of(&["p", "q"]).into())
    }

    /// A user gives an orphan back to its task, or ends it.
    fn choose_orphan(&mut self) -> Option<Act> {
        let orphans: Vec<RunId> = self.daemon().orphans.iter().cloned().collect();
        if orphans.is_empty() {
            return None;
        }
        let run = self.fate.one_of(&orphans);
        Some(if self.fate.percent(60) { Act::AdoptOrphan { run } } else { Act::KillOrphan { run } })
    }

    /// Mostly the agent whose snapshot is being taken.
    fn choose_turn(&mut self) -> Option<Act> {
        let live: Vec<TaskKey> = self.living().map(|(_, run)| run.key.clone()).collect();
        let busy: Vec<TaskKey> = live.iter().filter(|key| self.snapshots.contains(key)).cloned().collect();
        let keys = if busy.is_empty() { live } else { busy };
        (!keys.is_empty()).then(|| Act::EndTurn { key: self.fate.one_of(&keys) })
    }

    fn choose_hidden_project(&mut self) -> Option<Act> {
        let hidden: Vec<ProjectId> = self.daemon().hidden.iter().cloned().collect();
        (!hidden.is_empty()).then(|| Act::FindProject { project: self.fate.one_of(&hidden) })
    }

    fn choose_any_act(&mut self) -> Option<Act> {
        let keys: Vec<TaskKey> = self.known_keys().into_iter().collect();
        if keys.is_empty() || self.fate.percent(8) {
            return Some(self.choose_new_task());
        }
        if !self.daemon().orphans.is_empty() && self.fate.percent(25) {
            return self.choose_orphan();
        }
        let removed: Vec<TaskKey> = self.trash.keys().cloned().collect();
        let is_late = !removed.is_empty() && self.fate.percent(5);
        let key = self.fate.one_of(if is_late { &removed } else { &keys });
        Some(match self.fate.below(120) {
            100..105 => return self.choose_hidden_project(),
            105..114 => return self.choose_turn(),
            114..116 => Act::EmptyTrash { project: self.choose_project() },
            116 => Act::Reconnect,
            117..120 => return self.choose_spoiled_file(),
            0..20 => Act::Start { key, terms: self.new_terms() },
            20..23 => Act::SetUp { key, terms: self.new_terms() },
            23..25 => self.choose_work(key, Operation::Merge),
            25..28 => self.choose_work(key, Operation::Sync),
            28..30 => self.choose_work(key, Operation::RestoreTurn),
            30..32 => self.choose_work(key, Operation::RestoreFiles),
            32..35 => return self.choose_removed_task(),
            35..50 => Act::Stop { key },
            50..65 => Act::Restart { key, terms: self.new_terms() },
            65..72 => Act::Pause { key },
            72..80 => {
                let verdicts = [Verdict::Completed, Verdict::Failed, Verdict::Reviewed, Verdict::Merged];
                Act::Mark { key, verdict: self.fate.one_of(&verdicts) }
            }
            80..86 => Act::Remove { key, discard: self.fate.percent(50) },
            86..90 => Act::Edit { key, status: self.fate.one_of(&TaskStatus::ALL) },
            90..93 => Act::FindOrphan { key, terms: self.new_terms() },
            93..95 => Act::ShutDown,
            95..97 => Act::KillDaemon,
            _ => Act::Start { key: self.a_stranger(), terms: self.new_terms() },
        })
    }

    fn choose_new_task(&mut self) -> Act {
        let key = self.new_key();
        let terms = (!self.fate.percent(30)).then(|| self.new_terms());
        Act::MakeTask { key, terms }
    }

    fn choose_work(&mut self, key: TaskKey, operation: Operation) -> Act {
        let agent = self.fate.one_of(&[AgentActivity::AtRest, AgentActivity::AtWork]);
        Act::BeginWork { key, operation, agent }
    }

    fn choose_removed_task(&mut self) -> Option<Act> {
        let keys: Vec<TaskKey> = self.trash.keys().cloned().collect();
        if keys.is_empty() {
            return None;
        }
        let key = self.fate.one_of(&keys);
        Some(self.choose_work(key, Operation::RestoreTask))
    }

    /// Without a daemon there is none to ask.
    pub(crate) fn act(&mut self, act: Act) {
        if let Act::Spoil(spoil) = act {
            return self.spoil(spoil);
        }
        if self.daemon.is_none() {
            return;
        }
        let plan = |terms| StartPlan { task: Origin::Existing, terms };
        match act {
            Act::MakeTask { key, terms } => self.makes_a_task(key, terms),
            Act::Start { key, terms } => {
                self.asks(key, |key, ticket| Event::Start { key, ticket, plan: plan(terms) })
            }
            Act::Restart { key, terms } => {
                self.asks(key, |key, ticket| Event::Restart { key, ticket, plan: plan(terms) })
            }
            Act::SetUp { key, terms } => {
                self.asks(key, |key, ticket| Event::SetUp { key, ticket, plan: plan(terms) })
            }
            Act::Stop { key } => self.asks(key, |key, ticket| Event::Stop { key, ticket }),
            Act::Pause { key } => self.asks(key, |key, ticket| Event::Idle { key, ticket }),
            Act::Mark { key, verdict } => self.asks(key, |key, ticket| Event::Mark { key, ticket, verdict }),
            Act::Remove { key, discard } => self.removes(key, discard),
            Act::BeginWork { key, operation, agent } => self.asks_for_work(key, operation, agent),
            Act::Edit { key, status } => self.edits(key, status),
            Act::FindOrphan { key, terms } => self.finds_an_orphan(key, terms),
            Act::EndTurn { key } => self.turn_ends(&key),
            Act::EmptyTrash { project } => self.empties_the_trash(project),
            Act::AdoptOrphan { run } => {
                self.adopts_an_orphan(run, |world, key| world.new_ticket(Some(key)));
            }
            Act::KillOrphan { run } => self.kills_an_orphan(run),
            Act::FindProject { project } => self.finds_a_project(&project),
            Act::Reconnect => self.reconnect(),
            Act::Spoil(_) => {}
            Act::ShutDown => self.shuts_down(),
            Act::KillDaemon => self.daemon_dies(),
        }
    }

    fn a_stranger(&self) -> TaskKey {
        TaskKey { task: TaskId(999), ..self.known_keys().first().expect("a task").clone() }
    }

    fn asks(&mut self, key: TaskKey, question: impl FnOnce(TaskKey, Ticket) -> Event) {
        let ticket = self.new_ticket(Some(key.clone()));
        self.handle(question(key, ticket));
    }

    fn new_ticket(&mut self, key: Option<TaskKey>) -> Ticket {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.daemon().waiting.insert(ticket, key);
        ticket
    }

    /// With terms, the call that makes the task starts it too.
    fn makes_a_task(&mut self, key: TaskKey, terms: Option<RunTerms>) {
        // The first command in a project makes it known.
        self.finds_a_project(&key.project);
        if self.daemon.is_none() {
            return;
        }
        let (status, workspace) = (TaskStatus::Draft, None);
        let file = TaskOnDisk { status, workspace, made_by: None, elsewhere: false, is_broken: false };
        self.files.insert(key.clone(), file);
        let Some(terms) = terms else {
            return self.task_is_seen(key, self.generation);
        };
        let ticket = self.new_ticket(Some(key.clone()));
        self.files.get_mut(&key).expect("just made").made_by = Some(ticket);
        let plan = StartPlan { task: Origin::MadeByThisCall, terms };
        self.handle(Event::Start { key, ticket, plan });
    }

    /// Tries again to finish a removal that was cut off.
    fn removes(&mut self, key: TaskKey, discard: bool) {
        if self.daemon().supervisor.occupation(&key) == Occupation::Unsettled {
            return self.asks_for_work(key, Operation::FinishRemoval, AgentActivity::AtWork);
        }
        self.asks(key, |key, ticket| Event::Remove { key, ticket, discard });
    }

    /// The caller has looked for the task or the trash entry first.
    fn asks_for_work(&mut self, key: TaskKey, operation: Operation, agent: AgentActivity) {
        let is_there = match operation {
            Operation::RestoreTask => self.trash.contains_key(&key),
            _ => self.files.contains_key(&key),
        };
        if !is_there || self.is_hidden(&key) {
            return;
        }
        self.say(|| format!("{operation:?} of {key} is requested"));
        match self.begin(&key, operation, agent) {
            Ok(()) => self.work_begins(key, operation),
            Err(refusal) => *self.tally.refusals.entry(kind_of(&refusal)).or_default() += 1,
        }
    }

    fn edits(&mut self, key: TaskKey, status: TaskStatus) {
        let Some(file) = self.files.get_mut(&key) else { return };
        (file.status, file.is_broken) = (status, false);
        self.task_is_seen(key, self.generation);
    }

    fn finds_an_orphan(&mut self, key: TaskKey, terms: RunTerms) {
        let daemon = self.daemon();
        let is_free = daemon.supervisor.occupation(&key) == Occupation::Free;
        let is_known = daemon.supervisor.status(&key).is_some();
        if daemon.closing || !is_free || !is_known || self.files[&key].elsewhere || is_session(&key) {
            return;
        }
        let ours = WorkspaceOnDisk { made_in: 0, lived_in: true, set_up: true };
        self.files.get_mut(&key).expect("a known task").workspace.get_or_insert(ours);
        self.beyond_limit += 1;
        let run = self.born(key.clone(), terms);
        self.runs.get_mut(&run).expect("just born").announced = true;
        self.add_orphan(run.clone());
        self.adopts_an_orphan(run, |world, key| world.new_ticket(Some(key)));
    }

    pub(crate) fn shuts_down(&mut self) {
        let ticket = self.new_ticket(None);
        self.daemon().closing = true;
        self.handle(Event::Shutdown { ticket });
    }
}

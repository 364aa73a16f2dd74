//! The daemon of the simulated world: it performs what the supervisor decides, and may die between any two effects.
//!
//! It also asserts for every effect that the supervisor may order it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use agency_core::Time;
use agency_core::connection::{Connection, Event as ConnectionEvent};
use agency_core::ids::{Epoch, ProjectId, RunId, TaskKey, Ticket};
use agency_core::supervisor::*;
use agency_core::task_status::TaskStatus;

use crate::connections::SessionStart;
use crate::scribe::{self, Scribe};
use crate::universe::{GitJob, GitKind, RunInTheWorld, World, WorldEvent};

pub(crate) struct Daemon {
    pub(crate) supervisor: Supervisor,
    /// Those who wait, and for which task; a shutdown is for none.
    pub(crate) waiting: BTreeMap<Ticket, Option<TaskKey>>,
    /// The terms of the next run: those of the start that was requested last.
    pub(crate) terms: BTreeMap<TaskKey, RunTerms>,
    /// When crashes were answered with a restart, since the last requested start.
    pub(crate) crash_restarts: BTreeMap<TaskKey, Vec<Time>>,
    /// Clocks are not exact: a tick may come late.
    tick_late_by: Duration,
    pub(crate) closing: bool,
    /// It has not told the supervisor of all tasks yet.
    is_booting: bool,
    /// Live runs that no task owns.
    pub(crate) orphans: BTreeSet<RunId>,
    /// Orphans that callers want to give back to their tasks.
    pub(crate) adopting: BTreeMap<Ticket, RunId>,
    pub(crate) connection: Connection,
    /// Those who wait for the connection: starts of sessions, and callers that want a new process.
    pub(crate) connecting: BTreeMap<Ticket, Option<SessionStart>>,
    /// Projects that it does not know, because their files are spoiled.
    pub(crate) hidden: BTreeSet<ProjectId>,
}

impl Daemon {
    pub(crate) fn tick_at(&self) -> Option<Time> {
        let due = [self.supervisor.deadline(), self.connection.deadline()].into_iter().flatten().min();
        due.map(|due| due + self.tick_late_by)
    }
}

impl World {
    pub(crate) fn daemon_boots(&mut self) {
        assert!(self.daemon.is_none(), "two daemons at once");
        self.generation += 1;
        self.tally.boots += 1;
        let generation = self.generation;
        self.say(|| format!("daemon {generation} boots"));
        if let Some(scribe) = &mut self.scribe {
            scribe.daemon_boots(self.limits);
        }
        self.daemon = Some(Daemon {
            supervisor: Supervisor::new(self.limits),
            waiting: BTreeMap::new(),
            terms: BTreeMap::new(),
            crash_restarts: BTreeMap::new(),
            tick_late_by: self.dice.one_of(&[Duration::ZERO, Duration::from_millis(700)]),
            closing: false,
            is_booting: true,
            orphans: BTreeSet::new(),
            adopting: BTreeMap::new(),
            connection: Connection::new("X"),
            connecting: BTreeMap::new(),
            hidden: self.lost_projects.clone(),
        });
        self.adopt_connection();
        self.meet_spoiled_files();
        self.go_on_with_what_was_cut_off(None);
        let keys = self.known_keys().into_iter().filter(|key| !self.is_hidden(key)).collect::<Vec<_>>();
        let tasks = keys.into_iter().filter_map(|key| self.found(&key)).collect();
        let orphans = self.daemon().orphans.len();
        let owned = self.living().count() - orphans;
        self.beyond_limit = orphans + owned.saturating_sub(self.limits.max_agents as usize);
        self.announce_all();
        self.handle(Event::Booted { tasks });
        if let Some(daemon) = &mut self.daemon {
            daemon.is_booting = false;
            self.settle_merges(None);
        }
    }

    /// The task as a daemon finds it, if it can. A keeper is there until it is dismissed, also when its process is not.
    pub(crate) fn found(&mut self, key: &TaskKey) -> Option<FoundTask> {
        let orphans = &self.daemon.as_ref().expect("a daemon looks").orphans;
        let kept = self.runs.iter().find(|(id, run)| {
            run.key == *key && !run.dismissed && !run.is_unexplained && !orphans.contains(*id)
        });
        let file = &self.files[key];
        let run = match kept {
            _ if file.elsewhere => FoundRun::Elsewhere,
            Some((id, RunInTheWorld { exit: Some(exit), .. })) => {
                FoundRun::Ended { run: id.clone(), exit: *exit }
            }
            Some((id, run)) => FoundRun::Live { run: id.clone(), terms: run.terms },
            None => FoundRun::None,
        };
        let has_mirror = !file.is_broken || self.dice.percent(50);
        let status = match &run {
            _ if has_mirror => self.files[key].status,
            FoundRun::Live { .. } => TaskStatus::Running,
            FoundRun::None | FoundRun::Ended { .. } | FoundRun::Elsewhere => return None,
        };
        Some(FoundTask { key: key.clone(), status, run })
    }

    /// The daemon that lives does not know the task's project.
    pub(crate) fn is_hidden(&self, key: &TaskKey) -> bool {
        self.daemon.as_ref().is_some_and(|daemon| daemon.hidden.contains(&key.project))
    }

    fn announce_all(&mut self) {
        for run in self.runs.values_mut() {
            run.announced = true;
        }
    }

    pub(crate) fn daemon_dies(&mut self) {
        self.say(|| "the daemon dies".into());
        self.tally.deaths_of_the_daemon += 1;
        self.daemon = None;
        self.after_the_daemon();
    }

    /// Callers see their connection close, so no answer can reach them.
    fn after_the_daemon(&mut self) {
        for file in self.files.values_mut() {
            file.made_by = None;
        }
        for run in self.runs.values_mut() {
            run.announced = false;
        }
        self.fate_of_what_was_under_way();
        if !self.is_ending || self.dice.percent(50) {
            let delay = self.dice.delay();
            self.later(delay, WorldEvent::DaemonBoots);
        }
    }

    pub(crate) fn report(&mut self, generation: u64, event: Event) {
        if generation != self.generation || self.daemon.is_none() {
            return;
        }
        if let Event::KeeperReady { run, .. } = &event {
            self.runs.get_mut(run).expect("it was born").announced = true;
        }
        self.handle(event);
    }

    /// Read at the moment it is handed over; what was read earlier may be older than what was written since.
    pub(crate) fn task_is_seen(&mut self, key: TaskKey, generation: u64) {
        if generation != self.generation || self.daemon.is_none() || self.is_hidden(&key) {
            return;
        }
        let is_readable = self.files.get(&key).is_some_and(|file| !file.is_broken);
        if let Some(found) = is_readable.then(|| self.found(&key)).flatten() {
            self.handle(Event::TaskSeen(found));
        }
    }

    /// The same for a task of a project that the daemon has just found. Its file may be broken.
    pub(crate) fn task_is_found(&mut self, key: TaskKey, generation: u64) {
        let is_there =
            generation == self.generation && self.daemon.is_some() && self.files.contains_key(&key);
        if let Some(found) = is_there.then(|| self.found(&key)).flatten() {
            self.handle(Event::TaskSeen(found));
        }
    }

    pub(crate) fn tick(&mut self, at: Time) {
        self.now = self.now.max(at);
        let now = self.now;
        let is_due = |due: Option<Time>| due.is_some_and(|due| due <= now);
        if is_due(self.daemon().supervisor.deadline()) {
            self.handle(Event::Tick);
        }
        if self.daemon.as_ref().is_some_and(|daemon| is_due(daemon.connection.deadline())) {
            self.tell_connection(ConnectionEvent::Tick);
        }
        let next = self.daemon.as_ref().and_then(|daemon| {
            [daemon.supervisor.deadline(), daemon.connection.deadline()].into_iter().flatten().min()
        });
        assert!(next.is_none_or(|next| next > now), "a tick that settles nothing");
    }

    /// The daemon decides, and then does one thing after the other, unless it dies before the last.
    pub(crate) fn handle(&mut self, event: Event) {
        self.tally.events += 1;
        if self.scribe.is_none() {
            self.say(|| format!("{event:?}"));
        }
        let now = self.now;
        let Some(daemon) = &mut self.daemon else { return };
        if let Some(scribe) = &mut self.scribe {
            scribe.write_event(now, &event);
        }
        if let Event::Start { key, plan, .. } | Event::Restart { key, plan, .. } = &event {
            daemon.terms.insert(key.clone(), plan.terms);
        }
        let effects = daemon.supervisor.handle(now, event);
        for effect in effects {
            if self.daemon.is_none() {
                return;
            }
            if self.dies_now() {
                return self.daemon_dies();
            }
            if self.scribe.is_none() {
                self.say(|| format!("    {effect:?}"));
            }
            self.perform(effect);
        }
    }

    /// Asks the supervisor whether an operation may begin that the daemon carries out itself.
    pub(crate) fn begin(
        &mut self,
        key: &TaskKey,
        operation: Operation,
        agent: AgentActivity,
    ) -> Result<(), Refusal> {
        let at_rest = if agent == AgentActivity::AtRest { " at-rest" } else { "" };
        self.write_down(|_| format!("begin {} {}{at_rest}", scribe::word(operation), scribe::show(key)));
        self.daemon().supervisor.begin(key, operation, agent)
    }

    pub(crate) fn leave_unsettled(&mut self, key: &TaskKey) {
        self.write_down(|_| format!("unsettled {}", scribe::show(key)));
        self.daemon().supervisor.leave_unsettled(key);
    }

    pub(crate) fn write_down(&mut self, words: impl FnOnce(&mut Scribe) -> String) {
        if let Some(scribe) = &mut self.scribe {
            let words = words(scribe);
            scribe.write(self.now, &words);
        }
    }

    pub(crate) fn daemon(&mut self) -> &mut Daemon {
        self.daemon.as_mut().expect("a daemon performs")
    }

    fn perform(&mut self, effect: Effect) {
        let touches_processes = matches!(
            effect,
            Effect::MakeWorkspace { .. }
                | Effect::UndoWorkspace { .. }
                | Effect::SetUp { .. }
                | Effect::StartKeeper { .. }
                | Effect::StopRun { .. }
                | Effect::KillRun { .. }
        );
        assert!(!touches_processes || !self.daemon().is_booting, "boot spawns or ends something: {effect:?}");
        match effect {
            Effect::MakeWorkspace { key, epoch } => self.make_workspace(key, epoch),
            Effect::UndoWorkspace { key, epoch } => self.undo_workspace(key, epoch),
            Effect::SetUp { key, epoch } => self.set_up(key, epoch),
            Effect::EndSetup { key, epoch } => {
                let (delay, generation) = (Duration::from_millis(self.dice.below(100)), self.generation);
                self.later(delay, WorldEvent::SetupIsOver { key, generation, epoch, done: false });
            }
            Effect::StartKeeper { key, epoch, cause } => self.start_keeper(key, epoch, cause),
            Effect::StopRun { run, grace, .. } => self.stop_run(run, grace),
            Effect::KillRun { run, .. } => {
                self.tally.kills += 1;
                let delay = Duration::from_millis(self.dice.below(100));
                self.later(delay, WorldEvent::KillArrives { run });
            }
            Effect::DismissRun { run, .. } => self.dismiss(run),
            Effect::WriteStatus { key, status } => self.write_status(key, status),
            Effect::WriteExit { run, exit, .. } => {
                let ended = self.runs[&run].exit.expect("a run that has ended");
                assert_eq!(exit.raw, ended.raw, "the wrong exit is written down");
            }
            Effect::UndoTask { key } => self.undo_task(key),
            Effect::Reply { ticket, outcome } => self.reply(ticket, outcome),
            Effect::Report(notice) => {
                let kind = match notice {
                    Notice::Crashed { .. } => "crashed",
                    Notice::Restarting { ref key, .. } => {
                        self.tally.held_restarts += u64::from(self.works.contains_key(key));
                        "restarting"
                    }
                    Notice::RestartGivenUp { .. } => "restart given up",
                    Notice::RestartFailed { .. } => "restart failed",
                    Notice::WontDie { .. } => "won't die",
                    Notice::DaemonResumeMarkStopped { .. } => "marked stopped",
                };
                *self.tally.notices.entry(kind).or_default() += 1;
            }
            Effect::Quit => self.quit(),
        }
    }

    fn make_workspace(&mut self, key: TaskKey, epoch: Epoch) {
        let fails = self.dice.percent(self.faults.git_fails);
        self.git_begins(key, epoch, GitKind::Make { fails });
    }

    fn undo_workspace(&mut self, key: TaskKey, epoch: Epoch) {
        self.tally.undone_workspaces += 1;
        assert!(!self.setups.contains_key(&key), "the ground is pulled from under a setup");
        let workspace = self.files[&key].workspace.as_ref().expect("something to undo");
        assert!(workspace.made_in == self.generation, "a workspace that was there before is deleted");
        assert!(!workspace.lived_in, "a workspace that an agent has worked in is deleted");
        assert!(!self.lives(&key), "the ground is pulled from under an agent");
        self.git_begins(key, epoch, GitKind::Undo);
    }

    fn set_up(&mut self, key: TaskKey, epoch: Epoch) {
        self.tally.setups += 1;
        assert!(!self.lives(&key) && !self.git.contains_key(&key), "a setup disturbs an agent or git");
        assert!(!self.works.contains_key(&key), "a setup begins while files change");
        let file = self.files.get_mut(&key).expect("a task that is set up has a file");
        file.workspace.as_mut().expect("a setup runs in a workspace").lived_in = true;
        let generation = self.generation;
        let other = self.setups.insert(key.clone(), (generation, epoch));
        assert!(other.is_none(), "two setups of {key} at once");
        let done = !self.dice.percent(self.faults.setup_fails);
        let delay = self.dice.delay();
        self.later(delay, WorldEvent::SetupIsOver { key, generation, epoch, done });
    }

    fn git_begins(&mut self, key: TaskKey, epoch: Epoch, kind: GitKind) {
        assert!(!self.works.contains_key(&key), "git is sent to a workspace whose files change");
        let generation = self.generation;
        let other = self.git.insert(key.clone(), GitJob { generation, epoch, kind });
        assert!(other.is_none(), "git is sent to do two things at once to {key}");
        let delay = self.dice.delay();
        self.later(delay, WorldEvent::GitIsDone { key, generation, epoch });
    }

    fn start_keeper(&mut self, key: TaskKey, epoch: Epoch, cause: StartCause) {
        assert!(self.files[&key].workspace.is_some(), "an agent is sent to where no workspace is");
        assert!(!self.works.contains_key(&key), "an agent is started while its files change");
        let now = self.now;
        let restarts = self.daemon().crash_restarts.entry(key.clone()).or_default();
        match cause {
            StartCause::Asked | StartCause::Restarted => restarts.clear(),
            StartCause::Crash => restarts.push(now),
        }
        let lately = restarts.iter().filter(|at| now.saturating_sub(**at) < Duration::from_secs(300)).count();
        assert!(lately <= 10, "a crash loop");
        self.tally.crash_restarts += u64::from(cause == StartCause::Crash);
        let fallback = self.runs.values().rfind(|run| run.key == key).map(|run| run.terms);
        let asked = self.daemon().terms.get(&key).copied();
        let terms = asked.or(fallback).expect("a start set the terms");
        let (delay, generation) = (self.dice.delay(), self.generation);
        self.later(delay, WorldEvent::KeeperSpawns { key, generation, epoch, terms });
    }

    fn stop_run(&mut self, run: RunId, grace: Duration) {
        if self.dice.percent(self.faults.stop_is_lost) {
            return self.say(|| format!("    the stop of {run} is lost"));
        }
        let delay = Duration::from_millis(self.dice.below(100));
        self.later(delay, WorldEvent::StopArrives { run, grace });
    }

    fn dismiss(&mut self, run: RunId) {
        let run = self.runs.get_mut(&run).expect("it was born");
        assert!(run.exit.is_some(), "a keeper is dismissed from a living process");
        run.dismissed = true;
    }

    fn write_status(&mut self, key: TaskKey, status: TaskStatus) {
        let kept = self.runs.values().any(|run| run.key == key && !run.dismissed);
        let lives = self.is_owned_and_lives(&key);
        let file = self.files.get_mut(&key).expect("a status needs a file");
        assert!(!file.elsewhere, "the task of another host is touched");
        if !file.is_broken {
            file.status = file.status.to(status).expect("a step that the contract knows");
        }
        match status {
            TaskStatus::Running | TaskStatus::Idle => assert!(kept, "{status} is written before the effect"),
            TaskStatus::Stopped => assert!(!lives, "stopped is written before the effect"),
            TaskStatus::Draft
            | TaskStatus::Completed
            | TaskStatus::Failed
            | TaskStatus::Reviewed
            | TaskStatus::Merged => {}
        }
    }

    fn undo_task(&mut self, key: TaskKey) {
        self.tally.undone_tasks += 1;
        let file = self.files.remove(&key).expect("something to undo");
        let maker = file.made_by.expect("a task that was there before is deleted");
        assert!(self.daemon().waiting.contains_key(&maker), "its maker has an answer already");
        assert!(file.workspace.is_none(), "a workspace without a task");
        assert!(!self.lives(&key) && !self.git.contains_key(&key), "a task goes that is at work");
    }

    fn reply(&mut self, ticket: Ticket, outcome: Result<Outcome, Refusal>) {
        let asked = self.daemon().waiting.remove(&ticket);
        let key = asked.expect("a ticket is answered once, and only when it was asked");
        self.adoption_is_answered(ticket, key.as_ref(), outcome.is_ok());
        if let Some(file) = key.as_ref().and_then(|key| self.files.get_mut(key))
            && file.made_by == Some(ticket)
        {
            file.made_by = None;
        }
        match outcome {
            Ok(outcome) => self.granted(key, outcome),
            Err(refusal) => *self.tally.refusals.entry(kind_of(&refusal)).or_default() += 1,
        }
    }

    fn granted(&mut self, key: Option<TaskKey>, outcome: Outcome) {
        self.tally.granted += 1;
        let key = key.as_ref();
        match outcome {
            Outcome::Started { run }
            | Outcome::Resumed { run }
            | Outcome::AlreadyRunning { run }
            | Outcome::Adopted { run } => {
                assert!(!self.runs[&run].dismissed, "a run that is over is called started");
            }
            Outcome::Stopped { exit } => {
                let lives = self.is_owned_and_lives(key.expect("a task"));
                assert!(exit.requested && !lives, "stopped is said too early");
            }
            Outcome::StartCancelled => {
                assert!(!self.is_owned_and_lives(key.expect("a task")), "cancelled, and it lives")
            }
            Outcome::SetUp => self.on_set_up(key.expect("a task")),
            Outcome::Idle | Outcome::Marked(_) => {}
            Outcome::ReadyToRemove => self.remove(key.expect("a task").clone()),
            Outcome::ShutDown { still_alive } => {
                // News of an end may still be on its way, so more may be named than live.
                let mut alive = self.living().filter(|(id, run)| run.announced && !self.is_orphan(id));
                assert!(alive.all(|(_, run)| still_alive.contains(&run.key)), "the living are not named");
            }
        }
    }

    /// A setup without a start: the workspace stays, although no agent has lived in it.
    fn on_set_up(&mut self, key: &TaskKey) {
        assert!(!self.lives(key), "a setup alone started an agent");
        let file = self.files.get_mut(key).expect("a task that is set up has a file");
        file.workspace.as_mut().expect("a setup leaves a workspace").lived_in = true;
    }

    fn remove(&mut self, key: TaskKey) {
        self.removals.insert(key.clone());
        self.work_begins(key.clone(), Operation::Remove);
        if self.dice.percent(30) {
            let begun = self.begin(&key, Operation::TearDown, AgentActivity::AtWork);
            begun.expect("a teardown is a part of a removal");
            self.tally.count("teardown");
        }
    }

    fn quit(&mut self) {
        self.tally.shutdowns += 1;
        let waiting = &self.daemon().waiting;
        assert!(waiting.is_empty(), "the daemon quits without an answer to {waiting:?}");
        self.check_nothing_lives();
        self.daemon = None;
        self.end_connection();
        self.after_the_daemon();
        for run in self.runs.values_mut().filter(|run| self.is_ending && run.exit.is_none()) {
            run.is_left = true;
        }
    }
}

pub(crate) fn kind_of(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::MaxAgentsReached { .. } => "max agents",
        Refusal::TooFewSlots { .. } => "too few slots",
        Refusal::Transition { .. } => "transition",
        Refusal::NotRunning { .. } => "not running",
        Refusal::Busy { .. } => "busy",
        Refusal::AgentAtWork { .. } => "agent at work",
        Refusal::AgentLives { .. } => "agent lives",
        Refusal::Unsettled { .. } => "unsettled",
        Refusal::Orphaned { .. } => "orphaned",
        Refusal::EmptyingTrash => "emptying trash",
        Refusal::ComingBack => "coming back",
        Refusal::Elsewhere { .. } => "elsewhere",
        Refusal::UnknownTask { .. } => "unknown",
        Refusal::HasARun { .. } => "has a run",
        Refusal::Cancelled { .. } => "cancelled",
        Refusal::WorkspaceFailed { .. } => "workspace failed",
        Refusal::SetupFailed { .. } => "setup failed",
        Refusal::KeeperFailed { .. } => "keeper failed",
        Refusal::WontDie { .. } => "won't die",
        Refusal::ShuttingDown => "shutting down",
    }
}

//! Everything outside the daemon: time, task files, workspaces, keepers and their processes.
//!
//! Not here: decisions. Things happen when they are due, even while no daemon lives.
//!
//! Every step is recorded, and has random numbers of its own: so a part of a history can be replayed (see `history`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use agency_core::Time;
use agency_core::connection::Event as ConnectionEvent;
use agency_core::exit::{ExitCode, RunExit, StoppedBy};
use agency_core::ids::{Epoch, ProjectId, RunId, TaskId, TaskKey, Ticket};
use agency_core::restart::RestartPolicy;
use agency_core::supervisor::{Event, Limits, MadeBy, Operation, Readiness, RunTerms};
use agency_core::task_status::TaskStatus;

use crate::connections::{self, SharedProcess};
use crate::daemon::Daemon;
use crate::dice::Dice;
use crate::history::{History, Step, StepKind};
use crate::scribe::Scribe;
use crate::shrinker::ExtraLaw;

pub(crate) struct World {
    pub(crate) aloud: bool,
    /// Everything that happens, in words, if a caller wants it. With a scribe, only what the story does not show.
    pub(crate) account: Option<String>,
    /// Writes down what the supervisors are asked, if a caller wants it.
    pub(crate) scribe: Option<Scribe>,
    pub(crate) extra_law: Option<ExtraLaw>,
    seed: u64,
    /// Chooses the steps. A replay does not use it.
    pub(crate) fate: Dice,
    /// The random numbers of the step that is under way.
    pub(crate) dice: Dice,
    first_tasks: Vec<TaskKey>,
    steps: Vec<Step>,
    is_recording: bool,
    has_whole_seconds: bool,
    /// The step that is under way.
    step: Step,
    effects_in_step: u32,
    births_in_step: u32,
    /// The end of the story has begun.
    pub(crate) is_ending: bool,
    pub(crate) now: Time,
    agenda: BTreeMap<(Time, u64), WorldEvent>,
    last_planned: u64,
    pub(crate) limits: Limits,
    pub(crate) faults: Faults,
    pub(crate) daemon: Option<Daemon>,
    pub(crate) generation: u64,
    pub(crate) files: BTreeMap<TaskKey, TaskOnDisk>,
    pub(crate) runs: BTreeMap<RunId, RunInTheWorld>,
    /// Tasks that were removed and can be brought back.
    pub(crate) trash: BTreeMap<TaskKey, TaskOnDisk>,
    /// Notes that a removal has begun; they survive the daemon.
    pub(crate) removals: BTreeSet<TaskKey>,
    /// Notes that a task is coming back from the trash; they survive the daemon.
    pub(crate) returns: BTreeSet<TaskKey>,
    /// Notes that a merge has begun; they survive the daemon.
    pub(crate) merges: BTreeSet<TaskKey>,
    /// Snapshots that are being taken at the end of a turn.
    pub(crate) snapshots: BTreeSet<TaskKey>,
    /// A turn has ended during a snapshot, so another one must follow.
    pub(crate) unkept_turns: BTreeSet<TaskKey>,
    /// Projects whose trash is being emptied.
    pub(crate) emptying: BTreeSet<ProjectId>,
    /// Projects that the next daemon will not find.
    pub(crate) lost_projects: BTreeSet<ProjectId>,
    /// The next daemon will not know how many daemons there were before it.
    pub(crate) epoch_is_lost: bool,
    /// The process of the connection.
    pub(crate) shared_process: Option<SharedProcess>,
    /// The work of git: one thing at a time for each task.
    pub(crate) git: BTreeMap<TaskKey, GitJob>,
    /// Operations on files that the daemon carries out: merges, syncs, removals, what comes back.
    pub(crate) works: BTreeMap<TaskKey, (u64, Operation)>,
    /// Commands of the user's that run in a workspace.
    pub(crate) setups: BTreeMap<TaskKey, (u64, Epoch)>,
    /// How many may live beyond the limit: adopting what lives asks for no slot.
    pub(crate) beyond_limit: usize,
    pub(crate) acts_left: u32,
    pub(crate) last_ticket: u64,
    pub(crate) last_task: u64,
    pub(crate) tally: Tally,
}

/// The faults of this story, in percent.
pub(crate) struct Faults {
    pub(crate) git_fails: u64,
    pub(crate) needs_setup: u64,
    pub(crate) setup_fails: u64,
    pub(crate) spawn_fails: u64,
    pub(crate) told_twice: u64,
    pub(crate) stop_is_lost: u64,
    pub(crate) daemon_dies: u64,
    pub(crate) undead: u64,
    pub(crate) files_spoil: u64,
}

pub(crate) struct TaskOnDisk {
    pub(crate) status: TaskStatus,
    pub(crate) workspace: Option<WorkspaceOnDisk>,
    /// The call that has just made the file, as long as it waits for its answer.
    pub(crate) made_by: Option<Ticket>,
    pub(crate) elsewhere: bool,
    /// It cannot be read, and nothing can be written into it. `status` is what its mirror says.
    pub(crate) is_broken: bool,
}

pub(crate) struct WorkspaceOnDisk {
    pub(crate) made_in: u64,
    pub(crate) lived_in: bool,
    pub(crate) set_up: bool,
}

pub(crate) struct GitJob {
    pub(crate) generation: u64,
    pub(crate) epoch: Epoch,
    pub(crate) kind: GitKind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GitKind {
    Make { fails: bool },
    Undo,
}

pub(crate) struct RunInTheWorld {
    pub(crate) key: TaskKey,
    pub(crate) terms: RunTerms,
    pub(crate) temper: Temper,
    pub(crate) asked: Option<StoppedBy>,
    pub(crate) exit: Option<RunExit>,
    /// The daemon that lives now knows of it.
    pub(crate) announced: bool,
    pub(crate) dismissed: bool,
    /// No file says which task it belongs to; its keeper still knows.
    pub(crate) is_unexplained: bool,
    /// Its keeper has seen a newer epoch than that of the daemon, and takes no orders.
    pub(crate) is_deaf: bool,
    /// Its keeper did not take the order to kill it. A shutdown orders that once, and names the run as still alive.
    pub(crate) has_missed_kill: bool,
    /// It lived when the last daemon of the story quit.
    pub(crate) is_left: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Temper {
    Obeys,
    IgnoresTerm,
    /// Held by the kernel, whatever one sends it.
    Undead,
}

#[derive(Clone)]
pub(crate) enum WorldEvent {
    PersonActs,
    DaemonBoots,
    Reported { generation: u64, event: Event },
    GitIsDone { key: TaskKey, generation: u64, epoch: Epoch },
    SetupIsOver { key: TaskKey, generation: u64, epoch: Epoch, done: bool },
    WorkIsOver { key: TaskKey, generation: u64 },
    KeeperSpawns { key: TaskKey, generation: u64, epoch: Epoch, terms: RunTerms },
    StopArrives { run: RunId, grace: Duration },
    KillArrives { run: RunId },
    GraceIsOver { run: RunId },
    Ends { run: RunId, raw: ExitCode },
    OrphanIsGone { run: RunId, generation: u64 },
    SnapshotIsTaken { key: TaskKey, generation: u64 },
    TrashIsEmpty { project: ProjectId, generation: u64 },
    EpochIsRaised { generation: u64 },
    ConnectionSpawns { generation: u64, epoch: Epoch },
    ConnectionGreets { id: usize, answers: bool },
    ConnectionEnds { id: usize },
    ConnectionReported { generation: u64, event: ConnectionEvent },
}

/// Counts over all stories, so that the test notices a world in which nothing goes wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) events: u64,
    pub(crate) births: u64,
    pub(crate) boots: u64,
    pub(crate) deaths_of_the_daemon: u64,
    pub(crate) shutdowns: u64,
    pub(crate) setups: u64,
    pub(crate) works: BTreeMap<&'static str, u64>,
    /// Spoiled files that a daemon has met at its boot, snapshots, and what became of orphans.
    pub(crate) rare: BTreeMap<&'static str, u64>,
    pub(crate) unsettled: u64,
    pub(crate) held_restarts: u64,
    pub(crate) undone_workspaces: u64,
    pub(crate) undone_tasks: u64,
    pub(crate) crash_restarts: u64,
    pub(crate) kills: u64,
    pub(crate) granted: u64,
    pub(crate) refusals: BTreeMap<&'static str, u64>,
    pub(crate) notices: BTreeMap<&'static str, u64>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut fate = Dice::new(seed);
        let mut percent = |choices: &[u64]| fate.one_of(choices);
        let faults = Faults {
            git_fails: percent(&[0, 10, 50]),
            needs_setup: percent(&[0, 50]),
            setup_fails: percent(&[0, 10, 50]),
            spawn_fails: percent(&[0, 10, 50]),
            told_twice: percent(&[0, 20]),
            stop_is_lost: percent(&[0, 10, 50]),
            daemon_dies: percent(&[0, 0, 1, 4]),
            undead: percent(&[0, 0, 0, 5]),
            files_spoil: percent(&[0, 0, 30, 100]),
        };
        let limits = Limits {
            max_agents: fate.one_of(&[0, 1, 2, 3]),
            shutdown_timeout: Duration::from_secs(fate.one_of(&[0, 1, 30])),
        };
        let mut world = World {
            aloud: false,
            account: None,
            scribe: None,
            extra_law: None,
            seed,
            dice: Dice::new(fate.next()),
            first_tasks: Vec::new(),
            steps: Vec::new(),
            is_recording: true,
            has_whole_seconds: false,
            step: Step { number: 0, at: Time::ZERO, kind: StepKind::Tick, seed: 0, dies_after: None },
            effects_in_step: 0,
            births_in_step: 0,
            is_ending: false,
            now: Time::ZERO,
            agenda: BTreeMap::new(),
            last_planned: 0,
            limits,
            faults,
            daemon: None,
            generation: 0,
            files: BTreeMap::new(),
            runs: BTreeMap::new(),
            trash: BTreeMap::new(),
            removals: BTreeSet::new(),
            returns: BTreeSet::new(),
            merges: BTreeSet::new(),
            snapshots: BTreeSet::new(),
            unkept_turns: BTreeSet::new(),
            emptying: BTreeSet::new(),
            lost_projects: BTreeSet::new(),
            epoch_is_lost: false,
            shared_process: None,
            git: BTreeMap::new(),
            works: BTreeMap::new(),
            setups: BTreeMap::new(),
            beyond_limit: 0,
            acts_left: 20 + fate.below(30) as u32,
            last_ticket: 0,
            last_task: 0,
            tally: Tally::default(),
            fate,
        };
        world.lay_out();
        world
    }

    fn lay_out(&mut self) {
        for _ in 0..self.fate.below(5) {
            let key = self.new_key();
            let status = self.fate.one_of(&TaskStatus::ALL);
            let lived_in = WorkspaceOnDisk { made_in: 0, lived_in: true, set_up: true };
            let workspace = (status != TaskStatus::Draft).then_some(lived_in);
            let elsewhere = self.fate.percent(10);
            self.first_tasks.push(key.clone());
            let file = TaskOnDisk { status, workspace, made_by: None, elsewhere, is_broken: false };
            self.files.insert(key, file);
        }
    }

    pub(crate) fn new_key(&mut self) -> TaskKey {
        self.last_task += 1;
        let project = if self.last_task.is_multiple_of(3) { "q" } else { "p" };
        TaskKey { project: ProjectId(project.into()), task: TaskId(self.last_task) }
    }

    pub(crate) fn new_terms(&mut self) -> RunTerms {
        let max_restarts = self.fate.one_of(&[0, 1, 3, 100]);
        let restart = self.fate.one_of(&[RestartPolicy::Never, RestartPolicy::OnCrash { max_restarts }]);
        RunTerms { stop_grace: Duration::from_secs(self.fate.one_of(&[0, 2, 30])), restart, takes_slot: true }
    }

    pub(crate) fn say(&mut self, what: impl FnOnce() -> String) {
        if !self.aloud && self.account.is_none() {
            return;
        }
        let line = format!("{:>9.3}  {}", self.now.as_secs_f64(), what());
        match &mut self.account {
            Some(account) => *account += &format!("{line}\n"),
            None => eprintln!("{line}"),
        }
    }

    /// Plays a whole story, and records it.
    pub(crate) fn play(&mut self) {
        self.later(Duration::ZERO, WorldEvent::DaemonBoots);
        self.later(Duration::ZERO, WorldEvent::PersonActs);
        self.until_nothing_is_left();
        self.take(StepKind::End, self.now);
        self.until_nothing_is_left();
        self.check_that_all_is_over();
    }

    /// The steps so far. After a panic, the last one is the step that broke a law.
    pub(crate) fn history(&self) -> History {
        History {
            seed: self.seed,
            tasks: self.first_tasks.clone(),
            steps: self.steps.clone(),
            has_whole_seconds: false,
        }
    }

    /// Repeats these steps. A step that is not possible without one that was left out does nothing. Then everything that
    /// is under way comes to its end, as in every story.
    pub(crate) fn replay(&mut self, history: &History) {
        self.is_recording = false;
        self.has_whole_seconds = history.has_whole_seconds;
        self.files.retain(|key, _| history.tasks.contains(key));
        self.later(Duration::ZERO, WorldEvent::DaemonBoots);
        for step in &history.steps {
            self.repeat(step.clone());
        }
        if !self.is_ending {
            self.take(StepKind::End, self.now);
        }
        self.until_nothing_is_left();
        self.check_that_all_is_over();
    }

    fn until_nothing_is_left(&mut self) {
        let mut steps = 0;
        while let Some((at, kind)) = self.next_step() {
            self.take(kind, at);
            steps += 1;
            assert!(steps < 100_000, "the story does not end");
        }
    }

    /// The next step: the agenda or the daemon's own deadline, the earlier one.
    fn next_step(&mut self) -> Option<(Time, StepKind)> {
        loop {
            let next = self.agenda.first_key_value().map(|((due, _), event)| (*due, event));
            let tick = self.daemon.as_ref().and_then(|daemon| daemon.tick_at());
            match (next, tick) {
                (None, None) => return None,
                (Some((due, _)), Some(tick)) if tick <= due => return Some((tick, StepKind::Tick)),
                (None, Some(tick)) => return Some((tick, StepKind::Tick)),
                (Some((due, WorldEvent::PersonActs)), _) => {
                    self.agenda.pop_first();
                    self.now = self.now.max(due);
                    if let Some(act) = self.choose_act() {
                        return Some((self.now, StepKind::Act(act)));
                    }
                }
                (Some((due, event)), _) => return Some((due, StepKind::Due(event.label()))),
            }
        }
    }

    /// A new step, which is recorded unless this is a replay.
    fn take(&mut self, kind: StepKind, at: Time) {
        // The numbers of a replay begin after those of every history.
        let number = self.step.number.max(if self.is_recording { 0 } else { 1_000_000 }) + 1;
        let seed = if self.is_recording { self.fate.next() } else { number as u64 };
        let step = Step { number, at, kind, seed, dies_after: None };
        if self.is_recording {
            self.steps.push(step.clone());
        }
        self.repeat(step);
    }

    fn repeat(&mut self, step: Step) {
        (self.effects_in_step, self.births_in_step) = (0, 0);
        self.dice = Dice::new(step.seed);
        self.step = step.clone();
        match step.kind {
            StepKind::Act(act) => {
                self.now = self.now.max(step.at);
                self.act(act);
            }
            StepKind::Due(label) => {
                let Some(planned) = self.find_planned(&label) else { return };
                let event = self.agenda.remove(&planned).expect("it was just seen");
                self.now = self.now.max(planned.0).max(step.at);
                self.happens(event);
            }
            StepKind::Tick => {
                let at = self.now.max(step.at);
                let is_due = |daemon: &Daemon| daemon.tick_at().is_some_and(|due| due <= at);
                if !self.daemon.as_ref().is_some_and(is_due) {
                    return;
                }
                self.tick(at);
            }
            StepKind::End => self.end(),
        }
        self.check_laws();
    }

    fn find_planned(&self, label: &str) -> Option<(Time, u64)> {
        self.agenda.iter().find(|(_, event)| event.label() == label).map(|(planned, _)| *planned)
    }

    /// Waits until nothing is under way. Then the last daemon ends, without accidents.
    fn end(&mut self) {
        let step = self.step.clone();
        self.until_nothing_is_left();
        self.check_that_all_is_said();
        self.now = self.now.max(step.at);
        (self.step, self.dice) = (step.clone(), Dice::new(step.seed));
        self.is_ending = true;
        if self.daemon.is_none() {
            self.daemon_boots();
        }
        self.shuts_down();
    }

    /// The daemon may die before each of its effects. A replay repeats the deaths.
    pub(crate) fn dies_now(&mut self) -> bool {
        let at = self.effects_in_step;
        self.effects_in_step += 1;
        if !self.is_recording {
            return self.step.dies_after == Some(at);
        }
        let dies = !self.is_ending && self.fate.percent(self.faults.daemon_dies);
        if let Some(step) = self.steps.last_mut().filter(|_| dies) {
            step.dies_after = Some(at);
        }
        dies
    }

    pub(crate) fn later(&mut self, delay: Duration, event: WorldEvent) {
        let delay = if self.has_whole_seconds { Duration::from_secs(delay.as_secs()) } else { delay };
        self.last_planned += 1;
        self.agenda.insert((self.now + delay, self.last_planned), event);
    }

    fn happens(&mut self, event: WorldEvent) {
        match event {
            WorldEvent::PersonActs => {}
            WorldEvent::DaemonBoots => self.daemon_boots(),
            WorldEvent::Reported { generation, event } => self.report(generation, event),
            WorldEvent::GitIsDone { key, generation, epoch } => self.git_is_done(key, generation, epoch),
            WorldEvent::SetupIsOver { key, generation, epoch, done } => {
                self.setup_is_over(key, generation, epoch, done)
            }
            WorldEvent::WorkIsOver { key, generation } => self.work_is_over(key, generation),
            WorldEvent::KeeperSpawns { key, generation, epoch, terms } => {
                self.keeper_spawns(key, generation, epoch, terms)
            }
            WorldEvent::StopArrives { run, grace } => self.stop_arrives(run, grace),
            WorldEvent::KillArrives { run } => self.kill_arrives(run),
            WorldEvent::GraceIsOver { run } => self.signalled(run, StoppedBy::Kill),
            WorldEvent::Ends { run, raw } => self.ends(run, raw),
            WorldEvent::OrphanIsGone { run, generation } => self.orphan_is_gone(&run, generation),
            WorldEvent::SnapshotIsTaken { key, generation } => self.snapshot_is_taken(&key, generation),
            WorldEvent::TrashIsEmpty { project, generation } => self.trash_is_empty(&project, generation),
            WorldEvent::EpochIsRaised { generation } => self.epoch_is_raised(generation),
            WorldEvent::ConnectionSpawns { generation, epoch } => self.connection_spawns(generation, epoch),
            WorldEvent::ConnectionGreets { id, answers } => self.connection_greets(id, answers),
            WorldEvent::ConnectionEnds { id } => self.connection_ends(id),
            WorldEvent::ConnectionReported { generation, event } => {
                self.connection_reported(generation, event)
            }
        }
    }

    /// A message to the daemon of that generation. It may take its time, and may come twice.
    pub(crate) fn tell(&mut self, generation: u64, event: Event) {
        if self.dice.percent(self.faults.told_twice) {
            let delay = self.dice.delay();
            self.later(delay, WorldEvent::Reported { generation, event: event.clone() });
        }
        let delay = self.dice.delay();
        self.later(delay, WorldEvent::Reported { generation, event });
    }

    fn git_is_done(&mut self, key: TaskKey, generation: u64, epoch: Epoch) {
        // A job that died with its daemon is not done, and another may be under way by now.
        if self.git.get(&key).is_none_or(|job| (job.generation, job.epoch) != (generation, epoch)) {
            return;
        }
        let job = self.git.remove(&key).expect("it was just seen");
        self.say(|| format!("git is done with {:?} of {key}", job.kind));
        let event = self.git_result(key, job);
        self.tell(generation, event);
    }

    fn git_result(&mut self, key: TaskKey, job: GitJob) -> Event {
        let epoch = job.epoch;
        let set_up = !self.dice.percent(self.faults.needs_setup);
        let file = self.files.get_mut(&key);
        match (job.kind, file) {
            (GitKind::Make { fails: true }, _) => {
                Event::WorkspaceFailed { key, epoch, error: "no luck".into() }
            }
            (GitKind::Make { fails: false }, Some(file)) => {
                let fresh = WorkspaceOnDisk { made_in: job.generation, lived_in: false, set_up };
                let made_by = if file.workspace.is_some() { MadeBy::Earlier } else { MadeBy::ThisStart };
                let is_ready = file.workspace.get_or_insert(fresh).set_up;
                let readiness = if is_ready { Readiness::Ready } else { Readiness::Raw };
                Event::WorkspaceMade { key, epoch, made_by, readiness }
            }
            (GitKind::Undo, Some(file)) => {
                file.workspace = None;
                Event::WorkspaceUndone { key, epoch }
            }
            (_, None) => panic!("git worked on {key}, which is no more"),
        }
    }

    fn setup_is_over(&mut self, key: TaskKey, generation: u64, epoch: Epoch, done: bool) {
        // Ended already, or with its daemon.
        if self.setups.get(&key) != Some(&(generation, epoch)) {
            return;
        }
        self.setups.remove(&key);
        self.say(|| format!("the setup of {key} is over, done: {done}"));
        let file = self.files.get_mut(&key).expect("a task that is set up has a file");
        file.workspace.as_mut().expect("a setup runs in a workspace").set_up |= done;
        let error = "exit status: 1".into();
        self.tell(
            generation,
            match done {
                true => Event::SetupDone { key, epoch },
                false => Event::SetupFailed { key, epoch, error },
            },
        );
    }

    fn keeper_spawns(&mut self, key: TaskKey, generation: u64, epoch: Epoch, terms: RunTerms) {
        let workspace = self.files.get(&key).and_then(|file| file.workspace.as_ref());
        if workspace.is_none() || self.dice.percent(self.faults.spawn_fails) {
            let error = "no such program".into();
            return self.tell(generation, Event::KeeperFailed { key, epoch, error });
        }
        // Without a daemon no session is opened.
        if connections::is_session(&key) {
            if self.daemon.is_some() && generation == self.generation {
                self.start_session(key, epoch, terms);
            }
            return;
        }
        let run = self.born(key.clone(), terms);
        self.tell(generation, Event::KeeperReady { key, epoch, run });
    }

    pub(crate) fn born(&mut self, key: TaskKey, terms: RunTerms) -> RunId {
        self.tally.births += 1;
        self.births_in_step += 1;
        let run = RunId(format!("r{}.{}", self.step.number, self.births_in_step));
        self.say(|| format!("{run} of {key} is born"));
        self.check_birth(&key);
        let file = self.files.get_mut(&key).expect("a task that is started has a file");
        let workspace = file.workspace.as_mut().expect("an agent runs in its workspace");
        workspace.lived_in = true;
        let temper = if connections::is_session(&key) { Temper::Obeys } else { self.new_temper() };
        let born = RunInTheWorld {
            key,
            terms,
            temper,
            asked: None,
            exit: None,
            announced: false,
            dismissed: false,
            is_unexplained: false,
            is_deaf: false,
            has_missed_kill: false,
            is_left: false,
        };
        self.runs.insert(run.clone(), born);
        self.plan_natural_end(&run);
        run
    }

    fn new_temper(&mut self) -> Temper {
        if self.dice.percent(self.faults.undead) {
            return Temper::Undead;
        }
        self.dice.one_of(&[Temper::Obeys, Temper::Obeys, Temper::IgnoresTerm])
    }

    fn plan_natural_end(&mut self, run: &RunId) {
        if self.dice.percent(40) || self.runs[run].temper == Temper::Undead {
            return;
        }
        let raw = self.dice.one_of(&[
            ExitCode::Code(0),
            ExitCode::Code(1),
            ExitCode::Signal(11),
            ExitCode::Unknown,
            ExitCode::Code(2),
        ]);
        let short = self.dice.delay();
        let life = self.dice.one_of(&[Duration::ZERO, short, Duration::from_secs(12)]);
        self.later(life, WorldEvent::Ends { run: run.clone(), raw });
    }

    fn stop_arrives(&mut self, run: RunId, grace: Duration) {
        if self.runs[&run].is_deaf {
            return self.say(|| format!("the keeper of {run} takes no order of this daemon"));
        }
        self.signalled(run.clone(), StoppedBy::Term);
        self.later(grace, WorldEvent::GraceIsOver { run });
    }

    fn kill_arrives(&mut self, run: RunId) {
        let process = self.runs.get_mut(&run).expect("it was born");
        match process.is_deaf {
            true => process.has_missed_kill = true,
            false => self.signalled(run, StoppedBy::Kill),
        }
    }

    fn signalled(&mut self, run: RunId, by: StoppedBy) {
        let Some(process) = self.runs.get_mut(&run).filter(|process| process.exit.is_none()) else { return };
        process.asked = Some(by);
        let raw = match (process.temper, by) {
            (Temper::Undead, _) | (Temper::IgnoresTerm, StoppedBy::Term) => return,
            (Temper::Obeys, StoppedBy::Term) => ExitCode::Code(0),
            (Temper::Obeys | Temper::IgnoresTerm, StoppedBy::Kill) => ExitCode::Signal(9),
        };
        self.later(Duration::from_millis(10), WorldEvent::Ends { run, raw });
    }

    pub(crate) fn ends(&mut self, run: RunId, raw: ExitCode) {
        let process = self.runs.get_mut(&run).expect("it was born");
        if process.exit.is_some() {
            return;
        }
        let exit = match process.asked {
            Some(by) => RunExit::stopped(by, raw),
            None => RunExit::by_itself(raw),
        };
        process.exit = Some(exit);
        // A session has no keeper of its own that could hold its exit.
        process.dismissed |= self.daemon.is_none() && connections::is_session(&process.key);
        let (key, is_deaf) = (process.key.clone(), process.is_deaf);
        self.say(|| format!("{run} of {key} ends with {raw}"));
        // Without a daemon that it obeys the keeper holds the exit until one comes.
        match &self.daemon {
            Some(daemon) if daemon.orphans.contains(&run) => {
                let (delay, generation) = (self.dice.delay(), self.generation);
                self.later(delay, WorldEvent::OrphanIsGone { run, generation });
            }
            Some(_) if !is_deaf => self.tell(self.generation, Event::RunExited { key, run, exit }),
            Some(_) | None => {}
        }
    }

    /// All live runs, also those that no daemon knows.
    pub(crate) fn living(&self) -> impl Iterator<Item = (&RunId, &RunInTheWorld)> {
        self.runs.iter().filter(|(_, run)| run.exit.is_none())
    }

    pub(crate) fn lives(&self, key: &TaskKey) -> bool {
        self.living().any(|(_, run)| run.key == *key)
    }

    /// The work that was under way when the daemon died: each piece is done before the next daemon boots, or never.
    pub(crate) fn fate_of_what_was_under_way(&mut self) {
        // The next daemon ends what is left of them before anything else.
        self.setups.clear();
        // A removal and a restoration have a record on disk. The next daemon settles merges and syncs at boot.
        self.works.clear();
        self.snapshots.clear();
        self.unkept_turns.clear();
        self.emptying.clear();
        self.fate_of_connection();
        let jobs: Vec<TaskKey> = self.git.keys().cloned().collect();
        for key in jobs {
            let job = self.git.remove(&key).expect("it was just seen");
            if self.dice.percent(50) {
                self.git_result(key, job);
            }
        }
        let launches: Vec<_> = self
            .agenda
            .iter()
            .filter(|(_, event)| matches!(event, WorldEvent::KeeperSpawns { .. }))
            .map(|(due, _)| *due)
            .collect();
        for due in launches {
            let event = self.agenda.remove(&due);
            if let Some(WorldEvent::KeeperSpawns { key, generation, epoch, terms }) = event
                && self.dice.percent(50)
            {
                self.keeper_spawns(key, generation, epoch, terms);
            }
        }
    }

    pub(crate) fn is_keeper_starting(&self, key: &TaskKey) -> bool {
        let mut planned = self.agenda.values();
        let mut connecting = self.daemon.iter().flat_map(|daemon| daemon.connecting.values().flatten());
        planned.any(|event| matches!(event, WorldEvent::KeeperSpawns { key: of, .. } if of == key))
            || connecting.any(|start| start.key == *key)
    }

    /// Takes an event off the agenda; whether there was one.
    pub(crate) fn remove_planned(&mut self, is_wanted: fn(&WorldEvent) -> bool) -> bool {
        let planned = self.agenda.iter().find(|(_, event)| is_wanted(event)).map(|(planned, _)| *planned);
        planned.and_then(|planned| self.agenda.remove(&planned)).is_some()
    }

    pub(crate) fn step_number(&self) -> usize {
        self.step.number
    }

    pub(crate) fn known_keys(&self) -> BTreeSet<TaskKey> {
        self.files.keys().cloned().collect()
    }
}

impl Tally {
    pub(crate) fn count(&mut self, rare: &'static str) {
        *self.rare.entry(rare).or_default() += 1;
    }

    pub(crate) fn and(mut self, other: Tally) -> Tally {
        self.events += other.events;
        self.births += other.births;
        self.boots += other.boots;
        self.deaths_of_the_daemon += other.deaths_of_the_daemon;
        self.shutdowns += other.shutdowns;
        self.setups += other.setups;
        self.unsettled += other.unsettled;
        self.held_restarts += other.held_restarts;
        for (kind, count) in other.works {
            *self.works.entry(kind).or_default() += count;
        }
        for (kind, count) in other.rare {
            *self.rare.entry(kind).or_default() += count;
        }
        self.undone_workspaces += other.undone_workspaces;
        self.undone_tasks += other.undone_tasks;
        self.crash_restarts += other.crash_restarts;
        self.kills += other.kills;
        self.granted += other.granted;
        for (kind, count) in other.refusals {
            *self.refusals.entry(kind).or_default() += count;
        }
        for (kind, count) in other.notices {
            *self.notices.entry(kind).or_default() += count;
        }
        self
    }
}

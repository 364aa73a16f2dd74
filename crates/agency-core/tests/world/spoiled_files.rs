//! Files that cannot be read any more, orphans, and how a daemon gets on with them.
//!
//! Not here: how a daemon notices them. The supervisor sees only tasks that are missing or have another status, runs
//! that belong to no task, and runs that take no orders.

use agency_core::ids::{ProjectId, RunId, TaskKey, Ticket};
use agency_core::supervisor::Event;

use crate::connections;
use crate::history::SpoiledFile;
use crate::scribe;
use crate::universe::{World, WorldEvent};

impl World {
    pub(crate) fn spoil(&mut self, spoil: SpoiledFile) {
        self.say(|| format!("a file is spoiled: {spoil:?}"));
        match spoil {
            SpoiledFile::Task { key } => {
                if let Some(file) = self.files.get_mut(&key).filter(|file| file.made_by.is_none()) {
                    file.is_broken = true;
                }
            }
            SpoiledFile::Run { run } => {
                // A session that no file explains is forgotten, and ends with its connection.
                let run = self.runs.get_mut(&run).filter(|run| !connections::is_session(&run.key));
                if let Some(run) = run {
                    run.is_unexplained = true;
                }
            }
            SpoiledFile::Project { project } => {
                self.lost_projects.insert(project);
            }
            SpoiledFile::Epoch => self.epoch_is_lost = true,
        }
    }

    /// At boot: every live run whose task is not known becomes an orphan.
    pub(crate) fn meet_spoiled_files(&mut self) {
        let is_outdated = std::mem::take(&mut self.epoch_is_lost);
        if is_outdated {
            self.tally.count("lost epoch");
            let (delay, generation) = (self.dice.delay(), self.generation);
            self.later(delay, WorldEvent::EpochIsRaised { generation });
        }
        for run in self.runs.values_mut().filter(|run| !run.dismissed) {
            run.is_deaf = is_outdated;
            // No file leads to a keeper whose process has ended. It leaves by itself.
            run.dismissed = run.is_unexplained && run.exit.is_some();
        }
        let broken = self.files.values().filter(|file| file.is_broken).count();
        (0..broken).for_each(|_| self.tally.count("broken task file"));
        let unowned: Vec<RunId> = self
            .living()
            .filter(|(_, run)| run.is_unexplained || self.is_hidden(&run.key))
            .map(|(id, _)| id.clone())
            .collect();
        for run in unowned {
            let kind =
                if self.runs[&run].is_unexplained { "unexplained run" } else { "run of a lost project" };
            self.tally.count(kind);
            self.add_orphan(run);
        }
    }

    pub(crate) fn add_orphan(&mut self, run: RunId) {
        let key = self.runs[&run].key.clone();
        self.write_down(|scribe| format!("orphan {} {}", scribe::show(&key), scribe.run(&run)));
        let daemon = self.daemon();
        daemon.supervisor.add_orphan(key, run.clone());
        daemon.orphans.insert(run);
    }

    fn remove_orphan(&mut self, run: &RunId) {
        self.write_down(|scribe| format!("no-orphan {}", scribe.run(run)));
        let daemon = self.daemon();
        daemon.supervisor.remove_orphan(run);
        daemon.orphans.remove(run);
    }

    pub(crate) fn is_orphan(&self, run: &RunId) -> bool {
        self.daemon.as_ref().is_some_and(|daemon| daemon.orphans.contains(run))
    }

    /// A run of the task lives that is no orphan.
    pub(crate) fn is_owned_and_lives(&self, key: &TaskKey) -> bool {
        self.living().any(|(id, run)| run.key == *key && !self.is_orphan(id))
    }

    pub(crate) fn orphan_is_gone(&mut self, run: &RunId, generation: u64) {
        if generation == self.generation && self.is_orphan(run) {
            self.runs.get_mut(run).expect("it was born").dismissed = true;
            self.remove_orphan(run);
        }
    }

    pub(crate) fn kills_an_orphan(&mut self, run: RunId) {
        if self.is_orphan(&run) {
            self.tally.count("killed orphan");
            self.later(std::time::Duration::ZERO, WorldEvent::KillArrives { run });
        }
    }

    /// The daemon follows its keeper first, which fails if it has ended.
    pub(crate) fn adopts_an_orphan(
        &mut self,
        run: RunId,
        ticket: impl FnOnce(&mut World, TaskKey) -> Ticket,
    ) {
        let is_there = self.is_orphan(&run) && self.runs[&run].exit.is_none() && !self.runs[&run].is_deaf;
        if !is_there {
            return;
        }
        let (key, terms) = (self.runs[&run].key.clone(), self.runs[&run].terms);
        let ticket = ticket(self, key.clone());
        self.remove_orphan(&run);
        self.daemon().adopting.insert(ticket, run.clone());
        self.handle(Event::Adopt { key, ticket, run, terms });
    }

    /// A run that its task does not take is an orphan again.
    pub(crate) fn adoption_is_answered(&mut self, ticket: Ticket, key: Option<&TaskKey>, is_granted: bool) {
        let Some(run) = self.daemon().adopting.remove(&ticket) else { return };
        self.say(|| format!("{key:?} takes {run} in: {is_granted}"));
        match is_granted {
            true => self.tally.count("adopted orphan"),
            false => {
                self.tally.count("orphan that its task refuses");
                self.add_orphan(run);
            }
        }
    }

    /// The daemon knows the project again. It gives runs back to their tasks before it tells the supervisor of the tasks.
    pub(crate) fn finds_a_project(&mut self, project: &ProjectId) {
        if !self.daemon().hidden.remove(project) {
            return;
        }
        self.say(|| format!("the daemon finds the project {project} again"));
        self.tally.count("project that is found again");
        self.lost_projects.remove(project);
        self.go_on_with_what_was_cut_off(Some(project));
        let generation = self.generation;
        let keys = self.known_keys().into_iter().filter(|key| key.project == *project);
        for key in keys.collect::<Vec<_>>() {
            let explained = self.explained_orphan_of(&key);
            if let Some(run) = explained.filter(|_| self.daemon.is_some() && self.dice.percent(70)) {
                self.remove_orphan(&run);
            }
            self.task_is_found(key, generation);
        }
        self.settle_merges(Some(project));
    }

    fn explained_orphan_of(&self, key: &TaskKey) -> Option<RunId> {
        let mut orphans = self.living().filter(|(id, run)| run.key == *key && self.is_orphan(id));
        orphans.find(|(_, run)| !run.is_unexplained).map(|(id, _)| id.clone())
    }

    /// Keepers take its orders from now on, and report what has ended.
    pub(crate) fn epoch_is_raised(&mut self, generation: u64) {
        if generation != self.generation || self.daemon.is_none() {
            return;
        }
        self.say(|| "the daemon has raised its epoch".into());
        let mut ended = Vec::new();
        for (id, run) in &mut self.runs {
            let was_deaf = std::mem::take(&mut run.is_deaf);
            if let (Some(exit), true) = (run.exit, was_deaf && !run.dismissed) {
                ended.push(Event::RunExited { key: run.key.clone(), run: id.clone(), exit });
            }
        }
        for event in ended {
            self.tell(generation, event);
        }
    }
}
